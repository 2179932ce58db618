"""Losses of a compaction and the rereads after it: each rule by example."""

from collections.abc import Sequence
from typing import Any

import pytest

from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.losses import file_activity
from codex_checkpoints.core.losses.file_activity import MAX_LISTED, MAX_REREADS, Loss, Totals
from codex_checkpoints.core.losses.loss_report import LossReport
from compaction_losses import losses, lost_by_name, read_again
from derived_state import read_with
from history_items import CHECKPOINT
from rollouts import (
    FOLDER,
    Form,
    Step,
    call,
    compacted,
    custom_call,
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


def fails(command: str = "make", **more: Any) -> Step:  # noqa: ANN401 - as `shell`
    """Run a command that fails."""
    return shell(command, "no", exit_code=2, status="failed", **more)


def cat(path: str, text: str = "old\n") -> Step:
    return shell(f"cat {path}", text, reads=[path])


def first(*steps: Step, form: Form = "paginated") -> Loss:
    """Return the first loss of a session with these steps in one turn."""
    found, *_ = losses(rollout(session(form), turn(user("fix the login"), *steps)))
    return found


# --- what a replacement no longer holds ----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_item_missing_from_the_replacement_is_lost(form: Form):
    found = first(
        plan(("Read it", True), ("Write the test", False), ("Tell Bo", False)),
        *(patch(update="src/a.py"), patch(add="b.py")),
        *(fails("make test"), fails("make lint"), shell("make docs", "done")),
        summary("Next: write the test. Changed b.py. `make lint` fails."),
        form=form,
    )

    assert lost_by_name(found) == {
        "task fix the login": True,
        "step Write the test": False,
        "step Tell Bo": True,
        "update src/a.py": True,
        "add b.py": False,
        "run make test": True,
        "run make lint": False,
    }
    assert not found.sealed
    assert found.totals == Totals(lost=4, kept=3, unknown=0)
    assert found.not_listed == 0


def test_each_item_names_its_record():
    wanted = plan(("Write the test", False), call="p")
    found = first(wanted, patch(update="a.py", call="e"), fails(call="r"), summary())
    before = losses(rollout(session(), wanted, summary()))[0]

    assert found.task is not None
    things = (found.task, *found.open_plan_steps, *found.edited_files, *found.failing_commands)
    assert [(each.ref, each.seq) for each in (*things, *before.open_plan_steps)] == [
        *(("u1", 3), ("p", 4), ("e", 7), ("r", 10)),
        ("p", 1),
    ]
    assert [each.exit_code for each in found.failing_commands] == [2]


MANY_WORDS = [user(f"{number} " + "word " * 4_000) for number in range(60)]


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (
            [user("fix it"), patch(update="a.py"), patch(update="b.py")],
            {"task fix it": False, "update b.py": True, "update a.py": False},
        ),
        (
            [turn(user("fix it")), turn(user("tidy up")), rollback(1), user("tidy")],
            {"task tidy": False},
        ),
        ([*MANY_WORDS, user("last of all the requests")], {"task last of all the requests": False}),
    ],
    ids=["and its message", "but none that was taken back", "twenty thousand tokens of them"],
)
def test_older_record_keeps_the_users_words(steps: list[Step], left: dict[str, bool]):
    (found,) = losses(rollout(session("legacy"), *steps, compacted("We changed a.py.")))

    assert lost_by_name(found) == left


def test_encrypted_replacement_gives_unknown_losses():
    found = first(patch(update="a.py"), compacted("", [user_message(["fix the login"]), SEALED]))

    assert lost_by_name(found) == {"task fix the login": False, "update a.py": None}
    assert found.sealed
    assert found.totals == Totals(lost=0, kept=1, unknown=1)


def test_empty_session_loses_nothing():
    (found,) = losses(rollout(session(), compacted("m", [])))

    assert lost_by_name(found) == {}


def test_change_of_an_earlier_window_is_not_lost_again():
    steps = (patch(update="a.py"), summary(), patch(update="b.py"), summary())

    _, second = losses(rollout(session(), turn(user("fix"), *steps)))

    assert [each.uri for each in second.edited_files] == ["b.py"]


def test_change_counts_once_with_its_newest_call():
    found = first(
        patch(add="a.py", call="c1"),
        patch(add="b.py", call="c2"),
        patch(update="a.py", call="c3"),
        patch(move=("b.py", "c.py"), call="c4"),
        patch(update="d.py", done=False),
        summary(),
    )

    assert [(each.uri, each.change, each.ref) for each in found.edited_files] == [
        ("c.py", "move", "c4"),
        ("b.py", "move", "c4"),
        ("a.py", "update", "c3"),
    ]


@pytest.mark.parametrize(
    ("steps", "failing"),
    [
        ([fails(), shell("make", "yes"), fails("cd x && make")], ["cd x && make"]),
        ([fails(workdir=f"{FOLDER}/a"), shell("make", "yes", workdir=f"{FOLDER}/b")], ["make"]),
        ([fails(), shell("make", status="in_progress")], ["make"]),
        ([fails(), call("exec_command", {"cmd": "make"}, "c9")], ["make"]),
    ],
    ids=["succeeded at last", "another folder", "an unknown end", "no answer yet"],
)
def test_last_outcome_in_its_folder_decides_whether_a_command_fails(
    steps: list[Step], failing: list[str]
):
    found = first(*steps, summary()).failing_commands

    assert [each.command for each in found] == failing


def test_failing_command_that_was_kept_can_be_lost_later():
    steps = (fails(), summary("`make` fails"), summary(), summary())

    found = losses(rollout(session(), turn(user("fix"), *steps)))

    assert [lost_by_name(each).get("run make") for each in found] == [False, True, None]


def test_plan_and_task_are_those_at_the_compaction():
    data = rollout(
        session(),
        turn(user("a"), plan(("one", False)), summary()),
        turn(user("b"), plan(("one", True), ("two", False))),
        summary(),
        rollback(1),
        summary(),
    )

    assert [lost_by_name(each) for each in losses(data)] == [
        {"task a": True, "step one": True},
        {"task b": True, "step two": True},
        {"task a": True, "step one": True},
    ]


def test_accepted_plan_counts_from_its_record_on():
    data = rollout(session(), turn(user("a"), summary()), turn(user("b"), summary()))

    early, late = losses(data, [planned("Ask Bo", seq=7, turn="t2")])

    assert [each.text for each in early.open_plan_steps] == []
    assert [each.text for each in late.open_plan_steps] == ["do Ask Bo"]


def test_texts_of_a_session_are_redacted_values():
    secret = "ghp_" + "a1B2" * 9
    (command,) = first(fails(f"push {secret}\n\x1b[31m" + "x" * 200), summary()).failing_commands

    assert command.command.startswith("push [redacted] [31mx")
    assert len(command.command) == 160


def test_lost_and_newest_items_are_listed_first():
    changed = [patch(update=f"f{number}.py") for number in range(MAX_LISTED + 4)]
    failing = [fails(f"make {number}") for number in range(MAX_LISTED + 1)]
    found = first(*changed, *failing, summary(f"f{MAX_LISTED + 3}.py, make 0"))

    assert [each.uri for each in found.edited_files] == [
        f"f{number}.py" for number in range(MAX_LISTED + 2, 2, -1)
    ]
    assert [each.command for each in found.failing_commands][-1] == "make 1"
    assert all(each.lost for each in (*found.edited_files, *found.failing_commands))
    assert found.not_listed == 5
    assert found.totals == Totals(lost=len(changed) + len(failing) - 1, kept=2, unknown=0)


def test_memory_for_files_and_commands_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_activity, "MAX_CHANGED", 2)
    monkeypatch.setattr(file_activity, "MAX_FILES", 2)
    monkeypatch.setattr(file_activity, "MAX_COMMANDS", 2)
    failing = [shell(f"make {n}", "no", exit_code=1, status="failed") for n in range(3)]
    data = rollout(
        session(),
        turn(user("a"), *(patch(update=f"f{n}") for n in range(3)), *failing, summary()),
        turn(user("b"), cat("f0"), cat("f2"), summary()),
    )

    one, two = losses(data)

    assert [each.uri for each in one.edited_files] == ["f2", "f1"]
    assert one.not_listed == 1
    assert one.totals == Totals(lost=5, kept=0, unknown=1), "nobody searched for the first file"
    assert [each.command for each in one.failing_commands] == ["make 2", "make 1"]
    assert read_again(one) == (2, 1, 4)
    assert read_again(two) == (0, 0, 0)


# --- the windows ---------------------------------------------------------------------------------


def test_loss_belongs_to_the_window_that_it_opened():
    broken = compacted("m", [{"type": "message", "role": "user"}])  # Codex passes over it
    taken_back = (turn(user("b"), patch(update="a.py"), summary()), rollback(1))
    last = turn(user("c"), summary())

    back, one, two = losses(
        rollout(session("legacy"), turn(user("a")), broken, *taken_back, last, summary())
    )

    assert (back.number, back.counts, lost_by_name(back)["update a.py"]) == (None, False, True)
    assert (one.number, one.opened_at_seq, one.trigger, one.counts) == (1, 19, "pre_turn", True)
    assert one.opened_at == "2026-11-20T10:00:18.000Z"
    assert (two.number, two.strategy) == (2, None)


def test_replacement_longer_than_a_chunk_is_read():
    long = "word " * 100_000

    found = first(patch(update="a.py"), summary(f"{long} a.py {long}", "fix the login"))

    assert lost_by_name(found) == {"task fix the login": False, "update a.py": False}
    (found,) = losses(rollout(session(), turn(user("a")), summary(long)).rstrip(b"\n"))
    assert lost_by_name(found) == {"task a": True}


# --- what is read again --------------------------------------------------------------------------


def since(*steps: Step, before: Sequence[Step] = (), form: Form = "paginated") -> Loss:
    """Return the first loss, with these steps in front of it and behind it."""
    return first(*before, summary(), *steps, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_file_read_in_an_earlier_window_counts_as_read_again(form: Form):
    found = since(cat("a.py"), cat("b.py"), before=[cat("a.py")], form=form)

    assert read_again(found) == (2, 1, 4)
    assert [(each.uri, each.times) for each in found.rereads] == [("a.py", 1)]


OTHER_WAYS = [shell(f"head -n {n} a.py", "old", reads=["a.py"]) for n in range(6)]
BOTH = shell("cat a.py b.py", "12345", reads=["a.py", "b.py"])
NO_SUCH_FILE = shell("cat a.py", "no", reads=["a.py"], exit_code=1, status="failed")


@pytest.mark.parametrize(
    ("before", "steps", "again"),
    [
        ([patch(add="a.py")], [cat("a.py")], (1, 1, 4)),
        # changed since, and not in vain
        ([cat("a.py")], [patch(update="a.py"), cat("a.py", "new")], (1, 0, 0)),
        # the same output is the same content, whatever was changed
        ([cat("a.py")], [patch(update="a.py"), cat("a.py")], (1, 1, 4)),
        # another output is another content, though nobody recorded a change
        ([cat("a.py")], [cat("a.py", "new\n"), cat("a.py", "new\n")], (2, 0, 0)),
        # another command goes by the record
        ([cat("a.py")], [shell("head -n 5 a.py", "old\n", reads=["a.py"])], (1, 1, 4)),
        # twice in one window is no loss
        ([], [cat("a.py"), cat("a.py")], (2, 0, 0)),
        # a call that reads two files prints once, and one that reads a file twice reads it once
        ([BOTH], [BOTH, BOTH], (4, 4, 10)),
        ([cat("a.py")], [shell("head a.py; tail a.py", "12345", reads=["a.py"] * 2)], (1, 1, 5)),
        ([cat("a.py")], [NO_SUCH_FILE], (0, 0, 0)),
        ([image("a.png")], [image("a.png")], (1, 1, 0)),
        ([cat("a.py")], [mcp("docs", "search", "a.py")], (0, 0, 0)),
        # of many commands that read a file the newest are compared
        (OTHER_WAYS, [shell("head -n 0 a.py", "new", reads=["a.py"])], (1, 1, 3)),
        (OTHER_WAYS, [shell("head -n 5 a.py", "new", reads=["a.py"])], (1, 0, 0)),
    ],
)
def test_rereads_of_unchanged_files_are_counted(
    before: list[Step], steps: list[Step], again: tuple[int, int, int]
):
    assert read_again(since(*steps, before=before)) == again


def test_our_session_continues_from_its_initial_state():
    account = LossReport()
    account.replay.begin_from(CHECKPOINT)

    read_with(account, rollout(session(), summary("fix it"), turn(cat("a.py"), cat("b.py"))))

    (found,) = account.losses()
    assert lost_by_name(found) == {"task fix the login": True, "step fix it": False}
    assert [(each.ref, each.seq) for each in found.open_plan_steps] == [("u1", None)]
    assert read_again(found) == (2, 1, 4)


def test_our_session_begins_in_the_last_window_of_its_source():
    earlier = turn(user("fix the login"), patch(add="old.py"), summary("a.py"))
    failing = fails()
    latest = turn(user("go on"), cat("a.py"), patch(update="b.py"), failing)
    source = LossReport()
    read_with(source, rollout(session(), earlier, latest))
    account = LossReport(source=source)
    account.replay.begin_from(CHECKPOINT)

    read_with(account, rollout(session(), summary("b.py"), turn(cat("a.py")), summary()))

    begun, later = account.losses()
    assert lost_by_name(begun) == {
        "task fix the login": True,
        "step fix it": True,
        "update b.py": False,
        "run make": True,
    }
    assert read_again(begun) == (1, 1, 4)
    assert (later.edited_files, later.failing_commands) == ((), ())


def test_most_often_read_files_are_named_first():
    names = [f"f{number:02}" for number in range(MAX_REREADS + 2)]
    found = since(*(cat(name) for name in names), cat("f05"), before=[cat(name) for name in names])

    assert found.rereads_unchanged == MAX_REREADS + 3
    assert [each.uri for each in found.rereads][:2] == ["f05", f"f{MAX_REREADS + 1}"]
    assert len(found.rereads) == MAX_REREADS
    assert found.rereads[0].ref == f"c{2 * MAX_REREADS + 5}"


# --- odd lines -----------------------------------------------------------------------------------


def test_unreadable_answer_does_not_prove_that_the_call_was_made():
    torn = (
        b'{"timestamp":"2026-11-20T10:00:05.000Z","type":"response_item","payload":'
        b'{"type":"function_call_output","call_id":"x","output":"' + b"a" * 300 + b'\\x"}}\n'
    )
    plain = call("exec_command", {"cmd": "cat a.py"}, "x")

    assert read_again(since(plain, raw(torn), form="legacy")) == (0, 0, 0)


def test_item_that_only_ends_well_proves_nothing():
    torn = (
        b'{"timestamp":"2026-11-20T10:00:05.000Z","ordinal":90,"type":"event_msg","payload":'
        b'{"type":"item_completed","thread_id":"a","turn_id":"b","item":'
        b'{"type":"CommandExecution","id":"\\x"}}}\n'
    )

    assert read_again(since(raw(torn), before=[cat("a.py")])) == (0, 0, 0)


def test_answer_over_the_limit_proves_that_the_call_was_made():
    blob = [{"type": "input_image", "image_url": "data:image/png;base64," + "A" * 5_000_000}]
    shown = several(call("view_image", {"path": "a.png"}, "x"), output("x", blob))

    found = since(shown, before=[image("a.png")], form="legacy")

    assert read_again(found) == (1, 1, 0)
    assert [each.ref for each in found.rereads] == ["x"]


def test_answer_without_an_output_gives_the_outcome_of_the_command():
    asked = several(call("exec_command", {"cmd": "make"}, "x"), output("x", "Exit code: 2"))

    assert lost_by_name(first(asked, summary(), form="legacy"))["run make"] is True


def test_script_of_many_calls_has_no_outcome_of_its_own():
    script = custom_call("exec", 'await tools.exec_command({cmd: "make"})', "x")
    answer = output("x", "Exit code: 1\nOutput:\nno", custom=True)

    assert lost_by_name(first(script, answer, summary(), form="legacy")) == {
        "task fix the login": True
    }


def test_failed_look_is_not_a_failing_command():
    lost = first(fails("make test"), fails("rg nothing src"), summary("Done."))

    assert [each.command for each in lost.failing_commands] == ["make test"]
