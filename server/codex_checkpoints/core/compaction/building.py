"""Build a replacement: the user's own words, then one handoff; report what became of the rest.

A pure function of the history, the checkpoint, the caps and the terms: the same four give the same
bytes, whenever and however often (JUN-7, JUN-8, JUN-43, CKP-17).  Nothing is installed here; who
compacts, where to and whether the session may be written are questions of the service.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from codex_checkpoints.core.checkpoint.caps import RETAINED_TOKENS, Caps
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.fitting import Fitted, TooLarge, fit
from codex_checkpoints.core.compaction.how_to import handoff
from codex_checkpoints.core.compaction.kinds import (
    LeftOut,
    Past,
    PlainMessage,
    kind_of,
    plain_message,
)
from codex_checkpoints.core.compaction.placement import OFFERED
from codex_checkpoints.core.compaction.report import (
    Declined,
    Fate,
    Figure,
    Piece,
    Reason,
    Report,
    counted,
    piece,
)
from codex_checkpoints.core.history.items import user_message
from codex_checkpoints.core.history.tokens import approximate_tokens, cut_text, of_item, of_items
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.values import frozen

# Looked for ahead, since a text may end in the beginning of one.
_MARKER = re.compile("(?=(…[0-9]{1,19} tokens truncated…))")


@frozen
class Retained:
    """A message of the user that is kept: its place in the history, and what stands for it."""

    place: int
    item: Json
    tokens: int
    cut_tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


@frozen
class Selection:
    """What was chosen, in the old order, and the places of messages that were only payload.

    For what stands before the place `reached` there was no room.
    """

    retained: tuple[Retained, ...]
    only_payload: tuple[int, ...]
    reached: int


def select(history: Sequence[Past], budget: int) -> Selection:
    """Return the newest messages of the user that the budget has room for (JUN-14)."""
    retained: list[Retained] = []
    only_payload: list[int] = []
    left, reached = budget, len(history)
    while left > 0 and reached > 0:
        reached -= 1
        message = _of_the_user(history[reached].item)
        if message is None:
            continue
        if not message.says_something:
            only_payload += [reached] if message.left_out else []
            continue
        found = _within(reached, message, left)
        retained.append(found)
        left -= found.tokens
    return Selection(tuple(reversed(retained)), tuple(reversed(only_payload)), reached)


def _of_the_user(item: Json) -> PlainMessage | None:
    return plain_message(item) if kind_of(item) == "user" else None


def _within(place: int, message: PlainMessage, left: int) -> Retained:
    tokens = _cost(message.text)
    if tokens <= left:
        return Retained(place, user_message(message.parts), tokens, 0, message.left_out)
    text = cut_text(message.text, left)
    return Retained(place, user_message([text]), left, tokens - left, message.left_out)


def _cost(text: str) -> int:
    """Return what a message costs of the budget, the marker of an earlier cut not counted.

    So a message that was cut to the rest of the budget fits there again when the next compaction
    comes to it, and neither shrinks further nor gets a second marker (JUN-1).
    """
    marker = _middle_marker(text)
    return approximate_tokens(text if marker is None else text[: marker[0]] + text[marker[1] :])


def _middle_marker(text: str) -> tuple[int, int] | None:
    """Return where the marker nearest to the middle stands: a cut leaves it there.

    One that a person typed stands elsewhere, or stands for a cut as well as ours would.
    """
    whole = len(text.encode(errors="replace"))
    best: tuple[int, int] | None = None
    nearest, at, before = whole, 0, 0
    for found in _MARKER.finditer(text):
        start, end = found.span(1)
        before += len(text[at:start].encode(errors="replace"))
        at = start
        size = len(text[start:end].encode(errors="replace"))
        distance = abs(2 * before + size - whole)
        if distance < nearest:
            nearest, best = distance, (start, end)
    return best


@frozen
class Terms:
    """What a caller asks for, and what it knows of the session.

    `placement` is one of `Placement`; any other text is refused, never guessed at (CKP-6).
    `before` is the reported size of the context, where there is one.  Below `trigger` nothing is
    done, when it is given; the replacement must fit into `target`, when that is given (JUN-19).
    `waived` are refusals that the user overrides: `not_smaller`, `turn_not_complete`.
    """

    placement: str
    turn_ended: bool = True
    budget: int = RETAINED_TOKENS
    before: Figure | None = None
    trigger: int | None = None
    target: int | None = None
    waived: frozenset[Reason] = frozenset()


@frozen
class Replacement:
    """The complete history that Codex sends from now on, and what became of the old one.

    `origins` tells of each item which place it had in the old history; the handoff had none.
    """

    items: tuple[Json, ...]
    origins: tuple[int | None, ...]
    report: Report


def build(
    history: Sequence[Past], checkpoint: Checkpoint, caps: Caps, terms: Terms
) -> Replacement | Declined:
    """Return what replaces this history, or why nothing does (JUN-45)."""
    selection = select(history, terms.budget)
    replaced = of_items(past.item for past in history)
    before = terms.before or Figure(replaced, "estimated")
    declined = not_now(terms, before) or _nothing_to_go_on(history, selection, checkpoint)
    if declined is not None:
        return declined
    last = handoff(view_v1(checkpoint, caps))
    kept = _fitting(selection.retained, last, terms.target)
    if isinstance(kept, TooLarge):
        return Declined("item_too_large", {"tokens": kept.tokens, "target": kept.limit})
    items = (*(each.item for each in kept), last)
    after = of_items(items)
    if after >= replaced and "not_smaller" not in terms.waived:
        return Declined("not_smaller", {"before": replaced, "after": after})
    report = Report(
        before=before,
        replaced=replaced,
        after=after,
        bound=bound_of(selection, last, terms),
        kinds_before=counted([kind_of(past.item) for past in history]),
        kinds_after=counted([kind_of(item) for item in items]),
        pieces=_pieces(history, selection, kept),
    )
    return Replacement(items, (*(each.place for each in kept), None), report)


def bound_of(selection: Selection, last: Json, terms: Terms) -> int:
    """Return how many tokens a replacement has at most, stated before it is built (DSC-56).

    The handoff, which the caps bound; the budget for the user's words; what JSON writes around the
    messages that the budget reaches.  Never above the target.
    """
    around = sum(of_item(each.item) - each.tokens for each in selection.retained)
    bound = of_item(last) + terms.budget + around
    return bound if terms.target is None else min(bound, terms.target)


def not_now(terms: Terms, before: Figure) -> Declined | None:
    """Return why these terms allow no compaction, whatever the history is."""
    if terms.placement not in OFFERED:
        return Declined("unsupported_placement", {"placement": terms.placement})
    if not terms.turn_ended and "turn_not_complete" not in terms.waived:
        return Declined("turn_not_complete", {})
    if terms.trigger is not None and before.tokens < terms.trigger:
        return Declined("below_threshold", {"tokens": before.tokens, "trigger": terms.trigger})
    return None


def _nothing_to_go_on(
    history: Sequence[Past], selection: Selection, checkpoint: Checkpoint
) -> Declined | None:
    """Decline where a replacement would hold nothing of the session."""
    known = (
        checkpoint.task,
        checkpoint.plan.steps,
        checkpoint.decisions,
        checkpoint.artifacts,
        checkpoint.facts,
        selection.retained,
    )
    if history and any(known):
        return None
    return Declined("missing_context", {"items": len(history)})


def _fitting(
    retained: Sequence[Retained], last: Json, target: int | None
) -> Sequence[Retained] | TooLarge:
    """Drop the oldest messages until the rest and the handoff fit; never the newest (CKP-15)."""
    if target is None:
        return retained
    room = target - of_item(last)
    if room < 0:
        return TooLarge(of_item(last), target)
    match fit([each.item for each in retained], room, of_item):
        case TooLarge() as newest:
            return TooLarge(newest.tokens + of_item(last), target)
        case Fitted() as found:
            return [retained[place] for place in found.kept]


def _pieces(
    history: Sequence[Past], selection: Selection, kept: Sequence[Retained]
) -> tuple[Piece, ...]:
    """Say of each item of the old history what became of it."""
    chosen = {each.place: each for each in selection.retained}
    staying = {each.place for each in kept}
    only_payload = set(selection.only_payload)
    pieces: list[Piece] = []
    for place, past in enumerate(history):
        found = piece(place, past, "replaced")
        each = chosen.get(place)
        if each is not None and place in staying:
            fate: Fate = "truncated" if each.cut_tokens else "kept"
            found = attrs.evolve(
                found, fate=fate, cut_tokens=each.cut_tokens, left_out=each.left_out
            )
        elif each is not None:
            found = attrs.evolve(found, fate="over_target")
        elif place in only_payload:
            found = attrs.evolve(found, fate="only_payload")
        elif found.kind == "user" and place < selection.reached:
            found = attrs.evolve(found, fate="over_budget")
        pieces.append(found)
    return tuple(pieces)
