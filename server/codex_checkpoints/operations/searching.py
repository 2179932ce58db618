"""Search over all sessions."""

from __future__ import annotations

from itertools import islice

from attrs import frozen

from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.reading.pace import Steps, elsewhere
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.searching import Search, SearchHit
from codex_checkpoints.storage.contract import UnreadableSource


@frozen
class SearchParams:
    """A text, and which sessions: those in or below `cwd`, the archived ones instead.

    With `sessionId` one session alone is searched, with all that it carries on from others.
    `kind` is `user`, `assistant`, `command` or `output`; with `file` the text is a path, and the
    hits are the turns that read or changed that file.  `limit` null asks for all.
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
class SearchAnswer:
    """Hits, of the newest session first; `more`: the limit left some out.

    Those that were reported to `partialResultToken` are not repeated.
    """

    items: tuple[SearchHit, ...]
    more: bool


def search(services: Services, params: SearchParams) -> Steps[SearchAnswer]:
    """Search the sessions; report the hits of each as they are found."""
    if params.limit is not None and params.limit < 1:
        raise misfit("limit: must be 1 or more")
    found = Search(services.sessions, params.text, params.kind)
    left = params.limit
    kept: list[SearchHit] = []
    try:
        for batch in found.batches(params.session_id, params.cwd, archived=params.archived):
            for row in (yield from elsewhere(found.scanning(batch))):
                try:
                    entries = yield from elsewhere(found.reading(row))
                except UnreadableSource:
                    continue  # `doctor` reports it
                hits = list(islice(found.hits(row, entries), None if left is None else left + 1))
                more = left is not None and len(hits) > left
                hits = hits[:left]
                if not services.found(hits):
                    kept += hits
                left = None if left is None else left - len(hits)
                if more:
                    return SearchAnswer(tuple(kept), more=True)
    finally:
        found.close()
    return SearchAnswer(tuple(kept), more=False)
