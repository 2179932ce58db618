"""Lines of a session file: their bounds, their numbers, and unreadable ones."""

import json

import pytest

from codex_checkpoints.core.agents.codex.reader import CHUNK, WHOLE, WORDS, Fold, Line, Reader
from derived_state import OFFERED, artifacts, checkpoint, read, task
from rollouts import (
    Form,
    assistant,
    blank,
    call,
    complete,
    event,
    injected,
    item,
    mcp,
    output,
    patch,
    raw,
    reasoning,
    record,
    rollout,
    session,
    several,
    shell,
    started,
    to_line,
    torn,
    turn,
    turn_context,
    user,
)

LONG = 100_000
HEAD = rollout(session())


def numbered(*ordinals: object) -> bytes:
    """A head without ordinal, and a line of unknown kind for each of these; None has none."""
    lines = [HEAD.replace(b'"ordinal":0,', b"")]
    for ordinal in ordinals:
        known = {} if ordinal is None else {"ordinal": ordinal}
        lines.append(to_line({"timestamp": "x", **known, "type": "new", "payload": {}}))
    return b"".join(lines)


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ordinals", "seq"),
    [
        ([], -1),
        ([None], -1),
        ([0, 1, 2], 2),
        ([0, 1, 7], 7),
        ([5, 3, 4], 5),
        ([4, None], 4),
        ([None, 4], 4),
        ([3, -1], 3),
        ([3, 4.0, "4", True, [4]], 3),
        ([2**53 - 1], 2**53 - 1),
    ],
)
def test_with_ordinals_seq_is_the_highest_ordinal_so_far(ordinals: list[object], seq: int):
    assert read(numbered(*ordinals)).seq == seq


def test_without_ordinals_every_line_that_is_not_blank_has_a_seq():
    odd = (raw(b"not json\n"), raw(b"[]\n"), raw(b"\xff\n"), record("new", {}))
    data = rollout(session("legacy"), blank(), user("hello"), blank(b" \t\r"), *odd, blank())

    assert read(data).seq == 1 + 2 + 3 + 1


def test_seq_before_the_first_line_is_zero():
    assert [read(data).seq for data in (b"", b"\n \n\r\n")] == [0, 0]
    assert checkpoint(b"").task is None


def test_envelope_without_an_object_still_has_its_seq():
    for payload in (b"", b',"payload":null', b',"payload":[1]', b',"payload":"x"'):
        line = b'{"timestamp":"2026-11-20T10:00:00.000Z","ordinal":9,"type":"beat"' + payload

        assert read(HEAD + line + b"}\n").seq == 9


def test_first_head_counts_and_later_ones_belong_to_other_sessions():
    data = rollout(
        session(cwd="/home/ana/shop"),
        session(thread="01a1f865-0000-7000-8000-0000000000bb", cwd="/home/ana/other"),
        patch(add="/home/ana/shop/a.py"),
    )

    state = read(data).state
    assert state.head is not None
    assert state.head.session_id == "01a1f865-0000-7000-8000-000000000001"
    assert set(artifacts(data)) == {"a.py"}


# --- where a line ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("wall", ["\u2028", "\u2029", "\x85", "\x7f", "\ufeff", "\u00a0"])
def test_only_a_line_feed_ends_a_line(wall: str):
    data = rollout(session(), user(f"a{wall}b"))

    assert data.count(b"\n") == 3
    assert read(data).seq == 2
    assert task(data) is not None


@pytest.mark.parametrize("end", [b"\r\n", b" \n", b"\t\r\n"], ids=repr)
@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.parametrize("length", [10, LONG])
def test_white_space_after_an_object_changes_nothing(end: bytes, form: Form, length: int):
    text = "x" * length
    steps = (user(text), reasoning(text), shell("ls", text), mcp("docs", "find", text), blank())
    data = rollout(session(form), *steps)

    plain, spaced = read(data), read(data.replace(b"\n", end))

    assert (spaced.seq, spaced.scale.skipped) == (plain.seq, {})
    assert spaced.checkpoint((), {}) == plain.checkpoint((), {})


def test_last_line_counts_as_soon_as_it_is_complete():
    before = rollout(session(), user("first"))
    last = rollout(session(), user("first"), item("UserMessage", id="u9", content=[TEXT]))
    line = last[len(before) : -1]

    for cut in (*(line[:length] for length in range(len(line))), line + b"}\n", line + b" more\n"):
        assert task(before + cut) == ("first", "u1")
        assert read(before + cut).seq == 2
    for end in (b"", b"\r", b"\n", b"\r\n", b" "):
        assert task(before + line + end) == ("last", "u9")
        assert read(before + line + end).seq == 3


TEXT = {"type": "text", "text": "last"}


def test_byte_order_mark_is_not_part_of_the_first_line():
    for data in (rollout(session(), user("hello")), rollout(session("bare"), user("hello")), HEAD):
        for end in (b"", b"\n"):
            marked = read(b"\xef\xbb\xbf" + data[:-1] + end)

            assert marked.seq == read(data).seq
            assert marked.state.head == read(data).state.head


# --- lines that cannot be read -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"no json", "not_json"),
        (b'{"a":1', "not_json"),
        (b"\x00\x00", "zero_bytes"),
        (b'{"a":NaN}', "not_json"),
        (b'"text"', "not_object"),
        (b"[{}]", "not_object"),
        (b"null", "not_object"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"timestamp":"x","ordinal":7,"type":"new","payload":{}}', "unknown_type"),
        (
            b'{"timestamp":"x","ordinal":7,"type":"event_msg","payload":{"type":"a"}}',
            "unknown_type",
        ),
        (b'{"timestamp":"x","type":"turn_context","payload":{}}', "no_ordinal"),
        (b'{"timestamp":"x","ordinal":1,"type":"turn_context","payload":{}}', "repeated_ordinal"),
    ],
)
def test_useless_line_is_skipped_and_counted(line: bytes, reason: str):
    data = rollout(session(), user("before"), raw(line + b"\n"), user("after"))

    assert read(data).scale.skipped.get(reason) == 1
    assert task(data) == ("after", "u2")


def test_torn_line_and_its_repetition_count_once():
    """A line was torn, ended by a line feed, and written again whole (upstream #24425)."""
    patched = item("FileChange", id="c1", status="completed", changes={"/home/ana/shop/a.py": {}})

    for lose in range(1, 150):
        data = rollout(session(), user("x"), torn(patched, lose), patched)

        assert read(data).seq == 3
        assert artifacts(data) == {"a.py": ("file", 3)}


@pytest.mark.parametrize("lose", [1, 2, 3, 20])
def test_torn_line_gives_nothing_even_if_its_end_looks_complete(lose: int):
    legacy = rollout(
        session("legacy"),
        user("x"),
        torn(turn_context("/elsewhere"), lose),
        call("exec_command", {"cmd": "cat a.py"}, "c1"),
        torn(output("c1", '{"a":{"b":{"c":{}}}}'), lose),
        *(call("exec_command", {"cmd": "cat b.py"}, "c2"), output("c2", "")),
        output("c1", "again"),
    )
    paginated = rollout(
        session(),
        user("x"),
        torn(turn_context("/elsewhere"), lose),
        torn(shell("ls", "}"), lose),
        item("FileChange", id="c1", status="completed", changes={"a.py": {}}),
    )

    assert artifacts(legacy) == {"a.py": ("file", 9), "b.py": ("file", 8)}
    assert artifacts(paginated) == {"ls": ("command", 4), "a.py": ("file", 5)}


@pytest.mark.parametrize("length", [10, LONG])
def test_unreadable_last_line_moves_no_seq(length: int):
    good = rollout(session(), user("x"))
    bad = rollout(session(), user("x"), reasoning("y" * length)).replace(b"yyy", b"\xff", 1)

    assert read(good).seq == 2
    for tail in (b"", b'{"timest', b"\n", b"x" * LONG):
        assert read(bad + tail).seq == 2
        assert read(bad + tail, pieces=[len(bad), len(bad) + 4]).seq == 2


@pytest.mark.parametrize("lose", [1, 2, 9])
@pytest.mark.parametrize("length", [10, LONG])
def test_torn_line_has_the_seq_of_the_next_one(length: int, lose: int):
    """Codex counts on from the last line that it can read."""
    torn_off = rollout(session(), user("x"), torn(reasoning("y" * length), lose))
    again = rollout(session(), user("x"), torn(reasoning("y" * length), lose), reasoning("z"))

    assert read(torn_off).seq == 2
    for end in (b"", b"\n", b"\n\n", b" \n"):
        assert read(torn_off + end).seq == 2
        assert read(again[:-1] + end).seq == 3


def test_lone_surrogate_becomes_a_replacement_character_and_nul_a_space():
    data = rollout(session(), user("a \ud83d b", "\ude00", "\ud83d\ude00", "c\x00d"))

    assert b"\\ud83d" in data
    assert task(data) == ("a \ufffd b \ufffd 😀 c d", "u1")


# --- long lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("around", [-1, 0, 1])
def test_line_may_be_as_long_as_a_chunk(around: int):
    for step, ref in ((user, "u2"), (reasoning, "u1")):
        padding = "y" * (OFFERED - len(rollout(session(), step(""))) + around)
        data = rollout(session(), step(padding), complete(), user("what comes after it all"))

        assert task(data) == ("what comes after it all", ref)


def test_long_line_counts_like_a_short_one():
    text = "word " * LONG
    said = (user(text), reasoning(text), shell("ls", text), mcp("docs", "find", text))
    data = rollout(session(), started(), *said, assistant(text), complete())

    replay = read(data)

    assert (replay.seq, replay.scale.skipped) == (data.count(b"\n") - 1, {})
    assert task(data) == (("word " * 32)[:159] + "…", "u1")
    assert artifacts(data) == {"ls": ("command", 6), "docs.find/c2": ("tool_output", 9)}
    assert replay.checkpoint((), {}).artifacts["docs.find/c2"].hash is not None


def test_needed_line_loses_its_images_and_keeps_its_words():
    blob = "data:image/png;base64," + "iVBORw0KGgo" * 1_000_000
    content = [TEXT, {"type": "image", "image_url": blob}]
    data = rollout(session(), item("UserMessage", id="u1", content=content), complete())

    assert (read(data).seq, read(data).scale.skipped) == (2, {})
    assert task(data) == ("last", "u1")


class Lines(Fold):
    """Keeps the lines of which it gets the `wanted` part."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.lines: list[Line] = []

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        return self.wanted

    def take(self, line: Line) -> None:
        self.lines.append(line)


def payload_of(data: bytes, wanted: int) -> object:
    """The payload of the last line, read in pieces."""
    fold, rest = Lines(wanted), b""
    reader = Reader(fold)
    for begin in range(0, len(data), CHUNK):
        rest += data[begin : begin + CHUNK]
        rest = rest[reader.feed(rest) :]
    return fold.lines[-1].payload


@pytest.mark.parametrize("kind", ["png;base64,", "svg+xml;utf8,<svg a='\\\\'>"])
def test_words_of_a_long_line_are_read_without_its_images(kind: str):
    url = f"data:image/{kind}" + "iVBORw0KGgo" * 30_000
    told = f'"image_url":"{url}"'
    content = [{"type": "input_text", "text": told}, {"type": "input_image", "image_url": url}]
    data = rollout(session(), output("c1", content))

    whole = payload_of(data, WHOLE)
    assert whole == {"type": "function_call_output", "call_id": "c1", "output": content}
    assert isinstance(whole, dict)
    content[1]["image_url"] = "data:image/"
    assert payload_of(data, WORDS) == whole | {"output": content}


def test_image_that_ends_with_an_escape_is_left_as_it_is():
    url = "data:image/svg+xml;utf8," + "a" * 200_000 + '"'
    content = [{"type": "input_image", "image_url": url}]
    data = rollout(session(), output("c1", content))

    assert payload_of(data, WORDS) == payload_of(data, WHOLE)


@pytest.mark.timeout(20)
def test_long_line_of_words_too_short_for_an_image_is_read_without_delay():
    text = ("x" * 4_000 + " ") * 1_200

    replay = read(rollout(session(), user(text), complete()))

    assert (replay.seq, replay.scale.skipped) == (3, {})


def test_shortened_text_has_no_hash():
    text = "a word, then " + "QUJD" * 2_000_000
    answered = (call("mcp__docs__find", {}, "c1"), output("c1", text))

    for data in (
        rollout(session(), mcp("docs", "find", text)),
        rollout(session("legacy"), *answered),
    ):
        (found,) = checkpoint(data).artifacts.values()
        assert (found.uri, found.hash) == ("docs.find/c1", None)


def test_needed_line_that_stays_too_long_is_skipped_and_counted():
    data = rollout(session(), user("before"), user("word " * 7_000_000), user("after", ref="u9"))

    replay = read(data)

    assert replay.scale.skipped == {"too_long": 1}
    assert replay.seq == 6
    assert task(data) == ("after", "u9")


# --- forms ---------------------------------------------------------------------------------------


def test_keys_may_stand_in_any_order():
    line = {"payload": {"message": "hello", "type": "user_message"}, "type": "event_msg"}
    data = rollout(session("legacy"), raw(json.dumps(line | {"timestamp": "x"}).encode() + b"\n"))

    assert task(data) == ("hello", "seq:2")


def test_duplicate_key_counts_as_in_json():
    """Neither Codex nor a person writes this; both readers must still agree."""
    twice = raw(
        b'{"timestamp":"2026-11-20T10:00:09.000Z","ordinal":1,"type":"turn_context",'
        b'"payload":{"cwd":"/one","cwd":"/home/ana/shop/two","model":"m"}}\n'
    )
    seen = several(
        lambda writer: writer.record("new", {}), item("ImageView", id="c1", path="a.png")
    )

    assert set(artifacts(rollout(session(), twice, seen))) == {"two/a.png"}


def test_unknown_kind_of_line_is_counted_whatever_its_text():
    new = record("new", {"type": "user_message", "message": "no"})
    steps = (turn(user("hello")), new, event("new", message="no"), injected("no", role="robot"))
    data = rollout(session("legacy"), *steps)

    assert task(data) == ("hello", "seq:4")
    assert read(data).scale.skipped == {"unknown_type": 2}
