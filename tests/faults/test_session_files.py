"""A process is killed at each step of writing a session file, or the disk refuses it.

What is written steps from one whole state to the next; what a killed process leaves is cleared,
and its locks keep nobody out.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import Conflict, HistoryItem, StorageFailed
from codex_checkpoints.storage.rollout_file import line_of
from disks import fill, make_read_only
from fault_steps import home_at, killed_at_each_step
from homes import Home, chat, thread

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
ITEMS = [
    HistoryItem("event_msg", {"number": number, "text": "größer" * 2000}) for number in range(2)
]
OLD = chat("hello")
FIRST = OLD.count(b"\n")
NEW = b"".join(line_of(item, FIRST + number, AT) for number, item in enumerate(ITEMS))
LONG_AGO = 1_600_000_000 * 10**9
PACKED = ".jsonl.zst"

# --- dying at a step -----------------------------------------------------------------------------

WORK = """
from datetime import UTC, datetime
from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import HistoryItem
from codex_checkpoints.storage.rollout_file import line_of

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)

def work(sessions, root, what, thread, place, archived, text):
    home = os.path.join(root, "codex")
    path = os.path.join(home, place)
    items = [HistoryItem("event_msg", {"number": number, "text": text}) for number in range(2)]
    if what == "publish":
        lines = (line_of(item, n, AT) for n, item in enumerate(items))
        writer.publish(path, lines, os.path.join(home, "codex-checkpoints"))
        return
    with locks.hold(home, thread) as lock:
        match what:
            case "append":
                writer.append(path, items, AT, lock, None)
            case "unpack":
                writer.unpack(path + ".zst", lock)
            case "move":
                writer.move(path, os.path.join(home, archived), lock)
            case "remove":
                writer.remove(path, lock)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "template")


def files(home: Home) -> set[Path]:
    """Name what lies there, but for locks and the index."""
    found = (path for path in home.root.rglob("*") if path.is_file())
    return {
        path
        for path in found
        if path.parent.name != "thread-writer-locks" and not path.name.startswith("index.")
    }


def clear(home: Home) -> None:
    """Clear what was left, as the next start does."""
    writer.clear_leftovers(str(home.state), str(home.root))
    assert list(home.root.rglob("*.tmp")) == []


def hold(home: Home, number: int = 1) -> AbstractContextManager[locks.WriterLock]:
    return locks.hold(str(home.root), thread(number))


def died_in(tmp_path: Path, what: str, home: Home) -> list[Home]:
    """Do something in copies of a home, dying at every step."""
    places = (home.path(), home.path(archived=True))
    text = str(ITEMS[0].payload["text"])
    arguments = (thread(1), *(str(place.relative_to(home.root)) for place in places), text)
    tries = killed_at_each_step(WORK, home, tmp_path / "killed", what, *arguments)
    assert tries > 4
    return [home_at(tmp_path / "killed" / str(at)) for at in range(1, tries + 1)]


def append(remains: Home) -> list[Any]:
    """Append once more, and read all that can be read."""
    with hold(remains) as lock:
        writer.append(str(remains.path()), ITEMS[:1], AT, lock, None)
    lines: list[Any] = []
    for line in remains.path().read_bytes().split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def test_new_session_file_is_atomic(tmp_path: Path, home: Home) -> None:
    whole = b"".join(line_of(item, number, AT) for number, item in enumerate(ITEMS))
    seen: set[bool] = set()

    for remains in died_in(tmp_path, "publish", home):
        there = remains.path().exists()
        seen.add(there)
        if there:
            assert remains.path().read_bytes() == whole
        assert len(files(remains)) <= 1 + there
        clear(remains)
        assert files(remains) == ({remains.path()} if there else set())
        try:
            writer.publish(str(remains.path()), [whole], str(remains.state))
        except Conflict:
            assert there
        assert remains.path().read_bytes() == whole
    assert seen == {True, False}


def test_append_is_atomic_except_for_a_torn_line_that_the_next_one_ends(
    tmp_path: Path, home: Home
) -> None:
    home.put(OLD)
    seen: set[int] = set()

    for remains in died_in(tmp_path, "append", home):
        data = remains.path().read_bytes()
        assert data.startswith(OLD)
        assert NEW.startswith(data[len(OLD) :])
        data.decode()
        seen.add(len(data) - len(OLD))
        lines = append(remains)
        assert remains.path().read_bytes().startswith(data)
        whole = NEW[: len(data) - len(OLD)].count(b"\n")
        assert [line["ordinal"] for line in lines] == list(range(FIRST + whole + 1))
        assert files(remains) == {remains.path()}
    assert seen == {0, len(NEW) // 2, len(NEW)}


def test_session_file_is_decompressed_or_still_compressed(tmp_path: Path, home: Home) -> None:
    packed = home.put(zstd.compress(OLD), form=PACKED)
    os.utime(packed, ns=(LONG_AGO, LONG_AGO))
    packed.chmod(0o640)
    seen: set[tuple[bool, bool]] = set()

    for remains in died_in(tmp_path, "unpack", home):
        state = (remains.path(form=PACKED).exists(), remains.path().exists())
        seen.add(state)
        if remains.path().exists():
            assert remains.path().read_bytes() == OLD
            assert remains.path().stat().st_mtime_ns == LONG_AGO
            assert remains.path().stat().st_mode & 0o777 == 0o640
        if remains.path(form=PACKED).exists():
            with hold(remains) as lock:
                assert writer.unpack(str(remains.path(form=PACKED)), lock) == str(remains.path())
        clear(remains)
        assert files(remains) == {remains.path()}
        assert [line["ordinal"] for line in append(remains)] == list(range(FIRST + 1))
    assert seen == {(True, False), (True, True), (False, True)}


def test_moved_session_file_is_in_one_place(tmp_path: Path, home: Home) -> None:
    os.utime(home.put(OLD), ns=(LONG_AGO, LONG_AGO))
    seen: set[bool] = set()

    for remains in died_in(tmp_path, "move", home):
        (place,) = files(remains)
        assert place in {remains.path(), remains.path(archived=True)}
        assert (place.read_bytes(), place.stat().st_mtime_ns) == (OLD, LONG_AGO)
        seen.add(place == remains.path(archived=True))
        if place == remains.path(archived=True):
            with hold(remains) as lock:
                writer.move(str(place), str(remains.path()), lock)
        assert len(append(remains)) == FIRST + 1
    assert seen == {True, False}


def test_removed_session_file_does_not_return_in_its_compressed_form(
    tmp_path: Path, home: Home
) -> None:
    home.put(OLD)
    home.put(zstd.compress(OLD), form=PACKED)
    seen: set[tuple[bool, bool]] = set()

    for remains in died_in(tmp_path, "remove", home):
        seen.add((remains.path().exists(), remains.path(form=PACKED).exists()))
        with hold(remains) as lock:
            writer.remove(str(remains.path()), lock)
        assert files(remains) == set()
    assert seen == {(True, True), (True, False), (False, False)}


# --- a disk that refuses -------------------------------------------------------------------------


@pytest.fixture
def small(disk: Path) -> Home:
    return Home(disk / "home")


def big_lines(count: int = 100) -> Iterator[bytes]:
    return (line_of(item, number, AT) for number, item in enumerate(ITEMS * count))


@pytest.mark.parametrize("room", [0, 8192, 20480])
def test_full_disk_leaves_a_session_file_unchanged(small: Home, room: int) -> None:
    path = small.put(OLD)
    packed = small.put(zstd.compress(OLD * 50), 2, form=PACKED)
    with hold(small):
        pass  # the folder of locks is there
    filler = fill(small.user, room)
    before = packed.read_bytes()

    with (
        hold(small) as lock,
        pytest.raises(StorageFailed, match="No space left on device"),
    ):
        writer.append(str(path), ITEMS * 2, AT, lock, None)
    with (
        hold(small, 2) as lock,
        pytest.raises(StorageFailed, match="No space left on device"),
    ):
        writer.unpack(str(packed), lock)
    with pytest.raises(StorageFailed, match="No space left on device"):
        writer.publish(str(small.path(3)), big_lines(), str(small.state))

    assert path.read_bytes() == OLD
    assert packed.read_bytes() == before
    assert {each for each in small.root.rglob("*.jsonl*") if each.is_file()} == {path, packed}
    assert list(small.root.rglob("*.tmp")) == []

    filler.unlink()
    with hold(small) as lock:
        writer.append(str(path), ITEMS, AT, lock, None)
    assert path.read_bytes() == OLD + NEW


def test_read_only_disk_is_reported_by_every_write(small: Home) -> None:
    path = small.put(OLD)
    make_read_only(small.user.parent.parent)

    with (
        pytest.raises(StorageFailed, match="Read-only file system"),
        hold(small),
    ):
        pass
    with pytest.raises(StorageFailed, match="Read-only file system"):
        writer.publish(str(small.path(3)), big_lines(1), str(small.state))

    assert path.read_bytes() == OLD


def test_read_only_folder_keeps_its_session_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.put(OLD)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for step in ("rename", "unlink", "link"):
        monkeypatch.setattr(os, step, refuse)
    with hold(home) as lock:
        for work in (
            lambda: writer.move(str(path), str(home.path(archived=True)), lock),
            lambda: writer.remove(str(path), lock),
        ):
            with pytest.raises(StorageFailed, match="Permission denied"):
                work()

    assert path.read_bytes() == OLD
