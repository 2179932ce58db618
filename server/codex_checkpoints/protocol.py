"""What server and clients say to each other: the table of methods, and every record of theirs.

This module is the single source.  `server` registers exactly the table, the command line prints
the same records, PROTOCOL.md names each of them, and the TypeScript of the extension is made from
it.  A record of the core or of the service that goes out as it is has the name here that it has on
the wire; the others stand beside the operations that return them.

Field names are camelCase on the wire.  Every field is always sent, `null` where nothing is known.
Times are UTC, ISO 8601 with milliseconds and `Z`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import Factory

from codex_checkpoints.core.checkpoint.anchors import Anchor, Note
from codex_checkpoints.core.checkpoint.anchors import Rest as NoteDependency
from codex_checkpoints.core.checkpoint.records import Caps as EffectiveCaps
from codex_checkpoints.core.checkpoint.records import Evidence as NoteEvidence
from codex_checkpoints.core.compaction.building import Piece as CompactionPiece
from codex_checkpoints.core.compaction.kinds import LeftOut
from codex_checkpoints.core.compaction.outline import Chunk as OutlineChunk
from codex_checkpoints.core.compaction.outline import Outline, OutlineTurn
from codex_checkpoints.core.compaction.records import Windows as CompactionWindows
from codex_checkpoints.core.history.windows import Chain as WindowChain
from codex_checkpoints.core.losses.watched import LostCommand, LostFile, LostText, Reread
from codex_checkpoints.core.restore.lineage import Window as LineageWindow
from codex_checkpoints.core.restore.markers import Pin
from codex_checkpoints.core.restore.pack import Deferred as DeferredItem
from codex_checkpoints.core.restore.pack import Item as PackItem
from codex_checkpoints.core.restore.pack import TurnSource
from codex_checkpoints.operations import (
    compactions,
    connecting,
    histories,
    marking,
    memory,
    portable,
    restores,
    sessions,
)
from codex_checkpoints.operations.compactions import (
    Compacted,
    CompactParams,
    NotCompacted,
    Resumed,
    ResumeParams,
    Uncompacted,
    UncompactParams,
)
from codex_checkpoints.operations.connecting import ConnectParams, ConnectReport, DoctorParams
from codex_checkpoints.operations.histories import (
    Difference,
    DiffParams,
    History,
    Loss,
    LossList,
    Window,
    WindowList,
)
from codex_checkpoints.operations.marking import (
    Hint,
    HintList,
    HintsParams,
    Marker,
    MarkerList,
    MarkParams,
    PinList,
    PinParams,
    RelabelParams,
    Unmarked,
    UnmarkParams,
)
from codex_checkpoints.operations.memory import (
    AnchorList,
    AnchorsParams,
    ApplyParams,
    NoteList,
    RecordParams,
    RevokeParams,
)
from codex_checkpoints.operations.portable import (
    Exported,
    ExportParams,
    Imported,
    ImportParams,
    LeftBehind,
    PackCounts,
)
from codex_checkpoints.operations.restores import (
    AuditParams,
    Branches,
    EventList,
    Lineage,
    LineageLink,
    LineageNode,
    PackLine,
    Restored,
    RestoreDetails,
    RestoreDetailsParams,
    RestoreEntry,
    RestoreList,
    RestoreParams,
    RestoresParams,
    RestoreWarning,
    VerifyParams,
)
from codex_checkpoints.operations.services import SessionParams, Text
from codex_checkpoints.operations.sessions import (
    Deleted,
    MoveParams,
    Offer,
    RenameParams,
    SessionDetail,
    SessionList,
    SessionsParams,
    SessionSummary,
    ShowParams,
    ViewParams,
    ViewText,
    WindowBudget,
)
from codex_checkpoints.service.compaction.request import HookResult as HookOutcome
from codex_checkpoints.service.connect.connecting import Done as ConnectChange
from codex_checkpoints.service.connect.doors import Door as ConnectDoor
from codex_checkpoints.service.connect.doors import Failure as ConnectFailure
from codex_checkpoints.service.connect.doors import HookState as ConnectHook
from codex_checkpoints.service.connect.receipts import Receipt
from codex_checkpoints.service.connect.status import OtherHome as ConnectHome
from codex_checkpoints.service.doctor import Diagnosis as DoctorReport
from codex_checkpoints.service.doctor import Finding as DoctorFinding
from codex_checkpoints.service.lineages import Branch
from codex_checkpoints.service.notes import Applied, Revoked
from codex_checkpoints.service.reading.projections import Strayed
from codex_checkpoints.service.restore.verifying import Fault as VerifyFinding
from codex_checkpoints.service.restore.verifying import Verified as VerifyReport
from codex_checkpoints.service.sessions import TurnSummary as TurnEntry
from codex_checkpoints.values import frozen

# The order is that of protocol.ts.
# fmt: off
__all__ = [  # noqa: RUF022
    "WindowChain", "Offer", "CompactParams", "LeftOut", "CompactionPiece",
    "CompactionWindows", "HookOutcome", "Compacted", "UncompactParams", "Uncompacted",
    "ResumeParams", "NotCompacted", "Resumed", "DoctorParams", "DoctorFinding",
    "DoctorReport", "ConnectParams", "ConnectFailure", "ConnectDoor", "ConnectHook",
    "ConnectHome", "ConnectChange", "ConnectReport", "Changed", "Strayed",
    "InitializationOptions", "Hint", "HintsParams", "HintList", "Receipt", "History",
    "Window", "WindowList", "OutlineTurn", "OutlineChunk", "Outline", "LostText",
    "LostFile", "LostCommand", "Reread", "Loss", "LossList", "DiffParams", "Difference",
    "LineageLink", "LineageWindow", "LineageNode", "Lineage", "Branch", "Branches",
    "AuditParams", "EventList", "VerifyParams", "VerifyFinding", "VerifyReport",
    "MarkParams", "Marker", "MarkerList", "UnmarkParams", "Unmarked", "RelabelParams",
    "PinParams", "Pin", "PinList", "ApplyParams", "Applied", "NoteEvidence",
    "NoteDependency", "Note", "NoteList", "RevokeParams", "Revoked", "AnchorsParams",
    "Anchor", "AnchorList", "RecordParams", "ExportParams", "PackCounts", "LeftBehind",
    "Exported", "ImportParams", "Imported", "RestoreParams", "TurnSource", "PackItem",
    "DeferredItem", "PackLine", "RestoreWarning", "Restored", "RestoresParams",
    "RestoreEntry", "RestoreList", "RestoreDetailsParams", "RestoreDetails",
    "SessionsParams", "SessionSummary", "SessionList", "SessionParams", "TurnEntry",
    "EffectiveCaps", "WindowBudget", "SessionDetail", "ShowParams", "ViewParams", "Text",
    "ViewText", "RenameParams", "MoveParams", "Deleted",
]
# fmt: on


@frozen
class Changed:
    """Sessions that are not what they were; ask again for what is shown.

    `seq` counts this server's notifications from 1; a gap means: ask for everything again.
    `reason` is `rollout`, `workspace`, `memory` or `markers`.
    """

    session_ids: tuple[str, ...]
    seq: int
    reason: str


@frozen
class InitializationOptions:
    """What the client says at the start; `settings` override `config.toml` by name."""

    codex_home: str | None = None
    state_dir: str | None = None
    settings: dict[str, Any] = Factory(dict[str, Any])


@frozen
class Method:
    """A request: its name, what is asked, what is answered, and the operation that answers.

    One with a `title` takes long: it can be called off, and reports its progress under that title,
    a preview (`dryRun`) under `preview`.  Of those that are `alone` one runs at a time.  One that
    is `apart` has no part in the sessions: it takes the folders in place of the services.
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


_READING, _COMPACTING = "Reading the session", "Compacting the session"
METHODS = (
    Method("checkpoints/sessions", SessionsParams, SessionList, sessions.listed),
    Method("checkpoints/session", SessionParams, SessionDetail, sessions.session),
    Method("checkpoints/show", ShowParams, Text, sessions.show),
    Method("checkpoints/view", ViewParams, ViewText, sessions.view),
    Method("checkpoints/applyUpdate", ApplyParams, Applied, memory.apply_update),
    Method("checkpoints/notes", SessionParams, NoteList, memory.notes),
    Method("checkpoints/revokeNote", RevokeParams, Revoked, memory.revoke_note),
    Method("checkpoints/anchors", AnchorsParams, AnchorList, memory.anchors),
    Method("checkpoints/record", RecordParams, Text, memory.record),
    Method("checkpoints/history", SessionParams, History, histories.history, ""),
    Method("checkpoints/windows", SessionParams, WindowList, histories.windows, ""),
    Method("checkpoints/outline", SessionParams, Outline, histories.outline, ""),
    Method("checkpoints/losses", SessionParams, LossList, histories.losses, ""),
    Method("checkpoints/diff", DiffParams, Difference, histories.diff, ""),
    Method("checkpoints/mark", MarkParams, Marker, marking.mark),
    Method("checkpoints/marks", SessionParams, MarkerList, marking.marks),
    Method("checkpoints/unmark", UnmarkParams, Unmarked, marking.unmark),
    Method("checkpoints/relabel", RelabelParams, Marker, marking.relabel),
    Method("checkpoints/pin", PinParams, PinList, marking.pin),
    Method("checkpoints/unpin", PinParams, PinList, marking.unpin),
    Method("checkpoints/pins", SessionParams, PinList, marking.pins),
    Method("checkpoints/hints", HintsParams, HintList, marking.hints),
    Method(
        "checkpoints/restorePreview", RestoreParams, Restored, restores.restore_preview, _READING
    ),
    Method("checkpoints/restore", RestoreParams, Restored, restores.restore, "Restoring"),
    Method("checkpoints/restores", RestoresParams, RestoreList, restores.restores),
    Method(
        "checkpoints/restoreDetails",
        RestoreDetailsParams,
        RestoreDetails,
        restores.restore_details,
    ),
    Method("checkpoints/branches", SessionParams, Branches, restores.around),
    Method("checkpoints/lineage", SessionParams, Lineage, restores.lineage),
    Method("checkpoints/audit", AuditParams, EventList, restores.audit),
    Method(
        "checkpoints/verify", VerifyParams, VerifyReport, restores.verify, "Computing digests again"
    ),
    Method(
        "checkpoints/compactPreview",
        CompactParams,
        Compacted,
        compactions.compact_preview,
        _READING,
    ),
    Method("checkpoints/compact", CompactParams, Compacted, compactions.compact, _COMPACTING),
    Method("checkpoints/uncompact", UncompactParams, Uncompacted, compactions.uncompact, ""),
    Method("checkpoints/resume", ResumeParams, Resumed, compactions.resume, _COMPACTING),
    Method("checkpoints/export", ExportParams, Exported, portable.export, "Exporting", _READING),
    Method(
        "checkpoints/import", ImportParams, Imported, portable.make, "Importing", "Reading the pack"
    ),
    Method("checkpoints/rename", RenameParams, SessionSummary, sessions.rename),
    Method(
        "checkpoints/archive",
        MoveParams,
        SessionSummary,
        sessions.archive,
        "Archiving the session",
        alone=True,
    ),
    Method(
        "checkpoints/unarchive",
        MoveParams,
        SessionSummary,
        sessions.unarchive,
        "Putting the session back",
        alone=True,
    ),
    Method("checkpoints/delete", SessionParams, Deleted, sessions.delete),
    Method("checkpoints/connect", ConnectParams, ConnectReport, connecting.connect, apart=True),
    Method("checkpoints/doctor", DoctorParams, DoctorReport, connecting.doctor),
)
EVENTS = (Event("checkpoints/changed", Changed), Event("checkpoints/strayed", Strayed))

RECORDS: dict[str, type] = {name: globals()[name] for name in __all__}
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
    "invalid_payload",
    "limit_exceeded",
    "secret_text",
    "policy_text",
    "evidence_missing",
    "evidence_unknown",
    "depends_on_missing",
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
