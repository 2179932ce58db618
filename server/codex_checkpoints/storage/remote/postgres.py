"""Stores pushed sessions on a PostgreSQL server, for one person or for a team.

The database decides who sees which rows (`migrations`).  The queries name organisation, owner and
team as well: so they use the indexes, and a superuser, to whom no policy applies, sees no more than
others.

A session is listed once for each owner that the login may read.  If two own the same one, the
login's own goes first.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import partial
from typing import Any, Final

import orjson
from attrs import evolve
from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.fields import is_object, text_of
from codex_checkpoints.storage.remote.address import Address, BadAddress
from codex_checkpoints.storage.remote.contract import (
    FORMAT_VERSION,
    NO_PREFIX,
    Answer,
    AuditEntry,
    CheckedHistory,
    Elsewhere,
    Head,
    RemoteError,
    RemoteFull,
    RemoteNewer,
    RemoteRefused,
    RemoteUnreachable,
    RowPage,
    Segment,
    SessionRow,
    StoredRow,
    Told,
    damaged,
    is_session_id,
)
from codex_checkpoints.storage.remote.migrations import MIGRATIONS
from codex_checkpoints.storage.remote.packing import unpacked

CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 30
_ANSWER_SECONDS = STATEMENT_SECONDS + 10.0
"""The timeout of the socket: longer than the server's limit for a statement."""

_LOCK = 6_021_023
"""The key of a migration's advisory lock."""

_MOST_ROWS = 1_000
"""The most rows per request."""

_SCHEMA: Final = "codex_checkpoints"

# The login is a parameter as well as `session_user`: under a policy PostgreSQL uses an index only
# for conditions that cannot leak a row, and a cast of `session_user` could.
_READABLE = "org = my_org() and (owner = :me or team = any (my_teams()))"
_OWN = "org = my_org() and owner = :me and session_id = :session"
_OWN_FIRST = "order by owner = :me desc, change desc limit 1"

_ROLLOUT = f"select generation, size, prefix from rollout where {_OWN}"
_ROW = f"select row, owner, change from session where {_READABLE} and session_id = :session"

_APPEND = f"""
insert into segment (org, owner, session_id, generation, team, start, "end", before, after, body)
select org, owner, session_id, generation, team, :start, :end, :before, :after, :body from rollout
where {_OWN} and generation = :generation
"""

_PUT = """
insert into session as known (
    org, owner, session_id, team, generation, size, revision, updated_at, cwd, row, records
) values (
    my_org(), session_user, :session, :team, :generation, :size, :revision, :updated, :cwd,
    :row, :records
) on conflict (org, owner, session_id) do update set
    team = excluded.team, generation = excluded.generation, size = excluded.size,
    revision = excluded.revision, updated_at = excluded.updated_at, cwd = excluded.cwd,
    row = excluded.row, records = excluded.records, change = excluded.change,
    pushed_at = now(), bodies = true
where (known.generation, known.size, known.revision)
    < (excluded.generation, excluded.size, excluded.revision)
"""

# A page merges the latest rows of each source: the login's own, and each team's.
_PAGE = """
select row, owner, change, updated_at, session_id from (
    (
        select * from session
        where org = my_org() and owner = :me {after}
        order by updated_at desc, session_id, owner limit :limit
    ) union all (
        select of_team.* from unnest(my_teams()) as mine (team) cross join lateral (
            select * from session
            where org = my_org() and session.team = mine.team and owner <> :me {after}
            order by updated_at desc, session_id, owner limit :limit
        ) as of_team
    )
) as readable
order by updated_at desc, session_id, owner limit :limit
"""
_AFTER = """
and (
    updated_at < cast(:updated as text) collate "C" or (
        updated_at = cast(:updated as text) collate "C"
        and (session_id, owner) > (cast(:session as text), cast(:owner as text))
    )
)
"""


class PostgresHistoryStore:
    """Implements `contract.TeamStore` on a PostgreSQL server; it connects lazily."""

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        """Take the address of a database; raises `BadAddress`."""
        self.place = url
        self._address = Address.of(url)
        self._environment = environment
        self._connection: Connection | None = None
        self._socket: socket.socket | None = None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        plain, self._socket = self._socket, None
        if connection is not None:
            with suppress(OSError, InterfaceError):  # the server is gone already
                connection.close()
        if plain is not None:
            _end(plain)

    def is_made(self) -> bool:
        with self._working() as run:
            ((made, usable),) = run(
                "select count(*) > 0, coalesce(bool_or(has_schema_privilege(oid, 'usage')), false)"
                " from pg_namespace where nspname = :name",
                name=_SCHEMA,
            )
            if not made:
                return False
            if usable:
                ((major,),) = run(f"select major from {_SCHEMA}.schema_version")
                if major > FORMAT_VERSION:
                    message = f"a newer codex-checkpoints made the remote at {self._address.host}"
                    raise RemoteNewer(message)
            if not usable or not run(f"select from {_SCHEMA}.member where login = session_user"):
                raise _no_member(self._address)
            return True

    def make(self) -> None:
        if self.is_made():
            return
        with self._transaction() as run:
            run("select pg_advisory_xact_lock(:lock)", lock=_LOCK)
            if not run("select from pg_namespace where nspname = :name", name=_SCHEMA):
                for migration in MIGRATIONS:
                    self._connected().execute_simple(migration)

    def head(self, session_id: str) -> Head | None:
        with self._working() as run:
            found = run(f"{_ROLLOUT} order by generation desc limit 1", session=session_id)
        return Head(*found[0]) if found else None

    def append(self, session_id: str, generation: int, segment: Segment) -> Answer:
        if not is_session_id(session_id):
            raise RemoteRefused(f"{session_id[:80]!r} is not the id of a session")
        its = {"session": session_id, "generation": generation}
        with self._transaction() as run:
            if not segment.start:
                run(
                    "insert into rollout (org, owner, session_id, generation, team, prefix) values"
                    " (my_org(), session_user, :session, :generation, null, :prefix)"
                    " on conflict do nothing",
                    prefix=NO_PREFIX,
                    **its,
                )
            found = run(f"{_ROLLOUT} and generation = :generation for update", **its)
            if not found:
                return Told.UNKNOWN
            _, size, prefix = found[0]
            if (segment.start, segment.before) != (size, prefix):
                return Elsewhere(size, prefix)
            run(
                _APPEND,
                start=segment.start,
                end=segment.end,
                before=segment.before,
                after=segment.after,
                body=segment.body,
                **its,
            )
            run(
                f"update rollout set size = :size, prefix = :prefix"
                f" where {_OWN} and generation = :generation",
                size=segment.end,
                prefix=segment.after,
                **its,
            )
        return Told.TAKEN

    def read(self, session_id: str, head: Head) -> Iterator[bytes]:
        history = CheckedHistory()
        its = {"session": session_id, "generation": head.generation}
        with self._working() as run:
            owners = run(
                f"select owner from segment where {_READABLE} and session_id = :session"
                ' and generation = :generation and "end" = :size and after = :prefix'
                " order by owner = :me desc limit 1",
                size=head.size,
                prefix=head.prefix,
                **its,
            )
        while owners and history.size < head.size:
            with self._working() as run:
                found = run(
                    'select start, "end", before, after, body from segment'
                    f" where {_READABLE} and owner = :owner and session_id = :session"
                    " and generation = :generation and start = :start",
                    owner=owners[0][0],
                    start=history.size,
                    **its,
                )
            if not found:
                break
            segment = Segment(*found[0])
            yield history.add(segment, unpacked(segment))
        if not owners and head.size:
            self._refuse_removed(session_id)
        history.end(head)

    def put(self, row: SessionRow, records: bytes) -> None:
        with self._transaction() as run:
            run(
                _PUT,
                session=row.session_id,
                team=row.team,
                generation=row.generation,
                size=row.size,
                revision=row.revision,
                updated=row.updated_at or "",
                cwd=row.cwd,
                row=orjson.dumps(stored.unstructure(row)).decode(),
                records=records,
            )
            for table in ("rollout", "segment"):
                run(
                    f"update {table} set team = :team"
                    f" where {_OWN} and team is distinct from cast(:team as text)",
                    team=row.team,
                    session=row.session_id,
                )

    def row(self, session_id: str) -> StoredRow | None:
        with self._working() as run:
            found = run(f"{_ROW} {_OWN_FIRST}", session=session_id)
        return _stored(*found[0]) if found else None

    def records(self, session_id: str, version: str) -> bytes:
        with self._transaction() as run:
            found = run(
                f"select records, owner from session where {_READABLE} and session_id = :session"
                " and change = cast(:version as bigint)",
                session=session_id,
                version=version,
            )
            if not found:
                raise damaged("its row has changed since it was read")
            ((records, owner),) = found
            if owner != self._address.user:  # a push reads its own
                run("select note_pull(:owner, :session)", owner=owner, session=session_id)
        return records

    def rows(self, limit: int | None = None, cursor: str | None = None) -> RowPage:
        found: list[StoredRow] = []
        unreadable, after = 0, _after(cursor)
        with self._working() as run:
            while True:
                size = _MOST_ROWS if limit is None else min(_MOST_ROWS, limit - len(found))
                query = _PAGE.format(after=_AFTER if after else "")
                page = run(query, limit=size + 1, **after)
                for row, owner, change, *_ in page[:size]:
                    each = _stored(row, owner, change)
                    unreadable += each is None
                    found += [] if each is None else [each]
                if len(page) <= size:
                    return RowPage(tuple(found), None, unreadable)
                _, owner, _, updated, session_id = page[size - 1]
                after = {"updated": updated, "session": session_id, "owner": owner}
                if limit is not None and len(found) + unreadable >= limit:
                    return RowPage(tuple(found), _cursor(after), unreadable)

    def delete(self, session_id: str) -> bool:
        with self._transaction() as run:
            gone = [
                run(f"delete from {table} where {_OWN} returning 1", session=session_id)
                for table in ("segment", "rollout", "session")
            ]
            if any(gone):
                return True
            found = run(f"{_ROW} limit 1", session=session_id)
        if found:
            message = f"session {session_id} belongs to {found[0][1]}"
            raise RemoteRefused(message, "Only its owner can delete it.")
        return False

    def audit(self, limit: int) -> tuple[AuditEntry, ...]:
        with self._working() as run:
            found = run(
                "select at, login, kind, owner, session_id, team from event"
                " order by number desc limit :limit",
                limit=limit,
            )
        return tuple(
            AuditEntry(at.astimezone(UTC).isoformat(timespec="milliseconds"), *rest)
            for at, *rest in found
        )

    def retain(self, days: int) -> int:
        with self._transaction() as run:
            ((removed,),) = run("select retain(cast(:days as int))", days=days)
        return removed

    def _refuse_removed(self, session_id: str) -> None:
        with self._working() as run:
            kept = run(
                f"select bodies from session where {_READABLE} and session_id = :session",
                session=session_id,
            )
        if kept and not any(bodies for (bodies,) in kept):
            message = f"the lines of session {session_id} were removed after the time they are kept"
            raise RemoteRefused(message, "Its owner can push it again.")

    # --- the connection --------------------------------------------------------------------------

    def _connected(self) -> Connection:
        if self._connection is None:
            address = self._address
            plain = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
            try:
                plain.settimeout(_ANSWER_SECONDS)
                self._connection = Connection(
                    address.user,
                    host=address.host,
                    database=address.database,
                    password=address.password(self._environment),
                    ssl_context=address.tls(),
                    sock=plain,
                    application_name="codex-checkpoints",
                    startup_params={
                        "statement_timeout": f"{STATEMENT_SECONDS}s",
                        "search_path": _SCHEMA,
                    },
                )
            except BaseException:
                _end(plain)
                raise
            self._socket = plain
        return self._connection

    @contextmanager
    def _working(self) -> Generator[Callable[..., list[Any]]]:
        """Give a function that runs a statement; a broken connection is reopened the next time."""
        try:
            with _as_remote_errors(self._address):
                yield partial(self._connected().run, me=self._address.user)
        except RemoteUnreachable:
            self.close()
            raise

    @contextmanager
    def _transaction(self) -> Generator[Callable[..., list[Any]]]:
        with self._working() as run:
            run("begin")
            try:
                yield run
            except (DatabaseError, RemoteError):
                run("rollback")
                raise
            except BaseException:
                self.close()  # the server rolls the open transaction back
                raise
            run("commit")


def _end(plain: socket.socket) -> None:
    """Close a socket although the driver may keep a file of it, as after a lost connection."""
    descriptor = plain.detach()
    if descriptor >= 0:
        socket.close(descriptor)


@contextmanager
def _as_remote_errors(address: Address) -> Generator[None]:
    where = f"the PostgreSQL server at {address.host}"
    try:
        yield
    except BadAddress as error:
        raise RemoteRefused(str(error), _RIGHTS) from error
    except (OSError, InterfaceError) as error:
        raise RemoteUnreachable(f"{where} cannot be reached: {_brief(error)}", _REACH) from error
    except DatabaseError as error:
        state, said = _state_of(error)
        match state[:2]:
            case "28" | "42" | "3D" | "0L" | "0P":
                raise RemoteRefused(f"{where} refuses: {said}", _RIGHTS) from error
            case "53":
                raise RemoteFull(f"{where} has no space left: {said}") from error
            case _:
                raise RemoteUnreachable(f"{where} failed: {said}", _REACH) from error


_REACH = "Check the address and the network, then try again; sessions here need no server."
_RIGHTS = "Check the login and its teams; `docs/team.md` says how an admin adds a login."


def _state_of(error: DatabaseError) -> tuple[str, str]:
    """Return the SQLSTATE of an error and the server's message, without the values of a row."""
    given: object = error.args[0] if error.args else None
    if not is_object(given):
        return "", type(error).__name__
    return text_of(given.get("C")) or "", (text_of(given.get("M")) or "")[:200]


def _brief(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:200] or type(error).__name__


def _no_member(address: Address) -> RemoteRefused:
    message = f"{address.user} is not a member at {address.host}: an admin has to add the login"
    return RemoteRefused(message, _RIGHTS)


def _stored(row: str, owner: str, change: int) -> StoredRow | None:
    """Return a row as its owner stored it, None if it cannot be read."""
    try:
        found = read_or_none(stored, orjson.loads(row), SessionRow)
    except orjson.JSONDecodeError:
        found = None
    return None if found is None else StoredRow(evolve(found, owner=owner), str(change))


def _cursor(after: Mapping[str, str]) -> str:
    return orjson.dumps([after["updated"], after["session"], after["owner"]]).decode()


def _after(cursor: str | None) -> dict[str, str]:
    """Return the position of a cursor, nothing for a cursor from another source."""
    try:
        updated, session_id, owner = orjson.loads(cursor or "")
    except ValueError:
        return {}
    found = {"updated": updated, "session": session_id, "owner": owner}
    return found if all(isinstance(each, str) for each in found.values()) else {}
