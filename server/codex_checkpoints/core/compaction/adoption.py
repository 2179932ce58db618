"""Adopts a history compacted by Codex or another tool: filters it, then reports it like our own.

Rules: CKP-20 to CKP-22.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_checkpoints.core.agents.codex.history.item_kinds import (
    ItemKind,
    Past,
    kind_of,
    plain_message,
)
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.agents.codex.history.tokens import of_item, of_items
from codex_checkpoints.core.agents.codex.own_messages import is_ours
from codex_checkpoints.core.compaction.replacement import (
    Declined,
    Fitted,
    NewestTooLarge,
    Replacement,
    Terms,
    fit,
    groups_of,
    not_now,
    reported,
)
from codex_checkpoints.core.compaction.replacement_report import piece
from codex_checkpoints.core.fields import Json, texts_of

KEPT_KINDS: frozenset[ItemKind] = frozenset({"user", "summary", "compaction", "assistant"})
"""An assistant message in such a list is the compactor's; Codex keeps it as well."""

_NOT_SENT = ("id", "metadata", "internal_chat_message_metadata_passthrough")


def filtered(items: Sequence[Json]) -> tuple[Json, ...]:
    """Return the items that may be installed (CKP-21).

    User messages lose their payloads (JUN-9).  A message that looks like one of ours is dropped,
    whatever its role: only we write those.
    """
    kept: list[Json] = []
    for item in items:
        kind = kind_of(item)
        if kind not in KEPT_KINDS or any(map(is_ours, texts_of(item.get("content")))):
            continue
        if kind != "user":
            kept.append({key: each for key, each in item.items() if key not in _NOT_SENT})
        elif (message := plain_message(item)).says_something:
            kept.append(user_message(message.parts))
    return tuple(kept)


def handed_over(
    items: Sequence[Json], limit: int, cost: Callable[[Json], int]
) -> Fitted | NewestTooLarge:
    """Choose the items for an external compactor: within its window, and only whole pairs (CKP-22).

    Calls with their outputs are dropped first, the oldest first; then the rest.
    """
    groups = groups_of(items)
    total = sum(cost(items[place]) for group in groups for place in group)
    gone: set[int] = set()
    for group in groups:
        if total > limit and len(group) > 1:
            total -= sum(cost(items[place]) for place in group)
            gone.update(group)
    places = [place for place in range(len(items)) if place not in gone]
    found = fit([items[place] for place in places], limit, cost)
    if isinstance(found, NewestTooLarge):
        return found
    return Fitted(tuple(places[place] for place in found.kept), found.tokens)


def adopt(
    history: Sequence[Past], material: Sequence[Json], terms: Terms
) -> Replacement | Declined:
    """Return the replacement of this history, made of foreign `material`, or why there is none."""
    before = terms.size_of(past.item for past in history)
    declined = not_now(terms, before)
    if declined is not None:
        return declined
    found = filtered(material)
    if not history or not found:
        return Declined("missing_context", {"items": len(history)})
    limit = of_items(found) if terms.target is None else terms.target
    fitted = fit(found, limit, of_item)
    if isinstance(fitted, NewestTooLarge):
        return Declined("item_too_large", {"tokens": fitted.tokens, "target": limit})
    items = tuple(found[place] for place in fitted.kept)
    origins = _origins(history, items)
    pieces = tuple(
        piece(place, past, "kept" if place in origins else "replaced")
        for place, past in enumerate(history)
    )
    return reported(history, terms, items, origins, limit, pieces)


def _origins(history: Sequence[Past], items: Sequence[Json]) -> tuple[int | None, ...]:
    messages = [
        (place, plain_message(past.item).text)
        for place, past in enumerate(history)
        if past.kind == "user"
    ]
    origins: list[int | None] = []
    for item in reversed(items):
        words = "".join(texts_of(item.get("content")))
        known = kind_of(item) == "user" and any(words == text for _, text in messages)
        while known and messages[-1][1] != words:
            messages.pop()
        origins.append(messages.pop()[0] if known else None)
    return tuple(reversed(origins))
