"""What is asked and answered at the door of the memory: what the host knows, and the two answers.

How an answer comes about is left to `claims.py`.
"""

from collections.abc import Container, Mapping
from typing import Literal

from attrs import Factory

from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.records import Artifact
from codex_checkpoints.values import frozen

TASK = "task"
"""As `ref` of evidence from the user: the message that set the task (DSC-82)."""

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
    """What the host knows of the session at this moment.

    `user_refs` are the messages of turns that count, `call_ids` all calls with an outcome,
    `artifacts` those of the checkpoint with their current hashes, `decisions` the ids of those
    stored, `used_decision_ids` these and the ones evicted since.
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
    """A payload to be stored: aliases resolved, claimed hashes left out, values untouched.

    `hashes` says what the host sees of each dependency (`unknown:` where it sees nothing) and of
    the evidence (left out where it sees nothing).  `shortened` names the places that will be cut.
    """

    payload: Mapping[str, object]
    hashes: Mapping[str, str]
    shortened: tuple[str, ...]


@frozen
class Rejected:
    """A refusal: which rule was broken, what broke it, how to satisfy it (DSC-36)."""

    code: Code
    rule: str
    message: str
    hint: str
    facts: Mapping[str, object]


def misshapen(problems: list[str], rule: str = "shape") -> Rejected:
    """Refuse a payload for what it is, whatever the session is like."""
    return Rejected(
        "invalid_payload",
        rule,
        f"the payload does not fit: {'; '.join(problems)}",
        "Send one JSON object that fits the schema of memory.apply.",
        {"problems": problems},
    )
