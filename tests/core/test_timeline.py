"""The rows of a timeline: the counts of a turn, in each form of a session file."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.checkpoint.windowed_replay import WindowedReplay
from codex_checkpoints.core.timeline import SAVED, Timeline, TimelineTurn, merged
from derived_state import read_with
from generated_rollouts import damaged, sessions

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*/rollout.jsonl"))
FORMS: list[r.Form] = ["paginated", "legacy"]


def timeline(data: bytes, step: int = 0) -> Timeline:
    pieces = range(step, len(data), step) if step else ()
    return read_with(Timeline(WindowedReplay()), data, pieces)


def turns(*steps: r.Step, form: r.Form = "paginated") -> tuple[TimelineTurn, ...]:
    return timeline(r.rollout(r.session(form), *steps)).turns()


@pytest.mark.parametrize("form", FORMS)
def test_row_counts_calls_files_and_checks_of_its_turn(form: r.Form):
    first, second = turns(
        r.turn(
            r.user("Fix it"),
            r.patch(update="a.py"),
            r.patch(add="b.py"),
            r.patch(update="a.py"),
            r.shell("pytest -q", "1 failed", exit_code=1, status="failed"),
            r.shell("grep -r login .", "", exit_code=1, status="failed"),
            r.tokens(12_000),
            r.assistant("Fixed."),
        ),
        r.turn(r.user("Thanks"), r.assistant("You are welcome.")),
        form=form,
    )

    assert (first.turn, first.turn_id, first.calls) == (1, "t1", 5)
    assert (first.files_changed, first.checks_failed) == (2, 1)
    assert (first.context_tokens, first.outcome) == (12_000, "answered")
    assert (second.turn, second.calls, second.files_changed, second.checks_failed) == (2, 0, 0, 0)
    assert second.context_tokens is None
    assert str(first.started_at) < str(first.ended_at) < str(second.started_at)


def test_command_that_ends_in_a_later_turn_counts_for_its_own():
    run = {"command": ["bash", "-lc", "make slow"], "cwd": "file:///", "exit_code": -1}
    first, second = turns(
        r.several(r.started("first"), r.user("check"), r.aborted("first")),
        r.turn(
            r.user("too slow"),
            lambda writer: writer.item(
                "CommandExecution", "first", id="c1", status="failed", **run
            ),
        ),
    )
    assert (first.checks_failed, second.checks_failed) == (1, 0)


@pytest.mark.parametrize("form", FORMS)
def test_row_says_how_its_turn_ended(form: r.Form):
    found = turns(
        r.turn(r.user("a"), r.assistant("Done.")),
        r.several(r.started(), r.user("b"), r.aborted()),
        r.several(r.started(), r.user("c")),
        form=form,
    )

    assert [row.outcome for row in found] == ["answered", "aborted", "open"]
    assert found[-1].ended_at is None


def test_impossible_token_report_is_ignored():
    (row,) = turns(r.turn(r.user("a"), r.tokens(5_000), r.tokens(900_001, window=272_000)))

    assert row.context_tokens == 5_000


def test_rolled_back_turn_has_no_row():
    found = turns(r.turn(r.user("a")), r.turn(r.user("b")), r.rollback(1), r.turn(r.user("c")))

    assert [row.turn_id for row in found] == ["t1", "t3"]
    assert [row.turn for row in found] == [1, 2]


def test_row_has_the_last_window_of_its_turn():
    summary = r.compacted("m", [{"type": "message", "role": "user", "content": []}])

    found = turns(r.turn(r.user("a")), r.turn(r.user("b"), summary), r.turn(r.user("c")))

    assert [row.window for row in found] == [0, 1, 1]


def test_timeline_is_the_same_read_in_chunks_or_whole():
    data = r.rollout(
        r.session(),
        *(r.turn(r.user(f"{n}"), r.patch(update="a.py"), r.tokens(n * 100)) for n in range(1, 6)),
    )

    whole = timeline(data).turns()

    assert len(whole) == 5
    assert all(timeline(data, step).turns() == whole for step in (1, 7, 999))


def at_every_line(data: bytes) -> None:
    """Save and load after each line, and hold what was told so far against one reading."""
    followed = Timeline(WindowedReplay())
    for end in [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]:
        followed.replay.feed(data[followed.replay.scale.offset : end])
        followed.replay.drop_unfinished()
        assert asked_of(followed) == asked_of(timeline(data[:end]))
        saved = followed.save()
        if saved is not None:
            loaded = Timeline.load(orjson.loads(orjson.dumps(saved)))
            assert loaded is not None
            followed = loaded


def asked_of(found: Timeline) -> object:
    return found.turns(), found.replay.windows(), found.replay.seq


@given(data=st.one_of(sessions(), damaged()))
@example(
    r.rollout(
        r.session(),
        r.turn(r.user("a"), r.patch(update="a.py"), r.tokens(100)),
        r.turn(r.user("b"), r.assistant("Summed up."), r.compacted("Summed up.")),
        r.rollback(1),
        r.turn(r.user("c"), r.patch(update="a.py")),
    )
)
def test_timeline_saved_after_any_line_continues_like_one_pass(data: bytes):
    at_every_line(data)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_timelines_of_the_stories_continue_from_any_line(path: Path):
    at_every_line(path.read_bytes())


@pytest.mark.parametrize("saved", [None, [], {}, "x", {"version": 1}])
def test_invalid_saved_timeline_is_ignored(saved: object):
    assert Timeline.load(saved) is None


def test_saved_timeline_of_another_version_is_ignored():
    data = orjson.dumps(timeline(r.rollout(r.session(), r.turn(r.user("a")))).save())
    older = data.replace(f'"version":{SAVED}'.encode(), b'"version":0', 1)

    assert older != data
    assert Timeline.load(orjson.loads(data)) is not None
    assert Timeline.load(orjson.loads(older)) is None


def test_saved_timeline_has_no_words_of_the_session():
    words = "Sesame opens the door."
    data = r.rollout(r.session(), r.turn(r.user("a"), r.assistant(words), r.compacted(words)))

    assert b"Sesame" not in orjson.dumps(timeline(data).save())


@given(st.integers(0, 300), st.integers(1, 40))
def test_merged_rows_cover_all_turns_in_order_within_the_limit(count: int, most: int):
    rows = [
        TimelineTurn(n, f"t{n}", n, None, None, "answered", n if n % 3 else None, n, 0, 1, 2, n % 2)
        for n in range(1, count + 1)
    ]

    size, found = merged(rows, most)

    assert len(found) <= most
    assert [row.turn for row in found] == list(range(1, count + 1, size))
    assert sum(row.calls for row in found) == count
    assert sum(row.checks_failed for row in found) == sum(row.checks_failed for row in rows)
    assert (size == 1) == (count <= most)


ONE_CALL = 'text(JSON.stringify(await tools.exec_command({cmd: "pytest -q"})));'
WITH_CODE = json.dumps({"chunk_id": "ab", "exit_code": 1, "output": "FAILED tests/a.py::test_x\n"})
TWO_CALLS = f"{ONE_CALL}\n{ONE_CALL.replace('pytest -q', 'make')}"


@pytest.mark.parametrize(
    ("code", "printed", "failed"),
    [
        (ONE_CALL, WITH_CODE, 1),
        (ONE_CALL, WITH_CODE.replace('"exit_code": 1', '"exit_code": 0'), 0),
        (ONE_CALL, "FAILED tests/a.py::test_x", 0),  # nobody knows
        (ONE_CALL.replace("pytest -q", "rg x"), WITH_CODE, 0),
        (TWO_CALLS, WITH_CODE, 0),  # whose code it is is not known
    ],
)
def test_code_mode_shows_the_exit_code_of_its_only_call(code: str, printed: str, failed: int):
    answer = [
        {"type": "input_text", "text": "Script completed\nWall time 2.1 seconds\nOutput:\n"},
        {"type": "input_text", "text": printed},
    ]
    script = r.several(r.custom_call("exec", code, "c1"), r.output("c1", answer, custom=True))
    (row,) = turns(r.turn(r.user("test"), script), form="legacy")

    assert row.checks_failed == failed
