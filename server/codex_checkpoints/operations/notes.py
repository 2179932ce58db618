"""Changes and lists the memory of a session: payloads, notes, and the anchors for evidence."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from codex_checkpoints.core.checkpoint.anchors import Anchor, Note
from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.service.notes import Applied, Notes, Revoked
from codex_checkpoints.wire import as_bytes


@frozen
class ApplyParams:
    """A session and one payload of `memory.apply`; with `dryRun` it is only checked."""

    session_id: str
    payload: Any
    dry_run: bool = False


@frozen
class NoteList:
    """Facts by key, then decisions in the order of their acceptance."""

    items: tuple[Note, ...]
    next_cursor: str | None


@frozen
class RevokeParams:
    """A session and a note of it; `kind` if a fact and a decision have the same id."""

    session_id: str
    id: str
    kind: str | None = None


@frozen
class AnchorsParams:
    """A session, and how many anchors of each source are wanted."""

    session_id: str
    limit: int | None = None


@frozen
class AnchorList:
    """Messages, tool calls and files, the newest of each first."""

    items: tuple[Anchor, ...]
    next_cursor: str | None


def apply_update(services: Services, params: ApplyParams) -> Applied:
    """Store a payload, or only check it."""
    payload = as_bytes(params.payload)
    return apply_bytes(services, params.session_id, payload, dry_run=params.dry_run)


def apply_bytes(
    services: Services, session: str, payload: bytes, *, dry_run: bool = False
) -> Applied:
    """Store a payload by its bytes, or only check it."""
    if dry_run:
        return Notes(services.sessions).try_out(session, payload)
    applied = Notes(services.sessions).apply(session, payload)
    services.changed((applied.session_id,), "memory")
    return applied


def notes(services: Services, params: SessionParams) -> NoteList:
    """Return the facts and decisions of a session."""
    return NoteList(Notes(services.sessions).notes(params.session_id), None)


def revoke_note(services: Services, params: RevokeParams) -> Revoked:
    """Revoke a note."""
    revoked = Notes(services.sessions).revoke(params.session_id, params.id, params.kind)
    services.changed((revoked.session_id,), "memory")
    return revoked


def anchors(services: Services, params: AnchorsParams) -> AnchorList:
    """Return the anchors that evidence may name."""
    return AnchorList(Notes(services.sessions).anchors(params.session_id, params.limit), None)
