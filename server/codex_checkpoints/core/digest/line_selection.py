"""Chooses the lines that a digest quotes to complement its other sections: one pure function.

Each line has a weight, and so has each name in it that is not quoted yet; the next line is the one
with the highest gain per byte.  Lines of one record share a heading, so a second one costs less.  A
neighbour of a chosen line weighs more, since a patch needs whole hunks; a gap costs its mark.  The
order depends neither on the room, which only ends it, so more room never quotes less, nor on the
order of the input: of two lines with the same gain the newer one comes first.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from attrs import Factory, define, frozen

_OVERHEAD: Final = 12
"""Bytes added to the cost of each line: short lines carry little information."""

_BESIDE: Final = 3, 2
"""The factor for the own worth of a line next to a chosen one."""

_SCALE: Final = 1 << 16
LEAST: Final = 1 << 12
"""A line that adds less for a byte, in `_SCALE`, is never chosen, even if there is room."""

_PART: Final = re.compile(r"[^./:-]+")

OMITTED: Final = "\u2026"
"""A row in place of lines that are not quoted."""

_ROW: Final = 3
"""Bytes added to each row, the mark of a gap included, for its separator."""

_GAP: Final = len(OMITTED.encode()) + _ROW

LineKey = tuple[int, int]
"""The number of a record, and the row in it."""


@frozen
class Candidate:
    """A line that may be chosen: its place, its worth, and the names in it.

    `beside` are the places of the adjacent candidates.
    """

    place: LineKey
    text: str
    worth: int
    names: tuple[str, ...]
    beside: tuple[LineKey, ...] = ()


@frozen
class Heading:
    """The heading before the first line of a record: the names in it, and its bytes."""

    names: tuple[str, ...]
    size: int


@define(eq=False)
class Chosen:
    """The chosen lines by record, in order; `refused` counts lines not allowed."""

    lines: dict[int, list[Candidate]] = Factory(dict[int, list[Candidate]])
    refused: int = 0

    def rows(self, record: int) -> Iterator[tuple[int, str]]:
        """Yield the rows of a record with their places; `OMITTED` marks a gap between them."""
        before = None
        for each in self.lines[record]:
            if before is not None and before not in each.beside:
                yield -1, OMITTED
            yield each.place[1], each.text
            before = each.place


def choose(  # noqa: PLR0913 - the inputs of a choice
    candidates: Iterable[Candidate],
    worths: Mapping[str, int],
    quoted: Iterable[str],
    room: int,
    *,
    heading: Callable[[int], Heading],
    allowed: Callable[[Candidate], bool] = lambda _: True,
) -> Chosen:
    """Return the best lines within `room` bytes.

    `worths` are the worths of names, `quoted` the names already quoted; `allowed` checks whether a
    line may be quoted.
    """
    packing = _Packing({each.place: each for each in candidates}, worths, heading)
    packing.mark_quoted(quoted)
    chosen = Chosen()
    for each in packing.order():
        if not allowed(each):
            chosen.refused += 1
            continue
        room -= packing.cost(each)
        if room < 0:
            break
        packing.take(each)
        chosen.lines.setdefault(each.place[0], []).append(each)
    for lines in chosen.lines.values():
        lines.sort(key=lambda each: each.place)
    return chosen


@define(eq=False)
class _Packing:
    """The lines that remain, and the names in the lines already taken."""

    _candidates: dict[LineKey, Candidate]
    _worths: Mapping[str, int]
    _heading: Callable[[int], Heading]
    _quoted: set[str] = Factory(set[str])
    _opened: set[int] = Factory(set[int])
    _taken: set[LineKey] = Factory(set[LineKey])
    _heap: list[tuple[int, LineKey]] = Factory(list[tuple[int, LineKey]])

    def order(self) -> Iterator[Candidate]:
        """Yield the lines, the best first, each ranked by its gain over the lines taken so far.

        Gains only fall as lines are taken, except for neighbours of a taken line: they are queued
        again.
        """
        for each in self._candidates.values():
            self._push(each, self._gain(each))
        while self._heap:
            before, (record, row) = heapq.heappop(self._heap)
            candidate = self._candidates.get((-record, -row))
            if candidate is None:
                continue
            gain = self._gain(candidate)
            if -gain > before and self._heap and -gain > self._heap[0][0]:
                self._push(candidate, gain)
            elif gain >= LEAST:
                del self._candidates[candidate.place]
                yield candidate

    def _push(self, candidate: Candidate, gain: int) -> None:
        """Queue a line; of two lines with the same gain the newer one comes first."""
        if gain >= LEAST:
            record, row = candidate.place
            heapq.heappush(self._heap, (-gain, (-record, -row)))

    def mark_quoted(self, names: Iterable[str]) -> None:
        """Mark names as quoted, and the names within them."""
        self._quoted.update(chain.from_iterable(map(within, names)))

    def take(self, candidate: Candidate) -> None:
        """Mark a line as quoted."""
        self.mark_quoted(self._names(candidate))
        self._opened.add(candidate.place[0])
        self._taken.add(candidate.place)
        for place in candidate.beside:
            if place in self._candidates:
                self._push(self._candidates[place], self._gain(self._candidates[place]))

    def cost(self, candidate: Candidate) -> int:
        """Return the bytes that a line adds, with the heading or the gaps around it."""
        size = len(candidate.text.encode()) + _ROW
        record = candidate.place[0]
        if record not in self._opened:
            return size + self._heading(record).size
        joined = sum(place in self._taken for place in candidate.beside)
        return size + _GAP * (1 - joined)

    def _names(self, candidate: Candidate) -> Iterable[str]:
        if candidate.place[0] in self._opened:
            return candidate.names
        return dict.fromkeys((*candidate.names, *self._heading(candidate.place[0]).names))

    def _gain(self, candidate: Candidate) -> int:
        value = candidate.worth
        if not self._taken.isdisjoint(candidate.beside):
            value = value * _BESIDE[0] // _BESIDE[1]
        for name in self._names(candidate):
            if name not in self._quoted:
                value += self._worths.get(name, 0)
        return value * _SCALE // (self.cost(candidate) + _OVERHEAD)


def within(name: str) -> set[str]:
    """Return a name and the names within it: `a.b.c` contains `b.c`, `a.b` and `b`."""
    parts = [found.span() for found in _PART.finditer(name)]
    starts, ends = {start for start, _ in parts}, {end for _, end in parts}
    begun, ended = {name[start:] for start in starts}, {name[:end] for end in ends}
    return {name} | begun | ended | {name[start:end] for start, end in parts}
