"""What a compaction reports: both sides, and item by item what became of the old one (CKP-30).

`building.py` fills these in; `records.py` keeps what must outlive the operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from codex_checkpoints.core.compaction.kinds import AUTHORS, Author, Kind, LeftOut, Past, kind_of
from codex_checkpoints.core.history.tokens import Source, of_item
from codex_checkpoints.values import frozen

Fate = Literal["kept", "truncated", "replaced", "over_budget", "over_target", "only_payload"]
Reason = Literal[
    "not_smaller",
    "below_threshold",
    "missing_context",
    "item_too_large",
    "turn_not_complete",
    "unsupported_placement",
]


@frozen
class Figure:
    """A number of tokens, and whether the service reported it or we estimated it (JUN-28)."""

    tokens: int
    source: Source


@frozen
class Piece:
    """One item of the replaced history: whose it was, when, where, and what became of it.

    `place` counts the items from 0.  `fate` is `kept`, `truncated`, `replaced`, `over_budget`,
    `over_target` or `only_payload`; `cutTokens` is how much a truncated one lost.
    """

    place: int
    kind: Kind
    author: Author
    at: str | None
    ref: str | None
    tokens: int
    fate: Fate
    cut_tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


@frozen
class Report:
    """Both sides of a compaction: sizes, counts by kind, and every item of the old side.

    `before` is the figure that decisions go by, `replaced` our estimate of the same history: like
    `after` it does not count base instructions and fresh context.  `bound` was stated first.
    """

    before: Figure
    replaced: int
    after: int
    bound: int
    kinds_before: Mapping[Kind, int]
    kinds_after: Mapping[Kind, int]
    pieces: tuple[Piece, ...]

    @property
    def kept(self) -> tuple[Piece, ...]:
        """Return what stands in the replacement word for word."""
        return tuple(piece for piece in self.pieces if piece.fate == "kept")

    @property
    def truncated(self) -> tuple[Piece, ...]:
        """Return what stands there cut in the middle."""
        return tuple(piece for piece in self.pieces if piece.fate == "truncated")

    @property
    def dropped(self) -> tuple[Piece, ...]:
        """Return what stands there no longer (CKP-16)."""
        return tuple(piece for piece in self.pieces if piece.fate not in {"kept", "truncated"})


@frozen
class Declined:
    """A compaction that is not done, why, and the numbers that say so (JUN-45)."""

    reason: Reason
    facts: Mapping[str, int | str]


def piece(place: int, past: Past, fate: Fate) -> Piece:
    """Describe an item of the replaced history."""
    kind = kind_of(past.item)
    return Piece(place, kind, AUTHORS[kind], past.at, past.ref, of_item(past.item), fate)


def counted(kinds: Sequence[Kind]) -> Mapping[Kind, int]:
    """Count the items of each kind that occurs, in the order of the alphabet."""
    found = Counter(kinds)
    return {kind: found[kind] for kind in sorted(found)}
