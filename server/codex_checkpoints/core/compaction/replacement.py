"""Builds the history after a compaction: the user's messages that stay, and one handoff.

The same history, checkpoint, caps and terms give the same bytes (JUN-7, JUN-8, JUN-43, CKP-17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, assert_never

from attrs import Factory, evolve, frozen

from codex_checkpoints.core.agents.codex.history.item_kinds import (
    Past,
    kind_of,
)
from codex_checkpoints.core.agents.codex.history.items import texts, user_message
from codex_checkpoints.core.agents.codex.history.tokens import (
    Calibration,
    Figure,
    of_item,
    of_items,
)
from codex_checkpoints.core.checkpoint.records import RETAINED_TOKENS, Caps, Checkpoint
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.handoff import handoff, is_empty
from codex_checkpoints.core.compaction.records import Placement
from codex_checkpoints.core.compaction.replacement_report import (
    CompactionPiece,
    ReplacementReport,
    counted,
    piece,
)
from codex_checkpoints.core.compaction.request_messages import AskedMessages
from codex_checkpoints.core.compaction.retained_messages import Retained, Selection, select
from codex_checkpoints.core.digest.allocation import LEAST_TOKENS
from codex_checkpoints.core.digest.render import Digest
from codex_checkpoints.core.fields import Json, text_of


@frozen
class Fitted:
    """The places of the items that are kept, in order, and their tokens."""

    kept: tuple[int, ...]
    tokens: int


@frozen
class NewestTooLarge:
    """The newest item and its partner alone exceed the limit."""

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
"""Codex pairs calls only with outputs of their own family."""


def fit(items: Sequence[Json], limit: int, cost: Callable[[Json], int]) -> Fitted | NewestTooLarge:
    """Keep the newest items within `limit` tokens; a call and its output only together."""
    groups = groups_of(items)
    costs = [sum(cost(items[place]) for place in group) for group in groups]
    total = sum(costs)
    begin = 0
    while begin < len(groups) and total > limit:
        if begin == len(groups) - 1:
            return NewestTooLarge(total, limit)
        total -= costs[begin]
        begin += 1
    return Fitted(tuple(sorted(place for group in groups[begin:] for place in group)), total)


def groups_of(items: Sequence[Json]) -> list[tuple[int, ...]]:
    """Return the places of items that must stay together, oldest first, without unpaired calls."""
    found: dict[tuple[str, str] | int, list[int]] = {}
    for place, item in enumerate(items):
        found.setdefault(_pair(item) or place, []).append(place)
    groups: list[tuple[int, ...]] = []
    for pair, places in found.items():
        outputs = [str(items[place].get("type")).endswith("_output") for place in places]
        if isinstance(pair, int) or (any(outputs) and not all(outputs)):
            groups.append(tuple(places))
    return groups


def _pair(item: Json) -> tuple[str, str] | None:
    """Return the key that a call and its output share; None for an item without a partner."""
    form = str(item.get("type"))
    family = _FAMILIES.get(form)
    call_id = text_of(item.get("call_id"))
    # Codex requires no partner if the service ran the call, or if nothing ran it.
    if family is None or item.get("execution") == "server":
        return None
    if call_id is None and form in {"local_shell_call", "tool_search_call"}:
        return None
    return (family, call_id or f"none of a {form}")


OFFERED: tuple[Placement, ...] = ("manual", "pre_turn")

STANDING_CONTEXT: dict[Placement, str] = {
    "manual": "rebuilt by the next turn",
    "pre_turn": "rebuilt by the next turn",
    "mid_turn": "carried over",
}
"""The treatment of the standing context, in words for people (CKP-31)."""


def place(items: Sequence[Json], context: Sequence[Json], placement: Placement) -> tuple[Json, ...]:
    """Return the items of a replacement with the standing context in its place (CKP-5)."""
    match placement:
        case "manual" | "pre_turn":
            return tuple(items)
        case "mid_turn":
            # The last message of the user, else the last handoff or summary, else the compaction.
            kinds = [kind_of(item) for item in items]
            at = len(items)
            for wanted in ({"compaction"}, {"handoff", "summary"}, {"user"}):
                at = max((at for at, kind in enumerate(kinds) if kind in wanted), default=at)
            return (*items[:at], *context, *items[at:])
        case _:
            assert_never(placement)


_LONGEST_HEAD = 64
"""Number of characters of its first line that identify a kind of standing context."""

Reason = Literal[
    "not_smaller",
    "below_threshold",
    "missing_context",
    "item_too_large",
    "turn_not_complete",
    "unsupported_placement",
]


@frozen
class Declined:
    """A declined compaction: the reason, and its numbers (JUN-45)."""

    reason: Reason
    facts: Mapping[str, int | str]


@frozen
class Terms:
    """The caller's request, and its facts about the session.

    `placement` is one of `Placement`; any other text is refused (CKP-6).  `before` is the size of
    the context, `calibration` relates it to estimates of a history.  Below `trigger` nothing is
    done; the replacement fits into `target` (JUN-19).  `digest` makes the digest that accompanies
    these messages of the user, for a context of so many tokens.  `asked` are the requests that are
    not user messages; `has_turns`: the session has any request.  `waived` are refusals that the
    user overrides: `not_smaller`, `turn_not_complete`.
    """

    placement: str
    turn_ended: bool = True
    budget: int = RETAINED_TOKENS
    before: Figure | None = None
    calibration: Calibration = Factory(Calibration)
    trigger: int | None = None
    target: int | None = None
    digest: Callable[[Sequence[str], int], Digest] | None = None
    asked: AskedMessages = Factory(AskedMessages)
    has_turns: bool = False
    waived: frozenset[Reason] = frozenset()

    def size_of(self, items: Iterable[Json]) -> Figure:
        """Return the size of the context, else our estimate with these items as its history."""
        return self.before or Figure(self.calibration.in_use(of_items(items)), "estimated")

    def within(self, tokens: int, again: int) -> int:
        """Return the tokens in use with a history of this size, which is limited to the target.

        `again` are the tokens of the standing context that the next turn sends in addition.
        """
        history = tokens if self.target is None else min(tokens, self.target)
        return self.calibration.in_use(history + again)


@frozen
class Replacement:
    """The complete history that Codex sends from now on, and the fate of the old one.

    `origins` has the place of each item in the old history, None for the handoff; `view` and
    `digest` are the texts in ours.  `digest_refused`: it would be too large with its digest.
    """

    items: tuple[Json, ...]
    origins: tuple[int | None, ...]
    report: ReplacementReport
    view: str = ""
    digest: Digest = Factory(Digest)
    digest_refused: bool = False

    @property
    def added(self) -> int:
        """Return the tokens that are new to the history: the handoff or summary."""
        both = zip(self.items, self.origins, strict=True)
        return sum(of_item(item) for item, origin in both if origin is None)


def build(
    history: Sequence[Past], checkpoint: Checkpoint, caps: Caps, terms: Terms
) -> Replacement | Declined:
    """Return the replacement of this history, or the reason for a refusal (JUN-45).

    If only its digest keeps it from being smaller than the history, the digest is made as for a
    quarter of the context; if that is too large as well, it is omitted.
    """
    built = _build(history, checkpoint, caps, terms)
    quote = terms.digest
    if isinstance(built, Replacement) or built.reason != "not_smaller" or quote is None:
        return built

    def less(beside: Sequence[str], before: int) -> Digest:
        return quote(beside, before // 4)

    def nothing(beside: Sequence[str], before: int) -> Digest:
        return Digest(budget=quote(beside, before).budget)

    built = _build(history, checkpoint, caps, evolve(terms, digest=less))
    if isinstance(built, Declined):
        built = _build(history, checkpoint, caps, evolve(terms, digest=nothing))
        if isinstance(built, Replacement):
            return evolve(built, digest_refused=built.digest.budget >= LEAST_TOKENS)
    return built


def _build(
    history: Sequence[Past], checkpoint: Checkpoint, caps: Caps, terms: Terms
) -> Replacement | Declined:
    selection = select(history, terms.budget, has_goal=terms.asked.has_goal)
    before = terms.size_of(past.item for past in history)
    declined = not_now(terms, before)
    if declined is not None:
        return declined
    if not history or (is_empty(checkpoint) and not selection.retained):
        return Declined("missing_context", {"items": len(history)})
    asked = _asked_items(history, terms.asked, selection)
    has_request = asked or selection.retained or checkpoint.task or checkpoint.plan.steps
    if terms.has_turns and not has_request:
        return Declined("missing_context", {"items": len(history), "reason": "no_request"})
    kept: Sequence[Retained] = selection.retained
    view = view_v1(checkpoint, caps)
    refused = False
    while True:
        digest = Digest()
        if terms.digest is not None:
            whole = ["\n".join(texts(each.item)) for each in kept if not each.cut_tokens]
            whole += [each.asked for each in terms.asked.messages]
            digest = terms.digest(whole, before.tokens)
        last = handoff(view, digest.text)
        if terms.target is None:
            break
        if of_item(last) > terms.target:
            refused = bool(digest.text)
            digest, last = Digest(budget=digest.budget), handoff(view)
        # The oldest messages go until the rest and the handoff fit; never the newest (CKP-15).
        least = of_items((*(item for _, item in asked), last))
        found = NewestTooLarge(0, 0)
        if least <= terms.target:
            found = fit([each.item for each in kept], terms.target - least, of_item)
        if isinstance(found, NewestTooLarge):
            size = least + found.tokens
            return Declined("item_too_large", {"tokens": size, "target": terms.target})
        if len(found.kept) == len(kept):
            break
        # A dropped message does not accompany the digest any more, so the digest quotes it.
        kept = [kept[place] for place in found.kept]
    ordered = [(place, None, item) for place, item in asked]
    ordered += [(each.place, each.place, each.item) for each in kept]
    ordered.sort(key=lambda each: each[0])  # a request comes before the message at its place
    items = (*(item for _, _, item in ordered), last)
    origins = (*(origin for _, origin, _ in ordered), None)
    unused = digest.budget - digest.tokens if digest.text else 0
    bound = _bound_of(selection, (*(item for _, item in asked), last), terms, unused)
    pieces = _pieces(history, selection, kept)
    built = reported(history, terms, items, origins, bound, pieces)
    if isinstance(built, Declined):
        return built
    return evolve(built, view=view, digest=digest, digest_refused=refused)


def reported(  # noqa: PLR0913, PLR0917 - both sides, and the fate of each item
    history: Sequence[Past],
    terms: Terms,
    items: tuple[Json, ...],
    origins: tuple[int | None, ...],
    bound: int,
    pieces: tuple[CompactionPiece, ...],
) -> Replacement | Declined:
    """Return a replacement with its report, or that it is not smaller than the history.

    `bound` is the maximum size of the new history.
    """
    again = _sent_again(history)
    before = terms.size_of(past.item for past in history)
    replaced, size = of_items(past.item for past in history), of_items(items)
    after = terms.within(size, again)
    if size >= replaced and "not_smaller" not in terms.waived:
        return Declined("not_smaller", {"before": before.tokens, "after": after})
    report = ReplacementReport(
        before=before,
        after=after,
        calibration=terms.calibration,
        bound=terms.within(bound, again),
        kinds_before=counted([past.kind for past in history]),
        kinds_after=counted([kind_of(item) for item in items]),
        sent_again=again,
        pieces=pieces,
    )
    return Replacement(items, origins, report)


def _asked_items(
    history: Sequence[Past], asked: AskedMessages, selection: Selection
) -> list[tuple[int, Json]]:
    """Return the other requests as messages, each with the place before which it goes.

    A request that an earlier replacement has as well is left out.
    """
    known = {"\n".join(texts(each.item)) for each in selection.retained}
    typed = [place for place, past in enumerate(history) if past.kind == "user"]
    items: list[tuple[int, Json]] = []
    for each in asked.messages:
        if each.text not in known:
            later = typed[max(0, len(typed) - each.followed_by) :]
            items.append((min(later, default=len(history)), user_message([each.text])))
    return items


def _sent_again(history: Sequence[Past]) -> int:
    """Return the tokens of standing context that the next turn sends: of each kind the newest."""
    newest: dict[str, int] = {}
    for past in history:
        if past.kind in {"instructions", "context"}:
            parts = texts(past.item)
            newest[parts[0].lstrip()[:_LONGEST_HEAD].partition("\n")[0] if parts else ""] = of_item(
                past.item
            )
    return sum(newest.values())


def _bound_of(selection: Selection, added: Sequence[Json], terms: Terms, unused: int) -> int:
    """Return the most tokens that a replacement takes, before it is built (DSC-56).

    It is the sum of the handoff and other requests, the rest of the digest's budget, and the budget
    for the user's messages and their JSON.
    """
    around = sum(of_item(each.item) - each.tokens for each in selection.retained)
    return of_items(added) + unused + terms.budget + around


def not_now(terms: Terms, before: Figure) -> Declined | None:
    """Return the reason why these terms allow no compaction of any history."""
    if terms.placement not in OFFERED:
        return Declined("unsupported_placement", {"placement": terms.placement})
    if not terms.turn_ended and "turn_not_complete" not in terms.waived:
        return Declined("turn_not_complete", {})
    if terms.trigger is not None and before.tokens < terms.trigger:
        return Declined("below_threshold", {"tokens": before.tokens, "trigger": terms.trigger})
    return None


def _pieces(
    history: Sequence[Past], selection: Selection, kept: Sequence[Retained]
) -> tuple[CompactionPiece, ...]:
    chosen = {each.place: each for each in selection.retained}
    staying = {each.place for each in kept}
    pieces: list[CompactionPiece] = []
    for place, past in enumerate(history):
        found = piece(place, past, "replaced")
        each = chosen.get(place)
        if each is not None and place in staying:
            found = piece(place, past, "truncated" if each.cut_tokens else "kept")
            found = evolve(found, cut_tokens=each.cut_tokens, left_out=each.left_out)
        elif each is not None:
            found = piece(place, past, "over_target")
        elif place in selection.merged:
            found = piece(place, past, "merged")
        elif place in selection.only_payload:
            found = piece(place, past, "only_payload")
        elif found.kind == "user" and place < selection.reached:
            found = piece(place, past, "over_budget")
        pieces.append(found)
    return tuple(pieces)
