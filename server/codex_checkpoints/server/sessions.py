"""Requests about sessions: the list, one of them, its checkpoint and view, its name and place."""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints import answers, protocol
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.listing import Summary
from codex_checkpoints.service.receipts import received


async def sessions(desk: Desk, params: protocol.SessionsParams) -> protocol.SessionList:
    """Answer from the index, once it is current."""
    sessions = await desk.ready(params.work_done_token)
    if params.cursor is None:
        # A file may be so new that nobody has told yet.
        await desk.work(sessions.refresh)
    page = await desk.work(
        lambda: sessions.summaries.page(
            cwd=params.cwd,
            outside=params.outside,
            archived=params.archived,
            search=params.search,
            limit=params.limit,
            cursor=params.cursor,
        )
    )
    return answers.session_list(page)


async def session(desk: Desk, params: protocol.SessionParams) -> protocol.SessionDetail:
    """Answer with one session, its turns, and what Codex was given of it last."""
    sessions = await desk.ready()

    def work() -> protocol.SessionDetail:
        detail = sessions.detail(params.session_id)
        return answers.session_detail(detail, received(sessions, params.session_id))

    return await desk.work(work)


async def show(desk: Desk, params: protocol.ShowParams) -> protocol.Text:
    """Answer with the bytes of a checkpoint."""
    sessions = await desk.ready()
    shown = await desk.work(sessions.show, params.session_id, params.turn_id)
    if shown.changed:
        desk.tell((shown.session_id,), "rollout")
    await desk.attend(shown.session_id)
    return protocol.Text(shown.data.decode())


async def view(desk: Desk, params: protocol.ViewParams) -> protocol.ViewText:
    """Answer with a view and the caps in force."""
    sessions = await desk.ready()
    view = await desk.work(sessions.view, params.session_id, params.turn_id, params.caps)
    if view.of.changed:
        desk.tell((view.of.session_id,), "rollout")
    await desk.attend(view.of.session_id)
    return protocol.ViewText(view.text, answers.caps(view.caps))


async def rename(desk: Desk, params: protocol.RenameParams) -> protocol.SessionSummary:
    """Call a session something else."""
    sessions = await desk.ready()
    return await _moved(desk, lambda: sessions.rename(params.session_id, params.name))


async def archive(desk: Desk, params: protocol.SessionParams) -> protocol.SessionSummary:
    """Put a session among the archived ones."""
    sessions = await desk.ready()
    return await _moved(desk, lambda: sessions.archive(params.session_id))


async def unarchive(desk: Desk, params: protocol.SessionParams) -> protocol.SessionSummary:
    """Put an archived session back."""
    sessions = await desk.ready()
    return await _moved(desk, lambda: sessions.unarchive(params.session_id))


async def delete(desk: Desk, params: protocol.SessionParams) -> protocol.Deleted:
    """Remove a session that we made."""
    sessions = await desk.ready()
    gone = await _moved(desk, lambda: sessions.delete(params.session_id))
    return protocol.Deleted(gone.session_id, deleted=True)


async def _moved(desk: Desk, change: Callable[[], Summary]) -> protocol.SessionSummary:
    """Change what a session is called or where it lies, and tell it."""
    summary = await desk.work(change)
    desk.tell((summary.session_id,), "rollout")
    return answers.session_summary(summary)


HANDLERS: Handlers = {
    "checkpoints/sessions": sessions,
    "checkpoints/session": session,
    "checkpoints/show": show,
    "checkpoints/view": view,
    "checkpoints/rename": rename,
    "checkpoints/archive": archive,
    "checkpoints/unarchive": unarchive,
    "checkpoints/delete": delete,
}
