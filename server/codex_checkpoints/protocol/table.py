"""The table of requests and notifications, and the codes of refusals."""

from __future__ import annotations

from codex_checkpoints.protocol.compactions import (
    Compacted,
    CompactParams,
    Resumed,
    ResumeParams,
    Uncompacted,
    UncompactParams,
)
from codex_checkpoints.protocol.connecting import (
    ConnectParams,
    ConnectReport,
    DoctorParams,
    DoctorReport,
)
from codex_checkpoints.protocol.events import Changed, Strayed
from codex_checkpoints.protocol.hints import HintList, HintsParams
from codex_checkpoints.protocol.histories import (
    Difference,
    DiffParams,
    History,
    LossList,
    Outline,
    WindowList,
)
from codex_checkpoints.protocol.lineage import (
    AuditParams,
    Branches,
    EventList,
    Lineage,
    VerifyParams,
    VerifyReport,
)
from codex_checkpoints.protocol.markers import (
    Marker,
    MarkerList,
    MarkParams,
    PinList,
    PinParams,
    RelabelParams,
    Unmarked,
    UnmarkParams,
)
from codex_checkpoints.protocol.notes import (
    AnchorList,
    AnchorsParams,
    Applied,
    ApplyParams,
    NoteList,
    RecordParams,
    Revoked,
    RevokeParams,
)
from codex_checkpoints.protocol.portable import (
    Exported,
    ExportParams,
    Imported,
    ImportParams,
)
from codex_checkpoints.protocol.restores import (
    Restored,
    RestoreDetails,
    RestoreDetailsParams,
    RestoreList,
    RestoreParams,
    RestoresParams,
)
from codex_checkpoints.protocol.sessions import (
    Deleted,
    MoveParams,
    RenameParams,
    SessionDetail,
    SessionList,
    SessionParams,
    SessionsParams,
    SessionSummary,
    ShowParams,
    Text,
    ViewParams,
    ViewText,
)
from codex_checkpoints.values import frozen


@frozen
class Method:
    """A request: its name, what is asked and what is answered."""

    name: str
    params: type
    result: type


@frozen
class Event:
    """A notification from the server."""

    name: str
    params: type


METHODS = (
    Method("checkpoints/sessions", SessionsParams, SessionList),
    Method("checkpoints/session", SessionParams, SessionDetail),
    Method("checkpoints/show", ShowParams, Text),
    Method("checkpoints/view", ViewParams, ViewText),
    Method("checkpoints/applyUpdate", ApplyParams, Applied),
    Method("checkpoints/notes", SessionParams, NoteList),
    Method("checkpoints/revokeNote", RevokeParams, Revoked),
    Method("checkpoints/anchors", AnchorsParams, AnchorList),
    Method("checkpoints/record", RecordParams, Text),
    Method("checkpoints/history", SessionParams, History),
    Method("checkpoints/windows", SessionParams, WindowList),
    Method("checkpoints/outline", SessionParams, Outline),
    Method("checkpoints/losses", SessionParams, LossList),
    Method("checkpoints/diff", DiffParams, Difference),
    Method("checkpoints/mark", MarkParams, Marker),
    Method("checkpoints/marks", SessionParams, MarkerList),
    Method("checkpoints/unmark", UnmarkParams, Unmarked),
    Method("checkpoints/relabel", RelabelParams, Marker),
    Method("checkpoints/pin", PinParams, PinList),
    Method("checkpoints/unpin", PinParams, PinList),
    Method("checkpoints/pins", SessionParams, PinList),
    Method("checkpoints/hints", HintsParams, HintList),
    Method("checkpoints/restorePreview", RestoreParams, Restored),
    Method("checkpoints/restore", RestoreParams, Restored),
    Method("checkpoints/restores", RestoresParams, RestoreList),
    Method("checkpoints/restoreDetails", RestoreDetailsParams, RestoreDetails),
    Method("checkpoints/branches", SessionParams, Branches),
    Method("checkpoints/lineage", SessionParams, Lineage),
    Method("checkpoints/audit", AuditParams, EventList),
    Method("checkpoints/verify", VerifyParams, VerifyReport),
    Method("checkpoints/compactPreview", CompactParams, Compacted),
    Method("checkpoints/compact", CompactParams, Compacted),
    Method("checkpoints/uncompact", UncompactParams, Uncompacted),
    Method("checkpoints/resume", ResumeParams, Resumed),
    Method("checkpoints/export", ExportParams, Exported),
    Method("checkpoints/import", ImportParams, Imported),
    Method("checkpoints/rename", RenameParams, SessionSummary),
    Method("checkpoints/archive", MoveParams, SessionSummary),
    Method("checkpoints/unarchive", MoveParams, SessionSummary),
    Method("checkpoints/delete", SessionParams, Deleted),
    Method("checkpoints/connect", ConnectParams, ConnectReport),
    Method("checkpoints/doctor", DoctorParams, DoctorReport),
)
EVENTS = (Event("checkpoints/changed", Changed), Event("checkpoints/strayed", Strayed))

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
