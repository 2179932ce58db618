"""A checkpoint as canonical bytes, and back.

`to_bytes` fixes key order, escaping and the final LF ("Bytes of `checkpoint_v1.json`"); two equal
checkpoints have equal bytes on every system.  `from_bytes` is strict: what it does not know it
refuses, since a file of another version is derived again rather than guessed at (DSC-58).
"""

from __future__ import annotations

from typing import Any

import orjson

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Decision,
    Evidence,
    Fact,
    Plan,
    status_of,
)
from codex_checkpoints.core.rollout.fields import is_object

SCHEMA_VERSION = 1


class BadCheckpoint(ValueError):
    """Bytes that are no checkpoint of this version."""


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the one line of JSON that this checkpoint is, with its LF."""
    return orjson.dumps(to_json(checkpoint)) + b"\n"


def to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the checkpoint as JSON values, keys in their order on disk (DSC-20)."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "seq": checkpoint.seq,
        "task": None
        if checkpoint.task is None
        else {"text": checkpoint.task.text, "evidence": _evidence(checkpoint.task.evidence)},
        "plan": _plan(checkpoint.plan),
        "decisions": [_decision(decision) for decision in checkpoint.decisions],
        "artifacts": {
            uri: _artifact(checkpoint.artifacts[uri]) for uri in sorted(checkpoint.artifacts)
        },
        "facts": {
            key: _fact(checkpoint.facts[key], checkpoint) for key in sorted(checkpoint.facts)
        },
        "recentArtifacts": list(checkpoint.recent_artifacts),
    }


def from_bytes(data: bytes) -> Checkpoint:
    """Read a checkpoint back; raise `BadCheckpoint` for anything but version 1.

    The written status is checked for its vocabulary and then forgotten: it is derived (DSC-37).
    """
    from codex_checkpoints.core.checkpoint.strict import structured  # noqa: PLC0415 - rare, slow

    try:
        value: object = orjson.loads(data)
        if not is_object(value) or not _is_known(value.pop("schemaVersion", None)):
            message = "not a checkpoint of version 1"
            raise BadCheckpoint(message)
        checkpoint = structured(value)
    except (orjson.JSONDecodeError, TypeError, KeyError) as error:
        message = "not a checkpoint of version 1"
        raise BadCheckpoint(message) from error
    for uri, artifact in checkpoint.artifacts.items():
        if artifact.uri != uri:
            message = "an artifact stands under another name"
            raise BadCheckpoint(message)
    return checkpoint


def _is_known(version: object) -> bool:
    return type(version) is int and version == SCHEMA_VERSION


def _evidence(evidence: Evidence) -> dict[str, str]:
    return _present({"source": evidence.source, "ref": evidence.ref, "hash": evidence.hash})


def _plan(plan: Plan) -> dict[str, Any]:
    return _present(
        {
            "steps": [{"id": step.id, "text": step.text} for step in plan.steps],
            "done": {step.id: plan.done.get(step.id, False) for step in plan.steps},
            "evidence": None if plan.evidence is None else _evidence(plan.evidence),
        }
    )


def _decision(decision: Decision) -> dict[str, Any]:
    return _present(
        {
            "decisionId": decision.decision_id,
            "topic": decision.topic,
            "decision": decision.decision,
            "rationale": decision.rationale,
            "supersedes": decision.supersedes,
            "evidence": _evidence(decision.evidence),
            "seq": decision.seq,
        }
    )


def _artifact(artifact: Artifact) -> dict[str, Any]:
    return _present(
        {
            "uri": artifact.uri,
            "kind": artifact.kind,
            "hash": artifact.hash,
            "lastObservedSeq": artifact.last_observed_seq,
        }
    )


def _fact(fact: Fact, checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "value": fact.value,
        "evidence": _evidence(fact.evidence),
        "dependsOn": [
            _present({"uri": dependency.uri, "hash": dependency.hash})
            for dependency in fact.depends_on
        ],
        "status": status_of(fact, checkpoint.artifacts),
        "lastTouchedSeq": fact.last_touched_seq,
    }


def _present(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out the optional keys that have no value."""
    return {key: value for key, value in record.items() if value is not None}
