"""What a person sees who asks what a note rests on."""

import json

import pytest

from codex_checkpoints.core.checkpoint.anchors import MOST_TEXT, Citation
from rollouts import Form, call, output, rollout, session, shell, turn, user


def cited(data: bytes, ref: str) -> list[dict[str, object]]:
    """Read a session for one anchor; the records that were found."""
    citation = Citation(ref)
    assert citation.replay.feed(data) == len(data)
    return [json.loads(record.text) for record in citation.records()]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_a_call_is_shown_with_its_outcome(form: Form):
    data = rollout(
        session(form), turn(user("look"), shell("make", output="all is well", call="c7"))
    )

    found = cited(data, "c7")

    assert "all is well" in json.dumps(found)
    assert "make" in json.dumps(found)


def test_a_message_is_found_by_the_id_of_its_item():
    data = rollout(session(), turn(user("first")), turn(user("second")))
    [ref] = [
        line["payload"]["item"]["id"]
        for line in map(json.loads, data.splitlines())
        if "second" in json.dumps(line) and line["payload"].get("type") == "item_completed"
    ]

    [record] = cited(data, ref)

    assert "second" in json.dumps(record)


def test_a_message_without_an_id_is_found_by_its_place():
    data = rollout(session("legacy"), turn(user("hello")))
    places = [n for n, line in enumerate(data.splitlines(), 1) if b'"user_message"' in line]

    [record] = cited(data, f"seq:{places[0]}")

    assert record["payload"] == {**record["payload"], "type": "user_message"}  # type: ignore[dict-item]


def test_a_text_that_quotes_the_id_is_no_record_of_it():
    data = rollout(
        session("legacy"), turn(user('see "c9"'), call("update_plan", {"a": "c9"}, "c1"))
    )

    assert cited(data, "c9") == []


def test_a_long_text_is_cut_and_says_so():
    data = rollout(
        session("legacy"),
        turn(user("x"), call("exec_command", {"cmd": "a"}, "c1"), output("c1", "y" * 30_000)),
    )

    text = json.dumps(cited(data, "c1"), ensure_ascii=False)

    assert f"… ({30_000 - MOST_TEXT} more characters)" in text
    assert len(text) < 2 * MOST_TEXT
