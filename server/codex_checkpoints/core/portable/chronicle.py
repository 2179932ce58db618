"""A session read once more for a pack: its turns, with the time at which each ended.

A checkpoint keeps when a turn began, and where it ended, not when.  In which modes the session
worked is found by the same reading (`core/restore/trace`).  Which of it a pack holds is decided by
`leaving`.
"""

from __future__ import annotations

from codex_checkpoints.core.restore.trace import Trace
from codex_checkpoints.core.rollout.items import TaskEnded
from codex_checkpoints.core.rollout.lines import Line
from codex_checkpoints.core.rollout.turns import Turn


class Chronicle(Trace):
    """A trace that also knows when turns ended."""

    def __init__(self, *, hot: bool = True, last: int | None = None) -> None:
        """Begin before the first byte of a session; no record with a `seq` above `last` counts."""
        super().__init__(hot=hot, last=last)
        self._ends: dict[int, str] = {}

    def ended_at(self, turn: Turn) -> str | None:
        """Return when a turn ended, as the record says that ended it; None where none does."""
        return None if turn.ended is None else self._ends.get(turn.ended)

    def _look(self, line: Line) -> None:
        super()._look(line)
        if isinstance(line.item, TaskEnded) and line.stamp is not None:
            self._ends[line.position] = line.stamp
