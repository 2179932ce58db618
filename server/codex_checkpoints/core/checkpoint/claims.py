"""Validates the payloads of `memory.apply` (DSC-32 to DSC-36).

`check` compares a payload with what the host knows of the session.  The caller stores an accepted
payload as a line of `updates.jsonl`, with sequence number, turn and time.

The rules apply in this order, and the first broken one is returned:

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

Long texts and excess steps are accepted: `memory` cuts them, and `Accepted.shortened` lists them.
A refusal names places in the payload and never repeats a refused text.

Rules 5 and 6 also check a key together with its value, and a decision with its rationale, as they
stand in one line of a view.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from typing import Literal, TypeGuard, assert_never

import attrs
import orjson
from attrs import Factory

from codex_checkpoints.core.checkpoint.payloads import (
    MAX_DEPENDENCIES,
    NO_EVIDENCE,
    Claim,
    DecisionClaim,
    EvidenceClaim,
    FactClaim,
    PlanClaim,
    read,
)
from codex_checkpoints.core.checkpoint.policy import standing_policy
from codex_checkpoints.core.checkpoint.records import (
    MAX_VALUE_CHARS,
    UNKNOWN_HASH,
    Artifact,
    Limits,
)
from codex_checkpoints.core.checkpoint.text import find_secret, one_line, value
from codex_checkpoints.core.codec import camel
from codex_checkpoints.core.rollout.fields import is_object
from codex_checkpoints.core.rollout.paths import encoded
from codex_checkpoints.values import frozen

TASK = "task"
"""The `ref` for the message that set the task (DSC-82)."""

Code = Literal[
    "conflict",
    "depends_on_missing",
    "evidence_missing",
    "evidence_unknown",
    "forged_hash",
    "invalid_payload",
    "limit_exceeded",
    "policy_text",
    "secret_text",
    "supersedes_unknown",
]


@frozen
class Known:
    """What the host knows of the session.

    `user_refs` are the messages of turns that count, `call_ids` the calls with an outcome,
    `artifacts` those of the checkpoint with current hashes, `decisions` the ids of the stored ones,
    `used_decision_ids` also those of evicted ones.
    """

    task_ref: str | None
    user_refs: Container[str]
    call_ids: Container[str]
    artifacts: Mapping[str, Artifact]
    decisions: Container[str]
    used_decision_ids: Container[str]
    limits: Limits = Factory(Limits)


@frozen
class Accepted:
    """A payload to be stored: aliases resolved, claimed hashes left out, values unchanged.

    `hashes` has the host's hash of each dependency (`unknown:` if there is none) and of the
    evidence (absent if there is none).  `shortened` names the places that will be cut.
    """

    payload: Mapping[str, object]
    hashes: Mapping[str, str]
    shortened: tuple[str, ...]


@frozen
class Rejected:
    """A refusal: the broken rule, what broke it, and how to satisfy it (DSC-36)."""

    code: Code
    rule: str
    message: str
    hint: str
    facts: Mapping[str, object]


def misshapen(problems: list[str], rule: str = "shape") -> Rejected:
    """Return the refusal of a payload with the wrong shape."""
    return Rejected(
        "invalid_payload",
        rule,
        f"the payload does not fit: {'; '.join(problems)}",
        "Send one JSON object that fits the schema of memory.apply.",
        {"problems": problems},
    )


@frozen
class Found:
    """The rule that found something, and the place in the payload: `steps[2].text`."""

    at: str
    rule: str


def secret_in(claim: Claim) -> Found | None:
    """Return the first secret in the order of the fields (DSC-81)."""
    texts = list(_texts(claim, ""))
    if isinstance(claim, FactClaim):
        texts.append(("key, value", f"{claim.key}: {claim.value}"))
    for at, text in texts:
        # Stored text has no line breaks, which may join two halves of a secret.
        rule = find_secret(text) or find_secret(one_line(text))
        if rule is not None:
            return Found(at, rule)
    return None


def policy_in(claim: Claim) -> Found | None:
    """Return the first standing policy for the agent (DSC-60)."""
    for at, text in _shown(claim):
        rule = standing_policy(text)
        if rule is not None:
            return Found(at, rule)
    return None


def _texts(part: object, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(part, str):
        yield at, part
    elif is_object(part):
        yield from ((at, name) for name in part)
    elif _is_tuple(part):
        for place, each in enumerate(part):
            yield from _texts(each, f"{at}[{place}]")
    elif attrs.has(type(part)):
        for each in attrs.fields(type(part)):
            yield from _texts(getattr(part, each.name), f"{at}.{camel(each.name)}".lstrip("."))


def _is_tuple(part: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(part, tuple)


def _shown(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield place and text of what a view shows; the words of a name are separated."""
    match claim:
        case FactClaim():
            yield "value", claim.value
            yield "key", _words(claim.key)
            yield "key, value", f"{_words(claim.key)} {claim.value}"
        case DecisionClaim():
            yield "topic", claim.topic or ""
            yield "decision", claim.decision
            yield "rationale", claim.rationale
            yield "decision, rationale", f"{claim.decision} \u2014 {claim.rationale}"
            yield "decisionId", _words(claim.decision_id)
        case PlanClaim():
            for place, step in enumerate(claim.steps):
                yield f"steps[{place}].text", step.text
                yield f"steps[{place}].id", _words(step.id)
        case _:
            assert_never(claim)


def _words(name: str) -> str:
    return re.sub(r"[._/:-]+", " ", name)


def seen_hash(evidence: EvidenceClaim, artifacts: Mapping[str, Artifact]) -> str | None:
    """Return the host's hash of the evidence, None if there is none."""
    if evidence.source == "user":
        return None
    if evidence.source == "file":
        return artifacts[evidence.ref].hash if evidence.ref in artifacts else None
    # Several calls of one script share its id: there is a hash only if it is the same for all.
    name = encoded(evidence.ref)
    found = {
        artifact.hash
        for uri, artifact in artifacts.items()
        if artifact.kind == "tool_output" and uri.partition("/")[2] == name
    }
    return found.pop() if len(found) == 1 else None


def _limits(claim: Claim, _session: Known) -> Rejected | None:
    count = len(claim.depends_on) if isinstance(claim, FactClaim) else 0
    if count <= MAX_DEPENDENCIES:
        return None
    return Rejected(
        "limit_exceeded",
        "limits",
        f"dependsOn names {count} artifacts, more than {MAX_DEPENDENCIES}",
        "Name those that decide whether the fact holds, or split the fact.",
        {"dependencies": count, "limit": MAX_DEPENDENCIES},
    )


def _repeats(claim: Claim, _session: Known) -> Rejected | None:
    match claim:
        case FactClaim():
            problems = _repeated("dependsOn", [each.uri for each in claim.depends_on])
        case PlanClaim():
            steps = [step.id for step in claim.steps]
            problems = _repeated("steps", steps)
            problems += [
                f"done.{value(name, _SHOWN)}: no such step"
                for name in sorted(set(claim.done) - {*steps})
            ]
        case DecisionClaim():
            return None
        case _:
            assert_never(claim)
    return misshapen(problems, "repeats") if problems else None


def _repeated(at: str, names: list[str]) -> list[str]:
    counts = Counter(names)
    return [f"{at}: {value(name, _SHOWN)} more than once" for name in counts if counts[name] > 1]


def _secrets(claim: Claim, _session: Known) -> Rejected | None:
    found = secret_in(claim)
    if found is None:
        return None
    return Rejected(
        "secret_text",
        "secrets",
        f"{found.at} holds what looks like a secret ({found.rule})",
        "Say where the secret is kept, not what it is.",
        {"at": found.at, "pattern": found.rule},
    )


def _policy(claim: Claim, _session: Known) -> Rejected | None:
    found = policy_in(claim)
    if found is None:
        return None
    return Rejected(
        "policy_text",
        "policy",
        f"{found.at} tells the agent how to behave from now on ({found.rule})",
        "Say what holds in the project, in the third person (“the tests run on port 8080”). Rules"
        " for the agent belong in AGENTS.md, where the user puts them.",
        {"at": found.at, "pattern": found.rule},
    )


def _evidence(claim: Claim, session: Known) -> Rejected | None:
    evidence = claim.evidence
    if evidence is NO_EVIDENCE:
        return Rejected(
            "evidence_missing",
            "evidence",
            "the payload names no evidence",
            f"{_CITE} `task` with source user is the message that set the task.",
            {},
        )
    match evidence.source:
        case "user":
            exists = evidence.ref in session.user_refs or evidence.ref == session.task_ref
            what = "message of the user"
        case "file":
            artifact = session.artifacts.get(evidence.ref)
            exists = artifact is not None and artifact.kind == "file"
            what = "file that was observed in this session"
        case "tool_output":
            exists = evidence.ref in session.call_ids
            what = "tool call with an outcome"
        case _:
            assert_never(evidence.source)
    if exists:
        return None
    return Rejected(
        "evidence_unknown",
        "evidence",
        f"evidence.ref: {value(evidence.ref, _SHOWN)} is no {what}",
        _CITE,
        {"source": evidence.source, "ref": value(evidence.ref, MAX_VALUE_CHARS)},
    )


def _dependencies(claim: Claim, session: Known) -> Rejected | None:
    if not isinstance(claim, FactClaim):
        return None
    rests_on = claim.evidence.source
    unknown = [each.uri for each in claim.depends_on if each.uri not in session.artifacts]
    if unknown:
        message = f"dependsOn: {value(unknown[0], _SHOWN)} was not observed in this session"
    elif rests_on != "user" and not claim.depends_on:
        message = f"a fact with evidence {rests_on} names what it depends on"
    else:
        return None
    return Rejected(
        "depends_on_missing",
        "dependencies",
        message,
        "Name 1 to 16 files or tool outputs by the uris that memory.read lists; read a file first"
        " where it is not among them.",
        {"unknown": [value(uri, MAX_VALUE_CHARS) for uri in unknown]},
    )


def _claimed_hashes(claim: Claim, session: Known) -> Rejected | None:
    seen = seen_hash(claim.evidence, session.artifacts)
    claimed = [("evidence", claim.evidence.hash, seen)]
    if isinstance(claim, FactClaim):
        claimed += [
            (f"dependsOn[{place}]", each.hash, session.artifacts[each.uri].hash)
            for place, each in enumerate(claim.depends_on)
        ]
    for at, claimed_hash, seen in claimed:
        if claimed_hash is not None and claimed_hash != seen:
            how = "cannot be checked here" if seen is None else "differs from what the host sees"
            return Rejected(
                "forged_hash",
                "hashes",
                f"{at}.hash {how}",
                "Leave hash out: the host records its own.",
                {"at": f"{at}.hash", "checkable": seen is not None},
            )
    return None


def _decisions(claim: Claim, session: Known) -> Rejected | None:
    if not isinstance(claim, DecisionClaim):
        return None
    name, old = claim.decision_id, claim.supersedes
    if old is not None and (old == name or old not in session.decisions):
        return Rejected(
            "supersedes_unknown",
            "decisions",
            "a decision cannot supersede itself"
            if old == name
            else f"supersedes: no decision {value(old, _SHOWN)} is stored",
            "Name the decisionId of a decision that memory.read lists, or leave supersedes out.",
            {"supersedes": value(old, MAX_VALUE_CHARS)},
        )
    if name not in session.used_decision_ids and name not in session.decisions:
        return None
    return Rejected(
        "conflict",
        "decisions",
        f"decisionId: {name} is already used",
        "Choose another decisionId, and name this one in supersedes if it is replaced.",
        {"decisionId": name},
    )


_SHOWN = 80
"""Code points of a name that a message repeats."""

_CITE = "Cite an anchor as memory.read lists it: a user message, an observed file or a tool call."

RULES = (
    _limits,
    _repeats,
    _secrets,
    _policy,
    _evidence,
    _dependencies,
    _claimed_hashes,
    _decisions,
)

MAX_PAYLOAD_BYTES = 65_536


def check(payload: bytes, session: Known) -> Accepted | Rejected:
    """Return the payload as accepted, or the first rule that it breaks."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        return Rejected(
            "limit_exceeded",
            "size",
            f"the payload has {len(payload)} bytes, more than {MAX_PAYLOAD_BYTES}",
            "Say it shorter, or in several updates.",
            {"bytes": len(payload), "limit": MAX_PAYLOAD_BYTES},
        )
    try:
        value: object = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return misshapen(["the payload is no JSON"])
    if not is_object(value):
        return misshapen(["the payload is no JSON object"])
    if value.get("evidence", {}) in (None, {}):
        value = {key: part for key, part in value.items() if key != "evidence"}
    claim = read(value)
    if isinstance(claim, list):
        return misshapen(claim)
    claim = _resolved(claim, session.task_ref)
    rejected = next(filter(None, (rule(claim, session) for rule in RULES)), None)
    if rejected is not None:
        return rejected
    return Accepted(
        _stored(value, claim), _hashes(claim, session), tuple(_cut(claim, session.limits))
    )


def _resolved(claim: Claim, task: str | None) -> Claim:
    """Replace the ref `task` by the id of the message that set the task (DSC-82)."""
    evidence = claim.evidence
    if task is None or (evidence.source, evidence.ref) != ("user", TASK):
        return claim
    return attrs.evolve(claim, evidence=attrs.evolve(evidence, ref=task))


def _stored(payload: Mapping[str, object], claim: Claim) -> Mapping[str, object]:
    """Return the payload with the alias resolved and without the claimed hashes."""
    evidence = {"source": claim.evidence.source, "ref": claim.evidence.ref}
    stored = {**payload, "evidence": evidence}
    if isinstance(claim, FactClaim) and "dependsOn" in stored:
        stored["dependsOn"] = [{"uri": each.uri} for each in claim.depends_on]
    return stored


def _hashes(claim: Claim, session: Known) -> Mapping[str, str]:
    """Return the host's hashes of evidence and dependencies."""
    seen = seen_hash(claim.evidence, session.artifacts)
    hashes = {} if seen is None else {claim.evidence.ref: seen}
    # Last, so that a dependency with the name of a call keeps its own hash.
    if isinstance(claim, FactClaim):
        hashes |= {
            each.uri: session.artifacts[each.uri].hash or UNKNOWN_HASH for each in claim.depends_on
        }
    return hashes


def _cut(claim: Claim, limits: Limits) -> Iterator[str]:
    """Yield the places of the texts and steps that `memory` cuts (DSC-24, DSC-76)."""
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
