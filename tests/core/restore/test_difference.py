"""The difference of two checkpoints."""

from typing import Any

from attrs import evolve

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.restore.records import difference
from restore_values import EMPTY
from updates import V1, V2

EVIDENCE = Evidence("user", "u1")
BEFORE = Checkpoint(
    5,
    Task("a", EVIDENCE),
    Plan((Step("s1", "one"), Step("s2", "two")), {"s1": False, "s2": False}),
    (Decision("d1", None, "x", "y", None, EVIDENCE, 1),),
    {"a.py": Artifact("a.py", "file", V1, 3), "ls": Artifact("ls", "command", None, 4)},
    {"k": Fact("v", Evidence("file", "a.py"), (Dependency("a.py", V1),), 2)},
    ("ls", "a.py"),
)


def steps(names: str) -> Plan:
    return Plan(tuple(Step(n, f"do {n}") for n in names), dict.fromkeys(names, False))


def states(found: tuple[dict[str, Any], ...], *keys: str) -> list[tuple[object, ...]]:
    """Return, of each change, both sides by these keys."""
    sides = [[each["before"], each["after"]] for each in found]
    return [tuple(side and tuple(side[key] for key in keys) for side in change) for change in sides]


def test_place_in_the_rollout_is_not_a_difference():
    seen_again = {"a.py": Artifact("a.py", "file", V1, 80, seen_hash=V1)}
    touched = {"k": evolve(BEFORE.facts["k"], last_touched_seq=90)}
    decided = tuple(evolve(each, seq=90) for each in BEFORE.decisions)
    later = evolve(
        BEFORE,
        seq=99,
        artifacts={**BEFORE.artifacts, **seen_again},
        facts=touched,
        decisions=decided,
        recent_artifacts=("a.py", "ls"),
    )

    assert not any(difference(BEFORE, later).values())


def test_reordered_steps_are_a_difference():
    before, after = (evolve(EMPTY, plan=steps(order)) for order in ("abc", "acb"))

    found = difference(before, after)

    assert (found["plan"], found["plan_reordered"]) == ((), True)


def test_fact_that_became_suspect_differs_with_its_file():
    after = evolve(BEFORE, artifacts={"a.py": Artifact("a.py", "file", V2, 9)})

    found = difference(BEFORE, after)

    assert states(found["facts"], "status") == [(("VALID",), ("SUSPECT",))]
    assert states(found["artifacts"], "uri", "kind", "hash") == [
        (("a.py", "file", V1), ("a.py", "file", V2)),
        (("ls", "command", None), None),
    ]


def test_difference_has_both_sides():
    found = difference(BEFORE, EMPTY)

    assert found["task"] == {
        "change": "removed",
        "before": {"text": "a", "evidence": {"source": "user", "ref": "u1", "hash": None}},
        "after": None,
    }
    assert [(each["change"], list(each["before"])) for each in found["decisions"]] == [
        ("removed", ["decisionId", "topic", "decision", "rationale", "supersedes", "evidence"])
    ]
    assert [list(each["before"]) for each in found["facts"]] == [
        ["key", "value", "status", "evidence", "dependsOn"]
    ]
    assert [each["change"] for each in difference(EMPTY, BEFORE)["artifacts"]] == [
        "added",
        "added",
    ]
