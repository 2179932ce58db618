"""The laws of every store of histories: Codex's files, a folder, PostgreSQL, memory (TEA-8).

No test knows which store it has.  The laws of threads alone (locks, archive, ordinals, names) are
in `test_contract.py`, those of pushed sessions alone (generations, damage, records) in
`remote/test_history_store.py`.
"""

import itertools
import json
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from disks import mounted
from every_store import (
    EveryStore,
    Facts,
    Pushed,
    PushedToFolder,
    PushedToServer,
    Stale,
    Threads,
    joined,
)
from stores import local, memory

Open = Callable[[Path, ExitStack], EveryStore]


def pushed_to(folder: Path, _opened: ExitStack) -> EveryStore:
    """Return a new store in a folder."""
    store = FolderHistoryStore(str(folder / "remote"))
    store.make()
    return PushedToFolder(store)


def pushed(_folder: Path, _opened: ExitStack) -> EveryStore:
    """Return a new store of pushed sessions in memory."""
    store = MemoryHistoryStore()
    store.make()
    return Pushed(store)


def files(folder: Path, opened: ExitStack) -> EveryStore:
    """Return a new store of session files, with the files of ours beside the folder."""
    return Threads(opened.enter_context(local(folder, folder.with_name("state"))), folder)


def threads(folder: Path, opened: ExitStack) -> EveryStore:
    """Return a new store of threads in memory."""
    return Threads(opened.enter_context(memory(folder)))


ON_DISK: dict[str, Open] = {"local files": files, "folder": pushed_to}
STORES: dict[str, Open] = {
    **ON_DISK,
    "threads in memory": threads,
    "pushed sessions in memory": pushed,
}
SERVER = "postgres"


@pytest.fixture(params=[*STORES, SERVER])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[EveryStore]:
    with ExitStack() as opened:
        yield opened_store(request, tmp_path / "disk", opened)


@pytest.fixture(params=[*ON_DISK, SERVER])
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[EveryStore]:
    """Give a store that may vanish or refuse."""
    with ExitStack() as opened:
        disk = tmp_path / "disk"
        if request.param != SERVER:
            opened.enter_context(mounted(disk))
        yield opened_store(request, disk, opened)


def opened_store(request: pytest.FixtureRequest, folder: Path, opened: ExitStack) -> EveryStore:
    if request.param == SERVER:
        return PushedToServer(request.getfixturevalue("team"))
    return STORES[request.param](folder, opened)


numbers = itertools.count(1)
"""The examples of one test share a store, so each has sessions of its own."""

examples = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def line(text: str = "", **more: object) -> bytes:
    return orjson.dumps({"type": "event_msg", "text": text, **more})


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
LINES = st.lists(TEXTS.map(line), min_size=1, max_size=4)
# Lines that are added to Codex's file are ASCII: cut off, they are still the UTF-8 it asks for.
OUR_LINES = st.lists(TEXTS.map(lambda text: json.dumps({"text": text}).encode()), min_size=1)


# --- bytes ---------------------------------------------------------------------------------------


@examples
@given(appends=st.lists(LINES, max_size=5), cut=st.floats(0, 1))
def test_appended_bytes_are_read_back_from_any_offset(
    store: EveryStore, appends: list[list[bytes]], cut: float
):
    number = next(numbers)
    data = store.begin(number)
    seen = {store.now(number): data}
    for lines in appends:
        data += joined(lines)
        seen[store.grow(number, *lines)] = data

    assert len(seen) == 1 + len(appends), "each append gives another version"
    for each in (store, store.another()):
        assert each.now(number) == store.now(number)
        for version, then in seen.items():
            start = int(cut * len(then))
            assert version.size == len(then)
            assert each.read(number, version, start) == then[start:]


def test_append_from_a_stale_version_is_refused_and_changes_nothing(store: EveryStore):
    store.begin(1)
    first = store.now(1)
    store.append(1, [line("one")], first)
    before, second = store.whole(1), store.now(1)

    for _ in range(2):
        with pytest.raises(Stale):
            store.append(1, [line("two")], first)
        assert (store.whole(1), store.now(1)) == (before, second)

    store.append(1, [line("two")], second)
    assert store.whole(1) == before + joined([line("two")])


@examples
@given(turns=st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=12))
def test_one_of_two_appenders_wins_and_the_other_learns_where_to_go_on(
    store: EveryStore, turns: list[tuple[int, bool]]
):
    """An appender looks at the version either just now, or when it appended last."""
    number = next(numbers)
    expected = [store.begin(number)]
    appenders = (store, store.another())
    known = [each.now(number) for each in appenders]
    for step, (who, looks) in enumerate(turns):
        appender, its = appenders[who], [line(who=who, step=step)]
        known[who] = appender.now(number) if looks else known[who]
        is_new = known[who] == store.now(number)
        try:
            appender.append(number, its, known[who])
        except Stale:
            assert not is_new
            known[who] = appender.now(number)
            appender.append(number, its, known[who])
        else:
            assert is_new
        known[who] = appender.now(number)
        expected.append(joined(its))

    assert store.whole(number) == b"".join(expected)


@examples
@given(lines=OUR_LINES, share=st.floats(0, 1))
def test_cut_append_never_shows_half_a_line(store: EveryStore, lines: list[bytes], share: float):
    number = next(numbers)
    begun = store.begin(number).splitlines()

    store.cut(number, lines, share)
    after_cut = [each for each in store.whole(number).splitlines() if is_whole(each)]
    store.grow(number, line("later"))

    arrived = after_cut[len(begun) :]
    assert after_cut == begun + lines[: len(arrived)]
    found = [each for each in store.whole(number).split(b"\n") if is_whole(each)]
    assert found == [*after_cut, line("later")]


def is_whole(data: bytes) -> bool:
    """Return whether a line is a record, as every reader decides it."""
    try:
        return isinstance(orjson.loads(data), dict)
    except orjson.JSONDecodeError:
        return False


def test_unknown_session_is_absent(store: EveryStore):
    store.begin(1)

    assert store.version(2) is None
    assert store.listed(text="000000000002") == []
    assert store.delete(2) is False
    with pytest.raises((Stale, *store.gone)):
        store.append(2, [line("x")], store.now(1))
    assert store.version(2) is None
    assert store.delete(2) is False


# --- lists ---------------------------------------------------------------------------------------


def stock(store: EveryStore, **each: Facts) -> dict[int, str]:
    """Begin described sessions with the numbers 1, 2, ...; return their keys by number."""
    for number, facts in enumerate(each.values(), 1):
        store.begin(number)
        store.describe(number, facts)
    return dict(enumerate(each, 1))


def test_newest_session_comes_first_and_ties_are_sorted_by_id(store: EveryStore):
    days = {"a": 1, "b": 9, "c": 3, "d": 9, "e": 5}
    keys = stock(store, **{key: Facts(f"2026-11-{day:02}") for key, day in days.items()})

    assert "".join(keys[each] for each in store.listed()) == "bdeca"
    pages, cursor = [store.page(2, None)], None
    while (cursor := pages[-1][1]) is not None:
        pages.append(store.page(2, cursor))
    assert ["".join(keys[each] for each in found) for found, _ in pages] == ["bd", "ec", "a"]


QUERIES: list[tuple[str | None, str | None, str]] = [
    ("/w/a", None, "deep a"),
    ("/w/a/", None, "deep a"),
    ("/w", None, "deep ab a"),
    ("/W/A", None, ""),
    ("/", None, "deep ab a"),
    ("C:\\", None, "win"),
    (r"c:\Work", None, "win"),
    ("C:/WORK/x/", None, "win"),
    ("\\\\?\\C:\\work\\", None, "win"),
    (r"C:\Wor", None, ""),
    (r"\\HOST\Share", None, "share"),
    (r"\\?\UNC\host\share", None, "share"),
    (r"\\host\x", None, ""),
    (None, "MEND", "deep"),
    (None, "/w/AB", "ab"),
    (None, "nAmed", "none"),
    (None, "000000000003", "ab"),
    (None, "straße", "deep"),
    (None, "STRASSE", "deep"),
    (None, "ΣΊΣΥΦΟΣ", "deep"),
    (None, "日本", "deep"),
    (None, "ı", ""),
    (None, "mend straße", ""),
    (None, "*", ""),
    (None, "", "none deep win ab a share"),
    ("/w", "mend", "deep"),
    ("/w/ab", "mend", ""),
]


def test_list_is_filtered_by_folder_and_text(store: EveryStore):
    keys = stock(
        store,
        share=Facts("2026-11-01", r"\\host\share\work"),
        a=Facts("2026-11-02", "/w/a"),
        ab=Facts("2026-11-03", "/w/ab"),
        win=Facts("2026-11-04", r"C:\Work\x"),
        deep=Facts("2026-11-05", "/w/a/deep", "Mend the house in der Straße, σίσυφος, 日本語"),
        none=Facts("2026-11-06"),
    )
    store.rename(6, "Named")

    found = [
        (cwd, text, " ".join(keys[each] for each in store.listed(cwd, text)))
        for cwd, text, _ in QUERIES
    ]
    assert found == QUERIES


@example(stamps=[*"edcba"], size=2, changes=[(1, "go")])  # the last one of a page
@example(stamps=[*"edcba"], size=2, changes=[(1, "renew")])
@examples
@given(
    stamps=st.lists(st.sampled_from("abcde"), min_size=1, max_size=8),
    size=st.integers(1, 3),
    changes=st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(("go", "come", "renew"))), max_size=6
    ),
)
def test_pages_hold_each_session_once_while_others_come_and_go(
    store: EveryStore, stamps: list[str], size: int, changes: list[tuple[int, str]]
):
    for number in store.listed():
        store.delete(number)
    stock(store, **{str(place): Facts(stamp) for place, stamp in enumerate(stamps)})
    pending, moved, seen = iter(changes), set[int](), list[int]()
    cursor: str | None = None
    for _ in range(30):
        found, cursor = store.page(size, cursor)
        assert len(found) <= size
        seen += found
        if cursor is None:
            break
        moved |= change(store, *next(pending, (0, "")))

    assert cursor is None
    steady = set(range(1, len(stamps) + 1)) - moved
    assert [each for each in seen if each in steady] == [
        each for each in store.listed() if each in steady
    ]


def change(store: EveryStore, place: int, how: str) -> set[int]:
    """Have a session go, come or move to the top; return it."""
    number = place + 1 + (50 if how == "come" else 0)
    if not how:
        return set()
    if how == "go":
        store.delete(number)
    else:
        if store.version(number) is None:
            store.begin(number)
        store.describe(number, Facts("f" if how == "renew" else "c"))
    return {number}


# --- metadata, deletion --------------------------------------------------------------------------


def test_newest_title_counts_and_null_clears_it(store: EveryStore):
    stock(store, one=Facts(task="one"), two=Facts(task="two"))
    data = store.whole(1)

    assert store.title(1) is None
    for title in ("first", "wörk 日本", "first", None, "again"):
        store.rename(1, title)
        for each in (store, store.another()):
            assert each.title(1) == title
    store.describe(1, Facts(task="later"))
    assert store.title(1) == "again"
    assert store.listed(text="later") == [1]
    assert store.listed(text="one") == []

    assert store.title(2) is None
    assert store.whole(1) == data, "metadata changes no history"


def test_deletion_removes_everything_and_only_once(store: EveryStore):
    stock(store, one=Facts(), two=Facts())
    store.rename(1, "first")
    version = store.grow(1, line("one"))

    assert store.delete(1) is True

    for each in (store, store.another()):
        assert each.version(1) is None
        assert each.delete(1) is False
        with pytest.raises(each.unreadable):
            each.read(1, version)
    assert store.listed() == [2]
    store.begin(1)
    assert store.version(1) != version


# --- failures ------------------------------------------------------------------------------------


def test_vanished_store_fails_with_its_documented_error(outside: EveryStore):
    outside.begin(1)
    version = outside.grow(1, line("one"))
    data = outside.whole(1)

    with outside.lose():
        with pytest.raises(outside.gone):
            outside.read(1, version)
        with pytest.raises(outside.gone):
            outside.append(1, [line("two")], version)

    assert outside.now(1) == version
    assert outside.whole(1) == data
    outside.append(1, [line("two")], version)


def test_store_that_permits_no_writing_refuses_and_can_be_read(outside: EveryStore):
    outside.begin(1)
    version = outside.grow(1, line("one"))
    data = outside.whole(1)

    with outside.protect():
        with pytest.raises(outside.refused):
            outside.append(1, [line("two")], version)
        assert outside.whole(1) == data

    assert outside.now(1) == version
    outside.append(1, [line("two")], version)
    assert outside.whole(1) == data + joined([line("two")])
