"""Pinned messages, notes and texts: how they are named, and that every digest quotes them."""

import json
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
import updates
from doors.test_hook import given_to
from homes import Home, go_on, thread
from peer import Peer

Json = dict[str, Any]

SESSION = thread(1)
NONE: Json = dict.fromkeys(("uri", "start", "end", "message", "note", "text"))
SECRET = "ghp" + "_" + "a1B2" * 9
CAVE = r.turn(
    r.user("Open the cave.\nNever break the rock.", ref="u1"),
    r.shell("cat cave.py", "def opens(): ...", reads=["cave.py"]),
    r.assistant("The door is in `opens`."),
)
LAMP = r.turn(r.user("Now the lamp.", ref="u2"), r.assistant("Lit. " + "It shines. " * 2000))
FACT = updates.fact("build.command", "make all", seq=3, turn="t1")
CHOICE = updates.decision("lamp-1", "Burn oil", "it is there", seq=3, turn="t1")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    (home.user / "shop").mkdir()
    (home.user / "shop/a.py").write_text("one\ntwo\nthree\n")
    home.put(r.rollout(r.session(thread=SESSION, cwd=str(home.user / "shop")), CAVE, LAMP))
    updated = home.checkpoint().with_name("updates.jsonl")
    updated.parent.mkdir(parents=True)
    updated.write_text("".join(f"{json.dumps(line)}\n" for line in (FACT, CHOICE)))
    return home


def pinned(home: Home, *what: str, session: str = SESSION) -> list[Json]:
    return home.json("pin", session, *what)


def digest(home: Home, *options: str, session: str = SESSION) -> Json:
    return home.json("digest", session, *options)


def lines(told: Json) -> list[str]:
    """Return the lines of the pins in a digest."""
    found = [line for line in told["lines"] if line["section"] == "PINNED"]
    assert {line["ref"] for line in found} <= {None}
    assert ("\n[PINNED]\n" in told["text"]) == bool(found)
    return [line["text"].removeprefix("- ") for line in found]


def request(home: Home, turn: int = 1) -> str:
    """Return the anchor of the request of a turn."""
    found = digest(home)["lines"]
    return next(
        line["ref"] for line in found if (line["section"], line["turn"]) == ("REQUESTS", turn)
    )


def all_pinned(home: Home) -> None:
    pinned(home, "--text", "Release on Friday.")
    pinned(home, "--message", "t1")
    pinned(home, "a.py#L2-L3")
    pinned(home, "--note", "lamp-1")
    pinned(home, "--note", "build.command")


def test_messages_notes_and_texts_are_pinned_listed_in_order_and_unpinned(home: Home):
    ref = request(home)

    all_pinned(home)

    listed = pinned(home)
    assert listed == [
        NONE | {"text": "Release on Friday."},
        NONE | {"message": ref},
        NONE | {"uri": "a.py", "start": 2, "end": 3},
        NONE | {"note": "lamp-1"},
        NONE | {"note": "build.command"},
    ]
    assert home.here("pin", SESSION).stdout.decode().splitlines() == [
        "text: Release on Friday.",
        f"message {ref}",
        "a.py#L2-L3",
        "note lamp-1",
        "note build.command",
    ]
    assert home.json("unpin", SESSION, "--note", "lamp-1") == [*listed[:3], listed[4]]
    assert home.json("unpin", SESSION, "--message", ref) == [listed[0], listed[2], listed[4]]
    assert home.json("unpin", SESSION, "--text", "Release\non Friday.")
    assert pinned(home) == [listed[2], listed[4]]
    for what in (["--message", "t1"], ["--note", "lamp-1"], ["--text", "Release on Friday."]):
        assert home.refused("unpin", SESSION, *what)["code"] == "invalid_payload"


def test_message_is_pinned_by_any_of_its_names_and_stored_by_its_seq(home: Home):
    ref = request(home)

    for name in (ref, ref[1:], "u1", "t1"):
        assert pinned(home, "--message", name) == [NONE | {"message": ref}]
    state = home.checkpoint().with_name("markers.jsonl").read_text()
    assert "cave" not in state  # AGN-8


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (["--message", "#999"], "unknown_ref"),
        (["--message", "c1"], "unknown_ref"),  # a call is no message
        (["--message", "t9"], "unknown_ref"),
        (["--note", "nope"], "unknown_note"),
        (["--text", f"the key is {SECRET}"], "secret_text"),
        (["--text", " \n "], "invalid_payload"),
    ],
)
def test_unknown_message_or_note_and_a_secret_are_not_pinned(
    home: Home, what: list[str], code: str
):
    error = home.refused("pin", SESSION, *what)

    assert error["code"] == code
    assert SECRET not in json.dumps(error)
    assert pinned(home) == []


@pytest.mark.parametrize("what", [["a.py", "--text", "x"], ["--note", "lamp-1", "--message", "t1"]])
def test_only_one_thing_is_pinned_at_a_time(home: Home, what: list[str]):
    assert home.here("pin", SESSION, *what).returncode == 2
    assert home.here("unpin", SESSION).returncode == 2
    with Peer(home.root) as peer:
        peer.start()
        none = peer.error("checkpoints/pin", {"sessionId": SESSION})
        two = peer.error("checkpoints/pin", {"sessionId": SESSION, "path": "a.py", "note": "x"})
        one = peer.call("checkpoints/pin", {"sessionId": SESSION, "text": "Hold on."})
    assert [each["data"]["code"] for each in (none, two)] == ["invalid_payload"] * 2
    assert one["items"] == pinned(home) == [NONE | {"text": "Hold on."}]


def test_pinned_text_is_one_line_of_bounded_length(home: Home):
    (pin,) = pinned(home, "--text", "\x1b[31mred\u202e\nand " + "long " * 1000)

    assert pin["text"].startswith("[31mred and long")
    assert len(pin["text"]) == 2000
    assert pin["text"].endswith("…")


def test_every_digest_quotes_pins_in_the_users_order(home: Home):
    ref = request(home)
    before = digest(home)

    all_pinned(home)

    told = digest(home)
    assert lines(before) == []
    assert lines(told) == [
        "text: Release on Friday.",
        rf"message {ref}, user: Open the cave.\nNever break the rock.",
        "file a.py lines 2-3",
        "decision lamp-1: Burn oil — it is there",
        "fact build.command: make all",
    ]
    assert told["left"] == {}
    at_first = digest(home, "--at", "1")
    assert lines(at_first) == lines(told)
    assert lines(digest(home, "--tokens", "150")) == lines(told)
    few = digest(home, "--tokens", "50")
    assert len(lines(few)) + few["left"]["PINNED"] == 5


def test_pinned_answer_is_quoted_from_its_turn_on(home: Home):
    answer = next(
        line["ref"]
        for line in digest(home)["lines"]
        if line["section"] == "OUTCOMES" and line["turn"] == 2
    )
    pinned(home, "--message", answer)

    (line,) = lines(digest(home))
    assert line.startswith(f"message {answer}, assistant: Lit. It shines.")
    assert " … " in line
    then = digest(home, "--at", "1")
    assert (lines(then), then["left"]) == ([], {"PINNED": 1})


def test_missing_pin_is_counted_and_not_quoted(home: Home):
    pinned(home, "--note", "lamp-1")
    home.json("notes", "revoke", SESSION, "lamp-1")

    told = digest(home)

    assert (lines(told), told["left"]) == ([], {"PINNED": 1})
    assert pinned(home) == [NONE | {"note": "lamp-1"}]  # it may come back


def test_pinned_message_of_a_rolled_back_turn_is_not_quoted(tmp_path: Path):
    home = Home(tmp_path)
    home.put(r.rollout(r.session("legacy"), CAVE, LAMP))
    pinned(home, "--message", "t1")
    gone = pinned(home, "--message", "t2")[-1]["message"]
    go_on(home.path(), SESSION, r.rollback(1), form="legacy")

    told = digest(home)

    (line,) = lines(told)
    assert "Open the cave." in line
    assert told["left"] == {"PINNED": 1}
    assert home.refused("pin", SESSION, "--message", gone)["code"] == "unknown_ref"


def branched(home: Home, mode: str, turn: str = "1") -> str:
    marker = home.json("mark", SESSION, "--label", "here", "--turn", turn)["checkpointId"]
    return home.json("restore", SESSION, marker, "--mode", mode)["sessionId"]


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_branch_keeps_the_pins_of_its_source_up_to_the_marker(home: Home, mode: str):
    all_pinned(home)
    pinned(home, "--message", "t2")

    branch = branched(home, mode)

    assert pinned(home, session=branch) == pinned(home)[:-1]
    assert lines(digest(home, session=branch)) == lines(digest(home))[:-1]


def test_soft_branch_of_a_session_without_a_head_renumbers_its_messages(tmp_path: Path):
    home = Home(tmp_path)
    home.put(r.rollout(r.session("bare"), CAVE, LAMP))
    pinned(home, "--message", "t1")
    (source,) = lines(digest(home))

    branch = branched(home, "soft")

    (line,) = lines(digest(home, session=branch))
    assert line.partition(", ")[2] == source.partition(", ")[2]


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_compaction_keeps_the_pins_and_its_digest_quotes_them(home: Home, into: str):
    all_pinned(home)
    wanted = lines(digest(home))

    done = home.json("compact", SESSION, "--into", into, "--digest-tokens", "4000")

    made = done["sessionId"]
    assert pinned(home, session=made) == pinned(home)
    *_, last = home.json("history", made)["items"]
    handed = "".join(part["text"] for part in last["content"])
    section = handed.partition("[PINNED]\n")[2].partition("\n\n")[0]
    assert section.splitlines() == [f"- {line}" for line in wanted]
    assert lines(digest(home, session=made)) == wanted


@pytest.mark.parametrize("size", [1, 3 << 20])
def test_injected_bundle_quotes_pins_of_any_age(tmp_path: Path, size: int):
    home = Home(tmp_path)
    long = r.turn(r.user("Look."), r.shell("cat log", "x" * size))
    home.put(r.rollout(r.session(thread=SESSION), CAVE, long, r.compacted("So far.", []), LAMP))
    pinned(home, "--text", "Release on Friday.")
    ref = pinned(home, "--message", "t1")[-1]["message"]

    text = given_to(home, "compact")

    assert text is not None
    assert text.partition("[PINNED]\n")[2].splitlines()[:2] == [
        "- text: Release on Friday.",
        rf"- message {ref}, user: Open the cave.\nNever break the rock.",
    ]


def test_packs_hold_pinned_files_and_count_the_other_pins(home: Home):
    all_pinned(home)
    file = home.root / "session.pack"

    told = home.json("export", SESSION, str(file))

    assert json.loads(file.read_bytes())["pins"] == [{"uri": "a.py", "start": 2, "end": 3}]
    assert told["counts"]["pins"] == 1
    assert [each for each in told["leftBehind"] if each["reason"] == "pinned_words"] == [
        {
            "reason": "pinned_words",
            "count": 4,
            "message": "4 pins that are not files are left out",
        }
    ]
