"""Writing session files: what is there stays, what comes is whole and numbered on."""

import errno
import json
import os
import subprocess
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

import python
from codex_checkpoints.storage import durable, locks, writer
from codex_checkpoints.storage.contract import (
    Conflict,
    Copied,
    Item,
    StorageFailed,
    ThreadIsLive,
    Unsupported,
)
from codex_checkpoints.storage.lines import line_of
from codex_checkpoints.storage.locks import WriterLock
from codex_checkpoints.storage.writer import Written
from homes import SERVER, Home, chat, more, snapshot, thread
from rollouts import rollout, session, turn, user

AT = datetime(2026, 11, 21, 9, 30, 0, 123456, tzinfo=UTC)
NOTE = Item("event_msg", {"type": "note", "text": "all is well"})


def hold(home: Home, number: int = 1) -> AbstractContextManager[WriterLock]:
    return locks.hold(str(home.root), thread(number))


def append(home: Home, path: Path, *items: Item | Copied, **more: Any) -> Written:  # noqa: ANN401
    with hold(home) as lock:
        return writer.append(str(path), items, AT, lock, more.get("expected"))


def look(path: Path) -> tuple[int, int, int]:
    seen = path.stat()
    return (seen.st_size, seen.st_mtime_ns, seen.st_ino)


def last(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(path.read_bytes().splitlines()[-1])


def numbered(*ordinals: object) -> bytes:
    """Write a paginated session whose further lines have just these ordinals."""
    lines = [
        json.dumps({"timestamp": "t", "ordinal": number, "type": "event_msg", "payload": {}})
        for number in ordinals
    ]
    return rollout(session()) + "".join(line + "\n" for line in lines).encode()


# --- a line --------------------------------------------------------------------------------------


def test_a_line_has_the_keys_in_the_order_in_which_codex_writes_them() -> None:
    item = Item("response_item", {"b": 1, "a": [2]}, extra={"metadata": {"x": None}})

    assert line_of(item, 7, AT) == (
        b'{"timestamp":"2026-11-21T09:30:00.123Z","ordinal":7,"type":"response_item",'
        b'"payload":{"b":1,"a":[2]},"metadata":{"x":null}}\n'
    )


def test_a_legacy_line_has_no_ordinal_and_an_item_may_bring_its_time() -> None:
    line = line_of(Item("compacted", {}, timestamp="2026-01-01T00:00:00.000Z"), None, AT)

    assert line == b'{"timestamp":"2026-01-01T00:00:00.000Z","type":"compacted","payload":{}}\n'


def test_the_time_of_a_line_is_utc_wherever_it_is_written() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=-9, minutes=-30)))

    assert line_of(NOTE, 1, elsewhere) == line_of(NOTE, 1, AT)


def test_a_line_is_ascii_so_that_a_part_of_it_is_utf8_too() -> None:
    item = Item("event_msg", {"text": "größer \u2028 日本 🙂 \0"})

    line = line_of(item, 1, AT)

    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["payload"] == item.payload


@pytest.mark.parametrize(
    "item",
    [
        Item("event_msg", {"x": float("nan")}),
        Item("event_msg", {"x": "\ud800"}),
        Item("event_msg", {}, extra={"ordinal": 9}),
    ],
)
def test_what_codex_could_not_read_is_no_line(item: Item) -> None:
    with pytest.raises(Unsupported):
        line_of(item, 1, AT)


# --- a new file ----------------------------------------------------------------------------------


def publish(home: Home, path: Path, *lines: bytes) -> None:
    writer.publish(str(path), lines, str(home.state))


def test_a_new_session_file_appears_whole_with_the_folders_it_needs(home: Home) -> None:
    path = home.path()

    publish(home, path, b"one\n", b"two\n")

    assert path.read_bytes() == b"one\ntwo\n"
    assert list(home.state.iterdir()) == []
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_a_new_session_file_has_the_rights_that_codex_gives(home: Home) -> None:
    old = os.umask(0o027)
    try:
        publish(home, home.path(), b"one\n")
    finally:
        os.umask(old)

    assert home.path().stat().st_mode & 0o777 == 0o640


def test_a_relative_path_is_a_path_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.root)
    path = home.path().relative_to(home.root)

    writer.publish(str(path), [b"one\n"], "nursery")

    assert home.path().read_bytes() == b"one\n"


@pytest.mark.parametrize("form", [".jsonl", ".jsonl.zst"])
def test_a_session_file_that_is_there_is_never_replaced(home: Home, form: str) -> None:
    there = home.put(b"theirs", form=form)
    before = snapshot(home.root)

    with pytest.raises(Conflict):
        publish(home, home.path(), b"ours\n")

    assert snapshot(home.root) == before
    assert there.read_bytes() == b"theirs"


def test_a_session_file_that_appears_meanwhile_is_not_replaced(home: Home) -> None:
    def lines() -> Iterator[bytes]:
        yield b"ours\n"
        home.put(b"theirs")

    with pytest.raises(Conflict):
        writer.publish(str(home.path()), lines(), str(home.state))

    assert home.path().read_bytes() == b"theirs"
    assert list(home.state.iterdir()) == []


def test_lines_that_cannot_be_made_leave_nothing(home: Home) -> None:
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
def test_on_another_file_system_a_file_grows_beside_its_place(
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
def test_without_hard_links_a_file_is_renamed_and_still_replaces_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refusing("link", errno.EPERM, 2))

    publish(home, home.path(), b"one\n")
    with pytest.raises(FileExistsError):
        durable._link(str(home.put(b"new", 2)), str(home.path()))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    assert home.path().read_bytes() == b"one\n"
    assert list(home.root.rglob("*.tmp")) == []


@pytest.mark.parametrize("step", ["write", "fsync", "link", "mkdir"])
def test_what_the_system_refuses_leaves_nothing_of_a_new_file(
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


def test_an_append_goes_on_with_the_ordinals_and_leaves_all_bytes(home: Home) -> None:
    path = home.put(chat("hello"))
    before = path.read_bytes()
    count = before.count(b"\n")

    written = append(home, path, NOTE, NOTE)

    after = path.read_bytes()
    assert after.startswith(before)
    assert after[written[0] : written[1]] == after[len(before) :]
    assert after[len(before) :] == line_of(NOTE, count, AT) + line_of(NOTE, count + 1, AT)
    assert written == (len(before), len(after), (count, count + 1))


def test_a_legacy_session_gets_no_ordinals(home: Home) -> None:
    path = home.put(rollout(session("legacy"), turn(user("hello"))))
    before = path.read_bytes()

    written = append(home, path, NOTE)

    assert path.read_bytes() == before + line_of(NOTE, None, AT)
    assert written[2] is None


def test_a_torn_last_line_gets_its_end_in_the_same_write(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.put(chat("hello") + b'{"timestamp":"2026')
    before = path.read_bytes()
    writes: list[bytes] = []
    write = os.write

    def note(file: int, data: bytes) -> int:
        writes.append(data)
        return write(file, data)

    monkeypatch.setattr(os, "write", note)
    written = append(home, path, NOTE, NOTE)

    assert b"".join(writes) == writes[0] == path.read_bytes()[len(before) :]
    assert writes[0].startswith(b'\n{"timestamp"')
    assert written[0] == len(before)
    assert written[2] is not None
    assert written[2][0] == before.count(b"\n")


def test_nothing_to_append_writes_nothing(home: Home) -> None:
    path = home.put(chat("hello") + b"torn")
    before = path.read_bytes()

    written = append(home, path)

    assert path.read_bytes() == before
    assert written == (len(before), len(before), None)


@pytest.mark.parametrize(
    ("ordinals", "due"),
    [
        ((), 1),
        ((1, 2, 3), 4),
        ((1, 2, 9), 10),  # a gap
        ((1, 2, 2, 3), 4),  # a repeat
        ((1, 2, 3, 2), 4),  # somebody began again
        ((1, 2, None), 3),  # a line without
        ((1, 2, "3", 4.0, True, -1), 3),  # not numbers that count
    ],
)
def test_the_next_ordinal_follows_the_highest_one_near_the_end(
    home: Home, ordinals: tuple[object, ...], due: int
) -> None:
    path = home.put(numbered(*ordinals))

    assert append(home, path, NOTE)[2] == (due, due)
    assert last(path)["ordinal"] == due


@pytest.mark.parametrize(
    "end",
    [
        b"not JSON\n",
        b'{"timestamp":"t","ordinal":77,"type":"event_m\n',
        b'["ordinal", 77]\n',
        b'{"timestamp":"t","type":"from the future","payload":{"ordinal":77}}\n',
        b"\n \n\r\n",
        b"\0" * 5000 + b"\n",
        b'{"timestamp":"t","ordinal":77',
    ],
)
def test_a_line_without_a_number_is_looked_past(home: Home, end: bytes) -> None:
    path = home.put(numbered(1, 2) + end)

    assert append(home, path, NOTE)[2] == (3, 3)


def test_blank_lines_and_windows_line_ends_are_no_hindrance(home: Home) -> None:
    path = home.put(b"\n \r\n" + numbered(1, 2).replace(b"\n", b"\r\n"))

    assert append(home, path, NOTE)[2] == (3, 3)


@pytest.mark.parametrize("kind", ["event_msg", "from the future"])
def test_the_number_of_a_whole_line_counts_whatever_it_is(home: Home, kind: str) -> None:
    unknown = b'{"type":"' + kind.encode() + b'","ordinal":8}'
    path = home.put(numbered(1, 2) + unknown)  # even without its LF

    assert append(home, path, NOTE)[2] == (9, 9)


@pytest.mark.parametrize("size", [262_140, 262_144, 3_000_000])
def test_long_lines_are_looked_through(home: Home, size: int) -> None:
    text = json.dumps({"ordinal": 5, "type": "x", "payload": "y" * size}).encode()
    path = home.put(numbered(1, 2, 3, 4) + text + b"\n" + b'{"no":"ordinal"}\n' * 3)

    assert append(home, path, NOTE)[2] == (6, 6)


def test_the_look_back_goes_on_until_there_is_a_number(home: Home) -> None:
    path = home.put(numbered(1, 2) + b'{"type":"x","payload":"' + b"y" * 5_000_000 + b'"}\n')

    assert append(home, path, NOTE)[2] == (3, 3)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    end=st.sampled_from([b"\n", b"", b"{", b"\n\n"]),
    step=st.integers(1, 64),
)
def test_looking_back_in_steps_finds_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], end: bytes, step: int
) -> None:
    from codex_checkpoints.storage import lines as session_lines

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
def test_a_file_that_codex_would_refuse_is_not_written(home: Home, data: bytes, why: str) -> None:
    path = home.put(data)

    with pytest.raises(Unsupported, match=why):
        append(home, path, NOTE)

    assert path.read_bytes() == data


def test_a_packed_file_a_link_or_a_folder_is_not_written(home: Home, tmp_path: Path) -> None:
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


def test_a_file_that_is_gone_or_has_changed_is_a_conflict(home: Home) -> None:
    with pytest.raises(Conflict):
        append(home, home.path(), NOTE)
    path = home.put(chat("hello"))
    seen = look(path)

    append(home, path, NOTE, expected=seen)
    before = path.read_bytes()
    with pytest.raises(Conflict):
        append(home, path, NOTE, expected=seen)

    assert path.read_bytes() == before


def test_a_copied_line_is_taken_byte_for_byte_where_its_number_is_due(home: Home) -> None:
    path = home.put(numbered(1, 2))
    odd = '{ "ordinal" : 4, "type":"x", "text":"ä" }'.encode()

    assert append(home, path, NOTE, Copied(odd), NOTE)[2] == (3, 5)

    assert path.read_bytes().splitlines()[-2] == odd
    before = path.read_bytes()
    for line in (odd, b'{"type":"x"}', b'{"ordinal":6}\n{}', b'{"ordinal":6,"x":"\xff"}'):
        with pytest.raises(Unsupported):
            append(home, path, Copied(line))
    assert path.read_bytes() == before


def test_an_append_that_the_system_cuts_short_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.put(chat("hello"))
    before = path.read_bytes()
    write = os.write

    def take_little(file: int, data: bytes) -> int:
        return write(file, data[:50])

    monkeypatch.setattr(os, "write", take_little)

    written = append(home, path, NOTE, NOTE)

    assert path.read_bytes()[len(before) :].count(b"\n") == 2
    assert written[1] == path.stat().st_size
    assert last(path)["payload"] == NOTE.payload


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_an_append_that_fails_is_taken_back(
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


def test_what_somebody_wrote_behind_a_failed_append_stays(
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


def test_without_the_threads_own_lock_nothing_is_written(home: Home, tmp_path: Path) -> None:
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


def test_the_writer_decides_no_metadata_since_it_knows_none(home: Home) -> None:
    command = "import sys, codex_checkpoints.storage.writer; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", command],
        env=home.environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())

    assert "codex_checkpoints.storage.durable" in loaded
    knowing = ("index", "names", "query", "local")
    assert loaded.isdisjoint({"sqlite3", *(f"codex_checkpoints.storage.{n}" for n in knowing)})


# --- moving and removing -------------------------------------------------------------------------


def test_a_moved_file_keeps_bytes_and_time_and_never_replaces_one(home: Home) -> None:
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


def test_removing_a_file_that_is_gone_is_no_error(home: Home) -> None:
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


def test_temporary_files_that_were_left_are_removed_and_nothing_else(home: Home) -> None:
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


def test_a_temporary_file_stays_while_another_process_writes_it(home: Home) -> None:
    path = home.path()

    def lines() -> Iterator[bytes]:
        yield b'{"type":"session_meta","payload":{}}\n'
        assert writer.clear_leftovers(str(home.state), str(home.root)) == 0

    writer.publish(str(path), lines(), str(home.state))

    assert path.exists()


def test_a_temporary_file_of_a_thread_that_is_held_stays(home: Home) -> None:
    beside = leave(home.path().parent / f".{home.path().name}.tmp")

    with hold(home):
        assert writer.clear_leftovers(str(home.state), str(home.root)) == 0
    assert beside.exists()
    assert writer.clear_leftovers(str(home.state), str(home.root)) == 1


def test_without_any_folder_there_is_nothing_to_clear(tmp_path: Path) -> None:
    assert writer.clear_leftovers(str(tmp_path / "state"), str(tmp_path / "home")) == 0


# --- two at once ---------------------------------------------------------------------------------

APPEND = """
import sys, time
from datetime import UTC, datetime
from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import Item, ThreadIsLive

home, path, thread, who, seconds = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + float(seconds)
done = refused = 0
while done < 20 or time.monotonic() < end:  # whoever is refused goes on until it was let
    items = [Item("event_msg", {"who": who, "number": done, "part": n, "x": "y" * 5000})
             for n in range(3)]
    try:
        with locks.hold(home, thread) as lock:
            writer.append(path, items, datetime.now(UTC), lock, None)
        done += 1
    except ThreadIsLive:
        refused += 1
print(done, refused)
"""


def seconds() -> float:
    """Say how long to write: a second, or as the environment asks (a minute finds more)."""
    return float(os.environ.get("CODEX_CHECKPOINTS_LONG_TEST", "1"))


@pytest.mark.timeout(240)
def test_two_processes_append_at_once_and_nothing_is_lost_or_mixed(home: Home) -> None:
    path = home.put(chat("hello"))
    before = path.read_bytes()
    command = [sys.executable, "-c", APPEND, str(home.root), str(path), thread(1)]
    env = home.environment() | {"PYTHONPATH": str(SERVER)}
    both = [
        python.Popen(
            [*command, who, str(seconds())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
        )
        for who in ("a", "b")
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=seconds() + 60)[0].split() for process in both]

    assert [process.returncode for process in both] == [0, 0]
    done = dict(zip("ab", (int(each[0]) for each in told), strict=True))
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.endswith(b"\n")
    lines = [json.loads(line) for line in after.splitlines()]
    assert [line["ordinal"] for line in lines] == list(range(len(lines)))
    new = [line["payload"] for line in lines[before.count(b"\n") :]]
    assert [each["part"] for each in new] == [0, 1, 2] * (len(new) // 3)
    assert all(new[n]["who"] == new[n + 2]["who"] for n in range(0, len(new), 3))
    for who, count in done.items():
        mine = [each["number"] for each in new if each["who"] == who]
        assert count >= 20
        assert mine == [number for number in range(count) for _ in range(3)]


def test_while_another_holds_the_lock_there_is_no_lock_to_write_with(home: Home) -> None:
    path = home.put(chat("hello"))

    with hold(home), pytest.raises(ThreadIsLive), hold(home):
        pass

    append(home, path, NOTE)
