"""What a person sees who asks what a note rests on."""

import json

import pytest

from codex_checkpoints.core.checkpoint.anchors import MOST_TEXT, Citation
from reading import seq_of
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


def test_a_message_is_found_by_the_id_of_its_item_else_by_its_place():
    told = rollout(session(), turn(user("first", ref="m1")), turn(user("second", ref="m2")))
    legacy = rollout(session("legacy"), turn(user("hello")))

    [record] = cited(told, "m2")
    assert "second" in json.dumps(record)
    [record] = cited(legacy, f"seq:{seq_of(legacy, 'user_message')}")
    assert "hello" in json.dumps(record)


def test_a_text_that_quotes_the_id_is_no_record_of_it():
    steps = (user('see "c9"'), call("update_plan", {"a": "c9"}, "c1"))

    assert cited(rollout(session("legacy"), turn(*steps)), "c9") == []


def test_a_long_text_is_cut_and_says_so():
    data = rollout(
        session("legacy"),
        turn(user("x"), call("exec_command", {"cmd": "a"}, "c1"), output("c1", "y" * 30_000)),
    )

    text = json.dumps(cited(data, "c1"), ensure_ascii=False)

    assert f"… ({30_000 - MOST_TEXT} more characters)" in text
    assert len(text) < 2 * MOST_TEXT
