"""The fields of the events of a restore."""

import pytest
from attrs import evolve

from codex_checkpoints.core.restore.events import (
    FIELDS,
    Event,
    Operation,
    line_of,
)
from codex_checkpoints.core.restore.pack_items import TurnSource
from restore_values import BRANCH, RESTORED, SOURCE

HARD = Operation("op1", BRANCH, SOURCE, "m1", TurnSource(SOURCE, "t1"), "hard", "ana", None)
SOFT = evolve(HARD, restore_mode="soft")

REQUESTED: Event = ("RestoreRequested", "here", 8000, 0)
COMPLETED: Event = ("RestoreCompleted", True, 190_000, 700, ("drift",))
BEGINNING: list[Event] = [REQUESTED, ("RestoreValidated", 1234, "sha256:a", 3)]
MIDDLE: list[Event] = [
    ("BranchCreated", "seed", 999, "sha256:b"),
    ("StateTransferred", 7, 3, 2, 1, 0, 1),
]
CHAIN: list[Event] = [
    ("StatePackPrepared", "sha256:c", 700, 8000, 29, 0),
    ("LLMChainReset", "w2", "w1", "w0"),
]
ASIDE: list[Event] = [
    ("DriftDetected", "a.py", "sha256:1", "sha256:2"),
    ("ArtifactMissing", "b.py", "sha256:1"),
    ("FallbackUsed", "weak_hash", "big.bin"),
]
WHOLE: list[Event] = [*BEGINNING, *MIDDLE, *CHAIN, COMPLETED]


HEAD = {
    "at": RESTORED,
    "operationId": "op1",
    "sessionId": BRANCH,
    "sourceSessionId": SOURCE,
    "checkpointId": "m1",
    "sourceTurn": {"sessionId": SOURCE, "turnId": "t1"},
    "restoreMode": "hard",
    "userId": "ana",
    "orgId": None,
}


@pytest.mark.parametrize(
    ("event", "own"),
    [
        (REQUESTED, {"label": "here", "budget": 8000, "window": 0}),
        (BEGINNING[1], {"sourceBytes": 1234, "sourceDigest": "sha256:a", "turns": 3}),
        (MIDDLE[0], {"placement": "seed", "branchBytes": 999, "branchDigest": "sha256:b"}),
        (
            MIDDLE[1],
            {"notes": 7, "files": 3, "chunks": 2, "systemArtifacts": 1, "pinned": 0, "markers": 1},
        ),
        (
            CHAIN[0],
            {"packDigest": "sha256:c", "tokens": 700, "budget": 8000}
            | {"included": 29, "deferred": 0},
        ),
        (CHAIN[1], {"windowId": "w2", "firstWindowId": "w1", "sourceWindowId": "w0"}),
        (
            COMPLETED,
            {"contextReset": True, "tokensBefore": 190_000, "tokensAfter": 700}
            | {"warnings": ("drift",)},
        ),
        (("RestoreFailed", "conflict"), {"code": "conflict"}),
        (("PackTruncated", 160, 8, 21), {"budget": 160, "included": 8, "deferred": 21}),
        (ASIDE[0], {"uri": "a.py", "then": "sha256:1", "now": "sha256:2"}),
        (ASIDE[1], {"uri": "b.py", "then": "sha256:1"}),
        (ASIDE[2], {"fallback": "weak_hash", "uri": "big.bin"}),
    ],
    ids=str,
)
def test_event_has_the_common_fields_and_its_own(event: Event, own: dict[str, object]):
    line = line_of(HARD, event, step=4, at=RESTORED)

    whole = {"type": event[0], **HEAD, **own, "step": 4}
    assert list(line.items()) == list(whole.items())


def test_every_required_event_has_fields():
    both = {"RestoreRequested", "RestoreValidated", "BranchCreated", "StateTransferred"}
    hard = {"StatePackPrepared", "LLMChainReset", "PackTruncated"}

    assert {*FIELDS} == {
        *both,
        *hard,
        *("RestoreCompleted", "RestoreFailed"),
        *(each[0] for each in ASIDE),
    }


def test_only_the_label_is_text_of_a_person():
    """Whoever adds a field that may hold words has to think of this list."""
    assert {name for names in FIELDS.values() for name in names} == {
        *("label", "code", "uri", "then", "now", "warnings", "fallback", "placement"),
        *("sourceDigest", "branchDigest", "packDigest", "contextReset"),
        *("windowId", "firstWindowId", "sourceWindowId"),
        *("budget", "window", "sourceBytes", "branchBytes", "turns", "tokens"),
        *("tokensBefore", "tokensAfter", "included", "deferred"),
        *("notes", "files", "chunks", "systemArtifacts", "pinned", "markers"),
    }
