"""A session, followed through its files: chains, growth, replacement, compression, size."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.checkpoint.records import Checkpoint, to_bytes
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.service.reading import session_file
from codex_checkpoints.service.reading.session_file import (
    FileProblem,
    SessionFile,
    lines_of,
    open_session,
)
from codex_checkpoints.storage import session_files
from codex_checkpoints.storage.contract import UnreadableSource
from codex_checkpoints.storage.rollout_file import FileReader
from derived_state import compressed, read
from homes import SERVER, SUPPORT, Home, go_on, thread

FILES = FileReader()


BASE, OWN = thread(1), thread(2)
FIRST = r.rollout(r.session(), r.turn(r.user("first"), r.patch(add="first.py")))
OTHER = r.rollout(r.session(), r.turn(r.user("other"), r.patch(add="other.py")))
LEGACY = r.rollout(r.session("legacy"), r.turn(r.user("first"), r.patch(add="first.py")))
MIGRATED = r.rollout(
    r.session(), r.turn(r.user("first"), r.patch(add="first.py")), r.turn(r.user("more"))
)


class Files(Home):
    """A Codex home, in which a session is found by the id of its file."""

    def locate(self, rollout_id: str) -> str | None:
        found = session_files.scan(str(self.root))
        return {each.rollout_id: path for path, each in found.items()}.get(rollout_id.lower())

    def open(self, number: int = 1) -> SessionFile:
        path = self.locate(thread(number))
        assert path is not None
        return open_session(FILES, path, self.locate)

    def now(self, number: int = 1) -> Checkpoint:
        return self.open(number).now().checkpoint((), {})


@pytest.fixture
def home(tmp_path: Path) -> Files:
    return Files(tmp_path)


def told(session_file: SessionFile) -> bytes:
    """Return the checkpoint as it is now."""
    return to_bytes(session_file.now().checkpoint((), {}))


def as_read(data: bytes) -> bytes:
    """Return the checkpoint of these bytes."""
    return to_bytes(read(data).checkpoint((), {}))


def task(found: Checkpoint) -> str | None:
    return None if found.task is None else found.task.text


def nowhere(_rollout_id: str) -> str | None:
    return None


def cut(data: bytes, lines: int) -> int:
    """Where so many lines end."""
    return len(b"\n".join(data.split(b"\n")[:lines])) + 1


# --- chains --------------------------------------------------------------------------------------


def parent(home: Files) -> bytes:
    """Put a session of two turns: lines 0 to 7, and 8 to 14."""
    turns = (r.turn(r.user(name), r.patch(add=f"{name}.py")) for name in ("one", "two"))
    data = r.rollout(r.session(), *turns)
    home.put(data)
    return data


def child(home: Files, base: Mapping[str, object], *steps: r.Step, number: int = 2) -> bytes:
    """Put a session that builds on another; return what is its own."""
    own = r.rollout(r.session(thread=thread(number), history_base=base), *steps)
    home.put(own, number)
    return own


MORE = r.turn(r.user("three", ref="u9"), name="t9")


@pytest.mark.parametrize("front", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
def test_fork_is_its_base_up_to_the_cut_and_then_its_own_lines(home: Files, front: bytes):
    """Whatever stands before its first line."""
    data = parent(home)
    own = child(home, r.based_on(BASE, 8, cut(data, 8)), MORE)
    home.put(front + own, 2)

    forked = home.open(2)

    assert (forked.problems, forked.session_id) == ((), OWN)
    found = forked.now().checkpoint((), {})
    assert found.seq == 8 + own.count(b"\n") - 1
    assert (task(found), set(found.artifacts)) == ("three", {"one.py"})


def test_revert_is_a_segment_of_the_same_thread(home: Files):
    data = parent(home)
    head = r.session(history_base=r.based_on(BASE, 8, cut(data, 8)))
    path = home.put(r.rollout(head, MORE), segment=7)

    reverted = home.open(7)

    assert (reverted.path, reverted.session_id, reverted.problems) == (str(path), BASE, ())
    found = reverted.now().checkpoint((), {})
    assert (task(found), set(found.artifacts)) == ("three", {"one.py"})
    assert [each.turn_id for each in reverted.now().state.turns.turns] == ["t1", "t9"]


@pytest.mark.parametrize("offset", [0, 1, 10**9])
def test_ordinals_decide_where_a_base_is_cut_whatever_the_offset(home: Files, offset: int):
    data = parent(home)
    for number in range(16):
        child(home, r.based_on(BASE, number, offset or cut(data, number)))

        found = home.now(2)

        seen = {uri for uri, seq in (("one.py", 5), ("two.py", 12)) if seq < number}
        assert (found.seq, set(found.artifacts)) == (number, seen)


def test_base_that_grows_after_the_cut_changes_nothing(home: Files):
    data = parent(home)
    child(home, r.based_on(BASE, 15, len(data)), MORE)
    before = home.now(2)

    go_on(home.path(), BASE, r.turn(r.user("later"), r.patch(add="later.py")))

    assert home.now(2) == before


def test_missing_base_or_grandparent_is_reported_and_the_rest_is_read(home: Files):
    own = child(
        home, r.based_on(BASE, 8, 999), r.turn(r.user("x", ref="u8"), r.patch(add="own.py"))
    )
    child(home, r.based_on(OWN, 15, len(own)), MORE, number=3)

    for number in (2, 3):
        orphan = home.open(number)
        assert orphan.problems == (FileProblem("base_missing", BASE),)
        assert set(orphan.now().checkpoint((), {}).artifacts) == {"own.py"}
    assert home.now(2).seq == 8 + own.count(b"\n") - 1


def test_base_shorter_than_the_cut_is_reported_and_read_to_its_end(home: Files):
    data = parent(home)
    child(home, r.based_on(BASE, 40, len(data) + 5000), MORE)

    assert home.open(2).problems == (FileProblem("base_short", BASE),)
    assert set(home.now(2).artifacts) == {"one.py", "two.py"}


def test_last_line_of_a_base_counts_without_its_newline(home: Files):
    data = parent(home)[: cut(parent(home), 6)].removesuffix(b"\n")
    for end in (b"", b"\n"):
        home.put(data + end)
        child(home, r.based_on(BASE, 6, len(data + end)), MORE)

        assert home.open(2).problems == ()
        assert set(home.now(2).artifacts) == {"one.py"}


@pytest.mark.parametrize("length", [1, 2, 5])
def test_cyclic_chain_is_reported_and_ends(home: Files, length: int):
    for number in range(1, length + 1):
        base = r.based_on(thread(number % length + 1), 8, 999)
        child(home, base, r.turn(r.user("x", ref="u9"), r.image(f"{number}.png")), number=number)

    assert "base_cycle" in {each.code for each in home.open().problems}
    assert "1.png" in home.now().artifacts


def test_long_chain_is_read_to_its_beginning(home: Files):
    """Every revert adds a segment: a hundred of them are a long afternoon."""
    own = r.rollout(r.session(), r.image("1.png"))
    home.put(own)
    ordinal = own.count(b"\n")
    for number in range(2, 101):
        base = r.based_on(thread(number - 1), ordinal, len(own))
        own = child(home, base, r.image(f"{number}.png", call=f"c{number}"), number=number)
        ordinal += own.count(b"\n")

    last = home.open(100)

    assert last.problems == ()
    assert len(last.now().checkpoint((), {}).artifacts) == 100
    assert last.now().seq == ordinal - 1


def test_base_may_be_compressed_and_its_damage_is_reported(home: Files):
    data = parent(home)
    child(home, r.based_on(BASE, 8, cut(data, 8)), MORE)
    plain = home.now(2)
    home.path().unlink()

    home.put(compressed(data), form=".jsonl.zst")
    assert home.open(2).problems == ()
    assert home.now(2) == plain

    home.put(b"garbage", form=".jsonl.zst")
    assert [each.rollout_id for each in home.open(2).problems] == [BASE]
    assert task(home.now(2)) == "three"


def test_invalid_pointer_to_a_base_does_not_stop_reading(home: Files):
    parent(home)
    head, rest = r.rollout(
        r.session(thread=OWN), r.turn(r.user("own", ref="u9"), name="own")
    ).split(b"\n", 1)
    for base in (
        {},
        {"thread_id": BASE},
        {"thread_id": BASE, "end_ordinal_exclusive": 8},
        {"thread_id": 7, "end_ordinal_exclusive": 8, "end_byte_offset": 9},
        {"thread_id": BASE, "end_ordinal_exclusive": -8, "end_byte_offset": "9"},
    ):
        pointed = json.loads(head)
        pointed["payload"]["history_base"] = base
        home.put(json.dumps(pointed).encode() + b"\n" + rest, 2)

        assert task(home.now(2)) == "own"


# --- growth --------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [r.session(), r.session("legacy"), r.session("bare")])
def test_growing_file_is_followed_byte_by_byte(home: Files, head: r.Step):
    data = r.rollout(head, r.turn(r.user("hello é"), r.shell("cat a.py", "ü", reads=["a.py"])))
    path = home.put(b"")
    follower = home.open()

    with path.open("ab", buffering=0) as file:
        for number in range(len(data)):
            file.write(data[number : number + 1])
            follower = follower.read_on(home.locate)
            if number % 7 == 0 or data[number : number + 1] in b"}\n":
                assert told(follower) == told(home.open())

    assert told(follower) == as_read(data)


def test_following_reads_only_appended_bytes(home: Files, monkeypatch: pytest.MonkeyPatch):
    offered = 0
    feed = Replay.feed

    def counted(replay: Replay, data: bytes) -> int:
        nonlocal offered
        offered += len(data)
        return feed(replay, data)

    steps = [
        r.turn(r.user(f"message {number}"), r.shell("ls", "x" * 2000)) for number in range(300)
    ]
    data = r.rollout(r.session(), *steps)
    ends = [place + 1 for place, byte in enumerate(data) if byte == 0x0A]
    path = home.put(data[: ends[0]])
    follower = home.open()
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


def test_torn_tail_ended_by_codex_stays_torn(home: Files):
    patched = r.item("FileChange", id="c1", status="completed", changes={"a.py": {"type": "add"}})
    begun = (r.session(), r.started(), r.user("x"), r.torn(patched, 30))
    torn_off, whole = r.rollout(*begun), r.rollout(*begun, r.shell("ls"))
    assert whole.startswith(torn_off + b"\n")

    path = home.put(torn_off)
    follower = home.open()
    assert follower.now().seq == 3
    path.write_bytes(torn_off + b"\n")
    follower = follower.read_on(home.locate)
    assert follower.now().seq == 3
    path.write_bytes(whole)
    after = follower.read_on(home.locate)

    assert told(after) == told(home.open())
    assert set(home.now().artifacts) == {"ls"}
    assert after.replay.scale.skipped == {"not_json": 1}


@pytest.mark.parametrize("lost", [40, 1])
def test_torn_tail_may_be_completed_and_a_complete_one_counts_once(home: Files, lost: int):
    data = r.rollout(r.session("legacy"), r.user("x"), r.shell("ls"))
    path = home.put(data[:-lost])
    follower = home.open()
    early = told(follower)

    path.write_bytes(data)
    follower = follower.read_on(home.locate)

    assert told(follower) == told(home.open()) == told(follower.read_on(home.locate))
    assert (told(follower) == early) is (lost == 1)
    assert (follower.tail, follower.now().seq) == (b"", 5)


def test_peeking_at_a_tail_does_not_move_the_reader(home: Files):
    home.put(r.rollout(r.session(), r.started(), r.user("x"), r.rollback(1))[:-1])
    follower = home.open()

    for _ in range(2):
        assert follower.now().checkpoint((), {}).task is None
        assert follower.replay.checkpoint((), {}).task is not None


def test_long_last_line_is_read_when_it_is_complete(home: Files):
    for step in (r.user("y" * 300_000), r.reasoning("y" * 300_000), r.shell("ls", "y" * 300_000)):
        data = r.rollout(r.session(), r.started(), r.user("x"), step)
        path = home.put(data[: cut(data, 4)])
        follower = home.open()
        for end in (cut(data, 4) + 70_000, len(data) - 100_000, len(data) - 1, len(data)):
            path.write_bytes(data[:end])
            follower = follower.read_on(home.locate)
            assert told(follower) == told(home.open())
            assert follower.now().seq == read(data[:end]).seq


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chain=st.integers(0, 2),
    long=st.booleans(),
    places=st.lists(st.floats(0, 1) | st.floats(0, 0.05), max_size=4),
    loses=st.booleans(),
)
def test_file_growing_from_nothing_equals_the_whole_at_every_moment(
    home: Files, chain: int, long: bool, places: list[float], loses: bool
):
    """Whatever of its first line is there when it is first seen, and with restarts (DSC-75)."""
    bases, own = growing(home, chain, long=long)
    path = home.put(b"", 9)
    ends = sorted(int(place * len(own)) for place in places)

    follower = home.open(9)
    for end in (*ends, len(own)):
        with path.open("ab") as file:
            file.write(own[path.stat().st_size : end])
        if loses and (saved := follower.save()) is not None:
            loaded = SessionFile.load(FILES, str(path), saved)
            assert loaded is not None
            follower = loaded
        follower = follower.read_on(home.locate)

        assert (told(follower), follower.problems) == (told(home.open(9)), ())

    assert set(follower.now().checkpoint((), {}).artifacts) == {*bases, "own.py"}


def growing(home: Files, chain: int, *, long: bool) -> tuple[list[str], bytes]:
    """Put so many bases; return the files that they touch, and a session on the last of them."""
    head: dict[str, Any] = {"base_instructions": {"text": "i" * 200_000 * long}}
    names: list[str] = []
    ordinal = 0
    for number in range(1, chain + 1):
        name = f"base{number}.py"
        own = r.rollout(
            r.session(thread=thread(number), **head),
            r.turn(r.user(name), r.patch(add=name, call=f"c{number}")),
        )
        home.put(own, number)
        ordinal += own.count(b"\n")
        head["history_base"] = r.based_on(thread(number), ordinal, len(own))
        names.append(name)
    last = r.turn(r.user("own", ref="u9"), r.patch(add="own.py", call="c9"), name="t9")
    return names, r.rollout(r.session(thread=thread(9), **head), last)


def test_first_line_without_its_newline_counts_until_another_follows(home: Files):
    """Also when what follows makes it no line at all."""
    parent(home)
    own = child(home, r.based_on(BASE, 8, 999), MORE)
    end = own.index(b"\n")
    path = home.put(own[:end], 2)
    follower = home.open(2)
    assert set(follower.now().checkpoint((), {}).artifacts) == {"one.py"}

    for data in (own[:end] + b"x\n", own[:end] + b"x" + own[end:]):
        path.write_bytes(data)
        follower = follower.read_on(home.locate)

        assert told(follower) == told(home.open(2))


# --- another file under the same name ------------------------------------------------------------


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
        pytest.param(FIRST, r.crlf(FIRST), id="other line ends"),
        pytest.param(b"", FIRST, id="from nothing"),
        pytest.param(FIRST, FIRST, id="the same"),
    ],
)
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "replaced"])
def test_replaced_content_under_the_same_name_is_noticed(
    home: Files, old: bytes, new: bytes, in_place: bool
):
    path = home.put(old)
    follower = home.open()

    if in_place:
        path.write_bytes(new)
    else:
        beside = path.with_suffix(".tmp")
        beside.write_bytes(new)
        os.replace(beside, path)
    follower = follower.read_on(home.locate)

    assert told(follower) == as_read(new)
    assert follower.replay.seq == read(new).seq


def test_missing_file_or_folder_cannot_be_read(home: Files, tmp_path: Path):
    path = home.put(FIRST)
    follower = home.open()
    path.unlink()
    pipe = tmp_path / "pipe.jsonl"
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)

    with pytest.raises(UnreadableSource):
        follower.read_on(home.locate)
    for each in (path, tmp_path, pipe):
        with pytest.raises(UnreadableSource):
            open_session(FILES, str(each), nowhere)


def test_session_is_named_by_its_head_else_its_file_name(home: Files):
    rest = r.rollout(r.session(), r.user("x")).split(b"\n", 1)[1]
    for data, name in (
        (b"", thread(5)),
        (r.rollout(r.session(thread=BASE)), BASE),
        (r.rollout(r.session("bare", thread=BASE), r.user("x")), BASE),
        (b"not json\n" + rest, thread(5)),
    ):
        home.put(data, 5)
        assert home.open(5).session_id == name
    home.put(b"", 5)
    assert (home.open(5).head, home.open(5).now().seq) == (None, 0)


# --- compressed ----------------------------------------------------------------------------------


def test_compressed_file_reads_the_same_in_one_frame_or_several(home: Files):
    long = r.rollout(
        r.session(), *(r.turn(r.user(f"x{n}"), r.shell("ls", "y" * 9000)) for n in range(40))
    )
    for data in (FIRST, LEGACY, FIRST[:-1], FIRST[:-40], long, b""):
        middle = len(data) // 2
        for packed in (compressed(data), compressed(data[:middle]) + compressed(data[middle:])):
            home.put(packed, form=".jsonl.zst")

            assert told(home.open()) == as_read(data)
            assert told(home.open().read_on(home.locate)) == told(home.open())


PACKED = compressed(FIRST)


def test_damaged_compressed_file_cannot_be_read(home: Files):
    for data in (
        *(b"", b"garbage" * 9, FIRST),
        PACKED[:-5],
        PACKED[:9],
        PACKED[:40] + b"\x00\x00\x00\x00" + PACKED[44:],
        PACKED + b"garbage",
    ):
        path = home.put(data, form=".jsonl.zst")
        with pytest.raises(UnreadableSource):
            open_session(FILES, str(path), nowhere)


# --- saved and taken up again --------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_reader_can_be_saved_at_any_line_and_resumed(home: Files, form: r.Form):
    data = r.rollout(
        r.session(form),
        r.turn(r.user("one"), r.shell("cat a.py", reads=["a.py"]), r.patch(add="b.py")),
        r.turn(r.user("two"), r.shell("ls"), r.image("c.png")),
        r.rollback(1),
    )
    path = home.put(data)

    for end in range(len(data) + 1):
        if end % 97 and data[end - 1 : end] != b"\n":
            continue
        path.write_bytes(data[:end])
        follower = home.open()
        loaded = SessionFile.load(FILES, str(path), orjson.loads(orjson.dumps(follower.save())))
        if end < cut(data, 1):
            assert loaded is None
            continue
        assert loaded is not None
        assert (loaded.mark, loaded.problems) == (follower.mark, follower.problems)
        path.write_bytes(data)
        assert told(loaded.read_on(home.locate)) == as_read(data)


def test_saved_state_of_another_content_is_ignored(home: Files):
    path = home.put(FIRST)
    saved = home.open().save()
    path.write_bytes(OTHER)

    loaded = SessionFile.load(FILES, str(path), saved)

    assert loaded is not None
    assert told(loaded.read_on(home.locate)) == as_read(OTHER)


def test_invalid_saved_state_is_ignored(home: Files):
    home.put(FIRST)
    saved = orjson.loads(orjson.dumps(home.open().save()))
    bad: list[object] = [None, 7, [], {}, "x", {**saved, "mark": None}, {**saved, "problems": 7}]
    bad += [{**saved, "replay": each} for each in (None, {}, {**saved["replay"], "version": -1})]
    bad += [{key: each for key, each in saved.items() if key != gone} for gone in saved]

    for value in bad:
        assert SessionFile.load(FILES, "x", value) is None


# --- the end of a turn ---------------------------------------------------------------------------


def test_session_can_be_read_up_to_a_line(home: Files):
    data = parent(home)
    child(home, r.based_on(BASE, 8, cut(data, 8)), MORE)
    path = home.locate(OWN)
    assert path is not None

    for number, text in ((0, "one"), (1, "three")):
        ended = home.open(2).now().state.turns.turns[number]
        assert ended.ended is not None

        replay = Replay()
        replay.until = ended.ended
        at = open_session(FILES, path, home.locate, replay=replay)

        found = at.now().checkpoint((), {})
        assert (found.seq, task(found), set(found.artifacts)) == (ended.ended_seq, text, {"one.py"})


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
    write(kind, 80_000_000)
    print(kind, *look(), (peak() - before) // 1_000_000)
"""


def test_line_of_80_megabytes_takes_bounded_memory(tmp_path: Path):
    arguments = [str(SERVER), str(SUPPORT), str(tmp_path / "long.jsonl")]

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
    assert max(int(line[3]) for line in told) < 60, run.stdout


def test_state_with_a_secret_in_a_pending_call_is_not_stored(home: Files):
    key = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"
    asked = r.call("shell_command", {"command": f"export OPENAI_API_KEY={key}"}, "c1")
    begun = [r.session("legacy"), r.user("go"), asked]
    home.put(r.rollout(*begun))
    assert home.open().save() is None
    home.put(r.rollout(*begun, r.output("c1", "Exit code: 0")))
    decided = home.open().save()
    assert decided is not None
    assert key not in json.dumps(decided)


@pytest.mark.parametrize("portion", [1, 1 << 16, 1 << 17, 1 << 22])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_lines_of_any_length_are_cut_from_portions_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portion: int, end: str
) -> None:
    monkeypatch.setattr(session_file, "_PORTION", portion)
    lengths = (2, 65_530, 1, 200_000, 65_536, 131_072, 3)
    lines = [orjson.dumps({"text": "x" * length}) for length in lengths]
    data = b"\xef\xbb\xbf\n \n" + b"\r\n".join(lines) + end.encode()
    path, seen = tmp_path / "lines.jsonl", bytearray()
    path.write_bytes(data)
    assert [*lines_of(FILES, str(path), also=seen.extend)] == lines
    assert seen == data
    assert [*lines_of(FILES, str(path), len(data) // 2)] == lines[:3]
