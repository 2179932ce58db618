"""Extracts the quotable lines of calls, patches, outputs and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from codex_checkpoints.core.digest.records import Quote
from codex_checkpoints.core.digest.truncate import GAP

NAME: Final = re.compile(
    r"https?://[^\s\"'<>)\]]+"
    r"|(?:(?<![A-Za-z0-9_.~@-])[A-Za-z0-9_.~@-]++)?(?:/[A-Za-z0-9_.@~-]+)+"
    r"|[A-Za-z_][A-Za-z0-9_]*(?:[.:-]{1,2}[A-Za-z0-9_]+)*"
    r"|\d{3,}"
)
"""Text that an agent must copy exactly: URLs, paths, identifiers, numbers."""

_SHORTEST: Final = 5
_LONGEST_LINE: Final = 240
_LEAST_LINE: Final = 4
_LONGEST_BETWEEN: Final = 8
WHOLE_LINE: Final = 20
"""A line up to this many code points may be needed in full."""

_WHOLE: Final = "*** Add File"
"""The first line of a patch that contains a whole file."""

_WORD: Final = re.compile(r"\w{2}")
_HEADERS: Final = re.compile(r"\*\*\* |@@|-|\\ No newline")
_DIFF: Final = re.compile(r"git (?:-[Cc] \S+ |-(?![Cc] )\S+ )*(?:diff|show)\b[^:;&\n]*")
"""A command that prints only differences."""

_HUNK: Final = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_OF_DIFF: Final = re.compile(
    r"@@|--- |\+\+\+ |(?:diff --git|index|similarity index|rename (?:from|to)) "
)
"""Headings of a difference."""

_LISTED: Final = re.compile(
    r"[-dlbcps][-rwxsStT]{9}[@+.]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+"
    r"(?:\d{4}-\d\d-\d\d\s+[\d:.]+(?:\s+[-+]\d{4})?|\S+\s+\S+\s+\S+)\s+(?=\S)"
)
"""The columns of `ls -l` before a name."""

_NUMBERING: Final = re.compile(r"\b(?:nl|cat(?: -\w+)*? -\w*n\w*|(?:rg|grep)\b.*? -\w*n\w*)\b")
_NUMBERED: Final = re.compile(r"\s*\d{1,7}(?:[:-]|[ \t]+|$)")
"""The prefix of a line in a numbered listing of a file."""

_SEARCH: Final = re.compile(r"\b(?:rg|grep|ag)\b")
_FOUND_AT: Final = re.compile(r"[^\s:]+[:-]\d{1,7}[:-]\s*")
"""The prefix of a line found by a search in several files."""

_NO_NEWS: Final = re.compile(
    r"\s*(?:at |\u276f |File \").*(?:node_modules|node:internal|site-packages|<frozen )"
    r"|\s*Traceback \(most recent call last\):|\s*\d+ files? changed, \d"
    r"|\s*[\u2713\u2714] |\s*\S+\.\w+\s+\d[\d.,]{0,12} [kM]i?B\b|> @?[^\s@]+@\d\S* \S+$"
    r"|\s*\"[\w@/.-]+\": \"(?:[\^~]|[<>]=? ?|npm:)?\d[\w.+-]*\",?\s*$"
    r"|\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S* (?!.{0,80}(?:ERROR|FATAL|[Ee]rror\b|panic))"
    r"|\S{300}"
)
"""A frame in third-party code, the line above a stack, the total below a list of changes, passed
tests, build sizes, the banner of a script, package versions, a log without errors, and generated
code."""

_COMMON: Final = re.compile(
    r"(?:[^\s:]+:\d+:)?\s*(?:import\b.*['\"]|export\b.{0,200} from ['\"]"
    r"|[a-z]+(?:-[a-z]+)+: [^;()]+;\s*$)"
)
"""Imports, re-exports and page styles: only a patch of the same turn needs them."""

_BREAK: Final = re.compile(r"\\n|\n")
"""A line break: literal in an output, escaped in a call's JSON arguments."""


def names_in(text: str) -> list[str]:
    """Return the names in a text, in their order."""
    found: list[str] = []
    for match in NAME.finditer(text):
        word = match[0].strip(".-:/~@")
        simple = word.isalpha() and (word.islower() or word.istitle() or word.isupper())
        if len(word) >= _SHORTEST and not simple:
            found.append(word)
    return found


def rows_with(sign: str, quote: Quote) -> frozenset[int]:
    """Return the places of the rows that a patch adds to an existing file, or leaves in it."""
    if quote.kind != "patch" or quote.text.startswith(_WHOLE):
        return frozenset()
    return frozenset([at for at, row in enumerate(quote.text.split("\n")) if row[:1] == sign])


def edited(quotes: Sequence[Quote]) -> set[str]:
    """Return the lines written into files, and the adjacent lines in patches."""
    own = [each for each in quotes if each.kind in {"patch", "written"} and not each.failed]
    rows = ((each, row) for each in own for row in each.text.split("\n"))
    return {row[each.kind == "patch" :].strip() for each, row in rows}


def removed_since(quotes: Sequence[Quote]) -> dict[str, int]:
    """Return the lines that patches removed and did not add again, each with the last quote."""
    gone: dict[str, int] = {}
    for number, quote in enumerate(quotes):
        if quote.kind == "patch" and not quote.failed:
            rows = quote.text.split("\n")
            gone.update((row[1:].strip(), number) for row in rows if row.startswith("-"))
            for row in rows:
                if row.startswith("+"):
                    gone.pop(row[1:].strip(), None)
    return gone


def shortened(line: str) -> str:
    """Return a line in its quoted form: a long one with its middle cut out."""
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[: _LONGEST_LINE // 2]}{GAP}{line[-(_LONGEST_LINE // 2) :]}"


def lines_of(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the lines that may be chosen, without indentation, each with its place."""
    for place, row in _rows_of(quote):
        line = shortened(row.strip())
        if len(line) >= _LEAST_LINE and _WORD.search(line):
            yield place, line


def split_rows(quote: Quote) -> list[str]:
    """Return the rows of a quote, each at its place."""
    is_json = quote.kind == "call" and quote.text.startswith("{")
    return _BREAK.split(quote.text) if is_json else quote.text.split("\n")


def are_adjacent(rows: Sequence[str], one: int, other: int, *, is_patch: bool) -> bool:
    """Return whether only short rows, such as brackets, are between two places.

    Rows that a patch removes do not count.
    """
    for row in rows[one + 1 : other]:
        if is_patch and row.startswith("-"):
            continue
        if is_patch and _HEADERS.match(row):
            return False
        if len(row.removeprefix("+").strip()) > _LONGEST_BETWEEN:
            return False
    return True


def _rows_of(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the rows of a quote; for a patch or a difference, the rows that it leaves in a file."""
    if quote.kind == "patch":
        for place, row in enumerate(quote.text.split("\n")):
            if not _HEADERS.match(row):
                yield place, row[1:] if row[:1] in {"+", " "} else row
    elif quote.kind == "output":
        is_numbered = _NUMBERING.search(quote.label) is not None
        for place, row in _without_removed(quote):
            number = _NUMBERED.match(row) if is_numbered else None
            line = row if number is None else row[number.end() :]
            if not (_NO_NEWS.match(line) or (quote.where.age and _COMMON.match(line))):
                listed = _LISTED.match(line)
                yield place, line[listed.end() :] if listed else line
    else:
        yield from enumerate(split_rows(quote))


def _without_removed(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the rows of an output without those removed by a difference in it.

    If the output consists of differences, a hunk may lack its heading, since the middle was cut.
    """
    is_diff = _DIFF.fullmatch(quote.label) is not None
    old = new = 0
    for place, row in enumerate(quote.text.split("\n")):
        if hunk := _HUNK.match(row):
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif not (is_diff or old > 0 or new > 0):
            yield place, row
        elif not _OF_DIFF.match(row):
            old, new = old - (row[:1] != "+"), new - (row[:1] != "-")
            if row[:1] != "-":
                yield place, row.removeprefix("+")


def plain_line(quote: Quote, line: str) -> str:
    """Return a line as it is in its file, without the prefix of a search."""
    is_found = quote.kind == "output" and _SEARCH.search(quote.label) is not None
    found_at = _FOUND_AT.match(line) if is_found else None
    return line if found_at is None else line[found_at.end() :]
