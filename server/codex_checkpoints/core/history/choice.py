"""Decide where the history begins, once rollbacks are taken into account.

Codex reads a session from its end, in stretches that each begin with a task.  A rollback removes
the stretches before it in which a user's turn stands.  What a compaction in them had replaced
counts again, so an earlier window comes back with its ids (WIN-7, WIN-8).

The newest window with a replacement is the base: nothing before it is needed (CKP-25).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codex_checkpoints.core.history.survey import (
    Compaction,
    ItemsAdded,
    Mark,
    Outline,
    Settings,
    WorldState,
)
from codex_checkpoints.core.history.windows import Chain, begun
from codex_checkpoints.core.rollout.items import RolledBack, TaskEnded, TaskStarted
from codex_checkpoints.values import Factory, define, frozen


@frozen
class Choice:
    """The record that the history begins with (`base`; None: the file), and the windows that count.

    `windows` has the oldest first.  `baseline` is the `seq` of the settings that the next turn is
    compared with, None where Codex injects the whole context again (CKP-4, WIN-15).
    """

    base: Compaction | None
    windows: tuple[Compaction, ...]
    baseline: int | None
    chain: Chain


_CLEARED = -1


@define
class _Stretch:
    """The records of a task, collected from its end to its beginning."""

    turn_id: str | None = None
    turn: bool = False
    compactions: list[Compaction] = Factory(list[Compaction])
    base: Compaction | None = None
    baseline: int | None = None
    whole_context: bool = False

    def add(self, mark: ItemsAdded | Settings | WorldState | Compaction | TaskEnded) -> None:
        """Add the mark that stands before those already added."""
        match mark:
            case ItemsAdded(turn=turn):
                self.turn = self.turn or turn
            case WorldState(full=full):
                self.whole_context = self.whole_context or (full and not self.compactions)
            case TaskEnded(turn_id=turn_id):
                self.turn_id = self.turn_id or turn_id
            case Settings(turn_id=turn_id, seq=seq):
                self.turn_id = self.turn_id or turn_id
                if turn_id in {None, self.turn_id} and self.baseline is None:
                    self.baseline = seq
            case Compaction():
                self.compactions.append(mark)
                self.baseline = _CLEARED if self.baseline is None else self.baseline
                if self.base is None and mark.replacement:
                    self.base = mark


def choose(outline: Outline) -> Choice:
    """Return which parts of a surveyed session count."""
    kept = list(_surviving(outline.marks))
    base = next((stretch.base for stretch in kept if stretch.base is not None), None)
    windows = tuple(
        compaction for stretch in reversed(kept) for compaction in reversed(stretch.compactions)
    )
    baseline = next(
        (
            stretch.baseline
            for stretch in kept
            if stretch.baseline
            and (stretch.turn or stretch.whole_context or stretch.baseline == _CLEARED)
        ),
        None,
    )
    made_up = any(
        not compaction.replacement and (base is None or compaction.index > base.index)
        for compaction in windows
    )
    known = None if made_up or baseline == _CLEARED else baseline
    return Choice(base, windows, known, _chain(outline, windows))


def _surviving(marks: Sequence[Mark]) -> Iterator[_Stretch]:
    """Yield the stretches that no rollback removes, the newest first."""
    taken_back = 0
    for stretch in _stretches(marks):
        if isinstance(stretch, int):
            taken_back += stretch
        elif taken_back == 0:
            yield stretch
        else:
            taken_back -= stretch.turn


def _stretches(marks: Sequence[Mark]) -> Iterator[_Stretch | int]:
    """Yield the stretches, the newest first; a number is a rollback of so many turns."""
    stretch: _Stretch | None = None
    for mark in reversed(marks):
        match mark:
            case RolledBack(turns=turns):
                yield turns
            case TaskStarted():
                if stretch is not None:
                    yield stretch
                    stretch = None
            case TaskEnded(turn_id=None, aborted=True):
                pass
            case _:
                stretch = _Stretch() if stretch is None else stretch
                stretch.add(mark)
    if stretch is not None:
        yield stretch


def _chain(outline: Outline, windows: Sequence[Compaction]) -> Chain:
    """Return the chain of windows; a record without an id takes it from those before (WIN-7).

    Not the id of the previous window where windows lie between by their numbers (WIN-9).
    """
    chain = begun(outline.window_id) if outline.window_id is not None else Chain(number=0)
    for compaction in windows:
        following = (chain.number or 0) + 1
        number = following if compaction.number is None else compaction.number
        chain = Chain(
            first=compaction.first_id or chain.first,
            previous=compaction.previous_id or (chain.current if number == following else None),
            current=compaction.window_id,
            number=number,
        )
    return chain
