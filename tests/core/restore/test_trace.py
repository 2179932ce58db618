"""What a restore needs of a session and no checkpoint keeps, read from its bytes."""

import pytest

import rollouts as r
from codex_checkpoints.core.restore.trace import MAX_MESSAGE_CHARS, Message, ModeChange, Span, Trace
from reading import read_with, seq_of
from rollouts import Form, Step

FORMS = pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])


def trace(data: bytes) -> Trace:
    """Read a whole file."""
    return read_with(Trace(), data)


def session(form: Form, *steps: Step) -> bytes:
    folder = r.environment() if form == "bare" else r.several()
    return r.rollout(r.session(form), folder, r.turn(r.user("go"), *steps))


def in_mode(mode: object) -> Step:
    """State the settings of a turn with a collaboration mode."""
    return r.record(
        "turn_context",
        {"turn_id": "t1", "cwd": r.FOLDER, "model": "gpt-5.5", "collaboration_mode": mode},
    )


def begun(turn: str, mode: str) -> Step:
    return r.event("task_started", turn_id=turn, collaboration_mode_kind=mode)


@FORMS
def test_a_file_was_touched_or_sent_to_the_model_or_both(form: Form):
    data = session(
        form,
        r.shell("cat read.py", reads=["read.py"]),
        r.shell("cat both.py", reads=["both.py"]),
        r.patch(update="both.py"),
        r.patch(add="made.py"),
        r.patch(delete="gone.py"),
        r.patch(move=("old.py", "new.py")),
        r.shell("ls listed.py"),
        r.image("shot.png"),
    )

    traces = trace(data).traces()

    assert traces.sent == {"read.py", "both.py", "shot.png"}
    assert traces.touched == {"both.py", "made.py", "gone.py", "old.py", "new.py"}


@FORMS
def test_a_patch_that_failed_touches_nothing(form: Form):
    traces = trace(session(form, r.patch(update="a.py", done=False))).traces()

    assert traces.touched == frozenset()
    assert traces.patches == ()


@FORMS
def test_a_patch_is_named_by_its_call_newest_first(form: Form):
    script = "apply_patch <<'EOF'\n" + r.patch_text(update="b.py") + "\nEOF\n"
    data = session(
        form,
        r.patch(update="a.py", call="p1"),
        r.shell(script, output="Success. Updated", call="p2"),
    )

    assert trace(data).traces().patches == ("p2", "p1")


@FORMS
def test_a_partial_read_is_kept_where_its_lines_are_named(form: Form):
    data = session(
        form,
        r.shell("sed -n '10,20p' a.py", reads=["a.py"]),
        r.shell("cd sub && head -n 5 b.py", reads=["sub/b.py"]),
        r.shell("sed -n '1,3p;9p' c.py && make", reads=["c.py"]),
        r.shell("sed -n '7,$p' open.py; tail -n 4 end.py; cat whole.py"),
    )

    assert trace(data).traces().spans == (
        Span("c.py", 9, 9),
        Span("c.py", 1, 3),
        Span("sub/b.py", 1, 5),
        Span("a.py", 10, 20),
    )


def test_of_many_partial_reads_the_newest_are_kept():
    steps = [r.shell(f"sed -n '{n},{n}p' a.py") for n in range(1, 81)]

    spans = trace(session("legacy", *steps, r.shell("sed -n '20,20p' a.py"))).traces().spans

    assert [span.start for span in spans] == [20, *range(80, 20, -1), 19, 18, 17]


def test_modes_are_kept_as_changes_by_sequence():
    data = r.rollout(
        r.session(),
        begun("t1", "default"),
        in_mode({"mode": "default", "settings": {"developer_instructions": "secret words"}}),
        r.user("a", turn="t1"),
        r.complete("t1"),
        begun("t2", "plan"),
        r.user("b", turn="t2"),
        r.complete("t2"),
        in_mode({"mode": "default"}),
    )

    assert trace(data).traces().modes == (
        ModeChange(1, "default", "t1"),
        ModeChange(seq_of(data, "task_started", '"t2"'), "plan", "t2"),
        ModeChange(seq_of(data, "turn_context"), "default", "t1"),
    )


def test_no_mode_is_made_up():
    strange = (in_mode(7), in_mode({"mode": ["plan"]}), in_mode(None), in_mode({}))

    assert trace(session("paginated", *strange)).traces().modes == ()


def test_the_task_that_only_names_a_file_of_ours_tells_no_mode():
    named = (r.compacted("x", []), begun("n", "default"), r.user("name", turn="n"))
    data = r.rollout(
        r.session(), *named, r.complete("n"), begun("t1", "plan"), r.user("go", turn="t1")
    )

    found = trace(data)

    assert [change.mode for change in found.traces().modes] == ["plan"]
    assert [message.text for message in found.window(5, "t1")] == ["go"]


def test_what_a_subagent_inherited_tells_nothing():
    data = r.rollout(
        r.session(subagent_history_start_ordinal=5),
        begun("t0", "plan"),
        r.user("theirs", turn="t0"),
        r.complete("t0"),
        begun("t1", "default"),
        r.user("ours", turn="t1"),
    )

    found = trace(data)

    assert [change.mode for change in found.traces().modes] == ["default"]
    assert [message.text for message in found.window(5, "t1")] == ["ours"]


@FORMS
def test_the_window_holds_the_last_messages_up_to_a_turn(form: Form):
    data = r.rollout(
        r.session(form),
        r.environment(),
        r.turn(r.user("one"), r.assistant("never"), name="t1"),
        r.turn(r.user("two"), name="t2"),
        r.turn(r.user("three\nlines"), name="t3"),
    )
    found = trace(data)
    turns = [turn.turn_id for turn in found.replay.state.turns.turns]

    def window(count: int, turn_id: str) -> list[str]:
        return [message.text for message in found.window(count, turn_id)]

    assert window(5, turns[2]) == ["one", "two", "three lines"]
    assert window(2, turns[2]) == ["two", "three lines"]
    assert window(2, turns[1]) == ["one", "two"]
    assert window(0, turns[2]) == []


def test_a_message_that_was_rolled_back_is_in_no_window():
    data = r.rollout(
        r.session("legacy"),
        r.turn(r.user("kept"), name="t1"),
        r.turn(r.user("taken back"), name="t2"),
        r.rollback(1),
        r.turn(r.user("instead"), name="t3"),
    )

    assert [message.text for message in trace(data).window(5, "t3")] == ["kept", "instead"]


def test_a_message_of_the_window_is_cut_and_keeps_no_secret():
    key = "sk-proj-" + "a1B2" * 12
    data = r.rollout(
        r.session(), r.turn(r.user(f"use {key}", ref="u1"), r.user("é" * 3000, ref="u2"))
    )

    first, second = trace(data).window(2, "t1")

    assert first == Message("u1", "use [redacted]")
    assert second.text == "é" * (MAX_MESSAGE_CHARS - 1) + "…"


def test_a_file_without_a_name_that_could_be_kept_leaves_no_trace():
    data = session("legacy", r.shell(f"cat {'d/' * 600}a.py"), r.patch(update="../shop"))

    assert trace(data).traces().sent == frozenset()
    assert trace(data).traces().touched == frozenset()


def test_lines_of_another_file_are_not_taken_for_those_of_this_one():
    traces = trace(session("paginated", r.shell("sed -n 1,5p a.py", reads=["b.py"]))).traces()

    assert (traces.sent, traces.spans) == ({"b.py"}, ())


def test_a_turn_that_is_not_there_is_behind_all_others():
    assert [each.text for each in trace(session("legacy")).window(5, "no such turn")] == ["go"]


def test_a_message_without_words_is_in_no_window():
    found = trace(r.rollout(r.session(), r.turn(r.user(images=1), r.user("look"))))

    assert [message.text for message in found.window(5, "t1")] == ["look"]


def test_a_later_compaction_names_nothing():
    data = r.rollout(
        r.session(), r.turn(r.user("a")), r.compacted("x", []), begun("t2", "plan"), r.user("b")
    )

    assert [change.mode for change in trace(data).traces().modes] == ["plan"]
