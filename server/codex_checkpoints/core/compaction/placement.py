"""Where standing context goes in a replacement: an explicit choice of the caller (CKP-4 to CKP-7).

`manual` and `pre_turn` put none in: the next turn writes it anew (CKP-31).  `mid_turn` carries it;
that is written and tested here, and refused by `building.py` as long as nobody compacts a running
turn (JUN-31).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

from codex_checkpoints.core.compaction.kinds import kind_of
from codex_checkpoints.core.rollout.fields import Json

Placement = Literal["manual", "pre_turn", "mid_turn"]

OFFERED: tuple[Placement, ...] = ("manual", "pre_turn")

STANDING_CONTEXT: dict[Placement, str] = {
    "manual": "rebuilt by the next turn",
    "pre_turn": "rebuilt by the next turn",
    "mid_turn": "carried over",
}
"""What becomes of the standing context, in words for people (CKP-31)."""


def place(items: Sequence[Json], context: Sequence[Json], placement: Placement) -> tuple[Json, ...]:
    """Return the items of a replacement with the standing context where it belongs (CKP-5)."""
    match placement:
        case "manual" | "pre_turn":
            return tuple(items)
        case "mid_turn":
            at = _before(items)
            return (*items[:at], *context, *items[at:])
        case _:
            assert_never(placement)


def _before(items: Sequence[Json]) -> int:
    """Find the last message of the user, else the last handoff or summary, else the compaction."""
    kinds = [kind_of(item) for item in items]
    for wanted in ({"user"}, {"handoff", "summary"}, {"compaction"}):
        found = [at for at, kind in enumerate(kinds) if kind in wanted]
        if found:
            return found[-1]
    return len(items)
