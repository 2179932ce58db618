"""The events of operations, one JSON line each in `audit.jsonl`.

No field can hold a prompt: a marker's label is the only text of a person (AGN-61, AGN-76).  `step`
numbers the events of one operation from 0, so `verify` finds a missing line too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from codex_checkpoints.core.audit import is_intact
from codex_checkpoints.core.checkpoint.records import kept
from codex_checkpoints.core.restore.pack import TurnSource
from codex_checkpoints.core.rollout.fields import object_of, text_of
from codex_checkpoints.values import frozen

RestoreMode = Literal["soft", "hard"]
"""Continuity first, or performance first (AGN-31)."""


@frozen
class Operation:
    """The fields that all events of one operation share; only a restore has a marker and a mode.

    `session_id` is the branch's, once it has one.  Source and marker are None where the request
    names none: what a person typed is never kept.  User and organisation are settings.
    """

    operation_id: str
    session_id: str | None
    source_session_id: str | None
    checkpoint_id: str | None
    source_turn: TurnSource | None
    restore_mode: RestoreMode | None
    user_id: str | None = None
    org_id: str | None = None


TRANSFERRED = ("notes", "files", "chunks", "systemArtifacts", "pinned", "markers")
"""The categories that a branch has."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "RestoreRequested": ("label", "budget", "window"),
    "RestoreValidated": ("sourceBytes", "sourceDigest", "turns"),
    "BranchCreated": ("placement", "branchBytes", "branchDigest"),
    "StateTransferred": TRANSFERRED,
    "StatePackPrepared": ("packDigest", "tokens", "budget", "included", "deferred"),
    "PackTruncated": ("budget", "included", "deferred"),
    "LLMChainReset": ("windowId", "firstWindowId", "sourceWindowId"),
    "RestoreCompleted": ("contextReset", "tokensBefore", "tokensAfter", "warnings"),
    "RestoreFailed": ("code",),
    "DriftDetected": ("uri", "then", "now"),
    "ArtifactMissing": ("uri", "then"),
    "FallbackUsed": ("fallback", "uri"),
}
"""The events of a restore, each with its own fields; whoever adds one that may hold words has to
think of AGN-61."""

_SOFT = (
    "RestoreRequested",
    "RestoreValidated",
    "BranchCreated",
    "StateTransferred",
    "RestoreCompleted",
)
_HARD = (*_SOFT[:-1], "StatePackPrepared", "LLMChainReset", "RestoreCompleted")
ORDER: Mapping[RestoreMode, tuple[str, ...]] = {"soft": _SOFT, "hard": _HARD}
"""The events of a restore that succeeds (AGN-62); others may stand between them."""

COMPLETED = "RestoreCompleted"
FAILED = "RestoreFailed"

BESIDE = frozenset({"DriftDetected", "ArtifactMissing", "FallbackUsed", "PackTruncated"})
"""The events that may stand anywhere behind the first."""

Event = tuple[str, *tuple[Any, ...]]
"""The type of an event of a restore, and the values of its fields."""


def line_of(operation: Operation, event: Event, *, step: int, at: str) -> dict[str, Any]:
    """Return the line of an event; `step` counts the events of the operation."""
    kind, *values = event
    own = dict(zip(FIELDS[kind], values, strict=True))
    return event_of(kind, at, operation, own | {"step": step})


def event_of(
    kind: str, at: str, operation: Operation, more: Mapping[str, object]
) -> dict[str, Any]:
    """Return an event for the audit: ids, counts, digests and codes."""
    return {"type": kind, "at": at} | kept.write(operation) | dict(more)


Code = Literal[
    "changed_line",
    "broken_chain",
    "missing_lines",
    "wrong_order",
    "changed_record",
    "missing_record",
    "changed_branch",
    "changed_source",
]


@frozen
class Fault:
    """Something that is not as it was written.

    `code` is `changed_line`, `broken_chain`, `missing_lines` or `wrong_order` for the audit (`line`
    counts from 1; null where a whole end is gone). A chain is broken where lines in front of `line`
    were removed or replaced. It is `changed_record` for the record of a restore or an import,
    `missing_record` for one that a session lacks and another place tells of, `changed_branch` for
    what a session began with that a restore or a compaction made, `changed_source` for the bytes
    that its source had then.
    """

    code: Code
    operation_id: str | None
    session_id: str | None = None
    line: int | None = None


class _Step(NamedTuple):
    line: int
    kind: str
    mode: str
    step: int


def verify(log: Iterable[object]) -> tuple[Fault, ...]:
    """Check the events of restores in a log, and ignore those of other operations (AGN-62).

    A crash leaves an operation without an end: that is no fault (`unended`).
    """
    findings: list[Fault] = []
    running: dict[str, list[_Step]] = {}
    for number, line in enumerate(log, 1):
        event = object_of(line)
        mode, kind = text_of(event.get("restoreMode")), text_of(event.get("type")) or ""
        operation = text_of(event.get("operationId"))
        if mode is None or operation is None:
            continue
        if not is_intact(event):
            findings.append(Fault("changed_line", operation, line=number))
        steps = running.setdefault(operation, [])
        step = event.get("step")
        if step != (steps[-1].step + 1 if steps else 0):
            findings.append(Fault("missing_lines", operation, line=number))
        steps.append(_Step(number, kind, mode, step if type(step) is int else len(steps)))
    for operation, steps in running.items():
        misplaced = _misplaced([step.kind for step in steps], steps[0].mode)
        if misplaced is not None:
            findings.append(Fault("wrong_order", operation, line=steps[misplaced].line))
    return tuple(sorted(findings, key=lambda fault: fault.line or 0))


def unended(log: Iterable[object]) -> tuple[str, ...]:
    """Return the restores in a log without an end, in the order of their beginning.

    One of them may be under way, or be ended by the next start.
    """
    has_ended: dict[str, bool] = {}
    for line in log:
        event = object_of(line)
        operation = text_of(event.get("operationId"))
        if operation is not None and text_of(event.get("restoreMode")) is not None:
            ends = event.get("type") in (COMPLETED, FAILED)
            has_ended[operation] = has_ended.get(operation, False) or ends
    return tuple(operation for operation, ended in has_ended.items() if not ended)


def _misplaced(kinds: Sequence[str], mode: str) -> int | None:
    expected = list(ORDER["hard" if mode == "hard" else "soft"])
    for place, kind in enumerate(kinds):
        if kind == FAILED and place > 0 and expected:
            return None if place == len(kinds) - 1 else place + 1
        if kind in BESIDE and place > 0 and expected:
            continue
        if not expected or kind != expected.pop(0):
            return place
    return None
