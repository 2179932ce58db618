"""Reads the results of calls: the hunks of patches, and the output lines that report the result.

`MARKS` holds the output of common runners.  If none of it is found, the last lines are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from codex_checkpoints.core.checkpoint.redaction import redact

ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Escape sequences of terminals: colour, cursor, titles."""

_LAST_LINES: Final = 3
_LONGEST: Final = 240
_SEARCHED: Final = 1 << 18
"""The code points of an output that are searched: the last ones."""

NAMES: Final = re.compile(
    r"""
      FAILED[ ]\S+::.*  | ERROR[ ]\S+(?:\.py|::) .*            # pytest
    | (?:FAIL|ERROR):[ ]\w+ .*                                 # unittest
    | test[ ]\S+[ ]\.\.\.[ ]FAILED                             # cargo
    | \s*---[ ]FAIL:[ ].*                                      # go
    | \s*[✕✗\u00d7]\s.+ | \s*●[ ].+                                 # jest, vitest
    | \s*FAIL[ ]{1,2}\S+.*                                     # jest, vitest, go
    | not[ ]ok[ ]\d+.*                                         # TAP, node
    | \s*✖[ ].+
    | \S.*[ ]>[ ].+\(.*\)[ ]FAILED | .+[ ]>[ ].+[ ]FAILED      # gradle
    | \s*Failed[ ]\S+[ ]\[.*\]                                 # dotnet
    """,
    re.VERBOSE,
)
"""Lines that name a failing test."""

ERRORS: Final = re.compile(
    r"""
      E[ ]{2,}\S.* | \S+\.py:\d+:[ ]\w+                       # pytest
    | \s+(?:Expected|Received|expected|actual|left|right):[ ].*  # jest, node, cargo
    | (?:[\w.]+\.)?\w*(?:Error|Exception|Exit|Interrupt)\b(?::.*)?
    | error(?:\[E\d+\])?:[ ].* | \s*-->[ ]\S+:\d+:\d+          # cargo, rustc, clang
    | thread[ ].*panicked[ ]at.* | panic:.*
    | .*\berror[ ](?:TS|CS|MSB|NU|FS|BC)\d+:.*                 # tsc, dotnet
    | \S+:\d+(?::\d+)?:?[ ](?:fatal[ ])?error.*                # gcc, clang, javac
    | \S+\.go:\d+(?::\d+)?:[ ].* | \s+\S+_test\.go:\d+:.*      # go
    | \s*\d+:\d+\s+error\s+.*                                  # eslint
    | npm[ ](?:ERR!|error)[ ](?![ ]|A[ ]complete[ ]log|To[ ]see).* | ERR!.*
    | (?:g?make)(?:\[\d+\])?:[ ]\*\*\*.*                       # make
    | >[ ]Task[ ].*FAILED | e:[ ].* | \*[ ]What[ ]went[ ]wrong:.*   # gradle
    | (?:fatal|Error|ERROR)\b:?[ ].* | \[vite\](?::|[ ].*[Ee]rror:)[ ].*
    | .*(?:command[ ]not[ ]found|No[ ]such[ ]file[ ]or[ ]directory|Permission[ ]denied).*
    | \s*(?:Assertion|Type|Reference|Syntax|Range)Error\b.*
    """,
    re.VERBOSE,
)
"""Lines that report an error."""

TROUBLES: Final = re.compile(
    r"(?!npm warn).*"
    r"(?:\b(?:ECONN|EPIPE|EPERM|EACCES|ENOENT|ETIMEDOUT|ENOTFOUND|EADDR)[A-Z]*\b|refused|hang up"
    r"|timed out|[Dd]enied|\bERR(?:OR)?\b|[Ee]rror: ).*"
)
"""Lines that report trouble, whatever the exit code is."""

_TROUBLE_HINTS: Final = (
    *("ECONN", "EPIPE", "EPERM", "EACCES", "ENOENT", "ETIMEDOUT", "ENOTFOUND", "EADDR"),
    *("refused", "hang up", "timed out", "enied", "ERR", "rror: "),
)
"""Each such line contains one of these, which are found many times faster."""

FRAME: Final = re.compile(r'\s*File "[^"]+", line \d+.*')
"""A frame of a Python traceback; the last one, a few lines above the error, is its origin."""

_OF_FILE: Final = re.compile(r"\s*\d+:\d+\s+error\s")
_FILE: Final = re.compile(r"(?!\s)[^:]*[^:\s]")
"""The file in ESLint's output, in the line above its errors."""

_CALLED_AT: Final = re.compile(r"\s+at .*:\d+:\d+\)?$")
"""A frame as Node prints it."""

SUMMARIES: Final = re.compile(
    r"""
      =*[ ]?\d+[ ](?:passed|failed|error|skipped|xfailed|deselected).*   # pytest
    | =+[ ].*(?:passed|failed|error).*[ ]=+
    | FAILED[ ]\(.*\) | Ran[ ]\d+[ ]tests?[ ]in.*              # unittest
    | test[ ]result:[ ].*                                      # cargo
    | error:[ ](?:could[ ]not[ ]compile|aborting).*
    | (?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[.*\]).*      # go
    | \s*(?:Tests|Test[ ]Suites|Test[ ]Files):?\s+.*\d.*       # jest, vitest
    | \#[ ](?:pass|fail)[ ]\d+ | \u2139[ ](?:pass|fail)[ ]\d+       # node
    | [✖✔][ ]\d+[ ]problems?.*                                 # eslint
    | Found[ ]\d+[ ]errors?.*                                  # tsc, mypy, ruff
    | BUILD[ ](?:FAILED|SUCCESSFUL).* | Build[ ](?:FAILED|succeeded).*
    | \s*(?:Failed|Passed)!\s+-[ ].*                           # dotnet
    """,
    re.VERBOSE,
)
"""Summary lines."""

COMMITS: Final = re.compile(r"\[\S+ (?:\([^)]*\) )?[0-9a-f]{7,12}\] .*")
"""The output of `git commit`: it accompanies the summary and never replaces it."""


def plain(text: str) -> str:
    """Return a text without escape sequences of terminals."""
    return ANSI.sub("", text) if "\x1b" in text else text


def telling_lines(output: str, *, failed: bool) -> tuple[str, ...]:
    """Return the lines that report how a command ended, in their order; none for a quiet success.

    They are redacted: a line alone does not show that it is a part of a key.
    """
    end = plain(output if len(output) <= _SEARCHED else output[-_SEARCHED:].partition("\n")[2])
    if not failed:
        # Most outputs of a success report nothing, and redacting takes time.
        return _success(_lines(redact(end))) if _success(_lines(end)) else ()
    lines = _lines(redact(end))
    found: dict[str, int] = {}
    for pattern, most in ((NAMES, 4), (ERRORS, 5), (SUMMARIES, 2)):
        fitting = (place for place, line in enumerate(lines) if pattern.fullmatch(line))
        for place in islice(fitting, most):
            found.setdefault(lines[place].strip(), place)
            of_file = _OF_FILE.match(lines[place]) is not None
            heads, far = (_FILE, 99) if of_file else (FRAME, 4)
            above = range(place - 1, max(-1, place - 1 - far), -1) if pattern is ERRORS else ()
            frame = next((at for at in above if heads.fullmatch(lines[at])), None)
            if frame is not None:
                found.setdefault(lines[frame].strip(), frame)
    if not found:
        told = [line.strip() for line in lines if not _CALLED_AT.match(line)] or lines
        return tuple(told[-_LAST_LINES:])
    return tuple(sorted(found, key=found.__getitem__))


def _lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank, cut."""
    lines = (line.rstrip() for line in text.split("\n"))
    return [line[:_LONGEST] for line in lines if line]


def _success(lines: list[str]) -> tuple[str, ...]:
    """Return the lines that report a success, or trouble in spite of it, and a commit."""
    ended = _last(lines, SUMMARIES, 1)
    if not ended:
        hinted = [line for line in lines if any(map(line.__contains__, _TROUBLE_HINTS))]
        ended = _last(hinted, TROUBLES, _LAST_LINES)
    return tuple(dict.fromkeys([*ended, *_last(lines, COMMITS, 1)]))


_FAILURE: Final = re.compile(
    r"\bFAILED\b|(?<![\w.])[1-9]\d{0,8} (?:failed|failures?|errors?)\b|\b(?:failures|errors)=[1-9]"
)


def tells_of_failure(lines: Iterable[str]) -> bool:
    """Return whether the telling lines report a failure, whatever the exit code was.

    `pytest | tail` and `pytest; git status` end with the code of the last command.
    """
    return any(_FAILURE.search(line) for line in lines)


def _last(lines: Iterable[str], pattern: re.Pattern[str], count: int) -> list[str]:
    return [line.strip() for line in lines if pattern.fullmatch(line)][-count:]
