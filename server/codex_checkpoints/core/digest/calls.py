"""Reads the parts of calls that a digest quotes: scripts, patches, arguments and choices."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from codex_checkpoints.core.agents.codex.call_texts import json_in, script_of, written
from codex_checkpoints.core.digest.ignored_files import PATCHED
from codex_checkpoints.core.events import Chosen, CommandRun, Outcome, ToolCall, ToolResult
from codex_checkpoints.core.fields import text_of, words_of
from codex_checkpoints.core.shell import posix
from codex_checkpoints.core.shell.script import BEGIN, split, writes_into

_ANEW: Final = frozenset({">", ">|", "&>", ">&"})
_REFUSED: Final = re.compile(
    "(?:error: |apply_patch verification failed|Failed to |Invalid |patch rejected|execution error"
    "|unsupported (?:custom tool )?call: |rejected by user|aborted)"
)
"""The first words of an answer to a patch that was not applied."""

_OPENS_TEXT: Final = re.compile(r"<<|@['\"]\s*$")
"""A line that begins a heredoc, or a text of several lines in PowerShell."""

_HEADING: Final = re.compile(r"\*\*\* ((?:Add|Update|Delete) File|Move to): (.+)")


def written_anew(item: ToolCall | ToolResult) -> frozenset[str]:
    """Return the files that the redirections in a command's script overwrite."""
    script = posix.script_of(item.argv) if isinstance(item, CommandRun) else script_of(item)
    redirects = (each for part in split(script or "") or () for each in writes_into(part))
    return frozenset(each.target.text for each in redirects if each.operator in _ANEW)


def is_refusal(outcome: Outcome) -> bool:
    """Return whether the answer to a patch says that the patch was not applied."""
    text = outcome.printed or ""
    return "Success." not in text and bool(outcome.failed or _REFUSED.match(text))


def patched_in(text: str) -> tuple[str, ...]:
    """Return the files that a patch names."""
    return tuple(dict.fromkeys((old or new).strip() for old, new in PATCHED.findall(text)))


def files_of_patch(
    lines: str, name: Callable[[str], str]
) -> tuple[str, list[tuple[tuple[str, ...], str]]]:
    """Return the text around the patch in the lines of a call, and the patch by file.

    Each file comes with its names, as `name` returns them, and with its headings and rows.
    """
    around, files = list[str](), list[tuple[list[str], list[str]]]()
    inside = closes = False
    for line in lines.split("\n"):
        if BEGIN in line:
            inside, closes = True, bool(around) and _OPENS_TEXT.search(around[-1]) is not None
            if closes:
                around.pop()
        elif line.startswith("*** End Patch"):
            inside = False
        elif inside:
            if heading := _HEADING.match(line):
                files += [] if files and heading[1] == "Move to" else [([], [])]
                named = name(heading[2].strip())
                files[-1][0].append(named)
                files[-1][1].append(f"*** {heading[1]}: {named}")
            elif files:
                files[-1][1].append(line)
        elif closes:
            closes = False  # the line that ends the text
        else:
            around.append(line)
    return "\n".join(around), [(tuple(names), "\n".join(rows)) for names, rows in files]


def choices_of(chosen: Chosen) -> str:
    """Return the choices in a dialog, one line per question."""
    # One line, the user's choice first: a question could contain a line of the same form.
    lines = (f"chosen: {', '.join(made)} (asked: {asked})" for asked, made in chosen.choices)
    return "\n".join(" ".join(line.split()) for line in lines)


def quoted_lines(arguments: str) -> tuple[str, tuple[str, ...]]:
    """Return the lines of the command or patch in the arguments of a call, and rows of the others.

    The lines are unescaped.  The folder is a row of its own, as written; the others are one row of
    JSON.
    """
    given = json_in(arguments)
    key = next((key for key in ("command", "cmd", "input", "patch") if key in given), "")
    words = words_of(given.get(key))
    script = words[-1] if words else text_of(given.get(key))
    if script is None:
        return arguments, ()
    others = (each for each in given if each not in {key, "workdir", "justification"})
    told = " ".join(f"{each}={written(given[each])}" for each in others)
    return script.rstrip("\n"), tuple(filter(None, (text_of(given.get("workdir")), told)))


def texts_handed_over(arguments: str) -> tuple[str, str] | None:
    """Return the short arguments of a call and the lines of the long ones, None without long ones.

    Editing tools pass the text of a file.  The replaced text (`old_string`) is left out.
    """
    given = json_in(arguments)
    long = {key: value for key, value in given.items() if "\n" in (text_of(value) or "")}
    if not long:
        return None
    short = " ".join(f"{key}={written(given[key])}" for key in given if key not in long)
    return short, "\n".join(str(long[key]) for key in long if not key.startswith("old"))
