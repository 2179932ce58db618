"""The protocol between server and clients: the table of methods, and the records by their names.

`server` registers exactly this table, the command line prints the same records, and PROTOCOL.md
and the TypeScript of the extension are made from them.  A record of the core or the service that
goes out as it is has its name on the wire here; the others stand beside their operations.

Field names are camelCase on the wire.  Every field is always sent, `null` where nothing is known.
Times are UTC, ISO 8601 with milliseconds and `Z`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codex_checkpoints.core.checkpoint import anchors
from codex_checkpoints.core.checkpoint.records import Evidence
from codex_checkpoints.core.compaction import outline
from codex_checkpoints.core.compaction.offering import WindowBudget
from codex_checkpoints.core.restore import events
from codex_checkpoints.core.rollout.payloads import LeftOut
from codex_checkpoints.operations import (
    compactions,
    connecting,
    digests,
    histories,
    marking,
    memory,
    portable,
    restores,
    searching,
    services,
    sessions,
    views,
)
from codex_checkpoints.service import doctor, lineages, summaries
from codex_checkpoints.service.connect import doors, status
from codex_checkpoints.service.reading.projections import Strayed
from codex_checkpoints.values import Factory, frozen


@frozen
class Changed:
    """Sessions that changed; ask again for what is shown.

    `seq` counts this server's notifications from 1; after a gap ask for everything again.
    `reason` is `rollout`, `workspace`, `memory` or `markers`.
    """

    session_ids: tuple[str, ...]
    seq: int
    reason: str


@frozen
class InitializationOptions:
    """Options of the client at the start; `settings` override `config.toml` by name."""

    codex_home: str | None = None
    state_dir: str | None = None
    settings: dict[str, Any] = Factory(dict[str, Any])


@frozen
class Method:
    """A request: its name, the records of params and result, and the operation that answers.

    One with a `title` takes long: it can be cancelled, and reports progress under that title, or
    under `preview` where that is set and `dryRun` is.  Of those that are `alone` one runs at a
    time.  One that is `apart` uses no session: it takes the folders in place of the services.
    """

    name: str
    params: type
    result: type
    run: Callable[[Any, Any], Any]
    title: str | None = None
    preview: str | None = None
    alone: bool = False
    apart: bool = False


@frozen
class Event:
    """A notification from the server."""

    name: str
    params: type


def _method(
    name: str,
    run: Callable[..., Any],
    title: str | None = None,
    preview: str | None = None,
    **flags: bool,
) -> Method:
    """Return a method whose records are those that its operation declares."""
    records = services.records_of(run)
    return Method(f"checkpoints/{name}", *records, run, title, preview, **flags)


_READING, _COMPACTING = "Reading the session", "Compacting the session"
METHODS = (
    _method("sessions", sessions.listed),
    _method("session", sessions.session),
    _method("show", views.show),
    _method("view", views.view),
    _method("digest", digests.digest, _READING),
    _method("recall", digests.recall, _READING),
    _method("search", searching.search, "Searching the sessions"),
    _method("applyUpdate", memory.apply_update),
    _method("notes", memory.notes),
    _method("revokeNote", memory.revoke_note),
    _method("anchors", memory.anchors),
    _method("record", memory.record),
    _method("history", histories.history, ""),
    _method("windows", histories.windows, ""),
    _method("outline", histories.outline, ""),
    _method("losses", histories.losses, ""),
    _method("timeline", histories.timeline, _READING),
    _method("diff", histories.diff, ""),
    _method("mark", marking.mark),
    _method("marks", marking.marks),
    _method("unmark", marking.unmark),
    _method("relabel", marking.relabel),
    _method("pin", marking.pin),
    _method("unpin", marking.unpin),
    _method("pins", marking.pins),
    _method("hints", marking.hints),
    _method("restorePreview", restores.restore_preview, _READING),
    _method("restore", restores.restore, "Restoring"),
    _method("restores", restores.restores),
    _method("restoreDetails", restores.restore_details),
    _method("branches", restores.around),
    _method("lineage", restores.lineage),
    _method("audit", restores.audit),
    _method("verify", restores.verify, "Computing digests again"),
    _method("compactPreview", compactions.compact_preview, _READING),
    _method("compact", compactions.compact, _COMPACTING),
    _method("uncompact", compactions.uncompact, ""),
    _method("resume", compactions.resume, _COMPACTING),
    _method("export", portable.export, "Exporting", _READING),
    _method("import", portable.make, "Importing", "Reading the pack"),
    _method("rename", sessions.rename),
    _method("archive", sessions.archive, "Archiving the session", alone=True),
    _method("unarchive", sessions.unarchive, "Putting the session back", alone=True),
    _method("delete", sessions.delete),
    _method("connect", connecting.connect, apart=True),
    _method("doctor", connecting.doctor),
)
EVENTS = (Event("checkpoints/changed", Changed), Event("checkpoints/strayed", Strayed))

# fmt: off
_NAMES = (
    "WindowChain", "Offer", "CompactParams", "LeftOut", "CompactionPiece",
    "CompactionWindows", "HookOutcome", "KeptMessage", "CompactionWarning",
    "CompactionContents", "Compacted", "UncompactParams", "Uncompacted",
    "ResumeParams", "NotCompacted", "Resumed", "DoctorParams", "DoctorFinding",
    "DoctorReport", "ConnectParams", "ConnectFailure", "ConnectDoor", "ConnectHook",
    "ConnectHome", "ConnectChange", "ConnectReport", "Changed", "Strayed",
    "InitializationOptions", "Hint", "HintsParams", "HintList", "Receipt", "History",
    "Window", "WindowList", "OutlineTurn", "OutlineChunk", "Outline", "LostText",
    "LostFile", "LostCommand", "Reread", "Loss", "LossList",
    "TimelineTurn", "TimelineEvent", "SessionTimeline", "DiffParams", "Difference",
    "LineageLink", "LineageWindow", "LineageNode", "Lineage", "Branch", "Branches",
    "AuditParams", "EventList", "VerifyParams", "VerifyFinding", "VerifyReport",
    "MarkParams", "Marker", "MarkerList", "UnmarkParams", "Unmarked", "RelabelParams",
    "PinParams", "Pin", "PinList", "ApplyParams", "Evicted", "Applied", "NoteEvidence",
    "NoteDependency", "Note", "NoteList", "RevokeParams", "Revoked", "AnchorsParams",
    "Anchor", "AnchorList", "RecordParams", "ExportParams", "PackCounts", "LeftBehind",
    "Exported", "ImportParams", "Imported", "RestoreParams", "TurnSource", "PackItem",
    "DeferredItem", "PackLine", "RestoreWarning", "Restored", "RestoresParams",
    "RestoreEntry", "RestoreList", "RestoreDetailsParams", "RestoreDetails",
    "SessionsParams", "Git", "SessionSummary", "SessionList", "SessionParams", "TurnEntry",
    "EffectiveCaps", "WindowBudget", "SessionDetail", "ShowParams", "ViewParams", "Text",
    "CheckpointText", "ViewText", "DigestParams", "DigestLine", "SessionDigest",
    "RecallParams", "Recalled", "Hit", "RecallAnswer", "SearchParams", "SearchHit",
    "SearchAnswer", "RenameParams", "MoveParams",
    "DeleteParams", "Deleted",
)
# fmt: on
_OPERATIONS = (
    compactions,
    connecting,
    digests,
    histories,
    marking,
    memory,
    portable,
    restores,
    searching,
    sessions,
    views,
)
_FOUND: dict[str, Any] = {
    **{name: found for each in (services, *_OPERATIONS) for name, found in vars(each).items()},
    "Branch": lineages.Branch,
    "Changed": Changed,
    "ConnectChange": status.Done,
    "ConnectFailure": doors.Failure,
    "ConnectHome": status.OtherHome,
    "DoctorFinding": doctor.Finding,
    "Git": summaries.Git,
    "InitializationOptions": InitializationOptions,
    "LeftOut": LeftOut,
    "NoteDependency": anchors.Rest,
    "NoteEvidence": Evidence,
    "OutlineChunk": outline.Chunk,
    "OutlineTurn": outline.OutlineTurn,
    "Strayed": Strayed,
    "TurnEntry": summaries.TurnEntry,
    "VerifyFinding": events.Fault,
    "WindowBudget": WindowBudget,
}
RECORDS: dict[str, type] = {name: _FOUND[name] for name in _NAMES}
"""Every record by its name on the wire, in the order of protocol.ts."""

REFUSED = 1
"""The JSON-RPC error code of every refusal; `data` holds `code` and `facts`."""

CODES = (
    "unknown_session",
    "ambiguous_session",
    "unknown_turn",
    "unknown_checkpoint",
    "unknown_operation",
    "turn_not_complete",
    "unreadable_source",
    "session_live",
    "unknown_note",
    "unknown_ref",
    "has_own_turns",
    "invalid_payload",
    "limit_exceeded",
    "secret_text",
    "policy_text",
    "evidence_missing",
    "evidence_unknown",
    "depends_on_missing",
    "stale_read",
    "forged_hash",
    "supersedes_unknown",
    "conflict",
    "missing_context",
    "codex_not_found",
    "not_smaller",
    "item_too_large",
    "unsupported_placement",
    "codex_failed",
    "timed_out",
    "no_preview",
    "blocked_by_hook",
    "unknown_compaction",
    "storage_error",
    "cancelled",
)
"""The refusal codes in use."""
