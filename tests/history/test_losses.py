"""`losses` as users meet it: on the command line, over the wire, for sessions of ours and of Codex.

`CODEX_ROLLOUTS` may name a folder of homes with real sessions, as in `test_history_oracle.py`.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints import assembly
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.losses import loss_report
from codex_checkpoints.core.losses.file_activity import Loss
from codex_checkpoints.places import Places
from codex_checkpoints.service.history.compaction_losses import losses_of
from codex_checkpoints.service.history.windows import windows_in
from codex_checkpoints.service.progress import Progress
from compaction_losses import lost_by_name, read_again
from homes import Home, more, refusal, thread
from peer import Peer
from updates import fact

FOLDER = Path(os.environ.get("CODEX_ROLLOUTS", "")).absolute()
HOMES = sorted(FOLDER.glob("*/sessions")) if "CODEX_ROLLOUTS" in os.environ else []

SECRET = "ghp_" + "a1B2" * 9
LOGIN = (
    r.turn_context(),
    r.user("Fix the login"),
    r.plan(("Read it", True), ("Write the test", False)),
    r.shell("cat auth.py", "def login(): ...\n", reads=["auth.py"]),
    r.patch(update="auth.py"),
    r.shell(f"TOKEN={SECRET} pytest -q\x1b[31m", "1 failed", exit_code=1, status="failed"),
)
SUMMARY = r.compacted("m", [user_message(["Fix the login"]), user_message(["One test fails."])])
AGAIN = r.shell("cat auth.py", "def login(): pass\n", reads=["auth.py"])


@pytest.fixture
def home(home: Home) -> Home:
    home.put(long_work(*LOGIN))
    return home


LOST = r.rollout(r.session(), r.turn(*LOGIN, SUMMARY))


def found(home: Home, session_id: str = thread(1)) -> tuple[Loss, ...]:
    with home.house() as house:
        return losses_of(house.sessions, session_id)


def test_loss_has_each_key_of_the_protocol_and_belongs_to_its_window(home: Home):
    home.put(r.rollout(r.session(), r.turn(*LOGIN, SUMMARY, AGAIN), r.turn(r.user("b"), SUMMARY)))

    items = home.json("losses", thread(1))

    shared = ["number", "windowId", "openedAtSeq", "openedAt", "trigger", "strategy"]
    loss = items[0]
    assert list(loss) == [
        *(
            *shared,
            "counts",
            "sealed",
            "totals",
            "taskPresent",
            "task",
            "openPlanSteps",
            "editedFiles",
        ),
        *("failingCommands", "notListed", "reads", "rereadsUnchanged", "bytes", "rereads"),
    ]
    assert (loss["taskPresent"], loss["task"]) == (
        True,
        {"text": "Fix the login", "ref": "u1", "seq": 4, "lost": False},
    )
    assert loss["openPlanSteps"] == [
        {"text": "Write the test", "ref": "c1", "seq": 5, "lost": True}
    ]
    assert loss["editedFiles"] == [
        {"uri": "auth.py", "change": "update", "ref": "c3", "seq": 11, "lost": True}
    ]
    assert [each["exitCode"] for each in loss["failingCommands"]] == [1]
    again = [{"uri": "auth.py", "times": 1, "ref": "c5", "seq": 18}]
    assert (loss["reads"], loss["rereadsUnchanged"], loss["rereads"]) == (1, 1, again)
    assert loss["bytes"] == 18
    _, *windows = home.json("windows", thread(1))
    assert [[each[key] for key in shared] for each in items] == [
        [window[key] for key in shared] for window in windows
    ]
    with Peer(home.root) as peer:
        peer.start()
        answer = peer.call("checkpoints/losses", {"sessionId": thread(1)})
    assert answer == {"items": items, "nextCursor": None}


def test_compaction_is_a_paragraph_for_people(home: Home):
    home.put(r.rollout(r.session(), r.turn(*LOGIN, SUMMARY, AGAIN)))

    lines = home.run("losses", thread(1)).stdout.decode().splitlines()

    assert lines == [
        "Session Fix the login",
        "",
        "Window 1, compacted during a turn",
        "  2026-11-20T10:00:16.000Z",
        "  3 of 4 lost.",
        "  Fate  Kind                    Record  Item",
        "  kept  Last request            #4      Fix the login",
        "  lost  Open step               #5      Write the test",
        "  lost  Changed file            #11     auth.py",
        "  lost  Failed command, exit 1  #14     TOKEN=[redacted] pytest -q [31m",
        "  Read since then  1 read, 1 of an unchanged file (18 bytes)",
        "  Read again       auth.py, once",
    ]


def test_file_that_was_not_read_before_is_not_shown_as_a_loss(home: Home):
    home.put(r.rollout(r.session(), r.turn(r.user("x"), SUMMARY, AGAIN)))

    lines = home.run("losses", thread(1)).stdout.decode().splitlines()

    assert lines[-1] == "  Read since then  1 read, none of an unchanged file"


def test_text_shows_unknown_losses_and_rereads(home: Home):
    sealed = r.compacted("", [{"type": "compaction", "encrypted_content": "gAAA"}])
    other = r.shell("cat b.py", "x", reads=["b.py"])
    changed = [r.patch(update=f"f{number}") for number in range(66)]
    home.put(
        r.rollout(
            r.session(),
            r.turn(*LOGIN, AGAIN, other, sealed),
            r.turn(r.user("b"), AGAIN, other, *changed, sealed, AGAIN, AGAIN, other),
        )
    )

    lines = home.run("losses", thread(1)).stdout.decode().splitlines()

    assert "  4 unknown: this part is encrypted by the provider." in lines
    assert "  unknown  Last request            #4      Fix the login" in lines
    assert "  2 items not listed." in lines
    newest, older = (place for place, each in enumerate(lines) if each.startswith("Window "))
    assert lines[newest].startswith("Window 2, compacted")
    assert lines[older].startswith("Window 1, compacted")
    assert lines[older - 4 : older - 1] == [
        "  Read since then  3 reads, 3 of unchanged files (37 bytes)",
        "  Read again       auth.py, 2 times",
        "                   b.py, once",
    ]


def test_unknown_losses_are_not_counted_as_kept(home: Home):
    said = user_message(["Fix the login, and mind auth.py"])
    sealed = r.compacted("", [said, {"type": "compaction", "encrypted_content": "gAAA"}])
    home.put(r.rollout(r.session(), r.turn(*LOGIN, sealed)))

    lines = home.run("losses", thread(1)).stdout.decode().splitlines()
    (loss,) = home.json("losses", thread(1))

    assert "  2 kept, 2 unknown: this part is encrypted by the provider." in lines
    assert loss["totals"] == {"lost": 0, "kept": 2, "unknown": 2}


def test_replacement_over_the_search_limit_says_so(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loss_report, "SEARCHED", 10)
    home.put(r.rollout(r.session(), r.turn(*LOGIN, SUMMARY)))

    lines = home.here("losses", thread(1)).stdout.decode().splitlines()

    assert "  4 unknown: the replacement is too long to search all of it." in lines


def test_text_without_losses_says_so(home: Home):
    home.put(r.rollout(r.session(), r.turn(r.user("a"))))
    home.put(r.rollout(r.session(thread=thread(2)), r.compacted("m", [])), 2)

    assert home.run("losses", thread(1)).stdout.decode().splitlines() == [
        "Session a",
        "No compactions yet, so nothing was lost.",
    ]
    assert home.json("losses", thread(1)) == []
    assert home.run("losses", thread(2)).stdout.decode().splitlines() == [
        "Session (no message yet)",
        "",
        "Window 1, compacted",
        "  2026-11-20T10:00:01.000Z",
        "  There was nothing to lose.",
        "  Read since then  no file",
    ]


def test_fork_includes_the_work_of_its_base(home: Home):
    home.put(r.rollout(r.session(thread=thread(1)), r.turn(*LOGIN)))
    head = r.session(thread=thread(2), history_base=r.based_on(thread(1), 17, 0))
    home.put(r.rollout(head, r.turn(r.user("b"), SUMMARY, AGAIN)), 2)

    with home.house() as house:
        (loss,) = losses_of(house.sessions, thread(2))

    assert [edited.uri for edited in loss.edited_files] == ["auth.py"]
    assert read_again(loss) == (1, 1, 18)


def test_notes_are_part_of_losses(home: Home):
    home.put(LOST)
    home.remember([fact("f", seq=5, turn="t1")])

    (loss,) = found(home)

    assert lost_by_name(loss)["task Fix the login"] is False


def test_missing_session_is_refused(home: Home):
    path = home.put(LOST)

    with home.house() as house:
        house.sessions.find(thread(1))
        path.unlink()
        refused = refusal(lambda: losses_of(house.sessions, thread(1)))

    assert refused.code == "unreadable_source"


# --- compactions of ours -------------------------------------------------------------------------


def long_work(*steps: r.Step, form: Any = "paginated") -> bytes:  # noqa: ANN401 - a form
    return r.rollout(
        r.session(form), r.turn(*steps, r.assistant("I looked at it. " * 900), r.tokens(9_000))
    )


def compact(home: Home, *options: str, source: str = thread(1)) -> str:
    """Compact a session; return which one goes on."""
    return home.json("compact", source, *options)["sessionId"]


def account_of(loss: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return what a loss tells of what was there: what each thing was, from where, and if lost."""
    listed = [*loss["openPlanSteps"], *loss["editedFiles"], *loss["failingCommands"]]
    return [
        loss["notListed"],
        *({key: value for key, value in each.items() if key != "seq"} for each in listed),
        (loss["task"]["text"], loss["task"]["ref"], loss["task"]["lost"]),
    ]


def known(loss: Loss) -> list[str]:
    """Return which files and commands are known to have been there."""
    files, commands = loss.edited_files, loss.failing_commands
    return [*(each.uri for each in files), *(each.command for each in commands)]


def go_on(home: Home, session_id: str, *steps: r.Step) -> None:
    """Append to a session, as Codex would."""
    (path,) = home.root.rglob(f"*{session_id}.jsonl")
    last = json.loads(path.read_bytes().splitlines()[-1])
    with path.open("ab") as file:
        file.write(more(*steps, thread=session_id, ordinal=last["ordinal"] + 1))


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_our_compaction_keeps_the_important_items(home: Home, into: str):
    (loss,) = home.json("losses", compact(home, "--into", into))

    assert (loss["strategy"], loss["trigger"]) == ("checkpoint", "manual")
    told = [loss["task"], *loss["openPlanSteps"], *loss["editedFiles"], *loss["failingCommands"]]
    assert [each["lost"] for each in told] == [False] * 4
    assert [each["text"] for each in loss["openPlanSteps"]] == ["Write the test"]


TIGHT = "[caps]\nmaxRecentArtifacts = 1\n"
TOUCHED = r.several(*LOGIN, *(r.patch(update=f"lib/f{number}.py") for number in range(3)))


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_compaction_reports_the_same_losses_at_either_placement(tmp_path: Path, form: Any):  # noqa: ANN401 - a form
    told: list[Any] = []
    for into in ("new", "in-place"):
        home = Home(tmp_path / into)
        home.config(TIGHT)
        home.put(long_work(TOUCHED, form=form))
        told += home.json("losses", compact(home, "--into", into, "--digest-tokens", "0"))

    new, in_place = told
    assert account_of(new) == account_of(in_place)
    assert new["editedFiles"] == in_place["editedFiles"]
    lost = [each["uri"] for each in new["editedFiles"] if each["lost"]]
    assert {"lib/f0.py", "lib/f1.py"} <= set(lost)


def test_consecutive_compactions_report_the_same_losses_at_either_placement(tmp_path: Path):
    told: list[Any] = []
    later = r.turn(
        r.user("go on"), AGAIN, r.patch(update="auth.py"), r.patch(add="b.py"), name="later"
    )
    for into in ("new", "in-place"):
        home = Home(tmp_path / into)
        home.put(long_work(*LOGIN))
        first = compact(home, "--into", into)
        go_on(home, first, later)
        made = compact(home, "--into", into, "--force", source=first)
        go_on(home, made, r.turn(r.user("and on"), AGAIN, name="last"))
        told.append(home.json("losses", made)[-1])

    new, in_place = told
    assert account_of(new) == account_of(in_place)
    assert [each["exitCode"] for each in new["failingCommands"]] == [1]  # of the oldest of three
    for loss in told:
        assert (loss["reads"], loss["rereadsUnchanged"]) == (1, 1)
    assert new["bytes"] == in_place["bytes"]


def test_later_work_of_the_source_is_not_a_loss(home: Home):
    session_id = compact(home)
    before = home.json("losses", session_id)

    go_on(home, thread(1), r.turn(r.user("go on"), r.patch(add="later.py")))
    assert home.json("losses", session_id) == before
    (home.root / "archived_sessions").mkdir()
    home.path().rename(home.path(archived=True))
    assert home.json("losses", session_id) == before

    assert [each["uri"] for each in before[0]["editedFiles"]] == ["auth.py"]


@pytest.mark.parametrize("words", ["I looked at it.", "I looked at it. " * 9_000])
def test_last_line_without_a_newline_belongs_to_the_replaced_part(home: Home, words: str):
    whole = r.rollout(
        r.session(), r.turn(*LOGIN, r.tokens(9_000), r.assistant(words)), r.user(words)
    )
    path = home.put(whole.rstrip(b"\n"))
    session_id = compact(home, "--force")
    with path.open("ab") as file:
        file.write(b"\n" + more(r.turn(r.user("go on")), thread=thread(1), ordinal=99))

    (loss,) = home.json("losses", session_id)

    assert [each["uri"] for each in loss["editedFiles"]] == ["auth.py"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"I looked", b"I cooked", 1))


def forbid(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [Path.unlink, cut, rewrite, forbid])
def test_changed_source_gives_only_the_initial_state(home: Home, change: Callable[[Path], None]):
    session_id = compact(home)

    change(home.path())

    (loss,) = found(home, session_id)
    assert lost_by_name(loss) == {"task Fix the login": False, "step Write the test": False}


def test_nearest_available_source_is_read(home: Home):
    first = compact(home)
    go_on(home, first, r.turn(r.user("go on"), r.patch(add="b.py")))
    second = compact(home, "--force", source=first)
    home.path().unlink()

    (loss,) = found(home, second)

    assert known(loss) == ["b.py"]


def test_fork_of_our_session_includes_its_replaced_part(home: Home):
    made = compact(home)
    (path,) = home.root.rglob(f"*{made}.jsonl")
    last = json.loads(path.read_bytes().splitlines()[-1])["ordinal"]
    at = r.based_on(made, last + 1, path.stat().st_size)
    fork = r.session(thread=thread(2), history_base=at)
    home.put(r.rollout(fork, r.turn(r.user("go on"), SUMMARY)), 2)

    first, _ = found(home, thread(2))

    assert known(first)[0] == "auth.py"


class Counted(Progress):
    """A progress that counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0

    def step(self, size: int = 0) -> None:
        super().step(size)
        self.read += size


def test_source_is_read_once_up_to_the_compaction(home: Home):
    source = home.put(long_work(*LOGIN, *[r.assistant("I looked at it. " * 9_000)] * 4))
    size = source.stat().st_size
    session_id = compact(home)
    go_on(home, thread(1), r.turn(r.user("go on"), *[r.assistant("And on. " * 9_000)] * 8))
    (made,) = home.root.rglob(f"*{session_id}.jsonl")
    progress = Counted()

    with home.house() as house:
        house.sessions.open(session_id)
        with house.sessions.at(progress):
            losses_of(house.sessions, session_id)

    assert progress.read == size + made.stat().st_size


def test_window_has_the_strategy_of_our_record(home: Home):
    compact(home, "--into", "in-place", "--placement", "pre_turn")
    path = home.state / "sessions" / thread(1) / "compactions.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"strategy":"checkpoint"', b'"strategy":"codex"'))

    _, window = home.json("windows", thread(1))
    (loss,) = home.json("losses", thread(1))

    for each in (window, loss):
        assert (each["strategy"], each["trigger"]) == ("codex", "pre_turn")


def test_unreadable_records_leave_the_facts_of_the_file(home: Home):
    home.put(LOST)
    (home.state / "sessions" / thread(1) / "compactions.jsonl").mkdir(parents=True)

    with home.house() as house:
        _, window = windows_in(house.sessions, thread(1))

    assert window.trigger == "mid_turn"


# --- real sessions -------------------------------------------------------------------------------


@pytest.mark.skipif(not HOMES, reason="CODEX_ROLLOUTS names no folder of sessions")
@pytest.mark.parametrize("folder", HOMES, ids=lambda path: path.parent.name)
def test_real_session_has_a_loss_for_each_window(folder: Path, tmp_path: Path):
    house = assembly.assemble(Places(str(folder.parent), str(tmp_path / "state")))
    try:
        house.sessions.refresh()
        for row in [*house.sessions.catalogue.current().values()]:
            losses = losses_of(house.sessions, row.session_id)
            windows = windows_in(house.sessions, row.session_id)
            assert [each.number for each in losses] == [each.number for each in windows[1:]]
            for each in losses:
                assert each.task is not None
                assert each.task.lost is False
    finally:
        house.sessions.close()
