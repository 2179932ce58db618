"""Compressed session files are decompressed completely or not at all."""

import os
import sys
import tracemalloc
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import (
    Conflict,
    StorageFailed,
    UnreadableSource,
    Unsupported,
)
from codex_checkpoints.storage.locks import WriterLock
from homes import Home, chat, snapshot, thread

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LONG_AGO = 1_600_000_000 * 10**9
PACKED = ".jsonl.zst"


def hold(home: Home) -> AbstractContextManager[WriterLock]:
    return locks.hold(str(home.root), thread(1))


def files(home: Home) -> list[str]:
    return sorted(path.name for path in home.path().parent.iterdir())


def test_compressed_file_becomes_plain_with_its_time_and_mode(home: Home) -> None:
    packed = home.put(zstd.compress(chat("hello"), 3), form=PACKED)
    packed.chmod(0o640)
    os.utime(packed, ns=(LONG_AGO, LONG_AGO))

    with hold(home) as lock:
        path = Path(writer.unpack(str(packed), lock))

    assert path == home.path()
    assert path.read_bytes() == chat("hello")
    assert path.stat().st_mtime_ns == LONG_AGO
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o777 == 0o640
    assert files(home) == [path.name]


def test_several_frames_are_one_file(home: Home) -> None:
    half = len(chat("hello")) // 2
    frames = [zstd.compress(part) for part in (chat("hello")[:half], chat("hello")[half:])]
    packed = home.put(b"".join(frames), form=PACKED)

    with hold(home) as lock:
        writer.unpack(str(packed), lock)

    assert home.path().read_bytes() == chat("hello")


def test_memory_does_not_grow_with_a_compressed_file(home: Home) -> None:
    packed = home.put(zstd.compress(b"x" * 60_000_000), form=PACKED)

    tracemalloc.start()
    try:
        with hold(home) as lock:
            writer.unpack(str(packed), lock)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert home.path().stat().st_size == 60_000_000
    assert peak < 12_000_000


def broken(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


WHOLE = zstd.compress(
    os.urandom(300_000), options={int(zstd.CompressionParameter.checksum_flag): 1}
)


@pytest.mark.parametrize(
    "data",
    [b"", WHOLE[:-1], WHOLE[:1000], broken(WHOLE), WHOLE + b"more", b"plain text\n"],
    ids=["empty", "one byte short", "cut", "broken", "with more behind", "not packed"],
)
def test_damaged_compressed_file_stays_and_gives_nothing(home: Home, data: bytes) -> None:
    packed = home.put(data, form=PACKED)
    before = snapshot(packed.parent)

    with hold(home) as lock, pytest.raises(UnreadableSource):
        writer.unpack(str(packed), lock)

    assert snapshot(packed.parent) == before


def test_leftover_of_a_killed_process_is_not_an_obstacle(home: Home) -> None:
    packed = home.put(zstd.compress(chat("hello")), form=PACKED)
    (packed.parent / f".{home.path().name}.tmp").write_bytes(b"part")

    with hold(home) as lock:
        writer.unpack(str(packed), lock)

    assert files(home) == [home.path().name]
    assert home.path().read_bytes() == chat("hello")


def test_plain_file_counts_and_its_compressed_twin_is_removed(home: Home) -> None:
    grown = chat("hello") + b'{"ordinal":99}\n'
    home.put(grown)
    packed = home.put(zstd.compress(chat("hello")), form=PACKED)

    with hold(home) as lock:
        assert writer.unpack(str(packed), lock) == str(home.path())

    assert files(home) == [home.path().name]
    assert home.path().read_bytes() == grown


@pytest.mark.parametrize(
    "packed",
    [zstd.compress(chat("goodbye")), zstd.compress(chat("hello") + b"{}\n"), b"not packed"],
    ids=["another", "a longer one", "a damaged one"],
)
def test_two_forms_that_differ_are_both_kept(home: Home, packed: bytes) -> None:
    plain = home.put(chat("hello"))
    twin = home.put(packed, form=PACKED)
    before = snapshot(plain.parent)

    with hold(home) as lock:
        for work in (
            lambda: writer.unpack(str(twin), lock),
            lambda: writer.move(str(plain), str(home.path(archived=True)), lock),
            lambda: writer.remove(str(plain), lock),
        ):
            with pytest.raises(Conflict):
                work()

    assert snapshot(plain.parent) == before


def test_plain_file_is_moved_and_removed_with_its_compressed_twin(home: Home) -> None:
    for end in ("moved", "removed"):
        plain = home.put(chat("hello"))
        home.put(zstd.compress(chat("hello")), form=PACKED)
        with hold(home) as lock:
            if end == "moved":
                writer.move(str(plain), str(home.path(archived=True)), lock)
            else:
                writer.remove(str(plain), lock)
        assert files(home) == []


def test_only_a_held_threads_compressed_file_is_decompressed(home: Home) -> None:
    packed = home.put(zstd.compress(chat("hello")), form=PACKED)

    with hold(home) as lock:
        pass
    with pytest.raises(ValueError, match="no longer"):
        writer.unpack(str(packed), lock)
    with locks.hold(str(home.root), thread(2)) as lock, pytest.raises(Unsupported):
        writer.unpack(str(packed), lock)
    with hold(home) as lock, pytest.raises(Unsupported):
        writer.unpack(str(home.path()), lock)

    assert files(home) == [packed.name]


def test_missing_compressed_file_is_a_conflict_and_a_folder_unreadable(home: Home) -> None:
    packed = home.path(form=PACKED)
    with hold(home) as lock:
        with pytest.raises(Conflict):
            writer.unpack(str(packed), lock)
        packed.mkdir(parents=True)
        with pytest.raises((UnreadableSource, StorageFailed)):
            writer.unpack(str(packed), lock)
