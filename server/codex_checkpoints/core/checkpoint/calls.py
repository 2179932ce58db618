"""Calls of an older file, from the line that asks to the first record that tells the outcome.

A call waits as the line it came in and is read when its outcome is looked at, which for most never
happens.  Later records about a call that is decided change nothing.  All of it is bounded: of too
many calls the oldest are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from attrs import Factory, field

from codex_checkpoints.values import define

_WAITING = 1024
"""How many calls may wait for their outcome."""

_WAITING_BYTES = 1 << 22
"""How many bytes of calls may wait, though the newest always may."""

_DECIDED = 4096
"""How many decided calls are remembered at least; up to twice as many before a clearance."""


Asked = tuple[bytes, bool]
"""A call by the line that asks, and whether it is plain: only matters that it ended."""


@define
class Calls:
    """The calls that wait, by id, and those that are decided."""

    waiting: dict[str, Asked] = Factory(dict[str, Asked])
    decided: dict[str, None] = Factory(dict[str, None])
    _size: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._size = sum(map(len, self.lines()))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the calls that wait."""
        return (line for line, _ in self.waiting.values())

    def wait(self, call_id: str, line: bytes, *, plain: bool = False) -> None:
        """Let a call wait for its outcome."""
        if call_id in self.decided:
            return
        waiting = self.waiting
        if call_id in waiting:
            self.end(call_id)
        waiting[call_id] = line, plain
        self._size += len(line)
        while len(waiting) > _WAITING or (self._size > _WAITING_BYTES and len(waiting) > 1):
            self.end(next(iter(waiting)))

    def end(self, call_id: str) -> None:
        """Let a call wait no longer."""
        asked = self.waiting.pop(call_id, None)
        if asked is not None:
            self._size -= len(asked[0])

    def decide(self, call_id: str) -> None:
        """Remember that the outcome of a call is known."""
        decided = self.decided
        decided[call_id] = None
        if len(decided) > 2 * _DECIDED:
            for oldest in list(islice(decided, _DECIDED)):
                del decided[oldest]
