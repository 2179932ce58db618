"""Scores the lines of a session, and their names, by how often similar ones were needed next.

The tables are measured by `bench/learning.py`: of a thousand lines, or names, of a source, the
number that the agent wrote again, and its decline with the amount of later text.  The rates inside
a turn differ from the rates after a turn.  All scores are integers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final, Literal

from attrs import frozen

from codex_checkpoints.core.digest.line_selection import Candidate, LineKey
from codex_checkpoints.core.digest.quotes import files_of
from codex_checkpoints.core.digest.records import Quote
from codex_checkpoints.core.digest.rows import (
    WHOLE_LINE,
    are_adjacent,
    edited,
    lines_of,
    names_in,
    plain_line,
    removed_since,
    split_rows,
)
from codex_checkpoints.core.shell.commands import only_looks

Source = Literal[
    "answer",
    "patch",
    "patch, named",
    "refused",
    "written",
    "call",
    "folder",
    "fresh",
    "fresh, named",
    "older",
    "older, named",
    "stale",
    "stale, named",
    "edited",
    "list",
    "other",
]
"""The source of a line.  `refused` is a patch that was not applied, `folder` the folder that a call
names.  For outputs: a file that was read in the newest turn (`fresh`), in an earlier one (`older`),
or before its newest patch (`stale`); other outputs with lines of edited files; a list of files; and
everything else.  `named`: the last answers or the newest request name its file."""


@frozen
class Table:
    """The weights of names or of whole lines.

    `rates`: the needed ones per thousand of a source.  `falling`: the percents of the rate that
    remain, by the bit length of the later code points divided by `_NEAR`.  `seen`: the percents of
    the rate for one that occurs once, twice, or more often.
    """

    rates: Mapping[Source, int]
    falling: tuple[int, ...]
    seen: tuple[int, ...] = (100, 100, 100)

    def worth(self, source: Source, bucket: int) -> int:
        """Return the weight, in units of 1/100,000."""
        return self.rates[source] * self.falling[bucket]

    def seen_often(self, worth: int, times: int) -> int:
        """Return the weight of something that occurs this many times."""
        return worth * self.seen[min(times, len(self.seen)) - 1] // 100


@frozen
class Tables:
    """The weights of names and of whole lines."""

    names: Table
    lines: Table


_NEAR: Final = 2048
BUCKETS: Final = 8

_FALLING_NAMES: Final = (100, 76, 74, 56, 50, 32, 20, 8)
_FALLING_LINES: Final = (100, 100, 100, 82, 60, 45, 29, 10)
_SEEN: Final = (100, 122, 146)

_RATES: Final[Mapping[Source, tuple[int, int, int, int]]] = {
    "answer": (124, 2, 164, 1),
    "patch": (79, 61, 45, 20),
    "patch, named": (104, 104, 65, 41),
    "refused": (582, 595, 587, 597),
    "written": (79, 61, 45, 20),
    "call": (90, 37, 142, 47),
    "folder": (400, 1000, 471, 1000),
    "fresh": (31, 30, 48, 44),
    "fresh, named": (31, 30, 78, 60),
    "older": (20, 15, 13, 14),
    "older, named": (40, 34, 29, 14),
    "stale": (48, 34, 8, 9),
    "stale, named": (48, 34, 13, 9),
    "edited": (13, 28, 4, 10),
    "list": (43, 0, 55, 2),
    "other": (8, 2, 10, 3),
}
"""The rates of names and of whole lines after a turn, then those in an open turn.

They are counted, with these exceptions: no rate exceeds 1,000.  After a turn, `fresh, named` counts
as `fresh`, and `older, named` a third of its count, since the halves of the cuts disagree; `stale`
and `stale, named` have an earlier count of both together.
"""


def _tables(column: int) -> Tables:
    names: dict[Source, int] = {source: rates[column] for source, rates in _RATES.items()}
    lines: dict[Source, int] = {source: rates[column + 1] for source, rates in _RATES.items()}
    return Tables(Table(names, _FALLING_NAMES), Table(lines, _FALLING_LINES, _SEEN))


TABLES: Final = {False: _tables(0), True: _tables(2)}
"""By whether the last turn is open."""

_OF_NAME: Final = 10
_OF_NUMBER: Final = 20
_OF_LINE: Final = 5
"""The hundredths that count for a name, for a number, and for a whole line: larger shares of
numbers and lines leave too few names."""

_SAID: Final = 2
"""The weight of a byte in the newest turn's answer, in a script whose words are not names."""

_ANSWERS: Final = 2
"""The newest answers whose files are named."""

_NAMED: Final[Mapping[Source, Source]] = {
    "patch": "patch, named",
    "fresh": "fresh, named",
    "older": "older, named",
    "stale": "stale, named",
}

_OLDEST: Final = 1000
"""A turn of this age or older counts nothing."""

_DISTINCTIVE: Final = 8
"""A shorter line occurs in many files: it does not show that an output is an edited file."""

_FROM_FILES: Final = frozenset({"patch", "written", "output"})
_IN: Final = r"(?:cd \S+ *(?:&&|;) *)?"
_LISTS: Final = re.compile(rf"{_IN}(?:ls|find|fd|tree|rg --files|git ls-files)\b")
_ELSEWHERE: Final = re.compile(r"\s(?:/(?:tmp|var|etc|usr|opt|proc)|~)(?![\w-])")
"""A folder that no project is in."""

_READS: Final = re.compile(
    rf"{_IN}(?:cat|sed|nl|head|tail|git (?:-\S+ +)*(?:diff|show|status))(?![\w-])"
)
_FOLDER: Final = re.compile(r"(?:~|[A-Za-z]:)?[/\\]\S+")
"""The first row of a call that names a folder."""

_LONG_LIST: Final = 80
"""Names in a longer list of files are rarely needed."""

_OF_OTHERS: Final = re.compile(r"(?:node_modules|site-packages|\.venv|vendor)[/\\]")
"""Third-party code: it counts like any program's output."""


@frozen
class LineFeatures:
    """A line that may be quoted, its place, and the amount of text after it.

    `names_only`: it counts by its names alone.
    """

    place: LineKey
    text: str
    names: tuple[str, ...]
    source: Source
    bucket: int
    age: int
    names_only: bool = False


@frozen
class QuotableLines:
    """The lines that may be quoted, and the worth of each name."""

    lines: tuple[Candidate, ...]
    worths: Mapping[str, int]

    def free(self, quoted: Collection[str]) -> list[Candidate]:
        """Return the lines that are not quoted yet."""
        return [each for each in self.lines if each.text not in quoted]


def known_of(quotes: Sequence[Quote], request: str, tables: Tables) -> QuotableLines:
    """Score the lines of quotes; of equal lines the newest is quoted, with the best score.

    `request` is the newest one.
    """
    newest, worths, names = dict[str, LineFeatures](), dict[str, int](), dict[str, int]()
    seen = Counter[str]()
    for row in rows_of(quotes, request):
        of_name = tables.names.worth(row.source, row.bucket)
        for name in row.names:
            worth = of_name * (_OF_NUMBER if name.isdigit() else _OF_NAME) // 100
            names[name] = max(worth, names.get(name, 0))
        newest[row.text] = row
        worths[row.text] = max(_worth(row, tables), worths.get(row.text, 0))
        seen[row.text] += 1
    worths = {text: tables.lines.seen_often(worth, seen[text]) for text, worth in worths.items()}
    rows = sorted(newest.values(), key=_place)
    rows = [row for row in rows if row.names or worths[row.text]]
    beside = _neighbours([row.place for row in rows], quotes)
    return QuotableLines(
        tuple(
            Candidate(row.place, row.text, worths[row.text], row.names, tuple(beside[row.place]))
            for row in rows
        ),
        names,
    )


def _place(row: LineFeatures) -> LineKey:
    return row.place


def _worth(row: LineFeatures, tables: Tables) -> int:
    """Return the own weight of a line."""
    if row.source == "answer" and not row.text.isascii():
        return _SAID * len(row.text.encode()) * 2 // (2 + row.age)
    if len(row.text) < WHOLE_LINE or row.names_only:
        return 0
    return tables.lines.worth(row.source, row.bucket) * _OF_LINE // 100


def _neighbours(
    places: Iterable[LineKey], quotes: Sequence[Quote]
) -> Mapping[LineKey, Sequence[LineKey]]:
    """Return the adjacent ones of some places, which are in their order."""
    beside = defaultdict[LineKey, list[LineKey]](list)
    for number, group in groupby(places, lambda place: place[0]):
        rows, is_patch = split_rows(quotes[number]), quotes[number].kind == "patch"
        for one, other in pairwise(group):
            if are_adjacent(rows, one[1], other[1], is_patch=is_patch):
                beside[one].append(other)
                beside[other].append(one)
    return beside


def rows_of(quotes: Sequence[Quote], request: str) -> Iterator[LineFeatures]:
    """Yield the lines that may be quoted, without those that a later patch removed."""
    gone, own, patched = removed_since(quotes), edited(quotes), _patched(quotes)
    answers = [each.text for each in quotes if each.kind == "answer"]
    told = "\n".join([request, *answers[-_ANSWERS:]])
    later = sum(len(quote.text) for quote in quotes)
    names = dict[str, tuple[str, ...]]()
    for number, quote in enumerate(quotes):
        later -= len(quote.text)
        if quote.where.age >= _OLDEST:
            continue
        rows = list(lines_of(quote))
        files = [] if quote.kind in {"answer", "call"} else [*map(_name, files_of(quote))]
        is_named = any(file and file in told for file in files)
        is_stale = bool(files) and all(patched.get(file, -1) > number for file in files)
        source = _source(quote, rows, own, reads_file=bool(files), is_stale=is_stale)
        source = _NAMED[source] if is_named and source in _NAMED else source
        # A command that only looked says which file: its words are not needed again.
        looks = quote.kind == "call" and only_looks(quote.label)
        left = len(quote.text)
        for place, text in rows:
            left = max(0, left - len(text) - 1)
            if quote.kind in _FROM_FILES and gone.get(plain_line(quote, text), -1) > number:
                continue
            bucket = min(((later + left) // _NEAR).bit_length(), BUCKETS - 1)
            if text not in names:
                names[text] = tuple(dict.fromkeys(names_in(text)))
            at, age = (number, place), quote.where.age
            if source == "call" and place == 0 and _FOLDER.fullmatch(text):
                yield LineFeatures(at, text, names[text], "folder", bucket, age)
                continue
            yield LineFeatures(at, text, names[text], source, bucket, age, looks)


def _patched(quotes: Sequence[Quote]) -> dict[str, int]:
    """Return the names of the patched files, without folders, each with its newest patch."""
    patches = ((at, each) for at, each in enumerate(quotes) if each.kind == "patch")
    return {_name(file): at for at, each in patches if not each.failed for file in files_of(each)}


def _source(
    quote: Quote,
    rows: Sequence[tuple[int, str]],
    own: Collection[str],
    *,
    reads_file: bool,
    is_stale: bool,
) -> Source:
    if quote.kind != "output":
        return "refused" if quote.kind == "patch" and quote.failed else quote.kind
    if _OF_OTHERS.search(quote.label):
        return "other"
    if _LISTS.match(quote.label):
        is_near = len(rows) <= _LONG_LIST and not _ELSEWHERE.search(quote.label)
        return "list" if is_near else "other"
    if is_stale:
        return "stale"
    if reads_file or _READS.match(quote.label):
        return "older" if quote.where.age else "fresh"
    is_edited = any(len(row) >= _DISTINCTIVE and row in own for _, row in rows)
    return "edited" if is_edited else "other"


def _name(file: str) -> str:
    return file.rpartition("/")[2]
