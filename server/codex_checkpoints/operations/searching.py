"""Searches all sessions."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.reading.pace import Steps, elsewhere
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.searching import Search, SessionHits
from codex_checkpoints.storage.contract import ThreadQuery, UnreadableSource


@frozen
class SearchParams:
    """A text, and the sessions to search: those in or below `cwd`, or the archived ones instead.

    With `sessionId` only one session is searched, with all its bases unless `carried` is false.
    `kinds` are some of `user`, `assistant`, `command`, `output`, `patch` and `error`, none for all;
    with `file` the text is a path, and the hits are the turns that read or changed that file.
    `limit` and `perSession` null ask for all hits.
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
class SearchAnswer:
    """Sessions with hits, the newest first; `more`: the limit of all hits left some out.

    Those that were reported to `partialResultToken` are not repeated.
    """

    items: tuple[SessionHits, ...]
    more: bool


def search(services: Services, params: SearchParams) -> Steps[SearchAnswer]:
    """Search the sessions; report the hits of each incrementally."""
    for name, limit in (("limit", params.limit), ("perSession", params.per_session)):
        if limit is not None and limit < 1:
            raise misfit(f"{name}: must be 1 or more")
    found = Search(services.sessions, params.text, params.kinds)
    query = ThreadQuery(params.cwd, archived=params.archived)
    left = params.limit
    kept: list[SessionHits] = []
    try:
        for batch in found.batches(query, params.session_id, carried=params.carried):
            for row in (yield from elsewhere(found.scanning(batch))):
                try:
                    entries = yield from elsewhere(found.reading(row))
                except UnreadableSource:
                    continue  # `doctor` reports it
                wanted = _least(entries.count, params.per_session)
                if wanted == 0:
                    continue
                most = _least(wanted, left)
                if most > 0:
                    hits = found.hits(row, entries, most)
                    if not services.found([hits]):
                        kept.append(hits)
                if most < wanted:
                    return SearchAnswer(tuple(kept), more=True)
                left = None if left is None else left - most
    finally:
        found.close()
    return SearchAnswer(tuple(kept), more=False)


def _least(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)
