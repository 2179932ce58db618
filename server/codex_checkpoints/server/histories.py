"""Requests about what a model would be sent, its windows, and what two turns differ in."""

from __future__ import annotations

from codex_checkpoints import protocol
from codex_checkpoints.answers import histories as answers
from codex_checkpoints.answers import restores as restore_answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.connect.receipts import received
from codex_checkpoints.service.differences import Place, compare
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.losing import losses_of
from codex_checkpoints.service.outlines import outline as outlined


async def history(desk: Desk, params: protocol.SessionParams) -> protocol.History:
    """Answer with what Codex would send on resume."""
    histories = Histories(await desk.ready())
    return answers.history(await desk.long(lambda: histories.history(params.session_id)))


async def windows(desk: Desk, params: protocol.SessionParams) -> protocol.WindowList:
    """Answer with the windows of a session, and what Codex was given in each."""
    sessions = await desk.ready()

    def work() -> protocol.WindowList:
        windows = Histories(sessions).windows(params.session_id)
        opened = sessions.compactions.opened(sessions.find(params.session_id).session_id)
        return answers.window_list(windows, received(sessions, params.session_id), opened)

    return await desk.long(work)


async def outline(desk: Desk, params: protocol.SessionParams) -> protocol.Outline:
    """Answer with the outline of a session."""
    sessions = await desk.ready()
    return answers.outline(await desk.long(lambda: outlined(sessions, params.session_id)))


async def losses(desk: Desk, params: protocol.SessionParams) -> protocol.LossList:
    """Answer with what each compaction of a session lost."""
    sessions = await desk.ready()
    return answers.loss_list(await desk.long(lambda: losses_of(sessions, params.session_id)))


async def diff(desk: Desk, params: protocol.DiffParams) -> protocol.Difference:
    """Answer with what changed between two turns."""
    sessions = await desk.ready()
    before = Place(params.session_id, params.from_turn_id)
    after = Place(params.to_session_id or params.session_id, params.to_turn_id)
    found = await desk.long(lambda: compare(sessions, before, after))
    return restore_answers.diff(found)


HANDLERS: Handlers = {
    "checkpoints/history": history,
    "checkpoints/windows": windows,
    "checkpoints/outline": outline,
    "checkpoints/losses": losses,
    "checkpoints/diff": diff,
}
