"""Look through the texts of a `memory.apply` payload for what a memory must not keep.

Secrets are looked for in every text (DSC-81), policies in those that a view shows (DSC-60).  A key
and its value count as the one line that they become in a view, and so do a decision and its
rationale: nothing is said by halves.
"""

import re
from collections.abc import Iterator
from typing import TypeGuard, assert_never

import attrs

from codex_checkpoints.core.checkpoint.payloads import (
    Claim,
    DecisionClaim,
    FactClaim,
    PlanClaim,
)
from codex_checkpoints.core.checkpoint.policy import standing_policy
from codex_checkpoints.core.checkpoint.redaction import find_secret
from codex_checkpoints.core.checkpoint.text import one_line
from codex_checkpoints.core.codec import camel
from codex_checkpoints.core.rollout.fields import is_object
from codex_checkpoints.values import frozen


@frozen
class Found:
    """What a rule of a table found, and where in the payload: `steps[2].text`."""

    at: str
    rule: str


def secret_in(claim: Claim) -> Found | None:
    """Return the first secret, in the order of the record's fields (DSC-81)."""
    texts = list(_texts(claim, ""))
    if isinstance(claim, FactClaim):
        texts.append(("key, value", f"{claim.key}: {claim.value}"))
    for at, text in texts:
        # What is stored has its line breaks folded, which may bring two halves together.
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
    """Yield what may be read as a sentence; the words of a name stand apart."""
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
    return _JOINTS.sub(" ", name)


_JOINTS = re.compile(r"[._/:-]+")
