"""Keeps the index of sessions: reads new and changed rollouts, and stores their rows (STO-14).

All metadata goes through one call of the store (STO-4).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import Seeds, no_seed
from codex_checkpoints.core.checkpoint.tail_summary import Cut, glance
from codex_checkpoints.core.events import SessionMeta
from codex_checkpoints.service.progress import ProgressReader
from codex_checkpoints.service.reading.derived_cache import DerivedCache, FoldStates
from codex_checkpoints.service.reading.reader_pool import FEW_READERS, ReaderPool
from codex_checkpoints.service.reading.rollout_bases import RolloutBases
from codex_checkpoints.service.reading.session_file import (
    CHECKPOINT,
    ByteSink,
    FoldSpec,
    SessionFile,
    bases_below,
    bytes_between,
    open_session,
)
from codex_checkpoints.service.reading.session_row import (
    problems_of,
    row_of,
    row_of_ends,
    unreadable_row,
)
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.storage.contract import (
    Patch,
    Rollout,
    Row,
    UnreadableSource,
    by_rollout_id,
)
from codex_checkpoints.storage.store import ThreadStore

logger = logging.getLogger(__name__)


_SMALL = 1 << 14
"""A file up to this size in bytes is read completely, which is about as fast as its ends."""
_FROM_A_BASE = 1 << 18
_SLICE_BYTES = 1 << 25
_SLICE_FILES = 250


@frozen
class IndexProgress:
    """The progress of indexing: files and bytes done, and their totals."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int
    changed: frozenset[str]
    """Sessions whose rows changed in this slice."""


class SessionIndex:
    """The sessions of one Codex home; one thread owns it."""

    def __init__(self, store: ThreadStore, states: FoldStates, seeds: Seeds = no_seed) -> None:
        self.store = store
        self.seeds = seeds
        self.reader = ProgressReader(store.reader)
        self.cache = DerivedCache(store, states)
        self._readers = ReaderPool(self.cache, self.reader, seeds)
        self._others: dict[str, ReaderPool] = {}
        """The readers of other folds, by the name of the fold."""
        self.chains = RolloutBases(store)
        self._completed: deque[str] = deque()

    def rows(self) -> Mapping[str, Row]:
        """Return the row of every rollout by path, as of the last check."""
        return self.store.rows()

    def is_current(self, row: Row) -> bool:
        """Return whether this is the newest rollout of its session, in this store."""
        newest = self.current().get(row.session_id)
        return newest is not None and newest.path == row.path

    def current(self) -> Mapping[str, Row]:
        """Return the row of the newest rollout of each session, by session id."""
        return self.store.current()

    def files_of(self, session_id: str) -> list[Row]:
        """Return the readable rollouts of a session, older segments as well."""
        rows = self.rows().values()
        return [row for row in rows if row.session_id == session_id and row.error is None]

    def row_at(self, path: str) -> Row:
        """Return the row of a rollout, also of one outside the home; raises `unreadable_source`."""
        path = os.path.abspath(path)
        row = self.rows().get(path)
        if row is not None and row.error is None:
            return row
        with reading_file(path):
            rollout = self.store.rollout_at(path)
            locate = self.chains.locator(path)
            opened = open_session(self.reader, path, locate, seeds=self.seeds)
            return row_of(rollout, opened)

    def refresh(self) -> Iterator[IndexProgress]:
        """Update the index from the folders, a slice at a time.

        Yields after each slice, at least once; an early stop keeps the yielded slices.
        """
        found = self.store.rollouts()
        self.chains.begin(by_rollout_id(found.values()))
        new, changed = self._compared(found, [path for path in self.rows() if path not in found])
        # Read the newest sessions first.
        new.sort(key=lambda file: -file.modified_ns)
        of_bytes = sum(file.size for file in new)
        done = size = since = 0
        batch: list[Row] = []
        for file in new:
            old = self.rows().get(file.path)
            row = self._read(file)
            batch.append(row)
            changed |= _changed(old, row)
            done, size, since = done + 1, size + file.size, since + file.size
            if since >= _SLICE_BYTES or len(batch) >= _SLICE_FILES:
                self._put(batch)
                yield IndexProgress(done, len(new), size, of_bytes, frozenset(changed))
                batch, changed, since = [], set[str](), 0
        self._put(batch)
        yield IndexProgress(done, len(new), size, of_bytes, frozenset(changed))

    def refresh_paths(self, paths: Iterable[str]) -> set[str]:
        """Update the rows of some rollouts; return the sessions whose rows changed."""
        seen = self.store.stat(paths)
        found = {path: file for path, file in seen.items() if file is not None}
        gone = [path for path, file in seen.items() if file is None and path in self.rows()]
        new, changed = self._compared(found, gone)
        self.chains.add(found.values())
        rows = [self._read(file) for file in new]
        changed = changed.union(*(_changed(self.rows().get(row.path), row) for row in rows))
        self._put(rows)
        return changed

    def refresh_thread(self, thread_id: str) -> Row | None:
        """Update the rows of one thread and of its bases, and no others; return its row."""
        places = self.store.places()
        self.chains.begin(places)
        identify = self.reader.identify
        wanted = [path for path in places.values() if identify(path).thread_id == thread_id]
        # A file that was moved or removed meanwhile is known only by its row.
        wanted += [row.path for row in self.rows().values() if row.rollout.thread_id == thread_id]
        seen: set[str] = set()
        while wanted:
            seen.update(wanted)
            self.refresh_paths(wanted)
            rows = (self.rows().get(path) for path in wanted)
            bases = [row.base_rollout for row in rows if row and row.base_rollout]
            found = map(self.chains.locate, bases)
            wanted = [path for path in found if path is not None and path not in seen]
        return self.current().get(thread_id)

    def open(self, row: Row, replay: Replay | None = None) -> SessionFile:
        """Return the current session; raise `unreadable_source` if it cannot be read.

        If it has to be read from its beginning, `replay` reads it, with the folds beside it.
        """
        session = self.open_uncached(row, replay)
        self._readers.keep(session)
        return session

    def open_uncached(self, row: Row, replay: Replay | None = None) -> SessionFile:
        """Like `open`, but do not cache the reader."""
        session = self._readers.take(row.path)
        with reading_file(row.path):
            if session is None or not session.moves_on():
                session = self._opened(row.path, replay=replay)
                if not session.replay.exact:
                    session = self._opened(row.path)
        self._complete(row, session)
        return session

    def keep(self, row: Row, session: SessionFile) -> None:
        """Keep a session that `read` has read completely, for others."""
        self._readers.keep(session)
        self._complete(row, session)

    def follow(self, row: Row, by: FoldSpec) -> SessionFile:
        """Return the current session as read by another fold, incrementally; as `open`."""
        session = self.known(row, by)
        if session is None:
            with reading_file(row.path):
                session = self._opened(row.path, by)
            self._others[by.fold].keep(session)
        return session

    def known(self, row: Row, by: FoldSpec) -> SessionFile | None:
        """Like `follow`, but return None if it would be read from its beginning."""
        readers = self._others.get(by.fold)
        if readers is None:
            readers = self._others[by.fold] = ReaderPool(
                self.cache, self.reader, self.seeds, by, FEW_READERS
            )
        session = readers.take(row.path)
        with reading_file(row.path):
            if session is None or not session.moves_on():
                return None
        readers.keep(session)
        return session

    def now(self, row: Row) -> Row:
        """Return the row of the same rollout as of the last check, which may be more complete."""
        return self.rows().get(row.path, row)

    def take_completed(self) -> set[str]:
        """Return, once, the sessions whose rows became more complete by reading them.

        Any thread may call it.
        """
        completed: set[str] = set()
        with contextlib.suppress(IndexError):
            while True:
                completed.add(self._completed.popleft())
        return completed

    def read_whole(self) -> Iterator[IndexProgress]:
        """Read the sessions of which only the ends were read, in slices as `refresh`."""
        rows = [row for row in self.rows().values() if row.is_glance]
        of_bytes = sum(row.rollout.size for row in rows)
        size = 0
        for done, row in enumerate(rows, 1):
            with contextlib.suppress(Refusal):  # the next check reports it
                self._readers.save_if_large(self.open_uncached(row))
            size += row.rollout.size
            yield IndexProgress(done, len(rows), size, of_bytes, frozenset({row.session_id}))

    def read_with(
        self, replay: Replay, row: Row, until: int | None = None, last: int | None = None
    ) -> None:
        """Read a session from its beginning with a replay and further folds.

        It is read to its end, or up to the line at position `until` or the record `last`.
        """
        replay.last = replay.last if last is None else last
        replay.close(self.read(row, until, replay).tail)

    def read(
        self,
        row: Row,
        until: int | None = None,
        replay: Replay | None = None,
        also: ByteSink | None = None,
    ) -> SessionFile:
        """Read a session from its beginning, to its end or up to the line at position `until`.

        `also` gets the bytes of its own file.
        """
        replay = replay or Replay()
        replay.until = replay.until if until is None else until
        locate = self.chains.locator(row.path)
        with reading_file(row.path):
            return open_session(
                self.reader, row.path, locate, replay=replay, seeds=self.seeds, also=also
            )

    def close(self) -> None:
        """Save large sessions, and close the store."""
        for readers in (self._readers, *self._others.values()):
            readers.save_all()
        self.store.close()

    def _compared(
        self, found: Mapping[str, Rollout], gone: list[str]
    ) -> tuple[list[Rollout], set[str]]:
        """Forget the files that are gone; return those to read, and the sessions that lost one."""
        known = self.rows()
        changed = {known[path].session_id for path in gone}
        lost = {known[path].rollout_id for path in gone}
        new: dict[str, Rollout] = {}
        come: set[str] = set()
        for path, file in found.items():
            old = known.get(path)
            if old is None:
                new[path] = file
                come.add(file.rollout_id)
                continue
            is_same = old.rollout == file
            if not is_same or old.must_be_read:
                new[path] = file
            is_grown = is_same or self.store.has_only_grown(old.rollout, file)
            if not (old.has_head and is_grown):
                come.add(file.rollout_id)
        # Files based on a new, lost or replaced file are read again; a move changes nothing.
        self._forget(gone)
        grown = {file.rollout_id for file in new.values()}
        waiting = [*self.chains.built_on(lost ^ come), *self._waiting_for(grown)]
        while waiting:
            row = waiting.pop()
            file = found.get(row.path) or self.store.stat([row.path])[row.path]
            if file is None:
                continue
            if file != row.rollout and row.path not in new:
                waiting += self._waiting_for({row.rollout_id})  # it grew, too
            self._invalidate(row)
            new[row.path] = file
        return list(new.values()), changed

    def _waiting_for(self, rollouts: set[str]) -> list[Row]:
        """Return the rollouts whose base, one of these, was too short when they were read."""
        short = {f"base_short:{each}" for each in rollouts}
        return [
            row
            for row in (self.rows().values() if rollouts else ())
            if row.problems and not short.isdisjoint(problems_of(row))
        ]

    def _complete(self, row: Row, session: SessionFile) -> None:
        """Store the complete row of a session of which at most the ends were read.

        A file's row names its base even before the next check of that.
        """
        known = self.rows().get(row.path)
        if known is not None and (known.is_glance or (session.head and not known.has_head)):
            whole = evolve(row_of(known.rollout, session), outdated=known.outdated)
            self._put([whole])
            self._completed += {known.session_id, whole.session_id}

    def _put(self, rows: list[Row]) -> None:
        self._update([(row.session_id, Patch(row=row)) for row in rows])

    def _update(self, patches: list[tuple[str, Patch]]) -> None:
        if patches:
            self.store.update_thread_metadata(patches)

    def _forget(self, paths: list[str]) -> None:
        gone = [self.rows()[path] for path in paths]
        self._update([(row.session_id, Patch(row=None, of=row.path)) for row in gone])
        for row in gone:
            self._forget_readers(row.path)
        self.chains.forget(gone)

    def _invalidate(self, row: Row) -> None:
        """Mark the row of an unchanged rollout as outdated, so that it is read again."""
        self._forget_readers(row.path)
        self._update([(row.session_id, Patch(row=evolve(row, outdated=True)))])
        self.cache.forget(row.path)

    def _forget_readers(self, path: str) -> None:
        for readers in (self._readers, *self._others.values()):
            readers.forget(path)

    def _read(self, file: Rollout) -> Row:
        old = self.rows().get(file.path)
        reader = self._readers.take(file.path, saved=old is not None)
        try:
            if reader is None and (old is None or old.seq is None):
                row = self._glanced_at(file)
                if row is not None:
                    return row
            if reader is None or not reader.moves_on():
                reader = self._opened(file.path)
            row = row_of(file, reader)
        except UnreadableSource as error:
            return unreadable_row(file, str(error))
        except Cancelled:
            raise  # a partial read proves nothing about the file
        except Exception as error:  # noqa: BLE001 - an error in one file must not stop the others
            logger.error("%s: %s", file.path, type(error).__name__)  # noqa: TRY400 - as in `session_watcher`
            return unreadable_row(file, f"internal error ({type(error).__name__})")
        if old is not None:
            self._readers.keep(reader)
        else:
            self._readers.save_if_large(reader)
        return row

    def _glanced_at(self, file: Rollout) -> Row | None:
        """Return a row from the ends of a rollout; None if the file should be read completely."""
        is_small = file.size <= _SMALL and not file.compressed
        if is_small and b'"history_base"' not in self.reader.first_line(file.path):
            return None
        base = partial(self._beginning_of, file)
        found = self.reader.ends(file.path, lambda front, back: glance(front, back, base))
        if found is None:
            return None
        return row_of_ends(file, found.head.session_id or file.thread_id, found)

    def _beginning_of(self, file: Rollout, head: SessionMeta) -> Cut:
        """Return the beginning of the oldest base of a file, empty if one is missing."""
        chain, problems = bases_below(self.reader, file.path, self.chains.locate)
        if not chain or problems:
            return b"", None
        path, cut = chain[-1]
        below, end = (cut.end_ordinal, None) if head.paginated else (None, cut.end_offset)
        try:
            return bytes_between(self.reader, path, 0, end, _FROM_A_BASE), below
        except UnreadableSource:
            return b"", None

    def _opened(
        self, path: str, by: FoldSpec = CHECKPOINT, replay: Replay | None = None
    ) -> SessionFile:
        return open_session(
            self.reader, path, self.chains.locate, replay=replay, seeds=self.seeds, by=by
        )


def unreadable(path: str, reason: str) -> Refusal:
    """Return the refusal for a rollout that cannot be read."""
    message = f"{path} cannot be read: {reason}"
    return Refusal("unreadable_source", message, {"path": path, "reason": reason})


@contextlib.contextmanager
def reading_file(path: str) -> Generator[None]:
    """Turn a rollout that cannot be read into a refusal."""
    try:
        yield
    except UnreadableSource as error:
        raise unreadable(path, str(error)) from error


def _changed(old: Row | None, row: Row) -> set[str]:
    if old is None:
        return {row.session_id}
    if row.error is not None and row.error == old.error:
        return set()  # still unreadable
    return {old.session_id, row.session_id}
