"""Builds the events of operations, one JSON line each in `audit.jsonl`.

No field can hold a prompt: a marker's label is the only text of a person (AGN-61, AGN-76).  `step`
numbers the events of one operation from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from codex_checkpoints.core.converters import stored
from codex_checkpoints.core.restore.pack_items import TurnSource

RestoreMode = Literal["soft", "hard"]
"""Continuity first, or performance first (AGN-31)."""


@frozen
class Operation:
    """The fields that all events of one operation share; only a restore has a marker and a mode.

    `session_id` is the branch's, once it has one.  Source and marker are None if the request names
    none: typed text is never kept.  User and organisation are settings.
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
"""The events of a restore, each with its own fields.  A new field that may hold words must respect
AGN-61.
"""

COMPLETED = "RestoreCompleted"
FAILED = "RestoreFailed"

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
    return {"type": kind, "at": at} | stored.unstructure(operation) | dict(more)
