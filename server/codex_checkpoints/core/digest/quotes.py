"""Keeps the newest texts that may be quoted line by line."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from typing import Final

from attrs import Factory, define, evolve

from codex_checkpoints.core.digest.records import Quote, RecordPlace
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.fields import renew

TEXTS: Final = 1 << 21
"""The code points of calls, outputs and answers that are kept for quoting."""

LONGEST: Final = 1 << 16
"""The code points of one text; of a longer one, both ends are kept."""

_RUNS: Final = 1024


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

    def without_patch(self, seq: int) -> None:
        """Drop the patch of a call: no file holds its lines."""
        at = len(self._kept) - 1
        while at >= 0 and self._kept[at].where.seq >= seq:
            if (self._kept[at].where.seq, self._kept[at].kind) == (seq, "patch"):
                self._size -= len(self._kept[at].text)
                del self._kept[at]
            at -= 1

    def without(self, gone: Container[str | None]) -> Iterator[Quote]:
        """Yield the texts without some turns, and without outputs of calls that ran again."""
        for quote in self._kept:
            seq, turn_id = self._newest_runs.get(quote.ran, (-1, None))
            is_old = quote.kind == "output" and quote.where.seq < seq and turn_id not in gone
            if quote.where.turn_id not in gone and not is_old:
                yield quote
