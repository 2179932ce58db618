"""The index is a cache: whatever happens to its file, the session files give the same rows."""

import contextlib
import json
import os
import random
import sqlite3
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from codex_checkpoints.assembly import Assembly
from codex_checkpoints.service.doctor import diagnose
from codex_checkpoints.storage.contract import Rollout, Row
from codex_checkpoints.storage.index import BUSY_SECONDS, VERSION, Index
from derived_state import reads
from homes import WAIT, Home, chat, more, thread, without_rights
from rollouts import rollout, session, shell, turn, user


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for number in range(1, 6):
        home.put(chat(f"task {number}", number), number)
    return home


def row(number: int, **values: Any) -> Row:  # noqa: ANN401 - fields of a row
    name = thread(number)
    known = Row(Rollout(f"/s/{number}", name, name, False, False, 1, 2, "3"), name)
    places = {name: values.pop(name) for name in ("archived", "compressed") if name in values}
    return evolve(known, rollout=evolve(known.rollout, **places), **values)


def without_index(house: Assembly) -> str | None:
    """Return why the index is not used, None where it is."""
    faults = house.sessions.catalogue.store.faults()
    return next((fault.reason for fault in faults if fault.code == "index_unavailable"), None)


def database(home: Home) -> Path:
    return home.state / "index.sqlite"


def tasks(home: Home) -> list[str | None]:
    """List with a new service over the index as it lies there."""
    with home.house() as house:
        return [item.task for item in house.sessions.summaries.page().items]


def rows(home: Home) -> dict[str, Row]:
    with contextlib.closing(Index(str(database(home)))) as index:
        return index.rows()


EXPECTED = [f"task {number}" for number in range(1, 6)]


# --- rows ----------------------------------------------------------------------------------------


def test_row_round_trips(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "index.sqlite")
    full = row(
        1, archived=True, compressed=True, cwd="/ü", task="日本", context_tokens=2**53 - 1, seq=-1
    )
    with contextlib.closing(Index(path)) as index:
        index.put([full, row(2)])

    with contextlib.closing(Index(path)) as index:
        assert index.rows() == {"/s/1": full, "/s/2": row(2)}
        assert index.fallback is None


def test_row_replaces_an_earlier_one_and_is_removed_with_its_state(
    tmp_path: Path,
) -> None:
    with contextlib.closing(Index(str(tmp_path / "index.sqlite"))) as index:
        index.put([row(1), row(2)])
        index.put_state("/s/1", "checkpoint", {"place": 1})
        index.put_state("/s/2", "checkpoint", {"place": 2})

        index.put([row(2, task="later")], ["/s/1", "/s/never"])

        assert index.rows() == {"/s/2": row(2, task="later")}
        assert index.state("/s/1", "checkpoint") is None
        assert index.state("/s/2", "checkpoint") == {"place": 2}


def test_only_the_owner_can_read_the_folder(tmp_path: Path) -> None:
    Index(str(tmp_path / "state" / "index.sqlite")).close()

    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


# --- what can be wrong with the file -------------------------------------------------------------


def test_database_damaged_inside_is_replaced(home: Home) -> None:
    with contextlib.closing(Index(str(database(home)))) as index:
        index.put(row(number, task="x" * 300) for number in range(2000))
    data = bytearray(database(home).read_bytes())
    assert len(data) > 400_000
    data[8192:-4096] = random.Random(1).randbytes(len(data) - 12288)
    database(home).write_bytes(data)

    assert tasks(home) == EXPECTED
    with home.house() as house:
        assert without_index(house) is None
        assert len(house.sessions.catalogue.rows()) == 5


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_one_changed_byte_anywhere_changes_no_answer(home: Home, change: int) -> None:
    """The lists, a checkpoint and `doctor` are asked for each."""
    assert tasks(home) == EXPECTED
    whole = database(home).read_bytes()
    damaged = 0

    for place in range(change % 37, len(whole), 37):
        data = bytearray(whole)
        data[place] ^= change
        database(home).write_bytes(data)

        with home.house() as house:
            assert [each.task for each in house.sessions.summaries.page().items] == EXPECTED, place
            assert house.sessions.show(thread(1)).checkpoint.task is not None
            damaged += "index_remade" in {each.code for each in diagnose(house.sessions).findings}
    assert damaged > len(whole) / 37 / 40


def test_index_with_a_damaged_schema_is_rebuilt_and_doctor_says_so(home: Home) -> None:
    assert tasks(home) == EXPECTED
    data = database(home).read_bytes()
    place = data.index(b"CREATE TABLE rollouts")
    database(home).write_bytes(data[:place] + b"\xff" + data[place + 1 :])

    listed = home.run("sessions", "--json")
    findings = home.json("doctor")["findings"]

    assert listed.returncode == 0
    assert listed.stdout.count(b'"task"') == 5
    assert b"the index is damaged and is rebuilt" in listed.stderr
    (found,) = [each for each in findings if each["code"] == "index_remade"]
    assert (found["severity"], found["path"]) == ("info", str(database(home)))
    assert found["wayOut"]
    with contextlib.closing(sqlite3.connect(database(home))) as anew:
        assert anew.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    "lock", ["BEGIN IMMEDIATE", "PRAGMA locking_mode = EXCLUSIVE; PRAGMA user_version = 1"]
)
def test_locked_index_costs_one_short_wait(home: Home, lock: str) -> None:
    assert tasks(home) == EXPECTED
    home.put(chat("task 6", 6), 6)
    with contextlib.closing(sqlite3.connect(database(home), isolation_level=None)) as other:
        for statement in lock.split(";"):
            other.execute(statement)
        begun = time.monotonic()

        assert tasks(home) == [*EXPECTED, "task 6"]

        assert BUSY_SECONDS / 2 < time.monotonic() - begun < 2 * BUSY_SECONDS
        with home.house() as house:
            assert "locked" in (without_index(house) or "")


def test_index_that_is_a_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    another = tmp_path / "another.sqlite"
    with contextlib.closing(sqlite3.connect(another)) as other:
        other.execute("CREATE TABLE theirs (one)")
        other.commit()
    before = another.read_bytes()
    home.state.mkdir()
    database(home).symlink_to(another)

    with home.house() as house:
        assert [each.task for each in house.sessions.summaries.page().items] == EXPECTED
        assert "link" in (without_index(house) or "")
    assert another.read_bytes() == before


def test_damaged_row_makes_the_index_rebuild(home: Home) -> None:
    assert tasks(home) == EXPECTED
    with contextlib.closing(sqlite3.connect(database(home))) as other:
        other.execute("UPDATE rollouts SET row = substr(row, 9)")
        other.commit()

    assert tasks(home) == EXPECTED
    with home.house() as house:
        assert without_index(house) is None


@pytest.mark.parametrize(
    "change",
    [
        *(f"PRAGMA user_version = {n}" for n in (0, VERSION - 1, VERSION + 1, 2**31 - 1)),
        "DROP TABLE states",
        "DROP TABLE rollouts",
        "ALTER TABLE rollouts ADD COLUMN later",
        "ALTER TABLE rollouts RENAME COLUMN row TO told",
        "ALTER TABLE states DROP COLUMN state",
    ],
)
def test_index_of_another_version_is_rebuilt(home: Home, change: str) -> None:
    assert tasks(home) == EXPECTED
    with contextlib.closing(sqlite3.connect(database(home))) as other:
        if change.startswith("PRAGMA"):
            other.execute("UPDATE rollouts SET row = 'of another version'")
        other.execute(change)
        other.commit()

    with home.house() as house:
        assert without_index(house) is None
        assert [item.task for item in house.sessions.summaries.page().items] == EXPECTED


def test_state_is_kept_until_it_or_its_row_goes(tmp_path: Path) -> None:
    path = str(tmp_path / "index.sqlite")
    one, two = row(1).path, row(2).path
    with contextlib.closing(Index(path)) as index:
        index.put([row(1), row(2)])
        assert index.state(one, "fold") is None
        for each in (one, two):
            index.put_state(each, "fold", {"place": [1, "ü", None]})
            index.put_state(each, "other", 2)
    with contextlib.closing(Index(path)) as index:
        assert index.state(one, "fold") == {"place": [1, "ü", None]}
        index.drop_states(two, "fold")
        assert (index.state(one, "other"), index.state(two, "other")) == (2, 2)
        index.drop_states(fold="other")
        assert (index.state(one, "other"), index.state(two, "other")) == (None, None)
        assert index.state(two, "fold") is None
        index.put_state(two, "fold", 3)
        index.drop_states(one)
        assert (index.state(one, "fold"), index.state(two, "fold")) == (None, 3)
        index.put([], [two])
        assert index.state(two, "fold") is None


def test_index_with_the_older_form_of_rows_is_rebuilt(home: Home) -> None:
    """Version 19 kept size, time and inode of a file as three numbers."""
    assert tasks(home) == EXPECTED
    with contextlib.closing(sqlite3.connect(database(home))) as other:
        for path, data in other.execute("SELECT path, row FROM rollouts").fetchall():
            (*where, size, modified, _version), own = json.loads(data)
            old = json.dumps([[*where, [size, modified, 1]], own[:-1]]).encode()
            values = (old, zlib.crc32(old, zlib.crc32(path.encode())), path)
            other.execute("UPDATE rollouts SET row = ?, checksum = ? WHERE path = ?", values)
        other.execute("PRAGMA user_version = 19")
        other.commit()

    with home.house() as house:
        assert without_index(house) is None
        assert house.sessions.catalogue.store.faults() == ()
        assert [item.task for item in house.sessions.summaries.page().items] == EXPECTED
    assert {each.rollout.version.count(".") for each in rows(home).values()} == {2}


def test_file_in_place_of_the_state_folder_disables_the_index(home: Home) -> None:
    home.state.write_text("mine")

    assert tasks(home) == EXPECTED
    assert home.state.read_text() == "mine"


@pytest.mark.parametrize("rights", ["file", "folder"])
def test_read_only_index_is_not_needed(home: Home, rights: str) -> None:
    try:
        before = without_rights()
    except LookupError as reason:
        pytest.skip(str(reason))
    assert tasks(home) == EXPECTED
    home.put(chat("task 6", 6), 6)
    database(home).chmod(0o400)
    if rights == "folder":
        home.state.chmod(0o500)

    try:
        done = home.run("sessions", "--json", before=before)
    finally:
        home.state.chmod(0o700)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b'"task"') == 6
    assert b"Traceback" not in done.stderr


def test_full_disk_disables_the_index(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself says so: a database may not grow beyond `max_page_count`."""
    connect = sqlite3.connect

    def small(path: str, **more: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3 has it
        connection = connect(path, **more)
        if path == ":memory:":
            return connection
        connection.execute("PRAGMA max_page_count = 4")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    for number in range(6, 60):
        home.put(chat(f"task {number:03} {'x' * 150}", number), number)

    with home.house() as house:
        assert len(house.sessions.summaries.page().items) == 59
        assert "full" in (without_index(house) or "")


# --- several at once -----------------------------------------------------------------------------


def test_index_under_construction_by_another_process_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.closing(other):
        other.execute("CREATE TABLE other (one)")
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, other.rollback).start()

        index = Index(str(path))

        assert index.fallback is None
        index.close()


def test_concurrent_indexing_agrees_and_leaves_a_valid_index(home: Home) -> None:
    for number in range(6, 120):
        home.put(chat(f"task {number}", number), number)

    processes = [home.start("sessions", "--json") for _ in range(4)]
    answers = [process.communicate(timeout=WAIT) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4
    assert {error for _, error in answers} == {b""}
    assert len({answer for answer, _ in answers}) == 1
    assert len(rows(home)) == 119
    with contextlib.closing(sqlite3.connect(database(home))) as whole:
        assert whole.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- states of large files -----------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> tuple[Home, Path]:
    """A session so long that what was read of it is kept."""
    home = Home(tmp_path)
    steps = [shell(f"make step-{number}", "o" * 3000) for number in range(170)]
    data = rollout(session(thread=thread(1)), turn(user("build it"), *steps))
    assert len(data) > 1 << 20
    return home, home.put(data)


def append(path: Path, text: str) -> int:
    """Append one turn; return how many bytes that is."""
    ordinal = path.read_bytes().count(b"\n")
    data = more(turn(user(text), name="later"), thread=thread(1), ordinal=ordinal)
    with path.open("ab") as file:
        file.write(data)
    return len(data)


def test_large_file_that_grew_by_a_line_is_not_read_again(
    large: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, path = large
    with home.house() as house:
        assert house.sessions.show(thread(1)).checkpoint.seq == path.read_bytes().count(b"\n") - 1
    added = append(path, "and test it")
    counted = reads(monkeypatch)

    with home.house() as house:
        shown = house.sessions.show(thread(1))

    assert shown.checkpoint.task is not None
    assert shown.checkpoint.task.text == "and test it"
    assert added <= sum(counted) <= added + 10_000
    database(home).unlink()
    with home.house() as house:
        assert house.sessions.show(thread(1)).data == shown.data


def test_large_file_is_not_read_again_by_its_watcher(
    large: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, path = large
    with home.house() as house:
        house.sessions.show(thread(1))
        counted = reads(monkeypatch)
        added = append(path, "and test it")
        house.sessions.refresh()

        assert house.sessions.summaries.page().items[0].task == "and test it"
        assert sum(counted) <= added + 10_000


@pytest.mark.parametrize(
    "state",
    [
        b"no json",
        b"null",
        b"{}",
        b'{"mark":{"offset":5,"source":"1","head":"","tail":""},"problems":[],"replay":{}}',
        b'{"mark":[],"problems":5,"replay":[]}',
    ],
    ids=["text", "null", "empty", "half", "types"],
)
def test_damaged_saved_state_is_ignored(large: tuple[Home, Path], state: bytes) -> None:
    home, path = large
    with home.house() as house:
        house.sessions.show(thread(1))
    with contextlib.closing(sqlite3.connect(database(home))) as other:
        assert other.execute("UPDATE states SET state = ?", (state,)).rowcount == 1
        other.commit()
    append(path, "and test it")

    with home.house() as house:
        checkpoint = house.sessions.show(thread(1)).checkpoint

    assert checkpoint.task is not None
    assert checkpoint.task.text == "and test it"
    assert checkpoint.seq == path.read_bytes().count(b"\n") - 1


def test_saved_state_of_a_replaced_file_is_ignored(large: tuple[Home, Path]) -> None:
    home, path = large
    with home.house() as house:
        house.sessions.show(thread(1))
    data = path.read_bytes().replace(b"build it", b"break it")
    path.with_suffix(".new").write_bytes(data)
    os.replace(path.with_suffix(".new"), path)

    with home.house() as house:
        checkpoint = house.sessions.show(thread(1)).checkpoint

    assert checkpoint.task is not None
    assert checkpoint.task.text == "break it"
