"""A checkpoint as canonical bytes, and the codecs of stored records.

Equal checkpoints have equal bytes on every system: key order, escaping and the final LF are fixed.
`from_bytes` refuses all it does not know: a file of another version is derived again (DSC-58).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import orjson

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Fact,
    FactStatus,
    status_of,
)
from codex_checkpoints.core.codec import Codec, Form, Misfit
from codex_checkpoints.core.rollout.fields import is_object
from codex_checkpoints.values import evolve

SCHEMA_VERSION = 1

_UNKNOWN = f"not a checkpoint of version {SCHEMA_VERSION}"

_codec = Codec(closed=True, fill="none", sparse=True)
"""An optional key without a value is absent; only `task` is always present."""


class BadCheckpoint(ValueError):
    """Bytes that are no checkpoint of this version."""


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the checkpoint as one line of JSON with its LF."""
    return orjson.dumps(to_json(checkpoint)) + b"\n"


def to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the checkpoint as JSON values, with keys in their order on disk (DSC-20)."""
    plan, facts, artifacts = checkpoint.plan, checkpoint.facts, checkpoint.artifacts
    return {
        "schemaVersion": SCHEMA_VERSION,
        "seq": checkpoint.seq,
        "task": _codec.write(checkpoint.task),
        "plan": _codec.write(
            evolve(plan, done={step.id: plan.done.get(step.id, False) for step in plan.steps})
        ),
        "decisions": _codec.write(checkpoint.decisions),
        "artifacts": {uri: _codec.write(artifacts[uri]) for uri in sorted(artifacts)},
        "facts": {key: _fact(facts[key], artifacts) for key in sorted(facts)},
        "recentArtifacts": list(checkpoint.recent_artifacts),
    }


def from_bytes(data: bytes) -> Checkpoint:
    """Read a checkpoint; raises `BadCheckpoint`."""
    try:
        return from_json(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise BadCheckpoint(_UNKNOWN) from error


def from_json(value: object) -> Checkpoint:
    """Read a checkpoint from JSON values; raises `BadCheckpoint`.

    The status of a fact must be a known one, and is then dropped: it is derived (DSC-37).
    """
    if not is_object(value) or not _is_known(value.get("schemaVersion")) or "task" not in value:
        raise BadCheckpoint(_UNKNOWN)
    facts = value.get("facts")
    if is_object(facts):
        facts = {key: _without_status(fact) for key, fact in facts.items()}
    fields = {key: each for key, each in value.items() if key != "schemaVersion"}
    try:
        checkpoint = _codec.read(fields | {"facts": facts}, Checkpoint)
    except Misfit as misfit:
        raise BadCheckpoint(_UNKNOWN) from misfit
    for uri, artifact in checkpoint.artifacts.items():
        if artifact.uri != uri:
            raise BadCheckpoint("an artifact stands under another name")
    return checkpoint


def _is_known(version: object) -> bool:
    return type(version) is int and version == SCHEMA_VERSION


def _fact(fact: Fact, artifacts: Mapping[str, Artifact]) -> dict[str, Any]:
    """Return a fact with its status before the last key."""
    written = _codec.write(fact)
    last = written.popitem()
    return dict([*written.items(), ("status", status_of(fact, artifacts)), last])


def _without_status(fact: object) -> object:
    if not is_object(fact) or fact.get("status") not in get_args(FactStatus):
        raise BadCheckpoint(_UNKNOWN)
    return {key: each for key, each in fact.items() if key != "status"}


kept = Codec(own={Checkpoint: Form(to_json, from_json)})
"""For records in files.  It writes every key, with `null` if there is no value.  It passes over
unknown keys, and missing ones have their default."""

state_codec = Codec(names=str, fill="nothing", own=kept.own)
"""For the state of a session: every key is needed."""
