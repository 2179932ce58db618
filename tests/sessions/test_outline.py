"""The outline of a session, at every door: small however long the session is (JUN-27)."""

import json

from homes import Home, more, thread
from peer import Peer
from rollouts import Step, compacted, rollback, rollout, session, turn, user

SECRET = "ghp_" + "a1B2" * 9


def chats(first: int, last: int) -> list[Step]:
    return [
        turn(user(f"Do {number}. " + "x" * 300), name=f"turn {number}")
        for number in range(first, last + 1)
    ]


def test_ten_thousand_messages_and_forty_compactions_take_few_lines(home: Home):
    data = rollout(session())
    for first in range(1, 10_001, 250):
        steps = (*chats(first, first + 249), compacted("short", []))
        data += more(*steps, thread=thread(1), ordinal=data.count(b"\n"))
    home.put(data)

    found = home.json("outline", thread(1))

    assert len(found["chunks"]) == 16
    assert len(found["recent"]) <= 64
    assert len(json.dumps(found)) < 25_000
    assert (found["chunks"][0]["first"], found["recent"][-1]["number"]) == (1, 10_000)
    ends = [(each["last"] + 1, each["lastWindow"]) for each in found["chunks"]]
    begins = [(each["first"], each["firstWindow"]) for each in found["chunks"]]
    follows = (found["recent"][0]["number"], found["recent"][0]["window"])
    assert [end for end, _ in ends] == [begin for begin, _ in [*begins[1:], follows]]
    assert begins[0][1] == 0
    assert {each["window"] for each in found["recent"]} == {39}


def test_rolled_back_turns_are_omitted(home: Home):
    home.put(rollout(session(form="legacy"), *chats(1, 3), rollback(2), turn(user("Do it anew."))))

    found = home.json("outline", thread(1))

    assert [(each["number"], each["text"][:11]) for each in found["recent"]] == [
        (1, "Do 1. xxxxx"),
        (2, "Do it anew."),
    ]


def test_turn_that_began_with_a_picture_alone_has_a_line(home: Home):
    home.put(rollout(session(), turn(user(images=1), name="t")))

    (line,) = home.json("outline", thread(1))["recent"]

    assert (line["number"], line["turnId"], line["window"]) == (1, "t", 0)


def test_outline_for_people_has_no_secrets_and_no_control_characters(home: Home):
    home.put(rollout(session(), *chats(1, 96), turn(user(f"The key is {SECRET}\x1b[2J"))))

    lines = home.here("outline", thread(1)).stdout.decode().splitlines()

    assert lines[0].split() == ["turns", "windows", "request"]
    assert lines[1].split()[:4] == ["1-32", "0-0", "Do", "1."]
    assert lines[-1].split()[:2] == ["97", "0"]
    assert SECRET not in lines[-1]
    assert "\x1b" not in lines[-1]


def test_editor_gets_the_same_outline(home: Home):
    home.put(rollout(session(), *chats(1, 50), compacted("short", []), *chats(51, 100)))
    with Peer(home.root) as peer:
        peer.start()
        told = peer.call("checkpoints/outline", {"sessionId": thread(1)})
        unknown = peer.error("checkpoints/outline", {"sessionId": "nobody"})

    assert told == home.json("outline", thread(1))
    assert unknown["data"]["code"] == "unknown_session"
