"""Writing session files: existing bytes stay, new lines are complete and numbered."""

import errno
import json
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.storage import atomic_files, locks, session_files, writer
from codex_checkpoints.storage.contract import (
    Conflict,
    Copied,
    HistoryItem,
    StorageFailed,
    Unsupported,
)
from codex_checkpoints.storage.locks import WriterLock
from codex_checkpoints.storage.rollout_file import line_of
from codex_checkpoints.storage.writer import Written
from homes import Home, chat, more, snapshot, thread
from rollouts import rollout, session, to_line, turn, user

AT = datetime(2026, 11, 21, 9, 30, 0, 123456, tzinfo=UTC)
NOTE = HistoryItem("event_msg", {"type": "note", "text": "all is well"})


def hold(home: Home, number: int = 1) -> AbstractContextManager[WriterLock]:
    return locks.hold(str(home.root), thread(number))


def append(home: Home, path: Path, *items: HistoryItem | Copied, **more: Any) -> Written:  # noqa: ANN401
    with hold(home) as lock:
        return writer.append(str(path), items, AT, lock, more.get("expected"))


def version(path: Path) -> str:
    return session_files.version_of(path.stat())


def last(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(path.read_bytes().splitlines()[-1])


def numbered(*ordinals: object) -> bytes:
    """Write a paginated session whose further lines have just these ordinals."""
    lines = [
        json.dumps({"timestamp": "t", "ordinal": number, "type": "event_msg", "payload": {}})
        for number in ordinals
    ]
    return rollout(session()) + "".join(line + "\n" for line in lines).encode()


LONG = (262_140, 262_144, 3_000_000)


def long_line(size: int, ordinal: int) -> bytes:
    return to_line({"ordinal": ordinal, "type": "x", "payload": "y" * size})


# --- a line --------------------------------------------------------------------------------------


def test_line_has_codexs_keys_in_order() -> None:
    item = HistoryItem("response_item", {"b": 1, "a": [2]}, extra={"metadata": {"x": None}})

    assert line_of(item, 7, AT) == (
        b'{"timestamp":"2026-11-21T09:30:00.123Z","ordinal":7,"type":"response_item",'
        b'"payload":{"b":1,"a":[2]},"metadata":{"x":null}}\n'
    )


def test_time_of_a_line_is_utc_everywhere() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=-9, minutes=-30)))

    assert line_of(NOTE, 1, elsewhere) == line_of(NOTE, 1, AT)


def test_line_is_ascii_so_that_any_part_is_utf8() -> None:
    item = HistoryItem("event_msg", {"text": "größer \u2028 日本 🙂 \0"})

    line = line_of(item, 1, AT)

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["payload"] == item.payload


# --- a new file ----------------------------------------------------------------------------------


def publish(home: Home, path: Path, *lines: bytes) -> None:
    writer.publish(str(path), lines, str(home.state))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_new_session_file_has_codexs_mode(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.root)  # a relative path is a path too
    old = os.umask(0o027)
    try:
        writer.publish(str(home.path().relative_to(home.root)), [b"one\n", b"two\n"], "nursery")
    finally:
        os.umask(old)

    assert home.path().read_bytes() == b"one\ntwo\n"
    assert home.path().stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("form", [".jsonl", ".jsonl.zst"])
def test_existing_session_file_is_never_replaced(home: Home, form: str) -> None:
    there = home.put(b"theirs", form=form)
    before = snapshot(home.root)

    with pytest.raises(Conflict):
        publish(home, home.path(), b"ours\n")

    assert snapshot(home.root) == before
    assert there.read_bytes() == b"theirs"


def test_session_file_that_appears_meanwhile_is_not_replaced(home: Home) -> None:
    def lines() -> Iterator[bytes]:
        yield b"ours\n"
        home.put(b"theirs")

    with pytest.raises(Conflict):
        writer.publish(str(home.path()), lines(), str(home.state))

    assert home.path().read_bytes() == b"theirs"
    assert list(home.state.iterdir()) == []


def test_failed_lines_leave_nothing(home: Home) -> None:
    def lines() -> Iterator[bytes]:
        yield b"x" * (3 << 20)
        raise LookupError

    with pytest.raises(LookupError):
        writer.publish(str(home.path()), lines(), str(home.state))

    assert list(home.state.iterdir()) == []
    assert not home.path().parent.exists()


def test_memory_does_not_grow_with_a_new_file(home: Home) -> None:
    line = b"x" * 99_999 + b"\n"
    tracemalloc.start()
    try:
        writer.publish(str(home.path()), (line for _ in range(500)), str(home.state))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert home.path().stat().st_size == 50_000_000
    assert peak < 8_000_000


def refusing(name: str, error: int, times: int = 1) -> Callable[..., Any]:
    """Return a function of `os` that fails first."""
    plain = getattr(os, name)
    left = [times]

    def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - any function
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(error, os.strerror(error))
        return plain(*arguments, **named)

    return call


@pytest.mark.skipif(sys.platform == "win32", reason="links are not used there")
def test_file_on_another_file_system_grows_beside_its_place(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    fsync = os.fsync

    def look_around(file: int) -> None:
        seen.extend(each.name for each in home.root.rglob("*.tmp"))
        fsync(file)

    monkeypatch.setattr(os, "link", refusing("link", errno.EXDEV))
    monkeypatch.setattr(os, "fsync", look_around)

    publish(home, home.path(), b"one\n", b"two\n")

    assert home.path().read_bytes() == b"one\ntwo\n"
    assert f".{home.path().name}.tmp" in seen
    assert list(home.root.rglob("*.tmp")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links are not used there")
def test_without_hard_links_a_file_is_renamed_and_replaces_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refusing("link", errno.EPERM, 2))

    publish(home, home.path(), b"one\n")
    with pytest.raises(FileExistsError):
        atomic_files._link(str(home.put(b"new", 2)), str(home.path()))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    assert home.path().read_bytes() == b"one\n"
    assert list(home.root.rglob("*.tmp")) == []


@pytest.mark.parametrize("step", ["write", "fsync", "link", "mkdir"])
def test_system_error_leaves_nothing_of_a_new_file(
    home: Home, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    home.state.mkdir()
    if step == "link" and sys.platform == "win32":
        pytest.skip("links are not used there")
    # `makedirs` asks once for the folder of ours, which is there.
    times = 2 if step == "mkdir" else 1
    monkeypatch.setattr(os, step, refusing(step, errno.ENOSPC, times))

    with pytest.raises(StorageFailed, match="No space left on device"):
        publish(home, home.path(), b"one\n")

    assert [path for path in home.root.rglob("*") if path.is_file()] == []


# --- an append -----------------------------------------------------------------------------------


def test_empty_append_writes_nothing(home: Home) -> None:
    path = home.put(chat("hello") + b"torn")
    before = path.read_bytes()

    written = append(home, path)

    assert path.read_bytes() == before
    assert written == (len(before), len(before), None)


@pytest.mark.parametrize(
    ("data", "due"),
    [
        (numbered(), 1),
        (numbered(1, 2, 3), 4),
        (numbered(1, 2, 9), 10),  # a gap
        (numbered(1, 2, 2, 3), 4),  # a repeat
        (numbered(1, 2, 3, 2), 4),  # somebody began again
        (numbered(1, 2, None), 3),  # a line without
        (numbered(1, 2, "3", 4.0, True, -1), 3),  # not numbers that count
        (numbered(1, 2) + b"not JSON\n", 3),
        (numbered(1, 2) + b'{"timestamp":"t","ordinal":77,"type":"event_m\n', 3),
        (numbered(1, 2) + b'["ordinal", 77]\n', 3),
        (numbered(1, 2) + b'{"timestamp":"t","type":"x","payload":{"ordinal":77}}\n', 3),
        (numbered(1, 2) + b"\n \n\r\n", 3),
        (numbered(1, 2) + b"\0" * 5000 + b"\n", 3),
        (numbered(1, 2) + b'{"timestamp":"t","ordinal":77', 3),
        (numbered(1, 2) + b'{"type":"from the future","ordinal":8}', 9),  # without its LF
        (b"\n \r\n" + numbered(1, 2).replace(b"\n", b"\r\n"), 3),
        *((numbered(4) + long_line(size, 5) + b'{"no":"ordinal"}\n' * 3, 6) for size in LONG),
        (numbered(1, 2) + b'{"type":"x","payload":"' + b"y" * 5_000_000 + b'"}\n', 3),
    ],
    ids=range(20),
)
def test_next_ordinal_follows_the_highest_one_near_the_end(
    home: Home, data: bytes, due: int
) -> None:
    path = home.put(data)

    assert append(home, path, NOTE)[2] == (due, due)
    assert last(path)["ordinal"] == due


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    end=st.sampled_from([b"\n", b"", b"{", b"\n\n"]),
    step=st.integers(1, 64),
)
def test_reading_back_in_steps_finds_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], end: bytes, step: int
) -> None:
    from codex_checkpoints.storage import rollout_file as session_lines

    data = b"\n".join(b"%d" % number + b"x" * length for number, length in enumerate(lengths)) + end
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(data)
    with path.open("rb", buffering=0) as file, pytest.MonkeyPatch.context() as patched:
        patched.setattr(session_lines, "_STEP", step)
        read_at = session_lines.reading(file.fileno())
        found = list(session_lines._backwards(read_at, len(data)))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    assert found == data.split(b"\n")[::-1]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "begin with its session_meta"),
        (b"\n\n", "begin with its session_meta"),
        (chat("hello").split(b"\n", 1)[1], "begin with its session_meta"),
        (b"\xef\xbb\xbf" + chat("hello"), "begin with its session_meta"),
        (rollout(session("bare"), turn(user("hello"))), "begin with its session_meta"),
        (chat("hello", 2), "another session"),
        (chat("hello").replace(b'"paginated"', b'"branched"'), "history mode"),
        (chat("hello").replace(b'"paginated"', b"null"), "history mode"),
        (chat("hello").replace(b'"ordinal"', b'"number"'), "without ordinals"),
        (chat("hello") + b'{"text":"\xff"}\n' + more(turn(), thread="", ordinal=9), "UTF-8"),
        (chat("hello") + "ä".encode()[:1], "UTF-8"),
        (rollout(session("legacy"), turn(user("hello"))) + b"\xc3\n", "UTF-8"),
    ],
)
def test_file_that_codex_would_refuse_is_not_written(home: Home, data: bytes, why: str) -> None:
    path = home.put(data)

    with pytest.raises(Unsupported, match=why):
        append(home, path, NOTE)

    assert path.read_bytes() == data


def test_compressed_file_link_or_folder_is_not_written(home: Home, tmp_path: Path) -> None:
    packed = home.put(chat("hello"), form=".jsonl.zst")
    with pytest.raises(Unsupported):
        append(home, packed, NOTE)
    packed.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(chat("hello"))
    if sys.platform != "win32":
        home.path().symlink_to(elsewhere)
        with pytest.raises(Unsupported):
            append(home, home.path(), NOTE)
        home.path().unlink()
    home.path().mkdir()
    with pytest.raises((Unsupported, StorageFailed)):
        append(home, home.path(), NOTE)

    assert elsewhere.read_bytes() == chat("hello")


def test_missing_or_changed_file_is_a_conflict(home: Home) -> None:
    with pytest.raises(Conflict):
        append(home, home.path(), NOTE)
    path = home.put(chat("hello"))
    seen = version(path)

    append(home, path, NOTE, expected=seen)
    before = path.read_bytes()
    with pytest.raises(Conflict):
        append(home, path, NOTE, expected=seen)

    assert path.read_bytes() == before


@pytest.mark.parametrize("room", [10**6, 50])
def test_torn_last_line_is_ended_and_a_short_write_is_continued(
    home: Home, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = home.put(chat("hello") + b'{"timestamp":"2026')
    before = path.read_bytes()
    count, writes, write = before.count(b"\n"), list[bytes](), os.write

    def take(file: int, data: bytes) -> int:
        writes.append(data)
        return write(file, data[:room])

    monkeypatch.setattr(os, "write", take)
    written = append(home, path, NOTE, NOTE)

    lines = b"\n" + line_of(NOTE, count, AT) + line_of(NOTE, count + 1, AT)
    assert path.read_bytes() == before + lines
    assert writes[0] == lines
    end = len(before) + len(lines)
    assert written == (len(before), end, (count, count + 1))


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_failed_append_is_rolled_back(
    home: Home, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = home.put(chat("hello") + b"torn")
    before = path.read_bytes()
    write, calls = os.write, iter((50, 0))

    def full(file: int, data: bytes) -> int:
        room = next(calls)
        if room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:room])

    if step == "write":
        monkeypatch.setattr(os, "write", full)
    else:
        monkeypatch.setattr(os, "fsync", refusing("fsync", errno.ENOSPC))

    with pytest.raises(StorageFailed, match="No space left on device"):
        append(home, path, NOTE)

    assert path.read_bytes() == before


def test_lines_of_others_after_a_failed_append_stay(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.put(chat("hello"))
    before = path.read_bytes()
    write = os.write
    calls = iter((1, 0))

    def full(file: int, data: bytes) -> int:
        if next(calls):
            write(file, data[:50])
            write(file, b"theirs")  # who knows no lock
            return 50
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageFailed):
        append(home, path, NOTE)

    assert path.read_bytes().startswith(before)
    assert path.read_bytes().endswith(b"theirs")


# --- no write without the lock -------------------------------------------------------------------


def test_nothing_is_written_without_the_threads_lock(home: Home, tmp_path: Path) -> None:
    path = home.put(chat("hello"))
    target = home.path(archived=True)
    other = Home(tmp_path / "other")
    before = snapshot(home.root)

    def refuses(lock: WriterLock, error: type[Exception]) -> None:
        for write in (
            lambda: writer.append(str(path), [NOTE], AT, lock, None),
            lambda: writer.move(str(path), str(target), lock),
            lambda: writer.remove(str(path), lock),
        ):
            with pytest.raises(error):
                write()

    with hold(home) as lock:
        pass
    refuses(lock, ValueError)
    with hold(other) as lock:
        refuses(lock, ValueError)
    with hold(home, 2) as lock:
        refuses(lock, Unsupported)
    with pytest.raises(TypeError):
        WriterLock(object(), str(home.root), thread(1))

    (home.root / "thread-writer-locks" / ".coordination.lock").unlink()
    (home.root / "thread-writer-locks").rmdir()
    assert snapshot(home.root) == before


def test_writer_decides_no_metadata(home: Home) -> None:
    command = "import sys, codex_checkpoints.storage.writer; print(*sys.modules)"
    loaded = set(home.alone(sys.executable, "-c", command).stdout.decode().split())

    assert "codex_checkpoints.storage.atomic_files" in loaded
    knowing = ("index", "names", "query", "local")
    assert loaded.isdisjoint({"sqlite3", *(f"codex_checkpoints.storage.{n}" for n in knowing)})


# --- moving and removing -------------------------------------------------------------------------


def test_moved_file_keeps_bytes_and_time_and_replaces_none(home: Home) -> None:
    path = home.put(chat("hello"))
    os.utime(path, ns=(10**18, 10**18))
    target = home.path(archived=True)

    with hold(home) as lock:
        writer.move(str(path), str(target), lock)
        assert target.read_bytes() == chat("hello")
        assert target.stat().st_mtime_ns == 10**18
        assert not path.exists()
        with pytest.raises(Conflict):
            writer.move(str(path), str(target), lock)
        for form in (".jsonl", ".jsonl.zst"):
            there = home.put(b"another", form=form)
            with pytest.raises(Conflict):
                writer.move(str(target), str(path), lock)
            there.unlink()
        assert target.read_bytes() == chat("hello")


def test_removing_a_missing_file_is_not_an_error(home: Home) -> None:
    path = home.put(chat("hello"))

    with hold(home) as lock:
        writer.remove(str(path), lock)
        writer.remove(str(path), lock)
        path.parent.rmdir()
        writer.remove(str(path), lock)

    assert not path.exists()


# --- leftovers -----------------------------------------------------------------------------------


def leave(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"part")
    return path


def test_only_leftover_temporary_files_are_removed(home: Home) -> None:
    name = home.path().name
    archived = home.path(archived=True).parent
    stay = [
        leave(home.path().parent / f".{name}.checkpoint_v1.json.0123456789abcdef.tmp"),
        leave(home.path().parent / ".notes.tmp"),
        leave(home.path().parent / f"{name}.tmp"),
        leave(home.state / "notes.tmp"),
        home.put(chat("hello")),
    ]
    go = [
        leave(home.state / f".{name}.0123456789abcdef.tmp"),
        leave(home.path().parent / f".{name}.tmp"),
        leave(archived / f".{name}.tmp"),
    ]

    assert writer.clear_leftovers(str(home.state), str(home.root)) == len(go)

    assert [path for path in stay if not path.exists()] == []
    assert [path for path in go if path.exists()] == []
    assert writer.clear_leftovers(str(home.state), str(home.root)) == 0


def test_temporary_file_stays_while_another_process_writes_it(home: Home) -> None:
    path = home.path()

    def lines() -> Iterator[bytes]:
        yield b'{"type":"session_meta","payload":{}}\n'
        assert writer.clear_leftovers(str(home.state), str(home.root)) == 0

    writer.publish(str(path), lines(), str(home.state))

    assert path.exists()


def test_temporary_file_of_a_held_thread_stays(home: Home) -> None:
    beside = leave(home.path().parent / f".{home.path().name}.tmp")

    with hold(home):
        assert writer.clear_leftovers(str(home.state), str(home.root)) == 0
    assert beside.exists()
    assert writer.clear_leftovers(str(home.state), str(home.root)) == 1


# --- two at once ---------------------------------------------------------------------------------
