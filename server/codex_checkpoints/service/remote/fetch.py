"""Fetches a pushed session into the cache of this machine, to be read or pulled.

The data is untrusted: the bytes are checked against the row, and the records like a pack's.  It
uses no session of this home, so it may run on any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from codex_checkpoints.core.portable.pack import Pack
from codex_checkpoints.core.portable.pack_import import BadPack, pack_in
from codex_checkpoints.service.refusal import SHORTEST_PREFIX, Cancelled, Refusal, keeping
from codex_checkpoints.service.remote.refusals import remote_refusals
from codex_checkpoints.storage.remote.cache import RemoteCache
from codex_checkpoints.storage.remote.contract import (
    HistoryStore,
    SessionRow,
    StoredRow,
    TeamStore,
    damaged,
    is_session_id,
)


@frozen
class Fetched:
    """A fetched session: its row, its lines in the file at `path`, and its records."""

    place: str
    row: SessionRow
    path: str
    pack: Pack


def find_row(store: HistoryStore, session: str) -> StoredRow:
    """Return the row of a session by id or by a unique prefix of it.

    Refuses `unknown_session`, `ambiguous_session`, `remote_…`.
    """
    wanted = session.lower()
    with remote_refusals(store.place):
        known = store.row(wanted) if is_session_id(wanted) else None
        if known is not None:
            return known
        page = store.rows()
    rows = {each.row.session_id: each for each in page.rows}
    fitting = [each for name, each in rows.items() if name.startswith(wanted)]
    if len(wanted) >= SHORTEST_PREFIX and len(fitting) == 1:
        return fitting[0]
    if len(wanted) >= SHORTEST_PREFIX and fitting:
        message = f"{len(fitting)} sessions in the remote begin with {session[:80]!r}"
        candidates = sorted(each.row.session_id for each in fitting)
        raise Refusal("ambiguous_session", message, {"candidates": candidates[:20]})
    message = f"no session {session[:80]!r} in the remote {store.place}"
    hint = "`sessions --remote` lists them; give an id, at least its first 8 characters."
    raise Refusal("unknown_session", message, {"session": session[:200], "hint": hint})


def fetch(
    store: HistoryStore, cache: RemoteCache, session: str, is_cancelled: Callable[[], bool]
) -> Fetched:
    """Read a session by id or by a unique prefix of it, unless it is cached.

    Refuses as `find_row`, `remote_damaged`, `storage_error`; then the cache is unchanged.  Raises
    `Cancelled`.
    """
    found = find_row(store, session)
    row = found.row
    with remote_refusals(store.place), keeping("cache of the remote", None):
        pack = _pack_of(store, found)
        path = cache.keep(row, _portions(store, row, is_cancelled))
    return Fetched(store.place, row, path, pack)


def _portions(
    store: HistoryStore, row: SessionRow, is_cancelled: Callable[[], bool]
) -> Iterator[bytes]:
    """Yield a history that has as many whole lines as its row says; raises `RemoteDamaged`."""
    if isinstance(store, TeamStore):
        store.note_pull(row)
    count, end = 0, b"\n"
    for data in store.read(row.session_id, row.head):
        if is_cancelled():
            raise Cancelled
        count += data.count(b"\n")
        end = data[-1:]
        yield data
    if end != b"\n" or count != row.lines:
        raise damaged("its number of lines does not match its row")


def _pack_of(store: HistoryStore, found: StoredRow) -> Pack:
    """Read and validate the records of a session; raises `RemoteDamaged`."""
    try:
        return pack_in(store.records(found.row.session_id, found.version))
    except BadPack as error:
        raise damaged(f"its records are refused: {error}") from error
