"""A process is killed at each step of a change to metadata, or must not write: old or new, no part.

A patch of several threads names some and tells of others.  What was derived goes into the index in
one transaction; names go into files, line by line.
"""

import contextlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from codex_checkpoints.storage.contract import Patch, StorageFailed, ThreadQuery
from codex_checkpoints.storage.local import LocalThreadStore
from fault_steps import home_at, killed_at_each_step
from homes import Home, chat, thread, without_rights
from rollouts import rollout, session, turn, user
from stores import AT

NUMBERS = range(1, 7)

# A step is here also a statement of SQL, or some work of the database in between.
PATCH = """
from attrs import evolve
from codex_checkpoints.storage.contract import Patch

def work(sessions, root):
    store = sessions.catalogue.store
    store.index._connection.set_trace_callback(step)
    store.index._connection.set_progress_handler(step, 10)
    *told, gone = sorted(store.rows().values(), key=lambda row: row.session_id)
    store.update_thread_metadata(
        [(row.session_id, Patch(name="new", row=evolve(row, task="new"))) for row in told[:2]]
        + [(row.session_id, Patch(row=evolve(row, task="new"))) for row in told[2:]]
        + [(gone.session_id, Patch(row=None, of=gone.path))]
    )
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Sessions of which the store was told; the first two have a name."""
    home = Home(tmp_path / "template")
    home.put(rollout(session("legacy", thread=thread(1)), turn(user("old"))))
    for number in NUMBERS[1:]:
        home.put(chat("old", number), number)
    with home.house() as house:
        for number in (1, 2):
            house.sessions.rename(thread(number), "old")
    return home


def opened(home: Home) -> LocalThreadStore:
    return LocalThreadStore(str(home.root), str(home.state), AT.isoformat)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_metadata_patch_is_atomic(tmp_path: Path, home: Home) -> None:
    tries = killed_at_each_step(PATCH, home, tmp_path / "killed")

    assert tries > 30
    seen: set[tuple[Any, ...]] = set()
    tasks: list[str | None] = []
    for at in range(1, tries + 1):
        here = home_at(tmp_path / "killed" / str(at))
        with contextlib.closing(opened(here)) as store:
            rows = sorted(store.rows().values(), key=lambda row: row.session_id)
            names = tuple(store.name_of(row) for row in rows[:2])
            assert store.faults() == ()
        with contextlib.closing(sqlite3.connect(here.state / "index.sqlite")) as index:
            assert index.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tasks = [row.task for row in rows]
        assert tasks in (["old"] * len(NUMBERS), ["new"] * (len(NUMBERS) - 1))
        # One name after the other, and all of them before what can be told again.
        assert names in {("old", "old"), ("new", "old"), ("new", "new")}
        assert names == ("new", "new") or tasks[0] == "old"
        seen.add((tasks[0], names))
    assert len(seen) == 4
    assert tasks[0] == "new"


def test_index_pages_lost_in_a_crash_count_as_never_written(tmp_path: Path, home: Home) -> None:
    """The log of SQLite, cut off anywhere: what a crash of the machine may leave."""
    store = opened(home)
    told = [evolve(row, task="new") for row in store.rows().values()]
    store.update_thread_metadata((row.session_id, Patch(row=row)) for row in told)
    saved = tmp_path / "saved"
    shutil.copytree(home.state, saved)
    store.close()
    log = (saved / "index.sqlite-wal").read_bytes()
    assert log

    seen: set[frozenset[str | None]] = set()
    for length in (*range(0, len(log), 777), len(log)):
        shutil.rmtree(home.state)
        shutil.copytree(saved, home.state)
        (home.state / "index.sqlite-shm").unlink(missing_ok=True)
        (home.state / "index.sqlite-wal").write_bytes(log[:length])
        after = opened(home)
        seen.add(frozenset(row.task for row in after.rows().values()))
        assert after.faults() == ()
        after.close()

    assert seen == {frozenset({"old"}), frozenset({"new"})}


def unwritable_index(home: Home) -> None:
    (home.state / "index.sqlite").chmod(0o400)


def unwritable_state(home: Home) -> None:
    for folder, _, files in os.walk(home.state):
        for name in files:
            os.chmod(os.path.join(folder, name), 0o400)
        os.chmod(folder, 0o500)


RENAME = """
import sys
from codex_checkpoints.storage.contract import Patch, StorageFailed
from codex_checkpoints.storage.local import LocalThreadStore
home, thread = sys.argv[1:]
store = LocalThreadStore(home, home + "/codex-checkpoints", lambda: "2026-11-21T13:00:00.000Z")
try:
    store.update_thread_metadata([(thread, Patch(name="new"))])
    print("given")
except StorageFailed as error:
    print(error)
print([each.code for each in store.faults()])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="rights are of another kind there")
@pytest.mark.parametrize(
    ("take_rights", "answer", "name"),
    [
        (unwritable_index, "given", "new"),
        (
            unwritable_state,
            "the name is not kept: metadata.jsonl cannot be written: Permission denied",
            "old",
        ),
    ],
)
def test_name_is_set_without_the_index_but_not_without_its_file(
    home: Home, take_rights: Callable[[Home], None], answer: str, name: str
) -> None:
    try:
        before = without_rights()
    except LookupError as reason:
        pytest.skip(str(reason))
    take_rights(home)

    done = home.alone(*before, sys.executable, "-c", RENAME, str(home.root), thread(2))

    assert (done.returncode, done.stdout.decode().splitlines()[0]) == (0, answer), done.stderr
    for folder, _, _ in os.walk(home.state):
        os.chmod(folder, 0o700)
    with contextlib.closing(opened(home)) as store:
        assert store.read_thread(thread(2)).name == name


def test_metadata_counts_for_this_process_with_a_read_only_index(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def read_only(path: str, **more: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3 has it
        connection = connect(path, **more)
        if path != ":memory:":
            connection.execute("PRAGMA query_only = 1")
        return connection

    before = (home.state / "index.sqlite").read_bytes()
    monkeypatch.setattr(sqlite3, "connect", read_only)
    with contextlib.closing(opened(home)) as store:
        told = [evolve(row, task="new") for row in store.rows().values()]
        store.update_thread_metadata((row.session_id, Patch(row=row)) for row in told)

        assert {each.row.task for each in store.list_threads(ThreadQuery()).items} == {"new"}
        assert [fault.code for fault in store.faults()] == ["index_unavailable"]
        store.update_thread_metadata([(thread(2), Patch(name="new"))])
        assert store.read_thread(thread(2)).name == "new"
    assert (home.state / "index.sqlite").read_bytes() == before


def test_full_disk_sets_no_name(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with contextlib.closing(opened(home)) as store:
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(StorageFailed, match="No space left on device"):
                store.update_thread_metadata([(thread(1), Patch(name="new"))])
        assert store.read_thread(thread(1)).name == "old"
