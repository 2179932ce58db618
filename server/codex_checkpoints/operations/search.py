"""Searches all sessions: as a list of lines, or grouped by session."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.progress import Steps, on_another_thread
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.search import Search, SessionHits
from codex_checkpoints.storage.contract import ThreadQuery, UnreadableSource


@frozen
class SearchParams:
    """A text, and the sessions to search: those in or below `cwd`, or the archived ones instead.

    With `sessionId` only one session is searched, with all its bases.  `kind` is `user`,
    `assistant`, `command`, `output`, `patch` or `error`; with `file` the text is a path, and the
    hits are the turns that read or changed that file.  `limit` null asks for all hits.
    """

    text: str
    cwd: str | None = None
    archived: bool = False
    limit: int | None = None
    kind: str | None = None
    session_id: str | None = None
    work_done_token: int | str | None = None
    partial_result_token: int | str | None = None


@frozen
class FoundLine:
    """A line that contains the text, with its place and its session.

    `turn` is null for a turn that was rolled back, and before the first one.  `at` is the time of
    the record, `updated_at` the time of the session's last record.
    """

    session_id: str
    title: str | None
    cwd: str | None
    updated_at: str | None
    turn: int | None
    turn_id: str | None
    seq: int
    kind: str
    line: str
    at: str | None


@frozen
class SearchAnswer:
    """Lines, of the newest session first; `more`: the limit left some out.

    Those that were reported to `partialResultToken` are not repeated.
    """

    items: tuple[FoundLine, ...]
    more: bool


@frozen
class SearchSessionsParams:
    """As `SearchParams`, for a search whose hits are grouped by session.

    `kinds` are several of the kinds, none for all.  `perSession` is the most hits of a session.
    With `carried` false the bases of a session that is named are not searched.
    """

    text: str
    cwd: str | None = None
    archived: bool = False
    limit: int | None = None
    per_session: int | None = None
    kinds: tuple[str, ...] = ()
    session_id: str | None = None
    carried: bool = True
    work_done_token: int | str | None = None
    partial_result_token: int | str | None = None


@frozen
class SearchSessionsAnswer:
    """Sessions with hits, the newest first; `more`: the limit of all hits left some out.

    Those that were reported to `partialResultToken` are not repeated.
    """

    items: tuple[SessionHits, ...]
    more: bool


def search(services: Services, params: SearchParams) -> Steps[SearchAnswer]:
    """Search the sessions; report the lines of each incrementally."""
    kept: list[FoundLine] = []

    def take(hits: SessionHits) -> None:
        lines = lines_of(hits)
        if not services.found(lines):
            kept.extend(lines)

    grouped = SearchSessionsParams(
        params.text,
        params.cwd,
        params.archived,
        params.limit,
        kinds=() if params.kind is None else (params.kind,),
        session_id=params.session_id,
    )
    more = yield from _search(services, grouped, take)
    return SearchAnswer(tuple(kept), more)


def search_sessions(
    services: Services, params: SearchSessionsParams
) -> Steps[SearchSessionsAnswer]:
    """Search the sessions; report the hits of each incrementally."""
    kept: list[SessionHits] = []

    def take(hits: SessionHits) -> None:
        if not services.found([hits]):
            kept.append(hits)

    more = yield from _search(services, params, take)
    return SearchSessionsAnswer(tuple(kept), more)


def lines_of(found: SessionHits) -> list[FoundLine]:
    """Return the hits of a session as lines that name it."""
    its = found.session
    ids = its.session_id, its.title, its.cwd, its.updated_at
    return [
        FoundLine(*ids, hit.turn, hit.turn_id, hit.seq, hit.kind, hit.line, hit.at)
        for hit in found.hits
    ]


def _search(
    services: Services, params: SearchSessionsParams, take: Callable[[SessionHits], None]
) -> Steps[bool]:
    """Give the hits of each session to a callback; return whether the limit left some out."""
    for name, limit in (("limit", params.limit), ("perSession", params.per_session)):
        if limit is not None and limit < 1:
            raise misfit(f"{name}: must be 1 or more")
    found = Search(services.sessions, params.text, params.kinds)
    query = ThreadQuery(params.cwd, archived=params.archived)
    left = params.limit
    try:
        for batch in found.batches(query, params.session_id, carried=params.carried):
            for row in (yield from on_another_thread(found.scanning(batch))):
                try:
                    entries = yield from on_another_thread(found.reading(row))
                except UnreadableSource:
                    continue  # `doctor` reports it
                wanted = _least(entries.count, params.per_session)
                if wanted == 0:
                    continue
                most = _least(wanted, left)
                if most > 0:
                    take(found.hits(row, entries, most))
                if most < wanted:
                    return True
                left = None if left is None else left - most
    finally:
        found.close()
    return False


def _least(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)
