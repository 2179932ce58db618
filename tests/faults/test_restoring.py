"""The next start completes or reverts a restore that was cut off or refused.

That it is cut off at each step is in `test_recorded.py`.
"""

import errno
import json
import os
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bookkeeping import faults
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.recovery import recover
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import Restoring
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.records import MARKERS, Records
from homes import Home, refusal, snapshot, thread
from rollouts import assistant, patch, rollout, session, shell, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "template")
    (home.user / "a.py").write_text("one\n")
    head = session(cwd=str(home.user))
    fix = turn(user("Fix it"), shell("cat a.py", reads=["a.py"]), assistant("Read."))
    home.put(rollout(head, fix, turn(user("More"), patch(add="b.py"))))
    fact = {"kind": "fact", "key": "k", "value": "v", "evidence": {"source": "user", "ref": "task"}}
    home.remember(
        [
            {
                "updateId": "u1",
                "seq": 3,
                "turnId": "t1",
                "at": stamps.now(),
                "payload": fact,
                "hashes": {},
            }
        ]
    )
    home.json("pin", thread(1), "a.py")
    return home


def marked(home: Home) -> str:
    """Make a marker; return its id."""
    with home.house() as house:
        markers = Markers(house.sessions)
        return markers.mark(thread(1), "x").marker.checkpoint_id


def restore(
    house: Assembly, marker: str, mode: RestoreMode = "soft", now: Callable[[], str] = stamps.now
) -> None:
    Restoring(house.sessions, now, stamps.new_id).restore(RestoreParams(thread(1), marker, mode))


def sessions_of(home: Home) -> dict[str, str]:
    return snapshot(home.root / "sessions", home.state / "sessions")


def block_today(home: Home) -> None:
    """Put a file where the folder of new sessions should be."""
    day = home.root / "sessions" / stamps.now()[:10].replace("-", "/")
    day.parent.mkdir(parents=True, exist_ok=True)
    day.write_text("a file where a folder should be")


def events(home: Home) -> list[dict[str, Any]]:
    audit = home.state / "audit.jsonl"
    lines = audit.read_bytes().splitlines() if audit.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"}")]


def test_restore_running_in_another_process_is_left_alone(home: Home):
    name = marked(home)
    with home.house() as house:
        with house.sessions.records.operation_journal(thread(7)) as journal:
            journal.append({"begun": True})
            assert recover(house.sessions) == 0
            assert list(house.sessions.records.operations_begun()) == [thread(7)]
        restore(house, name)
        assert recover(house.sessions) == 1
        assert list(house.sessions.records.operations_begun()) == []


@pytest.mark.parametrize("told", [0, 1, 2])
def test_restore_killed_before_its_branch_began_gets_its_closing_event(home: Home, told: int):
    name = home.json("mark", thread(1), "--label", "x")["checkpointId"]
    left: list[Path] = []
    with home.house() as house:
        restoring = Restoring(house.sessions, _interrupted(told), stamps.new_id)
        with pytest.raises(KeyboardInterrupt):
            restoring.restore(RestoreParams(thread(1), name, "soft"))
        left += (home.state / "restoring").iterdir()
        begun = [event["type"] for event in events(home)]
        assert recover(house.sessions) == 1
        assert faults(house.sessions) == []

    assert len(left) == 1
    assert begun == ["RestoreRequested", "RestoreValidated"][:told]
    assert not (home.state / "restoring").exists()
    ended = [(event["type"], event["operationId"]) for event in events(home)[told:]]
    assert ended == ([("RestoreFailed", events(home)[0]["operationId"])] if told else [])


def test_closing_event_that_could_not_be_written_is_written_by_the_next_start(home: Home):
    audit, aside = home.state / "audit.jsonl", home.state / "audit.aside"

    def blocked() -> str:
        if audit.is_file() and not aside.exists():
            audit.rename(aside)
            audit.mkdir()
        return stamps.now()

    name = marked(home)
    audit.unlink(missing_ok=True)
    with home.house() as house:
        met = refusal(lambda: restore(house, name, now=blocked))
        audit.rmdir()
        aside.rename(audit)
        told = [event["type"] for event in events(home)]

        assert recover(house.sessions) == 1

    assert (met.code, told) == ("storage_error", ["RestoreRequested"])
    assert [event["type"] for event in events(home)] == ["RestoreRequested", "RestoreFailed"]
    assert not (home.state / "restoring").exists()


@pytest.mark.parametrize("what", ["restoring", "audit.jsonl", "the new session"])
def test_restore_into_a_read_only_place_is_refused_and_leaves_nothing(home: Home, what: str):
    name = marked(home)
    if what == "the new session":
        block_today(home)
    elif what == "restoring":
        (home.state / what).write_text("a file where a folder should be")
    else:
        (home.state / what).unlink(missing_ok=True)
        (home.state / what).mkdir()
    before = sessions_of(home)

    with home.house() as house:
        met = refusal(lambda: restore(house, name, "hard"))

    assert met.code == "storage_error"
    assert sessions_of(home) == before
    if what != "audit.jsonl":
        last = events(home)[-1]
        assert (last["type"], last["code"]) == ("RestoreFailed", "storage_error")
    assert not (home.state / "restoring").is_dir()


def test_restore_without_file_locks_is_refused_and_the_rest_works(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    name = marked(home)

    def no_locks(_file: int, _kind: int) -> NoReturn:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with home.house() as house:
        met = refusal(lambda: restore(house, name))
        shown = house.sessions.show(thread(1)).checkpoint

    assert (met.code, met.facts["reason"]) == ("storage_error", os.strerror(errno.ENOLCK))
    assert "k" in shown.facts


def test_failed_rollback_is_finished_by_a_later_start(home: Home, monkeypatch: pytest.MonkeyPatch):
    remove, name = Records.remove, marked(home)

    def all_but_markers(records: Records, session_id: str, name: str) -> None:
        if name == MARKERS:
            raise StorageError("input/output error")
        remove(records, session_id, name)

    block_today(home)
    with monkeypatch.context() as broken:
        broken.setattr(Records, "remove", all_but_markers)
        with home.house() as house:
            refusal(lambda: restore(house, name))
            assert recover(house.sessions) == 0
        (left,) = {path.name for path in (home.state / "sessions").iterdir()} - {thread(1)}

    with home.house() as house:
        assert house.sessions.records.operations_begun() == ()
        assert faults(house.sessions) == []
    assert left not in {path.name for path in (home.state / "sessions").iterdir()}
    assert [event["type"] for event in events(home)].count("RestoreFailed") == 1


def _interrupted(calls: int) -> Callable[[], str]:
    """Return a clock that somebody stops, once, after so many looks at it."""
    looks = count()

    def now() -> str:
        if next(looks) == calls:
            raise KeyboardInterrupt
        return stamps.now()

    return now
