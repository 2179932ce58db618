"""The contract of stores of threads: heads, ordinals, locks, names, archive, readers.

Ours for files and ours in memory: no test asks which it has, so another may come from elsewhere.
The laws that stores of pushed sessions keep as well are in `test_every_store.py`.
"""

import base64
from collections.abc import Callable, Generator
from pathlib import Path

import orjson
import pytest
from attrs import evolve

from codex_checkpoints.service.reading.session_file import bytes_between
from codex_checkpoints.storage.contract import (
    BadQuery,
    Conflict,
    Copied,
    HistoryItem,
    NewThread,
    Patch,
    StoreError,
    ThreadIsLive,
    ThreadNotFound,
    ThreadQuery,
    UnreadableSource,
    Unsupported,
    folder_name,
)
from codex_checkpoints.storage.store import ThreadStore, age
from stores import AT, STORES, Shop, meta, new, said, thread, told

MODES = ("legacy", "paginated")


@pytest.fixture(params=sorted(STORES))
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Shop]:
    with STORES[request.param](tmp_path) as made:
        yield made


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def lines(store: ThreadStore, number: int = 1) -> list[bytes]:
    own = [each for each in store.rollouts().values() if each.thread_id == thread(number)]
    data = bytes_between(store.reader, max(own, key=age).path, 0, None)
    return [line for line in data.split(b"\n") if line.strip()]


def payloads(store: ThreadStore, number: int = 1) -> list[object]:
    return [orjson.loads(line)["payload"] for line in lines(store, number)]


def ordinals(store: ThreadStore, number: int = 1) -> list[int | None]:
    return [orjson.loads(line).get("ordinal") for line in lines(store, number)]


def titles(store: ThreadStore, query: ThreadQuery | None = None) -> list[str]:
    return [each.row.task or "" for each in store.list_threads(query or ThreadQuery()).items]


def unchanged(shop: Shop, number: int, work: Callable[[], object], error: type[StoreError]) -> None:
    """Hold that something is refused, and that nothing was written."""
    before, rows = lines(shop.store, number), dict(shop.store.rows())
    with pytest.raises(error):
        work()
    assert lines(shop.store, number) == before
    assert shop.store.rows() == rows


# --- making and continuing -----------------------------------------------------------------------


def test_new_thread_begins_with_its_head_and_holds_its_items_in_order(shop: Shop, mode: str):
    rollout = shop.store.create_thread(new(1, mode, said("one"), said("two")), AT)

    store = shop.reopened()
    assert payloads(store) == [meta(1, mode), said("one").payload, said("two").payload]
    assert ordinals(store) == ([0, 1, 2] if mode == "paginated" else [None] * 3)
    assert (rollout.thread_id, rollout.archived) == (thread(1), False)
    assert rollout.size == sum(len(line) + 1 for line in lines(store))
    assert store.rollouts()[rollout.path] == rollout


def test_line_has_codexs_keys_in_its_order(shop: Shop):
    item = HistoryItem(
        "response_item", {"type": "message"}, "2026-01-02T03:04:05.678Z", {"metadata": 1}
    )
    shop.store.create_thread(new(1, "paginated", said("one"), item), AT)

    first, *_, last = lines(shop.store)
    assert list(orjson.loads(first)) == ["timestamp", "ordinal", "type", "payload"]
    assert orjson.loads(last) == {
        "timestamp": "2026-01-02T03:04:05.678Z",
        "ordinal": 2,
        "type": "response_item",
        "payload": {"type": "message"},
        "metadata": 1,
    }
    assert orjson.loads(lines(shop.store)[1])["timestamp"] == "2026-11-21T12:00:00.123Z"


def test_thread_with_a_base_continues_its_ordinals(shop: Shop):
    base = {"thread_id": thread(1), "end_ordinal_exclusive": 31, "end_byte_offset": 9}
    shop.put(thread(1), b"")
    shop.store.create_thread(new(2, "paginated", said("own"), history_base=base), AT)

    rollout = next(each for each in shop.store.rollouts().values() if each.thread_id == thread(2))
    _, rest = shop.store.reader.read(rollout.path, 0, lambda _data: 0)
    assert [orjson.loads(line)["ordinal"] for line in rest.splitlines()] == [31, 32]


STRANGE = (
    b'{"ordinal":1 , "type":"event_msg","timestamp":"t","payload":{"type":"x","n":1.50},"later":[]}'
)


def test_copied_line_is_equal_to_the_byte(shop: Shop):
    shop.store.create_thread(new(1, "paginated", Copied(STRANGE), said("next")), AT)

    later = STRANGE.replace(b'":1 ', b'":3 ')
    shop.store.append_items(thread(1), [Copied(later)], AT)

    assert lines(shop.store)[1::2] == [STRANGE, later]
    assert ordinals(shop.store) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "head",
    [
        {"id": "no-uuid"},
        {"id": thread(1).upper().replace("0", "A")},
        {"id": f"../{thread(1)}"},
        {"history_mode": "of the future"},
        {"history_mode": None},
    ],
)
def test_thread_that_codex_would_refuse_is_not_made(shop: Shop, head: dict[str, object]):
    with pytest.raises(Unsupported):
        shop.store.create_thread(NewThread(meta(1) | head), AT)

    assert shop.store.rollouts() == {}


NO_LINES = {
    "two lines": Copied(b'{"ordinal":1}\n{"ordinal":2}'),
    "no UTF-8": Copied(b'{"ordinal":1,"a":"\xff"}'),
    "half a letter": said("\ud800"),
    "no number": HistoryItem("event_msg", {"n": float("nan")}),
    "a key twice": HistoryItem("event_msg", {}, extra={"ordinal": 7}),
}


@pytest.mark.parametrize("what", NO_LINES)
def test_item_outside_the_history_format_is_not_written(shop: Shop, mode: str, what: str):
    with pytest.raises(Unsupported):
        shop.store.create_thread(new(1, mode, said("x"), NO_LINES[what]), AT)
    assert shop.store.rollouts() == {}

    shop.store.create_thread(new(1, mode), AT)
    unchanged(
        shop,
        1,
        lambda: shop.store.append_items(thread(1), [said("x"), NO_LINES[what]], AT),
        Unsupported,
    )


HEADS = {
    "an item": HistoryItem("session_meta", meta(1)),
    "a copied line": Copied(b'{"ordinal":2,"type":"session_meta","timestamp":"t","payload":{}}'),
    "a copied line, spaced": Copied(b'{ "ordinal": 2, "payload": {}, "type": "session_meta" }'),
}


@pytest.mark.parametrize("what", HEADS)
def test_second_head_is_not_appended(shop: Shop, mode: str, what: str):
    shop.store.create_thread(new(1, mode), AT)

    unchanged(
        shop,
        1,
        lambda: shop.store.append_items(thread(1), [said("x"), HEADS[what]], AT),
        Unsupported,
    )


def test_thread_is_made_once(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode, said("one")), AT)

    unchanged(shop, 1, lambda: shop.store.create_thread(new(1, mode, said("two")), AT), Conflict)


def test_appended_lines_follow_the_existing_ones(shop: Shop, mode: str):
    first = shop.store.create_thread(new(1, mode, said("one")), AT)
    before = lines(shop.store)

    done = shop.store.append_items(thread(1), [said("two"), said("three")], AT, first.version)

    after = lines(shop.reopened())
    assert after[: len(before)] == before
    assert payloads(shop.store)[2:] == [said("two").payload, said("three").payload]
    assert (done.start, done.end) == (first.size, sum(len(line) + 1 for line in after))
    assert done.ordinals == ((2, 3) if mode == "paginated" else None)
    assert done.rollout.size == done.end
    assert done.rollout.version != first.version
    assert shop.store.stat([done.rollout.path])[done.rollout.path] == done.rollout


def test_torn_last_line_stays_and_the_next_is_separate(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode, said("one"), said("two")), AT)
    whole = b"".join(line + b"\n" for line in lines(shop.store))
    shop.put(thread(1), whole[:-9])

    done = shop.store.append_items(thread(1), [said("three")], AT)

    _, data = shop.store.reader.read(done.rollout.path, 0, lambda _data: 0)
    assert data.startswith(whole[:-9] + b"\n")
    last = orjson.loads(data.splitlines()[-1])
    assert last["payload"] == said("three").payload
    assert last.get("ordinal") == (2 if mode == "paginated" else None)


def test_append_infers_no_metadata(shop: Shop, mode: str):
    rollout = shop.store.create_thread(new(1, mode), AT)
    shop.store.update_thread_metadata([(thread(1), Patch(row=told(rollout, task="as it was")))])
    before = shop.store.read_thread(thread(1))

    titled = HistoryItem("event_msg", {"type": "thread_name_updated", "thread_name": "a title"})
    shop.store.append_items(thread(1), [titled, said("a task")], AT)

    assert shop.store.read_thread(thread(1)) == before
    assert shop.reopened().read_thread(thread(1)).name is None


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _data: b"",
    "headless": lambda _data: b"{}\n",
    "without ordinals": lambda data: data.replace(b'"ordinal"', b'"number"'),
    "another thread's": lambda data: data.replace(thread(1).encode(), thread(2).encode()),
    "no UTF-8": lambda data: data + b"\xff\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_history_that_codex_would_not_resume_is_not_appended_to(shop: Shop, damage: str):
    shop.store.create_thread(new(1, "paginated", said("one")), AT)
    data = DAMAGE[damage](b"".join(line + b"\n" for line in lines(shop.store)))
    rollout = shop.put(thread(1), data)

    with pytest.raises(Unsupported):
        shop.store.append_items(thread(1), [said("x")], AT)
    with pytest.raises(Unsupported):
        shop.store.check_append(thread(1))
    assert bytes_between(shop.store.reader, rollout.path, 0, None) == data


def test_append_can_be_checked_without_a_change(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode, said("one")), AT)
    shop.store.create_thread(new(2, mode), AT)
    shop.store.archive_thread(thread(2))

    shop.store.check_append(thread(1))
    unchanged(shop, 2, lambda: shop.store.check_append(thread(2)), Unsupported)
    unchanged(shop, 2, lambda: shop.store.append_items(thread(2), [said("x")], AT), Unsupported)
    with shop.live(thread(1)):
        unchanged(shop, 1, lambda: shop.store.check_append(thread(1)), ThreadIsLive)
    with pytest.raises(ThreadNotFound):
        shop.store.check_append(thread(9))


@pytest.mark.parametrize("line", [b'{"a":\n1}', b"\xff", STRANGE.replace(b'":1 ', b'":7 ')])
def test_copied_line_that_does_not_fit_is_not_appended(shop: Shop, line: bytes):
    shop.store.create_thread(new(1), AT)

    unchanged(
        shop,
        1,
        lambda: shop.store.append_items(thread(1), [said("x"), Copied(line)], AT),
        Unsupported,
    )


# --- reading -------------------------------------------------------------------------------------


def test_reader_continues_from_its_offset_and_notices_other_content(shop: Shop, mode: str):
    rollout = shop.store.create_thread(new(1, mode), AT)
    reader = shop.store.reader
    path = rollout.path
    first = reader.follow(path, None, len)
    assert first is not None
    assert (first.mark.offset, first.rest) == (rollout.size, b"")

    done = shop.store.append_items(thread(1), [said("more")], AT)
    seen: list[bytes] = []
    second = reader.follow(path, first.mark, lambda data: seen.append(data) or len(data))

    assert second is not None
    assert b"".join(seen).strip() == lines(shop.store)[-1]
    assert second.mark == reader.mark_at(path, done.end, second.mark.source)
    assert bytes_between(reader, path, done.start, None) == b"".join(seen)
    assert reader.first_line(path) == lines(shop.store)[0] + b"\n"
    assert reader.identify(path).thread_id == thread(1)
    whole = bytes_between(reader, path, 0, None)
    assert reader.read(path, 0, lambda _data: 0, done.start) == (0, whole[: done.start])
    shop.put(thread(1), b"x" * 2000)
    assert reader.follow(path, first.mark, len) is None


def test_change_of_a_rollout_is_noticed_and_growth_distinguished(shop: Shop, mode: str):
    first = shop.store.create_thread(new(1, mode), AT)
    assert shop.store.is_unchanged(first)

    grown = shop.store.append_items(thread(1), [said("more")], AT).rollout
    assert not shop.store.is_unchanged(first)
    assert shop.store.is_unchanged(grown)
    assert shop.store.has_only_grown(first, grown)
    assert shop.store.has_only_grown(grown, grown)
    assert grown.modified_ns >= first.modified_ns

    shorter = shop.put(thread(1), b"x")
    assert not shop.store.is_unchanged(grown)
    assert not shop.store.has_only_grown(grown, shorter)


def test_missing_rollout_cannot_be_read(shop: Shop):
    path = shop.store.create_thread(new(1), AT).path.replace(thread(1), thread(2))
    reader = shop.store.reader
    for ask in (
        lambda: reader.follow(path, None, len),
        lambda: reader.read(path, 0, len),
        lambda: reader.first_line(path),
        lambda: reader.mark_at(path, 0, ""),
        lambda: shop.store.rollout_at(path),
    ):
        with pytest.raises(UnreadableSource):
            ask()


def test_every_lookup_sees_the_same_rollouts(shop: Shop):
    made = [shop.store.create_thread(new(number), AT) for number in (1, 2, 3)]
    found = shop.store.rollouts()

    assert found == {each.path: each for each in made}
    assert shop.store.places() == {each.rollout_id: each.path for each in made}
    assert {path: shop.store.stat([path])[path] for path in found} == found
    assert {path: shop.store.rollout_at(path).version for path in found} == {
        path: each.version for path, each in found.items()
    }
    missing = made[0].path.replace(thread(1), thread(4))
    assert shop.store.stat([missing])[missing] is None


def test_unknown_thread_is_not_found(shop: Shop):
    for ask in (
        lambda: shop.store.read_thread(thread(9)),
        lambda: shop.store.append_items(thread(9), [said("x")], AT),
        lambda: shop.store.archive_thread(thread(9)),
        lambda: shop.store.unarchive_thread(thread(9)),
        lambda: shop.store.delete_thread(thread(9)),
        lambda: shop.store.update_thread_metadata([(thread(9), Patch(name="x"))]),
    ):
        with pytest.raises(ThreadNotFound):
            ask()
    assert shop.store.rollouts() == {}


# --- metadata ------------------------------------------------------------------------------------


def test_name_is_set_left_unchanged_and_cleared(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode), AT)
    shop.store.create_thread(new(2, mode), AT)

    def name() -> str | None:
        return shop.reopened().read_thread(thread(1)).name

    assert name() is None
    shop.store.update_thread_metadata([(thread(1), Patch(name="first"))])
    assert name() == "first"
    shop.store.update_thread_metadata([(thread(1), Patch(name="wörk 日本")), (thread(2), Patch())])
    assert name() == "wörk 日本"
    rollout = shop.store.read_thread(thread(1)).row.rollout
    shop.store.update_thread_metadata([(thread(1), Patch(row=told(rollout)))])
    assert name() == "wörk 日本"
    shop.store.update_thread_metadata([(thread(1), Patch(name=None))])
    assert name() is None
    assert shop.store.read_thread(thread(2)).name is None


def test_rollout_metadata_is_set_left_unchanged_and_forgotten(shop: Shop):
    rollout = shop.store.create_thread(new(1), AT)
    row = told(rollout, task="ü", context_tokens=2**40)

    shop.store.update_thread_metadata([(thread(1), Patch(row=row))])
    assert shop.store.rows() == {rollout.path: row}
    shop.store.update_thread_metadata([(thread(1), Patch(name="named"))])
    assert shop.reopened().rows() == {rollout.path: row}
    later = evolve(row, task="later")
    shop.store.update_thread_metadata([(thread(1), Patch(row=later))])
    assert shop.store.current() == {thread(1): later}
    shop.store.update_thread_metadata([(thread(1), Patch(row=None, of=rollout.path))])
    assert shop.reopened().rows() == {}
    assert shop.store.read_thread(thread(1)).name == "named"


def test_name_of_an_unknown_thread_changes_nothing_else(shop: Shop):
    shop.store.create_thread(new(1), AT)
    both = [(thread(1), Patch(name="x")), (thread(9), Patch(name="y"))]

    with pytest.raises(ThreadNotFound):
        shop.store.update_thread_metadata(both)

    assert shop.reopened().read_thread(thread(1)).name is None


def test_name_in_the_patch_overrides_the_history(shop: Shop):
    row = told(shop.store.create_thread(new(1), AT), recorded_name="of old")
    shop.store.update_thread_metadata([(thread(1), Patch(row=row))])
    assert shop.store.read_thread(thread(1)).name == "of old"

    shop.store.update_thread_metadata([(thread(1), Patch(name="new"))])
    assert shop.store.name_of(row) == "new"
    shop.store.update_thread_metadata([(thread(1), Patch(name=None))])
    assert shop.reopened().name_of(row) is None


# --- lists ---------------------------------------------------------------------------------------


def stock(shop: Shop, **each: dict[str, object]) -> None:
    """Make threads, and tell of them; the key is the task, the number of the thread its place."""
    for number, (task, values) in enumerate(each.items(), 1):
        rollout = shop.store.create_thread(new(number), AT)
        row = told(rollout, **{"updated_at": f"2026-11-{number:02}", "task": task, **values})
        shop.store.update_thread_metadata([(thread(number), Patch(row=row))])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (ThreadQuery(outside=("/w/a",)), "none win ab share"),
        (ThreadQuery(outside=("/w", r"c:\work\X")), "none share"),
        (ThreadQuery(cwd="/w", outside=("/w/a/deep", "/elsewhere")), "ab a"),
        (ThreadQuery(search="FIRST"), "deep"),
        (ThreadQuery(search="words deep"), ""),
        (ThreadQuery(limit=2), "none deep"),
        (ThreadQuery(limit=0), ""),
    ],
)
def test_list_is_filtered(shop: Shop, query: ThreadQuery, expected: str):
    stock(
        shop,
        share={"cwd": r"\\host\share\work"},
        a={"cwd": "/w/a"},
        ab={"cwd": "/w/ab"},
        win={"cwd": r"C:\Work\x"},
        deep={"cwd": "/w/a/deep", "first_text": "first words"},
        none={},
    )

    assert titles(shop.store, query) == expected.split()


def test_archived_threads_have_their_own_list(shop: Shop):
    stock(shop, a={}, b={})
    moved = shop.store.archive_thread(thread(1))
    gone = [path for path in shop.store.rows() if path != moved.path and thread(1) in path]
    shop.store.update_thread_metadata(
        [
            *((thread(1), Patch(row=None, of=path)) for path in gone),
            (thread(1), Patch(row=told(moved, task="a"))),
        ]
    )

    assert titles(shop.store) == ["b"]
    assert titles(shop.store, ThreadQuery(archived=True)) == ["a"]


def test_newest_readable_rollout_of_a_thread_is_the_current_one(shop: Shop):
    first = shop.put(thread(1), b"{}\n")
    second = shop.put(thread(1), b"{}\n", thread(5))
    third = shop.put(thread(1), b"{}\n", thread(6))
    rows = [told(first, task="first"), told(second, task="second"), told(third, error="damaged")]

    shop.store.update_thread_metadata((thread(1), Patch(row=row)) for row in rows)

    assert titles(shop.store) == ["second"]
    assert shop.store.read_thread(thread(1)).row == rows[1]


def test_thread_is_live_while_another_process_has_it_loaded(shop: Shop):
    stock(shop, a={}, b={})
    with shop.live(thread(2)):
        assert shop.store.live_threads() == {thread(2)}
        live = {
            each.row.session_id: each.live for each in shop.store.list_threads(ThreadQuery()).items
        }
        assert live == {thread(1): False, thread(2): True}
        assert shop.store.read_thread(thread(2)).live
    assert shop.store.live_threads() == frozenset()


@pytest.mark.parametrize(
    "cursor", ["", "x", "é", base64.urlsafe_b64encode(b"[1,2]").decode(), "AAAA", "["]
)
def test_foreign_cursor_is_refused(shop: Shop, cursor: str):
    stock(shop, a={})

    with pytest.raises(BadQuery) as error:
        shop.store.list_threads(ThreadQuery(cursor=cursor))
    assert error.value.field == "cursor"


def test_page_says_how_many_threads_follow_it(shop: Shop):
    folder: dict[str, object] = {"cwd": "/home/ana/shop"}
    stock(shop, a=folder, b=folder, c=folder, d={"cwd": "/elsewhere"})
    here = ThreadQuery(cwd="/home/ana", limit=2)

    first = shop.store.list_threads(here)
    last = shop.store.list_threads(evolve(here, cursor=first.next_cursor))

    assert [len(first.items), first.left] == [2, 1]
    assert [len(last.items), last.left] == [1, 0]
    assert shop.store.list_threads(evolve(here, limit=0)).left == 3


def test_limit_below_the_minimum_is_refused(shop: Shop):
    stock(shop, a={})

    with pytest.raises(BadQuery) as error:
        shop.store.list_threads(ThreadQuery(limit=-1))
    assert error.value.field == "limit"


# --- lifecycle -----------------------------------------------------------------------------------


def test_thread_is_archived_and_unarchived(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode, said("one")), AT)
    shop.put(thread(1), b"{}\n", thread(5))
    before = shop.store.places()

    assert shop.store.archive_thread(thread(1)).archived
    assert {each.archived for each in shop.reopened().rollouts().values()} == {True}
    assert shop.store.places().keys() == before.keys()
    unchanged(shop, 1, lambda: shop.store.archive_thread(thread(1)), Conflict)
    assert not shop.store.unarchive_thread(thread(1)).archived
    assert shop.reopened().places() == before
    unchanged(shop, 1, lambda: shop.store.unarchive_thread(thread(1)), Conflict)


@pytest.mark.parametrize(
    "other",
    [
        {"history_base": {"thread_id": thread(1), "end_ordinal_exclusive": 1}},
        {"forked_from_id": thread(1)},
        {"parent_thread_id": thread(1)},
    ],
)
def test_thread_that_another_refers_to_is_not_deleted(shop: Shop, other: dict[str, object]):
    shop.store.create_thread(new(1), AT)
    shop.store.create_thread(new(2, "paginated", **other), AT)

    unchanged(shop, 1, lambda: shop.store.delete_thread(thread(1)), Conflict)
    shop.store.delete_thread(thread(2))
    shop.store.delete_thread(thread(1))


def test_codexs_thread_or_one_with_a_later_rollout_is_not_deleted(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode, originator="codex_cli_rs"), AT)
    shop.store.create_thread(new(2, mode), AT)
    shop.put(thread(2), lines(shop.store, 2)[0] + b"\n", thread(5))

    for number in (1, 2):
        unchanged(shop, number, lambda n=number: shop.store.delete_thread(thread(n)), Conflict)


def test_thread_loaded_by_another_process_is_left_unchanged(shop: Shop, mode: str):
    shop.store.create_thread(new(1, mode), AT)
    shop.store.create_thread(new(2, mode), AT)
    shop.store.archive_thread(thread(2))

    with shop.live(thread(1)), shop.live(thread(2)):
        for number, work in (
            (1, lambda: shop.store.append_items(thread(1), [said("x")], AT)),
            (1, lambda: shop.store.archive_thread(thread(1))),
            (2, lambda: shop.store.unarchive_thread(thread(2))),
            (1, lambda: shop.store.delete_thread(thread(1))),
        ):
            unchanged(shop, number, work, ThreadIsLive)
        shop.store.update_thread_metadata([(thread(1), Patch(name="yet named"))])

    assert shop.store.read_thread(thread(1)).name == "yet named"
    shop.store.append_items(thread(1), [said("x")], AT)


# --- surroundings --------------------------------------------------------------------------------


def test_path_outside_the_store_is_distinguished(shop: Shop, tmp_path: Path):
    foreign = str(tmp_path / "project" / "file.py")

    touched = shop.store.touched([foreign])

    assert touched.foreign == {foreign}
    assert (touched.rollouts, touched.everything, touched.lives) == (frozenset(), False, False)


def test_change_in_a_watched_folder_leads_to_the_rollout(shop: Shop):
    rollout = shop.store.create_thread(new(1), AT)
    if not shop.store.watched:
        pytest.skip("nothing to watch")

    assert any(rollout.path.startswith(folder) for folder in shop.store.watched)
    assert shop.store.touched([rollout.path]).rollouts == {rollout.path}


def test_healthy_store_has_no_faults(shop: Shop):
    shop.store.create_thread(new(1), AT)
    shop.store.rollouts()

    assert shop.store.faults() == ()
    assert shop.store.place


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/ana/shop/", "shop"),
        ("C:\\Users\\ana\\shop", "shop"),
        ("c:/users/ana/shop/", "shop"),
        ("\\\\?\\C:\\Users\\ana\\shop\\", "shop"),
        ("\\\\host\\share\\my shop", "my shop"),
        ("/home/ana/a\\b", "a\\b"),
        ("/", "/"),
        ("-", "-"),
    ],
)
def test_folder_is_named_by_its_last_part_on_windows_too(path: str, name: str):
    assert folder_name(path) == name
