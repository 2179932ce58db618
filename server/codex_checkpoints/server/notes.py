"""Requests about what a session remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codex_checkpoints import protocol, stamps, wire
from codex_checkpoints.answers import notes as answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.notes import Applied, Notes, Revoked

N = TypeVar("N", Applied, Revoked)


async def apply_update(desk: Desk, params: protocol.ApplyParams) -> protocol.Applied:
    """Accept or judge a payload; say that the session's memory changed."""
    notes = await _notes(desk)
    payload = wire.as_bytes(params.payload)
    if params.dry_run:
        applied = await desk.work(notes.try_out, params.session_id, payload)
    else:
        applied = await _remember(desk, lambda: notes.apply(params.session_id, payload))
    return wire.filled(protocol.Applied, applied)


async def notes(desk: Desk, params: protocol.SessionParams) -> protocol.NoteList:
    """Answer with the facts and decisions of a session."""
    notes = await _notes(desk)
    return answers.note_list(await desk.work(notes.notes, params.session_id))


async def revoke_note(desk: Desk, params: protocol.RevokeParams) -> protocol.Revoked:
    """Take a note back; say that the session's memory changed."""
    notes = await _notes(desk)
    revoked = await _remember(desk, lambda: notes.revoke(params.session_id, params.id, params.kind))
    return wire.filled(protocol.Revoked, revoked)


async def anchors(desk: Desk, params: protocol.AnchorsParams) -> protocol.AnchorList:
    """Answer with what may be cited as evidence."""
    notes = await _notes(desk)
    found = await desk.work(notes.anchors, params.session_id, params.limit)
    return answers.anchor_list(found)


async def record(desk: Desk, params: protocol.RecordParams) -> protocol.Text:
    """Answer with what an anchor stands for."""
    notes = await _notes(desk)
    return protocol.Text(await desk.work(notes.record, params.session_id, params.ref))


async def _notes(desk: Desk) -> Notes:
    return Notes(await desk.ready(), stamps.now, stamps.new_id)


async def _remember(desk: Desk, change: Callable[[], N]) -> N:
    """Change a session's memory, and tell it once: the follower need not find it out."""

    def work() -> N:
        changed = change()
        if desk.follower is not None:
            desk.follower.take_as_told(changed.session_id)
        return changed

    changed = await desk.work(work)
    desk.tell((changed.session_id,), "memory")
    return changed


HANDLERS: Handlers = {
    "checkpoints/applyUpdate": apply_update,
    "checkpoints/notes": notes,
    "checkpoints/revokeNote": revoke_note,
    "checkpoints/anchors": anchors,
    "checkpoints/record": record,
}
