"""Laws of every compaction, for any history and checkpoint."""

import attrs
import orjson
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from codex_checkpoints.core.agents.codex.history.item_kinds import Past, kind_of, plain_message
from codex_checkpoints.core.agents.codex.history.rebuild import paired
from codex_checkpoints.core.agents.codex.history.tokens import of_items
from codex_checkpoints.core.agents.codex.history.windows import begun
from codex_checkpoints.core.checkpoint.records import Caps, Checkpoint
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.adoption import filtered
from codex_checkpoints.core.compaction.handoff import HOW_TO
from codex_checkpoints.core.compaction.replacement import Declined, Replacement, Terms, build, place
from codex_checkpoints.core.compaction.replacement_lines import compacted
from codex_checkpoints.core.fields import list_of, texts_of
from generated_checkpoints import CAPS, CHECKPOINTS
from history_items import (
    CHECKPOINT,
    ENVIRONMENT,
    HISTORIES,
    ITEMS,
    LONG_ANSWER,
    Item,
    pasts,
    text_of,
    user,
)

FEWER = settings(max_examples=settings().max_examples * 2 // 5)
"""Whole checkpoints take long to make up."""

History = tuple[Past, ...]
BUDGETS = st.sampled_from([0, 1, 2, 20, 300, 20_000])
TERMS = st.builds(
    Terms,
    placement=st.sampled_from(["manual", "pre_turn"]),
    budget=BUDGETS,
    target=st.none() | st.integers(0, 3_000),
)
INSISTING = TERMS.map(lambda terms: attrs.evolve(terms, waived=frozenset({"not_smaller"})))


def built(history: History, checkpoint: Checkpoint, caps: Caps, terms: Terms) -> Replacement:
    found = build(history, checkpoint, caps, terms)
    assume(isinstance(found, Replacement))
    assert isinstance(found, Replacement)
    return found


def speaking(history: History) -> list[int]:
    """Return the places of what the user said; of identical messages that of the newest."""
    found: dict[tuple[str, ...], int] = {}
    for at, past in enumerate(history):
        message = plain_message(past.item)
        if past.kind == "user" and message.says_something:
            found[message.parts] = at
    return sorted(found.values())


@FEWER
@given(HISTORIES, CHECKPOINTS, CAPS, INSISTING)
def test_replacement_is_user_messages_and_a_final_handoff_within_its_bound(
    history: History, checkpoint: Checkpoint, caps: Caps, terms: Terms
) -> None:
    found = built(history, checkpoint, caps, terms)
    items, report = found.items, found.report

    assert {(item["type"], item["role"]) for item in items} == {("message", "user")}
    assert [kind_of(item) for item in items] == ["user"] * (len(items) - 1) + ["handoff"]
    past = [Past(item) for item in items]
    assert list(paired(past)) == past
    assert of_items(items) + report.sent_again == report.after <= report.bound
    assert terms.target is None or report.bound <= terms.target + report.sent_again
    view = view_v1(checkpoint, caps)
    assert text_of(items[-1]).split("\n") == [*HOW_TO.split("\n"), "", *view.split("\n")]


@FEWER
@given(HISTORIES, CHECKPOINTS, CAPS, TERMS)
def test_replacement_is_smaller_than_the_replaced_history(
    history: History, checkpoint: Checkpoint, caps: Caps, terms: Terms
) -> None:
    found = build((*history, Past(LONG_ANSWER)), checkpoint, caps, attrs.evolve(terms, trigger=1))

    if isinstance(found, Declined):
        assert found.reason in {"item_too_large", "missing_context"}
    else:
        assert found.report.after < of_items(past.item for past in (*history, Past(LONG_ANSWER)))


@given(HISTORIES, INSISTING)
def test_kept_user_messages_are_the_newest_without_gaps_and_keep_boundaries(
    history: History, terms: Terms
) -> None:
    found = built(history, CHECKPOINT, Caps(), terms)
    report = found.report

    staying = [piece for piece in report.pieces if piece.fate in {"kept", "truncated"}]
    places = [piece.place for piece in staying]
    assert places == speaking(history)[len(speaking(history)) - len(places) :]
    assert [piece.place for piece in report.truncated] in ([], places[:1])
    assert [piece.place for piece in report.pieces] == list(range(len(history)))
    for piece, item in zip(staying, found.items[:-1], strict=True):
        old = history[piece.place].item
        if piece.fate == "kept" and not piece.left_out:
            assert texts_of(item["content"]) == texts_of(old["content"])
        elif piece.fate == "truncated":
            assert len(list_of(item["content"])) == 1
            assert "tokens truncated" in text_of(item)


@given(HISTORIES, INSISTING, st.text(max_size=9), st.text(max_size=9))
def test_replacement_holds_no_times_or_window_ids_and_leaves_its_input_unchanged(
    history: History, terms: Terms, at: str, ref: str
) -> None:
    moved = tuple(attrs.evolve(past, at=at, ref=ref) for past in history)
    before = orjson.dumps([past.item for past in history])

    items = built(history, CHECKPOINT, Caps(), terms).items

    assert orjson.dumps([past.item for past in history]) == before
    assert orjson.dumps(items) == orjson.dumps(built(moved, CHECKPOINT, Caps(), terms).items)
    one = compacted(items, begun("window-1").opened("window-2")).payload
    other = compacted(items, begun("window-3").opened("window-4")).payload
    assert one["replacement_history"] == other["replacement_history"] == list(items)
    assert one["message"] == other["message"] == text_of(items[-1])
    assert b"window-" not in orjson.dumps(one["replacement_history"])


@FEWER
@given(HISTORIES, st.tuples(CHECKPOINTS, CHECKPOINTS, CHECKPOINTS), BUDGETS)
def test_handoff_never_contains_an_earlier_one(
    history: History, checkpoints: tuple[Checkpoint, ...], budget: int
) -> None:
    terms = Terms(placement="manual", budget=budget, waived=frozenset({"not_smaller"}))
    for checkpoint in checkpoints:
        items = built(history, checkpoint, Caps(), terms).items
        texts = [text_of(item) for item in items]
        assert sum(text.count(HOW_TO) for text in texts) == 1
        history = pasts([*items, user("go on"), LONG_ANSWER])


@given(HISTORIES, BUDGETS)
@example(pasts([user("é" * 1999)]), 20)
@example(pasts([user("…0 tokens truncated…" + "ä b" * 60)]), 20)
@example(pasts([user("ä b" * 60 + "…1 tokens truncated")]), 20)
def test_third_compaction_in_a_row_changes_nothing(history: History, budget: int) -> None:
    terms = Terms(placement="manual", budget=budget, waived=frozenset({"not_smaller"}))
    first = built(history, CHECKPOINT, Caps(), terms).items
    second = built(pasts(first), CHECKPOINT, Caps(), terms).items
    third = built(pasts(second), CHECKPOINT, Caps(), terms).items

    assert first == second == third


@given(st.lists(ITEMS, max_size=12))
def test_placing_context_moves_nothing_else(items: list[Item]) -> None:
    context = [user(ENVIRONMENT), {"type": "context"}]
    placed = list(place(items, context, "mid_turn"))

    at = placed.index(context[1])
    assert [*placed[: at - 1], *placed[at + 1 :]] == items
    assert placed[at - 1] == context[0]


@given(st.lists(ITEMS, max_size=12))
def test_filter_is_idempotent(items: list[Item]) -> None:
    once = filtered(items)

    assert filtered(once) == once
    assert len(once) <= len(items)
