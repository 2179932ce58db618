"""Threads that are written to: the policy, the order of steps, and the calls of the store."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import asdict

from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.service.records import operation_records
from codex_checkpoints.service.records.operation_records import DeleteBlock
from codex_checkpoints.service.sessions.deletion import delete
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.threads import KEPT, TRANSIENT, ThreadManager, is_kept
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.storage.contract import (
    Copied,
    HistoryItem,
    Patch,
    Row,
    StorageFailed,
    StoreError,
    ThreadIsLive,
    ThreadQuery,
    Unset,
)
from codex_checkpoints.storage.memory import InMemoryThreadStore
from codex_checkpoints.storage.records import Records
from codex_checkpoints.storage.store import ThreadStore
from homes import Home, chat, moved, refusal
from homes import thread as thread_of
from rollouts import based_on, rollout, session, turn, user
from stores import AT, STORES, Shop, new, said, thread

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Call = tuple[str, Any]


class Recording(InMemoryThreadStore):
    """A store that notes what changes it was asked for, in order, and may be out of room."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.full = False

    def append_items(self, thread_id: str, items: Any, at: Any, expected: Any = None) -> Any:  # noqa: ANN401
        self.calls.append(("append", list(items)))
        if self.full:
            raise StorageFailed("no space left")
        return super().append_items(thread_id, items, at, expected)

    def update_thread_metadata(self, patches: Any) -> None:  # noqa: ANN401
        patches = list(patches)
        self.calls += [("patch", each) for each in patches]
        super().update_thread_metadata(patches)


def derived(call: Call) -> Row:
    """Return what a patch told of a rollout, and hold that it told nothing else."""
    what, (_, patch) = call
    assert (what, type(patch)) == ("patch", Patch)
    assert isinstance(patch.name, Unset)
    assert isinstance(patch.row, Row)
    return patch.row


@pytest.fixture
def store() -> Generator[Recording]:
    made = Recording()
    yield made
    made.close()


@pytest.fixture
def threads(store: Recording) -> ThreadManager:
    manager = ThreadManager(SessionIndex(store, store.index))
    manager.create(new(1, "legacy", said("first")), AT)
    manager.create(new(2, "legacy", said("other")), AT)
    store.calls.clear()
    return manager


# --- the policy ----------------------------------------------------------------------------------


POLICY = [
    *((HistoryItem(kind, {"type": "of the future"}), True) for kind in sorted(KEPT)),
    *(
        (HistoryItem(each, {"type": kind}), False)
        for each in TRANSIENT
        for kind in sorted(TRANSIENT[each])
    ),
    (HistoryItem("session_meta", {"id": thread(1)}), False),
    (HistoryItem("of_the_future", {}), False),
    (Copied(b"{}"), True),
]


def test_persistent_items_are_kept_and_display_events_are_not():
    assert [(item, is_kept(item)) for item, _ in POLICY] == POLICY


# --- one thread ----------------------------------------------------------------------------------


def test_policy_comes_before_the_append_and_the_append_before_the_patch(
    store: Recording, threads: ThreadManager
):
    live = threads.load(thread(1))
    kept = [said("second"), said("third")]
    passing = HistoryItem("event_msg", {"type": "agent_message_delta"})

    assert live.append([passing], AT) is None
    assert store.calls == []
    live.append([kept[0], passing, kept[1]], AT)

    (append, patch) = store.calls
    assert append == ("append", kept)
    row = derived(patch)
    assert (row.task, row.turns, row.first_text) == ("third", 3, "first")
    assert row.rollout == store.rollouts()[row.path]


def full(*_: object) -> None:
    raise StorageFailed("no space left")


def test_failed_append_sends_no_patch_and_a_failed_patch_keeps_the_append(
    store: Recording, threads: ThreadManager, monkeypatch: pytest.MonkeyPatch
):
    before = store.read_thread(thread(1))
    store.full = True

    refused = refusal(lambda: threads.append(thread(1), [said("lost")], AT))

    assert refused.code == "storage_error"
    assert [what for what, _ in store.calls] == ["append"]
    assert store.read_thread(thread(1)) == before
    store.full = False
    with monkeypatch.context() as patched:
        patched.setattr(store, "update_thread_metadata", full)
        assert threads.append(thread(1), [said("kept")], AT) is not None
    catalogue = SessionIndex(store, store.index)
    list(catalogue.refresh())
    assert catalogue.current()[thread(1)].task == "kept"


def test_watcher_learns_of_threads_made_and_continued_here(
    store: Recording, threads: ThreadManager
):
    assert threads.take_changed() == {thread(1), thread(2)}
    threads.append(thread(1), [HistoryItem("event_msg", {"type": "warning"})], AT)
    store.full = True
    refusal(lambda: threads.append(thread(1), [said("lost")], AT))
    assert threads.take_changed() == set()
    store.full = False

    threads.append(thread(1), [said("kept")], AT)

    assert [threads.take_changed() for _ in range(2)] == [{thread(1)}, set()]


def test_thread_continues_in_the_rollout_that_another_process_began(
    store: Recording, threads: ThreadManager
):
    live = threads.load(thread(1))
    first = store.read_thread(thread(1)).row.path
    later = store.put(
        thread(1), rollout(session("legacy", thread=thread(1)), user("anew")), thread(5)
    )

    live.append([said("more")], AT)
    live.append([said("yet more")], AT)

    row = store.read_thread(thread(1)).row
    assert (row.path, row.task, row.turns) == (later.path, "yet more", 3)
    assert store.rows()[first].task == "first"


def test_patch_equals_a_full_reading(store: Recording, threads: ThreadManager):
    for number in range(5):
        threads.append(thread(1), [said(f"number {number}")], AT)

    told = store.read_thread(thread(1)).row
    afresh = SessionIndex(store, store.index)
    store.update_thread_metadata([(thread(1), Patch(row=None, of=told.path))])
    list(afresh.refresh())

    assert afresh.current()[thread(1)] == told


def test_only_new_lines_are_read(store: Recording, threads: ThreadManager):
    live = threads.load(thread(1))
    live.append([said("x" * 90_000)], AT)
    fed: list[int] = []
    read = store.reader.read

    def counting(path: str, offset: int, feed: Callable[[bytes], int], limit: Any = None) -> Any:  # noqa: ANN401
        fed.append(offset)
        return read(path, offset, feed, limit)

    store.reader.read = counting
    appended = live.append([said("y")], AT)

    assert appended is not None
    assert fed == [appended.start]


# --- one entry point -----------------------------------------------------------------------------


@pytest.mark.parametrize("loaded", [False, True])
def test_loaded_and_cold_threads_are_changed_by_the_same_call(
    store: Recording, threads: ThreadManager, monkeypatch: pytest.MonkeyPatch, loaded: bool
):
    from codex_checkpoints.service.sessions.threads import LiveThread

    through: list[str] = []
    plain = LiveThread.update_metadata

    def update(self: LiveThread, patch: Patch) -> None:
        through.append(self.thread_id)
        plain(self, patch)

    monkeypatch.setattr(LiveThread, "update_metadata", update)
    if loaded:
        threads.load(thread(1))

    threads.rename(thread(1), "a name")

    assert through == ([thread(1)] if loaded else [])
    assert store.calls == [("patch", (thread(1), Patch(name="a name")))]
    assert store.read_thread(thread(1)).name == "a name"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("plain", "plain"),
        ("  two\nlines\t\x1b[31m and \u202ered ", "two lines [31m and  red"),
        ("x" * 161, "x" * 159 + "…"),
        ("日" * 160, "日" * 160),
        (" \n\t", None),
        ("", None),
        (None, None),
    ],
)
def test_name_is_one_short_line(
    store: Recording, threads: ThreadManager, given: str | None, kept: str | None
):
    threads.rename(thread(1), given)

    assert store.calls == [("patch", (thread(1), Patch(name=kept)))]


def test_refusal_of_a_store_becomes_a_refusal(store: Recording, threads: ThreadManager):
    one, items = thread(1), [said("x")]

    def codes(*calls: Callable[[], object]) -> set[str]:
        return {refusal(call).code for call in calls}

    assert codes(lambda: threads.rename(thread(9), "x"), lambda: threads.load(thread(9))) == {
        "unknown_session"
    }
    assert codes(
        lambda: threads.create(new(1), AT),
        lambda: moved(threads, one, archive=False),
        lambda: threads.append(one, [Copied(b"\xff")], AT),
        lambda: threads.append(one, items, AT, "another"),
    ) == {"conflict"}
    store.live.add(one)
    assert codes(
        lambda: threads.append(one, items, AT),
        lambda: moved(threads, one, archive=True),
        lambda: threads.delete(one),
    ) == {"session_live"}


class Elsewhere(ThreadIsLive):
    pass


class Strange(StoreError):
    pass


@pytest.mark.parametrize(
    ("error", "code"), [(Elsewhere, "session_live"), (Strange, "storage_error")]
)
def test_error_of_another_store_becomes_a_refusal(
    store: Recording,
    monkeypatch: pytest.MonkeyPatch,
    error: type[StoreError],
    code: str,
):
    def fail(*_: object) -> None:
        raise error("said elsewhere")

    manager = ThreadManager(SessionIndex(store, store.index))
    manager.create(new(1, "legacy", said("first")), AT)
    monkeypatch.setattr(store, "update_thread_metadata", fail)

    assert refusal(lambda: manager.rename(thread(1), "x")).code == code


# --- whoever keeps the bytes ---------------------------------------------------------------------


@contextmanager
def service(store: ThreadStore, state: Path) -> Generator[Sessions]:
    """The use cases over any store."""
    sessions = Sessions(SessionIndex(store, store.index), Records(str(state)), Settings())
    sessions.refresh()
    yield sessions


@pytest.fixture(params=sorted(STORES))
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Shop]:
    with STORES[request.param](tmp_path / "store") as made:
        yield made


def test_service_answers_alike_over_any_store(shop: Shop, tmp_path: Path):
    home = Home(tmp_path / "home")
    base = rollout(session(thread=thread_of(1)), turn(user("one"), name="t1"))
    where = based_on(thread_of(1), base.count(b"\n"), len(base))
    child = rollout(session(thread=thread_of(2), history_base=where, forked_from_id=thread_of(1)))
    stories = {1: base, 2: child, 3: chat("three", 3), 4: base.replace(b"000001", b"000004")[:-9]}
    for number, data in stories.items():
        home.put(data, number)
        shop.put(thread_of(number), data)

    def told(sessions: Sessions) -> list[object]:
        names = [thread_of(number) for number in stories]
        return [
            *((sessions.show(name).data, sessions.show(name, 1).data) for name in names),
            *(sessions.view(name).text for name in names),
            *(
                asdict(each) | {"path": None, "file_time": None}
                for each in sessions.summaries.page().items
            ),
        ]

    with home.house() as house, service(shop.store, tmp_path / "state") as sessions:
        assert told(sessions) == told(house.sessions)
        assert sessions.summaries.page(ThreadQuery(search="three")).items[
            0
        ].session_id == thread_of(3)


def test_session_is_named_archived_unarchived_and_deleted(shop: Shop, tmp_path: Path):
    shop.store.create_thread(new(1, "paginated", said("a task")), AT)
    shop.put(thread_of(3), chat("of codex", 3))
    with service(shop.store, tmp_path / "state") as sessions:

        def listed(**choice: Any) -> list[str]:  # noqa: ANN401 - as `page`
            return [
                each.session_id for each in sessions.summaries.page(ThreadQuery(**choice)).items
            ]

        assert sessions.rename(thread(1)[:35] + "1", "work").title == "work"
        assert listed(search="work") == [thread(1)]
        assert sessions.rename(thread(1), None).title is None

        assert moved(sessions.threads, thread(1), archive=True).archived
        assert (listed(archived=True), listed()) == ([thread(1)], [thread_of(3)])
        assert refusal(lambda: moved(sessions.threads, thread(1), archive=True)).code == "conflict"
        assert not moved(sessions.threads, thread(1), archive=False).archived

        assert refusal(lambda: delete(sessions, thread_of(3))).code == "conflict"
        assert delete(sessions, thread(1)).session_id == thread(1)
        assert listed() == [thread_of(3)]
        assert refusal(lambda: delete(sessions, thread(1))).code == "unknown_session"


@pytest.mark.parametrize("how", ["alone", "referred to", "gone on", "open in Codex"])
def test_session_not_made_by_us_is_kept_for_that_reason(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    shop.put(thread_of(3), chat("of codex", 3))
    if how == "gone on":
        shop.put(thread_of(3), chat("and more", 3), thread_of(4))
    held: DeleteBlock | None = "referred_to" if how == "referred to" else None

    def told(*_: object) -> DeleteBlock | None:
        return held

    sessions = Sessions(
        SessionIndex(shop.store, shop.store.index), Records(str(tmp_path)), Settings()
    )
    monkeypatch.setattr(operation_records, "delete_block", told)
    before = shop.store.rollouts()

    with shop.live(thread_of(3)) if how == "open in Codex" else nullcontext():
        refused = refusal(lambda: delete(sessions, thread_of(3)))

    assert (refused.code, refused.facts["reason"]) == ("conflict", "not_ours")
    assert refused.message == f"session {thread_of(3)} was not made by codex-checkpoints"
    assert f"`codex-checkpoints archive {thread_of(3)}`" in str(refused.facts["hint"])
    assert shop.store.rollouts() == before


@pytest.fixture
def home(home: Home) -> Home:
    """A home with a session that other sessions may build on."""
    home.put(rollout(session(thread=thread_of(1)), turn(user("one"), name="t1")))
    return home


def on_top(number: int) -> bytes:
    """Write a session that begins with all of the first one."""
    where = {"thread_id": thread_of(1), "end_ordinal_exclusive": 5}
    return rollout(session(thread=thread_of(number), history_base=where))


def test_session_with_a_new_base_can_be_continued_without_a_scan(home: Home):
    home.put(on_top(2), 2)
    with home.house(fresh=False) as house:
        row = house.sessions.catalogue.refresh_thread(thread_of(2))
        assert row is not None
        assert orjson.loads(house.sessions.show(thread_of(2)).data)["task"]["text"] == "one"
        assert set(house.sessions.catalogue.current()) == {thread_of(1), thread_of(2)}
        assert house.sessions.catalogue.refresh_thread(thread_of(7)) is None


@pytest.mark.parametrize("loaded", [False, True])
def test_compressed_session_is_reported_at_its_place_once_decompressed(
    tmp_path: Path, loaded: bool
):
    home = Home(tmp_path)
    packed = home.put(zstd.compress(chat("cold")), form=".jsonl.zst")
    with home.house() as house:
        threads, catalogue = house.sessions.threads, house.sessions.catalogue
        if loaded:
            threads.load(thread_of(1))

        for text in ("one", "two"):
            told = {"type": "UserMessage", "id": text, "content": [{"type": "text", "text": text}]}
            item = HistoryItem("event_msg", {"type": "item_completed", "item": told})
            assert threads.append(thread_of(1), [item], AT) is not None

        row = catalogue.current()[thread_of(1)]
        assert (row.path, row.task) == (str(home.path()), "two")
        assert list(catalogue.rows()) == [str(home.path())]
        assert not packed.exists()
    with home.house() as house:
        assert house.sessions.catalogue.current()[thread_of(1)] == row


def test_session_of_several_rollouts_is_archived_with_all_of_them(home: Home):
    home.put(on_top(1), segment=2)
    with home.house() as house:
        sessions = house.sessions
        for archive in (True, False):
            moved(sessions.threads, thread_of(1), archive=archive)

            told = detail_of(sessions, thread_of(1)).summary
            assert (told.task, told.turns, told.archived) == ("one", 1, archive)
            assert sessions.catalogue.current()[thread_of(1)].problems == ""
        assert len(sessions.catalogue.rows()) == 2
