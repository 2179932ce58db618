"""Stores a Codex home: rollouts in files, the readers' results in SQLite (STO-9).

The files are the truth.  The index caches the readers' results, so that a list reads no file; an
index that is absent, old, damaged or locked is filled again.  `store.RolloutStore` documents the
methods.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Generic, TypeVar

import orjson
from attrs import frozen

from codex_checkpoints.core.fields import is_object, is_storable
from codex_checkpoints.storage import atomic_files, locks, session_files, writer
from codex_checkpoints.storage.contract import (
    Appended,
    Copied,
    HistoryItem,
    Rollout,
    Row,
    StorageFailed,
    StoreFault,
    ThreadIsLive,
    Touched,
    UnreadableSource,
    Unsupported,
    in_text,
)
from codex_checkpoints.storage.index import Index
from codex_checkpoints.storage.journal_lines import lines_in
from codex_checkpoints.storage.rollout_file import FileReader, is_thread_id
from codex_checkpoints.storage.store import RolloutStore, head, refuse_archived

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_THREAD_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")


@frozen
class ThreadName:
    """The name of a thread, and its time; an empty or missing text removes the name."""

    text: str | None
    at: datetime


class _Read(Generic[T]):
    """The content of a file, read again when it changed; `nothing` if it cannot be read."""

    def __init__(self, path: str, read: Callable[[str], T], nothing: T) -> None:
        self.path = path
        self._read = read
        self._nothing = self._found = nothing
        self._version: str | None = None

    def now(self) -> T:
        try:
            version = _version_at(self.path)
            if self._version != version:
                self._found, self._version = self._read(self.path), version
        except (OSError, atomic_files.StorageError):
            self._found, self._version = self._nothing, None
        return self._found


def _codex_names(path: str) -> Mapping[str, ThreadName]:
    """Return the names in Codex's list; the last line of a thread counts."""
    found: dict[str, ThreadName] = {}
    for line in lines_in(path, atomic_files.regular):
        if is_object(line) and isinstance(thread_id := line.get("id"), str):
            name = line.get("thread_name")
            text = name if isinstance(name, str) else None
            found[thread_id] = ThreadName(text, _moment(line.get("updated_at")))
    return found


def _moment(text: object) -> datetime:
    """Return the moment of a time stamp, in milliseconds; 1970 if it is not a time."""
    if isinstance(text, str):
        with contextlib.suppress(ValueError, OverflowError):
            when = datetime.fromisoformat(text)
            when = when.replace(microsecond=when.microsecond // 1000 * 1000)
            return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return _LONG_AGO


def _last_name(path: str) -> ThreadName | None:
    last: ThreadName | None = None
    for line in lines_in(path):
        if is_object(line) and isinstance(name := line.get("name", 0), str | None):
            last = ThreadName(name, _moment(line.get("at")))
    return last


class GivenNames:
    """The names of the threads of one Codex home, and which of several counts (STO-5).

    A name given through a patch is a line of `sessions/<thread>/metadata.jsonl` in the state
    folder; the last line counts (STO-10, STO-11).  A later line of Codex's own
    `session_index.jsonl` takes precedence; a name in the history comes last.

    Codex's list only grows.  A rename of a legacy thread adds one line, as Codex itself would, and
    so does the name of a soft branch, by which `codex resume` finds it.  For a legacy thread Codex
    0.169 uses the list unless it has named the thread itself.  Then it uses its database, which we
    never write, until that is rebuilt.
    """

    def __init__(self, codex_home: str, state_dir: str, clock: Callable[[], str]) -> None:
        """`clock` returns the time at which a name is given: UTC, ISO 8601."""
        self._folder = os.path.join(state_dir, "sessions")
        self._ours: dict[str, _Read[ThreadName | None]] = {}
        self._codex = _Read(os.path.join(codex_home, "session_index.jsonl"), _codex_names, {})
        self._clock = clock

    def of(self, row: Row) -> str | None:
        """Return the name of the thread of a row."""
        return _name_of(row, self._own(row.session_id), self._codex.now().get(row.session_id))

    def all(self) -> Callable[[Row], str | None]:
        """Return a function with the same result for many: it reads each file once, now."""
        codex, ours = self._codex.now(), dict[str, ThreadName | None]()
        with contextlib.suppress(OSError):
            ours = {thread_id: self._own(thread_id) for thread_id in os.listdir(self._folder)}
        return lambda row: _name_of(row, ours.get(row.session_id), codex.get(row.session_id))

    def give(self, thread_id: str, text: str | None, *, legacy: bool) -> None:
        """Name a thread or remove its name, durable on return.

        Codex keeps the name of a legacy thread in its list, where a line is added, and names of
        others in its database, which is never written.  Raises `StorageFailed`, also if that list
        cannot be written: then nothing is.
        """
        if legacy:
            with _refusing("the name is not kept: session_index.jsonl"):
                _check_list(self._codex.path)
        at = self._next_moment(thread_id)
        with _refusing("the name is not kept: metadata.jsonl"):
            path = self._path(thread_id)
            if path is None:
                raise OSError(None, "this session id cannot name a folder")
            line = orjson.dumps({"at": at, "name": text})
            atomic_files.in_folder(path, lambda: atomic_files.append_line(path, line))
        if legacy:
            unseen = "the name is kept, but Codex does not see it: session_index.jsonl"
            with _refusing(unseen):
                self._list(thread_id, text, at)

    def list(self, thread_id: str, text: str) -> None:
        """Name a thread only in Codex's list; raises `StorageFailed`."""
        with _refusing("the name is not kept: session_index.jsonl"):
            self._list(thread_id, text, self._next_moment(thread_id))

    def _next_moment(self, thread_id: str) -> str:
        # If clocks differ, or went back, the new name counts all the same.
        now, before = _moment(self._clock()), self._codex.now().get(thread_id)
        return in_text(now if before is None else max(now, before.at))

    def _list(self, thread_id: str, text: str | None, at: str) -> None:
        line = {"id": thread_id, "thread_name": text or "", "updated_at": at}
        atomic_files.append_line(self._codex.path, orjson.dumps(line), atomic_files.regular)

    def _own(self, thread_id: str) -> ThreadName | None:
        if thread_id not in self._ours:
            if (path := self._path(thread_id)) is None:
                return None
            self._ours[thread_id] = _Read(path, _last_name, None)
        return self._ours[thread_id].now()

    def _path(self, thread_id: str) -> str | None:
        if _THREAD_ID.fullmatch(thread_id) is None:
            return None
        return os.path.join(self._folder, thread_id, "metadata.jsonl")


def _check_list(path: str) -> None:
    """Raise `OSError` if no line could be appended to Codex's list; nothing is written."""
    try:
        os.close(atomic_files.open_to_append(path, opener=atomic_files.regular))
    except FileNotFoundError:
        if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


@contextlib.contextmanager
def _refusing(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{what} cannot be written: {error.strerror or error}") from error


def _name_of(row: Row, ours: ThreadName | None, codex: ThreadName | None) -> str | None:
    if codex is not None and (ours is None or codex.at > ours.at):
        return codex.text or None  # an empty name in Codex's own list clears it
    return row.recorded_name if ours is None else ours.text


def _version_at(path: str) -> str:
    """Return the version of a file; raises `OSError` if there is none."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return session_files.version_of(status)


class LocalThreadStore(RolloutStore[locks.WriterLock]):
    """The threads of one Codex home."""

    def __init__(self, codex_home: str, state_dir: str, clock: Callable[[], str]) -> None:
        """Open the index below `state_dir`; `clock` returns the time, UTC, ISO 8601."""
        super().__init__(Index(os.path.join(state_dir, "index.sqlite"), codex_home))
        self.codex_home = self.place = codex_home
        self.watched = session_files.watched(codex_home)
        self.reader = FileReader()
        self._nursery = state_dir
        self._given = GivenNames(codex_home, state_dir, clock)
        self._stamps: dict[str, int] = {}

    def check_append(self, thread_id: str) -> None:
        self._refuse_without_lock(thread_id)
        rollout = self._newest(thread_id)
        if self._is_live(thread_id):
            raise ThreadIsLive("another process has the session open")
        refuse_archived(rollout)
        locks.check_name(rollout.path, thread_id)
        if not rollout.compressed:
            writer.check(rollout.path, thread_id)

    def rollouts(self) -> Mapping[str, Rollout]:
        found = session_files.scan(self.codex_home)
        return {path: rollout for path, rollout in found.items() if is_storable(path)}

    def has_moved(self) -> bool:
        moved = session_files.have_moved(self._stamps)
        if moved:
            self._stamps = session_files.stamps(self.codex_home, time.time_ns())
        return moved

    def places(self) -> Mapping[str, str]:
        found = session_files.places(self.codex_home)
        return {rollout_id: path for rollout_id, path in found.items() if is_storable(path)}

    def stat(self, paths: Iterable[str]) -> Mapping[str, Rollout | None]:
        active, archived = (root + os.sep for root in session_files.roots(self.codex_home))
        found: dict[str, Rollout | None] = {}
        asked = {form for path in paths for form in session_files.forms(path)}
        for path in filter(is_storable, asked):
            found[path] = None
            if path.startswith((active, archived)):
                file = session_files.find(path, archived=path.startswith(archived))
                # Of two forms the plain one counts.
                is_twin = path.endswith(".zst") and os.path.exists(path.removesuffix(".zst"))
                found[path] = None if is_twin else file
        return found

    def is_unchanged(self, rollout: Rollout) -> bool:
        return session_files.is_unchanged(rollout)

    def has_only_grown(self, old: Rollout, new: Rollout) -> bool:
        return session_files.has_only_grown(old, new)

    def rollout_at(self, path: str) -> Rollout:
        try:
            return session_files.named(path)
        except OSError as error:
            raise UnreadableSource(error.strerror or str(error)) from error
        except ValueError as error:
            raise UnreadableSource("no file can have this name") from error

    def beside(self, path: str, /) -> Mapping[str, str]:
        return session_files.beside(path)

    def live_threads(self) -> frozenset[str]:
        return locks.live_threads(self.codex_home)

    def name_of(self, row: Row) -> str | None:
        return self._given.of(row)

    def touched(self, paths: Iterable[str]) -> Touched:
        return session_files.touched(self.codex_home, paths)

    def faults(self) -> tuple[StoreFault, ...]:
        found = [*session_files.faults(self.codex_home)]
        if self.index.fallback is not None:
            found.append(StoreFault("index_unavailable", self.index.path, self.index.fallback))
        elif (damage := self.index.damage()) is not None:
            reason = "{} ({})".format(*damage)
            found.append(StoreFault("index_remade", self.index.path, reason))
        return tuple(found)

    def clear_leftovers(self) -> int:
        """Remove temporary files that killed processes left; return how many."""
        return writer.clear_leftovers(self._nursery, self.codex_home)

    def _all(self) -> Mapping[str, Rollout]:
        return session_files.scan(self.codex_home)

    def _rollouts_of(self, thread_id: str) -> list[Rollout]:
        own = session_files.scan(self.codex_home, thread_id)
        known = (row.path for row in self.rows().values() if row.session_id == thread_id)
        # A file may belong to another thread than its name says.
        own |= {path: file for path, file in self.stat(known).items() if file is not None}
        return [own[path] for path in filter(is_storable, own)]

    def _publish(self, thread_id: str, lines: Iterable[bytes], at: datetime) -> Rollout:
        path = self._in_sight(session_files.place_of(self.codex_home, thread_id, at))
        writer.publish(path, lines, self._nursery)
        return self._seen(path)

    @contextlib.contextmanager
    def _writing(self, thread_id: str) -> Generator[locks.WriterLock]:
        self._refuse_without_lock(thread_id)
        with locks.hold(self.codex_home, thread_id) as lock:
            yield lock

    def _append(
        self,
        rollout: Rollout,
        items: Sequence[HistoryItem | Copied],
        at: datetime,
        lock: locks.WriterLock,
        expected: str | None,
    ) -> Appended:
        path = rollout.path
        if rollout.compressed:
            path = writer.unpack(path, lock)
            expected = None
        start, end, ordinals = writer.append(path, items, at, lock, expected)
        return Appended(self._seen(path), start, end, ordinals)

    def _put(self, rollout: Rollout, lock: locks.WriterLock, *, archived: bool) -> None:
        target = session_files.place_for(self.codex_home, rollout.path, archived=archived)
        writer.move(rollout.path, self._in_sight(target), lock)
        if not archived:
            _touch(target)

    def _remove(self, rollout: Rollout, lock: locks.WriterLock) -> None:
        writer.remove(rollout.path, lock)

    def _give_name(self, row: Row, name: str | None, *, listed: bool) -> None:
        if listed:
            self._given.list(row.session_id, name or "")
        else:
            self._given.give(row.session_id, name, legacy=self._is_legacy(row))

    def _names(self) -> Callable[[Row], str | None]:
        return self._given.all()

    def _is_live(self, thread_id: str) -> bool:
        return locks.is_live(self.codex_home, thread_id)

    def _in_sight(self, path: str) -> str:
        if session_files.is_out_of_sight(self.codex_home, path):
            raise Unsupported("a folder for session files is a link, which is not followed")
        return path

    def _seen(self, path: str) -> Rollout:
        archived = path.startswith(session_files.roots(self.codex_home)[1] + os.sep)
        rollout = session_files.find(path, archived=archived)
        if rollout is None:
            raise StorageFailed("the session file is gone again")
        return rollout

    def _refuse_without_lock(self, thread_id: str) -> None:
        """Raise for a thread that cannot have a lock."""
        if not is_thread_id(thread_id):
            self._newest(thread_id)
            raise Unsupported("Codex knows no lock for such a session id")

    def _is_legacy(self, row: Row) -> bool:
        """Return whether Codex keeps the thread's name in its list; others it keeps in SQLite."""
        if row.history_mode is not None:
            return row.history_mode == "legacy"
        own = head(self.reader, row.path)
        return own is not None and not own.paginated


def _touch(path: str) -> None:
    """Mark a file as used now, as Codex does; without the right to it nothing is lost."""
    try:
        os.utime(path)
    except OSError as error:
        logger.warning("%s: %s", path, error.strerror)
