"""What a compaction loses, and what is read again behind it: each rule by example."""

from collections.abc import Sequence

import pytest

from codex_checkpoints.core.history.items import user_message
from codex_checkpoints.core.losses import watched
from codex_checkpoints.core.losses.account import Account
from codex_checkpoints.core.losses.watched import (
    LOOP_RUNS,
    LOOP_WINDOWS,
    MAX_LISTED,
    MAX_REREADS,
    Loss,
)
from compactions import CHECKPOINT
from losing import gone, losses, read_again
from reading import read_with
from rollouts import (
    Form,
    Step,
    assistant,
    call,
    compacted,
    environment,
    image,
    mcp,
    output,
    patch,
    plan,
    raw,
    rollback,
    rollout,
    session,
    several,
    shell,
    turn,
    user,
)
from updates import steps as planned

FORMS: Sequence[Form] = ("paginated", "legacy", "bare")
SEALED = {"type": "compaction", "encrypted_content": "gAAA"}


def summary(*texts: str) -> Step:
    """Compact into user messages."""
    return compacted("m", [user_message([text]) for text in texts])


def cat(path: str, text: str = "old\n") -> Step:
    return shell(f"cat {path}", text, reads=[path])


def first(*steps: Step, form: Form = "paginated") -> Loss:
    """Return the first loss of a session with these steps in one turn."""
    found, *_ = losses(rollout(session(form), turn(user("fix the login"), *steps)))
    return found


# --- what a replacement no longer holds ----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_in_the_replacement_is_lost(form: Form):
    found = first(
        plan(("Read it", True), ("Write the test", False), ("Tell Bo", False)),
        patch(update="src/a.py"),
        patch(add="b.py"),
        shell("make test", "1 failed", exit_code=1, status="failed"),
        shell("make lint", "E501", exit_code=2, status="failed"),
        shell("make docs", "done"),
        summary("Next: write the test. Changed b.py. `make lint` fails."),
        form=form,
    )

    assert gone(found) == {
        "task fix the login": True,
        "step Write the test": False,
        "step Tell Bo": True,
        "update src/a.py": True,
        "add b.py": False,
        "run make test": True,
        "run make lint": False,
    }
    assert not found.missed.sealed
    assert found.missed.not_listed == 0


def test_each_thing_names_the_record_that_it_comes_from():
    found = first(
        plan(("Write the test", False), call="p"),
        patch(update="a.py", call="e"),
        shell("make", "no", exit_code=2, status="failed", call="r"),
        summary(),
    ).missed

    assert found.task is not None
    assert (found.task.ref, found.task.seq) == ("u1", 3)
    assert [(each.ref, each.seq) for each in found.open_plan_steps] == [("p", 4)]
    assert [(each.ref, each.seq) for each in found.edited_files] == [("e", 7)]
    watched = [(each.ref, each.seq, each.exit_code) for each in found.failing_commands]
    assert watched == [("r", 10, 2)]


def test_an_older_record_keeps_the_users_words_and_its_message():
    data = rollout(
        session("legacy"),
        turn(user("fix the login"), patch(update="a.py"), patch(update="b.py")),
        compacted("We changed a.py."),
    )

    (found,) = losses(data)

    assert gone(found) == {"task fix the login": False, "update b.py": True, "update a.py": False}


def test_an_older_record_keeps_no_words_that_were_taken_back():
    data = rollout(
        session("legacy"),
        turn(user("fix the login")),
        turn(user("tidy up")),
        rollback(1),
        turn(user("tidy")),
        compacted("m"),
    )

    (found,) = losses(data)

    assert gone(found) == {"task tidy": False}


def test_an_older_record_keeps_twenty_thousand_tokens_of_words():
    long = [user(f"{number} " + "word " * 4_000) for number in range(60)]
    data = rollout(session("legacy"), turn(user("first"), *long), compacted("m"), turn(user("b")))

    (found,) = losses(data)

    assert found.missed.task is not None
    assert found.missed.task.lost is False


def test_an_encrypted_replacement_tells_nothing():
    found = first(patch(update="a.py"), compacted("", [user_message(["fix the login"]), SEALED]))

    assert gone(found) == {"task fix the login": False, "update a.py": None}
    assert found.missed.sealed


def test_nothing_is_lost_where_nothing_was_there():
    (found,) = losses(rollout(session(), compacted("m", [])))

    assert gone(found) == {}


def test_what_an_earlier_window_changed_is_not_lost_again():
    data = rollout(
        session(),
        turn(user("fix"), patch(update="a.py"), summary(), patch(update="b.py"), summary()),
    )

    _, second = losses(data)

    assert [each.uri for each in second.missed.edited_files] == ["b.py"]


def test_a_change_counts_once_with_its_newest_call():
    found = first(
        patch(add="a.py", call="c1"),
        patch(add="b.py", call="c2"),
        patch(update="a.py", call="c3"),
        patch(move=("b.py", "c.py"), call="c4"),
        patch(update="d.py", done=False),
        summary(),
    )

    assert [(each.uri, each.change, each.ref) for each in found.missed.edited_files] == [
        ("c.py", "move", "c4"),
        ("b.py", "move", "c4"),
        ("a.py", "update", "c3"),
    ]


def test_a_command_that_succeeded_at_last_does_not_fail():
    found = first(
        shell("make", "no", exit_code=2, status="failed"),
        shell("make", "yes"),
        shell("cd x && make", "no", exit_code=2, status="failed"),
        summary(),
    )

    assert [each.command for each in found.missed.failing_commands] == ["cd x && make"]


def test_the_same_command_in_another_folder_is_another_one():
    found = first(
        shell("make", "no", exit_code=2, status="failed", workdir="/home/ana/shop/a"),
        shell("make", "yes", workdir="/home/ana/shop/b"),
        summary(),
    )

    assert [each.command for each in found.missed.failing_commands] == ["make"]


def test_a_command_whose_end_nobody_knows_keeps_its_last_outcome():
    found = first(
        shell("make", "no", exit_code=2, status="failed"),
        shell("make", status="in_progress"),
        call("exec_command", {"cmd": "ls"}, "c9"),
        summary(),
    )

    assert [each.command for each in found.missed.failing_commands] == ["make"]


def test_a_failing_command_that_was_named_can_be_lost_later():
    failing = shell("make", "no", exit_code=2, status="failed")
    data = rollout(
        session(), turn(user("fix"), failing, summary("`make` fails"), summary(), summary())
    )

    kept, lost, later = losses(data)

    assert [gone(each).get("run make") for each in (kept, lost, later)] == [False, True, None]


def test_the_plan_and_the_task_are_those_of_that_moment():
    data = rollout(
        session(),
        turn(user("a"), plan(("one", False)), summary()),
        turn(user("b"), plan(("one", True), ("two", False))),
        summary(),
        rollback(1),
        summary(),
    )

    assert [gone(each) for each in losses(data)] == [
        {"task a": True, "step one": True},
        {"task b": True, "step two": True},
        {"task a": True, "step one": True},
    ]


def test_an_accepted_plan_is_the_plan_from_its_record_on():
    data = rollout(session(), turn(user("a"), summary()), turn(user("b"), summary()))

    early, late = losses(data, [planned("Ask Bo", seq=7, turn="t2")])

    assert [each.text for each in early.missed.open_plan_steps] == []
    assert [each.text for each in late.missed.open_plan_steps] == ["do Ask Bo"]


def test_texts_of_a_session_are_values():
    secret = "ghp_" + "a1B2" * 9
    found = first(
        shell(f"push {secret}\n\x1b[31m" + "x" * 200, "no", exit_code=1, status="failed"),
        summary(),
    )

    (command,) = found.missed.failing_commands
    assert command.command.startswith("push [redacted] [31mx")
    assert len(command.command) == 160


def test_of_many_things_the_lost_and_the_newest_are_listed():
    changed = [patch(update=f"f{number}.py") for number in range(MAX_LISTED + 4)]
    failing = [
        shell(f"make {number}", "no", exit_code=1, status="failed")
        for number in range(MAX_LISTED + 1)
    ]
    found = first(*changed, *failing, summary(f"f{MAX_LISTED + 3}.py, make 0")).missed

    watched = [each.uri for each in found.edited_files]
    assert watched == [f"f{number}.py" for number in range(MAX_LISTED + 2, 2, -1)]
    assert [each.command for each in found.failing_commands][-1] == "make 1"
    assert all(each.lost for each in (*found.edited_files, *found.failing_commands))
    assert found.not_listed == 5


def test_what_is_remembered_of_files_and_commands_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watched, "MAX_CHANGED", 2)
    monkeypatch.setattr(watched, "MAX_FILES", 2)
    monkeypatch.setattr(watched, "MAX_COMMANDS", 2)
    failing = [shell(f"make {n}", "no", exit_code=1, status="failed") for n in range(3)]
    data = rollout(
        session(),
        turn(user("a"), *(patch(update=f"f{n}") for n in range(3)), *failing, summary()),
        turn(user("b"), cat("f0"), cat("f2"), summary()),
    )

    one, two = losses(data)

    assert [each.uri for each in one.missed.edited_files] == ["f2", "f1"]
    assert one.missed.not_listed == 1
    assert [each.command for each in one.missed.failing_commands] == ["make 2", "make 1"]
    assert read_again(one) == (2, 1, 4)
    assert read_again(two) == (0, 0, 0)


# --- the windows ---------------------------------------------------------------------------------


def test_a_loss_stands_with_the_window_it_opened():
    data = rollout(session(), turn(user("a"), shell("ls")), turn(user("b"), summary()), summary())

    one, two = losses(data)

    assert (one.number, one.opened_seq, one.trigger, one.counts) == (1, 11, "pre_turn", True)
    assert one.opened_at == "2026-11-20T10:00:11.000Z"
    assert (two.number, two.strategy) == (2, None)


def test_a_window_that_was_taken_back_is_told_without_a_number():
    data = rollout(
        session("legacy"),
        turn(environment(), user("a"), assistant("1")),
        turn(user("b"), patch(update="a.py"), compacted("m", [])),
        rollback(1),
        turn(user("c"), summary()),
    )

    back, stands = losses(data)

    assert (back.number, back.counts, gone(back)["update a.py"]) == (None, False, True)
    assert (stands.number, stands.counts) == (1, True)


def test_a_record_that_codex_passes_over_is_no_compaction():
    data = rollout(
        session(),
        turn(user("a"), compacted("m", [{"type": "message", "role": "user"}])),
        summary(),
    )

    assert [each.opened_seq for each in losses(data)] == [6]


def test_a_replacement_longer_than_a_chunk_is_read():
    long = "word " * 100_000

    found = first(patch(update="a.py"), summary(f"{long} a.py {long}", "fix the login"))

    assert gone(found) == {"task fix the login": False, "update a.py": False}


def test_an_unfinished_compaction_at_the_end_counts_as_the_whole_line_it_is():
    (found,) = losses(rollout(session(), turn(user("a")), summary("word " * 50_000)).rstrip(b"\n"))

    assert gone(found) == {"task a": True}


# --- what is read again --------------------------------------------------------------------------


def since(*steps: Step, before: Sequence[Step] = (), form: Form = "paginated") -> Loss:
    """Return the first loss, with these steps in front of it and behind it."""
    return first(*before, summary(), *steps, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_an_earlier_window_read_is_read_again(form: Form):
    found = since(cat("a.py"), cat("b.py"), before=[cat("a.py")], form=form)

    assert read_again(found) == (2, 1, 4)
    assert [(each.uri, each.times) for each in found.since.rereads] == [("a.py", 1)]


def test_a_file_that_an_earlier_window_wrote_is_read_again():
    assert read_again(since(cat("a.py"), before=[patch(add="a.py")])) == (1, 1, 4)


def test_a_file_that_was_changed_since_is_not_read_again_in_vain():
    assert read_again(since(patch(update="a.py"), cat("a.py", "new"), before=[cat("a.py")])) == (
        1,
        0,
        0,
    )


def test_the_same_output_is_the_same_content_whatever_was_changed():
    found = since(patch(update="a.py"), cat("a.py", "old\n"), before=[cat("a.py", "old\n")])

    assert read_again(found) == (1, 1, 4)


def test_another_output_is_another_content_though_nobody_recorded_a_change():
    found = since(cat("a.py", "new\n"), cat("a.py", "new\n"), before=[cat("a.py", "old\n")])

    assert read_again(found) == (2, 0, 0)


def test_another_command_goes_by_the_record():
    found = since(shell("head -n 5 a.py", "old\n", reads=["a.py"]), before=[cat("a.py")])

    assert read_again(found) == (1, 1, 4)


def test_reading_twice_in_one_window_is_no_loss():
    assert read_again(since(cat("a.py"), cat("a.py"))) == (2, 0, 0)


def test_a_session_of_ours_goes_on_from_what_it_began_with():
    account = Account()
    account.replay.begin_from(CHECKPOINT)

    read_with(account, rollout(session(), summary("fix it"), turn(cat("a.py"), cat("b.py"))))

    (found,) = account.losses()
    assert gone(found) == {"task fix the login": True, "step fix it": False}
    assert [(each.ref, each.seq) for each in found.missed.open_plan_steps] == [("u1", None)]
    assert read_again(found) == (2, 1, 4)


def test_a_session_of_ours_begins_in_the_window_that_its_source_ended_in():
    earlier = turn(user("fix the login"), patch(add="old.py"), summary("a.py"))
    failing = shell("make", "no", exit_code=2, status="failed")
    latest = turn(user("go on"), cat("a.py"), patch(update="b.py"), failing)
    source = Account()
    read_with(source, rollout(session(), earlier, latest))
    account = Account(source=source)
    account.replay.begin_from(CHECKPOINT)

    read_with(account, rollout(session(), summary("b.py"), turn(cat("a.py")), summary()))

    begun, later = account.losses()
    assert gone(begun) == {
        "task fix the login": True,
        "step fix it": True,
        "update b.py": False,
        "run make": True,
    }
    assert read_again(begun) == (1, 1, 4)
    assert (later.missed.edited_files, later.missed.failing_commands) == ((), ())


def test_a_call_that_reads_two_files_prints_once():
    both = shell("cat a.py b.py", "12345", reads=["a.py", "b.py"])

    assert read_again(since(both, both, before=[both])) == (4, 4, 10)


def test_a_call_that_reads_one_file_in_two_places_is_one_read():
    twice = shell("head a.py; tail a.py", "12345", reads=["a.py", "a.py"])

    assert read_again(since(twice, before=[cat("a.py")])) == (1, 1, 5)


def test_a_read_that_fails_is_none():
    failed = shell("cat a.py", "no such file", reads=["a.py"], exit_code=1, status="failed")

    assert read_again(since(failed, before=[cat("a.py")])) == (0, 0, 0)


def test_an_image_is_read_without_a_text():
    assert read_again(since(image("a.png"), before=[image("a.png")])) == (1, 1, 0)


def test_a_tool_reads_no_file():
    assert read_again(since(mcp("docs", "search", "a.py"), before=[cat("a.py")])) == (0, 0, 0)


def test_the_files_read_most_often_are_named_first():
    names = [f"f{number:02}" for number in range(MAX_REREADS + 2)]
    found = since(
        *(cat(name) for name in names), cat("f05"), before=[cat(name) for name in names]
    ).since

    assert found.rereads_unchanged == MAX_REREADS + 3
    assert [each.uri for each in found.rereads][:2] == ["f05", f"f{MAX_REREADS + 1}"]
    assert len(found.rereads) == MAX_REREADS
    assert found.rereads[0].ref == f"c{2 * MAX_REREADS + 5}"


# --- going round in circles ----------------------------------------------------------------------


def rounds(count: int, *steps: Step) -> tuple[Loss, ...]:
    """Return the losses of windows in which the same happens."""
    return losses(rollout(session(), turn(user("fix it"), *[several(*steps, summary())] * count)))


def test_files_read_again_in_window_after_window_are_a_loop():
    found = rounds(LOOP_WINDOWS + 2, cat("a.py"), cat("b.py"))

    assert [each.since.loop_over for each in found] == [(), ("a.py", "b.py"), ("a.py", "b.py"), ()]


def test_one_such_file_is_none():
    assert all(not each.since.loop_over for each in rounds(LOOP_WINDOWS + 2, cat("a.py")))


def test_files_that_change_in_between_are_none():
    found = rounds(LOOP_WINDOWS + 2, patch(update="a.py"), patch(update="b.py"))

    assert all(not each.since.loop_over for each in found)


def test_a_window_that_does_not_read_them_ends_the_row():
    again = several(cat("a.py"), cat("b.py"))
    data = rollout(
        session(),
        turn(user("fix"), again, summary(), again, summary(), summary(), again, summary()),
    )

    assert [each.since.loop_over for each in losses(data)] == [()] * 4


def test_a_command_with_the_same_end_again_and_again_is_a_loop():
    failing = shell("make", "no", exit_code=2, status="failed")

    assert since(*[failing] * LOOP_RUNS).since.loop_over == ("make",)
    assert since(*[failing] * (LOOP_RUNS - 1)).since.loop_over == ()


def test_a_change_in_between_or_another_end_makes_it_none():
    runs = [shell("make", "no", exit_code=2, status="failed")] * (LOOP_RUNS - 1)

    assert since(*runs, patch(update="a.py"), *runs).since.loop_over == ()
    assert since(*runs, shell("make", "other"), *runs).since.loop_over == ()


# --- odd lines -----------------------------------------------------------------------------------


def test_an_answer_that_cannot_be_read_does_not_say_that_the_call_was_made():
    torn = (
        b'{"timestamp":"2026-11-20T10:00:05.000Z","type":"response_item","payload":'
        b'{"type":"function_call_output","call_id":"x","output":"' + b"a" * 300 + b'\\x"}}\n'
    )
    plain = call("exec_command", {"cmd": "cat a.py"}, "x")

    assert read_again(since(plain, raw(torn), form="legacy")) == (0, 0, 0)


def test_an_item_that_only_ends_well_says_nothing():
    torn = (
        b'{"timestamp":"2026-11-20T10:00:05.000Z","ordinal":90,"type":"event_msg","payload":'
        b'{"type":"item_completed","thread_id":"a","turn_id":"b","item":'
        b'{"type":"CommandExecution","id":"\\x"}}}\n'
    )

    assert read_again(since(raw(torn), before=[cat("a.py")])) == (0, 0, 0)


def test_an_answer_too_long_to_be_looked_at_says_that_the_call_was_made():
    blob = [{"type": "input_image", "image_url": "data:image/png;base64," + "A" * 5_000_000}]
    shown = several(call("view_image", {"path": "a.png"}, "x"), output("x", blob))

    found = since(shown, before=[image("a.png")], form="legacy")

    assert read_again(found) == (1, 1, 0)
    assert [each.ref for each in found.since.rereads] == ["x"]


def test_an_answer_without_an_output_tells_how_the_command_ended():
    asked = several(call("exec_command", {"cmd": "make"}, "x"), output("x", "Exit code: 2"))

    assert gone(first(asked, summary(), form="legacy"))["run make"] is True


def test_of_many_commands_that_read_a_file_the_newest_are_compared():
    ways = [shell(f"head -n {n} a.py", "old", reads=["a.py"]) for n in range(6)]
    oldest = shell("head -n 0 a.py", "new", reads=["a.py"])
    newest = shell("head -n 5 a.py", "new", reads=["a.py"])

    assert read_again(since(oldest, before=ways)) == (1, 1, 3)
    assert read_again(since(newest, before=ways)) == (1, 0, 0)


def test_a_plan_from_before_the_first_turn_has_its_record():
    data = rollout(session(), plan(("Write it", False), call="p"), summary())

    (step,) = losses(data)[0].missed.open_plan_steps

    assert (step.ref, step.seq) == ("p", 1)


def test_a_script_of_many_calls_has_no_outcome_of_its_own():
    script = 'await tools.exec_command({cmd: "make"})'
    found = losses(
        rollout(
            session("legacy"),
            turn(
                user("a"),
                lambda writer: writer.response(
                    "custom_tool_call", call_id="x", name="exec", input=script
                ),
                output("x", "Exit code: 1\nOutput:\nno", custom=True),
                summary(),
            ),
        )
    )

    assert gone(found[0]) == {"task a": True}
