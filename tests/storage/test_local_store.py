"""The store of files: names, Codex's own list, any state of the index, several processes."""

import contextlib
import errno
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forked_python
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.storage import session_files
from codex_checkpoints.storage.contract import (
    Conflict,
    Identity,
    NewThread,
    Patch,
    Rollout,
    StorageFailed,
    ThreadNotFound,
    ThreadQuery,
    UnreadableSource,
    Unsupported,
)
from codex_checkpoints.storage.local import LocalThreadStore
from homes import SERVER, Home, chat, moved, snapshot
from rollouts import Step, event, rollout, session, turn, user
from stores import AT, meta, new, said, thread


class Clock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> str:
        return self.now.isoformat()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(home: Home, clock: Clock) -> Generator[LocalThreadStore]:
    made = LocalThreadStore(str(home.root), str(home.state), clock)
    yield made
    made.close()


def metadata(home: Home, number: int = 1) -> Path:
    return home.state / "sessions" / thread(number) / "metadata.jsonl"


def codex_names(home: Home) -> Path:
    return home.root / "session_index.jsonl"


def records(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def name(store: LocalThreadStore, number: int = 1) -> str | None:
    return store.read_thread(thread(number)).name


def give(store: LocalThreadStore, text: str | None, number: int = 1) -> None:
    store.update_thread_metadata([(thread(number), Patch(name=text))])


# --- new files -----------------------------------------------------------------------------------


def test_new_thread_is_stored_where_codex_would_put_it(home: Home, store: LocalThreadStore):
    rollout = store.create_thread(new(1, "paginated", said("one")), AT)

    local = AT.astimezone()
    day = f"{local:%Y/%m/%d}"
    name = f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{thread(1)}.jsonl"
    assert rollout.path == str(home.root / "sessions" / day / name)
    assert sorted(snapshot(home.root)) == sorted(
        [
            *(str(home.root / "sessions" / day.rsplit("/", up)[0]) for up in (0, 1, 2)),
            str(home.root / "sessions"),
            rollout.path,
            *map(str, (home.state, *home.state.glob("index.sqlite*"))),
        ]
    )


def test_invalid_thread_id_makes_no_file(home: Home, store: LocalThreadStore):
    for bad in ("../../x", 7, None):
        with pytest.raises(Unsupported):
            store.create_thread(NewThread(meta(1) | {"id": bad}), AT)
    assert not (home.root / "sessions").exists()


def test_compressed_thread_is_decompressed_before_an_append(store: LocalThreadStore):
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    plain = Path(store.create_thread(new(1, "paginated", said("one")), AT).path)
    data = plain.read_bytes()
    packed = plain.with_name(plain.name + ".zst")
    packed.write_bytes(zstd.compress(data))
    plain.unlink()
    seen = store.rollouts()[str(packed)]

    done = store.append_items(thread(1), [said("two")], AT, seen.version)

    assert plain.read_bytes().startswith(data)
    assert (done.start, done.ordinals) == (len(data), (2, 2))
    assert list(store.rollouts()) == [str(plain)]


def test_thread_that_cannot_be_decompressed_stays_compressed(home: Home, store: LocalThreadStore):
    packed = home.put(b"no frame", form=".jsonl.zst")

    with pytest.raises(UnreadableSource):
        store.append_items(thread(1), [said("x")], AT)

    assert packed.read_bytes() == b"no frame"
    assert list(store.rollouts()) == [str(packed)]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_no_session_file_is_put_behind_a_link(home: Home, store: LocalThreadStore, tmp_path: Path):
    archived = home.put(chat("x", 2), 2, archived=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home.root / "sessions").mkdir()
    (home.root / "sessions" / "2026").symlink_to(elsewhere)

    with pytest.raises(Unsupported, match="link"):
        store.create_thread(new(1), AT)
    with pytest.raises(Unsupported, match="link"):
        store.unarchive_thread(thread(2))

    assert list(elsewhere.iterdir()) == []
    assert archived.exists()
    assert list(home.state.glob(".rollout*")) == []


def test_possible_base_of_an_unreadable_thread_is_not_deleted(home: Home, store: LocalThreadStore):
    made = store.create_thread(new(1), AT)
    unreadable = home.put(b"no frame", 2, form=".jsonl.zst")

    with pytest.raises(Conflict):
        store.delete_thread(thread(1))

    assert Path(made.path).exists()
    unreadable.unlink()
    store.delete_thread(thread(1))
    assert not Path(made.path).exists()


def test_inode_numbers_may_exceed_database_integers(home: Home, monkeypatch: pytest.MonkeyPatch):
    """Identities have up to 128 bits, and a file may be of another century."""
    path = home.put(chat("x"))

    inode = path.stat().st_ino | 1 << 100 | 1 << 63

    def strange(path: str, name: Identity, status: os.stat_result, *, archived: bool) -> Rollout:
        found = SimpleNamespace(st_size=status.st_size, st_mtime_ns=10**19, st_ino=inode)
        return plain(path, name, cast("os.stat_result", found), archived=archived)

    plain = session_files.rollout_of
    monkeypatch.setattr(session_files, "rollout_of", strange)
    with home.house() as house:
        assert house.sessions.summaries.page().items[0].session_id == thread(1)
        assert house.sessions.catalogue.store.faults() == ()
        rollout = house.sessions.catalogue.current()[thread(1)].rollout
        assert rollout.modified_ns == 2**63 - 1
    with home.house(fresh=False) as house:
        assert house.sessions.catalogue.current()[thread(1)].rollout == rollout


def test_interrupted_archive_is_finished_by_the_next(home: Home, store: LocalThreadStore):
    first = home.put(chat("first", 1), 1)
    home.put(chat("first", 1), 1, segment=5)
    archived = home.root / "archived_sessions"
    archived.mkdir()
    first.rename(archived / first.name)

    assert store.archive_thread(thread(1)).archived

    assert len(list(archived.iterdir())) == 2


# --- names ---------------------------------------------------------------------------------------


def test_name_is_stored_as_a_line_of_our_file(home: Home, store: LocalThreadStore, clock: Clock):
    home.put(chat("x"))
    give(store, "first")
    clock.now += timedelta(minutes=1)
    give(store, "日本")
    give(store, None)

    assert metadata(home).read_bytes().decode().splitlines() == [
        '{"at":"2026-11-21T12:00:00.123Z","name":"first"}',
        '{"at":"2026-11-21T12:01:00.123Z","name":"日本"}',
        '{"at":"2026-11-21T12:01:00.123Z","name":null}',
    ]


def test_lines_of_others_and_torn_ones_are_skipped(home: Home, store: LocalThreadStore):
    home.put(chat("x"))
    give(store, "kept")
    lines = (b'{"at":"later","pinned":true}', b"[]", b'{"name":7}', b"\xff", b"", b'{"at":"20')
    with metadata(home).open("ab") as file:
        file.write(b"\n".join(lines))

    assert name(store) == "kept"
    give(store, "next")
    assert name(store) == "next"
    assert metadata(home).read_bytes().splitlines()[-2] == b'{"at":"20'


def test_codex_gets_the_name_of_a_legacy_thread_in_its_own_format(
    home: Home, store: LocalThreadStore
):
    codex_names(home).write_bytes(b'{"id":"other","thread_name":"theirs","updated_at":"2026')
    store.create_thread(new(1, "legacy"), AT)
    store.create_thread(new(2, "paginated"), AT)

    give(store, "ours")
    give(store, "not told", 2)
    give(store, None)

    torn, *told_to_codex = codex_names(home).read_bytes().splitlines()
    assert torn.endswith(b'"updated_at":"2026')
    assert [json.loads(line) for line in told_to_codex] == [
        {"id": thread(1), "thread_name": text, "updated_at": "2026-11-21T12:00:00.123Z"}
        for text in ("ours", "")
    ]
    assert name(store, 2) == "not told"


def codex_says(home: Home, text: str, at: str) -> None:
    line = {"id": thread(1), "thread_name": text, "updated_at": at}
    with codex_names(home).open("ab") as file:
        file.write(orjson.dumps(line) + b"\n")


def test_later_name_of_codex_overrides_ours_and_an_earlier_one_does_not(
    home: Home, store: LocalThreadStore, clock: Clock
):
    home.put(chat("x"))
    codex_says(home, "theirs", "2026-11-21T11:59:59Z")
    assert name(store) == "theirs"
    give(store, "ours")
    for text, at, after in (
        ("a copy of the past", "2026-11-21T13:00:00+02:00", "ours"),
        ("theirs again", "2026-11-21T12:00:01Z", "theirs again"),
        ("", "2026-11-21T12:00:02Z", None),
        ("of no time", "yesterday", "ours"),
    ):
        codex_says(home, text, at)
        assert name(store) == after
    clock.now += timedelta(hours=1)
    give(store, None)
    assert name(store) is None


@pytest.mark.parametrize("ahead", [timedelta(microseconds=1), timedelta(days=1)])
def test_new_name_counts_after_one_of_codex_with_a_clock_ahead(
    home: Home, store: LocalThreadStore, clock: Clock, ahead: timedelta
):
    legacy(home)
    codex_says(home, "theirs", (clock.now + ahead).isoformat())
    assert name(store) == "theirs"

    give(store, "ours")
    assert name(store) == "ours"
    assert records(codex_names(home))[-1]["thread_name"] == "ours"
    give(store, None)
    assert name(store) is None


def test_older_sources_of_names_stay_readable(home: Home):
    renamed: Step = event("thread_name_updated", thread_id=thread(1), thread_name="in the history")
    home.put(rollout(session("legacy", thread=thread(1)), turn(user("x")), renamed))

    with home.house() as house:
        titles = [_page(house)[0].title]
        codex_says(home, "in the list", "2026")
        titles.append(_page(house)[0].title)
        give(cast("LocalThreadStore", house.sessions.catalogue.store), "in the patch")
        titles.append(_page(house)[0].title)
    assert titles == ["in the history", "in the list", "in the patch"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes there")
def test_pipe_in_place_of_a_list_of_names_blocks_nobody(home: Home, store: LocalThreadStore):
    home.put(rollout(session("legacy", thread=thread(1)), user("x")))
    metadata(home).parent.mkdir(parents=True)
    os.mkfifo(metadata(home))
    os.mkfifo(codex_names(home))

    assert name(store) is None
    with pytest.raises(StorageFailed, match="not a regular file"):
        give(store, "x")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_thread_in_a_folder_with_an_undecodable_name_is_not_found(
    home: Home, store: LocalThreadStore
):
    path = home.put(chat("x"))
    folder = os.fsencode(path.parent.parent) + b"/\xff"
    os.rename(path.parent, folder)

    for ask in (store.read_thread, store.archive_thread):
        with pytest.raises(ThreadNotFound):
            ask(thread(1))


@pytest.mark.parametrize(
    ("place", "other"), [(metadata, codex_names), (codex_names, metadata)], ids=["ours", "theirs"]
)
def test_name_that_cannot_be_stored_or_sent_to_codex_is_not_set(
    home: Home,
    store: LocalThreadStore,
    place: Callable[[Home], Path],
    other: Callable[[Home], Path],
):
    legacy(home)
    place(home).mkdir(parents=True)

    with pytest.raises(StorageFailed, match=f"not kept: {place(home).name}"):
        give(store, "lost")
    assert name(store) is None
    assert not other(home).exists()


def legacy(home: Home) -> None:
    home.put(rollout(session("legacy", thread=thread(1)), user("x")))


def test_name_without_room_in_codexs_list_is_reported_as_stored(
    home: Home, store: LocalThreadStore, monkeypatch: pytest.MonkeyPatch
):
    legacy(home)
    codex_names(home).touch()
    write, theirs = os.write, codex_names(home).stat()

    def full(file: int, data: bytes) -> int:
        if os.path.samestat(os.fstat(file), theirs):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageFailed, match="is kept, but Codex does not see it"):
        give(store, "here alone")
    assert name(store) == "here alone"


# --- whatever becomes of the index ---------------------------------------------------------------


def absent(home: Home) -> None:
    for path in home.state.glob("index.sqlite*"):
        path.unlink()


def corrupt(home: Home) -> None:
    for path in home.state.glob("index.sqlite*"):
        path.write_bytes(random.Random(1).randbytes(20_000))


def of_another_version(home: Home) -> None:
    with contextlib.closing(sqlite3.connect(home.state / "index.sqlite")) as database:
        database.execute("PRAGMA user_version = 1")
        database.commit()


def a_folder(home: Home) -> None:
    absent(home)
    (home.state / "index.sqlite").mkdir()


@contextlib.contextmanager
def locked(home: Home) -> Generator[None]:
    database = sqlite3.connect(home.state / "index.sqlite", isolation_level=None)
    with contextlib.closing(database):
        database.execute("BEGIN EXCLUSIVE")
        yield


Listing = list[tuple[object, ...]]


def listing(home: Home) -> Listing:
    """List as a new process does: after a scan."""
    with home.house() as house:
        pages = (
            house.sessions.summaries.page(ThreadQuery(archived=archived)).items
            for archived in (False, True)
        )
        return [
            (each.session_id, each.title, each.task, each.forked_from, each.archived)
            for page in pages
            for each in page
        ]


@pytest.fixture
def stocked(home: Home) -> Home:
    """Sessions with names of every source, a fork, an archived one."""
    for number in range(1, 6):
        home.put(chat(f"task {number}", number), number)
    home.put(rollout(session("legacy", thread=thread(6)), user("six")), 6)
    home.put(rollout(session(thread=thread(7), forked_from_id=thread(1)), turn(user("seven"))), 7)
    with home.house() as house:
        for number in (1, 2, 6):
            house.sessions.rename(thread(number), f"name {number}")
        house.sessions.rename(thread(2), None)
        moved(house.sessions.threads, thread(3), archive=True)
    return home


@pytest.mark.parametrize("damage", [absent, corrupt, of_another_version, a_folder])
def test_lists_names_and_lineage_do_not_depend_on_the_index(
    stocked: Home, damage: Callable[[Home], None]
):
    whole = listing(stocked)
    assert [entry[1] for entry in whole if entry[0] == thread(1)] == ["name 1"]
    assert [entry[3] for entry in whole if entry[0] == thread(7)] == [thread(1)]

    damage(stocked)

    assert listing(stocked) == whole
    assert listing(stocked) == whole


@pytest.mark.parametrize("damage", [absent, corrupt, a_folder])
def test_index_may_vanish_at_any_moment(stocked: Home, damage: Callable[[Home], None]):
    with stocked.house() as house:
        whole = [item.title or "" for item in house.sessions.summaries.page().items]
        damage(stocked)
        house.sessions.rename(thread(4), "after the damage")
        stocked.put(chat("task 8", 8), 8)
        house.sessions.refresh()
        titles = [item.title for item in house.sessions.summaries.page().items]

    expected = sorted([*(each for each in whole if each != "task 4"), "after the damage", "task 8"])
    assert sorted(title or "" for title in titles) == expected
    assert sorted(str(entry[1]) for entry in listing(stocked) if not entry[4]) == expected


@pytest.mark.parametrize("made", [True, False])
def test_names_are_set_while_the_index_is_locked(
    stocked: Home, monkeypatch: pytest.MonkeyPatch, *, made: bool
):
    from codex_checkpoints.storage import index

    monkeypatch.setattr(index, "BUSY_SECONDS", 0.05)
    stocked.put(chat("task 8", 8), 8)
    if not made:
        absent(stocked)
    with locked(stocked), stocked.house() as house:
        house.sessions.rename(thread(4), "in spite of it")
        assert house.sessions.summaries.page(ThreadQuery(search="in spite")).items[
            0
        ].session_id == thread(4)
        assert [each.code for each in house.sessions.catalogue.store.faults()] == [
            "index_unavailable"
        ]

    assert (thread(4), "in spite of it") in [entry[:2] for entry in listing(stocked)]


Operation = tuple[str, int]


@settings(
    max_examples=int(os.environ.get("CODEX_CHECKPOINTS_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    operations=st.lists(
        st.tuples(
            st.sampled_from(
                ("create", "append", "rename", "archive", "unarchive", "delete", "drop", "look")
            ),
            st.integers(1, 4),
        ),
        max_size=14,
    )
)
def test_index_equals_a_scan(operations: list[Operation], tmp_path_factory: pytest.TempPathFactory):
    from codex_checkpoints.service.refusal import Refusal

    home = Home(tmp_path_factory.mktemp("law"))
    with home.house() as house:
        threads = house.sessions.threads
        for step, (what, number) in enumerate(operations):
            with contextlib.suppress(Refusal):
                match what:
                    case "create":
                        mode = "legacy" if number % 2 else "paginated"
                        threads.create(new(number, mode, said(f"made in {step}")), AT)
                    case "append":
                        threads.append(thread(number), [said(f"said in {step}")], AT)
                    case "rename":
                        threads.rename(thread(number), f"named in {step}" if step % 3 else None)
                    case "drop":
                        absent(home)
                    case "look":
                        house.sessions.refresh()
                    case "delete":
                        threads.delete(thread(number))
                    case _:
                        moved(threads, thread(number), archive=what == "archive")
        told_on_the_way = dict(house.sessions.catalogue.current())
        pages = [
            house.sessions.summaries.page(ThreadQuery(archived=archived)).items
            for archived in (False, True)
        ]
    by_index = listing(home)
    absent(home)

    assert listing(home) == by_index
    with home.house() as house:
        assert dict(house.sessions.catalogue.current()) == told_on_the_way
        again = [
            house.sessions.summaries.page(ThreadQuery(archived=archived)).items
            for archived in (False, True)
        ]
    assert again == pages


# --- several at once -----------------------------------------------------------------------------

WORKER = """
import sys, time
from datetime import UTC, datetime
from codex_checkpoints.storage import records
from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.storage.contract import HistoryItem, Patch, ThreadIsLive, ThreadQuery
from codex_checkpoints.storage.local import LocalThreadStore

home, who, seconds, *threads = sys.argv[1:]
store = LocalThreadStore(home, home + "/codex-checkpoints", records.now)
catalogue = SessionIndex(store, store.index)
end, count = time.monotonic() + float(seconds), 0
written = {thread: 0 for thread in threads}
while time.monotonic() < end or count < 20:
    thread = threads[count % len(threads)]
    count += 1
    text = f"{who} {count} " + "x" * (count * 37 % 9000)
    while True:
        try:
            said = {"type": "user_message", "message": text}
            items = [HistoryItem("event_msg", {**said, "part": part}) for part in (1, 2)]
            store.append_items(thread, items, datetime.now(UTC))
            break
        except ThreadIsLive:
            time.sleep(0.001)
    store.update_thread_metadata([(thread, Patch(name=f"{who} {count}"))])
    for _ in catalogue.refresh():
        pass
    assert {each.row.session_id for each in store.list_threads(ThreadQuery()).items} >= set(threads)
store.close()
print(count)
"""


def test_concurrent_writers_and_lists_lose_nothing(home: Home, store: LocalThreadStore):
    """Set CODEX_CHECKPOINTS_SECONDS for a longer run."""
    seconds = os.environ.get("CODEX_CHECKPOINTS_SECONDS", "1")
    threads = [thread(number) for number in (1, 2, 3)]
    for number, mode in ((1, "paginated"), (2, "legacy"), (3, "paginated")):
        store.create_thread(new(number, mode), AT)
    command = [sys.executable, "-c", WORKER, str(home.root)]
    workers = [
        forked_python.Popen(
            [*command, who, seconds, *threads],
            env=home.environment({"PYTHONPATH": str(SERVER)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for who in ("ada", "bob")
    ]
    counts: dict[str, int] = {}
    for who, worker in zip(("ada", "bob"), workers, strict=True):
        out, error = worker.communicate(timeout=float(seconds) + 90)
        assert worker.returncode == 0, error.decode()
        counts[who] = int(out)

    said_by: dict[str, list[int]] = {"ada": [], "bob": []}
    for number, thread_id in enumerate(threads, 1):
        found = [
            orjson.loads(line)
            for line in Path(store.read_thread(thread_id).row.path).read_bytes().splitlines()
        ]
        if number != 2:
            assert [each["ordinal"] for each in found] == list(range(len(found)))
        texts = [each["payload"]["message"].split(" ") for each in found[1:]]
        parts = [each["payload"]["part"] for each in found[1:]]
        assert parts == [1, 2] * (len(parts) // 2)
        assert texts[::2] == texts[1::2]
        for who, count, filling in texts[::2]:
            assert filling == "x" * (int(count) * 37 % 9000)
            said_by[who].append(int(count))
        named = [line["name"].split() for line in records(metadata(home, number))]
        assert sorted(named) == sorted([who, count] for who, count, _ in texts[::2])
    for who, count in counts.items():
        assert sorted(said_by[who]) == list(range(1, count + 1))
    assert len(records(codex_names(home))) == len(records(metadata(home, 2)))
    with home.house() as house:
        assert {each.title for each in _page(house)} == {name(store, n) for n in (1, 2, 3)}


def _page(house: Assembly) -> Any:  # noqa: ANN401 - summaries
    return house.sessions.summaries.page().items


# --- where things are written --------------------------------------------------------------------


def test_metadata_is_written_in_one_place():
    """STO-3: whoever wants to change metadata calls `update_thread_metadata`."""
    package = SERVER / "codex_checkpoints"
    for call, home_of_it in (
        ("self.index.put(", "storage/store.py"),
        ("_given.give(", "storage/local.py"),
        ("append_line(", None),
    ):
        users = {
            str(path.relative_to(package))
            for path in package.rglob("*.py")
            if call in path.read_text(encoding="utf-8")
        }
        assert users == (
            {home_of_it} if home_of_it else {"storage/atomic_files.py", "storage/local.py"}
        )


def test_derived_metadata_is_written_in_one_transaction_a_batch(
    home: Home, store: LocalThreadStore, monkeypatch: pytest.MonkeyPatch
):
    from codex_checkpoints.storage.index import Index

    for number in range(1, 301):
        home.put(chat("x", number), number)
    sizes: list[int] = []
    put = Index.put

    def counting(self: Index, rows: Any, gone: Any = ()) -> None:  # noqa: ANN401
        rows = list(rows)
        sizes.append(len(rows))
        put(self, rows, gone)

    monkeypatch.setattr(Index, "put", counting)
    list(SessionIndex(store, store.index).refresh())

    assert sizes == [250, 50]
