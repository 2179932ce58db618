"""Shares sessions between machines: choose a remote, look at it and pull from it."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from attrs import frozen

from codex_checkpoints.assembly import remote_store
from codex_checkpoints.codex import resume
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.progress import Interruptible, Steps, on_another_thread
from codex_checkpoints.service.records.pull_records import PullRecords
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.remote.fetch import Fetched, fetch, find_row
from codex_checkpoints.service.remote.pull import Pulled, is_plain_folder, pull
from codex_checkpoints.service.remote.refusals import remote_refusals
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import Git
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.records import new_id
from codex_checkpoints.storage.remote.address import Address, BadAddress, is_address
from codex_checkpoints.storage.remote.cache import RemoteCache
from codex_checkpoints.storage.remote.chosen import ChosenRemote, choose_remote, chosen_remote
from codex_checkpoints.storage.remote.contract import (
    AuditEntry,
    HistoryStore,
    RowQuery,
    SessionRow,
    team_store,
)

T = TypeVar("T")


@frozen
class RemoteSetParams:
    """A folder by its whole path, or `postgresql://…`.

    With `make` a remote is created there if there is none; else nothing is created or chosen then.
    """

    place: str
    make: bool = True


@frozen
class NoParams:
    """No parameters."""


@frozen
class RemoteChoice:
    """The remote that this machine uses, null if none is set; no connection was made.

    `isServer`: it is a PostgreSQL server, with teams and an audit, and not a folder.
    """

    place: str | None
    owner: str | None
    machine: str | None
    is_server: bool


@frozen
class RemoteStatus:
    """The remote of this machine; `made` says whether the folder is already a remote.

    `unreadable` counts sessions with an unreadable row, mostly because the disk is still syncing.
    """

    place: str
    owner: str
    machine: str
    made: bool
    sessions: int
    bytes: int
    unreadable: int


@frozen
class RemoteDeleteParams:
    """A session in the remote: its id, or a unique prefix of 8 characters or more."""

    session_id: str


@frozen
class RemoteDeleted:
    """A session that was removed from the remote; the sessions here stay."""

    session_id: str


@frozen
class RemoteAuditParams:
    """How many entries to return at most."""

    limit: int = 100


@frozen
class RemoteAudit:
    """Entries of the audit, the newest first."""

    items: tuple[AuditEntry, ...]


@frozen
class RemoteRetainParams:
    """Removes the lines of sessions that were not pushed for this many `days`."""

    days: int


@frozen
class RemoteRetained:
    """The number of `sessions` that lost their lines; their rows and the audit stay."""

    days: int
    sessions: int


@frozen
class RemoteSessionsParams:
    """Filters the sessions of the remote: in or below `cwd`, of the owner `user`, with a text.

    `cursor` is the `nextCursor` of the last answer.
    """

    cwd: str | None = None
    user: str | None = None
    search: str | None = None
    limit: int | None = None
    cursor: str | None = None


@frozen
class RemoteSession:
    """A session in the remote; `lines` and `bytes` count its history as it was pushed.

    `forkedFrom` is the session that it branched off, `parentSession` the one that started it as a
    subagent; neither need be in the remote.  `team` may read it; null: only its owner may.
    """

    session_id: str
    owner: str
    machine: str
    cwd: str | None
    title: str | None
    task: str | None
    updated_at: str | None
    pushed_at: str | None
    cli_version: str | None
    model: str | None
    forked_from: str | None
    parent_session: str | None
    git: Git | None
    lines: int
    bytes: int
    generation: int
    team: str | None


@frozen
class RemoteSessions:
    """Sessions of the remote, the latest first; `unreadable` counts those that cannot be read."""

    items: tuple[RemoteSession, ...]
    next_cursor: str | None
    unreadable: int


@frozen
class RemoteSessionParams:
    """A session in the remote: its id, or a unique prefix of 8 characters or more."""

    session_id: str
    work_done_token: int | str | None = None


@frozen
class RemoteSessionFile:
    """A session of the remote, and a copy of its lines here.

    `path` can be given as the session to all methods that read one.
    """

    session: RemoteSession
    path: str


@frozen
class PullParams:
    """A session in the remote, and the folder of the branch.

    `into` null uses the folder of the source if it exists here, else the server's own.
    """

    session_id: str
    into: str | None = None
    work_done_token: int | str | None = None


@frozen
class PulledSession:
    """The branch that was made here.

    `digest` is set if the summary of its current window could not be pulled: `made` if it opens
    with a digest of ours, `failed` if it opens without one, null if nothing was missing.
    `before` says that another branch of the same session is here already, null if none is.
    """

    session_id: str
    source_session_id: str
    operation_id: str
    title: str | None
    owner: str
    machine: str
    cwd: str
    lines: int
    bytes: int
    notes: int
    markers: int
    digest: str | None
    before: str | None
    resume: str


# --- the remote itself ---------------------------------------------------------------------------


def remote(services: Services, _params: NoParams) -> RemoteChoice:
    """Return the remote that was chosen on this machine."""
    chosen = _chosen_or_none(services)
    if chosen is None:
        return RemoteChoice(None, None, None, is_server=False)
    is_server = is_address(chosen.place)
    return RemoteChoice(chosen.place, chosen.owner, chosen.machine, is_server)


def remote_set(services: Services, params: RemoteSetParams) -> Steps[RemoteStatus]:
    """Choose the remote of this machine; create it if there is none, and if that is asked for."""
    place = _checked_place(services, params.place)

    def make_or_look(store: HistoryStore) -> bool:
        if params.make:
            store.make()
        return params.make or store.is_made()

    is_made = yield from _with_store(place, make_or_look)
    login = Address.of(place).user if is_address(place) else None
    owner = login or services.sessions.settings.user_id or getpass.getuser()
    machine = platform.node() or "this machine"
    if not is_made:
        return _not_made(place, owner, machine)
    before = None
    with contextlib.suppress(Refusal):  # a damaged choice is replaced
        before = _chosen_or_none(services)
    machine_id = new_id() if before is None else before.machine_id
    chosen = ChosenRemote(place, owner, machine, machine_id)
    with keeping("choice of the remote", None):
        choose_remote(services.where.state_dir, chosen)
    return (yield from remote_status(services, NoParams()))


def _not_made(place: str, owner: str, machine: str) -> RemoteStatus:
    return RemoteStatus(place, owner, machine, made=False, sessions=0, bytes=0, unreadable=0)


def remote_status(services: Services, _params: NoParams) -> Steps[RemoteStatus]:
    """Return the state of the remote."""
    chosen = chosen_remote_of(services)
    names = chosen.place, chosen.owner, chosen.machine

    def read(store: HistoryStore) -> RemoteStatus:
        if not store.is_made():
            return _not_made(*names)
        page = store.rows()
        size = sum(each.row.size for each in page.rows)
        counts = {"sessions": len(page.rows), "bytes": size, "unreadable": page.unreadable}
        return RemoteStatus(*names, made=True, **counts)

    return (yield from remotely(chosen, read))


def remote_delete(services: Services, params: RemoteDeleteParams) -> Steps[RemoteDeleted]:
    """Remove a session from the remote, and the copy of it here."""
    chosen = chosen_remote_of(services)

    def delete(store: HistoryStore) -> str:
        session_id = find_row(store, params.session_id).row.session_id
        store.delete(session_id)
        return session_id

    session_id = yield from remotely(chosen, delete)
    _cache(services, chosen).discard(session_id)
    return RemoteDeleted(session_id)


def remote_row(services: Services, session: str) -> Steps[RemoteSession]:
    """Return a session in the remote by its id or a prefix of it; refuses `unknown_session`."""
    chosen = chosen_remote_of(services)
    found = yield from remotely(chosen, lambda store: find_row(store, session))
    return listed(found.row)


def require_team(services: Services) -> Steps[None]:
    """Refuse `remote_refused` if the remote has no teams and no audit, as a folder."""

    def check(store: HistoryStore) -> None:
        team_store(store)

    yield from remotely(chosen_remote_of(services), check)


def remote_audit(services: Services, params: RemoteAuditParams) -> Steps[RemoteAudit]:
    """Return who pushed, pulled and deleted which session, the newest entry first."""
    chosen = chosen_remote_of(services)
    entries = yield from remotely(chosen, lambda store: team_store(store).audit(params.limit))
    return RemoteAudit(entries)


def remote_retain(services: Services, params: RemoteRetainParams) -> Steps[RemoteRetained]:
    """Remove the lines of sessions that were not pushed for some days; their rows stay."""
    if not 0 < params.days <= _MOST_DAYS:
        raise misfit(f"--days: {params.days} is not a number of days from 1 to {_MOST_DAYS}")
    chosen = chosen_remote_of(services)
    removed = yield from remotely(chosen, lambda store: team_store(store).retain(params.days))
    return RemoteRetained(params.days, removed)


_MOST_DAYS = 36_500


def remote_sessions(services: Services, params: RemoteSessionsParams) -> Steps[RemoteSessions]:
    """Return a page of the sessions in the remote."""
    if params.limit is not None and params.limit < 1:
        raise misfit("limit: must be 1 or more")
    query = RowQuery(params.cwd, params.user, params.search)
    chosen = chosen_remote_of(services)
    page = yield from remotely(chosen, lambda store: store.rows(params.limit, params.cursor, query))
    items = tuple(listed(each.row) for each in page.rows)
    return RemoteSessions(items, page.next_cursor, page.unreadable)


def listed(row: SessionRow) -> RemoteSession:
    """Return a row as a list shows it."""
    has_git = row.branch is not None or row.repository is not None
    return RemoteSession(
        session_id=row.session_id,
        owner=row.owner,
        machine=row.machine,
        cwd=row.cwd,
        title=row.title,
        task=row.task,
        updated_at=row.updated_at,
        pushed_at=row.pushed_at,
        cli_version=row.cli_version,
        model=row.model,
        forked_from=row.forked_from,
        parent_session=row.parent_session,
        git=Git(None, row.branch, row.repository) if has_git else None,
        lines=row.lines,
        bytes=row.size,
        generation=row.generation,
        team=row.team,
    )


def remote_session(services: Services, params: RemoteSessionParams) -> Steps[RemoteSessionFile]:
    """Copy the lines of a session in the remote, unless they are here, so that it can be read."""
    fetched = yield from _fetched(services, params.session_id)
    return RemoteSessionFile(listed(fetched.row), fetched.path)


def _fetched(services: Services, session: str) -> Steps[Fetched]:
    chosen = chosen_remote_of(services)
    cache = _cache(services, chosen)
    return (
        yield from remotely(
            chosen, lambda store: fetch(store, cache, session, services.is_cancelled)
        )
    )


def _cache(services: Services, chosen: ChosenRemote) -> RemoteCache:
    return RemoteCache(services.where.state_dir, chosen.place)


# --- pull ----------------------------------------------------------------------------------------


def pull_session(services: Services, params: PullParams) -> Steps[PulledSession]:
    """Make a branch of a session in the remote."""
    into = None if params.into is None else os.path.abspath(params.into)
    if into is not None and not os.path.isdir(into):
        raise misfit(f"{into}: there is no such folder; --into names the folder of the branch")
    fetched = yield from _fetched(services, params.session_id)
    row = fetched.row
    before = _pulled_before(services.sessions, row.session_id)
    made = pull(services.sessions, fetched, into or _folder_for(row))
    with contextlib.suppress(StorageError):  # a later one removes it
        RemoteCache(services.where.state_dir, fetched.place).release(fetched.path)
    digest = _digest_for(services, made) if made.source.lost_summary else None
    services.changed((made.session_id,), "rollout")
    return PulledSession(
        session_id=made.session_id,
        source_session_id=made.source.session_id,
        operation_id=made.operation_id,
        title=made.source.title,
        owner=made.source.owner,
        machine=made.source.machine,
        cwd=made.cwd,
        lines=made.source.lines,
        bytes=made.source.size,
        notes=made.notes,
        markers=made.markers,
        digest=digest,
        before=before,
        resume=resume(made.session_id),
    )


def _pulled_before(sessions: Sessions, source_id: str) -> str | None:
    """Return a sentence that names the newest branch of earlier pulls that is still here."""
    here = sessions.catalogue.current()
    pulls = PullRecords(sessions.records).from_source(source_id)
    branches = [each.session_id for each in pulls if each.session_id in here]
    if not branches:
        return None
    if len(branches) == 1:
        return f"It was pulled before as {branches[0]}."
    return f"It was pulled {len(branches)} times before, the last time as {branches[-1]}."


def _folder_for(row: SessionRow) -> str:
    """Return the folder of a pushed session if it is here, else the current one."""
    is_here = row.cwd is not None and is_plain_folder(row.cwd) and os.path.isdir(row.cwd)
    return row.cwd if is_here and row.cwd is not None else os.getcwd()


def _digest_for(services: Services, made: Pulled) -> str:
    """Replace a summary that only its owner can read with our digest."""
    compacting = Compacting(services.sessions, outside(os.environ), services.update_index)
    try:
        compacting.compact(CompactionRequest(made.session_id, "in-place", "checkpoint", force=True))
    except Refusal:
        return "failed"
    return "made"


# --- the choice ----------------------------------------------------------------------------------

MOUNT = "Check that the disk is mounted; `codex-checkpoints remote set` makes a remote."


def chosen_remote_of(services: Services) -> ChosenRemote:
    """Return the chosen remote; refuses `remote_unreachable` if there is none."""
    chosen = _chosen_or_none(services)
    if chosen is None:
        hint = "`codex-checkpoints remote set` chooses a folder or a server."
        raise Refusal("remote_unreachable", "no remote is set on this machine", {"hint": hint})
    return chosen


def _chosen_or_none(services: Services) -> ChosenRemote | None:
    with keeping("choice of the remote", None):
        return chosen_remote(services.where.state_dir)


def remotely(chosen: ChosenRemote, work: Callable[[HistoryStore], T]) -> Steps[T]:
    """Run a function with the store of a remote on another thread; refuses `remote_…`.

    So no request about sessions here waits for a remote.
    """
    return (yield from _with_store(chosen.place, work))


def _with_store(place: str, work: Callable[[HistoryStore], T]) -> Steps[T]:
    store = _store_at(place)

    def run() -> T:
        with closing(store), remote_refusals(place):
            return work(store)

    return (yield from on_another_thread(Interruptible(run, store.interrupt)))


def _store_at(place: str) -> HistoryStore:
    try:
        return remote_store(place)
    except BadAddress as error:
        raise misfit(str(error)) from error


def _checked_place(services: Services, place: str) -> str:
    """Return a place as a path; refuses `invalid_payload` if it cannot be a remote."""
    if is_address(place):
        return place
    folder = os.path.realpath(place)
    home = os.path.realpath(services.where.codex_home)
    if folder == home or folder.startswith(home + os.sep):
        raise misfit(f"{place}: a remote is a folder outside the Codex home")
    return os.path.abspath(place)
