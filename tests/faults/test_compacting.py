"""Several compactions of one session at once (JUN-26); cut off at each step: `test_recorded.py`."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.storage import locks
from homes import Home, refusal, thread
from rollouts import assistant, plan, rollout, session, tokens, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")


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


def test_one_of_several_concurrent_compactions_wins_and_the_others_are_refused(home: Home) -> None:
    with home.house() as house:
        compacting = Compacting(house.sessions, outside({}))
        request = CompactionRequest(thread(1), into="new")
        asked = [compacting.in_steps(request) for _ in range(3)]
        results = [next(steps)() for steps in asked]
        asked[0].send(results[0])
        (first,) = made(home)
        for steps in asked[1:]:
            refused = refusal(lambda: steps.send(results[0]))  # noqa: B023
            assert (refused.code, refused.facts["into"]) == ("conflict", first)
        assert made(home) == [first]

        later = refusal(lambda: compacting.compact(request))
        assert (later.code, later.facts["into"]) == ("conflict", first)

    assert made(home) == [first]


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_retry_after_change_still_refuses_second_compaction(home: Home, into: Into) -> None:
    with home.house() as house:
        compacting = Compacting(house.sessions, outside({}))
        steps = compacting.in_steps(CompactionRequest(thread(1), into=into, force=True))
        results = next(steps)()
        compacting.compact(CompactionRequest(thread(1), into="in-place"))
        before = home.path().read_bytes(), made(home)

        refused = refusal(lambda: steps.send(results))

    assert (refused.code, refused.facts["reason"]) == ("conflict", "compacted")
    assert (home.path().read_bytes(), made(home)) == before


def test_compaction_in_place_waits_for_another_writer(home: Home) -> None:
    with home.house() as house:
        writing = house.sessions.compactions.locked(thread(1))
        with writing, locks.hold(str(home.root), thread(1)):
            process = home.start("compact", thread(1), "--into", "in-place", "--json")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=3)
    answer = json.loads(process.communicate(timeout=60)[0])

    assert answer["sessionId"] == thread(1)


@pytest.mark.parametrize("into", ["new", "in-place"])
@pytest.mark.parametrize("apart", [0, 0.05])
def test_one_of_three_processes_compacts(home: Home, apart: float, into: Into) -> None:
    home.json("sessions")

    def start(number: int) -> Any:  # noqa: ANN401 - as subprocess.Popen
        time.sleep(number and apart)
        return home.start("compact", thread(1), "--into", into, "--json")

    processes = [start(number) for number in range(3)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in processes]

    done = [answer["sessionId"] for answer in answers if "sessionId" in answer]
    assert len(done) == 1
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == ["conflict"] * 2
    if into == "in-place":
        return
    assert sorted(made(home)) == sorted(done)
    kinds = [each["type"] for each in records(home, thread(1))]
    assert kinds == ["prepared", "installed"] * len(done)
