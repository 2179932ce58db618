"""Summaries by others: the parts that are kept, and the replacement they become (CKP-20)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.agents.codex.history.item_kinds import Past
from codex_checkpoints.core.agents.codex.history.tokens import of_items
from codex_checkpoints.core.agents.codex.own_messages import (
    CHECKPOINT_LINE,
    HOW_TO_LINE,
    RESTORE_LINE,
)
from codex_checkpoints.core.compaction.adoption import adopt, filtered, handed_over
from codex_checkpoints.core.compaction.contents import remaining
from codex_checkpoints.core.compaction.replacement import (
    Declined,
    Fitted,
    NewestTooLarge,
    Replacement,
    Terms,
    fit,
)
from codex_checkpoints.core.fields import Json
from history_items import (
    ENVIRONMENT,
    HISTORIES,
    LONG_ANSWER,
    PNG,
    SUMMARY,
    Item,
    call,
    compaction,
    image,
    message,
    output,
    pasts,
    reasoning,
    user,
    with_parts,
)


def one(_item: Json) -> int:
    return 1


def size(item: Json) -> int:
    return len(repr(item))


def test_item_without_its_partner_is_never_kept() -> None:
    items = [output("c1"), call("c2"), call("c3"), output("c3"), user("a")]

    assert fit(items, 9, one) == Fitted((2, 3, 4), 3)


def test_only_its_own_kind_of_output_answers_a_call() -> None:
    items = [call("c1"), output("c1", kind="custom_tool_call_output")]

    assert fit(items, 9, one) == Fitted((), 0)


def test_calls_without_id_are_kept_as_codex_keeps_them() -> None:
    shell: Item = {"type": "local_shell_call", "call_id": None}
    search: Item = {"type": "tool_search_call", "call_id": None}
    by_service: Item = {"type": "tool_search_output", "call_id": "x", "execution": "server"}
    broken: list[Item] = [{"type": "function_call"}, {"type": "function_call_output"}]

    assert fit([shell, search, by_service, *broken], 9, one) == Fitted((0, 1, 2), 3)


def test_single_oversized_item_is_reported() -> None:
    assert fit([user("a"), message("assistant", "b")], 0, one) == NewestTooLarge(1, 0)
    assert fit([call("c"), output("c")], 1, one) == NewestTooLarge(2, 1)
    assert fit([], 0, one) == Fitted((), 0)


@given(HISTORIES, st.integers(0, 20_000))
def test_newest_items_are_kept_in_whole_pairs(history: tuple[Past, ...], limit: int) -> None:
    items = [past.item for past in history]
    found = fit(items, limit, size)

    if isinstance(found, NewestTooLarge):
        assert found.tokens > limit
        return
    assert found.tokens == sum(size(items[place]) for place in found.kept) <= limit
    kept = [items[place] for place in found.kept]
    for family in ("function_call", "custom_tool_call"):
        calls = {item["call_id"] for item in kept if item["type"] == family}
        assert calls == {item["call_id"] for item in kept if item["type"] == f"{family}_output"}
    alone = [place for place, item in enumerate(items) if "call_id" not in item]
    first = next((place for place in alone if place in found.kept), len(items))
    assert [place for place in alone if place >= first] == [p for p in found.kept if p in alone]
    assert fit(items, limit, size) == found


@pytest.mark.parametrize(
    "item",
    [
        user("fix it"),
        user(SUMMARY),
        compaction(),
        {"type": "compaction_summary", "encrypted_content": "x"},
        {"type": "context_compaction"},
        message("assistant", "It is fixed."),
        {"type": "agent_message", "author": "a", "recipient": "b", "content": []},
    ],
    ids=lambda item: str(item.get("role", item["type"])),
)
def test_user_messages_summaries_and_compactions_are_kept(item: Item) -> None:
    assert filtered([item]) == (item,)


@pytest.mark.parametrize(
    "item",
    [
        message("developer", "be quick"),
        message("system", "be quick"),
        user(ENVIRONMENT),
        user("hello", ENVIRONMENT),
        user(f"{HOW_TO_LINE}\nx"),
        user(f"{CHECKPOINT_LINE}\nx"),
        user("x", f" {RESTORE_LINE}\nx"),
        message("assistant", f"{CHECKPOINT_LINE}\nx"),
        with_parts(image()),
        user(""),
        reasoning(),
        call("c"),
        output("c"),
        message("critic", "x"),
        {"type": "from_the_future"},
        {},
    ],
    ids=range(16),
)
def test_everything_else_is_dropped(item: Item) -> None:
    assert filtered([user("a"), item, user("b")]) == (user("a"), user("b"))


def test_payloads_and_sender_marks_are_removed() -> None:
    passed = {"content_item_kinds": ["user.text"]}
    marked: Item = {
        **user(f"see {PNG}"),
        "id": "msg_1",
        "internal_chat_message_metadata_passthrough": passed,
    }
    sealed: Item = {**compaction(), "id": "cmp_1", "metadata": {}}

    assert filtered([marked]) == (user("see [3008 bytes of base64]"),)
    assert filtered([sealed]) == (compaction(),)


def test_calls_are_dropped_before_messages_when_the_input_is_too_large() -> None:
    items = [user("a"), call("c1"), output("c1"), call("c2"), output("c2"), user("b")]

    assert handed_over(items, 6, one) == Fitted((0, 1, 2, 3, 4, 5), 6)
    assert handed_over(items, 5, one) == Fitted((0, 3, 4, 5), 4)
    assert handed_over(items, 2, one) == Fitted((0, 5), 2)
    assert handed_over(items, 1, one) == Fitted((5,), 1)
    assert handed_over(items, 0, one) == NewestTooLarge(1, 0)


def test_input_for_a_compactor_has_no_half_of_a_pair() -> None:
    assert handed_over([call("c1"), user("a"), output("c2")], 9, one) == Fitted((1,), 1)


MANUAL = Terms(placement="manual")
OLD = [user("one"), with_parts("two", image()), LONG_ANSWER, user("one")]


def adopted(*material: Item, terms: Terms = MANUAL) -> Replacement:
    found = adopt(pasts(OLD), material, terms)
    assert isinstance(found, Replacement), found
    return found


def test_filtered_summary_becomes_the_replacement() -> None:
    found = adopted(
        message("developer", "be quick"),
        user(ENVIRONMENT),
        user("one"),
        user(SUMMARY),
        compaction(),
        {"type": "from_the_future"},
    )

    assert found.items == (user("one"), user(SUMMARY), compaction())
    assert found.report.after == of_items(found.items)
    assert found.report.kinds_after == {"compaction": 1, "summary": 1, "user": 1}


def test_user_messages_are_matched_with_the_old_history() -> None:
    found = adopted(user("one"), with_parts("two", image()), user("new"), user("one"), compaction())

    assert found.origins == (0, 1, None, 3, None)
    assert [piece.fate for piece in found.report.pieces] == ["kept", "kept", "replaced", "kept"]
    assert [(each.author, each.ref) for each in remaining(found)] == [
        ("user", "seq:0"),
        ("user", "seq:1"),
        ("user", None),
        ("user", "seq:3"),
        ("codex", None),
    ]


def test_omitted_messages_are_skipped_in_the_match() -> None:
    found = adopted(with_parts("two", image()), compaction())

    assert found.origins == (1, None)
    assert [piece.fate for piece in found.report.pieces] == [
        *("replaced", "kept", "replaced", "replaced")
    ]


def test_oldest_items_are_dropped_above_the_target() -> None:
    material = (user("one"), user("x" * 400), user(SUMMARY))
    target = of_items(material[1:])
    found = adopted(*material, terms=attrs.evolve(MANUAL, target=target))

    assert found.items == material[1:]
    assert found.report.after == found.report.bound == target


def test_adopted_summary_is_refused_for_our_own_reasons() -> None:
    history = pasts(OLD)

    assert adopt(history, [user(SUMMARY)], Terms(placement="mid_turn")) == Declined(
        "unsupported_placement", {"placement": "mid_turn"}
    )
    assert adopt(history, [user(ENVIRONMENT)], MANUAL) == Declined("missing_context", {"items": 4})
    assert adopt((), [user(SUMMARY)], MANUAL) == Declined("missing_context", {"items": 0})
    found = adopt(history, [user(SUMMARY)], attrs.evolve(MANUAL, target=1))
    assert isinstance(found, Declined)
    assert found.reason == "item_too_large"
    same = pasts([user("one")])
    assert adopt(same, [user("one")], MANUAL) == Declined(
        "not_smaller", {"before": of_items([user("one")]), "after": of_items([user("one")])}
    )
    waived = attrs.evolve(MANUAL, waived=frozenset({"not_smaller"}))
    assert isinstance(adopt(same, [user("one")], waived), Replacement)
