"""Caches the results of reading the session files, in SQLite.

One row a file answers every list; a second table holds the states of folds over it, so that a
reader need not begin at its first byte.  A database that is absent, old or damaged is rebuilt, and
a third table records when it was damaged; each value has a checksum, since SQLite itself checks
none.  One that is locked or read-only is replaced by one in memory, and `fallback` holds the
reason.  Several processes may use it at once (WAL); a lost race costs a second read of a file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import orjson
from attrs import fields

from codex_checkpoints.storage.contract import Rollout, Row, moment

logger = logging.getLogger(__name__)

VERSION = 20
BUSY_SECONDS = 0.5
"""Timeout for another process that keeps the database locked, before going on without it."""

_PAUSE = 0.01
_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
    }
)
"""The primary codes of a database that may well be intact; any other error is damage."""

_FAILURES = (sqlite3.Error, UnicodeError)
"""`UnicodeError`: a message of SQLite quotes a damaged name."""


# A row is the JSON of its values: SQLite takes longer over many columns.
_own = attrgetter(*(field.name for field in fields(Row) if field.name != "rollout"))
_place = attrgetter(*(field.name for field in fields(Rollout)))
_TABLES = {
    "rollouts": (("path", "row", "checksum"), "path"),
    "states": (("path", "fold", "state", "checksum"), "path, fold"),
    "damages": (("at", "reason"), "at"),
}
"""The columns of each table, and its key."""
_PUT = "INSERT OR REPLACE INTO rollouts VALUES (?, ?, ?)"


class Index:
    """The rows of all session files; owned by one thread."""

    def __init__(self, path: str = "", codex_home: str | None = None) -> None:
        """Open the database, or make it; in memory without a path or a Codex home."""
        self.path = path
        self.fallback: str | None = None
        has_home = codex_home is None or os.path.isdir(codex_home)
        if not path or (not has_home and path.startswith(os.path.join(codex_home or "", ""))):
            self._connection = self._in_memory()
            return
        if os.path.islink(path):
            self._connection = self._in_memory("it is a symbolic link")
            return
        try:
            self._connection = self._on_disk()
        except _FAILURES as error:
            self._connection = self._instead(error)
        except OSError as error:
            self._connection = self._in_memory(error.strerror or str(error))

    def rows(self) -> dict[str, Row]:
        """Return every row by path; none of a database that turns out to be damaged."""
        try:
            return self._read_rows()
        except _FAILURES as error:
            self._replace(error)
            return {}

    def put(self, rows: Iterable[Row], gone: Iterable[str] = ()) -> None:
        """Write rows and forget the paths in `gone`, in one transaction."""
        values = [_values(row) for row in rows]
        paths = [(path,) for path in gone]

        def write(database: sqlite3.Connection) -> None:
            if paths:
                database.executemany("DELETE FROM rollouts WHERE path = ?", paths)
            database.executemany(_PUT, values)
            if paths:  # and states that a running read saved since for a file that went
                known = "SELECT path FROM rollouts"
                database.execute(f"DELETE FROM states WHERE path NOT IN ({known})")

        self._write(write)

    def state(self, path: str, fold: str) -> object:
        """Return the saved state of a fold over a file as JSON values, or None."""
        query = "SELECT state, checksum FROM states WHERE path = ? AND fold = ?"
        try:
            found = self._connection.execute(query, (path, fold)).fetchone()
            return None if found is None else orjson.loads(_checked(*found, path, fold))
        except (*_FAILURES, TypeError, ValueError):
            return None

    def put_state(self, path: str, fold: str, state: object) -> None:
        """Save the state of a fold over a file."""
        put = "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)"
        data = orjson.dumps(state)
        values = (path, fold, data, _checksum(data, path, fold))
        self._write(lambda database: database.execute(put, values))

    def drop_states(self, path: str = "", fold: str = "") -> None:
        """Drop the states of a file, of a fold over any file, or of that fold over that file."""
        given = {name: each for name, each in (("path", path), ("fold", fold)) if each}
        having = f"FROM states WHERE {' AND '.join(f'{name} = ?' for name in given)}"
        values = tuple(given.values())
        with contextlib.suppress(*_FAILURES):
            found = self._connection.execute(f"SELECT 1 {having} LIMIT 1", values).fetchone()
            if found is None:
                return
        self._write(lambda database: database.execute(f"DELETE {having}", values))

    def damage(self) -> tuple[str, str] | None:
        """Return when and how the database was damaged last; None if it never was."""
        query = "SELECT at, reason FROM damages ORDER BY at DESC LIMIT 1"
        with contextlib.suppress(*_FAILURES):
            found = self._connection.execute(query).fetchone()
            return None if found is None else (str(found[0]), str(found[1]))
        return None

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Write in one transaction; when that fails, continue with another database."""
        try:
            with self._connection:
                work(self._connection)
        except _FAILURES as error:
            if self.fallback is not None:
                raise
            rows: dict[str, Row] = {}
            with contextlib.suppress(*_FAILURES):
                rows = self._read_rows()
            self._replace(error)
            with self._connection:
                self._connection.executemany(_PUT, [_values(row) for row in rows.values()])
                work(self._connection)

    def _read_rows(self) -> dict[str, Row]:
        found = self._connection.execute("SELECT path, row, checksum FROM rollouts")
        try:
            return {path: _row(path, _checked(data, known, path)) for path, data, known in found}
        except (TypeError, ValueError) as error:
            raise sqlite3.DatabaseError("a row is not as it was written") from error

    def _replace(self, error: Exception) -> None:
        self._connection.close()
        self._connection = self._instead(error)

    def _instead(self, error: Exception) -> sqlite3.Connection:
        """Return a database that replaces a failed one: on disk again if it was damaged."""
        if not _is_damage(error):
            logger.warning("the index is kept in memory: %s", error)
            return self._in_memory(str(error))
        # Everything in it can be read again.
        logger.warning("the index is damaged and is rebuilt: %s", error)
        try:
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path + suffix)
            connection = self._on_disk()
            with connection:
                values = (moment(time.time_ns()), str(error))
                connection.execute("INSERT OR REPLACE INTO damages VALUES (?, ?)", values)
        except (*_FAILURES, OSError) as again:
            return self._in_memory(str(again))
        return connection

    def _on_disk(self) -> sqlite3.Connection:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._connected()
            except sqlite3.OperationalError as error:
                # While several make the same new file, SQLite refuses some without having waited.
                if _code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise
            time.sleep(_PAUSE)

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _in_memory(self, reason: str | None = None) -> sqlite3.Connection:
        self.fallback = reason
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._prepare(connection)
        return connection

    @staticmethod
    def _prepare(connection: sqlite3.Connection) -> None:
        """Bring the tables to this version; rows of another version are read again."""
        if _is_ours(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if _is_ours(connection):
                return
            for table, (columns, key) in _TABLES.items():
                # Not WITHOUT ROWID, with which long rows fill four times as many pages.
                shape = f"({', '.join(columns)}, PRIMARY KEY ({key}))"
                connection.execute(f"DROP TABLE IF EXISTS {table}")
                connection.execute(f"CREATE TABLE {table} {shape}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _is_damage(error: Exception) -> bool:
    """Return whether an error shows damage to the database."""
    return _code_of(error) not in _UNUSABLE


def _code_of(error: Exception) -> int | None:
    """Return the primary code of SQLite, None for an error that Python raised itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Return whether the tables have this version's form."""
    if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        return False
    return all(
        tuple(column[1] for column in connection.execute(f"PRAGMA table_info({table})")) == columns
        for table, (columns, _) in _TABLES.items()
    )


def _row(path: str, data: bytes) -> Row:
    (thread_id, rollout_id, *state), own = orjson.loads(data)
    where = Rollout(sys.intern(path), sys.intern(thread_id), sys.intern(rollout_id), *state)
    # Texts that many rows share are kept once.
    values: list[Any] = [sys.intern(each) if type(each) is str else each for each in own]
    return Row(where, *values)


def _values(row: Row) -> tuple[str, bytes, int]:
    path, *where = _place(row.rollout)
    data = orjson.dumps((where, _own(row)))
    return path, data, _checksum(data, path)


def _checked(data: object, checksum: object, *key: str) -> bytes:
    """Return data; raises `ValueError` if it or its key is not as it was written."""
    if isinstance(data, bytes) and checksum == _checksum(data, *key):
        return data
    raise ValueError("a value is not as it was written")


def _checksum(data: bytes, *key: str) -> int:
    return zlib.crc32(data, zlib.crc32("\0".join(key).encode()))
