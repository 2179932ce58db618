"""What may be installed of a history that somebody else compacted (CKP-20 to CKP-22)."""

import pytest

from codex_checkpoints.core.compaction.building import Fitted, TooLarge, filtered, handed_over
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.core.rollout.ours import CHECKPOINT_LINE, HOW_TO_LINE, RESTORE_LINE
from compactions import (
    ENVIRONMENT,
    PNG,
    SUMMARY,
    Item,
    call,
    compaction,
    image,
    message,
    output,
    reasoning,
    user,
    with_parts,
)


def one(_item: Json) -> int:
    return 1


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
def test_the_users_words_summaries_and_compactions_are_kept(item: Item) -> None:
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


def test_payloads_and_marks_of_the_sender_do_not_come_in() -> None:
    passed = {"content_item_kinds": ["user.text"]}
    marked: Item = {
        **user(f"see {PNG}"),
        "id": "msg_1",
        "internal_chat_message_metadata_passthrough": passed,
    }
    sealed: Item = {**compaction(), "id": "cmp_1", "metadata": {}}

    assert filtered([marked]) == (user("see [3008 bytes of base64]"),)
    assert filtered([sealed]) == (compaction(),)


def test_calls_go_before_words_when_the_hand_over_is_too_large() -> None:
    items = [user("a"), call("c1"), output("c1"), call("c2"), output("c2"), user("b")]

    assert handed_over(items, 6, one) == Fitted((0, 1, 2, 3, 4, 5), 6)
    assert handed_over(items, 5, one) == Fitted((0, 3, 4, 5), 4)
    assert handed_over(items, 2, one) == Fitted((0, 5), 2)
    assert handed_over(items, 1, one) == Fitted((5,), 1)
    assert handed_over(items, 0, one) == TooLarge(1, 0)


def test_a_hand_over_holds_no_half_of_a_pair() -> None:
    assert handed_over([call("c1"), user("a"), output("c2")], 9, one) == Fitted((1,), 1)
