"""The second pass over a session for its compaction: where each item of its history stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.history.choice import Choice
from codex_checkpoints.core.history.items import Item
from codex_checkpoints.core.history.rebuild import Rebuild, is_output
from codex_checkpoints.core.rollout.reader import NOTED, Line, Place


class Retracing:
    """The second pass, which also keeps in which line each item stood, and when (JUN-43)."""

    def __init__(self, choice: Choice, start: Place, shift: int) -> None:
        """Begin as `Rebuild` does; `shift` is added to the `seq` of lines, behind a seed."""
        self.rebuild = Rebuild(choice, start)
        self.reader = self.rebuild.reader
        self.reader.folds.append(self)
        if choice.base is not None:
            # Without ordinals lines are counted, also those in front that are not read again.
            self.reader.scale.lines = max(0, choice.base.seq - 1)
        self._shift = shift
        self._before = self.rebuild.items
        self._met: list[tuple[Item, str | None, int]] = []

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no more than the items themselves."""
        return NOTED

    def take(self, line: Line) -> None:
        """Note the line of the items that came with it."""
        items, same = self.rebuild.items, len(self._met)
        if items is not self._before:
            both = enumerate(zip(self._met, items, strict=False))
            least = min(same, len(items))
            same = next((at for at, (met, item) in both if met[0] is not item), least)
        self._before = items
        # What counts no longer must not be held on to.
        del self._met[same:]
        self._met += [(item, line.stamp, line.seq + self._shift) for item in items[same:]]

    def past(self) -> tuple[Past, ...]:
        """Return the items of the history with their time and place.

        An output that was put in for a call without one has neither.
        """
        return tuple(self._placed(self.rebuild.result().items))

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
