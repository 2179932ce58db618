"""Requests about what a model would be sent, its windows, and what two turns differ in."""

from __future__ import annotations

from codex_checkpoints import answers, protocol, restore_answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.differences import compare
from codex_checkpoints.service.history import Histories


async def history(desk: Desk, params: protocol.SessionParams) -> protocol.History:
    """Answer with what Codex would send on resume."""
    histories = Histories(await desk.ready())
    return answers.history(await desk.work(histories.history, params.session_id))


async def windows(desk: Desk, params: protocol.SessionParams) -> protocol.WindowList:
    """Answer with the windows of a session."""
    histories = Histories(await desk.ready())
    return answers.window_list(await desk.work(histories.windows, params.session_id))


async def diff(desk: Desk, params: protocol.DiffParams) -> protocol.Difference:
    """Answer with what changed between two turns."""
    sessions = await desk.ready()
    turns = params.from_turn_id, params.to_turn_id
    return restore_answers.diff(await desk.work(compare, sessions, params.session_id, *turns))


HANDLERS: Handlers = {
    "checkpoints/history": history,
    "checkpoints/windows": windows,
    "checkpoints/diff": diff,
}
