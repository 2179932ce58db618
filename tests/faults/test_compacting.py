"""Killed or refused at any step of a compaction, all is as before or all of it is done (JUN-26)."""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.installing import Undoing
from codex_checkpoints.service.compaction.request import Request
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.recovery import recover_prepared
from codex_checkpoints.wiring import outside
from homes import Home, refusal, thread
from killing import again, killed_at_each_step
from rollouts import assistant, plan, rollout, session, tokens, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")

FAULT = """
import errno, os, signal

how, name, after = os.environ["FAULT"].split(":")
left = int(after)

def call(plain):
    def inside(first, *more, **named):
        global left
        path = first if isinstance(first, str) else os.readlink(f"/proc/self/fd/{first}")
        if "index.sqlite" not in path:
            left -= 1
            if left < 0 and how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if left == -1 and how == "fail":
                raise OSError(errno.ENOSPC, "No space left on device")
            if left == -1 and how == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
        done = plain(first, *more, **named)
        if "index.sqlite" not in path and left == -1 and how == "interrupt-after":
            os.kill(os.getpid(), signal.SIGINT)
        return done
    return inside

setattr(os, name, call(getattr(os, name)))
"""

Fault = tuple[str, str, int]
"""How, in which call of the system, and how many of these pass before."""

FAULTS: list[Fault] = [
    *(("kill", "fsync", number) for number in range(12)),
    *(("kill", "write", number) for number in range(0, 10, 3)),
    *(("fail", "write", number) for number in range(10)),
    *(("fail", "fsync", number) for number in range(0, 12, 3)),
    *(("kill", "link", 0), ("kill", "unlink", 0), ("kill", "replace", 0), ("fail", "link", 0)),
    *(("interrupt", "fsync", number) for number in range(0, 12, 2)),
    *(("interrupt-after", "write", number) for number in range(1, 10, 3)),
    *(("interrupt", "link", 0), ("interrupt-after", "link", 0)),
]

UNDOING_FAULTS: list[Fault] = [
    *(("kill", "fsync", number) for number in range(5)),
    *(("kill", "write", number) for number in range(5)),
    *(("fail", "fsync", number) for number in range(3)),
    *(("fail", "write", number) for number in range(5)),
]


def work() -> bytes:
    return rollout(
        session(),
        turn(user("Fix the login."), plan(("Fix it", False)), assistant("I read. " * 900)),
        turn(user("And the logout."), assistant("I wrote. " * 900), tokens(9_000)),
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.put(work())
    return home


def with_fault(home: Home, fault: Fault, *command: str) -> subprocess.CompletedProcess[bytes]:
    return home.run(*command, first=FAULT, env={"FAULT": ":".join(map(str, fault))})


def made(home: Home) -> list[str]:
    """Return the sessions that are not the source; each session file is whole."""
    found: list[str] = []
    for path in home.root.glob("sessions/**/rollout-*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        assert all(json.loads(line) and line.endswith(b"\n") for line in lines)
        name = json.loads(lines[0])["payload"]["id"]
        found += [name] if name != thread(1) else []
    return found


def records(home: Home, session_id: str) -> list[Any]:
    path = home.state / "sessions" / session_id / "compactions.jsonl"
    with contextlib.suppress(FileNotFoundError):
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    return []


def listed(home: Home) -> Any:  # noqa: ANN401 - any JSON value
    """Let the next start look, and say what it lists of the source."""
    (source,) = [each for each in home.json("sessions") if each["sessionId"] == thread(1)]
    return source


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "-".join(map(str, fault)))
def test_a_new_session_is_there_with_its_record_or_nothing_is(home: Home, fault: Fault) -> None:
    before = home.path().read_bytes()

    done = with_fault(home, fault, "compact", thread(1), "--json")

    assert done.returncode in {0, 1, 130, -signal.SIGKILL}, done.stderr
    assert b"Traceback" not in done.stderr
    source = listed(home)
    assert home.path().read_bytes() == before
    stored = home.checkpoint()
    if stored.exists():
        assert json.loads(stored.read_bytes())["task"]["text"] == "And the logout."
    new = made(home)
    kinds = [each["type"] for each in records(home, thread(1))]
    if new:
        (name,) = new
        assert source["continuedBy"] == name
        assert kinds == ["prepared", "installed"]
        assert json.loads(home.run("show", name).stdout)["task"]["text"] == "And the logout."
    else:
        assert done.returncode != 0
        assert source["continuedBy"] is None
        assert kinds == []
        left = home.state.glob("sessions/*/compactions.jsonl")
        assert [path for path in left if path.stat().st_size] == []
    assert home.run("compact", thread(1), "--json").returncode == 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "-".join(map(str, fault)))
def test_in_place_both_lines_and_the_record_are_there_or_nothing_is(
    home: Home, fault: Fault
) -> None:
    before = home.path().read_bytes()

    done = with_fault(home, fault, "compact", thread(1), "--into", "in-place", "--json")

    assert done.returncode in {0, 1, 130, -signal.SIGKILL}, done.stderr
    assert b"Traceback" not in done.stderr
    listed(home)
    after = home.path().read_bytes()
    assert after.startswith(before)
    kinds = [each["type"] for each in records(home, thread(1))]
    added = after[len(before) :]
    if added:
        assert added.count(b"\n") == 2
        assert kinds == ["prepared", "installed"]
        name = records(home, thread(1))[-1]["compactionId"]
        assert home.run("uncompact", name).returncode == 0
        (items,) = [home.json("history", thread(1))["items"]]
        assert sum(each.get("role") == "assistant" for each in items) == 2
    else:
        assert done.returncode != 0
        assert kinds == []
        assert home.run("compact", thread(1), "--into", "in-place").returncode == 0


COMPACT = """
from codex_checkpoints.wiring import outside
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.request import Request

def work(sessions, root, session, into):
    Compacting(sessions, outside({})).compact(Request(session, into=into))
"""


@pytest.mark.slow
@pytest.mark.parametrize("into", ["new", "in-place"])
def test_a_compaction_that_is_killed_at_any_step_has_its_event_with_its_record_or_neither(
    tmp_path: Path, into: Into
) -> None:
    home = Home(tmp_path / "template")
    home.put(work())

    tries = killed_at_each_step(COMPACT, home, tmp_path / "killed", thread(1), into)

    whole = [_settled(again(tmp_path / "killed" / str(at))) for at in range(1, tries)]
    assert 10 < sum(whole) < len(whole), "both are tried"


def _settled(home: Home) -> bool:
    """Start again where a compaction was killed; return whether it is done."""
    with home.house() as house:
        found = [record.__class__.__name__ for record in house.sessions.compactions.of(thread(1))]
        new = set(house.sessions.catalogue.current()) - {thread(1)}
    audit = home.state / "audit.jsonl"
    lines = audit.read_bytes().splitlines() if audit.exists() else []
    events = [json.loads(line)["type"] for line in lines if line.endswith(b"}")]
    assert not list((home.state / "restoring").glob("*"))
    assert not list(home.root.rglob("*.tmp"))
    if found:
        assert (found, events) == (["Prepared", "Installed"], ["CompactionInstalled"])
    else:
        assert (new, events) == (set(), [])
    return bool(found)


@pytest.mark.parametrize("into", ["new", "in-place"])
@pytest.mark.parametrize("fault", UNDOING_FAULTS, ids=lambda fault: "-".join(map(str, fault)))
def test_taking_back_is_done_or_the_compaction_stands(home: Home, fault: Fault, into: Into) -> None:
    with home.house() as house:
        old = Histories(house.sessions).history(thread(1)).items
        made = Compacting(house.sessions, outside({})).compact(Request(thread(1), into=into))
        compacted = Histories(house.sessions).history(thread(1)).items
    before, name = home.path().read_bytes(), str(made.compaction_id)

    done = with_fault(home, fault, "uncompact", name, "--json")

    assert done.returncode in {0, 1, 130, -signal.SIGKILL}, done.stderr
    assert b"Traceback" not in done.stderr
    with home.house() as house:
        recover_prepared(house.sessions)
        now = Histories(house.sessions).history(thread(1)).items
        pointer = house.sessions.compactions.continued_by(thread(1))
        kinds = [each["type"] for each in records(home, thread(1)) if each["type"] != "prepared"]
        after = home.path().read_bytes()
        undoing = Undoing(house.sessions, outside({}))
        if kinds == ["installed"]:
            assert done.returncode != 0
            assert (after, now) == (before, compacted)
            assert pointer == (made.session_id if into == "new" else None)
            undoing.uncompact(name)
        else:
            assert kinds == ["installed", "undone"]
            assert after.startswith(before)
            assert after[len(before) :].count(b"\n") == (2 if into == "in-place" else 0)
            assert (now, pointer) == (old, None)
            assert refusal(lambda: undoing.uncompact(name)).code == "conflict"


def test_two_at_once_each_leave_a_whole_compaction(home: Home) -> None:
    home.json("sessions")
    processes = [home.start("compact", thread(1), "--json") for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)

    kinds = [each["type"] for each in records(home, thread(1))]
    assert kinds == ["prepared", "installed"] * 3
    assert sorted(made(home)) == sorted(
        each["sessionId"] for each in records(home, thread(1)) if each["type"] == "installed"
    )
