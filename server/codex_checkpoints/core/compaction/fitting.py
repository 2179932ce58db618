"""Drop items from the oldest end until the rest fits; a call and its output go together.

Never a proportional shrink, and never the newest: when one item alone is too large, that is said
(CKP-9, CKP-15, CKP-32).  What an item costs is told by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_checkpoints.core.rollout.fields import Json, text_of
from codex_checkpoints.values import frozen


@frozen
class Fitted:
    """The places of what is kept and of what was dropped, each in order; what is kept costs."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    tokens: int


@frozen
class TooLarge:
    """The newest item, with what belongs to it, does not fit by itself."""

    tokens: int
    limit: int


_FAMILIES = {
    "function_call": "call",
    "local_shell_call": "call",
    "function_call_output": "call",
    "custom_tool_call": "custom",
    "custom_tool_call_output": "custom",
    "tool_search_call": "search",
    "tool_search_output": "search",
}
"""Codex pairs calls with outputs of their own family alone."""


def fit(items: Sequence[Json], limit: int, cost: Callable[[Json], int]) -> Fitted | TooLarge:
    """Keep as many of the newest items as `limit` tokens hold, whole pairs alone.

    An output without its call, or a call without its output, is never kept.
    """
    groups = groups_of(items)
    costs = [sum(cost(items[place]) for place in group) for group in groups]
    total = sum(costs)
    begin = 0
    while begin < len(groups) and total > limit:
        if begin == len(groups) - 1:
            return TooLarge(total, limit)
        total -= costs[begin]
        begin += 1
    kept = sorted(place for group in groups[begin:] for place in group)
    gone = set(range(len(items))) - set(kept)
    return Fitted(tuple(kept), tuple(sorted(gone)), total)


def groups_of(items: Sequence[Json]) -> list[tuple[int, ...]]:
    """Return the places of what must stay together, oldest first; what is unpaired is in none."""
    alone_or_paired: dict[tuple[str, str] | int, list[int]] = {}
    for place, item in enumerate(items):
        alone_or_paired.setdefault(_pair(item) or place, []).append(place)
    return [
        tuple(places)
        for pair, places in alone_or_paired.items()
        if isinstance(pair, int) or _has_both([items[place] for place in places])
    ]


def _pair(item: Json) -> tuple[str, str] | None:
    """Return what a call and its output have in common; None for what stands alone."""
    form = str(item.get("type"))
    family = _FAMILIES.get(form)
    call_id = text_of(item.get("call_id"))
    # The service itself ran these, or nobody did: Codex asks for no partner.
    if family is None or item.get("execution") == "server":
        return None
    if call_id is None and form in {"local_shell_call", "tool_search_call"}:
        return None
    return (family, call_id or f"none of a {form}")


def _has_both(items: Sequence[Json]) -> bool:
    outputs = [str(item.get("type")).endswith("_output") for item in items]
    return any(outputs) and not all(outputs)
