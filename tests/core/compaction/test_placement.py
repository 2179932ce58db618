"""Placement of standing context: named by the caller, never guessed (CKP-4 to CKP-6, CKP-31)."""

import pytest

from codex_checkpoints.core.compaction.handoff import handoff
from codex_checkpoints.core.compaction.records import Placement
from codex_checkpoints.core.compaction.replacement import STANDING_CONTEXT, place
from history_items import ENVIRONMENT, SUMMARY, Item, compaction, user

CONTEXT = [user(ENVIRONMENT)]
HANDOFF = handoff("[SESSION_CHECKPOINT v1]\n")
ONE, TWO = user("one"), user("two")
OLD = user(SUMMARY)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([ONE, TWO, HANDOFF], [ONE, *CONTEXT, TWO, HANDOFF]),
        ([ONE, TWO, OLD], [ONE, *CONTEXT, TWO, OLD]),
        ([ONE, compaction()], [*CONTEXT, ONE, compaction()]),
        ([HANDOFF], [*CONTEXT, HANDOFF]),
        ([OLD], [*CONTEXT, OLD]),
        ([OLD, compaction()], [*CONTEXT, OLD, compaction()]),
        ([compaction()], [*CONTEXT, compaction()]),
        ([], CONTEXT),
    ],
    ids=[
        *("several users", "several users and a summary", "a user and a compaction"),
        *("handoff alone", "summary alone", "summary and compaction", "compaction alone", "empty"),
    ],
)
def test_mid_turn_context_is_put_before_the_last_user_message(
    items: list[Item], expected: list[Item]
) -> None:
    assert list(place(items, CONTEXT, "mid_turn")) == expected


@pytest.mark.parametrize("placement", ["manual", "pre_turn"])
def test_between_turns_no_context_is_added(placement: Placement) -> None:
    assert place([ONE, HANDOFF], CONTEXT, placement) == (ONE, HANDOFF)


def test_placement_is_explained_to_people() -> None:
    assert STANDING_CONTEXT == {
        "manual": "rebuilt by the next turn",
        "pre_turn": "rebuilt by the next turn",
        "mid_turn": "carried over",
    }
