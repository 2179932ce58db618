"""Records the calls of Codex's hooks, and their failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from codex_checkpoints.storage.records import HOOK_FAILED, Records

Event = Literal["SessionStart", "PreCompact", "PostCompact"]

DOOR = "hook"
UNSET_FIELDS = dict.fromkeys(
    (
        "operationId",
        "sourceSessionId",
        "checkpointId",
        "sourceTurn",
        "restoreMode",
        "userId",
        "orgId",
    )
)
"""The fields of every audit event for which a hook has no value."""


@frozen
class Call:
    """One call of a hook around a window.

    `session` and `transcript` are the id and file that Codex names, perhaps of a subagent; `source`
    is the reason for the start of a session or for a compaction.
    """

    event: Event
    session: str
    transcript: str
    source: str


def note_failure(records: Records, failure: Mapping[str, object]) -> None:
    """Record a failed call for `connect --status`; raises `StorageError`."""
    records.audit.add({"type": HOOK_FAILED, **UNSET_FIELDS, "door": DOOR, **failure})
