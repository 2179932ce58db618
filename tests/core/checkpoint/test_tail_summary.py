"""The two ends of a session file give the values of a full reading, or null."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.tail_summary import TailSummary, glance
from generated_rollouts import SPELLINGS, Spelling, damaged, hostile_lines, sessions

FACTS = ("cwd", "first_text", "stamp", "name", "task", "model", "window", "turn_open")


def front_of(data: bytes, size: int, most: int) -> Iterator[bytes]:
    return (data[at : min(at + size, most)] for at in range(0, min(len(data), most), size))


def back_of(data: bytes, size: int, most: int) -> Iterator[bytes]:
    first = max(0, len(data) - most)
    return (data[max(first, end - size) : end] for end in range(len(data), first, -size))


def ends(data: bytes, front: int = 1 << 20, back: int = 1 << 20) -> TailSummary | None:
    return glance(front_of(data, 700, front), back_of(data, 900, back))


def seen(data: bytes, front: int = 1 << 20, back: int = 1 << 20) -> TailSummary:
    found = ends(data, front, back)
    assert found is not None
    return found


def whole(data: bytes) -> dict[str, object]:
    replay = Replay()
    replay.close(data[replay.feed(data) :])
    state, task = replay.state, replay.task()
    told = None if state.tokens_stale else state.tokens
    return {
        "head": state.head,
        "cwd": state.base,
        "first_text": state.first_text,
        "stamp": replay.scale.stamp,
        "name": state.name,
        "task": None if task is None else task.text,
        "model": state.model,
        "window": state.window,
        "turn_open": not state.is_between_turns,
        "tokens": None if told is None else (told.total, told.input),
    }


def taken_for_granted(data: bytes, front: int, back: int) -> set[str]:
    """Return the facts that a file tells otherwise which Codex does not write."""
    middle, end = data[front : max(front, len(data) - back)], data[len(data) - back :]
    facts: set[str] = set()
    if b'"payload"' not in data.partition(b"\n")[0] and b'"payload"' in data:
        facts = {*FACTS}  # bare, and not throughout
    if b"thread_name_updated" in middle or b"thread_name" in middle:
        facts.add("name")
    if b"proposed_plan" in data or b"update_goal" in data:
        facts.add("task")
    ids = re.compile(rb'"turn_id": ?"(t[0-9]*)"')
    if set(ids.findall(data[: max(0, len(data) - back)])) & set(ids.findall(end)):
        facts.add("turn_open")
    return facts


def spelled(data: bytes, spelling: Spelling) -> bytes:
    return spelling(data)


FILES: st.SearchStrategy[bytes] = st.one_of(
    sessions(),
    damaged(),
    hostile_lines(),
    st.builds(spelled, sessions(), st.sampled_from([*SPELLINGS.values()])),
)
SIZES = st.one_of(st.integers(0, 6000), st.just(1 << 20))


@given(FILES, SIZES, SIZES)
def test_tail_summary_equals_a_full_reading(data: bytes, front: int, back: int):
    found, all_of_it = ends(data, front, back), whole(data)
    if found is None:
        return  # then all of it is read
    assert found.head == all_of_it["head"]
    for fact in {*FACTS} - taken_for_granted(data, front, back):
        told = getattr(found, fact)
        assert told is None or told == all_of_it[fact], fact
    if found.tokens_known:
        tokens = found.tokens
        assert (tokens and (tokens.total, tokens.input)) == all_of_it["tokens"]


LONG = r.several(
    *(r.turn(r.user(f"take the next step {n}"), r.shell("ls", "x" * 500)) for n in range(30))
)


def test_tail_summary_has_title_task_model_and_tokens_of_a_long_session():
    for form in ("paginated", "legacy"):
        data = r.rollout(r.session(form), r.turn_context(), LONG, r.turn_context(), r.tokens(900))
        found = seen(data, 4000, 6000)
        assert len(data) > 20_000
        assert (found.first_text, found.task) == ("take the next step 0", "take the next step 29")
        assert found.model == whole(data)["model"]
        assert found.tokens is not None
        assert found.tokens.total == 900
        assert found.turn_open is False


def test_session_cut_anywhere_gives_no_false_value():
    """As Codex leaves it while it compacts or waits: a task that has begun, and no message yet."""
    lines = r.rollout(r.session(), LONG).splitlines(keepends=True)
    for count in range(1, len(lines)):
        part = b"".join(lines[:count])
        found, all_of_it = seen(part), whole(part)
        for fact in FACTS:
            told = getattr(found, fact)
            assert told is None or told == all_of_it[fact], (count, fact)


def test_rollback_at_the_end_leaves_the_task_unknown():
    data = r.rollout(r.session("legacy"), LONG, r.rollback(1))
    assert whole(data)["task"] == "take the next step 28"
    assert seen(data, 4000, 6000).task is None


def test_message_after_a_rollback_counts():
    data = r.rollout(
        r.session("legacy"), LONG, r.rollback(2), r.turn(r.user("do it again from there"))
    )
    assert seen(data, 4000, 6000).task == whole(data)["task"] == "do it again from there"


def test_compaction_at_the_end_gives_no_tokens_and_is_reported():
    data = r.rollout(r.session(), LONG, r.tokens(900), r.compacted("what was said"))
    found = seen(data, 4000, 6000)
    assert found.tokens_known
    assert found.tokens is None
    assert whole(data)["tokens"] is None


def test_prompt_out_of_reach_gives_null():
    data = r.rollout(r.session(), r.turn(r.user("y" * 9000)), r.shell("ls", "x" * 9000))
    found = seen(data, 4000, 2000)
    assert found.first_text is None
    assert found.task is None


WITHOUT_TASKS = r.several(
    *(
        r.several(
            r.turn_context(),
            r.user(f"take the next step {n}"),
            r.shell("ls", "x" * 500),
            r.tokens(n + 1),
        )
        for n in range(30)
    )
)


@pytest.mark.parametrize(
    "data",
    [
        r.rollout(r.session(), LONG, r.turn_context(), r.tokens(900)),
        r.rollout(r.session("legacy"), WITHOUT_TASKS),
        r.rollout(r.session("bare"), LONG),
    ],
    ids=["with tasks", "without tasks", "bare"],
)
def test_only_the_needed_bytes_are_read(data: bytes):
    taken: list[str] = []

    def noted(pieces: Iterator[bytes], end: str) -> Iterator[bytes]:
        for piece in pieces:
            taken.append(end)
            yield piece

    found = glance(
        noted(front_of(data, 4000, 1 << 20), "front"), noted(back_of(data, 4000, 1 << 20), "back")
    )
    assert taken == ["front", "back"]
    assert found is not None
    assert (found.first_text, found.task) == ("take the next step 0", "take the next step 29")


def test_irrelevant_line_is_skipped_with_an_ordinal_of_any_length():
    """Lines are told by how they go on at one place, which a longer ordinal moves."""
    data = r.rollout(r.session(), LONG, r.turn(r.user("last"), r.shell("ls", "x"), r.tokens(7)))
    numbers = re.compile(rb'"ordinal":([0-9]+)')
    for more in (0, 60, 800, 10**7):
        moved = numbers.sub(lambda at, more=more: b'"ordinal":%d' % (int(at[1]) + more), data)
        found, all_of_it = seen(moved), whole(moved)
        for fact in FACTS:
            told = getattr(found, fact)
            assert told is None or told == all_of_it[fact], (more, fact)
        assert found.task == "last — of: take the next step 29"


def test_subagent_begins_with_its_own_lines():
    data = r.rollout(r.session(subagent_history_start_ordinal=6), LONG)
    assert seen(data, 4000, 6000).task == whole(data)["task"]


def test_task_that_names_our_session_is_not_a_turn():
    naming = r.turn(r.user("the title"))
    data = r.rollout(r.session(), r.compacted("[SESSION_CHECKPOINT v1]\n", []), naming)
    found = seen(data)
    assert found.first_text == whole(data)["first_text"] == "the title"
    assert found.task is whole(data)["task"] is None


def test_file_without_a_head_at_its_start_is_read_whole():
    assert ends(b"{}\n" + r.rollout(r.session(), LONG)) is None
    assert ends(b"") is None


def test_messages_of_the_history_count_in_bare_files():
    data = r.rollout(r.session("bare"), LONG)
    found = seen(data, 2000, 2000)
    assert (found.first_text, found.task) == ("take the next step 0", "take the next step 29")
    assert found.stamp == whole(data)["stamp"]


def test_line_split_over_chunks_is_read_once_it_is_complete():
    """Also one that is quiet, and one of which the pieces tell something else."""
    said = "x" * 3000 + '\\"},{\\"type\\":\\"user_message\\"' + "y" * 3000
    data = r.rollout(r.session("legacy"), LONG, r.turn(r.user("last"), r.shell("ls", said)))
    for size in (1, 7, 100, 2999):
        found = glance(front_of(data, size, 1 << 20), back_of(data, size, 1 << 20))
        assert found is not None
        for fact in ("first_text", "stamp", "task"):
            assert getattr(found, fact) == whole(data)[fact]


@given(st.binary(max_size=12), st.sampled_from(["timestamp", "turn_id", "thread_id"]))
def test_text_inside_a_time_or_an_id_never_gives_a_false_value(text: bytes, key: str):
    """A quote or a backslash there ends nothing that a reader of all lines takes as ended."""
    data = r.rollout(r.session(), LONG, r.turn(r.user("last")), r.tokens(7))
    lines = data.splitlines(keepends=True)
    start = b'"%s":"' % key.encode()
    changed = [lines[0], *(line.replace(start, start + text, 1) for line in lines[1:])]
    found, all_of_it = seen(b"".join(changed)), whole(b"".join(changed))
    for fact in FACTS:
        told = getattr(found, fact)
        assert told is None or told == all_of_it[fact], fact


GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize(
    "story", sorted(GOLDEN.glob("*/rollout.jsonl")), ids=lambda path: path.parent.name
)
@pytest.mark.parametrize("size", [300, 2000, 1 << 20])
def test_tail_summary_of_each_story_equals_a_full_reading(story: Path, size: int):
    data = story.read_bytes()
    found, all_of_it = ends(data, size, size), whole(data)
    if found is None or found.head.base is not None:
        return
    for fact in FACTS:
        told = getattr(found, fact)
        assert told is None or told == all_of_it[fact], fact
