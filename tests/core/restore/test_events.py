"""What is logged of a restore: the fields, the order, and how damage to a log shows."""

import pytest
from attrs import evolve

from codex_checkpoints.core.audit import is_intact, sealed
from codex_checkpoints.core.restore.events import (
    FIELDS,
    ORDER,
    Event,
    Fault,
    Operation,
    line_of,
    unended,
    verify,
)
from codex_checkpoints.core.restore.pack import TurnSource
from restoring import BRANCH, RESTORED, SOURCE

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


def log(told: list[Event], operation: Operation = HARD) -> list[dict[str, object]]:
    return [sealed(line_of(operation, event, step=n, at=RESTORED)) for n, event in enumerate(told)]


def codes(found: tuple[Fault, ...]) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.line) for finding in found]


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
def test_an_event_has_the_head_of_all_and_its_own_fields(event: Event, own: dict[str, object]):
    line = line_of(HARD, event, step=4, at=RESTORED)

    whole = {"type": event[0], **HEAD, **own, "step": 4}
    assert list(line.items()) == list(whole.items())


def test_types_are_those_of_the_requirements():
    both = ("RestoreRequested", "RestoreValidated", "BranchCreated", "StateTransferred")

    assert {
        "soft": (*both, "RestoreCompleted"),
        "hard": (*both, "StatePackPrepared", "LLMChainReset", "RestoreCompleted"),
    } == ORDER
    assert {*ORDER["hard"], "RestoreFailed", "PackTruncated", *(each[0] for each in ASIDE)} == {
        *FIELDS
    }


def test_only_the_label_is_text_that_a_person_wrote():
    """Whoever adds a field that may hold words has to think of this list."""
    assert {name for names in FIELDS.values() for name in names} == {
        *("label", "code", "uri", "then", "now", "warnings", "fallback", "placement"),
        *("sourceDigest", "branchDigest", "packDigest", "contextReset"),
        *("windowId", "firstWindowId", "sourceWindowId"),
        *("budget", "window", "sourceBytes", "branchBytes", "turns", "tokens"),
        *("tokensBefore", "tokensAfter", "included", "deferred"),
        *("notes", "files", "chunks", "systemArtifacts", "pinned", "markers"),
    }


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([], id="nothing"),
        pytest.param(WHOLE, id="hard"),
        pytest.param([*BEGINNING, *ASIDE, *MIDDLE, *CHAIN, COMPLETED], id="with what was found"),
        pytest.param([*WHOLE[:-2], ("PackTruncated", 9, 1, 2), *WHOLE[-2:]], id="truncated"),
        pytest.param([REQUESTED, ("RestoreFailed", "unknown_turn")], id="refused"),
        pytest.param([*BEGINNING, MIDDLE[0], ("RestoreFailed", "storage_error")], id="failed"),
        pytest.param(BEGINNING, id="cut off by a crash"),
    ],
)
def test_a_restore_in_order_is_fine(told: list[Event]):
    assert verify(log(told)) == ()


def test_a_soft_restore_has_no_pack_and_resets_no_chain():
    assert verify(log([*BEGINNING, *MIDDLE, COMPLETED], SOFT)) == ()
    assert codes(verify(log(WHOLE, SOFT))) == [("wrong_order", 5)]


@pytest.mark.parametrize(
    ("told", "line"),
    [
        pytest.param(WHOLE[1:], 1, id="not requested"),
        pytest.param([REQUESTED, REQUESTED], 2, id="requested twice"),
        pytest.param([*BEGINNING, *MIDDLE, COMPLETED], 5, id="hard without a reset"),
        pytest.param([*WHOLE, ("RestoreFailed", "x")], 8, id="failed after all"),
        pytest.param([REQUESTED, ("RestoreFailed", "x"), COMPLETED], 3, id="after it failed"),
        pytest.param([*WHOLE, ASIDE[0]], 8, id="after the end"),
        pytest.param([ASIDE[0], *WHOLE], 1, id="before the beginning"),
    ],
)
def test_a_wrong_order_shows_at_its_line(told: list[Event], line: int):
    assert ("wrong_order", line) in codes(verify(log(told)))


def test_a_line_that_was_changed_or_taken_away_shows():
    changed, short = log(WHOLE), log([*BEGINNING, *ASIDE, *MIDDLE, *CHAIN, COMPLETED])
    changed[3] |= {"files": 4}
    del short[3]

    assert codes(verify(changed)) == [("changed_line", 4)]
    assert codes(verify(short)) == [("missing_lines", 4)]


def test_a_restore_whose_end_was_taken_away_is_found_and_no_other():
    failed = log([REQUESTED, ("RestoreFailed", "x")], evolve(HARD, operation_id="op2"))
    cut = log(BEGINNING, evolve(SOFT, operation_id="op3"))
    of_a_pack = {"type": "PackExported", "operationId": "op4", "restoreMode": None}

    assert unended([*log(WHOLE), *failed, of_a_pack]) == ()
    assert unended([*cut, *log(WHOLE)[:-1], *failed[:-1], of_a_pack]) == ("op3", "op1", "op2")


def test_operations_side_by_side_are_checked_each_by_itself():
    other = log(WHOLE, evolve(HARD, operation_id="op2"))
    mixed = [line for pair in zip(log(WHOLE), other, strict=True) for line in pair]

    assert verify(mixed) == ()
    assert [finding.operation_id for finding in verify([*mixed[:5], *mixed[6:]])] == ["op2", "op2"]


def test_lines_of_others_are_passed_over():
    assert verify([None, 7, {"type": "CompactionInstalled", "operationId": "c1"}, {}]) == ()


def test_a_seal_does_not_depend_on_the_order_of_keys():
    line = sealed({"a": 1, "b": {"c": 2, "d": 3}})

    assert is_intact({"b": {"d": 3, "c": 2}, "digest": line["digest"], "a": 1})
    assert not is_intact({"a": 1, "b": {"c": 2, "d": 4}, "digest": line["digest"]})
    assert not is_intact({"a": 1})
    assert sealed(line) == line
