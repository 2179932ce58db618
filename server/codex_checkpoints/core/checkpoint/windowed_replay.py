"""Reads a session as `Replay` does, together with its context windows."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from cattrs.strategies import configure_tagged_union

from codex_checkpoints.core.agents.codex.derive import Derivation
from codex_checkpoints.core.agents.codex.history.items import Item
from codex_checkpoints.core.agents.codex.history.rebuild import choose, windows_of
from codex_checkpoints.core.agents.codex.history.replacements import (
    Replacements,
    all_texts,
    is_sealed,
)
from codex_checkpoints.core.agents.codex.history.scan import (
    Compaction,
    HistoryScan,
    Mark,
    ScanState,
)
from codex_checkpoints.core.agents.codex.reader import ReadPosition
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.converters import json_converter, read_or_none
from codex_checkpoints.core.windows import HistoryWindow, Replacement, WindowOpening


@frozen
class _Saved:
    replay: object
    scan: ScanState


_states = json_converter(str, complete=True)
"""As `states`, and with the tagged union of a scan."""
configure_tagged_union(Mark, _states)


class WindowedReplay(Replay):
    """A replay that follows the windows of its session, too."""

    def __init__(
        self,
        state: State | None = None,
        scale: ReadPosition | None = None,
        derivation: Derivation | None = None,
        scan: ScanState | None = None,
    ) -> None:
        """Begin before the first byte of a session, or after a saved state."""
        super().__init__(state, scale, derivation)
        self._scan = HistoryScan(self, state=scan)

    def windows(self) -> tuple[HistoryWindow, ...]:
        """Return the context windows that count, the first one first."""
        outline = self._scan.outline()
        return windows_of(outline, choose(outline))

    def openings(self) -> tuple[WindowOpening, ...]:
        """Return how each window after the first was opened, also those that do not count."""
        outline = self._scan.outline()
        choice = choose(outline)
        counting = windows_of(outline, choice)[1:]
        numbers = {
            each.index: window.number for each, window in zip(choice.windows, counting, strict=True)
        }
        return tuple(
            WindowOpening(each.trigger, numbers.get(index))
            for index, each in enumerate(outline.openings)
        )

    def give_replacements(self, give: Callable[[Replacement], None]) -> None:
        """Give the context that each window begins with, before the state takes its record."""

        def given(at: Compaction, items: tuple[Item, ...]) -> None:
            give(
                Replacement(
                    at.index,
                    at.seq,
                    at.stamp,
                    at.window_id,
                    at.strategy,
                    at.opener,
                    (text for item in items for text in all_texts(item)),
                    any(map(is_sealed, items)),
                )
            )

        self.folds.append(Replacements(self._scan, given))
        self.folds.remove(self.deriver)
        self.folds.append(self.deriver)

    def save(self) -> object | None:
        """Return everything as JSON values; as `Replay.save`."""
        replay = super().save()
        return None if replay is None else _states.unstructure(_Saved(replay, self._scan.state))

    @classmethod
    def load(cls, value: object) -> WindowedReplay | None:
        """Return the replay that `save` stored; None if it is damaged or of another version."""
        kept = read_or_none(_states, value, _Saved)
        replay = None if kept is None else Replay.load(kept.replay)
        if kept is None or replay is None:
            return None
        return cls(replay.state, replay.scale, replay.derivation, kept.scan)
