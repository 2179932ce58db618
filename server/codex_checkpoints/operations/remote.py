"""Shares sessions between machines: choose a remote, look at it and pull from it."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
from collections.abc import Generator
from contextlib import closing, contextmanager

from attrs import frozen

from codex_checkpoints.assembly import remote_store
from codex_checkpoints.codex import resume
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.remote.pull import Pulled, find_row, pull
from codex_checkpoints.service.remote.refusals import remote_refusals
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.records import new_id
from codex_checkpoints.storage.remote.address import Address, BadAddress, is_address
from codex_checkpoints.storage.remote.chosen import ChosenRemote, choose_remote, chosen_remote
from codex_checkpoints.storage.remote.contract import (
    AuditEntry,
    HistoryStore,
    SessionRow,
    team_store,
)


@frozen
class RemoteSetParams:
    """A folder by its whole path, or `postgresql://…`; it is created if it does not exist."""

    place: str


@frozen
class NoParams:
    """No parameters."""


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
    """Removes the lines of sessions that nobody pushed for this many `days`."""

    days: int


@frozen
class RemoteRetained:
    """The number of `sessions` that lost their lines; their rows and the audit stay."""

    days: int
    sessions: int


@frozen
class RemoteSessionsParams:
    """Filters the sessions of the remote: in or below `cwd`, and with a text."""

    cwd: str | None = None
    search: str | None = None
    limit: int | None = None


@frozen
class RemoteSession:
    """A session in the remote; `lines` and `bytes` count its history as it was pushed."""

    session_id: str
    owner: str
    machine: str
    title: str | None
    task: str | None
    cwd: str | None
    branch: str | None
    repository: str | None
    updated_at: str | None
    pushed_at: str | None
    model: str | None
    lines: int
    bytes: int
    generation: int
    team: str | None


@frozen
class RemoteSessions:
    """Sessions of the remote, the latest first; `more`: the limit left some out."""

    items: tuple[RemoteSession, ...]
    more: bool


@frozen
class PullParams:
    """A session in the remote, and the folder of the branch.

    `into` null uses the folder of the source if it exists here, else the server's own.
    """

    session_id: str
    into: str | None = None


@frozen
class PulledSession:
    """The branch that was made here.

    `digest` is set if the summary of its current window could not be pulled: `made` if it opens
    with a digest of ours, `failed` if it opens without one, null if nothing was missing.
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
    resume: str


# --- the remote itself ---------------------------------------------------------------------------


def is_remote(place: str) -> bool:
    """Return whether a folder is already a remote; refuses `remote_…`."""
    with closing(_store_at(place)) as store, remote_refusals(store):
        return store.is_made()


def remote_set(services: Services, params: RemoteSetParams) -> RemoteStatus:
    """Choose a folder as the remote of this machine; create the remote if there is none."""
    place = _checked_place(services, params.place)
    with closing(_store_at(place)) as store, remote_refusals(store):
        store.make()
    login = Address.of(place).user if is_address(place) else None
    owner = login or services.sessions.settings.user_id or getpass.getuser()
    machine = platform.node() or "this machine"
    before = None
    with contextlib.suppress(StorageError):  # a damaged choice is replaced
        before = chosen_remote(services.where.state_dir)
    machine_id = new_id() if before is None else before.machine_id
    chosen = ChosenRemote(place, owner, machine, machine_id)
    with keeping("choice of the remote", None):
        choose_remote(services.where.state_dir, chosen)
    return remote_status(services, NoParams())


def remote_status(services: Services, _params: NoParams) -> RemoteStatus:
    """Return the state of the remote."""
    with opened_remote(services) as (chosen, store):
        if not store.is_made():
            return RemoteStatus(store.place, chosen.owner, chosen.machine, made=False, **_NOTHING)
        page = store.rows()
    size = sum(each.row.size for each in page.rows)
    counts = {"sessions": len(page.rows), "bytes": size, "unreadable": page.unreadable}
    return RemoteStatus(store.place, chosen.owner, chosen.machine, made=True, **counts)


_NOTHING = {"sessions": 0, "bytes": 0, "unreadable": 0}


def remote_delete(services: Services, params: RemoteDeleteParams) -> RemoteDeleted:
    """Remove a session from the remote."""
    with opened_remote(services) as (_, store):
        session_id = find_row(store, params.session_id).row.session_id
        store.delete(session_id)
    return RemoteDeleted(session_id)


def remote_audit(services: Services, params: RemoteAuditParams) -> RemoteAudit:
    """Return who pushed, pulled and deleted which session, the newest entry first."""
    with opened_remote(services) as (_, store):
        return RemoteAudit(team_store(store).audit(params.limit))


def remote_retain(services: Services, params: RemoteRetainParams) -> RemoteRetained:
    """Remove the lines of sessions that nobody pushed for some days; their rows stay."""
    if not 0 < params.days <= _MOST_DAYS:
        raise misfit(f"--days: {params.days} is not a number of days from 1 to {_MOST_DAYS}")
    with opened_remote(services) as (_, store):
        return RemoteRetained(params.days, team_store(store).retain(params.days))


_MOST_DAYS = 36_500


def remote_sessions(services: Services, params: RemoteSessionsParams) -> RemoteSessions:
    """List the sessions of the remote."""
    with opened_remote(services) as (_, store):
        rows = [each.row for each in store.rows().rows]
    found = [row for row in rows if _fits(row, params)]
    shown = found if params.limit is None else found[: params.limit]
    return RemoteSessions(tuple(map(_listed, shown)), len(shown) < len(found))


def _fits(row: SessionRow, params: RemoteSessionsParams) -> bool:
    cwd = row.cwd or ""
    if params.cwd is not None and cwd != params.cwd and not cwd.startswith(f"{params.cwd}{os.sep}"):
        return False
    texts = (row.title, row.task, row.cwd, row.session_id, row.branch)
    return not params.search or any(
        params.search.casefold() in text.casefold() for text in texts if text
    )


def _listed(row: SessionRow) -> RemoteSession:
    return RemoteSession(
        row.session_id,
        row.owner,
        row.machine,
        row.title,
        row.task,
        row.cwd,
        row.branch,
        row.repository,
        row.updated_at,
        row.pushed_at,
        row.model,
        row.lines,
        row.size,
        row.generation,
        row.team,
    )


# --- pull ----------------------------------------------------------------------------------------


def pull_session(services: Services, params: PullParams) -> PulledSession:
    """Make a branch of a session in the remote."""
    with opened_remote(services) as (_, store):
        row = find_row(store, params.session_id).row
        there = row.cwd if row.cwd is not None and os.path.isdir(row.cwd) else os.getcwd()
        made = pull(services.sessions, store, row.session_id, params.into or there)
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
        resume=resume(made.session_id),
    )


def _digest_for(services: Services, made: Pulled) -> str:
    """Replace a summary that only its owner can read with our digest."""
    compacting = Compacting(services.sessions, outside(os.environ), services.look_around)
    try:
        compacting.compact(CompactionRequest(made.session_id, "in-place", "checkpoint", force=True))
    except Refusal:
        return "failed"
    return "made"


# --- the choice ----------------------------------------------------------------------------------

MOUNT = "Check that the disk is mounted; `codex-checkpoints remote set` makes a remote."


@contextmanager
def opened_remote(services: Services) -> Generator[tuple[ChosenRemote, HistoryStore]]:
    """Give the chosen remote; refuses `remote_unreachable` if none is chosen, `remote_…`."""
    with keeping("choice of the remote", None):
        chosen = chosen_remote(services.where.state_dir)
    if chosen is None:
        hint = "`codex-checkpoints remote set` chooses a folder or a server."
        raise Refusal("remote_unreachable", "no remote is set on this machine", {"hint": hint})
    with closing(_store_at(chosen.place)) as store, remote_refusals(store):
        yield chosen, store


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
