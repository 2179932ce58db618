"""Requests about portable packs: written to a file that the client names, made a session of one."""

from __future__ import annotations

import os

from codex_checkpoints import protocol, stamps
from codex_checkpoints.answers import portable as answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.portable.importing import Importing
from codex_checkpoints.service.portable.packing import Packing


async def export(desk: Desk, params: protocol.ExportParams) -> protocol.Exported:
    """Write a pack, or say what it would hold."""
    sessions = await desk.ready()
    packing = Packing(sessions, _homes(desk), stamps.now, stamps.new_id)
    session, file, token = params.session_id, params.file, params.work_done_token
    if params.dry_run:
        packed = await desk.long(
            lambda: packing.preview(session, file), "Reading the session", token
        )
    else:
        mode = "replace" if params.force else "new"
        packed = await desk.long(lambda: packing.write(session, file, mode), "Exporting", token)
    return answers.exported(packed)


async def make(desk: Desk, params: protocol.ImportParams) -> protocol.Imported:
    """Make a session of a pack, or say what would come of it; say that it is there."""
    importing = Importing(await desk.ready(), stamps.now, stamps.new_id)
    cwd = os.getcwd() if params.cwd is None else params.cwd
    file, token = params.file, params.work_done_token
    if params.dry_run:
        preview = await desk.long(lambda: importing.preview(file, cwd), "Reading the pack", token)
        return answers.imported(preview)
    made = await desk.long(lambda: importing.make(file, cwd), "Importing", token)
    desk.tell((made.session_id,), "rollout")
    return answers.imported(made)


def _homes(desk: Desk) -> tuple[str, ...]:
    """Return the folders of persons that are known on this machine."""
    return os.path.expanduser("~"), desk.where.codex_home


HANDLERS: Handlers = {
    "checkpoints/export": export,
    "checkpoints/import": make,
}
