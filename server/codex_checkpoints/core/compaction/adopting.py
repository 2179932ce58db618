"""Make a replacement of what somebody else compacted, with a report like ours (CKP-20, CKP-23).

What may be kept of such material is said in `foreign.py`.  It is fitted and compared like our own;
how it came to be, and how far it is deterministic, is for the record.
"""

from __future__ import annotations

from collections.abc import Sequence

from codex_checkpoints.core.compaction.building import Replacement, Terms, not_now
from codex_checkpoints.core.compaction.fitting import TooLarge, fit
from codex_checkpoints.core.compaction.foreign import filtered
from codex_checkpoints.core.compaction.kinds import Past, kind_of, plain_message
from codex_checkpoints.core.compaction.report import Declined, Figure, Report, counted, piece
from codex_checkpoints.core.history.tokens import of_item, of_items
from codex_checkpoints.core.rollout.fields import Json, texts_of


def adopt(
    history: Sequence[Past], material: Sequence[Json], terms: Terms
) -> Replacement | Declined:
    """Return what replaces this history of what somebody made of it, or why nothing does."""
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
    """Find each of the user's messages in the old history, word for word, the newest first."""
    said = [
        (place, plain_message(past.item).text)
        for place, past in enumerate(history)
        if kind_of(past.item) == "user"
    ]
    origins: list[int | None] = []
    for item in reversed(items):
        words = "".join(texts_of(item.get("content")))
        known = kind_of(item) == "user" and any(words == text for _, text in said)
        while known and said[-1][1] != words:
            said.pop()
        origins.append(said.pop()[0] if known else None)
    return tuple(reversed(origins))
