"""Killed or refused at any step of a compaction, all is as before or all of it is done (JUN-26)."""

import contextlib
import json
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
from codex_checkpoints.storage.records import MARKERS
from codex_checkpoints.wiring import outside
from homes import Home, refusal, thread
from killing import How, again, killed_at_each_step
from rollouts import assistant, plan, rollout, session, tokens, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")

WORK = """
from codex_checkpoints.wiring import outside
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.installing import Undoing
from codex_checkpoints.service.compaction.request import Request

def work(sessions, root, what, name, into):
    if what == "compact":
        Compacting(sessions, outside({})).compact(Request(name, into=into))
    else:
        Undoing(sessions, outside({})).uncompact(name)
"""
INTO = pytest.mark.parametrize("into", ["new", "in-place"])


def work() -> bytes:
    return rollout(
        session(),
        turn(user("Fix the login."), plan(("Fix it", False)), assistant("I read. " * 900)),
        turn(user("And the logout."), assistant("I wrote. " * 900), tokens(9_000)),
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "template")
    home.put(work())
    home.json("pin", thread(1), "--text", "Release on Friday.")
    return home


def made(home: Home) -> list[str]:
    """Return the sessions that are not the source; each of their files is whole."""
    found: list[str] = []
    for path in set(home.root.glob("sessions/**/rollout-*.jsonl")) - {home.path()}:
        lines = path.read_bytes().splitlines(keepends=True)
        assert all(json.loads(line) and line.endswith(b"\n") for line in lines)
        found.append(json.loads(lines[0])["payload"]["id"])
    return found


def lines_in(path: Path) -> list[Any]:
    """Read whole lines; a torn one is none."""
    found: list[Any] = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def records(home: Home, session_id: str) -> list[Any]:
    return lines_in(home.state / "sessions" / session_id / "compactions.jsonl")


@pytest.mark.slow
@INTO
@pytest.mark.parametrize("how", ["kill", "interrupt", "refuse"])
def test_a_compaction_is_there_with_its_record_and_its_event_or_nothing_is(
    tmp_path: Path, home: Home, how: How, into: Into
) -> None:
    folder = tmp_path / "killed"
    tries = killed_at_each_step(WORK, home, folder, "compact", thread(1), into, how=how)

    whole = [_settled(again(folder / str(at)), into) for at in range(1, tries)]
    assert len(whole) > 15
    assert 0 < sum(whole) < len(whole), "both are tried"


def _settled(home: Home, into: Into) -> bool:
    """Start again where a compaction was cut off; return whether it is done."""
    with home.house() as house:
        found = [each["type"] for each in records(home, thread(1))]
        new = made(home)
        after = home.path().read_bytes()
        assert house.sessions.catalogue.current().keys() == {thread(1), *new}
        assert not list((home.state / "restoring").glob("*"))
        assert not list(home.root.rglob("*.tmp"))
        events = [each["type"] for each in lines_in(home.state / "audit.jsonl")]
        assert after.startswith(work())
        added = after[len(work()) :].count(b"\n")
        pointer = house.sessions.compactions.continued_by(thread(1))
        holders = {thread(1), *(new if into == "new" else ())}
        assert house.sessions.records.holding(MARKERS) == holders
        if not found:
            assert (new, set(events) - {"CompactionFailed"}, added, pointer) == ([], set(), 0, None)
            Compacting(house.sessions, outside({})).compact(Request(thread(1), into=into))
            return False
        assert (found, events) == (["prepared", "installed"], ["CompactionInstalled"])
        assert ([pointer], added) == ((new, 0) if into == "new" else ([None], 2))
        task = house.sessions.show(pointer or thread(1)).checkpoint.task
        assert task is not None
        assert task.text == "And the logout."
        Undoing(house.sessions, outside({})).uncompact(
            str(records(home, thread(1))[-1]["compactionId"])
        )
        return True


@pytest.mark.slow
@INTO
@pytest.mark.parametrize("how", ["kill", "refuse"])
def test_taking_back_is_done_or_the_compaction_stands(
    tmp_path: Path, home: Home, how: How, into: Into
) -> None:
    with home.house() as house:
        old = Histories(house.sessions).history(thread(1)).items
        made = Compacting(house.sessions, outside({})).compact(Request(thread(1), into=into))
        compacted = Histories(house.sessions).history(thread(1)).items
    before, name = home.path().read_bytes(), str(made.compaction_id)

    folder = tmp_path / "killed"
    tries = killed_at_each_step(WORK, home, folder, "uncompact", name, into, how=how)

    undone = 0
    for at in range(1, tries):
        here = again(folder / str(at))
        with here.house() as house:
            recover_prepared(house.sessions)
            now = Histories(house.sessions).history(thread(1)).items
            pointer = house.sessions.compactions.continued_by(thread(1))
            types = [each["type"] for each in records(here, thread(1))]
            after = here.path().read_bytes()
            undoing = Undoing(house.sessions, outside({}))
            if "undone" not in types:
                assert (after[: len(before)], now) == (before, compacted)
                assert b"\n" not in after[len(before) :]
                assert pointer == (made.session_id if into == "new" else None)
                undoing.uncompact(name)
                continue
            undone += 1
            assert after.startswith(before)
            assert after[len(before) :].count(b"\n") == (2 if into == "in-place" else 0)
            assert (now, pointer) == (old, None)
            assert refusal(lambda: undoing.uncompact(name)).code == "conflict"  # noqa: B023
    assert undone < tries - 1, "both are tried"


def test_of_several_at_once_one_compacts_and_the_others_are_refused(home: Home) -> None:
    with home.house() as house:
        compacting = Compacting(house.sessions, outside({}))
        request = Request(thread(1), into="new")
        asked = [compacting.ask(request).consult() for _ in range(3)]
        first = compacting.install(asked[0]).record.session_id
        for each in asked[1:]:
            refused = refusal(lambda: compacting.install(each))  # noqa: B023
            assert (refused.code, refused.facts["into"]) == ("conflict", first)
        assert made(home) == [first]

        compacting.compact(request)  # whoever asks afterwards has seen the first

    assert len(made(home)) == 2


def test_processes_at_once_leave_whole_compactions_or_a_conflict(home: Home) -> None:
    home.json("sessions")
    processes = [home.start("compact", thread(1), "--json") for _ in range(3)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in processes]

    done = [answer["sessionId"] for answer in answers if "sessionId" in answer]
    assert done
    assert {answer["error"]["code"] for answer in answers if "error" in answer} <= {"conflict"}
    assert sorted(made(home)) == sorted(done)
    kinds = [each["type"] for each in records(home, thread(1))]
    assert kinds == ["prepared", "installed"] * len(done)
