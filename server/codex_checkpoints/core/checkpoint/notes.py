"""Facts and decisions as somebody who looks after them wants to see them: each with its history.

A checkpoint says what counts, and is bounded; a note says in addition what its dependencies were
and are, by what it was replaced, and when it was accepted.  Nothing is derived here by another rule
than the checkpoint's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Decision,
    Evidence,
    Fact,
    FactStatus,
    failing_dependency,
    holds,
    status_of,
)
from codex_checkpoints.values import frozen

NoteKind = Literal["fact", "decision"]


@frozen
class Rest:
    """An artifact that a fact stands and falls with: its hash then, its hash now."""

    uri: str
    hash: str | None
    current: str | None
    holds: bool


@frozen(kw_only=True)
class Note:
    """A fact or a decision that counts; what the other kind alone has is null or empty.

    `kind` is `fact` or `decision`, `status` is `VALID` or `SUSPECT`; `why` is the first dependency
    that does not hold.
    """

    kind: NoteKind
    id: str
    value: str | None = None
    topic: str | None = None
    decision: str | None = None
    rationale: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    status: FactStatus | None = None
    why: str | None = None
    evidence: Evidence
    depends_on: tuple[Rest, ...] = ()
    seq: int
    turn_id: str | None
    accepted_at: str | None


def notes_of(checkpoint: Checkpoint, origins: Mapping[tuple[str, str], Update]) -> tuple[Note, ...]:
    """Return the facts by key, then the decisions in the order of their acceptance.

    `origins` are those of the memory that the checkpoint was made with; what it began with has
    none, and its turn and time are known where it was accepted.
    """
    replaced_by = {each.supersedes: each.decision_id for each in checkpoint.decisions}
    return (
        *(
            _fact(key, fact, checkpoint.artifacts, origins.get(("fact", key)))
            for key, fact in sorted(checkpoint.facts.items(), key=lambda item: item[0])
        ),
        *(
            _decision(
                decision,
                replaced_by.get(decision.decision_id),
                origins.get(("decision", decision.decision_id)),
            )
            for decision in checkpoint.decisions
        ),
    )


def _fact(key: str, fact: Fact, artifacts: Mapping[str, Artifact], origin: Update | None) -> Note:
    failing = failing_dependency(fact, artifacts)
    return Note(
        kind="fact",
        id=key,
        evidence=fact.evidence,
        seq=fact.last_touched_seq,
        turn_id=origin and origin.turn_id,
        accepted_at=origin and origin.at,
        value=fact.value,
        status=status_of(fact, artifacts),
        why=None if failing is None else failing.uri,
        depends_on=tuple(
            Rest(
                each.uri,
                each.hash,
                artifacts[each.uri].hash if each.uri in artifacts else None,
                holds(each, artifacts),
            )
            for each in fact.depends_on
        ),
    )


def _decision(decision: Decision, superseded_by: str | None, origin: Update | None) -> Note:
    return Note(
        kind="decision",
        id=decision.decision_id,
        evidence=decision.evidence,
        seq=decision.seq,
        turn_id=origin and origin.turn_id,
        accepted_at=origin and origin.at,
        topic=decision.topic,
        decision=decision.decision,
        rationale=decision.rationale,
        supersedes=decision.supersedes,
        superseded_by=superseded_by,
    )
