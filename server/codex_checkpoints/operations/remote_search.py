"""Searches the sessions in the remote: as a list of lines, or grouped by session."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.operations.remote import RemoteSession, chosen_remote_of, listed, remotely
from codex_checkpoints.operations.search import FoundLine
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.progress import Steps
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.remote.search import RemoteSearch
from codex_checkpoints.service.search import SearchHit
from codex_checkpoints.storage.remote.contract import HistoryStore, RowQuery

MOST_HITS = 500
"""The most hits of a search without a limit."""


@frozen
class SearchRemoteParams:
    """A text of one line, and the sessions to search: in or below `cwd`, of the owner `user`.

    `kinds` are some of `user`, `assistant`, `command` and `file`, none for all.  `limit` is the
    most hits, null for 500.
    """

    text: str
    cwd: str | None = None
    user: str | None = None
    kinds: tuple[str, ...] = ()
    limit: int | None = None
    work_done_token: int | str | None = None


@frozen
class RemoteSessionHits:
    """The hits in one session of the remote, newest first."""

    session: RemoteSession
    hits: tuple[SearchHit, ...]


@frozen
class SearchRemoteAnswer:
    """Sessions with hits, the latest first; `more`: the limit left some out."""

    items: tuple[RemoteSessionHits, ...]
    more: bool


def search_remote(services: Services, params: SearchRemoteParams) -> Steps[SearchRemoteAnswer]:
    """Search the prompts, answers, commands and paths of the sessions in the remote."""
    most = MOST_HITS if params.limit is None else params.limit
    if most < 1:
        raise misfit("limit: must be 1 or more")
    search = RemoteSearch(params.text, RowQuery(params.cwd, params.user), params.kinds)
    search.check()
    ignored = Ignoring(services.sessions.settings.digest_ignore)

    def run(store: HistoryStore) -> SearchRemoteAnswer:
        items, left = list[RemoteSessionHits](), most
        for found in search.hits(store, ignored, services.is_cancelled):
            if left > 0:
                items.append(RemoteSessionHits(listed(found.row), found.hits[:left]))
            left -= len(found.hits)
            if left < 0:
                break
        return SearchRemoteAnswer(tuple(items), more=left < 0)

    return (yield from remotely(chosen_remote_of(services), run))


@frozen
class FoundRemoteLine(FoundLine):
    """A line of a session in the remote that contains the text, with the session's owner."""

    owner: str


@frozen
class FoundRemoteLines:
    """All hits of a search, without their sessions."""

    items: tuple[FoundRemoteLine, ...]
    next_cursor: None = None


def lines_of(found: SearchRemoteAnswer) -> FoundRemoteLines:
    """Return hits as lines that name their session and its owner."""
    lines = list[FoundRemoteLine]()
    for each in found.items:
        its = each.session
        ids = its.session_id, its.title, its.cwd, its.updated_at
        for hit in each.hits:
            place = hit.turn, hit.turn_id, hit.seq, hit.kind, hit.line, hit.at
            lines.append(FoundRemoteLine(*ids, *place, its.owner))
    return FoundRemoteLines(tuple(lines))
