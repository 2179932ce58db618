"""A process is killed at each step of writing a session file, or the disk refuses it.

What is written steps from one whole state to the next; what a killed process leaves is cleared,
and its locks keep nobody out.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from attrs import frozen

import python
from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import Conflict, Item, StorageFailed
from codex_checkpoints.storage.lines import line_of
from homes import SERVER, WAIT, Home, chat, thread

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
ITEMS = [Item("event_msg", {"number": number, "text": "größer" * 2000}) for number in range(2)]
OLD = chat("hello")
FIRST = OLD.count(b"\n")
NEW = b"".join(line_of(item, FIRST + number, AT) for number, item in enumerate(ITEMS))
LONG_AGO = 1_600_000_000 * 10**9

# --- dying at a step -----------------------------------------------------------------------------

# Does the work in one copy of the home after another: in the first it dies before the first step
# on the disk, then after it, amid it where that is a write, before the second, and so on, until it
# lives to the end.
WORKSHOP = """
import json, os, shutil, signal, sys
from datetime import UTC, datetime
from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import Item
from codex_checkpoints.storage.lines import line_of

what, template, thread, text = sys.argv[1:]
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
ITEMS = [Item("event_msg", {"number": number, "text": text}) for number in range(2)]
NAME = f"rollout-2026-11-20T10-00-00-{thread}.jsonl"
STEPS = ("open", "write", "fsync", "link", "rename", "replace", "unlink", "mkdir", "ftruncate",
         "utime", "chmod")

def die_at(step, moment):
    seen = [0]
    def die():
        os.kill(os.getpid(), signal.SIGKILL)
    def patched(name, plain):
        def call(first, *more, **named):
            here = seen[0] == step
            seen[0] += 1
            if here and moment == "before":
                die()
            if here and moment == "amid" and name == "write":
                plain(first, more[0][: len(more[0]) * 3 // 4])
                die()
            try:
                return plain(first, *more, **named)
            finally:
                if here and moment == "after":
                    die()
        return call
    for name in STEPS:
        setattr(os, name, patched(name, getattr(os, name)))

def work(home):
    path = f"{home}/sessions/2026/11/20/{NAME}"
    archived = f"{home}/archived_sessions/{NAME}"
    if what == "publish":
        lines = (line_of(item, n, AT) for n, item in enumerate(ITEMS))
        writer.publish(path, lines, f"{home}/codex-checkpoints")
        return
    with locks.hold(home, thread) as lock:
        match what:
            case "append":
                writer.append(path, ITEMS, AT, lock, None)
            case "unpack":
                writer.unpack(path + ".zst", lock)
            case "move":
                writer.move(path, archived, lock)
            case "remove":
                writer.remove(path, lock)

done = []
step = 0
while True:
    for moment in ("before", "amid", "after"):
        home = f"{template}-{step}-{moment}"
        shutil.copytree(template, home)
        child = os.fork()
        if child == 0:
            die_at(step, moment)
            work(home)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, (step, moment)
        done.append({"home": home, "died": os.WIFSIGNALED(status), "moment": moment})
    if not done[-1]["died"]:
        break
    step += 1
print(json.dumps(done))
"""


@frozen
class Remains:
    """A home in which a process died, and where things lie there."""

    root: Path
    path: Path
    packed: Path
    archived: Path
    nursery: Path

    @classmethod
    def of(cls, root: Path, home: Home) -> "Remains":
        """Take the copy of a home."""
        places = (home.path(), home.path(form=".jsonl.zst"), home.path(archived=True), home.state)
        return cls(root, *(root / place.relative_to(home.root) for place in places))

    def files(self) -> set[Path]:
        """Name what lies there, but for locks."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {path for path in found if path.parent.name != "thread-writer-locks"}

    def clear(self) -> None:
        """Clear what was left, as the next start does."""
        writer.clear_leftovers(str(self.nursery), str(self.root))
        assert list(self.root.rglob("*.tmp")) == []


def died_in(tmp_path: Path, what: str, home: Home) -> list[Remains]:
    """Do something in copies of a home, dying at every step."""
    arguments = [what, str(home.root), thread(1), str(ITEMS[0].payload["text"])]
    done = python.run(
        [sys.executable, "-c", dedent(WORKSHOP), *arguments],
        env=home.environment() | {"PYTHONPATH": str(SERVER)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        timeout=WAIT * 3,
        check=True,
    )
    told: list[dict[str, Any]] = json.loads(done.stdout)
    assert sum(each["died"] for each in told) > 10
    assert not told[-1]["died"]
    return [Remains.of(Path(each["home"]), home) for each in told]


def append(remains: Remains) -> list[Any]:
    """Append once more, and read all that can be read."""
    with locks.hold(str(remains.root), thread(1)) as lock:
        writer.append(str(remains.path), ITEMS[:1], AT, lock, None)
    lines: list[Any] = []
    for line in remains.path.read_bytes().split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def test_a_new_session_file_is_there_whole_or_not_at_all(tmp_path: Path, home: Home) -> None:
    whole = b"".join(line_of(item, number, AT) for number, item in enumerate(ITEMS))
    seen: set[bool] = set()

    for remains in died_in(tmp_path, "publish", home):
        there = remains.path.exists()
        seen.add(there)
        if there:
            assert remains.path.read_bytes() == whole
        assert len(remains.files()) <= 1 + there
        remains.clear()
        assert remains.files() == ({remains.path} if there else set())
        try:
            writer.publish(str(remains.path), [whole], str(remains.nursery))
        except Conflict:
            assert there
        assert remains.path.read_bytes() == whole
    assert seen == {True, False}


def test_an_append_is_there_or_not_but_for_a_torn_line_that_the_next_one_ends(
    tmp_path: Path, home: Home
) -> None:
    home.put(OLD)
    seen: set[int] = set()

    for remains in died_in(tmp_path, "append", home):
        data = remains.path.read_bytes()
        assert data.startswith(OLD)
        assert NEW.startswith(data[len(OLD) :])
        data.decode()
        seen.add(len(data) - len(OLD))
        lines = append(remains)
        assert remains.path.read_bytes().startswith(data)
        whole = NEW[: len(data) - len(OLD)].count(b"\n")
        assert [line["ordinal"] for line in lines] == list(range(FIRST + whole + 1))
        assert remains.files() == {remains.path}
    assert seen == {0, len(NEW) * 3 // 4, len(NEW)}


def test_a_session_file_is_unpacked_or_still_packed(tmp_path: Path, home: Home) -> None:
    packed = home.put(zstd.compress(OLD), form=".jsonl.zst")
    os.utime(packed, ns=(LONG_AGO, LONG_AGO))
    packed.chmod(0o640)
    seen: set[tuple[bool, bool]] = set()

    for remains in died_in(tmp_path, "unpack", home):
        state = (remains.packed.exists(), remains.path.exists())
        seen.add(state)
        if remains.path.exists():
            assert remains.path.read_bytes() == OLD
            assert remains.path.stat().st_mtime_ns == LONG_AGO
            assert remains.path.stat().st_mode & 0o777 == 0o640
        if remains.packed.exists():
            with locks.hold(str(remains.root), thread(1)) as lock:
                assert writer.unpack(str(remains.packed), lock) == str(remains.path)
        remains.clear()
        assert remains.files() == {remains.path}
        assert [line["ordinal"] for line in append(remains)] == list(range(FIRST + 1))
    assert seen == {(True, False), (True, True), (False, True)}


def test_a_moved_session_file_is_in_one_place(tmp_path: Path, home: Home) -> None:
    path = home.put(OLD)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    seen: set[bool] = set()

    for remains in died_in(tmp_path, "move", home):
        (place,) = remains.files()
        assert place in {remains.path, remains.archived}
        assert (place.read_bytes(), place.stat().st_mtime_ns) == (OLD, LONG_AGO)
        seen.add(place == remains.archived)
        if place == remains.archived:
            with locks.hold(str(remains.root), thread(1)) as lock:
                writer.move(str(place), str(remains.path), lock)
        assert len(append(remains)) == FIRST + 1
    assert seen == {True, False}


def test_a_removed_session_file_does_not_come_back_in_its_packed_form(
    tmp_path: Path, home: Home
) -> None:
    home.put(OLD)
    home.put(zstd.compress(OLD), form=".jsonl.zst")
    seen: set[tuple[bool, bool]] = set()

    for remains in died_in(tmp_path, "remove", home):
        seen.add((remains.path.exists(), remains.packed.exists()))
        with locks.hold(str(remains.root), thread(1)) as lock:
            writer.remove(str(remains.path), lock)
        assert remains.files() == set()
    assert seen == {(True, True), (True, False), (False, False)}


# --- a disk that refuses -------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Generator[Home]:
    """A home on a disk of 256 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if sys.platform != "linux" or mount is None or os.geteuid() != 0:
        pytest.skip("no right to mount")
    command = [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount")
    try:
        yield Home(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(home: Home, room: int) -> None:
    """Fill the disk, but for some room."""
    filler = home.user / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - room))


def big_lines(count: int = 100) -> Iterator[bytes]:
    return (line_of(item, number, AT) for number, item in enumerate(ITEMS * count))


@pytest.mark.parametrize("room", [0, 8192, 20480])
def test_on_a_full_disk_a_session_file_stays_as_it_is(small: Home, room: int) -> None:
    path = small.put(OLD)
    packed = small.put(zstd.compress(OLD * 50), 2, form=".jsonl.zst")
    with locks.hold(str(small.root), thread(1)):
        pass  # the folder of locks is there
    fill(small, room)
    before = packed.read_bytes()

    with (
        locks.hold(str(small.root), thread(1)) as lock,
        pytest.raises(StorageFailed, match="No space left on device"),
    ):
        writer.append(str(path), ITEMS * 2, AT, lock, None)
    with (
        locks.hold(str(small.root), thread(2)) as lock,
        pytest.raises(StorageFailed, match="No space left on device"),
    ):
        writer.unpack(str(packed), lock)
    with pytest.raises(StorageFailed, match="No space left on device"):
        writer.publish(str(small.path(3)), big_lines(), str(small.state))

    assert path.read_bytes() == OLD
    assert packed.read_bytes() == before
    assert {each for each in small.root.rglob("*.jsonl*") if each.is_file()} == {path, packed}
    assert list(small.root.rglob("*.tmp")) == []

    (small.user / "filler").unlink()
    with locks.hold(str(small.root), thread(1)) as lock:
        writer.append(str(path), ITEMS, AT, lock, None)
    assert path.read_bytes() == OLD + NEW


def test_on_a_disk_that_must_not_be_written_everything_says_so(small: Home) -> None:
    path = small.put(OLD)
    subprocess.run(["mount", "-o", "remount,ro", str(small.user.parent)], check=True)

    with (
        pytest.raises(StorageFailed, match="Read-only file system"),
        locks.hold(str(small.root), thread(1)),
    ):
        pass
    with pytest.raises(StorageFailed, match="Read-only file system"):
        writer.publish(str(small.path(3)), big_lines(1), str(small.state))

    assert path.read_bytes() == OLD


def test_a_nursery_on_another_file_system_is_no_hindrance(small: Home, home: Home) -> None:
    writer.publish(str(home.path()), big_lines(3), str(small.state))

    assert home.path().read_bytes() == b"".join(big_lines(3))
    assert [path for path in small.root.rglob("*") if path.is_file()] == []
    assert list(home.root.rglob("*.tmp")) == []


def test_a_folder_that_must_not_be_written_keeps_its_session_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.put(OLD)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for step in ("rename", "unlink", "link"):
        monkeypatch.setattr(os, step, refuse)
    with locks.hold(str(home.root), thread(1)) as lock:
        for work in (
            lambda: writer.move(str(path), str(home.path(archived=True)), lock),
            lambda: writer.remove(str(path), lock),
        ):
            with pytest.raises(StorageFailed, match="Permission denied"):
                work()

    assert path.read_bytes() == OLD
