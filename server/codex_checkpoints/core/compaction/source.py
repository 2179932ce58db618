"""Read a session for its compaction: where each item of its history stands, and what was told last.

The two passes are those of `core/history`; what only a compaction asks is gathered on the way, so
that nothing is read a third time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.history.choice import Choice
from codex_checkpoints.core.history.envelope import Line, Place
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.marks import Outline
from codex_checkpoints.core.history.pairing import is_output
from codex_checkpoints.core.history.rebuild import Rebuild
from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.rollout.fields import Json


class Inspection(Survey):
    """The first pass, which also keeps the head and the newest report of tokens as they stand.

    Where a compaction is to be taken back, it keeps what was found in front of that as well.
    """

    def __init__(self, cut: Place | None = None) -> None:
        """Begin before the first byte; keep the outline of what stands in front of the cut."""
        super().__init__()
        self.last_report: Json | None = None
        self._cut = cut
        self._in_front: Outline | None = None

    @property
    def in_front(self) -> Outline:
        """Return what was found in front of the cut, or up to now; its `seq` may be a later one."""
        return self._in_front or self.outline()

    @property
    def head(self) -> Json:
        """Return the payload of the session's own `session_meta`, empty where there is none."""
        return self._head

    def take(self, line: Line) -> None:
        """Take one line."""
        if self._cut is not None and line.place >= self._cut:
            self._in_front, self._cut = self.outline(), None
        known = self._usage
        super().take(line)
        if self._usage is not known:
            self.last_report = line.payload


class Retracing(Rebuild):
    """The second pass, which also remembers in which line each item stood, and when (JUN-43)."""

    def __init__(self, choice: Choice, start: Place, shift: int) -> None:
        """Begin as `Rebuild` does; `shift` is added to the `seq` of lines, behind a seed."""
        super().__init__(choice, start)
        if choice.base is not None:
            # Without ordinals lines are counted, also those in front that are not read again.
            self.lines.count = max(0, choice.base.seq - 1)
        self._shift = shift
        self._met: list[tuple[Item, str, int]] = []

    def take(self, line: Line) -> None:
        """Take one line."""
        before = self._items
        super().take(line)
        same = len(self._met)
        if self._items is not before:
            both = enumerate(zip(self._met, self._items, strict=False))
            least = min(same, len(self._items))
            same = next((at for at, (met, item) in both if met[0] is not item), least)
        # What counts no longer must not be held on to.
        del self._met[same:]
        place = line.stamp, line.seq + self._shift
        self._met += [(item, *place) for item in self._items[same:]]

    def past(self) -> tuple[Past, ...]:
        """Return the items of the history with their time and place.

        An output that was put in for a call without one has neither.
        """
        return tuple(self._placed(self.result().items))

    def _placed(self, items: Iterable[Item]) -> Iterator[Past]:
        """Pair items with where they were met: only outputs were put in, or left out."""
        at = 0
        for item in items:
            ahead = at
            while ahead < len(self._met) and self._met[ahead][0] is not item:
                # Behind anything else that was met there is nothing to be found.
                ahead = ahead + 1 if is_output(self._met[ahead][0]) else len(self._met)
            if ahead >= len(self._met):
                yield Past(item)
                continue
            _, stamp, seq = self._met[ahead]
            yield Past(item, stamp or None, f"seq:{seq}")
            at = ahead + 1
