"""Keeps the newest texts that may be quoted line by line."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from typing import Final

from attrs import Factory, define, evolve

from codex_checkpoints.core.digest.records import Quote
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.fields import renew
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.shell import script

TEXTS: Final = 1 << 21
"""The code points of calls, outputs and answers that are kept for quoting."""

LONGEST: Final = 1 << 16
"""The code points of one text; of a longer one, both ends are kept."""

_RUNS: Final = 1024

REFUSED: Final = "refused"
"""The result of a patch that was not applied."""


@define
class Quotes:
    """The newest texts, in order, and the newest of equal calls that printed something.

    A call is kept as its `seq` and its turn.
    """

    _kept: deque[Quote] = Factory(deque[Quote])
    _size: int = 0
    _newest_runs: dict[str, tuple[int, str | None]] = Factory(dict[str, tuple[int, str | None]])

    def add(self, quote: Quote) -> None:
        """Keep a text, and drop the oldest ones that exceed the room."""
        if len(quote.text) > LONGEST:
            quote = evolve(quote, text=ends_of(quote.text, LONGEST))
        self._kept.append(quote)
        self._size += len(quote.text)
        while self._size > TEXTS:
            self._size -= len(self._kept.popleft().text)

    def ran(self, ran: str, seq: int, where: RecordPlace) -> None:
        """Record that a call printed something: the earlier output of the same call is outdated."""
        if ran:
            renew(self._newest_runs, ran, (seq, where.turn_id), _RUNS)

    def without_last(self, where: RecordPlace) -> None:
        """Drop the newest text if it belongs to a record."""
        if self._kept and self._kept[-1].where == where:
            self._size -= len(self._kept.pop().text)

    def refuse(self, seq: int) -> None:
        """Mark the patch of a call as refused: no file holds its lines."""
        for at in reversed(range(len(self._kept))):
            quote = self._kept[at]
            if quote.where.seq < seq:
                break
            if quote.where.seq == seq and quote.kind == "patch":
                self._kept[at] = evolve(quote, failed=REFUSED)

    def without(self, gone: Container[str | None], unfinished: str | None) -> Iterator[Quote]:
        """Yield the texts without some turns, and without outputs of calls that ran again.

        A refused patch is yielded only while it is the newest patch of its file, in the
        `unfinished` turn: mostly it is sent again with corrections.
        """
        newest = {quote.label: quote.where for quote in self._kept if quote.kind == "patch"}
        for quote in self._kept:
            seq, turn_id = self._newest_runs.get(quote.ran, (-1, None))
            is_old = quote.kind == "output" and quote.where.seq < seq and turn_id not in gone
            if quote.kind == "patch" and quote.failed:
                is_old = quote.where.turn_id != unfinished or quote.where != newest[quote.label]
            if quote.where.turn_id not in gone and not is_old:
                yield quote


def files_of(quote: Quote) -> tuple[str, ...]:
    """Return the files of a quote; none if it may also be about something else."""
    if quote.kind == "patch":
        return tuple(quote.label.split(", "))
    reading = script.read_script(quote.label)
    touched = reading.writes if quote.kind == "call" else reading.reads
    return tuple(dict.fromkeys(each.path for each in touched)) if reading.plain else ()
