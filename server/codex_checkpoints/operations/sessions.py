"""Lists sessions, and changes the name and place of one."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.progress import Steps, on_another_thread
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.summaries import SessionList, SessionSummary
from codex_checkpoints.storage.contract import ThreadQuery


@frozen
class SessionsParams:
    """The sessions to list: those in or below `cwd`, and not in or below `outside`.

    `search` looks in title, task, folder and id; `cursor` is the `nextCursor` of the last answer.
    `read` reads every session whole first, which takes long; else unknown values are null.  `early`
    answers as soon as the newest sessions are known, while a server that has just started still
    reads the others: a caller with `early` asks again.
    """

    cwd: str | None = None
    outside: tuple[str, ...] = ()
    archived: bool = False
    search: str | None = None
    limit: int | None = None
    cursor: str | None = None
    read: bool = False
    early: bool = False
    work_done_token: int | str | None = None


@frozen
class RenameParams:
    """A session and its new name; an empty one removes the name."""

    session_id: str
    name: str


@frozen
class MoveParams:
    """A session to archive, or to take out of the archive."""

    session_id: str
    work_done_token: int | str | None = None


def listed(services: Services, params: SessionsParams) -> SessionList:
    """Return a page of the list."""
    if params.cursor is None and not params.early:
        services.find_new_files()
    if params.read:
        services.read_all()
    query = ThreadQuery(
        cwd=params.cwd,
        outside=params.outside,
        archived=params.archived,
        search=params.search,
        limit=params.limit,
        cursor=params.cursor,
    )
    return services.sessions.summaries.page(query)


def rename(services: Services, params: RenameParams) -> SessionSummary:
    """Rename a session."""
    try:
        summary = services.sessions.rename(params.session_id, params.name)
    except Refusal as refusal:
        if refusal.facts.get("kept"):
            services.changed((str(refusal.facts["sessionId"]),), "rollout")
        raise
    return _changed(services, summary)


def archive(services: Services, params: MoveParams) -> Steps[SessionSummary]:
    """Archive a session."""
    return _moved(services, params, archive=True)


def unarchive(services: Services, params: MoveParams) -> Steps[SessionSummary]:
    """Unarchive a session."""
    return _moved(services, params, archive=False)


def _moved(services: Services, params: MoveParams, *, archive: bool) -> Steps[SessionSummary]:
    sessions = services.sessions
    move = sessions.threads.to_move(sessions.own(params.session_id).session_id, archive=archive)
    asked = yield from on_another_thread(lambda: move.ask(services.is_cancelled, services.commit))
    return _changed(services, sessions.summaries.of(sessions.threads.moved(asked)))


def _changed(services: Services, summary: SessionSummary) -> SessionSummary:
    services.changed((summary.session_id,), "rollout")
    return summary
