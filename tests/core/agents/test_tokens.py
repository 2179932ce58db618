"""How much is in use, who says so, and from where on it is too much."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.agents.codex.history.tokens import (
    Calibration,
    Context,
    Figure,
    TokenReport,
    WindowBudget,
    approximate_tokens,
    budget_of,
    calibrated,
    context,
    cut_text,
    of_item,
    window_size,
)
from codex_checkpoints.core.events import Tokens
from histories import history
from rollouts import (
    WINDOW,
    Step,
    assistant,
    compacted,
    event,
    response,
    rollback,
    rollout,
    session,
    shell,
    tokens,
    turn,
    user,
)

KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}


# --- what is in use ------------------------------------------------------------------------------


def used(total: int) -> dict[str, object]:
    return {"input_tokens": total - 9, "total_tokens": total}


# What was used in total is never looked at.
TOTAL = {"total_token_usage": used(990_000), "last_token_usage": used(99)}
NOTHING = event("token_count", info=None, rate_limits={})
COMPACTED = (tokens(200_000), compacted("m", [KEPT]))


@pytest.mark.parametrize(
    ("steps", "count", "source", "window"),
    [
        ((tokens(900), shell("x", "y" * 40_000), tokens(16_013)), 16_013, "reported", WINDOW),
        ((event("token_count", info={**TOTAL, "model_context_window": 999}),), 99, "reported", 999),
        ((tokens(7016, read=0),), 7016, "estimated", WINDOW),  # by Codex
        (COMPACTED, 20, "estimated", WINDOW),  # an older report is stale
        ((*COMPACTED, tokens(9000)), 9000, "reported", WINDOW),
        ((tokens(0), NOTHING), 20, "estimated", WINDOW),  # a report of nothing is none
        ((), 20, "estimated", None),
    ],
)
def test_last_report_counts_and_otherwise_the_history_is_estimated(
    steps: tuple[Step, ...], count: int, source: str, window: int | None
):
    found = history(rollout(session(), turn(user("a"), *steps))).context

    assert (found.tokens, found.source, found.window) == (count, source, window)
    assert not found.flagged


def test_without_a_report_only_the_history_counts_as_in_use():
    found = history(rollout(session(base_instructions={"text": "x" * 41}), turn(user("a"))))

    assert found.context == Context(20, "estimated", False, None, 20, Calibration())
    assert found.context.beside is None


def test_more_tokens_than_the_window_holds_are_flagged():
    usage, known = Tokens(total=300_000, input=299_000, window=258_400), Calibration(2)

    assert context(usage, 5, known, stale=False).flagged
    assert not context(usage, 5, known, stale=True).flagged
    assert context(usage, 5, known, stale=False).usable == Figure(7, "estimated")


@pytest.mark.parametrize(
    ("reports", "overhead", "scale"),
    [
        ([], None, 1000),
        ([TokenReport(2_000, 9_000)], 7_000, 1000),
        (
            [TokenReport(2_000, 9_000), TokenReport(3_999, 12_000)],
            7_000,
            1000,
        ),  # it has hardly grown
        (
            [TokenReport(2_000, 9_000), TokenReport(9_000, 12_000), TokenReport(100_000, 97_000)],
            7_000,
            900,
        ),
        (
            [TokenReport(2_000, 9_000), TokenReport(100_000, 20_000)],
            7_000,
            500,
        ),  # never below a half
        ([TokenReport(2_000, 9_000), TokenReport(10_000, 90_000)], 7_000, 1500),
        ([TokenReport(9_000, 2_000), TokenReport(10_000, 3_000)], 0, 1000),
        (
            [TokenReport(8_000, 94_000), TokenReport(8_200, 12_300)],
            4_100,
            1000,
        ),  # of another history
        ([TokenReport(2_000, 9_000, is_estimate=True)], 7_000, 1000),
        ([TokenReport(2_000, 900, is_estimate=True)], None, 1000),
        ([TokenReport(2_000, 900, is_estimate=True), TokenReport(2_100, 9_000)], 6_900, 1000),
    ],
)
def test_reports_of_a_window_give_overhead_and_scale(
    reports: list[TokenReport], overhead: int | None, scale: int
):
    assert calibrated(reports) == Calibration(overhead, scale)


SEARCH = response("web_search_call", status="completed", action={"type": "search", "query": "x"})


def test_call_that_searched_the_web_does_not_calibrate_other_calls():
    first, pages = (user("one"), tokens(9_000)), (SEARCH, assistant("Found."), tokens(85_000))
    rest = (assistant("y" * 400), tokens(9_500))
    known = history(rollout(session(), turn(*first, *pages))).context
    alone = history(rollout(session(), turn(user("one"), *pages, tokens(85_000)))).context
    later = history(rollout(session(), turn(user("one"), *pages, *rest))).context

    assert (known.tokens, known.source) == (85_000, "reported")
    assert known.calibration == Calibration(9_000 - 20, has_pages=True)
    assert alone.calibration == Calibration(has_pages=True)
    assert later.calibration == Calibration(9_500 - later.history)


def test_reports_count_from_the_newest_window_without_rolled_back_turns():
    first = turn(user("one"), assistant("x" * 4000), tokens(9_000), name="t1")
    later = turn(user("two"), assistant("x" * 40_000), tokens(14_000), name="t2")
    whole = history(rollout(session(), first, later)).context
    back = history(rollout(session(), first, later, rollback(1))).context
    new = history(rollout(session(), first, later, compacted("m", [KEPT]), tokens(8_000))).context

    assert (whole.calibration.scale, whole.calibration.overhead) == (545, back.beside)
    assert back.calibration == Calibration(back.beside, 1000)
    assert new.beside == 8_000 - of_item(KEPT)


# --- estimates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("𝔇𝔇", 2)]
)
def test_text_counts_a_quarter_of_its_bytes(text: str, count: int):
    assert approximate_tokens(text) == count


def with_image(url: str) -> dict[str, object]:
    content = [{"type": "input_image", "image_url": url}]
    return {"type": "message", "role": "user", "content": content}


def test_item_counts_its_json_bytes_and_an_image_a_fixed_size():
    for item in (KEPT, with_image("https://example.org/a.png")):
        assert of_item(item) == -(-len(orjson.dumps(item)) // 4)
    for size in (4, 4_000_000):
        item = with_image("data:image/png;base64," + "A" * size)
        assert of_item(item) == -(-(len(orjson.dumps(item)) - size + 7373) // 4)


@pytest.mark.parametrize(("size", "count"), [(0, 0), (800, 0), (4000, 588)])
def test_encrypted_reasoning_counts_its_decoded_size(size: int, count: int):
    assert of_item({"type": "reasoning", "summary": [], "encrypted_content": "E" * size}) == count
    assert of_item({"type": "compaction", "encrypted_content": "E" * size}) == count


def test_encrypted_output_counts_nine_sixteenths():
    def sealed(size: int) -> int:
        part = {"type": "encrypted_content", "encrypted_content": "E" * size}
        return of_item({"type": "function_call_output", "call_id": "c", "output": [part]})

    assert sealed(16_000) - sealed(0) == 9000 // 4


# --- cutting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("", 0, ""),
        ("abcd", 1, "abcd"),
        ("abcde", 1, "ab…1 tokens truncated…de"),
        ("abcde", 0, "…2 tokens truncated…"),
        ("aééé", 1, "a…1 tokens truncated…é"),
        ("𝔇𝔇𝔇", 1, "…2 tokens truncated…"),
    ],
)
def test_a_cut_keeps_both_ends_at_whole_characters(text: str, limit: int, cut: str):
    assert cut_text(text, limit) == cut


@given(st.text(max_size=200), st.integers(0, 40))
def test_a_cut_keeps_no_more_than_the_limit(text: str, limit: int):
    cut = cut_text(text, limit)

    if len(text.encode()) <= 4 * limit:
        assert cut == text
    else:
        before, mark, after = cut.rpartition(" tokens truncated…")
        assert mark
        kept = before.rpartition("…")[0] + after
        assert len(kept.encode()) <= 4 * limit


# --- thresholds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (272_000, (272_000, "advertised", 68_000, 153_000, 122_400)),
        (None, (400_000, "unknown", 100_000, 225_000, 180_000)),
        (0, (400_000, "unknown", 100_000, 225_000, 180_000)),
        (1_000_000, (1_000_000, "advertised", 128_000, 654_000, 523_200)),
        (1, (1, "advertised", 0, 1, 1)),
    ],
)
def test_trigger_follows_from_the_window_with_room_for_an_answer(
    window: int | None, expected: tuple[int, str, int, int, int]
):
    assert budget_of(window) == WindowBudget(*expected)


@given(st.integers(1, 10_000_000))
def test_compaction_target_is_below_its_trigger(window: int):
    found = budget_of(window)

    assert 1 <= found.target <= found.trigger <= max(1, window - found.reserve)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ((258_400, None, 0), (258_400, "advertised")),
        ((258_400, "100000", 0), (100_000, "environment")),
        ((258_400, "100000", 50_000), (50_000, "setting")),
        ((None, " 100000 ", 0), (100_000, "environment")),
        ((258_400, "-5", 0), (258_400, "advertised")),
        ((258_400, "0", 0), (258_400, "advertised")),
        ((258_400, "many", 0), (258_400, "advertised")),
        ((258_400, "1e5", 0), (258_400, "advertised")),
        ((None, "", 0), (None, "unknown")),
        ((0, None, 0), (None, "unknown")),
    ],
)
def test_setting_overrides_the_environment_and_it_overrides_the_advertised_window(
    told: tuple[int | None, str | None, int], found: tuple[int | None, str]
):
    assert window_size(*told) == found
