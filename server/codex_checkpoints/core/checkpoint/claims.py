"""The strict door of the memory: say whether a payload may be accepted (DSC-32 to DSC-36).

`check` holds a `memory.apply` payload against what the host knows of the session.  It changes
nothing and believes nothing: evidence must exist, dependencies must be observed, hashes are the
host's.  What it accepts becomes a line of `updates.jsonl` and is never checked again (`memory`);
sequence number, turn and time are put there by the caller.

The rules are asked in this order and the first that is broken is the answer:

1. size: at most 64 KiB (`limit_exceeded`);
2. shape: JSON of one of the three kinds, problems listed (`invalid_payload`);
3. limits: at most 16 dependencies (`limit_exceeded`);
4. repeats: step ids and uris stand once, `done` names steps of the plan (`invalid_payload`);
5. secrets: in no text of the payload (`secret_text`, DSC-81);
6. policy: in no text that a view shows (`policy_text`, DSC-60);
7. evidence: is there (`evidence_missing`) and exists (`evidence_unknown`, DSC-34, DSC-63, DSC-82);
8. dependencies: are there and were observed (`depends_on_missing`, DSC-35);
9. hashes: a claimed one is the host's (`forged_hash`, DSC-32);
10. decisions: replace another one that is stored (`supersedes_unknown`, DSC-77), under an id that
    was never used (`conflict`).

Texts that are too long and steps that are too many are no reason to refuse: they are cut when the
update is replayed, and `Accepted.shortened` tells which.
"""

from collections.abc import Iterator, Mapping
from typing import assert_never

import attrs
import orjson

from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.claim_rules import RULES, seen_hash
from codex_checkpoints.core.checkpoint.payloads import (
    Claim,
    DecisionClaim,
    FactClaim,
    PlanClaim,
    read,
)
from codex_checkpoints.core.checkpoint.records import UNKNOWN_HASH
from codex_checkpoints.core.checkpoint.schema import schema
from codex_checkpoints.core.checkpoint.text import one_line
from codex_checkpoints.core.checkpoint.verdicts import TASK, Accepted, Known, Rejected, misshapen
from codex_checkpoints.core.rollout.fields import is_object

__all__ = ["MAX_PAYLOAD_BYTES", "Accepted", "Known", "Rejected", "check", "schema"]

MAX_PAYLOAD_BYTES = 65_536


def check(payload: bytes, session: Known) -> Accepted | Rejected:
    """Accept a payload, or say which rule it breaks and how to satisfy it."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        return Rejected(
            "limit_exceeded",
            "size",
            f"the payload has {len(payload)} bytes, more than {MAX_PAYLOAD_BYTES}",
            "Say it shorter, or in several updates.",
            {"bytes": len(payload), "limit": MAX_PAYLOAD_BYTES},
        )
    try:
        asked: object = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return misshapen(["the payload is no JSON"])
    if not is_object(asked):
        return misshapen(["the payload is no JSON object"])
    if asked.get("evidence", {}) in (None, {}):
        asked = {key: part for key, part in asked.items() if key != "evidence"}
    claim = read(asked)
    if isinstance(claim, list):
        return misshapen(claim)
    claim = _resolved(claim, session.task_ref)
    rejected = next(filter(None, (rule(claim, session) for rule in RULES)), None)
    if rejected is not None:
        return rejected
    return Accepted(
        _stored(asked, claim), _hashes(claim, session), tuple(_cut(claim, session.limits))
    )


def _resolved(claim: Claim, task: str | None) -> Claim:
    """Put the id of the message that set the task where the payload says `task` (DSC-82)."""
    evidence = claim.evidence
    if task is None or (evidence.source, evidence.ref) != ("user", TASK):
        return claim
    return attrs.evolve(claim, evidence=attrs.evolve(evidence, ref=task))


def _stored(asked: Mapping[str, object], claim: Claim) -> Mapping[str, object]:
    """Return the payload as it came, but for the alias and for the claimed hashes."""
    evidence = {"source": claim.evidence.source, "ref": claim.evidence.ref}
    stored = {**asked, "evidence": evidence}
    if isinstance(claim, FactClaim) and "dependsOn" in stored:
        stored["dependsOn"] = [{"uri": each.uri} for each in claim.depends_on]
    return stored


def _hashes(claim: Claim, session: Known) -> Mapping[str, str]:
    seen = seen_hash(claim.evidence, session.artifacts)
    hashes = {} if seen is None else {claim.evidence.ref: seen}
    # Last, so that a file with the name of a call is never taken for what the call put out.
    if isinstance(claim, FactClaim):
        hashes |= {
            each.uri: session.artifacts[each.uri].hash or UNKNOWN_HASH for each in claim.depends_on
        }
    return hashes


def _cut(claim: Claim, limits: Limits) -> Iterator[str]:
    """Name the texts and steps that replaying will shorten (DSC-24, DSC-76)."""
    match claim:
        case FactClaim():
            texts = {"value": claim.value}
        case DecisionClaim():
            texts = {
                "topic": claim.topic or "",
                "decision": claim.decision,
                "rationale": claim.rationale,
            }
        case PlanClaim():
            kept = claim.steps[: limits.max_plan_steps_total]
            texts = {f"steps[{place}].text": step.text for place, step in enumerate(kept)}
        case _:
            assert_never(claim)
    yield from (at for at, text in texts.items() if len(one_line(text)) > limits.max_value_chars)
    if isinstance(claim, PlanClaim) and len(claim.steps) > limits.max_plan_steps_total:
        yield f"steps[{limits.max_plan_steps_total}:]"
