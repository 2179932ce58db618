"""Refusals: one sentence, the same on the terminal, in its JSON, and over the wire."""

import json
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.doors.protocol import CODES
from codex_checkpoints.sections.refusals import sentence_of
from codex_checkpoints.service.refusal import Refusal
from homes import Home, thread
from peer import Peer

Json = dict[str, Any]

SESSION = {"sessionId": thread(1)}
NOT_THERE = "01a1f865-0000-7000-8000-00000000ffff"
REASONS = (
    *("archived", "refused", "compacted", "imported", "exists", "undone", "later_compaction"),
    *("later_window", "other_bytes", "without_effect", "no_id", "not_ours", "standing", "gone"),
    *("referred_to", "outside", "settings", "another"),
)


@pytest.fixture
def home(home: Home) -> Home:
    home.put(r.rollout(r.session(thread=thread(1)), r.turn(r.user("Fix it"), r.assistant("Yes"))))
    home.put(r.rollout(r.session(thread=thread(2)), r.started("t1"), r.user("Go on")), 2)
    return home


@pytest.mark.parametrize(
    ("code", "command", "method", "params"),
    [
        ("unknown_session", ["view", "nobody-here"], "view", {"sessionId": "nobody-here"}),
        ("unknown_session", ["view", NOT_THERE], "view", {"sessionId": NOT_THERE}),
        ("ambiguous_session", ["view", thread(1)[:20]], "view", {"sessionId": thread(1)[:20]}),
        ("unknown_turn", ["view", thread(1), "--at", "9"], "view", {**SESSION, "turnId": "9"}),
        (
            "unknown_checkpoint",
            ["unmark", thread(1), NOT_THERE],
            "unmark",
            {**SESSION, "checkpointId": NOT_THERE},
        ),
        (
            "unknown_operation",
            ["restore-details", NOT_THERE],
            "restoreDetails",
            {"operationId": NOT_THERE},
        ),
        (
            "unknown_compaction",
            ["uncompact", NOT_THERE],
            "uncompact",
            {"compactionId": NOT_THERE},
        ),
        (
            "unknown_ref",
            ["recall", thread(1), "--ref", "#999"],
            "recall",
            {**SESSION, "ref": "#999"},
        ),
        (
            "unknown_note",
            ["notes", "revoke", thread(1), "nothing"],
            "revokeNote",
            {**SESSION, "id": "nothing"},
        ),
        ("not_smaller", ["compact", thread(1)], "compact", SESSION),
        (
            "limit_exceeded",
            ["digest", thread(1), "--tokens", "99999"],
            "digest",
            {**SESSION, "tokens": 99999},
        ),
        ("conflict", ["delete", thread(1)], "delete", SESSION),
    ],
)
def test_terminal_and_wire_refuse_with_the_same_sentence(
    home: Home, code: str, command: list[str], method: str, params: Json
):
    shown = home.run(*command).stderr.decode()
    told = json.loads(home.run(*command, "--json").stdout)["error"]
    with Peer(home.root) as peer:
        peer.start()
        error = peer.error(f"checkpoints/{method}", params)

    assert (told["code"], error["data"]["code"]) == (code, code)
    assert told["message"] == error["message"]
    assert shown.startswith(told["message"])
    assert shown.endswith(f"[{code}]\n")


def refusals() -> list[Refusal]:
    """Return a refusal of each code, and of each reason of a conflict."""
    facts = {"ownTurns": 2, "session": "x", "reason": "no"}
    return [
        *(Refusal(code, "it did not work", facts) for code in CODES),
        *(Refusal("conflict", "it did not work", {"reason": each}) for each in REASONS),
    ]


@pytest.mark.parametrize("refusal", refusals(), ids=lambda each: f"{each.code} {each.facts}")
def test_each_refusal_is_a_whole_sentence_without_commands(refusal: Refusal):
    sentence = sentence_of(refusal)

    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "`" not in sentence
    assert "--" not in sentence


def test_chosen_item_is_no_longer_there_and_a_typed_one_is_named():
    chosen = Refusal("unknown_session", f"no session {NOT_THERE!r}", {"session": NOT_THERE})
    typed = Refusal("unknown_session", "no session 'abc' under /home", {"session": "abc"})

    assert sentence_of(chosen) == "This session is no longer there."
    assert sentence_of(typed) == "No session 'abc' under /home."


def test_sentence_that_begins_with_a_path_keeps_its_letters():
    refusal = Refusal("storage_error", "/srv/a: no space left on device")

    assert sentence_of(refusal) == "/srv/a: no space left on device."
