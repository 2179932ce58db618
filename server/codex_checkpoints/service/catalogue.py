"""What the sessions are: derives from rollouts what a store then remembers (STO-14).

A rollout that is new or has changed is read, and the store is told what was found, by the one call
that changes metadata (STO-4).  That is done in slices, so that whoever waits can be told how far it
is, change their mind, or be answered in between.  The readers of sessions in use are kept by
`readers`.  What a checkpoint says is not known here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.seed import Seeds, unsown
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.service.pace import PacedReader
from codex_checkpoints.service.readers import Readers
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.rows import row_of, unreadable_row
from codex_checkpoints.service.session_file import SessionFile, open_session, read_with
from codex_checkpoints.threads.contract import (
    Patch,
    Rollout,
    Row,
    ThreadStore,
    UnreadableSource,
)

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Replay)

_SLICE_BYTES = 1 << 25
_SLICE_FILES = 250
_SHORTEST_PREFIX = 8


@frozen
class Progress:
    """How far an index is: files and bytes done, of how many."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int
    changed: frozenset[str]
    """Sessions whose rows changed in this slice."""


class Catalogue:
    """The sessions of one Codex home; owned by one thread."""

    def __init__(self, store: ThreadStore, seeds: Seeds = unsown) -> None:
        """Take what the store was told before; nothing is read yet.

        `seeds` tells what the sessions that we made go on from.
        """
        self.store = store
        self.seeds = seeds
        self.reader = PacedReader(store.reader)
        self._readers = Readers(store, self.reader, seeds)
        self._by_rollout: dict[str, str] = {}

    # --- what there is ---------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """Return where the sessions are, in words for a person."""
        return self.store.place

    def rows(self) -> Mapping[str, Row]:
        """Return the row of every rollout by path, as of the last look."""
        return self.store.rows()

    def is_current(self, row: Row) -> bool:
        """Return whether this is the newest rollout of its session, in this store."""
        newest = self.current().get(row.session_id)
        return newest is not None and newest.path == row.path

    def current(self) -> Mapping[str, Row]:
        """Return the row of the newest rollout of each session, by session id."""
        return self.store.current()

    def title_of(self, row: Row) -> str | None:
        """Return what a session is called: the name it was given, else its first message."""
        return title_of(row, self.store.name_of(row))

    def below(self, row: Row) -> Iterator[str]:
        """Yield the sessions on whose rollouts this one builds, the nearest first."""
        return (base.session_id for base in self._bases(row))

    def weight(self, row: Row) -> int:
        """Return how many bytes whoever reads a session reads, those it builds on included."""
        return sum(each.rollout.size for each in (row, *self._bases(row)))

    def built_on(self, sessions: Iterable[str]) -> set[str]:
        """Return the sessions that build on a rollout of one of these."""
        bases = set(sessions)
        current = self.current().values()
        return {row.session_id for row in current if not bases.isdisjoint(self.below(row))}

    def locate(self, rollout_id: str) -> str | None:
        """Return the path of a rollout by its id."""
        return self._by_rollout.get(rollout_id.lower())

    def locator(self, path: str) -> Callable[[str], str | None]:
        """Return how to find the bases of a file: in the home, then beside the file itself."""
        if path in self.rows():
            return self.locate
        beside = self.store.beside(path)
        return lambda rollout_id: self.locate(rollout_id) or beside.get(rollout_id.lower())

    def find(self, session: str) -> Row:
        """Return the row of a session by id, by a unique prefix of one, or by path.

        Raises `unknown_session`, `ambiguous_session` or `unreadable_source`.
        """
        if _is_path(session):
            return self._find_path(session)
        current = self.current()
        wanted = session.lower()
        if wanted in current:
            return current[wanted]
        if session in current:
            return current[session]
        if len(session) >= _SHORTEST_PREFIX:
            fitting = sorted(each for each in current if each.lower().startswith(wanted))
            if len(fitting) == 1:
                return current[fitting[0]]
            if fitting:
                message = f"{len(fitting)} sessions begin with {session!r}"
                raise Refusal("ambiguous_session", message, {"candidates": fitting[:20]})
        for row in self.rows().values():
            if row.error is not None and wanted in {row.session_id, row.rollout.thread_id}:
                raise _unreadable(row.path, row.error)
        message = f"no session {session[:80]!r} under {self.place}"
        raise Refusal("unknown_session", message, {"session": session[:200]})

    # --- keeping up ------------------------------------------------------------------------------

    def refresh(self) -> Iterator[Progress]:
        """Bring the index up to date with the folders, a slice at a time.

        Yields after each slice, at least once; stopping early loses nothing that was yielded.
        """
        found = self.store.rollouts()
        new, changed = self._compared(found, [path for path in self.rows() if path not in found])
        self._by_rollout = _by_rollout(found.values())
        # The newest sessions are wanted first.
        new.sort(key=lambda file: -file.mtime_ns)
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
                yield Progress(done, len(new), size, of_bytes, frozenset(changed))
                batch, changed, since = [], set[str](), 0
        self._put(batch)
        yield Progress(done, len(new), size, of_bytes, frozenset(changed))

    def look(self, paths: Iterable[str]) -> set[str]:
        """Look again at some rollouts; return the sessions whose rows changed."""
        seen = self.store.look(paths)
        found = {path: file for path, file in seen.items() if file is not None}
        gone = [path for path, file in seen.items() if file is None and path in self.rows()]
        new, changed = self._compared(found, gone)
        for file in found.values():
            self._by_rollout.setdefault(file.rollout_id, file.path)
        rows: list[Row] = []
        for file in new:
            row = self._read(file)
            changed |= _changed(self.rows().get(file.path), row)
            rows.append(row)
        self._put(rows)
        return changed

    def look_for(self, thread_id: str) -> Row | None:
        """Look at the rollouts of one thread, and at those they build on; return the newest's row.

        Of all others only the names are seen: for whoever asks about one thread and cannot wait.
        """
        places = self.store.places()
        self._by_rollout = dict(places)
        identify = self.reader.identify
        wanted = [path for path in places.values() if identify(path).thread_id == thread_id]
        # What was moved or removed meanwhile is known by its row alone.
        wanted += [row.path for row in self.rows().values() if row.rollout.thread_id == thread_id]
        seen: set[str] = set()
        while wanted:
            seen.update(wanted)
            self.look(wanted)
            rows = (self.rows().get(path) for path in wanted)
            bases = (self.locate(row.base_rollout) for row in rows if row and row.base_rollout)
            wanted = [path for path in bases if path is not None and path not in seen]
        return self.current().get(thread_id)

    def open(self, row: Row) -> SessionFile:
        """Return the session as it is now; raise `unreadable_source` when it cannot be read."""
        session = self.lend(row)
        self._readers.keep(session)
        return session

    def lend(self, row: Row) -> SessionFile:
        """Return the session as `open` does, for who alone reads on with it: it is not kept."""
        session = self._readers.take(row.path) or self._readers.resume(row.path)
        try:
            return (
                open_session(self.reader, row.path, self.locate, seeds=self.seeds)
                if session is None
                else session.read_on(self.locate)
            )
        except UnreadableSource as error:
            raise _unreadable(row.path, str(error)) from error

    def read(self, row: Row, until: int | None = None) -> SessionFile:
        """Read a session afresh, to its end or up to the line at position `until`.

        It may lie outside the store.  Raises `unreadable_source`.
        """
        try:
            locate = self.locator(row.path)
            return open_session(self.reader, row.path, locate, until=until, seeds=self.seeds)
        except UnreadableSource as error:
            raise _unreadable(row.path, str(error)) from error

    def read_with(self, replay: R, row: Row) -> R:
        """Read a session afresh with a replay of the caller's, for what no state keeps."""
        try:
            locate = self.locator(row.path)
            opened = read_with(replay, self.reader, row.path, locate, self.seeds)
        except UnreadableSource as error:
            raise _unreadable(row.path, str(error)) from error
        return replay.with_tail(opened.tail) if opened.tail else replay

    def close(self) -> None:
        """Save what would be slow to read again, and let go of the store."""
        self._readers.save_all()
        self.store.close()

    # --- inside ----------------------------------------------------------------------------------

    def _compared(
        self, found: Mapping[str, Rollout], gone: list[str]
    ) -> tuple[list[Rollout], set[str]]:
        """Forget the files that are gone; return those to be read, and the sessions concerned."""
        known = self.rows()
        changed = {known[path].session_id for path in gone}
        lost = {known[path].rollout_id for path in gone}
        new: dict[str, Rollout] = {}
        come: set[str] = set()
        for path, file in found.items():
            old = known.get(path)
            # What could not be read may be readable now: rights do not show in a look.
            if old is None or old.rollout != file or old.error is not None:
                new[path] = file
            if old is None or _is_replaced(old.rollout, file):
                come.add(file.rollout_id)
        # Who builds on a file that came, went or was replaced is read anew; a move changes nothing.
        self._forget(gone)
        for row in self._built_on(lost ^ come):
            file = found.get(row.path) or self.store.look([row.path])[row.path]
            if file is not None:
                self._doubt(row)
                new[row.path] = file
        return list(new.values()), changed

    def _bases(self, row: Row) -> Iterator[Row]:
        """Yield the rollouts that this one builds on, the nearest first."""
        seen = {row.path}
        step: Row | None = row
        while step is not None and step.base_rollout is not None:
            path = self.locate(step.base_rollout)
            if path is None or path in seen:
                return
            seen.add(path)
            step = self.rows().get(path)
            if step is not None:
                yield step

    def _built_on(self, rollouts: set[str]) -> list[Row]:
        if not rollouts:
            return []
        by_rollout = {row.rollout_id: row for row in self.rows().values()}
        building: list[Row] = []
        for row in self.rows().values():
            step: Row | None = row
            seen: set[str] = set()
            while step is not None and step.base_rollout is not None and step.path not in seen:
                if step.base_rollout in rollouts:
                    building.append(row)
                    break
                seen.add(step.path)
                step = by_rollout.get(step.base_rollout)
        return building

    def _put(self, rows: list[Row]) -> None:
        self._tell((row.session_id, Patch(row=row)) for row in rows)

    def _tell(self, patches: Iterable[tuple[str, Patch]]) -> None:
        """Tell the store what was derived, at once what was found at once."""
        patches = tuple(patches)
        if patches:
            self.store.update_thread_metadata(patches)

    def _forget(self, paths: list[str]) -> None:
        """Forget rollouts that are gone."""
        gone = [self.rows()[path] for path in paths]
        self._tell((row.session_id, Patch(row=None, of=row.path)) for row in gone)
        lost: set[str] = set()
        for row in gone:
            self._readers.let_go(row.path)
            if self._by_rollout.get(row.rollout_id) == row.path:
                del self._by_rollout[row.rollout_id]
                lost.add(row.rollout_id)
        for row in self.rows().values() if lost else ():
            if row.rollout_id in lost:  # an archived twin, or one that is active again
                self._by_rollout.setdefault(row.rollout_id, row.path)

    def _doubt(self, row: Row) -> None:
        """Have a rollout read again by whoever comes first, though it has not changed itself."""
        self._readers.let_go(row.path)
        size, _, identity = row.rollout.look
        unseen = evolve(row.rollout, look=(size, -1, identity))
        self._tell([(row.session_id, Patch(row=evolve(row, rollout=unseen)))])
        self.store.remember(row.path, unseen.look, None)

    def _read(self, file: Rollout) -> Row:
        known = file.path in self.rows()
        reader = self._readers.take(file.path)
        try:
            if reader is None and known:
                reader = self._readers.resume(file.path)
            session = (
                open_session(self.reader, file.path, self.locate, seeds=self.seeds)
                if reader is None
                else reader.read_on(self.locate)
            )
            row = row_of(file, session)
        except UnreadableSource as error:
            return unreadable_row(file, str(error))
        except Cancelled:
            raise  # it was not read to its end, which says nothing of the file
        except Exception as error:  # noqa: BLE001 - a defect about one file, not the end for all
            logger.error("%s: %s", file.path, type(error).__name__)  # noqa: TRY400 - no content
            return unreadable_row(file, f"a defect of ours, {type(error).__name__}")
        if known:
            self._readers.keep(session)
        else:
            self._readers.pass_by(session)
        return row

    def _find_path(self, path: str) -> Row:
        path = os.path.abspath(path)
        row = self.rows().get(path)
        if row is not None and row.error is None:
            return row
        try:
            rollout = self.store.rollout_at(path)
            opened = open_session(self.reader, path, self.locator(path), seeds=self.seeds)
        except UnreadableSource as error:
            raise _unreadable(path, str(error)) from error
        return row_of(rollout, opened)


def title_of(row: Row, name: str | None) -> str | None:
    """Return what a session is called, when its thread was given this name."""
    return (name and value(name, MAX_VALUE_CHARS)) or row.first_text


def _unreadable(path: str, reason: str) -> Refusal:
    message = f"{path} cannot be read: {reason}"
    return Refusal("unreadable_source", message, {"path": path, "reason": reason})


def _changed(old: Row | None, row: Row) -> set[str]:
    """Return the sessions that a file is about that was read again."""
    if old is None:
        return {row.session_id}
    if row.error is not None and row.error == old.error:
        return set()  # as unreadable as before
    return {old.session_id, row.session_id}


def _is_replaced(old: Rollout, file: Rollout) -> bool:
    """Return whether there is another file now, or one that became shorter."""
    return file.look[2] != old.look[2] or file.size < old.size


def _by_rollout(files: Iterable[Rollout]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for file in files:
        # An active file goes before its archived twin.
        if file.rollout_id not in paths or not file.archived:
            paths[file.rollout_id] = file.path
    return paths


def _is_path(session: str) -> bool:
    return os.sep in session or "/" in session or session.endswith((".jsonl", ".jsonl.zst"))
