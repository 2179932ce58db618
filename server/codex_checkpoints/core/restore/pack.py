"""The state pack: the one message that a hard restore begins with, within a token budget.

Filled line by line in the order of `pack_lines`; the first line that does not fit and all that
follow are deferred (AGN-53, AGN-55).  It never fails: a budget of one token gives an empty pack and
a warning (AGN-73).  The same arguments give the same bytes (AGN-31); no time of the restore and no
id of the branch stand in it, so a preview shows what will be sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from codex_checkpoints.core.checkpoint.caps import DEFAULT_BUDGET
from codex_checkpoints.core.restore.carried import Carried
from codex_checkpoints.core.restore.pack_lines import (
    Item,
    Line,
    Part,
    filtered,
    lines_of,
    out_of_bound,
    unseen,
)
from codex_checkpoints.values import frozen

TITLE = "[SESSION_RESTORE v1]"

Reason = Literal["budget", "filtered", "missing", "no_lines", "unreadable", "bound"]
"""Why something is not in a pack: no tokens left; a step that is done or a decision that another
supersedes; a pinned file that is not there, that has no such lines, or that is not to be read;
longer than a pinned content may be."""


@frozen
class Deferred:
    """One thing that a pack leaves out.

    `reason` is `budget`, `filtered` (a step that is done, a decision that another supersedes),
    `missing` (a pinned file that is not there), `no_lines` (it has no such lines), `unreadable` or
    `bound` (a pin that is shown in part, or too large to be read).
    """

    part: Part
    id: str
    reason: Reason


@frozen
class StatePack:
    """A pack within its budget; `included` and the ones left out are all items there are."""

    text: str
    tokens: int
    budget: int
    included: tuple[Item, ...]
    deferred: tuple[Deferred, ...]

    @property
    def truncated(self) -> int:
        """Return how many items the budget kept out."""
        return self.count("budget")

    def count(self, *reasons: Reason) -> int:
        """Return how many items are deferred for one of these reasons."""
        return sum(item.reason in reasons for item in self.deferred)


@frozen
class PackLine:
    """One line that a pack can have; `tokens` is the smallest budget of a pack that holds it.

    A heading, or the empty line before it, has no item.
    """

    text: str
    item: Item | None
    tokens: int


def tokens_of(text: str) -> int:
    """Estimate the cost of a text: a token for each four bytes begun."""
    return -(-len(text.encode()) // 4)


def pack_lines(carried: Carried) -> tuple[PackLine, ...]:
    """Return every line that a pack of what is carried can have, in their order.

    The pack of any budget is those of them whose `tokens` do not exceed it.
    """
    size = 0
    found: list[PackLine] = []
    for line in (Line(TITLE, None), *lines_of(carried)):  # the title is no item
        size += len(line.text.encode()) + 1
        found.append(PackLine(line.text, line.item, -(-size // 4)))
    return tuple(found)


def state_pack(carried: Carried, budget: int = DEFAULT_BUDGET) -> StatePack:
    """Return the pack of what is carried, of at most `budget` tokens."""
    lines = pack_lines(carried)
    text = "".join(f"{line.text}\n" for line in lines if line.tokens <= budget)
    items = [(line.item, line.tokens <= budget) for line in lines if line.item is not None]
    included = tuple(item for item, fits in items if fits)
    reasons: tuple[tuple[Reason, Iterable[Item]], ...] = (
        ("budget", (item for item, fits in items if not fits)),
        ("filtered", filtered(carried)),
        ("missing", unseen(carried, "missing")),
        ("no_lines", unseen(carried, "no_lines")),
        ("unreadable", unseen(carried, "unreadable")),
        ("bound", out_of_bound(carried)),
    )
    deferred = (Deferred(item.part, item.id, why) for why, some in reasons for item in some)
    return StatePack(text, tokens_of(text), budget, included, tuple(deferred))


def items_of(carried: Carried) -> tuple[Item, ...]:
    """Return all items that are carried, as a soft restore takes them over."""
    shown = (line.item for line in lines_of(carried) if line.item is not None)
    travelling = (item for item in shown if item.part not in {"notice", "window"})
    return (*travelling, *filtered(carried))
