"""The words for people about restores: labels, a summary, warnings, four ideas, and differences.

They do not promise that a model thinks as before, or keeps what was not recorded (AGN-22, AGN-26).
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
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.records import Caution, Restore, WarningCode
from codex_checkpoints.values import frozen

LABELS: Mapping[RestoreMode, str] = {
    "soft": "Continue with context",
    "hard": "Reset context for performance",
}
"""The names of the two kinds of restore, everywhere (AGN-71)."""

ABOUT: Mapping[RestoreMode, str] = {
    "soft": "Opens a branch that takes the conversation up to the marker along. The context stays"
    " as full as it was there.",
    "hard": "Opens a branch with a fresh context that begins with a short summary of the recorded"
    " state. The conversation stays behind in the source session.",
}
"""What each of them does, in two sentences."""

IDEAS = (
    "A session is where work lives.",
    "A checkpoint is a place to come back to.",
    "Restoring opens a branch; nothing is deleted.",
    "A hard restore lightens the context and keeps the goal.",
)
"""The four ideas that help texts explain (AGN-70)."""

LIMITS = (
    "Only what was recorded goes over. Note down what must not be lost.",
    "A model may answer differently in a branch, even with the same notes.",
)
"""What a restore cannot do, shown with the ideas."""


@frozen
class Summary:
    """One quiet notification: what happened, and one line about what the branch has (AGN-67)."""

    headline: str
    carried: str


_CAUTIONS: Mapping[WarningCode, tuple[str, ...]] = {
    "problems_in_source": (
        "1 file of the source could not be read",
        "{n} files of the source could not be read",
    ),
    "rests_on_source": ("The branch cannot be opened without the file of its source",),
    "copied_instead": ("The history was copied, since it could not be referred to",),
    "earlier_unknown": ("What was read and changed before the source began is not known",),
    "detached_marker": ("The turn of the marker was rolled back since",),
    "pack_empty": ("The budget holds no line of the pack",),
    "pack_truncated": (
        "1 item was left out for lack of budget",
        "{n} items were left out for lack of budget",
    ),
    "pin_shortened": ("1 pinned item was shortened", "{n} pinned items were shortened"),
    "pin_unread": ("1 pinned item could not be read", "{n} pinned items could not be read"),
    "missing_files": ("1 file is no longer there", "{n} files are no longer there"),
    "drift": (
        "1 file changed since the marker was made",
        "{n} files changed since the marker was made",
    ),
    "suspect_facts": ("1 fact may be out of date", "{n} facts may be out of date"),
    "weak_hashes": (
        "1 file is compared by size and time alone",
        "{n} files are compared by size and time alone",
    ),
}
"""For one, and for several where that differs."""


def summary_of(restore: Restore) -> Summary:
    """Return the notification about a restore."""
    name = f"“{restore.label}”" if restore.label else restore.checkpoint_id
    reset = "Context reset." if restore.context_reset else "Context not reset."
    return Summary(
        f"Restored {name}: new branch created. {reset}", f"Carried over: {_transferred(restore)}."
    )


def counted(number: int, what: str) -> str:
    """Return a number of things in words, as `1 note` and `2 notes`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def caution_text(caution: Caution) -> str:
    """Return a warning as a sentence without its full stop."""
    texts = _CAUTIONS[caution.code]
    return texts[0] if caution.count == 1 else texts[-1].format(n=caution.count)


def _transferred(restore: Restore) -> str:
    """Return the counts of what the branch has, and of what the pack does not show.

    The branch has all notes, whatever the pack shows (AGN-46).
    """
    left = [item for item in restore.deferred if item.reason in {"budget", "filtered"}]
    noted = [item.id for item in (*restore.included, *left) if item.part == "notes"]
    steps = sum(each.startswith("step:") for each in noted)
    tasks = noted.count("task")
    counts = (
        (len(noted) - steps - tasks, "note"),
        (steps, "plan step"),
        (len(restore.references.files), "file reference"),
        (len(restore.pinned), "pin"),
    )
    words = ["the task"] if tasks else []
    words += [counted(many, what) for many, what in counts if many]
    text = ", ".join(words) or "nothing"
    return f"{text}; {counted(len(left), 'item')} not in the pack" if left else text


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
    """All that differs; `reordered`: steps that both plans have changed places."""

    task: tuple[Change, ...] = ()
    plan: tuple[Change, ...] = ()
    reordered: bool = False
    decisions: tuple[Change, ...] = ()
    facts: tuple[Change, ...] = ()
    artifacts: tuple[Change, ...] = ()

    @property
    def empty(self) -> bool:
        """Return whether nothing differs."""
        return self == Difference()


def difference(before: Checkpoint, after: Checkpoint) -> Difference:
    """Return what differs, each kind in its order: removed and changed as they stood, then new."""
    old, new = _parts(before), _parts(after)
    task, plan, decisions, facts, artifacts = map(_changes, old, new)
    steps, later_steps = old[1], new[1]
    reordered = [key for key in steps if key in later_steps] != [
        key for key in later_steps if key in steps
    ]
    return Difference(task, plan, reordered, decisions, facts, artifacts)


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


def _parts(checkpoint: Checkpoint) -> tuple[dict[str, Compared], ...]:
    """Return task, steps, decisions, facts and artifacts as they are compared, each by its name."""
    plan, artifacts = checkpoint.plan, checkpoint.artifacts
    task: dict[str, Compared] = {} if checkpoint.task is None else {"task": checkpoint.task}
    return (
        task,
        {
            step.id: StepState(step.id, step.text, plan.done.get(step.id, False))
            for step in plan.steps
        },
        {
            each.decision_id: DecisionState(
                each.decision_id,
                each.topic,
                each.decision,
                each.rationale,
                each.supersedes,
                each.evidence,
            )
            for each in checkpoint.decisions
        },
        {
            key: FactState(
                key, fact.value, status_of(fact, artifacts), fact.evidence, fact.depends_on
            )
            for key, fact in sorted(checkpoint.facts.items())
        },
        {
            uri: ArtifactState(uri, artifact.kind, artifact.hash)
            for uri, artifact in sorted(artifacts.items())
        },
    )
