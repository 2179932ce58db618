"""Accepted updates survive any fault during a write; others leave nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import forked_python
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.service.notes import Notes
from disks import fill
from fault_steps import home_at, killed_at_each_step
from homes import WAIT, Home, chat, snapshot, thread

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills and mounts as POSIX does")

APPLY = """
from codex_checkpoints.service.notes import Notes

def work(sessions, root, session, payload):
    Notes(sessions).apply(session, payload.encode())
"""

HOLD = """
import sys
from codex_checkpoints.storage.records import Records
with Records(sys.argv[1]).journal(sys.argv[2], "updates.jsonl"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "template")
    home.put(chat("begin"))
    assert home.run("show", thread(1)).returncode == 0
    return home


def claim(key: str) -> str:
    evidence = {"source": "user", "ref": "task"}
    return json.dumps({"kind": "fact", "key": key, "value": "so it is", "evidence": evidence})


def payload(folder: Path, key: str) -> str:
    file = folder / f"{key}.json"
    file.write_text(claim(key))
    return str(file)


def keys(home: Home) -> list[str]:
    return [each["id"] for each in home.json("notes", thread(1))]


def notes(house: Assembly) -> Notes:
    return Notes(house.sessions)


def updates(home: Home) -> Path:
    return home.checkpoint().with_name("updates.jsonl")


@pytest.mark.parametrize("earlier", [0, 1])
def test_killed_writer_leaves_all_or_nothing_and_the_next_one_continues(
    home: Home, tmp_path: Path, earlier: int
):
    before = [f"e{number}" for number in range(earlier)]
    with home.house() as house:
        for key in before:
            notes(house).apply(thread(1), claim(key).encode())

    tries = killed_at_each_step(APPLY, home, tmp_path / "killed", thread(1), claim("killed"))

    seen: set[tuple[str, ...]] = set()
    for at in range(1, tries):
        here = home_at(tmp_path / "killed" / str(at))
        with here.house() as house:
            survived = [each.id for each in notes(house).notes(thread(1))]
            seen.add(tuple(survived))
            notes(house).apply(thread(1), claim("next").encode())
            assert [each.id for each in notes(house).notes(thread(1))] == [*survived, "next"]
        assert here.stored()["facts"].keys() == {*survived, "next"}
        assert updates(here).read_bytes().endswith(b"}\n")
    assert seen == {tuple(before), (*before, "killed")}


def test_writer_waits_for_the_one_before_it(home: Home, tmp_path: Path):
    holder = forked_python.Popen(
        [sys.executable, "-c", HOLD, str(home.state), thread(1)],
        env=home.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    waiting = home.start("apply", thread(1), payload(tmp_path, "k"))
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.0)

    holder.kill()
    holder.communicate(timeout=WAIT)

    assert waiting.wait(WAIT) == 0
    waiting.communicate()
    assert keys(home) == ["k"]


@pytest.fixture
def small(disk: Path) -> Path:
    (disk / "state").mkdir()
    return disk / "state"


@pytest.mark.parametrize("earlier", [0, 1])
def test_full_disk_refuses_an_update_and_changes_nothing(
    home: Home, small: Path, tmp_path: Path, earlier: int
):
    def told(key: str) -> Any:  # noqa: ANN401 - any JSON value
        file = payload(tmp_path, key)
        done = home.run("apply", thread(1), file, "--json", "--state-dir", str(small))
        assert b"Traceback" not in done.stderr
        return json.loads(done.stdout)

    for number in range(earlier):
        assert told("e" * 100 + f"{number}")["accepted"]
        # So that the next line needs a page of the disk that is not there.
        path = small / "sessions" / thread(1) / "updates.jsonl"
        room = -path.stat().st_size % 4096
        with path.open("ab") as file:
            file.write(b" " * (room - 1) + b"\n")
    filler = fill(small.parent)
    before = snapshot(small / "sessions")

    error = told("late")["error"]

    assert error["code"] == "storage_error"
    assert error["facts"]["reason"] == "No space left on device"
    assert error["facts"].keys() >= {"rule", "hint"}
    assert snapshot(small / "sessions") == before

    filler.unlink()
    assert told("late")["accepted"]


def test_update_on_a_read_only_disk_is_refused_with_the_reason(home: Home, tmp_path: Path):
    updates(home).mkdir(parents=True)

    done = home.run("apply", thread(1), payload(tmp_path, "k"), "--json")

    assert json.loads(done.stdout)["error"]["code"] == "storage_error"
    assert updates(home).is_dir()
