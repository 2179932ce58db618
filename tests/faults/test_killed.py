"""A killed process leaves the old file or the new one, never a part."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fault_steps import home_at, killed_at_each_step
from homes import WAIT, Home, chat, eventually, following, more, thread
from rollouts import patch, rollout, session, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")

SHOW = """
def work(sessions, root, *names):
    for name in names:
        sessions.show(name)
"""

HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
database.execute("DELETE FROM rollouts")
print("deleted", flush=True)
sys.stdin.read()
"""

NUMBERS = range(1, 4)
ROUNDS = 8 if os.environ.get("CI") else 4


def later(number: int, text: str, ordinal: int = 6) -> bytes:
    return more(turn(user(f"{text} {number}"), name=text), thread=thread(number), ordinal=ordinal)


def show_all(home: Home) -> None:
    with home.house() as house:
        for number in NUMBERS:
            house.sessions.show(thread(number))


def tasks(home: Home) -> list[str]:
    """Read every stored checkpoint; one that is not whole fails here."""
    stored = sorted(home.root.rglob("*checkpoint_v1.json"))
    return [json.loads(path.read_bytes())["task"]["text"] for path in stored]


def is_whole(home: Home) -> bool:
    with contextlib.closing(sqlite3.connect(home.state / "index.sqlite")) as database:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["state", "beside"])
def test_killed_write_leaves_the_old_checkpoint_or_the_new_one(tmp_path: Path, where: str) -> None:
    home = Home(tmp_path / "template")
    home.config(f'checkpointLocation = "{where}"')
    for number in NUMBERS:
        home.put(chat(f"old {number}", number), number)
    show_all(home)
    for number in NUMBERS:
        home.put(chat(f"old {number}", number) + later(number, "new"), number)
    old, new = ([f"{age} {number}" for number in NUMBERS] for age in ("old", "new"))

    tries = killed_at_each_step(SHOW, home, tmp_path / "killed", *map(thread, NUMBERS))

    seen: set[int] = set()
    for at in range(1, tries):
        here = home_at(tmp_path / "killed" / str(at))
        done = sum(text.startswith("new") for text in tasks(here))
        assert tasks(here) == new[:done] + old[done:]
        seen.add(done)
        show_all(here)
        assert tasks(here) == new
        assert list(here.root.rglob("*.tmp")) == []
    assert seen == {0, *NUMBERS}


def test_watcher_killed_repeatedly_never_shows_a_partial_file(tmp_path: Path) -> None:
    home = Home(tmp_path)
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "a.py").write_text("0")
    head = session(thread=thread(1), cwd=str(shop))
    home.put(rollout(head, turn(user("begin"), patch(add="a.py"))))
    dice = random.Random(20261120)
    ordinal = 9
    for round_ in range(ROUNDS):
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
        assert home.stored()["task"]["text"].startswith(f"round {ROUNDS - 1}")


def test_killed_process_blocks_no_other(home: Home) -> None:
    """Nothing of it stays locked."""
    for number in NUMBERS:
        home.put(chat(f"old {number}", number), number)
    show_all(home)
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
    assert len(home.json("sessions")) == len(NUMBERS)
    assert time.monotonic() - begun < 4, "it waited for a lock that nobody holds"
    assert is_whole(home)
