"""Requests about sessions: the list, one of them, its checkpoint and view, its name and place."""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints import protocol
from codex_checkpoints.answers import sessions as answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.connect.receipts import received
from codex_checkpoints.service.listing import Summary
from codex_checkpoints.service.refusal import Refusal


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
    try:
        return await _changed(desk, lambda: sessions.rename(params.session_id, params.name))
    except Refusal as refusal:
        if refusal.facts.get("kept"):
            desk.tell((str(refusal.facts["sessionId"]),), "rollout")
        raise


async def archive(desk: Desk, params: protocol.MoveParams) -> protocol.SessionSummary:
    """Put a session among the archived ones."""
    return await _moved(desk, params, "Archiving the session", archive=True)


async def unarchive(desk: Desk, params: protocol.MoveParams) -> protocol.SessionSummary:
    """Put an archived session back."""
    return await _moved(desk, params, "Putting the session back", archive=False)


async def delete(desk: Desk, params: protocol.SessionParams) -> protocol.Deleted:
    """Remove a session that we made."""
    sessions = await desk.ready()
    gone = await _changed(desk, lambda: sessions.delete(params.session_id))
    return protocol.Deleted(gone.session_id, deleted=True)


async def _changed(desk: Desk, change: Callable[[], Summary]) -> protocol.SessionSummary:
    """Change what a session is called or whether it is there, and tell it."""
    summary = await desk.work(change)
    desk.tell((summary.session_id,), "rollout")
    return answers.session_summary(summary)


async def _moved(
    desk: Desk, params: protocol.MoveParams, title: str, *, archive: bool
) -> protocol.SessionSummary:
    """Change where a session lies, and tell it; Codex may be asked, one session at a time.

    So of two who want the same, the second is told that it is done.
    """
    sessions = await desk.ready()
    async with desk.calling(title, params.work_done_token) as work, desk.moving:
        move = await work.do(lambda: sessions.to_move(params.session_id, archive=archive))
        asked = await work.wait(lambda: move.ask(work.is_cancelled, work.commit))
        summary = await work.do(lambda: sessions.moved(asked))
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
