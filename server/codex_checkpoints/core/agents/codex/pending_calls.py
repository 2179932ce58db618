"""Pairs the calls of an older file with their outcomes, which several records may report."""

from __future__ import annotations

from itertools import islice

from attrs import Factory, define, field

from codex_checkpoints.core.events import ToolCall

_WAITING = 1024  # calls
_WAITING_BYTES = 1 << 22  # the newest call may always wait
_DECIDED = 4096
"""Number of decided calls that are remembered at least, and half of the maximum."""


@define
class PendingCalls:
    """The calls of an older file that wait for their outcome, and those whose outcome is known.

    `waiting` has each call with the length of its line.  Later records about a decided call change
    nothing.  If there are too many calls, the oldest are forgotten.
    """

    waiting: dict[str, tuple[ToolCall, int]] = Factory(dict[str, tuple[ToolCall, int]])
    decided: dict[str, None] = Factory(dict[str, None])
    _size: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._size = sum(size for _, size in self.waiting.values())

    def wait(self, call: ToolCall, size: int) -> None:
        """Add a waiting call; `size` is the length of its line."""
        if call.call_id in self.decided:
            return
        self.end(call.call_id)
        self.waiting[call.call_id] = call, size
        self._size += size
        while len(self.waiting) > _WAITING or (
            self._size > _WAITING_BYTES and len(self.waiting) > 1
        ):
            self.end(next(iter(self.waiting)))

    def end(self, call_id: str) -> None:
        """Remove a waiting call."""
        ended = self.waiting.pop(call_id, None)
        if ended is not None:
            self._size -= ended[1]

    def decide(self, call_id: str) -> None:
        """Record that the outcome of a call is known."""
        self.end(call_id)
        self.decided[call_id] = None
        if len(self.decided) > 2 * _DECIDED:
            for oldest in list(islice(self.decided, _DECIDED)):
                del self.decided[oldest]
