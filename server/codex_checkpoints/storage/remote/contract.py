"""Defines the contract of a store for pushed sessions.

A session is stored as the bytes of its *history*: redacted lines, each with its LF.  The bytes only
grow.  A history that differs from the stored one opens the next *generation* of the session.

The *prefix* of a history is the SHA-256 of everything so far, as 64 hex digits.  A store takes
bytes only at its current size, and only after the same prefix.  So lost connections, concurrent
pushers and different segment sizes need no lock: a pusher that is `Elsewhere` continues from the
size in the answer.

The row of a session is written last.  A session without a row is not listed, and a reader stops at
the size in the row.  A store is not trusted: a reader checks every length, hash and prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from hashlib import sha256
from typing import Protocol, runtime_checkable

import orjson
from attrs import Factory, frozen

from codex_checkpoints.core.portable.said import Said
from codex_checkpoints.storage.contract import within

FORMAT_VERSION = 1
"""The version of a store that this program writes, and the newest one that it reads."""

SEGMENT = 1 << 20
"""The most bytes of a history in one segment."""

NO_PREFIX = sha256().hexdigest()
"""The prefix of an empty history."""


class RemoteError(Exception):
    """An operation of a store failed; the text is a sentence for a person, without any content.

    `code` is the code of the refusal, `hint` a way out.
    """

    code = "remote_unreachable"
    hint = "Check that the disk is mounted and the folder is there, then try again."

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint or self.hint


class RemoteUnreachable(RemoteError):
    """The store is missing, or does not answer."""


class RemoteRefused(RemoteError):
    """The store answers, but does not permit the operation."""

    code = "remote_refused"
    hint = "Check who may write to the folder."


class RemoteNewer(RemoteError):
    """A newer version of this program created the store."""

    code = "remote_newer"
    hint = "Update codex-checkpoints on this machine."


class RemoteFull(RemoteError):
    """The store has no space left; the session is complete up to its last segment."""

    code = "remote_full"
    hint = "Make room there, then push again: the push continues."


class RemoteDamaged(RemoteError):
    """A stored session does not match its row."""

    code = "remote_damaged"
    hint = (
        "Wait for the disk to sync. If that does not help, delete the session there and push again."
    )


@frozen
class Head:
    """The end of the newest generation of a session: its size in bytes, and its prefix."""

    generation: int
    size: int
    prefix: str


@frozen
class Segment:
    """Bytes of a history from `start` to `end`, compressed as one zstd frame in `body`.

    `before` is the prefix at `start`, `after` the prefix at `end`.
    """

    start: int
    end: int
    before: str
    after: str
    body: bytes


class AppendResult(Enum):
    """The results of an append that carry no data."""

    TAKEN = "taken"
    """The segment is stored, durably."""
    UNKNOWN = "unknown"
    """The generation does not exist: begin with its first byte."""


@frozen
class Elsewhere:
    """The segment was not stored: the generation ends here."""

    size: int
    prefix: str


Answer = AppendResult | Elsewhere


@frozen
class SessionRow:
    """The entry of a pushed session in a list, and the valid end of its history.

    All texts are redacted.  `generation`, `size` and `prefix` describe the history, `lines` counts
    its lines; `machine_id` distinguishes machines of one name; `revision` counts the rows of one
    such state.  `forked_from` is the session that it branched off, `parent_session` the one that
    started it as a subagent.  `updated_at` is the time of the last record.  `seq_shift` is the
    offset of the numbers in its records from its lines.  `secrets` counts redacted secrets by kind,
    `left_out` dropped parts by kind.  `lost_summary`: the current window began with a summary that
    only its owner's account can read, so it was left out.  `team` may read the session; None: only
    its owner may.
    """

    session_id: str
    generation: int
    size: int
    prefix: str
    lines: int
    owner: str
    machine: str
    machine_id: str
    revision: int = 0
    title: str | None = None
    task: str | None = None
    cwd: str | None = None
    branch: str | None = None
    repository: str | None = None
    updated_at: str | None = None
    pushed_at: str | None = None
    model: str | None = None
    cli_version: str | None = None
    history_mode: str = "legacy"
    seq_shift: int = 0
    secrets: dict[str, int] = Factory(dict[str, int])
    left_out: dict[str, int] = Factory(dict[str, int])
    lost_summary: bool = False
    team: str | None = None
    forked_from: str | None = None
    parent_session: str | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the key that sorts the rows of a session, the newest last; clocks are not used."""
        return self.generation, self.size, self.revision

    @property
    def head(self) -> Head:
        """Return the end of the history."""
        return Head(self.generation, self.size, self.prefix)


@frozen
class StoredRow:
    """A row, and an opaque text that changes whenever anything in the session changes."""

    row: SessionRow
    version: str


@frozen
class AuditEntry:
    """An action of a login on a session of an owner: `pushed`, `pulled` or `deleted`.

    `at` is ISO 8601, UTC.
    """

    at: str
    login: str
    kind: str
    owner: str
    session_id: str
    team: str | None


@frozen
class RowQuery:
    """Selects rows: those in or below `cwd`, of an `owner`, and with a `text`, case aside."""

    cwd: str | None = None
    owner: str | None = None
    text: str | None = None

    def selects(self, row: SessionRow) -> bool:
        """Return whether a row is selected."""
        if self.owner not in {None, row.owner}:
            return False
        if self.cwd is not None and not (row.cwd and within(self.cwd)(row.cwd)):
            return False
        texts = (row.title, row.task, row.cwd, row.session_id, row.branch)
        wanted = (self.text or "").casefold()
        return not wanted or any(wanted in text.casefold() for text in texts if text)


ALL_ROWS = RowQuery()


class SaidLog(Protocol):
    """The texts of a session that a search finds, in order.  Its methods raise `StorageError`."""

    @property
    def count(self) -> int:
        """Return the number of texts."""
        ...

    def digest(self, count: int) -> str:
        """Return the SHA-256 of the first `count` texts, as 64 hex digits."""
        ...

    def texts(self, start: int) -> Iterator[Said]:
        """Yield the texts from a number on, from 0."""
        ...


@frozen
class FoundSaid:
    """A text that a search found, and the row of its session."""

    row: SessionRow
    said: Said


@frozen
class RowPage:
    """Rows, the latest session first; `unreadable` counts sessions with an unreadable row."""

    rows: tuple[StoredRow, ...]
    next_cursor: str | None
    unreadable: int = 0


class HistoryStore(Protocol):
    """Stores histories of pushed sessions; only `interrupt` may be called from another thread.

    Every other method raises `RemoteError`.
    """

    place: str
    """The place of the store, for a person; never a password."""

    def close(self) -> None:
        """Close a connection; the next call opens a new one."""
        ...

    def interrupt(self) -> None:
        """Make the running call and all later ones fail, if the store can; from any thread."""
        ...

    def is_made(self) -> bool:
        """Return whether the store exists; raises `RemoteNewer` for one of a newer version."""
        ...

    def make(self) -> None:
        """Create the store, unless it exists; durable on return."""
        ...

    def head(self, session_id: str) -> Head | None:
        """Return the end of the newest generation; None for a session that is not stored."""
        ...

    def append(self, session_id: str, generation: int, segment: Segment) -> Answer:
        """Add a segment to a generation; durable when it is taken."""
        ...

    def read(self, session_id: str, head: Head) -> Iterator[bytes]:
        """Yield the history up to a head, a segment at a time, each checked.

        Raises `RemoteDamaged` if a length, a hash or a prefix differs, at the latest at the end.
        """
        ...

    def put(self, row: SessionRow, records: bytes) -> None:
        """Replace the row of a session and the records beside its history; durable on return.

        A row older than the stored one changes nothing.
        """
        ...

    def row(self, session_id: str) -> StoredRow | None:
        """Return the newest row of a session; None if it has none."""
        ...

    def records(self, session_id: str, version: str) -> bytes:
        """Return the records of a row by its version; raises `RemoteDamaged` for another one."""
        ...

    def rows(
        self, limit: int | None = None, cursor: str | None = None, query: RowQuery = ALL_ROWS
    ) -> RowPage:
        """Return a page of rows; a cursor from another source begins with the first page."""
        ...

    def delete(self, session_id: str) -> bool:
        """Remove a session with all generations; return whether it existed."""
        ...


@runtime_checkable
class TeamStore(HistoryStore, Protocol):
    """Stores sessions of several people: it has teams, keeps an audit, and indexes their texts."""

    def index(self, session_id: str, generation: int, said: SaidLog) -> None:
        """Replace the texts of a generation that a search finds; only changes are sent.

        They are found once a row of that generation is put.  They go with the session, and with its
        lines.
        """
        ...

    def said(self, words: tuple[str, ...]) -> Iterator[FoundSaid]:
        """Yield the texts that this login may read and that have words with these beginnings.

        The latest session comes first, and its newest text.
        """
        ...

    def note_pull(self, row: SessionRow) -> None:
        """Note in the audit that the lines of a session are about to be read here."""
        ...

    def teams(self) -> tuple[str, ...]:
        """Return the teams of this login, by name."""
        ...

    def audit(self, limit: int) -> tuple[AuditEntry, ...]:
        """Return who pushed, pulled and deleted which session, the newest entry first."""
        ...

    def retain(self, days: int) -> int:
        """Remove the lines of sessions that were not pushed for `days` days, and keep their rows.

        Returns the number of sessions that lost their lines.
        """
        ...


def team_store(store: HistoryStore) -> TeamStore:
    """Return a store as a team store; raises `RemoteRefused` for a folder."""
    if isinstance(store, TeamStore):
        return store
    message = f"the remote {store.place} is a folder, without teams and without an audit"
    raise RemoteRefused(message, "A remote on PostgreSQL has both: see docs/team.md.")


def is_session_id(text: str) -> bool:
    """Return whether a text can name a session in a store: a plain file name on every system."""
    return (
        0 < len(text) <= _LONGEST_ID
        and text.isascii()
        and text.replace("-", "").replace("_", "").isalnum()
        and not text.startswith("-")
    )


_LONGEST_ID = 128


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it, on the system that wrote both."""
    above = folder.rstrip("/\\")
    return path == folder or path.startswith((f"{above}/", f"{above}\\"))


def in_order(found: Iterable[StoredRow]) -> list[StoredRow]:
    """Return rows, the latest session first, then by id."""
    by_id = sorted(found, key=lambda each: each.row.session_id)
    return sorted(by_id, key=lambda each: each.row.updated_at or "", reverse=True)


def page_of(
    found: Iterable[StoredRow],
    limit: int | None,
    cursor: str | None,
    query: RowQuery,
    unreadable: int = 0,
) -> RowPage:
    """Return a page of rows in any order.

    A cursor is the place of the last row on a page, so rows that come or go do not shift it.
    """
    rows = in_order(each for each in found if query.selects(each.row))
    last = _place_of(cursor)
    if last is not None:
        rows = [each for each in rows if _is_after(each.row, *last)]
    shown = rows if limit is None else rows[:limit]
    if not shown or len(shown) == len(rows):
        return RowPage(tuple(shown), None, unreadable)
    end = shown[-1].row
    following = orjson.dumps([end.updated_at or "", end.session_id]).decode()
    return RowPage(tuple(shown), following, unreadable)


def _is_after(row: SessionRow, updated_at: str, session_id: str) -> bool:
    own = row.updated_at or ""
    return own < updated_at or (own == updated_at and row.session_id > session_id)


def _place_of(cursor: str | None) -> tuple[str, str] | None:
    """Return the place of a cursor, None for a cursor from another source."""
    with suppress(ValueError):
        match orjson.loads(cursor or ""):
            case [str(updated_at), str(session_id)]:
                return updated_at, session_id
            case _:
                pass
    return None


class CheckedHistory:
    """Checks the segments of a history as they are read."""

    def __init__(self) -> None:
        self._found = sha256()
        self.size = 0
        self.prefix = NO_PREFIX

    def add(self, segment: Segment, data: bytes) -> bytes:
        """Take the bytes of the next segment and return them; raises `RemoteDamaged`."""
        self._found.update(data)
        self.size += len(data)
        self.prefix = self._found.hexdigest()
        if (self.size, self.prefix) != (segment.end, segment.after):
            raise damaged("a segment does not match its name")
        return data

    def end(self, head: Head) -> None:
        """Check that the history ends at a head; raises `RemoteDamaged`."""
        if (self.size, self.prefix) != (head.size, head.prefix):
            raise damaged("it ends before the size in its row")


def damaged(why: str) -> RemoteDamaged:
    """Return the error of a session that does not match its row."""
    return RemoteDamaged(f"the session in the remote is damaged or not synced yet: {why}")
