"""Defines the protocol between server and clients: the table of methods.

`lsp` registers exactly this table, the command line prints the same records, and PROTOCOL.md and
the TypeScript of the extension are made from them.  Operations are loaded lazily.

Field names are camelCase on the wire.  Every field is always sent, `null` for an unknown value.
Times are UTC, ISO 8601 with milliseconds and `Z`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from attrs import frozen

from codex_checkpoints.operations.services import records_of
from codex_checkpoints.service.reading.checkpoints import Strayed


@frozen
class Changed:
    """Sessions that changed; ask again for the visible ones.

    `seq` counts this server's notifications from 1; after a gap ask for everything again.  `reason`
    is `rollout`, `workspace`, `memory` or `markers`.
    """

    session_ids: tuple[str, ...]
    seq: int
    reason: str


@frozen
class Method:
    """A request: its name, and the operation that answers, `module.function` in `operations`.

    One with a `title` takes long: it can be cancelled, and reports progress under that title, or
    under `preview` if that is set and `dryRun` is.  One that `yields` only reads, and other
    requests run between its steps.  Methods that are `alone` run one at a time.  One that is
    `apart` uses no session: it takes the folders instead of the services.
    """

    name: str
    operation: str
    title: str | None = None
    preview: str | None = None
    yields: bool = False
    alone: bool = False
    apart: bool = False

    @property
    def run(self) -> Callable[[Any, Any], Any]:
        """Return the operation, loaded on first use."""
        module, _, name = self.operation.partition(".")
        return getattr(import_module(f"codex_checkpoints.operations.{module}"), name)

    @property
    def params(self) -> type:
        """Return the record of its params."""
        return records_of(self.run)[0]

    @property
    def result(self) -> type:
        """Return the record of its result."""
        return records_of(self.run)[1]


@frozen
class Event:
    """A notification from the server."""

    name: str
    params: type


def _method(
    name: str,
    operation: str,
    title: str | None = None,
    preview: str | None = None,
    **flags: bool,
) -> Method:
    return Method(f"checkpoints/{name}", operation, title, preview, **flags)


_READING, _COMPACTING = "Reading the session", "Compacting the session"
METHODS = (
    _method("sessions", "sessions.listed"),
    _method("session", "details.session"),
    _method("show", "checkpoint.show"),
    _method("view", "checkpoint.view"),
    _method("digest", "digests.digest", _READING, yields=True),
    _method("recall", "digests.recall", _READING),
    _method("search", "search.search", "Searching the sessions"),
    _method("searchSessions", "search.search_sessions", "Searching the sessions"),
    _method("applyUpdate", "notes.apply_update"),
    _method("notes", "notes.notes"),
    _method("revokeNote", "notes.revoke_note"),
    _method("anchors", "notes.anchors"),
    _method("history", "history.history", ""),
    _method("windows", "history.windows", ""),
    _method("outline", "history.outline", ""),
    _method("losses", "history.losses", "", yields=True),
    _method("timeline", "history.timeline", _READING),
    _method("transcript", "history.transcript", _READING),
    _method("changes", "history.changes", _READING, yields=True),
    _method("diff", "history.diff", ""),
    _method("mark", "markers.mark"),
    _method("marks", "markers.marks"),
    _method("unmark", "markers.unmark"),
    _method("relabel", "markers.relabel"),
    _method("pin", "markers.pin"),
    _method("unpin", "markers.unpin"),
    _method("pins", "markers.pins"),
    _method("restorePreview", "restore.restore_preview", _READING),
    _method("restore", "restore.restore", "Restoring"),
    _method("restores", "restore.restores"),
    _method("restoreDetails", "restore.restore_details"),
    _method("restoreFilesPreview", "files.restore_files_preview", _READING),
    _method("restoreFiles", "files.restore_files", "Restoring files"),
    _method("undoRestoreFiles", "files.undo_restore_files", "Restoring files"),
    _method("branches", "restore.around"),
    _method("lineage", "restore.lineage"),
    _method("audit", "restore.audit"),
    _method("compactPreview", "compaction.compact_preview", _READING),
    _method("compact", "compaction.compact", _COMPACTING),
    _method("uncompact", "compaction.uncompact", ""),
    _method("resume", "compaction.resume", _COMPACTING),
    _method("export", "packs.export", "Exporting", _READING),
    _method("import", "packs.make", "Importing", "Reading the pack"),
    _method("rename", "sessions.rename"),
    _method("archive", "sessions.archive", "Archiving the session", alone=True),
    _method("unarchive", "sessions.unarchive", "Putting the session back", alone=True),
    _method("delete", "delete.delete"),
    _method("remote", "remote.remote"),
    _method("remoteSet", "remote.remote_set", ""),
    _method("remoteStatus", "remote.remote_status", ""),
    _method("remoteSessions", "remote.remote_sessions", ""),
    _method("remoteSession", "remote.remote_session", "Fetching the session"),
    _method("searchRemote", "remote_search.search_remote", "Searching the remote"),
    _method("remoteDelete", "remote.remote_delete", ""),
    _method("push", "push.push", "Pushing", _READING, yields=True),
    _method("pull", "remote.pull_session", "Pulling the session"),
    _method("connect", "connect.connect", apart=True),
    _method("doctor", "connect.doctor"),
    _method("page", "pages.page", _READING, yields=True),
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
    "never_pushed",
    "remote_unreachable",
    "remote_refused",
    "remote_newer",
    "remote_full",
    "remote_damaged",
    "storage_error",
    "cancelled",
)
"""The refusal codes in use."""
