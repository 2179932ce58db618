"""Scores the lines of a session, and their names, by how often similar ones were needed next.

The tables are measured by `bench/learning.py`: of a thousand lines, or names, of a source, the
number that the agent wrote again, and its decline with the amount of later text.  The rates inside
a turn differ from the rates after a turn.  All scores are integers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Literal

from attrs import frozen

from codex_checkpoints.core.digest.line_selection import Candidate, LineKey
from codex_checkpoints.core.digest.records import Quote
from codex_checkpoints.core.digest.rows import (
    WHOLE_LINE,
    edited,
    lines_of,
    names_in,
    plain_line,
    removed_since,
)

Source = Literal["answer", "patch", "written", "call", "edited", "file", "list", "other"]
"""The source of a line.  For outputs: an edited file, another file (`file`), a list of files, and
everything else."""


@frozen
class Table:
    """The weights of names or of whole lines.

    `rates`: the needed ones per thousand of a source.  `falling`: the percents of the rate that
    remain, by the bit length of the later code points divided by `_NEAR`.
    """

    rates: Mapping[Source, int]
    falling: tuple[int, ...]

    def worth(self, source: Source, bucket: int) -> int:
        """Return the weight, in units of 1/100,000."""
        return self.rates[source] * self.falling[bucket]


@frozen
class Tables:
    """The weights of names and of whole lines."""

    names: Table
    lines: Table


_NEAR: Final = 2048
BUCKETS: Final = 8

_FALLING_NAMES: Final = (100, 74, 69, 56, 45, 33, 18, 7)
_FALLING_LINES: Final = (100, 71, 71, 60, 49, 32, 19, 7)

_AFTER_TURN: Final = Tables(
    Table(
        {
            "answer": 120,
            "patch": 89,
            "written": 89,
            "call": 112,
            "edited": 27,
            "file": 14,
            "list": 37,
            "other": 9,
        },
        _FALLING_NAMES,
    ),
    Table(
        {
            "answer": 2,
            "patch": 114,
            "written": 114,
            "call": 82,
            "edited": 29,
            "file": 17,
            "list": 1,
            "other": 3,
        },
        _FALLING_LINES,
    ),
)
_IN_TURN: Final = Tables(
    Table(
        {
            "answer": 163,
            "patch": 46,
            "written": 46,
            "call": 159,
            "edited": 17,
            "file": 53,
            "list": 61,
            "other": 14,
        },
        _FALLING_NAMES,
    ),
    Table(
        {
            "answer": 2,
            "patch": 51,
            "written": 51,
            "call": 53,
            "edited": 19,
            "file": 51,
            "list": 6,
            "other": 6,
        },
        _FALLING_LINES,
    ),
)
TABLES: Final = {False: _AFTER_TURN, True: _IN_TURN}
"""By whether the last turn is open."""

_OF_NAME: Final = 10
_OF_NUMBER: Final = 20
_OF_LINE: Final = 3
"""The hundredths that count for a name, for a number, and for a whole line: larger shares of
numbers and lines leave too few names."""

_SAID: Final = 2
"""The weight of a byte in the newest turn's answer, in a script whose words are not names."""

_OLDEST: Final = 1000
"""A turn of this age or older counts nothing."""

_TELLING: Final = 8
"""A shorter line occurs in many files: it does not show that an output is an edited file."""

_FROM_FILES: Final = frozenset({"patch", "written", "output"})
_IN: Final = r"(?:cd \S+ *(?:&&|;) *)?"
_LISTS: Final = re.compile(rf"{_IN}(?:ls|find|fd|tree|rg --files|git ls-files)\b")
_READS: Final = re.compile(
    rf"{_IN}(?:cat|sed|nl|head|tail|git (?:-\S+ +)*(?:diff|show|status))(?![\w-])"
)
_LONG_LIST: Final = 80
"""Names in a longer list of files are rarely needed."""

_OF_OTHERS: Final = re.compile(r"(?:node_modules|site-packages|\.venv|vendor)[/\\]")
"""Third-party code: it counts like any program's output."""


@frozen
class LineFeatures:
    """A line that may be quoted, its place, and the amount of text after it."""

    place: LineKey
    text: str
    names: tuple[str, ...]
    source: Source
    bucket: int
    age: int


@frozen
class QuotableLines:
    """The lines that may be quoted, and the worth of each name."""

    lines: tuple[Candidate, ...]
    worths: Mapping[str, int]

    def free(self, held: Collection[str]) -> list[Candidate]:
        """Return the lines that are not quoted yet."""
        return [each for each in self.lines if each.text not in held]


def known_of(quotes: Sequence[Quote], tables: Tables) -> QuotableLines:
    """Score the lines of quotes; of equal lines only the newest counts."""
    lines, worths = dict[str, LineFeatures](), dict[str, int]()
    for row in rows_of(quotes):
        of_name = tables.names.worth(row.source, row.bucket)
        for name in row.names:
            worth = of_name * (_OF_NUMBER if name.isdigit() else _OF_NAME) // 100
            worths[name] = max(worth, worths.get(name, 0))
        lines[row.text] = row
    return QuotableLines(tuple(_candidates(sorted(lines.values(), key=_place), tables)), worths)


def _place(row: LineFeatures) -> LineKey:
    return row.place


def _worth(row: LineFeatures, tables: Tables) -> int:
    """Return the own weight of a line."""
    if row.source == "answer" and not row.text.isascii():
        return _SAID * len(row.text.encode()) * 2 // (2 + row.age)
    if len(row.text) < WHOLE_LINE:
        return 0
    return tables.lines.worth(row.source, row.bucket) * _OF_LINE // 100


def _candidates(rows: Sequence[LineFeatures], tables: Tables) -> Iterator[Candidate]:
    """Yield the lines of rows in their order, each with its neighbours in the record."""
    for at, row in enumerate(rows):
        near = [*rows[max(at - 1, 0) : at], *rows[at + 1 : at + 2]]
        beside = tuple(other.place for other in near if _is_beside(other.place, row.place))
        worth = _worth(row, tables)
        if row.names or worth:
            yield Candidate(row.place, row.text, worth, row.names, beside)


def rows_of(quotes: Sequence[Quote]) -> Iterator[LineFeatures]:
    """Yield the lines that may be quoted, without those that a later patch removed."""
    gone, own = removed_since(quotes), edited(quotes)
    behind = sum(len(quote.text) for quote in quotes)
    for number, quote in enumerate(quotes):
        behind -= len(quote.text)
        if quote.where.age >= _OLDEST:
            continue
        rows = list(lines_of(quote))
        source = _source(quote, rows, own)
        left = len(quote.text)
        for place, text in rows:
            left = max(0, left - len(text) - 1)
            if quote.kind in _FROM_FILES and gone.get(plain_line(quote, text), -1) > number:
                continue
            bucket = min(((behind + left) // _NEAR).bit_length(), BUCKETS - 1)
            names = tuple(dict.fromkeys(names_in(text)))
            yield LineFeatures((number, place), text, names, source, bucket, quote.where.age)


def _source(quote: Quote, rows: Sequence[tuple[int, str]], own: Collection[str]) -> Source:
    if quote.kind != "output":
        return quote.kind
    if _OF_OTHERS.search(quote.label):
        return "other"
    if _LISTS.match(quote.label):
        return "list" if len(rows) <= _LONG_LIST else "other"
    if any(len(row) >= _TELLING and row in own for _, row in rows):
        return "edited"
    return "file" if _READS.match(quote.label) else "other"


def _is_beside(one: LineKey, other: LineKey) -> bool:
    return one[0] == other[0] and abs(one[1] - other[1]) <= 2  # noqa: PLR2004 - a blank row between
