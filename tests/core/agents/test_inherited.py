"""A legacy file of a helper begins with its parent's history; its own begins with its own task."""

import pytest

import rollouts as r
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.tail_summary import glance

PARENT, CHILD = (f"01a1f00{n}-0000-7000-8000-00000000000{n}" for n in (1, 2))
SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
OF_PARENT = ("01a1f001-1111-7000-8000-000000000001", "01a1f001-2222-7000-8000-000000000002")
OWN = "01a1f002-1111-7000-8000-000000000001"


def copied(*, head: bool) -> bytes:
    """Write a helper's file with two turns of its parent in front, whose times are new."""
    meta = (r.session("legacy", thread=PARENT),) if head else ()
    return r.rollout(
        r.session("legacy", thread=CHILD, source=SPAWN, forked_from_id=PARENT),
        *meta,
        *(
            r.turn(r.user(f"Parent request {n}"), r.patch(add=f"parent{n}.py"), name=name)
            for n, name in enumerate(OF_PARENT)
        ),
        r.turn(r.user("Count the words"), r.patch(add="child.py"), name=OWN),
    )


def replayed(data: bytes) -> Replay:
    replay = Replay()
    replay.feed(data)
    return replay


@pytest.mark.parametrize("head", [True, False])
def test_helper_has_no_title_turns_or_files_of_its_parent(head: bool):
    replay = replayed(copied(head=head))
    checkpoint = replay.checkpoint((), {})

    assert replay.state.first_text == "Count the words"
    assert [turn.turn_id for turn in replay.state.turns.counting()] == [OWN]
    assert checkpoint.task is not None
    assert checkpoint.task.text == "Count the words"
    assert [*checkpoint.artifacts] == ["child.py"]


def test_copied_history_without_an_own_task_gives_nothing():
    data = copied(head=False)
    replay = replayed(data[: data.index(b'"task_started","turn_id":"' + OWN.encode()) - 90])

    assert replay.state.first_text is None
    assert [*replay.state.turns.counting()] == []


def test_line_times_decide_where_ids_have_no_time():
    head = r.session("legacy", thread=CHILD, source=SPAWN, timestamp="2026-11-20T10:00:05.000Z")
    data = r.rollout(
        head,
        r.turn(r.user("Parent request"), name="1"),
        r.turn(r.user("Count the words"), name="2"),
    )

    assert [turn.turn_id for turn in replayed(data).state.turns.counting()] == ["2"]


def test_helper_that_inherited_nothing_keeps_all_its_turns():
    data = r.rollout(
        r.session("legacy", thread=CHILD, source=SPAWN),
        r.turn(r.user("Count the words"), name=OWN),
        r.turn(r.user("And the lines"), name=OWN.replace("1111", "2222")),
    )
    replay = replayed(data)

    assert len([*replay.state.turns.counting()]) == 2
    found = glance([data], [data])
    assert found is not None
    assert found.first_text == "Count the words"


@pytest.mark.parametrize("head", [True, False])
def test_tail_summary_of_an_inherited_file_is_null(head: bool):
    data = copied(head=head)

    assert glance([data], [data]) is None


def test_saved_state_continues_like_one_pass():
    data = copied(head=True)
    whole = replayed(data)
    for cut in (data.index(b"Parent request 1"), data.index(b"Count the words")):
        begun = Replay()
        read = begun.feed(data[:cut])
        saved = begun.save()
        again = None if saved is None else Replay.load(saved)
        assert again is not None
        again.feed(data[read:])
        assert again.checkpoint((), {}) == whole.checkpoint((), {})
