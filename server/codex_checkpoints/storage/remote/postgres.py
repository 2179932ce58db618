"""Stores pushed sessions on a PostgreSQL server, for one person or for a team.

The database decides who sees which rows (`migrations`).  The queries name organisation, owner and
team as well: so they use the indexes, and a superuser, to whom no policy applies, sees no more than
others.

A session is listed once for each owner that the login may read.  If two own the same one, the
login's own goes first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC
from math import inf

import orjson
from attrs import asdict, evolve

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.portable.said import Said, words_in
from codex_checkpoints.storage.remote.address import Address
from codex_checkpoints.storage.remote.connection import RIGHTS, SCHEMA, ServerConnection
from codex_checkpoints.storage.remote.contract import (
    ALL_ROWS,
    FORMAT_VERSION,
    NO_PREFIX,
    Answer,
    AppendResult,
    AuditEntry,
    CheckedHistory,
    Elsewhere,
    FoundSaid,
    Head,
    RemoteNewer,
    RemoteRefused,
    RowPage,
    RowQuery,
    SaidLog,
    Segment,
    SessionRow,
    StoredRow,
    damaged,
    is_session_id,
)
from codex_checkpoints.storage.remote.migrations import MIGRATIONS
from codex_checkpoints.storage.remote.packing import unpacked

_LOCK = 6_021_023
"""The key of a migration's advisory lock."""

_MOST_ROWS = 1_000
"""The most rows per request."""

_MOST_TEXTS = 200
"""The most texts per request of a search, and per insertion."""

_LARGEST_BATCH = 1 << 16
"""Code points of texts after which a batch is inserted."""

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

_INDEX = f"""
insert into said (
    org, owner, session_id, generation, number, team, seq, turn, turn_id, kind, at, text, words
)
select
    org, owner, session_id, generation, number, team, seq, turn, turn_id, kind, at, text,
    array_to_tsvector(string_to_array(words, ' '))
from rollout, json_to_recordset(cast(:texts as json)) as texts (
    number bigint, seq bigint, turn int, turn_id text, kind text, at text, text text, words text
)
where {_OWN} and generation = :generation
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
        self._server = ServerConnection(Address.of(url), environment)
        self._address, self._working = self._server.address, self._server.working
        self._transaction = self._server.transaction
        self._minor: int | None = None

    def close(self) -> None:
        self._server.close()

    def interrupt(self) -> None:
        self._server.interrupt()

    def is_made(self) -> bool:
        with self._working() as run:
            ((made, usable),) = run(
                "select count(*) > 0, coalesce(bool_or(has_schema_privilege(oid, 'usage')), false)"
                " from pg_namespace where nspname = :name",
                name=SCHEMA,
            )
            if not made:
                return False
            if usable:
                ((major, self._minor),) = run(f"select major, minor from {SCHEMA}.schema_version")
                if major > FORMAT_VERSION:
                    message = f"a newer codex-checkpoints made the remote at {self._address.host}"
                    raise RemoteNewer(message)
            if not usable or not run(f"select from {SCHEMA}.member where login = session_user"):
                raise _no_member(self._address)
            return True

    def make(self) -> None:
        if self.is_made() and not self._may_migrate():
            return
        with self._transaction() as run:
            run("select pg_advisory_xact_lock(:lock)", lock=_LOCK)
            done = 0
            if run("select from pg_namespace where nspname = :name", name=SCHEMA):
                ((minor,),) = run("select minor from schema_version")
                done = minor + 1
            for migration in MIGRATIONS[done:]:
                self._server.connected().execute_simple(migration)
        self._minor = None

    def _may_migrate(self) -> bool:
        """Return whether the store lacks migrations, and this login may make them."""
        with self._working() as run:
            ((minor,),) = run("select minor from schema_version")
            ((may,),) = run(
                "select rolsuper or rolcreaterole from pg_roles where rolname = session_user"
            )
        return may and minor + 1 < len(MIGRATIONS)

    def _has_index(self) -> bool:
        """Return whether the store has the table of texts, which an older one lacks."""
        minor = self._minor
        if minor is None:
            with self._working() as run:
                ((minor,),) = run("select minor from schema_version")
            self._minor = minor
        return minor > 0

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
                return AppendResult.UNKNOWN
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
        return AppendResult.TAKEN

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
        return _stored(session_id, *found[0]) if found else None

    def records(self, session_id: str, version: str) -> bytes:
        with self._working() as run:
            found = run(
                f"select records from session where {_READABLE} and session_id = :session"
                " and change = cast(:version as bigint)",
                session=session_id,
                version=version,
            )
        if not found:
            raise damaged("its row has changed since it was read")
        return found[0][0]

    def rows(
        self, limit: int | None = None, cursor: str | None = None, query: RowQuery = ALL_ROWS
    ) -> RowPage:
        found: list[StoredRow] = []
        unreadable, after = 0, _after(cursor)
        most = inf if limit is None else limit
        size = _MOST_ROWS if limit is None or query != ALL_ROWS else min(_MOST_ROWS, limit)
        with self._working() as run:
            while True:
                page = run(_PAGE.format(after=_AFTER if after else ""), limit=size + 1, **after)
                for number, (row, owner, change, updated, session_id) in enumerate(page[:size], 1):
                    each = _stored(session_id, row, owner, change)
                    unreadable += each is None
                    if each is not None and query.selects(each.row):
                        found.append(each)
                    after = {"updated": updated, "session": session_id, "owner": owner}
                    if len(found) + unreadable >= most:
                        following = _cursor(after) if number < len(page) else None
                        return RowPage(tuple(found), following, unreadable)
                if len(page) <= size:
                    return RowPage(tuple(found), None, unreadable)

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

    def index(self, session_id: str, generation: int, said: SaidLog) -> None:
        if not self._has_index():
            return
        its = {"session": session_id, "generation": generation}
        of_it = f"{_OWN} and generation = :generation"
        with self._transaction() as run:
            found = run(f"select said, said_digest from rollout where {of_it} for update", **its)
            if not found:  # it was deleted
                return
            ((count, digest),) = found
            kept = count if count <= said.count and said.digest(count) == digest else 0
            run(f"delete from said where {_OWN} and generation <> :generation", **its)
            run(f"delete from said where {of_it} and number >= :kept", kept=kept, **its)
            for texts in _batches(enumerate(said.texts(kept), kept)):
                run(_INDEX, texts=texts, **its)
            run(
                f"update rollout set said = :count, said_digest = :digest where {of_it}",
                count=said.count,
                digest=said.digest(said.count),
                **its,
            )

    def said(self, words: tuple[str, ...]) -> Iterator[FoundSaid]:
        if not self._has_index():
            message = f"the remote at {self._address.host} was made without an index for searches"
            raise RemoteRefused(message, "An admin adds it by `remote set`, as it was made.")
        wanted, skipped = " & ".join(f"'{word}':*" for word in words), 0
        while True:
            with self._working() as run:
                page = run(
                    "select * from search(:wanted, cast(:skipped as bigint), :most)",
                    wanted=wanted,
                    skipped=skipped,
                    most=_MOST_TEXTS,
                )
            for row, owner, *fields in page:
                stored_row = _stored(None, row, owner, 0)
                if stored_row is not None:
                    yield FoundSaid(stored_row.row, Said(*fields))
            if len(page) < _MOST_TEXTS:
                return
            skipped += len(page)

    def note_pull(self, row: SessionRow) -> None:
        with self._working() as run:
            run("select note_pull(:owner, :session)", owner=row.owner, session=row.session_id)

    def teams(self) -> tuple[str, ...]:
        with self._working() as run:
            found = run("select unnest(my_teams()) order by 1")
        return tuple(name for (name,) in found)

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


def _batches(numbered: Iterable[tuple[int, Said]]) -> Iterator[str]:
    """Yield texts and their words as arrays of JSON that are not too large."""
    batch, size = list[dict[str, object]](), 0
    for number, said in numbered:
        words = " ".join(sorted(words_in(said.text)))
        batch.append({"number": number, **asdict(said), "words": words})
        size += len(said.text)
        if len(batch) >= _MOST_TEXTS or size >= _LARGEST_BATCH:
            yield orjson.dumps(batch).decode()
            batch, size = [], 0
    if batch:
        yield orjson.dumps(batch).decode()


def _no_member(address: Address) -> RemoteRefused:
    message = f"{address.user} is not a member at {address.host}: an admin has to add the login"
    return RemoteRefused(message, RIGHTS)


def _stored(session_id: str | None, row: str, owner: str, change: int) -> StoredRow | None:
    """Return a row as its owner stored it, None if it cannot be read.

    Its id names files here, so it must be a plain file name, and `session_id` if that is known.
    """
    try:
        found = read_or_none(stored, orjson.loads(row), SessionRow)
    except orjson.JSONDecodeError:
        found = None
    if found is None or not is_session_id(found.session_id):
        return None
    if session_id not in {None, found.session_id}:
        return None
    return StoredRow(evolve(found, owner=owner), str(change))


def _cursor(after: Mapping[str, str]) -> str:
    return orjson.dumps([after["updated"], after["session"], after["owner"]]).decode()


def _after(cursor: str | None) -> dict[str, str]:
    """Return the position of a cursor, nothing for a cursor from another source."""
    with suppress(ValueError):
        match orjson.loads(cursor or ""):
            case [str(updated), str(session_id), str(owner)]:
                return {"updated": updated, "session": session_id, "owner": owner}
            case _:
                pass
    return {}
