"""A session, followed through its files: chains, growth, replacement, compression, size."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest

from codex_checkpoints.core.checkpoint.canonical import to_bytes
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.service.reading.session_file import Problem, SessionFile, open_session
from codex_checkpoints.storage import tree
from codex_checkpoints.storage.contract import UnreadableSource
from codex_checkpoints.storage.rollout_file import FileReader
from reading import read
from rollouts import (
    THREAD,
    Step,
    based_on,
    call,
    crlf,
    image,
    item,
    output,
    patch,
    reasoning,
    rollback,
    rollout,
    session,
    shell,
    started,
    torn,
    turn,
    user,
)

ROOT = Path(__file__).resolve().parent.parent
FILES = FileReader()


def name(number: int) -> str:
    """A rollout id."""
    return f"01a1f865-0000-7000-8000-{number:012}"


class Home:
    """A Codex home, in which a rollout lies under its id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, rollout_id: str, thread: str | None = None, suffix: str = "") -> Path:
        core = rollout_id if thread is None else f"{thread}_{rollout_id}"
        day = self.folder / "sessions/2026/11/20"
        return day / f"rollout-2026-11-20T09-59-05-{core}.jsonl{suffix}"

    def put(
        self, rollout_id: str, data: bytes, *, thread: str | None = None, suffix: str = ""
    ) -> str:
        path = self.path(rollout_id, thread, suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def locate(self, rollout_id: str) -> str | None:
        found = tree.scan(str(self.folder))
        return {each.rollout_id: path for path, each in found.items()}.get(rollout_id.lower())

    def open(self, rollout_id: str) -> SessionFile:
        path = self.locate(rollout_id)
        assert path is not None
        return open_session(FILES, path, self.locate)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def told(session_file: SessionFile) -> bytes:
    """The checkpoint as it is now."""
    return to_bytes(session_file.now().checkpoint((), {}))


def nowhere(_rollout_id: str) -> str | None:
    return None


def cut(data: bytes, lines: int) -> int:
    """Where so many lines end."""
    return len(b"\n".join(data.split(b"\n")[:lines])) + 1


def compressed(data: bytes) -> bytes:
    """Compress as Codex does: one frame."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.compress(data, 3)


# --- chains --------------------------------------------------------------------------------------


def parent(home: Home) -> bytes:
    """A session of two turns: lines 0 to 7, and 8 to 14."""
    data = rollout(
        session(thread=name(1)),
        turn(user("one"), patch(add="one.py")),
        turn(user("two"), patch(add="two.py")),
    )
    home.put(name(1), data)
    return data


def child(base: Mapping[str, object], *steps: Step, number: int = 2) -> bytes:
    return rollout(session(thread=name(number), history_base=base), *steps)


def test_a_fork_is_its_base_up_to_the_cut_and_then_its_own(home: Home):
    data = parent(home)
    own = child(based_on(name(1), 8, cut(data, 8)), turn(user("three", ref="u9"), name="t9"))
    home.put(name(2), own)

    forked = home.open(name(2))

    assert forked.problems == ()
    assert forked.session_id == name(2)
    found = forked.now().checkpoint((), {})
    assert found.seq == 8 + own.count(b"\n") - 1
    assert set(found.artifacts) == {"one.py"}
    assert found.task is not None
    assert found.task.text == "three"


def test_a_revert_is_a_segment_of_the_same_thread(home: Home):
    data = parent(home)
    segment = rollout(
        session(thread=name(1), history_base=based_on(name(1), 8, cut(data, 8))),
        turn(user("instead", ref="u9"), name="t9"),
    )
    path = home.put(name(7), segment, thread=name(1))

    reverted = home.open(name(7))

    assert reverted.path == path
    assert reverted.session_id == name(1)
    assert reverted.problems == ()
    found = reverted.now().checkpoint((), {})
    assert found.task is not None
    assert found.task.text == "instead"
    assert set(found.artifacts) == {"one.py"}
    turns = reverted.now().state.turns
    assert [each.turn_id for each in turns.turns] == ["t1", "t9"]


@pytest.mark.parametrize("offset", [0, 1, 10**9])
def test_ordinals_say_where_a_base_is_cut_whatever_the_offset_says(home: Home, offset: int):
    data = parent(home)
    for number in range(16):
        home.put(name(2), child(based_on(name(1), number, offset or cut(data, number))))

        found = home.open(name(2)).now().checkpoint((), {})

        assert found.seq == number
        assert set(found.artifacts) == {
            uri for uri, seq in (("one.py", 5), ("two.py", 12)) if seq < number
        }


def test_a_base_that_grows_behind_the_cut_changes_nothing(home: Home):
    data = parent(home)
    home.put(name(2), child(based_on(name(1), 15, len(data)), turn(user("three", ref="u9"))))
    before = told(home.open(name(2)))
    longer = rollout(
        session(thread=name(1)),
        *(turn(user(text), patch(add=f"{text}.py")) for text in ("one", "two", "later")),
    )
    assert longer.startswith(data)

    home.put(name(1), longer)

    assert told(home.open(name(2))) == before


def test_a_missing_base_is_reported_and_the_rest_is_read(home: Home):
    own = child(based_on(name(1), 8, 999), turn(user("three", ref="u9"), patch(add="own.py")))
    home.put(name(2), own)

    orphan = home.open(name(2))

    assert orphan.problems == (Problem("base_missing", name(1)),)
    found = orphan.now().checkpoint((), {})
    assert set(found.artifacts) == {"own.py"}
    assert found.seq == 8 + own.count(b"\n") - 1


def test_a_missing_grandparent_leaves_the_parent(home: Home):
    middle = child(based_on(name(1), 8, 999), turn(user("two", ref="u8"), patch(add="two.py")))
    home.put(name(2), middle)
    own = child(based_on(name(2), 15, len(middle)), turn(user("three", ref="u9")), number=3)
    home.put(name(3), own)

    orphan = home.open(name(3))

    assert orphan.problems == (Problem("base_missing", name(1)),)
    assert set(orphan.now().checkpoint((), {}).artifacts) == {"two.py"}


def test_a_base_shorter_than_the_cut_is_reported_and_read_as_far_as_it_goes(home: Home):
    data = parent(home)
    home.put(name(2), child(based_on(name(1), 40, len(data) + 5000), turn(user("x", ref="u9"))))

    short = home.open(name(2))

    assert short.problems == (Problem("base_short", name(1)),)
    assert set(short.now().checkpoint((), {}).artifacts) == {"one.py", "two.py"}


def test_the_last_line_of_a_base_counts_without_its_line_end(home: Home):
    data = parent(home)[: cut(parent(home), 6)]
    for end in (b"", b"\n"):
        home.put(name(1), data.removesuffix(b"\n") + end)
        base = based_on(name(1), 6, len(data.removesuffix(b"\n") + end))
        home.put(name(2), child(base, turn(user("x", ref="u9"))))

        forked = home.open(name(2))

        assert forked.problems == ()
        assert set(forked.now().checkpoint((), {}).artifacts) == {"one.py"}


def shown(number: int) -> Step:
    """Show an image of its own."""
    return image(f"{number}.png", call=f"c{number}")


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_chain_that_leads_in_a_circle_is_reported_and_ends(home: Home, length: int):
    for number in range(1, length + 1):
        base = based_on(name(number % length + 1), 8, 999)
        own = child(base, turn(user("x", ref="u9"), image(f"{number}.png")), number=number)
        home.put(name(number), own)

    circle = home.open(name(1))

    assert "base_cycle" in {each.code for each in circle.problems}
    assert "1.png" in circle.now().checkpoint((), {}).artifacts


def test_a_long_chain_is_read_to_its_beginning(home: Home):
    """Every revert adds a segment: a hundred of them are a long afternoon."""
    own = rollout(session(thread=name(1)), image("1.png"))
    home.put(name(1), own)
    ordinal = own.count(b"\n")
    for number in range(2, 101):
        own = child(based_on(name(number - 1), ordinal, len(own)), shown(number), number=number)
        home.put(name(number), own)
        ordinal += own.count(b"\n")

    last = home.open(name(100))

    assert last.problems == ()
    assert len(last.now().checkpoint((), {}).artifacts) == 100
    assert last.now().seq == ordinal - 1


def test_a_base_may_be_compressed(home: Home):
    data = parent(home)
    home.put(name(2), child(based_on(name(1), 8, cut(data, 8)), turn(user("x", ref="u9"))))
    plain = told(home.open(name(2)))
    home.path(name(1)).unlink()

    home.put(name(1), compressed(data), suffix=".zst")

    assert home.open(name(2)).problems == ()
    assert told(home.open(name(2))) == plain


@pytest.mark.parametrize("front", [b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
def test_a_fork_is_one_whatever_stands_before_its_first_line(home: Home, front: bytes):
    data = parent(home)
    own = child(based_on(name(1), 8, cut(data, 8)), turn(user("x", ref="u9")))
    home.put(name(2), front + own)

    assert set(home.open(name(2)).now().checkpoint((), {}).artifacts) == {"one.py"}


@pytest.mark.parametrize(
    "base",
    [
        {"thread_id": name(1)},
        {"thread_id": name(1), "end_ordinal_exclusive": 8},
        {"thread_id": 7, "end_ordinal_exclusive": 8, "end_byte_offset": 9},
        {"thread_id": name(1), "end_ordinal_exclusive": -8, "end_byte_offset": "9"},
        {},
    ],
)
def test_a_strange_pointer_to_a_base_stops_nobody(home: Home, base: dict[str, object]):
    parent(home)
    own = rollout(session(thread=name(2)), turn(user("own", ref="u9")))
    head, rest = own.split(b"\n", 1)
    pointed = json.loads(head)
    pointed["payload"]["history_base"] = base
    home.put(name(2), json.dumps(pointed).encode() + b"\n" + rest)

    found = home.open(name(2)).now().checkpoint((), {}).task

    assert found is not None
    assert found.text == "own"


# --- growth --------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [session(), session("legacy"), session("bare")])
def test_a_growing_file_is_followed_byte_by_byte(home: Home, head: Step):
    data = rollout(head, turn(user("hello é"), shell("cat a.py", "ü", reads=["a.py"])))
    path = Path(home.put(name(1), b""))
    follower = home.open(name(1))

    with path.open("ab", buffering=0) as file:
        for number in range(len(data)):
            file.write(data[number : number + 1])
            follower = follower.read_on(home.locate)
            if number % 7 == 0 or data[number : number + 1] in b"}\n":
                assert told(follower) == told(home.open(name(1)))

    assert told(follower) == to_bytes(read(data).checkpoint((), {}))


def test_following_costs_what_was_appended(home: Home, monkeypatch: pytest.MonkeyPatch):
    offered = 0
    feed = Replay.feed

    def counted(replay: Replay, data: bytes) -> int:
        nonlocal offered
        offered += len(data)
        return feed(replay, data)

    steps = [turn(user(f"message {number}"), shell("ls", "x" * 2000)) for number in range(300)]
    data = rollout(session(), *steps)
    ends = [place + 1 for place, byte in enumerate(data) if byte == 0x0A]
    path = Path(home.put(name(1), data[: ends[0]]))
    follower = home.open(name(1))
    monkeypatch.setattr(Replay, "feed", counted)

    most = 0
    with path.open("ab", buffering=0) as file:
        for end in ends[5::5]:
            grown = end - path.stat().st_size
            file.write(data[end - grown : end])
            offered = 0
            follower = follower.read_on(home.locate)
            most = max(most, offered - grown)

    assert most <= 0
    assert follower.mark.offset == path.stat().st_size


def test_a_torn_tail_is_ended_by_codex_and_stays_torn(home: Home):
    patched = item("FileChange", id="c1", status="completed", changes={"a.py": {"type": "add"}})
    torn_off = rollout(session(), started(), user("x"), torn(patched, 30))
    whole = rollout(session(), started(), user("x"), torn(patched, 30), shell("ls"))
    assert whole.startswith(torn_off + b"\n")
    path = Path(home.put(name(1), torn_off))

    follower = home.open(name(1))
    assert follower.now().seq == 3
    path.write_bytes(torn_off + b"\n")
    follower = follower.read_on(home.locate)
    assert follower.now().seq == 3
    path.write_bytes(whole)
    after = follower.read_on(home.locate)

    assert told(after) == told(home.open(name(1)))
    assert set(after.now().checkpoint((), {}).artifacts) == {"ls"}
    assert after.replay.scale.skipped == {"not_json": 1}


def test_a_torn_tail_may_be_completed(home: Home):
    data = rollout(session(), started(), user("x"), shell("ls"), shell("pwd"))
    path = Path(home.put(name(1), data[:-40]))
    follower = home.open(name(1))

    path.write_bytes(data)
    follower = follower.read_on(home.locate)

    assert told(follower) == told(home.open(name(1)))
    assert follower.tail == b""


def test_a_whole_tail_counts_once_when_its_line_end_comes(home: Home):
    data = rollout(session("legacy"), user("x"), shell("ls"))
    path = Path(home.put(name(1), data[:-1]))
    follower = home.open(name(1))
    early = told(follower)

    assert follower.now().seq == 5
    path.write_bytes(data)
    follower = follower.read_on(home.locate)

    assert told(follower) == early
    assert follower.now().seq == 5
    assert told(follower.read_on(home.locate)) == early


def test_looking_at_a_tail_leaves_the_follower_where_it_is(home: Home):
    data = rollout(session(), started(), user("x"), rollback(1))[:-1]
    follower = home.open(name(1)) if home.put(name(1), data) else None
    assert follower is not None

    first = follower.now().checkpoint((), {})

    assert first.task is None
    assert follower.replay.checkpoint((), {}).task is not None
    assert follower.now().checkpoint((), {}) == first


def test_a_long_last_line_is_read_when_it_is_whole(home: Home):
    for step in (user("y" * 300_000), reasoning("y" * 300_000), shell("ls", "y" * 300_000)):
        data = rollout(session(), started(), user("x"), step)
        path = Path(home.put(name(1), data[: cut(data, 4)]))
        follower = home.open(name(1))
        for end in (cut(data, 4) + 70_000, len(data) - 100_000, len(data) - 1, len(data)):
            path.write_bytes(data[:end])
            follower = follower.read_on(home.locate)
            assert told(follower) == told(home.open(name(1)))
            assert follower.now().seq == read(data[:end]).seq


# --- another file under the same name ------------------------------------------------------------

FIRST = rollout(session(), turn(user("first"), patch(add="first.py")))
OTHER = rollout(session(), turn(user("other"), patch(add="other.py")))
LEGACY = rollout(session("legacy"), turn(user("first"), patch(add="first.py")))
MIGRATED = rollout(session(), turn(user("first"), patch(add="first.py")), turn(user("more")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(FIRST, OTHER, id="as long"),
        pytest.param(FIRST, OTHER[:-200], id="shorter"),
        pytest.param(FIRST, b"", id="empty"),
        pytest.param(FIRST, FIRST[: cut(FIRST, 3)], id="cut back"),
        pytest.param(FIRST, OTHER + OTHER, id="longer"),
        pytest.param(LEGACY, MIGRATED, id="migrated"),
        pytest.param(MIGRATED, LEGACY, id="migrated back"),
        pytest.param(FIRST, crlf(FIRST), id="other line ends"),
        pytest.param(b"", FIRST, id="from nothing"),
    ],
)
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "replaced"])
def test_another_content_under_the_same_name_is_noticed(
    home: Home, old: bytes, new: bytes, in_place: bool
):
    path = Path(home.put(name(1), old))
    follower = home.open(name(1))

    if in_place:
        path.write_bytes(new)
    else:
        beside = path.with_suffix(".tmp")
        beside.write_bytes(new)
        os.replace(beside, path)
    follower = follower.read_on(home.locate)

    assert told(follower) == to_bytes(read(new).checkpoint((), {}))
    assert follower.replay.seq == read(new).seq


def test_a_file_replaced_by_its_own_bytes_is_the_same(home: Home):
    path = Path(home.put(name(1), FIRST))
    follower = home.open(name(1))
    beside = path.with_suffix(".tmp")
    beside.write_bytes(FIRST)
    os.replace(beside, path)

    assert told(follower.read_on(home.locate)) == to_bytes(read(FIRST).checkpoint((), {}))


def test_a_file_that_is_gone_cannot_be_read(home: Home):
    path = Path(home.put(name(1), FIRST))
    follower = home.open(name(1))
    path.unlink()

    with pytest.raises(UnreadableSource):
        follower.read_on(home.locate)
    with pytest.raises(UnreadableSource):
        open_session(FILES, str(path), nowhere)


def test_what_is_no_file_cannot_be_read(tmp_path: Path):
    with pytest.raises(UnreadableSource):
        open_session(FILES, str(tmp_path), nowhere)
    if hasattr(os, "mkfifo"):
        pipe = tmp_path / "pipe.jsonl"
        os.mkfifo(pipe)
        with pytest.raises(UnreadableSource):
            open_session(FILES, str(pipe), nowhere)


def test_an_empty_file_is_a_session_that_says_nothing(home: Home):
    home.put(name(1), b"")

    empty = home.open(name(1))

    assert empty.head is None
    assert empty.session_id == name(1)
    assert empty.now().seq == 0


def test_a_session_is_its_head_else_its_file_name(home: Home):
    home.put(name(1), rollout(session(thread=THREAD)))
    assert home.open(name(1)).session_id == THREAD
    home.put(name(1), rollout(session("bare", thread=THREAD), user("x")))
    assert home.open(name(1)).session_id == THREAD
    home.put(name(1), b"not json\n" + rollout(session(), user("x")).split(b"\n", 1)[1])
    assert home.open(name(1)).session_id == name(1)


# --- compressed ----------------------------------------------------------------------------------


def test_a_compressed_file_says_the_same(home: Home):
    long = rollout(session(), *(turn(user(f"x{n}"), shell("ls", "y" * 9000)) for n in range(40)))
    for data in (FIRST, LEGACY, FIRST[:-1], FIRST[:-40], long, b""):
        home.put(name(1), compressed(data), suffix=".zst")

        packed = home.open(name(1))

        assert told(packed) == to_bytes(read(data).checkpoint((), {}))
        assert told(packed.read_on(home.locate)) == told(packed)


def test_a_compressed_file_may_have_several_frames(home: Home):
    middle = len(FIRST) // 2
    home.put(name(1), compressed(FIRST[:middle]) + compressed(FIRST[middle:]), suffix=".zst")

    assert told(home.open(name(1))) == to_bytes(read(FIRST).checkpoint((), {}))


PACKED = compressed(FIRST)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"garbage" * 9, id="garbage"),
        pytest.param(FIRST, id="not compressed at all"),
        pytest.param(PACKED[:-5], id="cut off"),
        pytest.param(PACKED[:9], id="only its beginning"),
        pytest.param(PACKED[:40] + b"\x00\x00\x00\x00" + PACKED[44:], id="damaged"),
        pytest.param(PACKED + b"garbage", id="something behind it"),
    ],
)
def test_a_damaged_compressed_file_cannot_be_read(home: Home, data: bytes):
    path = home.put(name(1), data, suffix=".zst")

    with pytest.raises(UnreadableSource):
        open_session(FILES, path, nowhere)


def test_a_damaged_compressed_base_is_reported(home: Home):
    home.put(name(1), b"garbage", suffix=".zst")
    home.put(name(2), child(based_on(name(1), 8, 999), turn(user("own", ref="u9"))))

    orphan = home.open(name(2))

    assert [each.rollout_id for each in orphan.problems] == [name(1)]
    assert orphan.now().checkpoint((), {}).task is not None


# --- saved and taken up again --------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_a_follower_can_be_saved_at_any_line_and_taken_up_again(home: Home, form: str):
    heads = {"paginated": session(), "legacy": session("legacy"), "bare": session("bare")}
    data = rollout(
        heads[form],
        turn(user("one"), shell("cat a.py", reads=["a.py"]), patch(add="b.py")),
        turn(user("two"), shell("ls"), image("c.png")),
        rollback(1),
    )
    whole = to_bytes(read(data).checkpoint((), {}))
    path = Path(home.put(name(1), data))

    for end in range(len(data) + 1):
        if end % 97 and data[end - 1 : end] != b"\n":
            continue
        path.write_bytes(data[:end])
        follower = home.open(name(1))
        loaded = SessionFile.load(FILES, str(path), orjson.loads(orjson.dumps(follower.save())))
        assert loaded is not None
        assert (loaded.mark, loaded.problems) == (follower.mark, follower.problems)
        path.write_bytes(data)
        assert told(loaded.read_on(home.locate)) == whole


def test_what_was_saved_of_another_content_is_not_believed(home: Home):
    path = Path(home.put(name(1), FIRST))
    saved = home.open(name(1)).save()
    path.write_bytes(OTHER)

    loaded = SessionFile.load(FILES, str(path), saved)

    assert loaded is not None
    assert told(loaded.read_on(home.locate)) == to_bytes(read(OTHER).checkpoint((), {}))


def test_what_cannot_be_taken_up_is_no_follower(home: Home):
    home.put(name(1), FIRST)
    saved = orjson.loads(orjson.dumps(home.open(name(1)).save()))
    bad: list[object] = [None, 7, [], {}, "x", {**saved, "mark": None}, {**saved, "problems": 7}]
    bad += [{**saved, "replay": each} for each in (None, {}, {**saved["replay"], "version": -1})]
    bad += [{key: each for key, each in saved.items() if key != gone} for gone in saved]

    for value in bad:
        assert SessionFile.load(FILES, "x", value) is None


# --- the end of a turn ---------------------------------------------------------------------------


def test_a_session_can_be_read_up_to_a_line(home: Home):
    data = parent(home)
    home.put(name(2), child(based_on(name(1), 8, cut(data, 8)), turn(user("three"), name="t9")))
    path = home.locate(name(2))
    assert path is not None

    for turn_, text, artifacts in ((0, "one", {"one.py"}), (1, "three", {"one.py"})):
        whole = open_session(FILES, path, home.locate)
        ended = whole.now().state.turns.turns[turn_]
        assert ended.ended is not None

        at = open_session(FILES, path, home.locate, until=ended.ended)

        found = at.now().checkpoint((), {})
        assert found.seq == ended.ended_seq
        assert found.task is not None
        assert (found.task.text, set(found.artifacts)) == (text, artifacts)


# --- size ----------------------------------------------------------------------------------------

PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:3]
try:
    import resource
    unit = 1 if sys.platform == "darwin" else 1024
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
except ImportError:
    import tracemalloc
    tracemalloc.start()
    peak = lambda: tracemalloc.get_traced_memory()[1]
import rollouts as r
from codex_checkpoints.service.reading.session_file import open_session
from codex_checkpoints.storage.rollout_file import FileReader

image = {"type": "image", "image_url": "data:image/png;base64,@@"}
kinds = {
    "thought": r.reasoning("@@"),
    "image": r.item("UserMessage", id="u9", content=[{"type": "text", "text": "look"}, image]),
    "output": r.shell("ls", "@@"),
    "message": r.user("@@"),
    "unknown": r.record("new", {"text": "@@"}),
    "torn": r.reasoning("@@"),
}
path = sys.argv[3]

def write(kind, size):
    data = r.rollout(r.session(), r.user("before"), kinds[kind], r.complete())
    front, *_, back = data.split(b"@@")
    fill = b"A" * 65_521 if kind == "image" else b"ab cd ef " * 7_000
    with open(path, "wb") as file:
        file.write(front)
        for _ in range(size // len(fill)):
            file.write(fill)
        file.write(b"" if kind == "torn" else back)

def look():
    now = open_session(FileReader(), path, lambda _id: None).now()
    return now.seq, now.checkpoint((), {}).task.text

write("message", 1000)
look()
before = peak()
for kind in kinds:
    write(kind, 200_000_000)
    print(kind, *look(), (peak() - before) // 1_000_000)
"""


def test_a_line_of_200_megabytes_takes_a_bounded_memory(tmp_path: Path):
    arguments = [str(ROOT / "server"), str(ROOT / "tests"), str(tmp_path / "long.jsonl")]

    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )

    # kind, seq, task, and the megabytes that the whole took at most
    told = [line.split() for line in run.stdout.splitlines()]
    assert [line[:3] for line in told] == [
        ["thought", "4", "before"],
        ["image", "4", "look"],
        ["output", "6", "before"],
        ["message", "5", "before"],
        ["unknown", "4", "before"],
        ["torn", "2", "before"],
    ]
    assert max(int(line[3]) for line in told) < 150, run.stdout


def test_a_state_with_a_secret_in_a_waiting_call_is_not_kept(home: Home) -> None:
    key = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"
    asked = call("shell_command", {"command": f"export OPENAI_API_KEY={key}"}, "c1")
    begun = [session("legacy"), user("go"), asked]
    home.put(name(1), rollout(*begun))
    assert home.open(name(1)).save() is None
    home.put(name(1), rollout(*begun, output("c1", "Exit code: 0")))
    decided = home.open(name(1)).save()
    assert decided is not None
    assert key not in json.dumps(decided)
