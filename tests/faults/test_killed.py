"""A process that is killed leaves what was there before it or what it wrote, never a part."""

import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from homes import WAIT, Home, chat, eventually, following, more, thread
from rollouts import patch, rollout, session, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")

DIE = """
import os, signal, sqlite3, stat

what, after = os.environ["DIE_AT"].split(":")
left = int(after)

def die():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

if what == "commit":
    from codex_checkpoints.storage.index import Index

    def write(self, work):
        with self._connection:
            work(self._connection)
            die()
    Index._write = write
elif what in ("file", "folder"):
    plain = os.fsync

    def fsync(file):
        if stat.S_ISDIR(os.fstat(file).st_mode) == (what == "folder"):
            if what == "file" and left == 0:
                os.ftruncate(file, os.fstat(file).st_size // 2)  # as much as had come to the disk
            die()
        return plain(file)
    os.fsync = fsync
else:
    plain = getattr(os, what)

    def call(first, *more, **named):
        die()
        return plain(first, *more, **named)
    setattr(os, what, call)
"""

HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
database.execute("DELETE FROM rollouts")
print("deleted", flush=True)
sys.stdin.read()
"""

NUMBERS = range(1, 6)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Five sessions whose checkpoints are stored, and which have gone on since."""
    home = Home(tmp_path)
    for number in NUMBERS:
        home.put(chat(f"old {number}", number), number)
    assert home.run("watch", "--once").returncode == 0
    for number in NUMBERS:
        home.put(chat(f"old {number}", number) + later(number, "new"), number)
    return home


def later(number: int, text: str, ordinal: int = 6) -> bytes:
    return more(turn(user(f"{text} {number}"), name=text), thread=thread(number), ordinal=ordinal)


def tasks(home: Home) -> list[str]:
    """Read every stored checkpoint; one that is not whole fails here."""
    found: list[str] = []
    for number in NUMBERS:
        data = home.checkpoint(number).read_bytes()
        assert data.endswith(b"}\n")
        found.append(json.loads(data)["task"]["text"])
    return found


def leftovers(home: Home) -> list[Path]:
    return sorted(home.root.rglob("*.tmp"))


def is_whole(home: Home) -> bool:
    with contextlib.closing(sqlite3.connect(home.state / "index.sqlite")) as database:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def die_at(home: Home, point: str, *command: str) -> None:
    done = home.run(*command, first=DIE, env={"DIE_AT": point})
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("call", ["file", "replace"])
def test_a_checkpoint_is_the_old_one_or_the_new_one(home: Home, call: str, after: int) -> None:
    die_at(home, f"{call}:{after}", "watch", "--once")

    expected = [f"new {number}" for number in NUMBERS][:after]
    assert tasks(home) == expected + [f"old {number}" for number in NUMBERS][after:]
    (left,) = leftovers(home)
    assert left.parent == home.checkpoint(after + 1).parent

    assert home.run("watch", "--once").returncode == 0
    assert tasks(home) == [f"new {number}" for number in NUMBERS]
    assert leftovers(home) == []


def test_a_checkpoint_whose_folder_is_not_flushed_yet_is_the_new_one(home: Home) -> None:
    die_at(home, "folder:2", "watch", "--once")

    assert tasks(home) == ["new 1", "new 2", "new 3", "old 4", "old 5"]
    assert leftovers(home) == []


def test_what_is_left_beside_a_rollout_is_cleared_too(home: Home) -> None:
    home.config('checkpointLocation = "beside"')

    die_at(home, "replace:0", "show", thread(1))

    (left,) = leftovers(home)
    assert left.parent == home.path().parent
    before = sorted(home.path().parent.iterdir())
    assert home.run("sessions").returncode == 0
    assert sorted(home.path().parent.iterdir()) == [path for path in before if path != left]


def test_an_index_that_was_being_written_is_whole(home: Home) -> None:
    die_at(home, "commit:0", "sessions")

    assert is_whole(home)
    listed = home.json("sessions")
    assert [item["task"] for item in listed] == [f"new {number}" for number in NUMBERS]


def test_killing_a_follower_again_and_again_never_shows_a_part(tmp_path: Path) -> None:
    home = Home(tmp_path)
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "a.py").write_text("0")
    head = session(thread=thread(1), cwd=str(shop))
    home.put(rollout(head, turn(user("begin"), patch(add="a.py"))))
    dice = random.Random(20261120)
    ordinal = 9
    for round_ in range(8):
        process = home.start("watch")
        try:
            assert process.stderr is not None
            process.stderr.readline()
            end = time.monotonic() + dice.uniform(0.0, 0.15)
            written = False
            while not written or time.monotonic() < end:
                written = True
                with home.path().open("ab") as file:
                    steps = turn(user(f"round {round_}, {ordinal}"), name=f"n{ordinal}")
                    data = more(steps, thread=thread(1), ordinal=ordinal)
                    file.write(data)
                ordinal += data.count(b"\n")
                (shop / "a.py").write_text(f"{ordinal}")
                stored: Any = home.stored()  # fails on a part
                assert stored is None or stored["schemaVersion"] == 1
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.communicate(timeout=WAIT)
        assert home.stored() is None or home.stored()["schemaVersion"] == 1
        assert is_whole(home)

    with following(home):
        eventually(home.stored, lambda it: it is not None and it["seq"] == ordinal - 1)
        assert home.stored()["task"]["text"].startswith("round 7")


def test_a_killed_process_holds_up_no_other(home: Home) -> None:
    """Nothing of it stays locked."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.state / "index.sqlite")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"deleted\n"
    holder.kill()
    holder.communicate(timeout=WAIT)

    begun = time.monotonic()
    assert len(home.json("sessions")) == 5
    assert time.monotonic() - begun < 4, "it waited for a lock that nobody holds"
    assert is_whole(home)
