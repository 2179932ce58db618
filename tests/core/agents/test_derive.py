"""The events of a rollout: the laws of a deriver, and which of two records of one fact counts."""

from itertools import accumulate

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.events import (
    CallEnded,
    CommandRun,
    Event,
    FilesChanged,
    Fold,
    HistoryRetracted,
    NotUnderstood,
    Record,
    ToolCall,
    UserMessage,
)
from derived_state import read_with
from generated_rollouts import damaged, hostile_lines, sessions

FORMS: list[r.Form] = ["paginated", "legacy"]
SESSIONS = st.one_of(sessions(), damaged())


class Records(Fold):
    """The records of a session, as a fold gets them."""

    def __init__(self, replay: Replay | None = None) -> None:
        self.replay = Replay() if replay is None else replay
        self.replay.follow(self)
        self.taken: list[Record] = []

    def take(self, record: Record) -> None:
        self.taken.append(record)


def records(data: bytes, pieces: list[int] | None = None) -> list[Record]:
    return read_with(Records(), data, pieces or []).taken


def events(*steps: r.Step, form: r.Form = "paginated") -> list[Event]:
    data = r.rollout(r.session(form), *steps)
    return [event for record in records(data) for event in record.events]


def cuts(data: bytes, places: list[float]) -> list[int]:
    return sorted({int(place * len(data)) for place in places})


@given(data=SESSIONS, places=st.lists(st.floats(0, 1), max_size=6))
def test_any_split_of_the_input_gives_the_events_of_the_whole(data: bytes, places: list[float]):
    assert records(data, cuts(data, places)) == records(data)


@given(data=SESSIONS, place=st.floats(0, 1))
def test_events_continue_from_a_state_saved_in_the_middle_of_a_file(data: bytes, place: float):
    first = Records()
    consumed = first.replay.feed(data[: int(place * len(data))])
    saved = first.replay.save()
    if saved is None:  # a waiting call holds a secret, which no state stores
        return
    loaded = Replay.load(orjson.loads(orjson.dumps(saved)))
    assert loaded is not None

    rest = read_with(Records(loaded), data[consumed:])

    assert first.taken + rest.taken == records(data)


@given(data=SESSIONS)
def test_the_events_of_a_record_depend_on_no_later_record(data: bytes):
    whole = records(data)
    for end in accumulate(len(line) for line in data.splitlines(keepends=True)):
        part = records(data[:end])
        assert part == whole[: len(part)]


@given(line=hostile_lines())
def test_no_line_makes_the_deriver_fail(line: bytes):
    records(r.rollout(r.session(), r.turn(r.user("Fix it")), r.raw(line), r.assistant("Fixed.")))


def test_a_record_of_an_unknown_kind_is_not_understood_and_a_damaged_one_is_none():
    found = Records()
    data = r.rollout(r.session(), r.record("new_kind", {}), r.raw(b"{not json}\n"), r.user("Go on"))

    read_with(found, data)

    kinds = [type(event) for record in found.taken for event in record.events]
    assert kinds.count(NotUnderstood) == 1
    assert found.replay.scale.skipped == {"unknown_type": 1, "not_json": 1}
    assert kinds[-1] is UserMessage


@pytest.mark.parametrize("form", FORMS)
def test_history_messages_are_not_prompts_once_the_file_marks_typed_ones(form: r.Form):
    found = events(r.turn(r.user("Fix it")), r.turn(r.user("Test it")), form=form)

    typed = found[found.index(HistoryRetracted()) :]
    assert [each.texts for each in typed if isinstance(each, UserMessage)] == [
        ("Fix it",),
        ("Test it",),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_patch_with_several_records_ends_once_with_the_changes_of_its_event(form: r.Form):
    [ended] = [event for event in events(r.patch(update="a.py"), form=form) if _ended(event)]

    assert isinstance(ended, CallEnded)
    assert isinstance(ended.call, FilesChanged)
    assert ended.call.changes[0].diff == "@@\n-x\n+y\n"


def test_an_item_of_a_paginated_file_counts_and_the_event_beside_it_does_not():
    end = r.event("patch_apply_end", call_id="c1", success=True, changes={"b.py": {"type": "add"}})

    found = [event for event in events(r.patch(update="a.py"), end) if _ended(event)]

    assert len(found) == 1


def test_answer_of_an_older_file_ends_its_call_once_and_later_events_add_nothing():
    run = {"call_id": "c1", "command": ["bash", "-lc", "ls"], "exit_code": 0}
    found = events(
        r.call("shell", {"command": ["bash", "-lc", "ls"]}, "c1"),
        r.output("c1", "Exit code: 0\nOutput:\na.py"),
        r.event("exec_command_end", **run),
        form="legacy",
    )

    [ended] = [event for event in found if isinstance(event, CallEnded)]
    assert isinstance(ended.call, ToolCall)


def test_the_event_of_an_older_file_ends_its_call_if_it_precedes_the_answer():
    run = {"call_id": "c1", "command": ["bash", "-lc", "ls"], "exit_code": 0}
    found = events(
        r.call("shell", {"command": ["bash", "-lc", "ls"]}, "c1"),
        r.event("exec_command_end", **run),
        r.output("c1", "Exit code: 0\nOutput:\na.py"),
        form="legacy",
    )

    [ended] = [event for event in found if isinstance(event, CallEnded)]
    assert isinstance(ended.call, CommandRun)


def test_calls_without_an_answer_and_rewritten_files_leave_a_bounded_state():
    replay = Replay()
    calls = [r.call("shell", {"command": ["ls", "x" * 100]}, f"c{n}") for n in range(3000)]
    again = "".join(f"*** Delete File: {n}.py\n*** Add File: {n}.py\n+x\n" for n in range(500))
    patch = r.custom_call("apply_patch", f"*** Begin Patch\n{again}*** End Patch", "p")

    replay.feed(r.rollout(r.session("legacy"), *calls, patch))

    assert len(replay.derivation.calls.waiting) == 1024
    assert len(replay.derivation.rewritten) == 64


def _ended(event: Event) -> bool:
    return isinstance(event, CallEnded)
