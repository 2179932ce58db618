"""What differs between two checkpoints."""

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
from codex_checkpoints.core.restore.summary import (
    ArtifactState,
    Change,
    Difference,
    StepState,
    difference,
    json_of,
)
from restoring import EMPTY
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


def steps(*names: str, done: tuple[str, ...] = ()) -> Plan:
    return Plan(tuple(Step(n, f"do {n}") for n in names), {n: n in done for n in names})


def test_a_checkpoint_does_not_differ_from_itself():
    assert difference(BEFORE, BEFORE).empty
    assert json_of(Difference()) == {
        "task": None,
        "plan": [],
        "planReordered": False,
        "decisions": [],
        "facts": [],
        "artifacts": [],
    }


def test_a_place_in_the_rollout_is_no_difference():
    seen_again = {"a.py": Artifact("a.py", "file", V1, 80)}
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

    assert difference(BEFORE, later).empty


def test_a_task_appears_changes_and_goes():
    new = Task("b", EVIDENCE)

    assert difference(EMPTY, evolve(EMPTY, task=new)).task == (Change(None, new),)
    assert difference(BEFORE, evolve(BEFORE, task=new)).task == (Change(BEFORE.task, new),)
    assert difference(BEFORE, evolve(BEFORE, task=None)).task == (Change(BEFORE.task, None),)


def test_steps_are_compared_by_their_ids():
    before = evolve(EMPTY, plan=steps("a", "b", "c"))
    after = evolve(EMPTY, plan=steps("b", "c", "d", done=("b",)))

    assert difference(before, after).plan == (
        Change(StepState("a", "do a", done=False), None),
        Change(StepState("b", "do b", done=False), StepState("b", "do b", done=True)),
        Change(None, StepState("d", "do d", done=False)),
    )
    assert not difference(before, after).reordered


def test_steps_that_changed_places_are_told():
    before, after = (evolve(EMPTY, plan=steps(*order)) for order in ("abc", "acb"))

    found = difference(before, after)

    assert (found.plan, found.reordered, found.empty) == ((), True, False)


def test_a_fact_that_turned_suspect_has_changed_with_its_file():
    after = evolve(BEFORE, artifacts={"a.py": Artifact("a.py", "file", V2, 9)})

    found = json_of(difference(BEFORE, after))

    assert [(each["before"]["status"], each["after"]["status"]) for each in found["facts"]] == [
        ("VALID", "SUSPECT")
    ]
    assert difference(BEFORE, after).artifacts == (
        Change(ArtifactState("a.py", "file", V1), ArtifactState("a.py", "file", V2)),
        Change(ArtifactState("ls", "command", None), None),
    )


def test_a_difference_is_written_with_both_sides():
    found = json_of(difference(BEFORE, EMPTY))

    assert found["task"] == {
        "change": "removed",
        "before": {"text": "a", "evidence": {"source": "user", "ref": "u1", "hash": None}},
        "after": None,
    }
    assert [(each["change"], each["before"]["decisionId"]) for each in found["decisions"]] == [
        ("removed", "d1")
    ]
    assert [each["change"] for each in json_of(difference(EMPTY, BEFORE))["artifacts"]] == [
        "added",
        "added",
    ]
