"""Dropping from the oldest end, whole pairs alone (CKP-9, CKP-15, CKP-32)."""

from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.compaction.building import Fitted, TooLarge, fit
from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.rollout.fields import Json
from compactions import HISTORIES, Item, call, message, output, user


def one(_item: Json) -> int:
    return 1


def size(item: Json) -> int:
    return len(repr(item))


def test_the_oldest_go_first_and_one_by_one() -> None:
    items = [user("a"), user("b"), user("c")]

    assert fit(items, 3, one) == Fitted((0, 1, 2), 3)
    assert fit(items, 2, one) == Fitted((1, 2), 2)
    assert fit(items, 1, one) == Fitted((2,), 1)


def test_a_call_takes_its_output_with_it() -> None:
    items = [call("c1"), user("a"), output("c1"), user("b")]

    assert fit(items, 3, one) == Fitted((1, 3), 2)


def test_what_has_no_partner_is_never_kept() -> None:
    items = [output("c1"), call("c2"), call("c3"), output("c3"), user("a")]

    assert fit(items, 9, one) == Fitted((2, 3, 4), 3)


def test_a_call_is_answered_by_its_own_kind_of_output_alone() -> None:
    items = [call("c1"), output("c1", kind="custom_tool_call_output")]

    assert fit(items, 9, one) == Fitted((), 0)


def test_calls_without_id_are_kept_where_codex_keeps_them() -> None:
    shell: Item = {"type": "local_shell_call", "call_id": None}
    search: Item = {"type": "tool_search_call", "call_id": None}
    by_service: Item = {"type": "tool_search_output", "call_id": "x", "execution": "server"}
    broken: list[Item] = [{"type": "function_call"}, {"type": "function_call_output"}]

    assert fit([shell, search, by_service, *broken], 9, one) == Fitted((0, 1, 2), 3)


def test_one_item_that_is_too_large_by_itself_is_said() -> None:
    assert fit([user("a"), message("assistant", "b")], 0, one) == TooLarge(1, 0)
    assert fit([call("c"), output("c")], 1, one) == TooLarge(2, 1)
    assert fit([], 0, one) == Fitted((), 0)


@given(HISTORIES, st.integers(0, 20_000))
def test_what_is_kept_are_the_newest_in_whole_pairs(history: tuple[Past, ...], limit: int) -> None:
    items = [past.item for past in history]
    found = fit(items, limit, size)

    if isinstance(found, TooLarge):
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
