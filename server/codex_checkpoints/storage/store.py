"""What stores have in common, wherever the bytes are; `contract.ThreadStore` says what it does.

A store finds its rollouts and changes one at a time.  Which rollout is current, what fits a query
and what is refused is decided here.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Generic, TypeVar

import orjson

from codex_checkpoints.core.rollout.fields import load, object_of
from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.storage.contract import (
    OURS,
    Appended,
    BadQuery,
    Conflict,
    Copied,
    Item,
    Look,
    Patch,
    Rollout,
    RolloutReader,
    Row,
    StoredThread,
    ThreadNotFound,
    ThreadPage,
    ThreadQuery,
    UnreadableSource,
    Unset,
    Unsupported,
    is_windows_path,
)
from codex_checkpoints.storage.index import Index


def current(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the row of the newest readable rollout of each thread, by thread id."""
    newest: dict[str, Row] = {}
    for row in rows:
        if row.error is not None:
            continue
        other = newest.get(row.session_id)
        if other is None or age(row.rollout) > age(other.rollout):
            newest[row.session_id] = row
    return newest


def age(rollout: Rollout) -> tuple[bool, str, bool, bool, str]:
    """Return the key that sorts the rollouts of a thread, the current one last."""
    # Segments carry a UUIDv7; the thread's own id, which the first one carries, may be of any kind.
    later = rollout.rollout_id != rollout.thread_id
    return later, rollout.rollout_id, not rollout.archived, not rollout.compressed, rollout.path


Named = tuple[str | None, str | None, str | None]
"""The rollout that a session is based on, the thread it is a fork of, and its parent thread."""


def is_referred_to(rollout: Rollout, others: Iterable[Named]) -> bool:
    """Return whether one of others is based on a rollout, a fork of its thread or its subagent."""
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
) -> tuple[Sequence[Row], str | None]:
    """Return the rows that fit a query, of rows in order, and the cursor of the next page.

    A cursor names the last row of a page, so rows that come or go do not shift it.  Raises
    `BadQuery`.
    """
    if query.limit is not None and query.limit < 0:
        raise BadQuery("limit must not be negative", "limit")
    if query.cursor is not None:
        stamp, thread_id = _place_in_list(query.cursor)
        later = (row for row in rows if row.at <= stamp)  # newest first, then by id
        rows = [row for row in later if row.at < stamp or row.session_id > thread_id]
    rows = [row for row in rows if row.archived == query.archived]
    # A scratch session is archived after its summary and hidden; one that is left is shown.
    rows = [row for row in rows if not (row.scratch and row.archived)]
    if query.cwd is not None:
        below = _below(query.cwd)
        rows = [row for row in rows if row.cwd is not None and below(row.cwd)]
    if query.outside:
        left_out = [_below(folder) for folder in query.outside]
        rows = [row for row in rows if not any(below(row.cwd or "") for below in left_out)]
    if query.search:
        wanted = query.search.casefold()
        rows = [row for row in rows if wanted in _searchable(row, name_of(row))]
    shown = rows if query.limit is None else rows[: query.limit]
    more = len(rows) > len(shown) and shown
    return shown, _to_cursor([shown[-1].at, shown[-1].session_id]) if more else None


def _searchable(row: Row, name: str | None) -> str:
    texts = (name or row.first_text, row.task, row.cwd, row.session_id)
    return "\n".join(text for text in texts if text).casefold()


def _below(folder: str) -> Callable[[str], bool]:
    """Return a test whether a path is this folder or lies below it."""
    windows, above = is_windows_path(folder), _plain(folder)
    inside = f"{above}/"

    def test(path: str) -> bool:
        if is_windows_path(path) != windows:
            return False
        plain = _plain(path)
        return plain == above or plain.startswith(inside)

    return test


def _plain(path: str) -> str:
    """Return a folder for comparison: without its last slash; one of Windows without case."""
    if is_windows_path(path):
        return path.replace("\\", "/").rstrip("/").casefold()
    return path.rstrip("/")


def head(reader: RolloutReader, path: str) -> SessionMeta | None:
    """Return the head of a rollout, None where its first line is none."""
    return head_of(reader.first_line(path))


def _to_cursor(place: object) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - few read by pages

    return urlsafe_b64encode(orjson.dumps(place)).decode()


def _place_in_list(cursor: str) -> tuple[str, str]:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

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
    """A store of rollouts; the heirs add where they are."""

    reader: RolloutReader

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows: dict[str, Row] | None = None
        self._current: dict[str, Row] | None = None
        self._ordered: list[Row] | None = None

    @abstractmethod
    def live_threads(self) -> frozenset[str]: ...

    @abstractmethod
    def name_of(self, row: Row) -> str | None: ...

    @abstractmethod
    def rollouts(self) -> Mapping[str, Rollout]: ...

    def _all(self) -> Mapping[str, Rollout]:
        return self.rollouts()

    @abstractmethod
    def _rollouts_of(self, thread_id: str) -> Iterable[Rollout]: ...

    @abstractmethod
    def _writing(self, thread_id: str) -> AbstractContextManager[Lock]: ...

    @abstractmethod
    def _append(
        self,
        rollout: Rollout,
        items: Sequence[Item | Copied],
        at: datetime,
        lock: Lock,
        expected: Look | None,
    ) -> Appended: ...

    @abstractmethod
    def _put(self, rollout: Rollout, lock: Lock, *, archived: bool) -> None: ...

    @abstractmethod
    def _remove(self, rollout: Rollout, lock: Lock) -> None: ...

    @abstractmethod
    def _give_name(self, row: Row, name: str | None, *, listed: bool) -> None: ...

    def _names(self) -> Callable[[Row], str | None]:
        return self.name_of

    def _is_live(self, thread_id: str) -> bool:
        return thread_id in self.live_threads()

    def append_items(
        self,
        thread_id: str,
        items: Sequence[Item | Copied],
        at: datetime,
        expected: Look | None = None,
    ) -> Appended:
        if any(map(is_head, items)):
            raise Unsupported("a session has one head; behind a second Codex forgets all before it")
        with self._writing(thread_id) as lock:
            rollout = self._newest(thread_id)
            if expected is not None and rollout.look != expected:
                raise Conflict("the session has gone on since it was looked at")
            refuse_archived(rollout)
            return self._append(rollout, items, at, lock, expected)

    def rows(self) -> dict[str, Row]:
        if self._rows is None:
            self._rows = self._index.rows()
        return self._rows

    def current(self) -> Mapping[str, Row]:
        if self._current is None:
            self._current = current(self.rows().values())
        return self._current

    def read_thread(self, thread_id: str) -> StoredThread:
        row = self._row_of(thread_id)
        return StoredThread(row, self.name_of(row), self._is_live(thread_id))

    def list_threads(self, query: ThreadQuery) -> ThreadPage:
        if self._ordered is None:
            self._ordered = ordered(self.current().values())
        name_of, live = self._names(), self.live_threads()
        rows, cursor = page(self._ordered, query, name_of)
        return ThreadPage(
            tuple(StoredThread(row, name_of(row), row.session_id in live) for row in rows), cursor
        )

    def update_thread_metadata(self, patches: Iterable[tuple[str, Patch]]) -> None:
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
            self._index.put(found, gone)
            rows = self.rows()
            for path in gone:
                rows.pop(path, None)
            rows |= {row.path: row for row in found}
            self._current = self._ordered = None

    def recall(self, path: str, fold: str) -> object:
        return self._index.state(path, fold)

    def remember(self, path: str, fold: str, state: object) -> None:
        self._index.put_state(path, fold, state)

    def forget(self, *, path: str = "", fold: str = "") -> None:
        self._index.drop_states(path, fold)

    def archive_thread(self, thread_id: str) -> Rollout:
        return self._move(thread_id, archived=True)

    def unarchive_thread(self, thread_id: str) -> Rollout:
        return self._move(thread_id, archived=False)

    def delete_thread(self, thread_id: str) -> None:
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

    def close(self) -> None:
        self._index.close()

    def _present(self, thread_id: str) -> list[Rollout]:
        """Look for the rollouts of a thread, the current one last; raises `ThreadNotFound`."""
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
            # All of them, as Codex does; the current one last, so that whoever was killed in
            # between can do it again.
            for rollout in own:
                if rollout.archived != archived:
                    self._put(rollout, lock, archived=archived)
        return self._newest(thread_id)

    def _lineage(self, without: str) -> Iterator[Named]:
        """Yield of every other rollout what it names."""
        rows = self.rows()
        for path, file in self._all().items():
            row = rows.get(path)
            if path == without:
                continue
            if row is not None and row.rollout.look == file.look and row.error is None:
                yield row.base_rollout, row.forked_from, row.parent_session
                continue
            try:
                own = head(self.reader, path)
            except UnreadableSource as error:
                raise Conflict("a session that cannot be read may build on this one") from error
            if own is not None:
                base = own.base.rollout_id if own.base else None
                yield base, own.forked_from, own.parent_session


def is_head(item: Item | Copied) -> bool:
    """Return whether an item is a `session_meta`."""
    if isinstance(item, Item):
        return item.type == "session_meta"
    return object_of(load(item.line)).get("type") == "session_meta"


def refuse_archived(rollout: Rollout) -> None:
    """Raise `Unsupported` for a rollout that is not continued."""
    if rollout.archived:
        raise Unsupported("an archived session is not continued; unarchive it first")
