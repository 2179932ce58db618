"""The records of the protocol by their names on the wire.

A record of the core or the service that goes out as it is has its name here; the others stand
beside their operations.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from codex_checkpoints.core.checkpoint import anchors
from codex_checkpoints.core.checkpoint.records import Evidence
from codex_checkpoints.core.compaction import outline
from codex_checkpoints.core.compaction.offering import WindowBudget
from codex_checkpoints.core.restore import events
from codex_checkpoints.core.rollout.payloads import LeftOut
from codex_checkpoints.operations import services
from codex_checkpoints.protocol import METHODS, Changed
from codex_checkpoints.service import doctor, lineages, summaries
from codex_checkpoints.service.connect import doors, status
from codex_checkpoints.service.reading.projections import Strayed

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
    "TimelineTurn", "TimelineEvent", "SessionTimeline",
    "TranscriptParams", "TranscriptItem", "TurnTranscript", "ChangesParams", "FilePatch",
    "FileChange", "FileChanges", "DiffParams", "Difference",
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


_MODULES = {each.run.__module__: import_module(each.run.__module__) for each in METHODS}
_FOUND: dict[str, Any] = {
    **{
        name: found for each in (services, *_MODULES.values()) for name, found in vars(each).items()
    },
    "Branch": lineages.Branch,
    "Changed": Changed,
    "ConnectChange": status.Done,
    "ConnectFailure": doors.Failure,
    "ConnectHome": status.OtherHome,
    "DoctorFinding": doctor.Finding,
    "Git": summaries.Git,
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
"""Every record by its name, in the order of protocol.ts."""
