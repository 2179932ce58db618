"""Read a session for its compaction: where each item of its history stands, and what was told last.

The two passes are those of `core/history`; what only a compaction asks is gathered on the way, so
that nothing is read a third time.
"""

from __future__ import annotations

from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.history.choice import Choice
from codex_checkpoints.core.history.envelope import Line, Place
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.rebuild import Rebuild
from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.history.tokens import usage_of
from codex_checkpoints.core.rollout.fields import Json


class Inspection(Survey):
    """The first pass, which also keeps the head and the newest report of tokens as they stand."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        super().__init__()
        self.last_report: Json | None = None

    @property
    def head(self) -> Json:
        """Return the payload of the session's own `session_meta`, empty where there is none."""
        return self._head

    def take(self, line: Line) -> None:
        """Take one line."""
        super().take(line)
        if line.tag == "token_count" and usage_of(line.payload) is not None:
            self.last_report = line.payload


class Retracing(Rebuild):
    """The second pass, which also remembers in which line each item stood, and when (JUN-43)."""

    def __init__(self, choice: Choice, start: Place, shift: int) -> None:
        """Begin as `Rebuild` does; `shift` is added to the `seq` of lines, behind a seed."""
        super().__init__(choice, start)
        self._shift = shift
        self._met: dict[int, tuple[Item, str, int]] = {}

    def take(self, line: Line) -> None:
        """Take one line."""
        before = self._items
        super().take(line)
        for item in reversed(self._items):
            if id(item) in self._met:
                break
            self._met[id(item)] = item, line.stamp, line.seq + self._shift
        if self._items is not before:
            # What counts no longer must not be held on to.
            self._met = {id(item): self._met[id(item)] for item in self._items}

    def past(self) -> tuple[Past, ...]:
        """Return the items of the history with their time and place.

        An output that was put in for a call without one has neither.
        """
        return tuple(map(self._past, self.result().items))

    def _past(self, item: Item) -> Past:
        found = self._met.get(id(item))
        if found is None:
            return Past(item)
        _, stamp, seq = found
        return Past(item, stamp or None, f"seq:{seq}")
