"""Filter what somebody else compacted, and keep what may be kept of it (CKP-20 to CKP-22).

The items come from Codex's own compaction, by a model or its provider, or from another tool.  They
are filtered here, then placed, recorded and installed like our own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_checkpoints.core.compaction.building import (
    Declined,
    Figure,
    Fitted,
    Replacement,
    Report,
    Terms,
    TooLarge,
    counted,
    fit,
    groups_of,
    not_now,
    piece,
)
from codex_checkpoints.core.compaction.kinds import Kind, Past, kind_of, plain_message
from codex_checkpoints.core.history.items import user_message
from codex_checkpoints.core.history.tokens import of_item, of_items
from codex_checkpoints.core.rollout.fields import Json, texts_of
from codex_checkpoints.core.rollout.ours import is_ours
from codex_checkpoints.values import frozen

KEPT_KINDS: frozenset[Kind] = frozenset({"user", "summary", "compaction", "assistant"})
"""An assistant message in such a list is the compactor's; Codex keeps it as well."""

_NOT_SENT = ("id", "metadata", "internal_chat_message_metadata_passthrough")


@frozen
class Filtered:
    """The items that are kept, in order, and those that are dropped, by place and kind."""

    items: tuple[Json, ...]
    dropped: tuple[tuple[int, Kind | str], ...]


def filtered(items: Sequence[Json]) -> Filtered:
    """Return what may be installed (CKP-21).

    User messages lose their payloads (JUN-9).  A message that looks like one of ours is dropped,
    whatever its role: only we write those.
    """
    kept: list[Json] = []
    dropped: list[tuple[int, Kind | str]] = []
    for place, item in enumerate(items):
        kind = kind_of(item)
        if any(map(is_ours, texts_of(item.get("content")))):
            dropped.append((place, "handoff"))
        elif kind not in KEPT_KINDS:
            dropped.append((place, kind))
        elif kind != "user":
            kept.append({key: each for key, each in item.items() if key not in _NOT_SENT})
        elif (message := plain_message(item)).says_something:
            kept.append(user_message(message.parts))
        else:
            dropped.append((place, "empty"))
    return Filtered(tuple(kept), tuple(dropped))


def handed_over(
    items: Sequence[Json], limit: int, cost: Callable[[Json], int]
) -> Fitted | TooLarge:
    """Choose the items for an external compactor: within its window, whole pairs alone (CKP-22).

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
    if isinstance(found, TooLarge):
        return found
    kept = tuple(places[place] for place in found.kept)
    dropped = sorted(set(range(len(items))) - set(kept))
    return Fitted(kept, tuple(dropped), found.tokens)


def adopt(
    history: Sequence[Past], material: Sequence[Json], terms: Terms
) -> Replacement | Declined:
    """Return what replaces this history, made of foreign `material`, or why nothing does."""
    replaced = of_items(past.item for past in history)
    before = terms.before or Figure(replaced, "estimated")
    declined = not_now(terms, before)
    if declined is not None:
        return declined
    found = filtered(material).items
    if not history or not found:
        return Declined("missing_context", {"items": len(history)})
    limit = of_items(found) if terms.target is None else terms.target
    fitted = fit(found, limit, of_item)
    if isinstance(fitted, TooLarge):
        return Declined("item_too_large", {"tokens": fitted.tokens, "target": limit})
    items = tuple(found[place] for place in fitted.kept)
    if fitted.tokens >= replaced and "not_smaller" not in terms.waived:
        return Declined("not_smaller", {"before": replaced, "after": fitted.tokens})
    origins = _origins(history, items)
    staying = set(origins)
    report = Report(
        before=before,
        replaced=replaced,
        after=fitted.tokens,
        bound=limit,
        kinds_before=counted([kind_of(past.item) for past in history]),
        kinds_after=counted([kind_of(item) for item in items]),
        pieces=tuple(
            piece(place, past, "kept" if place in staying else "replaced")
            for place, past in enumerate(history)
        ),
    )
    return Replacement(items, origins, report)


def _origins(history: Sequence[Past], items: Sequence[Json]) -> tuple[int | None, ...]:
    """Return the place of each of the user's messages in the old history, the newest first."""
    messages = [
        (place, plain_message(past.item).text)
        for place, past in enumerate(history)
        if kind_of(past.item) == "user"
    ]
    origins: list[int | None] = []
    for item in reversed(items):
        words = "".join(texts_of(item.get("content")))
        known = kind_of(item) == "user" and any(words == text for _, text in messages)
        while known and messages[-1][1] != words:
            messages.pop()
        origins.append(messages.pop()[0] if known else None)
    return tuple(reversed(origins))
