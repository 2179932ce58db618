"""Defines the interface of a store of threads, and the decisions of all stores (STO-1).

A store finds its rollouts and changes one at a time.  This module decides which rollout is current,
which threads fit a query, and which is refused.  `local` and `memory` supply the bytes;
tests/storage/test_contract.py tests both, tests/storage/test_every_store.py the laws that stores of
pushed sessions keep, too.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.events import SessionMeta
from codex_checkpoints.core.fields import load, object_of
from codex_checkpoints.storage.contract import (
    OURS,
    Appended,
    BadQuery,
    Conflict,
    Copied,
    HistoryItem,
    NewThread,
    Patch,
    Rollout,
    RolloutReader,
    Row,
    StoredThread,
    StoreFault,
    ThreadNotFound,
    ThreadPage,
    ThreadQuery,
    Touched,
    UnreadableSource,
    Unset,
    Unsupported,
    by_rollout_id,
    within,
)
from codex_checkpoints.storage.index import Index
from codex_checkpoints.storage.rollout_file import id_of, lines_of


def current(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the row of the newest readable rollout of each thread, by thread id.

    One without a head comes last: a new segment does not count before its first line is whole.
    """
    newest: dict[str, Row] = {}
    for row in rows:
        if row.error is not None:
            continue
        other = newest.get(row.session_id)
        if other is None or _order(row) > _order(other):
            newest[row.session_id] = row
    return newest


def _order(row: Row) -> tuple[bool, tuple[object, ...]]:
    return row.has_head, age(row.rollout)


def age(rollout: Rollout) -> tuple[bool, str, bool, bool, str]:
    """Return the key that sorts the rollouts of a thread, the current one last."""
    # Segments carry a UUIDv7; the first one carries the thread's own id, which may be of any kind.
    later = rollout.rollout_id != rollout.thread_id
    return later, rollout.rollout_id, not rollout.archived, not rollout.compressed, rollout.path


LineageRefs = tuple[str | None, str | None, str | None]
"""The rollout that a session is based on, the thread it is a fork of, and its parent thread."""


def is_referred_to(rollout: Rollout, others: Iterable[LineageRefs]) -> bool:
    """Return whether another one is based on a rollout, a fork of its thread or its subagent."""
    return any(
        base in {rollout.rollout_id, rollout.thread_id} or rollout.thread_id in {fork, parent}
        for base, fork, parent in others
    )


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows newest first, then by thread id."""
    by_id = sorted(rows, key=lambda row: row.session_id)
    return sorted(by_id, key=lambda row: row.at, reverse=True)  # a stable sort keeps their order


def page(
    rows: Sequence[Row], query: ThreadQuery, name_of: Callable[[Row], str | None]
) -> tuple[Sequence[Row], int, str | None]:
    """Return the rows of a page, how many that fit the query follow, and the next page's cursor.

    `rows` are in order.  A cursor names the last row of a page, so rows that come or go do not
    shift it.  Raises `BadQuery`.
    """
    if query.limit is not None and query.limit < 0:
        raise BadQuery("limit must not be negative", "limit")
    if query.cursor is not None:
        stamp, thread_id = _place_in_list(query.cursor)
        later = (row for row in rows if row.at <= stamp)  # newest first, then by id
        rows = [row for row in later if row.at < stamp or row.session_id > thread_id]
    rows = [row for row in rows if row.archived == query.archived]
    # A scratch session is archived after its summary and hidden; a leftover one is shown.
    rows = [row for row in rows if not ((row.scratch and row.archived) or row.is_blank)]
    if query.cwd is not None:
        below = within(query.cwd)
        rows = [row for row in rows if row.folder and below(row.folder)]
    if query.outside:
        left_out = [within(folder) for folder in query.outside]
        rows = [row for row in rows if not any(below(row.folder) for below in left_out)]
    if query.search:
        wanted = query.search.casefold()

        def is_meant(row: Row) -> bool:
            texts = (name_of(row) or row.first_text, row.task, row.folder, row.session_id)
            return wanted in "\n".join(text for text in texts if text).casefold()

        rows = [row for row in rows if is_meant(row)]
    shown = rows if query.limit is None else rows[: query.limit]
    left = len(rows) - len(shown)
    if not shown or left == 0:
        return shown, left, None
    last = orjson.dumps([shown[-1].at, shown[-1].session_id])
    return shown, left, urlsafe_b64encode(last).decode()


def head(reader: RolloutReader, path: str) -> SessionMeta | None:
    """Return the head of a rollout, None if its first line is not one."""
    return head_of(reader.first_line(path))


def _place_in_list(cursor: str) -> tuple[str, str]:
    with contextlib.suppress(ValueError):
        match orjson.loads(urlsafe_b64decode(cursor.encode())):
            case [str(stamp), str(thread_id)]:
                return stamp, thread_id
            case _:
                pass
    raise BadQuery("the cursor is not one of ours", "cursor")


Lock = TypeVar("Lock")
"""The right to write to one thread."""


class RolloutStore(ABC, Generic[Lock]):
    """Histories of threads, and rows about them; used by one thread of execution.

    It keeps histories and the readers' reports of them.  It does not interpret a history (STO-14):
    a reader reports its meaning in a patch, as a person's changes are (STO-4).  Existing bytes are
    never changed (STO-16).  Subclasses supply the bytes: they implement the abstract methods
    here, and the private ones under the right to write.
    """

    reader: RolloutReader
    place: str
    """Where the store is, for a person."""
    watched: tuple[str, ...] = ()
    """The folders to watch, with everything below."""

    def __init__(self, index: Index) -> None:
        self.index = index
        """Our cache on this machine: the rows, and beside them the states of readers."""
        self._rows: dict[str, Row] | None = None
        self._current: dict[str, Row] | None = None
        self._ordered: list[Row] | None = None

    # histories

    def create_thread(self, new: NewThread, at: datetime) -> Rollout:
        """Publish a thread atomically; durable and visible to Codex when this returns.

        Raises `Conflict` if the id exists already, `StorageFailed`, and `Unsupported` for a head or
        a line that Codex would refuse, and for an id that is not a UUID in lower case.
        """
        thread_id = id_of(new)
        if self._rollouts_of(thread_id):
            raise Conflict("it exists already")
        return self._publish(thread_id, lines_of(new, at), at)

    def append_items(
        self,
        thread_id: str,
        items: Sequence[HistoryItem | Copied],
        at: datetime,
        expected: str | None = None,
    ) -> Appended:
        """Append to the current rollout in order, as given (STO-2); durable on return.

        `expected` is the version on which the caller decided.  Raises `ThreadNotFound`,
        `ThreadIsLive`, `Conflict` (not as expected), `StorageFailed`, `UnreadableSource` for a
        packed rollout that is damaged, and `Unsupported` for an archived thread, for a history that
        Codex would not resume, for a line that would not continue it, and for a second head.
        """
        if any(map(is_head, items)):
            raise Unsupported(
                "a session has one head; Codex ignores everything before a second one"
            )
        with self._writing(thread_id) as lock:
            rollout = self._newest(thread_id)
            if expected is not None and rollout.version != expected:
                raise Conflict("the session has grown since it was read")
            refuse_archived(rollout)
            return self._append(rollout, items, at, lock, expected)

    @abstractmethod
    def check_append(self, thread_id: str) -> None:
        """Raise as `append_items` would; a packed rollout is checked when it is unpacked."""

    # existing rollouts and threads

    @abstractmethod
    def rollouts(self) -> Mapping[str, Rollout]:
        """Search for rollouts; return them by path."""

    def has_moved(self) -> bool:
        """Return whether rollouts may have come or gone since the last call.

        One that only grew or was rewritten is for `stat`.
        """
        return True

    def places(self) -> Mapping[str, str]:
        """Return the paths of rollouts by their ids, without reading any file."""
        return by_rollout_id(self.rollouts().values())

    def stat(self, paths: Iterable[str]) -> Mapping[str, Rollout | None]:
        """Return rollouts as they are now, in both forms; None for a path without one."""
        now = self.rollouts()
        return {path: now.get(path) for path in paths}

    def is_unchanged(self, rollout: Rollout) -> bool:
        """Return whether a rollout is unchanged, if none came or went."""
        return self.rollouts().get(rollout.path) == rollout

    @abstractmethod
    def has_only_grown(self, old: Rollout, new: Rollout) -> bool:
        """Return whether two states of a rollout differ at most by bytes at the end.

        The store compares no bytes: a reader notices other ones by its `Mark`.
        """

    def rollout_at(self, path: str) -> Rollout:
        """Check a rollout anywhere; raises `UnreadableSource`."""
        rollout = self.rollouts().get(path)
        if rollout is None:
            raise UnreadableSource("there is no such rollout")
        return rollout

    def beside(self, _path: str, /) -> Mapping[str, str]:
        """Return by id the paths of the rollouts in the same folder."""
        return {}

    def rows(self) -> dict[str, Row]:
        """Return all rows by path."""
        if self._rows is None:
            self._rows = self.index.rows()
        return self._rows

    def current(self) -> Mapping[str, Row]:
        """Return the row of the current rollout of each thread that can be read, by thread id."""
        if self._current is None:
            self._current = current(self.rows().values())
        return self._current

    @abstractmethod
    def live_threads(self) -> frozenset[str]:
        """Return the threads that another process has loaded now."""

    @abstractmethod
    def name_of(self, row: Row) -> str | None:
        """Return the name of the thread of a row, as it was given: untrusted text."""

    def read_thread(self, thread_id: str) -> StoredThread:
        """Return one thread; raises `ThreadNotFound`."""
        row = self._row_of(thread_id)
        return StoredThread(row, self.name_of(row), self._is_live(thread_id))

    def list_threads(self, query: ThreadQuery) -> ThreadPage:
        """Return the threads that fit; raises `BadQuery` for a bad limit or cursor."""
        if self._ordered is None:
            self._ordered = ordered(self.current().values())
        name_of, live = self._names(), self.live_threads()
        rows, left, cursor = page(self._ordered, query, name_of)
        items = tuple(StoredThread(row, name_of(row), row.session_id in live) for row in rows)
        return ThreadPage(items, left, cursor)

    # metadata

    def update_thread_metadata(self, patches: Iterable[tuple[str, Patch]]) -> None:
        """Apply patches, each to a thread id: the only way metadata is written (STO-3).

        Names are durable when this returns; rows may be lost with the index.  Raises
        `ThreadNotFound` for a name of an unknown thread, `StorageFailed` if a name cannot be
        written.
        """
        patches = tuple(patches)
        named = [
            (self._row_of(who), patch.name, patch.listed)
            for who, patch in patches
            if not isinstance(patch.name, Unset)
        ]
        for row, name, listed in named:
            self._give_name(row, name, listed=listed)
        found = [patch.row for _, patch in patches if isinstance(patch.row, Row)]
        gone = [patch.of for _, patch in patches if patch.row is None and patch.of is not None]
        if found or gone:
            self.index.put(found, gone)
            rows = self.rows()
            for path in gone:
                rows.pop(path, None)
            rows |= {row.path: row for row in found}
            self._current = self._ordered = None

    # lifecycle

    def archive_thread(self, thread_id: str) -> Rollout:
        """Archive all rollouts of a thread; done when this returns.

        Called again, it finishes an interrupted call.  Raises `ThreadNotFound`, `ThreadIsLive`,
        `Conflict` (it is archived already), `Unsupported`, `StorageFailed`.
        """
        return self._move(thread_id, archived=True)

    def unarchive_thread(self, thread_id: str) -> Rollout:
        """Put an archived thread back; raises as `archive_thread`."""
        return self._move(thread_id, archived=False)

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread that we made and that nothing refers to; its name stays on record.

        Raises `ThreadNotFound`, `ThreadIsLive`, `UnreadableSource`, `StorageFailed`, and `Conflict`
        if it is not ours, has gone on in a later rollout, or is or may be referred to.
        """
        with self._writing(thread_id) as lock:
            rollout, *later = self._present(thread_id)
            if later:
                raise Conflict("the session has gone on in a later file")
            made_by = head(self.reader, rollout.path)
            if made_by is None or made_by.originator != OURS:
                raise Conflict("only sessions that codex-checkpoints made are deleted")
            if is_referred_to(rollout, self._lineage(rollout.path)):
                raise Conflict("another session builds on this one or works for it")
            self._remove(rollout, lock)
        self.update_thread_metadata([(thread_id, Patch(row=None, of=rollout.path))])

    # surroundings

    def touched(self, paths: Iterable[str]) -> Touched:
        """Return the possible effect of changes at some paths."""
        return Touched(frozenset(), everything=False, lives=False, foreign=frozenset(paths))

    def faults(self) -> tuple[StoreFault, ...]:
        """Return the defects of the store."""
        return ()

    def close(self) -> None:
        """Release all resources."""
        self.index.close()

    # under the right to write

    @abstractmethod
    def _rollouts_of(self, thread_id: str) -> Iterable[Rollout]: ...

    @abstractmethod
    def _publish(self, thread_id: str, lines: Iterable[bytes], at: datetime) -> Rollout: ...

    @abstractmethod
    def _writing(self, thread_id: str) -> AbstractContextManager[Lock]: ...

    @abstractmethod
    def _append(
        self,
        rollout: Rollout,
        items: Sequence[HistoryItem | Copied],
        at: datetime,
        lock: Lock,
        expected: str | None,
    ) -> Appended: ...

    @abstractmethod
    def _put(self, rollout: Rollout, lock: Lock, *, archived: bool) -> None: ...

    @abstractmethod
    def _remove(self, rollout: Rollout, lock: Lock) -> None: ...

    @abstractmethod
    def _give_name(self, row: Row, name: str | None, *, listed: bool) -> None: ...

    def _all(self) -> Mapping[str, Rollout]:
        return self.rollouts()

    def _names(self) -> Callable[[Row], str | None]:
        return self.name_of

    def _is_live(self, thread_id: str) -> bool:
        return thread_id in self.live_threads()

    def _present(self, thread_id: str) -> list[Rollout]:
        """Search for the rollouts of a thread, the current one last; raises `ThreadNotFound`."""
        own = sorted(self._rollouts_of(thread_id), key=age)
        if not own:
            raise ThreadNotFound("there is no such session")
        return own

    def _newest(self, thread_id: str) -> Rollout:
        return self._present(thread_id)[-1]

    def _row_of(self, thread_id: str) -> Row:
        return self.current().get(thread_id) or Row(self._newest(thread_id), thread_id)

    def _move(self, thread_id: str, *, archived: bool) -> Rollout:
        with self._writing(thread_id) as lock:
            own = self._present(thread_id)
            if own[-1].archived == archived:
                raise Conflict(f"the session is {'archived' if archived else 'active'} already")
            # All of them, as Codex does; the current one last, so that a call after a kill in
            # between can finish.
            for rollout in own:
                if rollout.archived != archived:
                    self._put(rollout, lock, archived=archived)
        return self._newest(thread_id)

    def _lineage(self, without: str) -> Iterator[LineageRefs]:
        """Yield the references of every other rollout."""
        rows = self.rows()
        for path, file in self._all().items():
            row = rows.get(path)
            if path == without:
                continue
            if row is not None and row.rollout.version == file.version and row.error is None:
                yield row.base_rollout, row.forked_from, row.parent_session
                continue
            try:
                own = head(self.reader, path)
            except UnreadableSource as error:
                raise Conflict("a session that cannot be read may build on this one") from error
            if own is not None:
                base = own.base.rollout_id if own.base else None
                yield base, own.forked_from, own.parent_session


ThreadStore = RolloutStore[Any]
"""A store, wherever the bytes are."""


def is_head(item: HistoryItem | Copied) -> bool:
    """Return whether an item is a `session_meta`."""
    if isinstance(item, HistoryItem):
        return item.type == "session_meta"
    return object_of(load(item.line)).get("type") == "session_meta"


def refuse_archived(rollout: Rollout) -> None:
    """Raise `Unsupported` for a rollout that cannot be continued."""
    if rollout.archived:
        raise Unsupported("an archived session is not continued; unarchive it first")
