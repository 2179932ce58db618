"""A process that is killed while it gives a name: it is the old one or the new one."""

import signal
import sys
from pathlib import Path

import orjson
import pytest

import python
from homes import SERVER, Home, chat, thread
from rollouts import rollout, session, user

RENAME = """
import os, signal, sys

home, thread, name, what, left = sys.argv[1:]
left = int(left)

def dying(plain):
    def call(file, *more):
        global left
        left -= 1
        if left < 0:
            if what == "write":
                plain(file, more[0][: len(more[0]) // 2])  # as much as had come to the disk
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(file, *more)
    return call

from codex_checkpoints import assembly
from codex_checkpoints.assembly import Places

house = assembly.assemble(Places(home, os.path.join(home, "codex-checkpoints")))
house.sessions.refresh()
setattr(os, what, dying(getattr(os, what)))
house.sessions.rename(thread, name)
house.sessions.close()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A session of each history mode, with an old name."""
    home = Home(tmp_path)
    home.put(chat("paginated"))
    home.put(rollout(session("legacy", thread=thread(2)), user("legacy")), 2)
    for number in (1, 2):
        assert rename(home, number, "old", "write", 99) == 0
    return home


def rename(home: Home, number: int, name: str, what: str, left: int) -> int:
    done = python.run(
        [sys.executable, "-c", RENAME, str(home.root), thread(number), name, what, str(left)],
        env=home.environment({"PYTHONPATH": str(SERVER)}),
        check=False,
        capture_output=True,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr.decode()
    return done.returncode


def title(home: Home, number: int) -> str | None:
    with home.house() as house:
        return next(
            each.title
            for each in house.sessions.summaries.page().items
            if each.session_id == thread(number)
        )


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("what", ["write", "fsync"])
def test_a_name_is_the_old_one_or_the_new_one(home: Home, number: int, what: str) -> None:
    files = [home.state / "sessions" / thread(number) / "metadata.jsonl"]
    files += [home.root / "session_index.jsonl"] if number == 2 else []
    killed = 0
    for left in range(9):
        before = [file.read_bytes() for file in files]
        name = f"new {left}"
        if rename(home, number, name, what, left) == 0:
            break
        killed += 1
        assert title(home, number) in {"old", *(f"new {each}" for each in range(left + 1))}
        for file, data in zip(files, before, strict=True):
            assert file.read_bytes().startswith(data)

    assert killed == len(files)
    assert title(home, number) == f"new {killed}"
    for file in files:
        *_, last = file.read_bytes().splitlines()
        assert f"new {killed}" in orjson.loads(last).values()
    assert not list(home.root.rglob("*.tmp"))
