"""The contract of a store for pushed sessions: segments, generations, rows, damage (TEA-8).

The laws that stores of threads keep as well are in `storage/test_every_store.py`.
"""

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_checkpoints.storage.remote.contract import (
    NO_PREFIX,
    SEGMENT,
    AppendResult,
    Elsewhere,
    Head,
    HistoryStore,
    RemoteDamaged,
    Segment,
    SessionRow,
)
from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from codex_checkpoints.storage.remote.packing import SegmentStream, unpacked
from postgres_server import ADMIN
from two_machines import segments

SESSION = "01a1f865-0000-7000-8000-000000000001"

Make = Callable[[Path], HistoryStore]
STORES: dict[str, Make] = {
    "folder": lambda root: FolderHistoryStore(str(root / "remote")),
    "memory": lambda _root: MemoryHistoryStore(),
}


@pytest.fixture(params=[*STORES, "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> HistoryStore:
    if request.param == "postgres":
        made: HistoryStore = request.getfixturevalue("database").store(ADMIN)
    else:
        made = STORES[request.param](tmp_path)
    assert not made.is_made()
    made.make()
    assert made.is_made()
    return made


def prefix(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def put(store: HistoryStore, data: bytes, generation: int = 1, most: int = 700) -> None:
    """Append bytes to a generation from where it ends."""
    head = store.head(SESSION)
    start = head.size if head is not None and head.generation == generation else 0
    for segment in segments(data, start, most):
        assert store.append(SESSION, generation, segment) is AppendResult.TAKEN


def row(data: bytes, generation: int = 1, revision: int = 0, **more: str) -> SessionRow:
    lines = data.count(b"\n")
    ends = generation, len(data), prefix(data), lines
    return SessionRow(SESSION, *ends, ADMIN, "laptop", "1", revision, **more)  # type: ignore[arg-type]


def text(lines: int) -> bytes:
    return b"".join(b'{"line":%d,"x":"%s"}\n' % (n, b"y" * (n % 90)) for n in range(lines))


def test_segment_after_another_prefix_is_refused(store: HistoryStore) -> None:
    put(store, text(20))
    other = text(20).replace(b"y", b"z")
    (segment,) = segments(other + b"more\n", len(other), SEGMENT)

    assert store.append(SESSION, 1, segment) == Elsewhere(len(text(20)), prefix(text(20)))


def test_generation_begins_with_its_first_byte(store: HistoryStore) -> None:
    (segment,) = segments(text(9), 10, SEGMENT)

    assert store.append(SESSION, 4, segment) is AppendResult.UNKNOWN


def test_newest_generation_is_the_head_and_the_older_one_stays(store: HistoryStore) -> None:
    old, new = text(60), text(30)[5:]
    put(store, old)
    put(store, new, generation=2)

    assert store.head(SESSION) == Head(2, len(new), prefix(new))
    assert b"".join(store.read(SESSION, Head(1, len(old), prefix(old)))) == old


def test_history_shorter_than_its_row_is_damaged(store: HistoryStore) -> None:
    data = text(90)
    put(store, data[:2_000], most=500)

    with pytest.raises(RemoteDamaged):
        list(store.read(SESSION, Head(1, len(data), prefix(data))))


@pytest.mark.parametrize("cursor", ["", "x", "5", "null", "[1]", '["b"]', '{"a":1,"b":2,"c":3}'])
def test_cursor_from_another_source_begins_at_the_first_page(
    store: HistoryStore, cursor: str
) -> None:
    data = text(9)
    put(store, data)
    store.put(row(data, title="Fix"), b"records")

    assert store.rows(cursor=cursor) == store.rows()


def test_session_without_a_row_is_in_no_list(store: HistoryStore) -> None:
    data = text(9)
    put(store, data)
    assert store.rows().rows == ()

    store.put(row(data, title="Fix"), b"records\nof it")

    (listed,) = store.rows().rows
    assert listed.row == row(data, title="Fix")
    assert store.row(SESSION) == listed
    assert store.records(SESSION, listed.version) == b"records\nof it"


def test_version_of_a_row_changes_with_it(store: HistoryStore) -> None:
    data = text(9)
    put(store, data)
    store.put(row(data), b"a")
    before = store.row(SESSION)
    store.put(row(data, revision=1, title="New"), b"b")
    after = store.row(SESSION)

    assert before is not None
    assert after is not None
    assert after.row.title == "New"
    assert before.version != after.version
    with pytest.raises(RemoteDamaged):
        store.records(SESSION, before.version)


@pytest.mark.parametrize(
    "older",
    [
        pytest.param((1, 9, 5), id="a shorter history"),
        pytest.param((1, 30, 0), id="an older revision"),
        pytest.param((0, 90, 0), id="an older generation"),
    ],
)
def test_older_row_changes_nothing(store: HistoryStore, older: tuple[int, int, int]) -> None:
    generation, lines, revision = older
    put(store, text(30))
    store.put(row(text(30), revision=1, title="newest"), b"a")

    store.put(row(text(lines), generation, revision, title="older"), b"b")

    found = store.row(SESSION)
    assert found is not None
    assert found.row.title == "newest"


def test_two_alternating_pushers_give_the_same_bytes(store: HistoryStore) -> None:
    data, chance = text(600), random.Random(41)
    while (head := store.head(SESSION) or Head(1, 0, NO_PREFIX)).size < len(data):
        start = head.size - chance.choice([0, 0, 17])  # one may have an older view
        for segment in segments(data, max(0, start), chance.choice([333, 700, 1_234])):
            store.append(SESSION, 1, segment)
            break

    assert b"".join(store.read(SESSION, Head(1, len(data), prefix(data)))) == data


def test_segment_never_decompresses_beyond_its_size() -> None:
    (bomb,) = segments(b"\0" * SEGMENT)
    small = Segment(0, 10, NO_PREFIX, bomb.after, bomb.body)

    with pytest.raises(RemoteDamaged):
        unpacked(small)


def test_stream_hashes_skipped_bytes_and_can_be_cut_anywhere() -> None:
    data = text(50)
    stream = SegmentStream([data[:7], data[7:100], data[100:]], 64)
    assert stream.seek(33)
    first = stream.peek()
    assert stream.seek(64), "within what was peeked at"
    second = stream.peek()

    assert first is not None
    assert second is not None
    assert (first.start, first.end, first.before) == (33, 97, prefix(data[:33]))
    assert (second.before, second.after) == (prefix(data[:64]), prefix(data[:128]))
    assert unpacked(second) == data[64:128]
    assert not stream.seek(10), "it only goes forward"
    assert not stream.seek(len(data) + 1)
    assert stream.peek() is None
