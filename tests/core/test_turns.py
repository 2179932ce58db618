"""Beginning and end of a turn, its records, and the state after a rollback."""

import pytest

from codex_checkpoints.core.checkpoint.replay import Replay
from derived_state import checkpoint, plan, read, task
from rollouts import (
    Form,
    Step,
    aborted,
    assistant,
    call,
    compacted,
    complete,
    environment,
    event,
    injected,
    item,
    output,
    patch,
    reasoning,
    record,
    response,
    rollback,
    rollout,
    session,
    shell,
    started,
    turn,
    turn_context,
    user,
)
from rollouts import plan as planned
from updates import fact

FORMS: list[Form] = ["paginated", "legacy"]
BOTH = pytest.mark.parametrize("form", FORMS)
ERROR = {"message": "stream disconnected", "codex_error_info": "other"}


def turns(data: bytes) -> list[tuple[str, int, int | None]]:
    """Name each turn that counts, with the numbers of the records that open and end it."""
    state = read(data).state
    return [
        (each.turn_id, each.opened_seq, each.ended_seq)
        for each in state.turns.turns
        if not each.rolled_back
    ]


def names(data: bytes) -> list[str]:
    return [name for name, _, _ in turns(data)]


# --- where a turn begins -------------------------------------------------------------------------


def test_turn_begins_with_the_first_message_and_later_ones_steer_it():
    steps = (turn(user("a"), shell("ls"), user("b")), turn(user("c")))
    legacy, paginated = rollout(session("legacy"), *steps), rollout(session(), *steps)

    assert turns(legacy) == [("t1", 4, 9), ("t2", 12, 13)]
    assert turns(paginated) == [("t1", 3, 9), ("t2", 12, 13)]
    messages = [each.messages for each in read(paginated).state.turns.turns]
    assert messages == [["u1", "u2"], ["u3"]]


@pytest.mark.parametrize(
    "head", [session("legacy", events=False), session("bare"), session("legacy"), session()]
)
def test_without_tasks_each_message_begins_a_turn_named_by_its_seq(head: Step):
    one, two = turns(rollout(head, user("a"), assistant("x"), user("b")))

    for name, opened, ended in (one, two):
        assert (name, ended) == (f"turn-{opened}", None)


def test_task_without_a_message_belongs_to_the_turn_before_it():
    silent = turn(compacted("", []), name="t2")
    last = turn(user("b"), planned(("of b", False)), name="t3")
    data = rollout(session("legacy"), turn(user("a"), name="t1"), silent, last, rollback(1))

    assert names(data) == ["t1"]
    found = checkpoint(data, [fact("k", seq=8, turn="t2"), fact("l", seq=14, turn="t3")])
    assert set(found.facts) == {"k"}

    rolled = rollout(session("legacy"), turn(user("a")), turn(compacted("", [])), rollback(1))
    assert checkpoint(rolled, [fact("k", seq=9, turn="t2")]).facts == {}
    before = rollout(session(), turn(compacted("", [])), turn(user("a")))
    assert names(before) == ["t2"]
    assert set(checkpoint(before, [fact("k"), fact("l", turn="t2")]).facts) == {"k", "l"}


@pytest.mark.parametrize("injection", [environment(), injected("<skill>\nx\n</skill>")])
def test_injected_messages_open_no_turn(injection: Step):
    for head in (session("legacy", events=False), session("bare"), session("legacy"), session()):
        assert len(turns(rollout(head, injection, user("a"), injection))) == 1


def test_after_events_with_typed_text_the_history_opens_no_turn():
    steps = (injected("looks like a person's"), user("a"), injected("does too"))
    data = rollout(session("legacy"), event("turn_started", turn_id="t1"), *steps, complete("t1"))

    assert turns(data) == [("t1", 5, 7)]
    assert task(data) == ("a", "seq:5")


def test_messages_of_the_history_are_read_in_each_form():
    lines = rollout(session("legacy", events=False), *map(user, "abcdef")).split(b"\n")
    lines[2] = lines[2].replace(b'","type"', b'", "type"', 1)
    lines[4] = lines[4].replace(b".000Z", b"Z", 1)
    lines[5] = lines[5].replace(b'"text":"e"', b'"text":"' + b"e " * 50_000 + b'"')

    assert turns(b"\n".join(lines)) == [(f"turn-{n}", n, None) for n in range(2, 8)]


# --- where it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.parametrize(
    ("end", "was_aborted"),
    [
        (complete(), False),
        (event("task_complete", turn_id="t1", error=ERROR), False),
        (event("turn_complete", turn_id="t1"), False),
        (aborted(), True),
        (event("turn_aborted", turn_id=None, reason="interrupted"), True),
        (event("task_complete"), False),
    ],
)
def test_turn_ends_with_its_task_after_success_or_failure(form: Form, end: Step, was_aborted: bool):
    replay = read(rollout(session(form), started(), user("a"), end))

    (only,) = replay.state.turns.turns
    assert (only.turn_id, only.opened_seq, only.ended_seq, only.aborted) == (
        *("t1", replay.seq - 1, replay.seq),
        was_aborted,
    )


@BOTH
def test_turn_without_an_end_is_open(form: Form):
    data = rollout(session(form), turn(user("a")), started(), user("b"), shell("ls"))

    assert [ended is None for _, _, ended in turns(data)] == [False, True]


@pytest.mark.parametrize("named", [{}, {"turn_id": None}, {"turn_id": "t1"}])
def test_interruption_without_any_task_ends_the_newest_turn(named: dict[str, object]):
    stop = event("turn_aborted", **named, reason="interrupted")
    steps = (stop, user("a"), assistant("x"), user("b"), stop, user("c"))

    found = read(rollout(session("legacy"), *steps)).state.turns.turns

    assert [(each.turn_id, each.ended_seq, each.aborted) for each in found] == [
        *(("turn-4", None, False), ("turn-8", 9, True), ("turn-11", None, False)),
    ]


def test_interrupted_task_without_a_message_ends_no_turn_of_an_old_file():
    data = rollout(session("legacy"), user("a"), assistant("x"), started("t9"), aborted("t9"))

    assert [end for _, _, end in turns(data)] == [None]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([turn(user("a"), name="t1"), aborted("t1"), complete("t1")], [("t1", 3, 4)]),
        (
            [started("t1"), user("a"), complete("t9"), user("b"), complete("t1")],
            [("t1", 3, 7)],
        ),
        (
            [*(started("t1"), user("a"), started("t2"), user("b")), complete("t1"), complete("t2")],
            [("t1", 3, 7), ("t2", 6, 8)],
        ),
    ],
    ids=["the first end counts", "another task's end", "two tasks at once"],
)
def test_turn_ends_only_with_its_own_task(steps: list[Step], found: list[object]):
    data = rollout(session(), *steps)

    assert turns(data) == found
    assert not any(each.aborted for each in read(data).state.turns.turns)


@pytest.mark.parametrize(
    ("steps", "ended"),
    [
        ([], False),
        ([user("a")], False),
        ([user("a"), assistant("x")], True),
        ([user("a"), assistant("x"), reasoning()], False),
        ([user("a"), reasoning(), assistant("x")], True),
        ([user("a"), shell("ls"), assistant("x")], True),
        ([user("a"), assistant("x"), shell("ls")], False),
        ([user("a"), assistant("x"), call("update_plan", {"plan": []}, "c1")], False),
        ([user("a"), assistant("x"), patch(add="a.py")], False),
        ([user("a"), assistant("x"), user("b")], False),
        ([user("a"), assistant("x"), injected("b")], False),
        ([user("a"), assistant("x"), injected("b", role="developer")], False),
        ([user("a"), assistant("x"), user("b"), assistant("y")], True),
    ],
)
@pytest.mark.parametrize(
    "head", [session("legacy", events=False), session("legacy"), session("bare")]
)
def test_in_old_files_an_answer_ends_the_turn_while_it_is_the_last_item(
    head: Step, steps: list[Step], ended: bool
):
    assert read(rollout(head, *steps)).state.ends_with_answer is ended


# --- what belongs to it --------------------------------------------------------------------------


def test_record_that_names_a_turn_belongs_to_it_anywhere():
    named: dict[str, object] = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}
    late = (user("a again", turn="t1"), call("update_plan", {"plan": []}, "c1", **named))
    first = turn(user("a"), name="t1")
    data = rollout(session(), first, turn(user("b"), *late, name="t2"), user("late", turn="t2"))

    found = read(data).state.turns.turns

    assert [(each.messages, each.planned is None) for each in found] == [
        *((["u1", "u3"], False), (["u2", "u4"], True)),
    ]


def test_unnamed_task_is_one_turn():
    data = rollout(
        session("legacy"),
        event("task_started"),
        user("a"),
        user("b"),
        event("task_complete"),
        event("task_started"),
        user("c"),
        event("turn_aborted", reason="interrupted"),
    )

    assert turns(data) == [("turn-4", 4, 7), ("turn-10", 10, 11)]


# --- rollback ------------------------------------------------------------------------------------


def three(form: Form = "legacy") -> list[Step]:
    """A session of three turns, each with a task, a plan and a file."""

    def one(name: str) -> Step:
        return turn(
            user(name), planned((f"plan {name}", False)), patch(add=f"{name}.py"), name=name
        )

    return [session(form), *map(one, "abc")]


@BOTH
@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ([0], "abc"),
        ([1], "ab"),
        ([2], "a"),
        ([3], ""),
        ([4], ""),
        ([1, 1], "a"),
        ([2, 2], ""),
        ([-1], "abc"),
        ([True], "abc"),
        (["1"], "abc"),
    ],
)
def test_rollback_removes_the_newest_active_turns(form: Form, counts: list[object], left: str):
    events = [event("thread_rolled_back", num_turns=count) for count in counts]
    data = rollout(*three(form), *events)

    found = checkpoint(data, [fact(name, turn=name, seq=9) for name in "abc"])

    assert names(data) == list(found.facts) == list(left)
    assert (found.task.text if found.task else "") == left[-1:]
    assert [text for _, text, _ in plan(found)] == [f"plan {name}" for name in left[-1:]]
    assert set(found.artifacts) == {"a.py", "b.py", "c.py"}


def test_turn_after_a_rollback_is_new_and_a_steered_turn_is_removed_whole():
    steered = turn(user("d"), user("e"), shell("ls"), name="d")

    assert names(rollout(*three(), rollback(2), steered)) == ["a", "d"]
    assert names(rollout(*three(), rollback(2), steered, rollback(1))) == ["a"]


# --- files with a beginning of their own ---------------------------------------------------------


def test_first_task_of_our_session_only_names_it():
    made = [session(), compacted("[SESSION_CHECKPOINT v1]\n", [])]
    naming = [started("t0"), user("Title", ref="u0"), shell("ls"), complete("t0")]
    data = rollout(*made, *naming, turn(user("Real", ref="u1"), name="t1"))

    assert names(rollout(*made, *naming)) == []
    assert task(rollout(*made, *naming)) is None
    assert read(data).state.first_text == "Title"
    assert names(data) == ["t1"]
    assert task(data) == ("Real", "u1")


@pytest.mark.parametrize(
    "before",
    [
        [session(), record("world_state", {}), compacted("", [])],
        [session(), turn(user("a")), compacted("", [])],
    ],
)
def test_compaction_that_is_not_the_second_record_names_nothing(before: list[Step]):
    data = rollout(*before, turn(user("Real", ref="u9"), name="t9"))

    assert task(data) == ("Real", "u9")
    assert names(data)[-1] == "t9"


def test_subagent_has_no_turns_of_its_parent():
    head = session(subagent_history_start_ordinal=7)
    data = rollout(
        head, turn(user("parent's"), turn_context("/elsewhere")), compacted(), turn(user("own"))
    )

    assert names(data) == ["t2"]
    assert names(rollout(head, turn(user("parent's")))) == []


def test_state_at_a_turn_includes_all_records_up_to_its_end():
    data = rollout(*three())

    for name, _, ended in turns(data):
        assert ended is not None
        replay = Replay()
        replay.until = ended
        replay.feed(data)

        found = replay.checkpoint((), {})
        assert replay.stopped
        assert (found.seq, found.task and found.task.text) == (ended, name)
        assert found.recent_artifacts[0] == f"{name}.py"


def test_item_of_an_unknown_turn_opens_one_only_as_a_message():
    strange = (item("ImageView", id="c1", path="a.png", turn="t7"), output("c1", "x"))

    assert names(rollout(session(), turn(user("a"), name="t1"), *strange)) == ["t1"]


# --- how it ended --------------------------------------------------------------------------------

FAILED = {"message": "exceeded retry limit, last status: 429 Too Many Requests"}
NO_REASON = "no answer, and Codex recorded no reason"


def ending(data: bytes) -> tuple[str, str | None]:
    """Return how the last turn ended, and why it failed."""
    state = read(data).state
    last = [*state.turns.counting()][-1]
    return state.ended(last), last.reason


@BOTH
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([complete(said="Done.")], ("answered", None)),
        ([assistant("Done."), complete()], ("answered", None)),
        ([shell("ls"), assistant("Done."), complete()], ("answered", None)),
        ([assistant("I begin."), shell("ls"), complete()], ("failed", NO_REASON)),
        ([complete()], ("failed", NO_REASON)),
        ([complete(said=" ")], ("failed", NO_REASON)),
        ([complete(error=FAILED)], ("failed", FAILED["message"])),
        ([assistant("Done."), complete(error=FAILED)], ("failed", FAILED["message"])),
        ([event("error", **FAILED), complete()], ("failed", FAILED["message"])),
        ([event("error", **FAILED), assistant("Done."), complete()], ("answered", None)),
        ([event("error", **FAILED), complete(said="Done.")], ("answered", None)),
        ([event("error", **FAILED), shell("ls"), complete()], ("failed", NO_REASON)),
        ([assistant("In short."), compacted("In short."), complete()], ("failed", NO_REASON)),
        ([aborted()], ("aborted", None)),
        ([], ("open", None)),
    ],
)
def test_turn_is_answered_only_if_an_answer_is_its_last_word(
    form: Form, steps: list[Step], expected: tuple[str, str | None]
):
    assert ending(rollout(session(form), started(), user("a"), *steps)) == expected


@BOTH
def test_commentary_is_not_an_answer(form: Form):
    on_the_way = response(
        "message", role="assistant", content=[{"text": "I begin."}], phase="commentary"
    )
    data = rollout(session(form), started(), user("a"), on_the_way, complete())

    assert ending(data) == ("failed", NO_REASON)


def test_without_tasks_an_error_after_the_last_work_ends_a_turn():
    data = rollout(session("legacy"), user("a"), shell("ls"), event("error", **FAILED), user("b"))
    state = read(data).state

    assert [how for _, how in state.ends()] == ["failed", "open"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            {"message": '{"error": {"message": "{\\"error\\": {\\"message\\": \\"too long\\"}}"}}'},
            "too long",
        ),
        ({"message": 'unexpected status 400: {"error": {"message": "one item"}}'}, "one item"),
        (
            {"codex_error_info": {"response_stream_disconnected": {}}},
            "response_stream_disconnected",
        ),
        ("as a text", "as a text"),
        ({}, NO_REASON),
        ([1], NO_REASON),
    ],
)
def test_reason_of_a_failure_is_the_plainest_recorded_message(error: object, reason: str):
    ended = event("task_complete", turn_id="t1", last_agent_message=None, error=error)

    assert ending(rollout(session(), started(), user("a"), ended)) == ("failed", reason)


@BOTH
def test_usage_limit_shows_its_reset_time(form: Form):
    def limits(used: float, resets_at: object) -> Step:
        primary = {"used_percent": used, "window_minutes": 300, "resets_at": resets_at}
        return event("token_count", info=None, rate_limits={"primary": primary, "secondary": None})

    limit = {"message": "You've hit your usage limit.", "codex_error_info": "usage_limit_exceeded"}
    begun = [session(form), started(), user("a")]
    when = "2026-11-27T17:00:00.000Z"

    reason = ending(rollout(*begun, limits(100.0, 1_795_798_800), complete(error=limit)))[1]
    assert reason == f"You've hit your usage limit. (resets {when})"
    for known in (limits(40.0, 1_795_798_800), limits(100.0, "soon"), limits(100.0, -5)):
        assert ending(rollout(*begun, known, complete(error=limit)))[1] == limit["message"]
    other = ending(rollout(*begun, limits(100.0, 1_795_798_800), complete(error=FAILED)))[1]
    assert other == FAILED["message"]


@pytest.mark.parametrize("head", [session("legacy", events=False), session("bare")])
def test_without_tasks_a_turn_that_went_on_after_its_answer_was_interrupted(head: Step):
    steps = [user("a"), assistant("I look."), shell("ls"), user("b"), assistant("Done.")]
    state = read(rollout(head, *steps)).state

    assert [how for _, how in state.ends()] == ["open", "answered"]


def test_without_tasks_a_turn_has_ended_when_another_followed_that_was_rolled_back():
    steps = [user("a"), assistant("Done."), user("b"), shell("ls"), rollback(1)]
    state = read(rollout(session("legacy"), *steps)).state

    (first,) = state.turns.counting()
    assert state.has_ended(first)
    assert state.ended(first) == "answered"


def test_compaction_between_turns_keeps_the_answer():
    data = rollout(session("legacy"), user("a"), assistant("Done."), compacted("", []))

    assert ending(data) == ("answered", None)
