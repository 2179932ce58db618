"""A checkpoint as canonical bytes, and back.

`to_bytes` fixes key order, escaping and the final LF ("Bytes of `checkpoint_v1.json`"); two equal
checkpoints have equal bytes on every system.  `from_bytes` is strict: what it does not know it
refuses, since a file of another version is derived again rather than guessed at (DSC-58).
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, get_args

import attrs
import orjson
from cattrs import BaseValidationError, Converter
from cattrs.gen import make_dict_structure_fn, override

from codex_checkpoints.core.checkpoint import records
from codex_checkpoints.core.checkpoint.caps import camel
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Decision,
    Dependency,
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
    try:
        value: object = orjson.loads(data)
        if not is_object(value) or value.pop("schemaVersion", None) != SCHEMA_VERSION:
            message = "not a checkpoint of version 1"
            raise BadCheckpoint(message)
        checkpoint = _reader.structure(value, Checkpoint)
    except (orjson.JSONDecodeError, BaseValidationError, TypeError, KeyError) as error:
        message = "not a checkpoint of version 1"
        raise BadCheckpoint(message) from error
    for uri, artifact in checkpoint.artifacts.items():
        if artifact.uri != uri:
            message = "an artifact stands under another name"
            raise BadCheckpoint(message)
    return checkpoint


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


def _strict(kind: type) -> Callable[[object, object], object]:
    def check(value: object, _kind: object) -> object:
        if type(value) is not kind:
            message = f"expected {kind.__name__}"
            raise TypeError(message)
        return value

    return check


def _make_reader() -> Converter:
    reader = Converter(forbid_extra_keys=True)
    for kind in (int, str, bool):
        reader.register_structure_hook(kind, _strict(kind))
    for record in (Evidence, Plan, Decision, Artifact, Dependency, records.Step, records.Task):
        _register(reader, record)
    structure = make_dict_structure_fn(Fact, reader, _cattrs_forbid_extra_keys=True, **_names(Fact))

    def fact(value: dict[str, Any], kind: type[Fact]) -> Fact:
        known = dict(value)
        if known.pop("status") not in {"VALID", "SUSPECT"}:
            message = "unknown status"
            raise TypeError(message)
        return structure(known, kind)

    reader.register_structure_hook(Fact, fact)
    _register(reader, Checkpoint)
    return reader


def _names(record: type) -> dict[str, Any]:
    return {field.name: override(rename=camel(field.name)) for field in attrs.fields(record)}


def _register(reader: Converter, record: type[Any]) -> None:
    attrs.resolve_types(record)
    structure: Callable[[dict[str, Any], object], object] = make_dict_structure_fn(
        record, reader, _cattrs_forbid_extra_keys=True, **_names(record)
    )
    # An optional key without value is absent; the task alone is always there, null or not.
    absent = {
        camel(field.name): None
        for field in attrs.fields(record)
        if field.name != "task" and NoneType in get_args(field.type)
    }

    def structured(value: dict[str, Any], kind: object) -> object:
        return structure(absent | value, kind)

    reader.register_structure_hook(record, structured)


_reader = _make_reader()
