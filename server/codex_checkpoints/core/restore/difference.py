"""What differs between two checkpoints: task, plan, decisions, facts and artifacts (`diff`).

A place in the rollout is no difference: a file that was met again and has the same hash has not
changed.  Which two are compared (two turns, two markers, two branches) is the caller's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import (
    ArtifactKind,
    Checkpoint,
    Dependency,
    Evidence,
    FactStatus,
    Task,
    status_of,
)
from codex_checkpoints.values import frozen


@frozen
class StepState:
    """A step of the plan, as it is compared."""

    id: str
    text: str
    done: bool


@frozen
class DecisionState:
    """A decision, as it is compared."""

    decision_id: str
    topic: str | None
    decision: str
    rationale: str
    supersedes: str | None
    evidence: Evidence


@frozen
class FactState:
    """A fact, as it is compared: with whether it stands."""

    key: str
    value: str
    status: FactStatus
    evidence: Evidence
    depends_on: tuple[Dependency, ...]


@frozen
class ArtifactState:
    """An artifact, as it is compared."""

    uri: str
    kind: ArtifactKind
    hash: str | None


Compared = Task | StepState | DecisionState | FactState | ArtifactState


@frozen
class Change:
    """One thing that differs: `before` is None for what is new, `after` for what is gone."""

    before: Compared | None
    after: Compared | None


@frozen
class Difference:
    """All that differs; `reordered` says that steps of the plan which both have changed places."""

    task: tuple[Change, ...] = ()
    plan: tuple[Change, ...] = ()
    reordered: bool = False
    decisions: tuple[Change, ...] = ()
    facts: tuple[Change, ...] = ()
    artifacts: tuple[Change, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether nothing differs."""
        return self == _NOTHING


_NOTHING = Difference()


def difference(before: Checkpoint, after: Checkpoint) -> Difference:
    """Return what differs, each kind in its order: gone and changed as they stood, then new."""
    steps, later_steps = _steps(before), _steps(after)
    return Difference(
        task=_changes(_task(before), _task(after)),
        plan=_changes(steps, later_steps),
        reordered=[key for key in steps if key in later_steps]
        != [key for key in later_steps if key in steps],
        decisions=_changes(_decisions(before), _decisions(after)),
        facts=_changes(_facts(before), _facts(after)),
        artifacts=_changes(_artifacts(before), _artifacts(after)),
    )


def json_of(found: Difference) -> dict[str, Any]:
    """Return a difference as JSON values; `change` is `added`, `removed` or `changed`."""
    return {
        "task": next(map(_change_json, found.task), None),
        "plan": [_change_json(each) for each in found.plan],
        "planReordered": found.reordered,
        "decisions": [_change_json(each) for each in found.decisions],
        "facts": [_change_json(each) for each in found.facts],
        "artifacts": [_change_json(each) for each in found.artifacts],
    }


def _change_json(change: Change) -> dict[str, Any]:
    kind = "added" if change.before is None else "removed" if change.after is None else "changed"
    return {
        "change": kind,
        "before": None if change.before is None else kept.write(change.before),
        "after": None if change.after is None else kept.write(change.after),
    }


def _changes(before: Mapping[str, Compared], after: Mapping[str, Compared]) -> tuple[Change, ...]:
    keys = dict.fromkeys((*before, *after))
    pairs = ((before.get(key), after.get(key)) for key in keys)
    return tuple(Change(old, new) for old, new in pairs if old != new)


def _task(checkpoint: Checkpoint) -> dict[str, Compared]:
    return {} if checkpoint.task is None else {"task": checkpoint.task}


def _steps(checkpoint: Checkpoint) -> dict[str, Compared]:
    plan = checkpoint.plan
    return {
        step.id: StepState(step.id, step.text, plan.done.get(step.id, False)) for step in plan.steps
    }


def _decisions(checkpoint: Checkpoint) -> dict[str, Compared]:
    return {
        each.decision_id: DecisionState(
            each.decision_id,
            each.topic,
            each.decision,
            each.rationale,
            each.supersedes,
            each.evidence,
        )
        for each in checkpoint.decisions
    }


def _facts(checkpoint: Checkpoint) -> dict[str, Compared]:
    return {
        key: FactState(
            key, fact.value, status_of(fact, checkpoint.artifacts), fact.evidence, fact.depends_on
        )
        for key, fact in sorted(checkpoint.facts.items())
    }


def _artifacts(checkpoint: Checkpoint) -> dict[str, Compared]:
    return {
        uri: ArtifactState(uri, artifact.kind, artifact.hash)
        for uri, artifact in sorted(checkpoint.artifacts.items())
    }
