"""Accepted updates survive whatever happens while one is written; what was not accepted is gone."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import python
from homes import WAIT, Home, chat, snapshot, thread

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills and mounts as POSIX does")

DIE = """
import os, signal

what, when = os.environ["DIE_AT"].split(":")
plain = getattr(os, what)

def is_ours(first):
    name = first if isinstance(first, str) else os.readlink(f"/proc/self/fd/{first}")
    return name.endswith(("updates.jsonl", "00001"))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def call(first, *more, **named):
    if not is_ours(first):
        return plain(first, *more, **named)
    if when == "before":
        die()
    if when == "half":
        plain(first, more[0][: len(more[0]) // 2])
        die()
    if when == "whole":
        plain(first, more[0][:-1])
        die()
    done = plain(first, *more, **named)
    die()

setattr(os, what, call)
"""

POINTS = [
    ("open:after", 0, False),
    ("write:before", 0, False),
    ("write:half", 0, False),
    ("write:half", 1, False),
    ("write:whole", 1, True),  # all but its line end: it is there, though nobody was told
    ("fsync:before", 0, True),
    ("fsync:after", 1, True),
]

HOLD = """
import sys
from codex_checkpoints.storage.records import Records
with Records(sys.argv[1]).appending(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.put(chat("begin"))
    assert home.run("show", thread(1)).returncode == 0
    return home


def payload(folder: Path, key: str) -> str:
    file = folder / f"{key}.json"
    claim = {"kind": "fact", "key": key, "value": "so it is"}
    file.write_text(json.dumps(claim | {"evidence": {"source": "user", "ref": "task"}}))
    return str(file)


def keys(home: Home) -> list[str]:
    return [each["id"] for each in home.json("notes", thread(1))]


def updates(home: Home) -> Path:
    return home.checkpoint().with_name("updates.jsonl")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names open files by /proc")
@pytest.mark.parametrize(("point", "earlier", "there"), POINTS)
def test_a_writer_that_is_killed_leaves_all_or_nothing_and_the_next_goes_on(
    home: Home, tmp_path: Path, point: str, earlier: int, there: bool
):
    before = [f"e{number}" for number in range(earlier)]
    for key in before:
        assert home.run("apply", thread(1), payload(tmp_path, key)).returncode == 0

    killed = home.run(
        "apply", thread(1), payload(tmp_path, "killed"), first=DIE, env={"DIE_AT": point}
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    survived = [*before, *(["killed"] if there else [])]
    assert keys(home) == survived
    begun = time.monotonic()
    assert home.run("apply", thread(1), payload(tmp_path, "next")).returncode == 0
    assert time.monotonic() - begun < 8, "it waited for a lock that nobody holds"
    assert keys(home) == [*survived, "next"]
    assert json.loads(home.checkpoint().read_bytes())["facts"].keys() == {*survived, "next"}
    assert updates(home).read_bytes().endswith(b"}\n")


def test_a_writer_waits_for_the_one_before_it(home: Home, tmp_path: Path):
    holder = python.Popen(
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
def small(tmp_path: Path) -> Generator[Path]:
    """Mount a small disk with a state folder on it."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if sys.platform != "linux" or mount is None or os.geteuid() != 0:
        pytest.skip("no right to mount")
    command = [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount")
    try:
        (folder / "state").mkdir()
        yield folder / "state"
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 1024)
        except OSError:
            return


@pytest.mark.parametrize("earlier", [0, 1])
def test_on_a_full_disk_an_update_is_refused_and_nothing_changes(
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
    fill(small.parent)
    before = snapshot(small / "sessions")

    error = told("late")["error"]

    assert error["code"] == "storage_error"
    assert error["facts"]["reason"] == "No space left on device"
    assert error["facts"].keys() >= {"rule", "hint"}
    assert snapshot(small / "sessions") == before

    (small.parent / "filler").unlink()
    assert told("late")["accepted"]


def test_updates_that_must_not_be_written_are_refused_with_the_reason(home: Home, tmp_path: Path):
    updates(home).mkdir(parents=True)

    done = home.run("apply", thread(1), payload(tmp_path, "k"), "--json")

    assert json.loads(done.stdout)["error"]["code"] == "storage_error"
    assert updates(home).is_dir()
