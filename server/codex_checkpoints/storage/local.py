"""The store of a Codex home: rollouts in files, what readers found in them in SQLite (STO-9).

The files are the truth.  The index remembers what readers found, so that a list reads no file; an
index that is absent, old, damaged or locked is filled again.  `contract.ThreadStore` says what the
methods do.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime

from codex_checkpoints import logs
from codex_checkpoints.storage import locks, tree, writer
from codex_checkpoints.storage import query as queries
from codex_checkpoints.storage.contract import (
    Appended,
    Conflict,
    Copied,
    Fault,
    Item,
    Look,
    NewThread,
    Rollout,
    Row,
    StorageFailed,
    ThreadIsLive,
    Touched,
    UnreadableSource,
    Unsupported,
)
from codex_checkpoints.storage.index import Index, is_storable
from codex_checkpoints.storage.lines import id_of, is_thread_id, lines_of
from codex_checkpoints.storage.names import GivenNames
from codex_checkpoints.storage.rollout_file import FileReader
from codex_checkpoints.storage.store import RolloutStore, refuse_archived


class LocalThreadStore(RolloutStore[locks.WriterLock]):
    """The threads of one Codex home; `contract.ThreadStore` for files."""

    def __init__(self, codex_home: str, state_dir: str, clock: Callable[[], str]) -> None:
        """Open the index below `state_dir`; `clock` returns the time, UTC, ISO 8601."""
        super().__init__(Index(os.path.join(state_dir, "index.sqlite"), codex_home))
        self.codex_home = self.place = codex_home
        self.watched = tree.watched(codex_home)
        self.reader = FileReader()
        self._nursery = state_dir
        self._given = GivenNames(codex_home, state_dir, clock)
        self._unnamable: tuple[str, ...] = ()
        self._stamps: dict[str, int] = {}

    def create_thread(self, new: NewThread, at: datetime) -> Rollout:
        thread_id = id_of(new)
        if self._rollouts_of(thread_id):
            raise Conflict("it exists already")
        path = self._in_sight(tree.place_of(self.codex_home, thread_id, at))
        writer.publish(path, lines_of(new, at), self._nursery)
        return self._seen(path)

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
        found = tree.scan(self.codex_home)
        self._unnamable = tuple(path for path in found if not is_storable(path))
        for path in self._unnamable:
            del found[path]
        return found

    def has_moved(self) -> bool:
        moved = tree.have_moved(self._stamps)
        if moved:
            self._stamps = tree.stamps(self.codex_home, time.time_ns())
        return moved

    def places(self) -> Mapping[str, str]:
        found = tree.places(self.codex_home)
        return {rollout_id: path for rollout_id, path in found.items() if is_storable(path)}

    def look(self, paths: Iterable[str]) -> Mapping[str, Rollout | None]:
        active, archived = (root + os.sep for root in tree.roots(self.codex_home))
        found: dict[str, Rollout | None] = {}
        asked = {form for path in paths for form in tree.forms(path)}
        for path in filter(is_storable, asked):
            found[path] = None
            if path.startswith((active, archived)):
                file = tree.find(path, archived=path.startswith(archived))
                # Of two forms the plain one counts.
                is_twin = path.endswith(".zst") and os.path.exists(path.removesuffix(".zst"))
                found[path] = None if is_twin else file
        return found

    def rollout_at(self, path: str) -> Rollout:
        try:
            return tree.named(path)
        except OSError as error:
            raise UnreadableSource(error.strerror or str(error)) from error
        except ValueError as error:
            raise UnreadableSource("no file can have this name") from error

    def beside(self, path: str) -> Mapping[str, str]:
        return tree.beside(path)

    def live_threads(self) -> frozenset[str]:
        return locks.live_threads(self.codex_home)

    def name_of(self, row: Row) -> str | None:
        return self._given.of(row)

    def touched(self, paths: Iterable[str]) -> Touched:
        return tree.touched(self.codex_home, paths)

    def faults(self) -> tuple[Fault, ...]:
        found = [*tree.faults(self.codex_home)]
        if self._index.fallback is not None:
            found.append(Fault("index_unavailable", self._index.path, self._index.fallback))
        if self._unnamable:
            found.append(Fault("unnamable", self._unnamable[0], count=len(self._unnamable)))
        return tuple(found)

    def clear_leftovers(self) -> int:
        """Remove temporary files that killed processes left; return how many."""
        return writer.clear_leftovers(self._nursery, self.codex_home)

    def _all(self) -> Mapping[str, Rollout]:
        return tree.scan(self.codex_home)

    def _rollouts_of(self, thread_id: str) -> list[Rollout]:
        own = tree.scan(self.codex_home, thread_id)
        known = (row.path for row in self.rows().values() if row.session_id == thread_id)
        # A file may be of another thread than its name says.
        own |= {path: file for path, file in self.look(known).items() if file is not None}
        return [own[path] for path in filter(is_storable, own)]

    @contextlib.contextmanager
    def _writing(self, thread_id: str) -> Generator[locks.WriterLock]:
        self._refuse_without_lock(thread_id)
        with locks.hold(self.codex_home, thread_id) as lock:
            yield lock

    def _append(
        self,
        rollout: Rollout,
        items: Sequence[Item | Copied],
        at: datetime,
        lock: locks.WriterLock,
        expected: Look | None,
    ) -> Appended:
        path = rollout.path
        if rollout.compressed:
            path = writer.unpack(path, lock)
            expected = None
        start, end, ordinals = writer.append(path, items, at, lock, expected)
        return Appended(self._seen(path), start, end, ordinals)

    def _put(self, rollout: Rollout, lock: locks.WriterLock, *, archived: bool) -> None:
        target = tree.place_for(self.codex_home, rollout.path, archived=archived)
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
        if tree.is_out_of_sight(self.codex_home, path):
            raise Unsupported("a folder for session files is a link, which is not followed")
        return path

    def _seen(self, path: str) -> Rollout:
        archived = path.startswith(tree.roots(self.codex_home)[1] + os.sep)
        rollout = tree.find(path, archived=archived)
        if rollout is None:
            raise StorageFailed("the session file is gone again")
        return rollout

    def _refuse_without_lock(self, thread_id: str) -> None:
        """Raise for a thread that no lock could be taken for."""
        if not is_thread_id(thread_id):
            self._newest(thread_id)
            raise Unsupported("Codex knows no lock for such a session id")

    def _is_legacy(self, row: Row) -> bool:
        """Return whether Codex keeps the thread's name in its list; others it keeps in SQLite."""
        if row.history_mode is not None:
            return row.history_mode == "legacy"
        own = queries.head(self.reader, row.path)
        return own is not None and not own.paginated


def _touch(path: str) -> None:
    """Let a file count as used now, as Codex does; without the right to it nothing is lost."""
    try:
        os.utime(path)
    except OSError as error:
        logs.warn(__name__, "%s: %s", path, error.strerror)
