"""Where the history begins: which window still counts once rollbacks are taken into account.

Codex looks at a session from its end, in stretches that each end where a task began.  A rollback
further on takes a stretch away when a user's turn is in it, and whatever a compaction in it had
replaced is there again; so an earlier window comes back, with its ids (WIN-7, WIN-8).

The newest window with a replacement is the base: nothing before it is needed (CKP-25).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import Factory

from codex_checkpoints.core.history.survey import (
    Began,
    Compaction,
    Ended,
    Mark,
    Outline,
    Said,
    Settings,
    TakenBack,
    World,
)
from codex_checkpoints.core.history.windows import Chain, begun
from codex_checkpoints.values import define, frozen


@frozen
class Choice:
    """What counts.

    `base` is the record whose replacement the history begins with, None where it begins with the
    file; `windows` are the records that opened the windows that count, the oldest first.
    `baseline` is the `seq` of the settings that the next turn is compared with, None where Codex
    will inject the whole context anew (CKP-4, WIN-15).
    """

    base: Compaction | None
    windows: tuple[Compaction, ...]
    baseline: int | None
    chain: Chain


_CLEARED = -1


@define
class _Stretch:
    """What was gathered, going back, until its task began."""

    turn_id: str | None = None
    turn: bool = False
    compactions: list[Compaction] = Factory(list[Compaction])
    base: Compaction | None = None
    baseline: int | None = None
    whole_context: bool = False

    def fits(self, turn_id: str | None) -> bool:
        """Return whether a record may belong here: ids differ only where both are known."""
        return turn_id is None or self.turn_id is None or turn_id == self.turn_id

    def add(self, mark: Said | Settings | World | Compaction | Ended) -> None:
        """Take what stands before all that was taken."""
        match mark:
            case Said(turn=turn):
                self.turn = self.turn or turn
            case World(full=full):
                self.whole_context = self.whole_context or (full and not self.compactions)
            case Ended(turn_id=turn_id):
                self.turn_id = self.turn_id or turn_id
            case Settings(turn_id=turn_id, seq=seq):
                self.turn_id = self.turn_id or turn_id
                if self.fits(turn_id) and self.baseline is None:
                    self.baseline = seq
            case Compaction():
                self.compactions.append(mark)
                self.baseline = _CLEARED if self.baseline is None else self.baseline
                if self.base is None and mark.replacement:
                    self.base = mark


def choose(outline: Outline) -> Choice:
    """Decide what counts of a session, by what the first pass found of it."""
    kept = list(_surviving(outline.marks))
    base = next((stretch.base for stretch in kept if stretch.base is not None), None)
    windows = tuple(
        compaction for stretch in reversed(kept) for compaction in reversed(stretch.compactions)
    )
    baseline = next(filter(None, map(_baseline_of, kept)), None)
    made_up = any(
        not compaction.replacement for compaction in windows if _follows(compaction, base)
    )
    known = None if made_up or baseline == _CLEARED else baseline
    return Choice(base, windows, known, _chain(outline, windows))


def _surviving(marks: Sequence[Mark]) -> Iterator[_Stretch]:
    """Yield the stretches that no rollback takes away, the newest first."""
    taken_back = 0
    for stretch in _stretches(marks):
        if isinstance(stretch, int):
            taken_back += stretch
        elif taken_back == 0:
            yield stretch
        else:
            taken_back -= stretch.turn


def _stretches(marks: Sequence[Mark]) -> Iterator[_Stretch | int]:
    """Yield stretches from the end on; a number says how many turns were taken back before it."""
    stretch: _Stretch | None = None
    for mark in reversed(marks):
        match mark:
            case TakenBack(turns=turns):
                yield turns
            case Began():
                if stretch is not None:
                    yield stretch
                    stretch = None
            case Ended(turn_id=None, aborted=True):
                pass
            case _:
                stretch = _Stretch() if stretch is None else stretch
                stretch.add(mark)
    if stretch is not None:
        yield stretch


def _baseline_of(stretch: _Stretch) -> int | None:
    rests = stretch.turn or stretch.whole_context or stretch.baseline == _CLEARED
    return stretch.baseline if rests else None


def _follows(compaction: Compaction, base: Compaction | None) -> bool:
    return base is None or compaction.index > base.index


def _chain(outline: Outline, windows: Sequence[Compaction]) -> Chain:
    """Restore the ids from the newest record that counts, and from those before it (WIN-7)."""
    chain = begun(outline.window_id) if outline.window_id is not None else Chain(number=0)
    for compaction in windows:
        number = 0 if chain.number is None else chain.number
        chain = Chain(
            first=compaction.first_id or chain.first,
            previous=compaction.previous_id or chain.current,
            current=compaction.window_id,
            number=number + 1 if compaction.number is None else compaction.number,
        )
    return chain
