"""Validates the payloads of `memory.apply` (DSC-32 to DSC-36).

`check` compares a payload with the host's knowledge of the session.  The caller stores an accepted
payload as a line of `updates.jsonl`, with sequence number, turn and time.

The rules apply in this order, and the first broken one is returned:

1. size: at most 64 KiB (`limit_exceeded`);
2. shape: JSON of one of the three kinds, problems listed (`invalid_payload`);
3. limits: at most 16 dependencies (`limit_exceeded`);
4. repeats: step ids and uris occur once, `done` names steps of the plan (`invalid_payload`);
5. secrets: in no text of the payload (`secret_text`, DSC-81);
6. policy: in no text that a view shows (`policy_text`, DSC-60);
7. evidence: is there (`evidence_missing`) and exists (`evidence_unknown`, DSC-34, DSC-63, DSC-82);
8. dependencies: are there and were observed (`depends_on_missing`, DSC-35);
9. files: none that it rests on, named or added by the host, changed since the session saw it
   (`stale_read`, TRU-2);
10. hashes: a claimed one is the host's (`forged_hash`, DSC-32);
11. decisions: replace another one that is stored (`supersedes_unknown`, DSC-77), under an id that
    was never used (`conflict`).

Long texts and excess steps are accepted: `memory` cuts them, and `Accepted.shortened` lists them.
A refusal names places in the payload and never repeats a refused text.

Rules 5 and 6 also check a key together with its value, and a decision with its rationale, as a view
shows them in one line.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Literal, TypeGuard, assert_never

import orjson
from attrs import Factory, evolve, fields, frozen, has

from codex_checkpoints.core.checkpoint.note_schema import (
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
from codex_checkpoints.core.checkpoint.redaction import one_line, secret_in, value
from codex_checkpoints.core.converters import camel
from codex_checkpoints.core.fields import is_object
from codex_checkpoints.core.paths import encoded

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
    "stale_read",
    "supersedes_unknown",
]


def no_files(_call_id: str) -> Iterable[str]:
    """Return nothing: no call read a file."""
    return ()


@frozen
class SessionFacts:
    """The host's knowledge of the session.

    `user_refs` are the messages of turns that count, `call_ids` the calls with an outcome,
    `artifacts` the checkpoint's artifacts with current hashes, `decisions` the ids of the stored
    ones, `used_decision_ids` also the ids of evicted ones.  `files_read` returns the files that a
    call read.
    """

    task_ref: str | None
    user_refs: Container[str]
    call_ids: Container[str]
    artifacts: Mapping[str, Artifact]
    decisions: Container[str]
    used_decision_ids: Container[str]
    limits: Limits = Factory(Limits)
    files_read: Callable[[str], Iterable[str]] = no_files


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
    """A refusal: the broken rule, its cause, and how to satisfy it (DSC-36)."""

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


def policy_in(claim: Claim) -> tuple[str, str] | None:
    """Return place and rule of the first standing policy for the agent (DSC-60)."""
    return _first(_shown(claim), standing_policy)


def _first(
    texts: Iterable[tuple[str, str]], find: Callable[[str], str | None]
) -> tuple[str, str] | None:
    """Return the place in the payload, `steps[2].text`, and the rule that matched."""
    return next(((at, rule) for at, text in texts if (rule := find(text)) is not None), None)


def _texts(part: object, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(part, str):
        yield at, part
    elif is_object(part):
        yield from ((at, name) for name in part)
    elif _is_tuple(part):
        for place, each in enumerate(part):
            yield from _texts(each, f"{at}[{place}]")
    elif has(type(part)):
        for each in fields(type(part)):
            yield from _texts(getattr(part, each.name), f"{at}.{camel(each.name)}".lstrip("."))


def _is_tuple(part: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(part, tuple)


def _values(claim: Claim) -> list[tuple[str, str]]:
    """Return place and text of the values that a person wrote, without names."""
    match claim:
        case FactClaim():
            return [("value", claim.value)]
        case DecisionClaim():
            return [
                ("topic", claim.topic or ""),
                ("decision", claim.decision),
                ("rationale", claim.rationale),
            ]
        case PlanClaim():
            return [(f"steps[{n}].text", step.text) for n, step in enumerate(claim.steps)]
        case _:
            assert_never(claim)


def _shown(claim: Claim) -> list[tuple[str, str]]:
    """Return place and text of everything a view shows; the words of a name are separated."""
    texts = _values(claim)
    match claim:
        case FactClaim():
            name = _words(claim.key)
            return [*texts, ("key", name), ("key, value", f"{name} {claim.value}")]
        case DecisionClaim():
            whole = f"{claim.decision} \u2014 {claim.rationale}"
            name = _words(claim.decision_id)
            return [*texts, ("decision, rationale", whole), ("decisionId", name)]
        case PlanClaim():
            ids = [(f"steps[{n}].id", _words(step.id)) for n, step in enumerate(claim.steps)]
            return [place for pair in zip(texts, ids, strict=True) for place in pair]
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


def _limits(claim: Claim, _session: SessionFacts) -> Rejected | None:
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


def _repeats(claim: Claim, _session: SessionFacts) -> Rejected | None:
    problems: list[str] = []
    if isinstance(claim, FactClaim):
        problems = _repeated("dependsOn", [each.uri for each in claim.depends_on])
    elif isinstance(claim, PlanClaim):
        steps = [step.id for step in claim.steps]
        unknown = sorted(set(claim.done) - {*steps})
        problems = _repeated("steps", steps)
        problems += [f"done.{value(name, _SHOWN)}: no such step" for name in unknown]
    return misshapen(problems, "repeats") if problems else None


def _repeated(at: str, names: list[str]) -> list[str]:
    counts = Counter(names)
    return [f"{at}: {value(name, _SHOWN)} more than once" for name in counts if counts[name] > 1]


def _secrets(claim: Claim, _session: SessionFacts) -> Rejected | None:
    """Refuse a secret (DSC-81)."""
    texts = list(_texts(claim, ""))
    if isinstance(claim, FactClaim):
        texts.append(("key, value", f"{claim.key}: {claim.value}"))
    found = _first(texts, secret_in)
    return found and Rejected(
        "secret_text",
        "secrets",
        f"{found[0]} holds what looks like a secret ({found[1]})",
        "Say where the secret is kept, not what it is.",
        {"at": found[0], "pattern": found[1]},
    )


def _policy(claim: Claim, _session: SessionFacts) -> Rejected | None:
    found = policy_in(claim)
    return found and Rejected(
        "policy_text",
        "policy",
        f"{found[0]} tells the agent how to behave from now on ({found[1]})",
        "Say what holds in the project, in the third person (“the tests run on port 8080”). Rules"
        " for the agent belong in AGENTS.md, where the user puts them.",
        {"at": found[0], "pattern": found[1]},
    )


def _evidence(claim: Claim, session: SessionFacts) -> Rejected | None:
    evidence = claim.evidence
    if evidence is NO_EVIDENCE:
        return Rejected(
            "evidence_missing",
            "evidence",
            "the payload names no evidence",
            f"{_CITE} `task` with source user is the message that set the task.",
            {},
        )
    ref, artifact = evidence.ref, session.artifacts.get(evidence.ref)
    exists, what = {
        "user": (ref in session.user_refs or ref == session.task_ref, "message from the user"),
        "file": (
            artifact is not None and artifact.kind == "file",
            "file that was observed in this session",
        ),
        "tool_output": (ref in session.call_ids, "tool call with an outcome"),
    }[evidence.source]
    if exists:
        return None
    return Rejected(
        "evidence_unknown",
        "evidence",
        f"evidence.ref: {value(evidence.ref, _SHOWN)} is not a {what}",
        _CITE,
        {"source": evidence.source, "ref": value(evidence.ref, MAX_VALUE_CHARS)},
    )


def _dependencies(claim: Claim, session: SessionFacts) -> Rejected | None:
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


def _stale(claim: Claim, session: SessionFacts) -> Rejected | None:
    """Refuse a claim on a file that differs from the version that the session saw."""
    found = (session.artifacts.get(uri) for uri in _rests_on(claim, session))
    changed = [value(each.uri, MAX_VALUE_CHARS) for each in found if each and each.is_changed]
    if not changed:
        return None
    return Rejected(
        "stale_read",
        "files",
        f"{value(changed[0], _SHOWN)} changed since this session saw it",
        "Read the files again that facts.paths names, and say what they say now.",
        {"paths": changed},
    )


def _rests_on(claim: Claim, session: SessionFacts) -> tuple[str, ...]:
    """Return the dependencies of a claim: those that the host adds to a fact, then the named files.

    The host adds the evidence file (TRU-1) and the files read by a call that is its evidence or a
    dependency (TRU-3).
    """
    evidence = claim.evidence
    added = [evidence.ref] if evidence.source == "file" else []
    if not isinstance(claim, FactClaim):
        return tuple(added)
    named = [each.uri for each in claim.depends_on]
    calls = [evidence.ref] if evidence.source == "tool_output" else []
    known = (session.artifacts[uri] for uri in named)
    calls += [each.uri.partition("/")[2] for each in known if each.kind == "tool_output"]
    read = [uri for call in dict.fromkeys(calls) for uri in session.files_read(call)]
    # One file that is not an artifact any more is enough: no fact with it is VALID.
    lost = next((uri for uri in read if uri not in session.artifacts), None)
    added += [uri for uri in read if uri in session.artifacts or uri == lost]
    return (*dict.fromkeys(uri for uri in added if uri not in named), *named)


def _claimed_hashes(claim: Claim, session: SessionFacts) -> Rejected | None:
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


def _decisions(claim: Claim, session: SessionFacts) -> Rejected | None:
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

NOTE_RULES = (
    _limits,
    _repeats,
    _secrets,
    _policy,
    _evidence,
    _dependencies,
    _stale,
    _claimed_hashes,
    _decisions,
)

MAX_PAYLOAD_BYTES = 65_536


def check(payload: bytes, session: SessionFacts) -> Accepted | Rejected:
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
        return misshapen(["it is not JSON"])
    if not is_object(value):
        return misshapen(["it is not a JSON object"])
    if value.get("evidence", {}) in (None, {}):
        value = {key: part for key, part in value.items() if key != "evidence"}
    claim = read(value)
    if isinstance(claim, list):
        return misshapen(claim)
    claim = _resolved(claim, session.task_ref)
    rejected = next(filter(None, (rule(claim, session) for rule in NOTE_RULES)), None)
    if rejected is not None:
        return rejected
    return Accepted(
        _stored(value, claim, session), _hashes(claim, session), tuple(_cut(claim, session.limits))
    )


def _resolved(claim: Claim, task: str | None) -> Claim:
    """Replace the ref `task` by the id of the message that set the task (DSC-82)."""
    evidence = claim.evidence
    if task is None or (evidence.source, evidence.ref) != ("user", TASK):
        return claim
    return evolve(claim, evidence=evolve(evidence, ref=task))


def _stored(
    payload: Mapping[str, object], claim: Claim, session: SessionFacts
) -> Mapping[str, object]:
    """Return the payload with the alias resolved, its whole basis and no claimed hashes."""
    evidence = {"source": claim.evidence.source, "ref": claim.evidence.ref}
    stored = {**payload, "evidence": evidence}
    if isinstance(claim, FactClaim) and (rests_on := _rests_on(claim, session)):
        stored["dependsOn"] = [{"uri": uri} for uri in rests_on]
    return stored


def _hashes(claim: Claim, session: SessionFacts) -> Mapping[str, str]:
    """Return the host's hashes of evidence and dependencies."""
    seen = seen_hash(claim.evidence, session.artifacts)
    hashes = {} if seen is None else {claim.evidence.ref: seen}
    # Last, so that a dependency with the name of a call keeps its own hash.
    if isinstance(claim, FactClaim):
        for uri in _rests_on(claim, session):
            artifact = session.artifacts.get(uri)
            hashes[uri] = (artifact and artifact.hash) or UNKNOWN_HASH
    return hashes


def _cut(claim: Claim, limits: Limits) -> Iterator[str]:
    """Yield the places of the texts and steps that `memory` cuts (DSC-24, DSC-76)."""
    most = limits.max_plan_steps_total
    kept = _values(claim)[:most] if isinstance(claim, PlanClaim) else _values(claim)
    yield from (at for at, text in kept if len(one_line(text)) > limits.max_value_chars)
    if isinstance(claim, PlanClaim) and len(claim.steps) > most:
        yield f"steps[{most}:]"
