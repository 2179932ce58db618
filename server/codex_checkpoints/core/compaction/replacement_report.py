"""Reports both sides of a compaction: sizes, counts by kind, each item's fate (CKP-16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.agents.codex.history.item_kinds import (
    AUTHORS,
    Author,
    ItemKind,
    Past,
)
from codex_checkpoints.core.agents.codex.history.tokens import (
    Calibration,
    Figure,
    of_item,
)
from codex_checkpoints.core.agents.codex.injected_text import LeftOut

Fate = Literal[
    "kept", "truncated", "replaced", "over_budget", "over_target", "only_payload", "merged"
]


@frozen
class CompactionPiece:
    """One item of the replaced history: its author, time and line, and its fate.

    `place` counts the items from 0.  `fate` is `kept`, `truncated`, `replaced`, `over_budget`,
    `over_target`, `only_payload` or `merged`, where a later message is equal; `cutTokens` is how
    much a truncated one lost.
    """

    place: int
    kind: ItemKind
    author: Author
    at: str | None
    ref: str | None
    tokens: int
    fate: Fate
    cut_tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


@frozen
class ReplacementReport:
    """Both sides of a compaction: sizes, counts by kind, and every item of the old side.

    `before`, `after` and `bound`, which was stated in advance, count everything in use, by the
    `calibration` of the session (rules, "Tokens").
    """

    before: Figure
    after: int
    calibration: Calibration
    bound: int
    kinds_before: Mapping[ItemKind, int]
    kinds_after: Mapping[ItemKind, int]
    sent_again: int
    pieces: tuple[CompactionPiece, ...]

    @property
    def remark(self) -> str | None:
        """Return `saves_nothing`, or `saves_little` if less than a tenth is saved."""
        before, after = self.before.tokens, self.after
        if after * 10 < before * 9:
            return None
        return "saves_nothing" if after >= before else "saves_little"

    @property
    def kept(self) -> tuple[CompactionPiece, ...]:
        """Return the items that the replacement has word for word."""
        return tuple(piece for piece in self.pieces if piece.fate == "kept")

    @property
    def truncated(self) -> tuple[CompactionPiece, ...]:
        """Return the items that the replacement has, cut in the middle."""
        return tuple(piece for piece in self.pieces if piece.fate == "truncated")

    @property
    def dropped(self) -> tuple[CompactionPiece, ...]:
        """Return the items that the replacement does not have any more (CKP-16)."""
        return tuple(piece for piece in self.pieces if piece.fate not in {"kept", "truncated"})


def piece(place: int, past: Past, fate: Fate) -> CompactionPiece:
    """Describe an item of the replaced history."""
    return CompactionPiece(
        place, past.kind, AUTHORS[past.kind], past.at, past.ref, of_item(past.item), fate
    )


def counted(kinds: Sequence[ItemKind]) -> Mapping[ItemKind, int]:
    """Count the items of each kind, in alphabetical order."""
    found = Counter(kinds)
    return {kind: found[kind] for kind in sorted(found)}
