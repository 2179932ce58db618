"""What a `memory.apply` payload of the right shape may still break, rule by rule.

Each rule takes a claim and what the host knows, and returns a refusal or None.  `RULES` is their
order, which `claims.py` documents and applies; what texts may say is told by `claim_texts.py`.  A
refusal names places in the payload and never repeats a text that was refused for what it says.
"""

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.claim_texts import policy_in, secret_in
from codex_checkpoints.core.checkpoint.payloads import (
    MAX_DEPENDENCIES,
    NO_EVIDENCE,
    Claim,
    DecisionClaim,
    EvidenceClaim,
    FactClaim,
    PlanClaim,
)
from codex_checkpoints.core.checkpoint.records import Artifact
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.checkpoint.verdicts import Known, Rejected, misshapen
from codex_checkpoints.core.rollout.paths import encoded


def seen_hash(evidence: EvidenceClaim, artifacts: Mapping[str, Artifact]) -> str | None:
    """Return the hash that the host sees of the evidence, None where it sees none."""
    if evidence.source == "user":
        return None
    if evidence.source == "file":
        return artifacts[evidence.ref].hash if evidence.ref in artifacts else None
    # Several calls of one script share its id; they have one hash, or none can be told.
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


def _hashes(claim: Claim, session: Known) -> Rejected | None:
    seen = seen_hash(claim.evidence, session.artifacts)
    claimed = [("evidence", claim.evidence.hash, seen)]
    if isinstance(claim, FactClaim):
        claimed += [
            (f"dependsOn[{place}]", each.hash, session.artifacts[each.uri].hash)
            for place, each in enumerate(claim.depends_on)
        ]
    for at, said, seen in claimed:
        if said is not None and said != seen:
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
"""How much of a name is said back in a message."""

_CITE = "Cite an anchor as memory.read lists it: a user message, an observed file or a tool call."

RULES = (
    _limits,
    _repeats,
    _secrets,
    _policy,
    _evidence,
    _dependencies,
    _hashes,
    _decisions,
)
"""Every rule, in the order in which they are asked."""
