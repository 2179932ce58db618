"""Defines the files of a patch; applies and undoes its hunks, line by line and byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from attrs import field, frozen

_PLACE = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_TRIES = 1000
"""Number of places at which a hunk without line numbers is tried."""

Fit = Literal["numbered", "shifted", "context"]
"""Where undone hunks were found: at their line numbers, at other lines, or by their text."""


@frozen
class PatchedFile:
    """One file of a patch, by its path as written; `kind` is mostly `add`, `update` or `delete`.

    `added` is the hash of the content of an added file.  `diff` and `content` are the change and
    the whole text of an added or deleted file, as recorded.
    """

    path: str
    kind: str
    move_to: str | None = None
    added: str | None = field(default=None, eq=False, kw_only=True)
    diff: str | None = field(default=None, eq=False, kw_only=True)
    content: str | None = field(default=None, eq=False, kw_only=True)


@frozen
class Hunk:
    """The heading of a hunk, and its lines before and after, each with its end."""

    head: str
    old: list[str]
    new: list[str]


@frozen
class Undone:
    """A text without the hunks of a patch."""

    text: str
    fit: Fit


@frozen
class PatchMismatch:
    """A patch that cannot be undone; the reason names the hunk by its number."""

    reason: str


def applied(text: str, rows: Sequence[str], *, back: bool = False) -> str | None:
    """Return a text with the hunks of a patch applied, or undone; None if they do not fit.

    A hunk with line numbers is applied there, otherwise at the first match after the previous hunk.
    """
    lines = lines_of(text)
    done: list[str] = []
    at = 0
    for hunk in hunks_in(rows):
        taken, given = (hunk.new, hunk.old) if back else (hunk.old, hunk.new)
        number = _PLACE.match(hunk.head)
        if number is not None:
            start, count = (number[3], number[4]) if back else (number[1], number[2])
            place = int(start) - (count != "0")
        else:
            place = _find(lines, taken, at, hunk.head.removeprefix("@@").strip())
        if place < at or lines[place : place + len(taken)] != taken:
            return None
        done += lines[at:place] + given
        at = place + len(taken)
    return "".join(done + lines[at:])


def undone(text: str, rows: Sequence[str]) -> Undone | PatchMismatch:
    """Return a text without the hunks of a patch.

    Each hunk is at its line numbers, or its new side occurs verbatim at exactly one place after the
    previous hunk.
    """
    hunks = [*hunks_in(rows)]
    numbered = all(_PLACE.match(each.head) for each in hunks)
    if numbered and (exact := applied(text, rows, back=True)) is not None:
        return Undone(exact, "numbered")
    lines, done, at = lines_of(text), list[str](), 0
    for number, hunk in enumerate(hunks, 1):
        if not hunk.new:
            return PatchMismatch(f"hunk {number} leaves no line by which its place is known")
        places = [*islice(_places(lines, hunk.new, at), 2)]
        if len(places) != 1:
            return PatchMismatch(f"hunk {number} fits {'twice' if places else 'nowhere'}")
        done += lines[at : places[0]] + hunk.old
        at = places[0] + len(hunk.new)
    return Undone("".join(done + lines[at:]), "shifted" if numbered else "context")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its LF; a CR stays in its line."""
    rows = text.split("\n")
    return [f"{row}\n" for row in rows[:-1]] + ([rows[-1]] if rows[-1] else [])


def hunks_in(rows: Sequence[str]) -> Iterator[Hunk]:
    """Yield the hunks in the rows of a patch of one file."""
    head, old, new = "", list[str](), list[str]()
    last = ""
    for row in rows:
        if row.startswith("@@"):
            if old or new:
                yield Hunk(head, old, new)
            head, old, new = row, [], []
        elif row.startswith("\\"):  # the line above has no line end
            for side, signs in ((old, " -"), (new, " +")):
                if last in signs and side:
                    side[-1] = side[-1].removesuffix("\n")
        else:
            last = row[:1] or " "
            line = f"{row[1:]}\n"
            if last != "+":
                old.append(line)
            if last != "-":
                new.append(line)
    if old or new:
        yield Hunk(head, old, new)


def _find(lines: list[str], wanted: list[str], start: int, heading: str) -> int:
    """Return the place of some lines after a position and a heading, -1 if there is none."""
    if heading:
        named = (at for at in range(start, len(lines)) if lines[at].strip() == heading)
        start = next(named, start - 1) + 1
    if not wanted:
        return len(lines)
    return next(_places(lines, wanted, start, _TRIES), -1)


def _places(
    lines: list[str], wanted: list[str], start: int, tries: int | None = None
) -> Iterator[int]:
    """Yield the places after a position at which some lines occur."""
    size = len(wanted)
    begins = (at for at in range(start, len(lines) - size + 1) if lines[at] == wanted[0])
    return (at for at in islice(begins, tries) if lines[at : at + size] == wanted)
