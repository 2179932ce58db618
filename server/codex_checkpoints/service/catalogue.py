"""Which sessions there are: the folders against the index, and the readers of those in use.

The index is brought up to date in slices, so that whoever waits can be told how far it is, change
their mind, or be answered in between.  What a checkpoint says is not known here.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import frozen

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.rows import row_of, unreadable_row
from codex_checkpoints.service.session_file import SessionFile, open_session
from codex_checkpoints.threads import rollout_file, tree
from codex_checkpoints.threads.index import Index, Row, is_storable
from codex_checkpoints.threads.names import ThreadNames
from codex_checkpoints.threads.rollout_file import UnreadableSource
from codex_checkpoints.threads.tree import Found

logger = logging.getLogger(__name__)

_SLICE_BYTES = 1 << 25
_SLICE_FILES = 250
_READERS = 32
_SAVED_FROM = 1 << 20
"""From this size on the state of a file in use is saved, and again after as many new bytes."""
_SAVED_AT_ONCE = 1 << 24
"""From this size on it is saved by the first index already: reading it again would be felt."""
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

    def __init__(self, codex_home: str, index: Index) -> None:
        """Take the rows the index has; nothing is read yet."""
        self.codex_home = codex_home
        self.index = index
        self._rows: dict[str, Row] = {}
        self._current: dict[str, Row] | None = None
        self._loaded = False
        self._readers: OrderedDict[str, SessionFile] = OrderedDict()
        self._saved_at: dict[str, int] = {}
        self._names = ThreadNames(os.path.join(codex_home, "session_index.jsonl"))
        self._by_rollout: dict[str, str] = {}
        self.unnamable: tuple[str, ...] = ()
        """Session files that are left out, since nobody could be told their names."""

    # --- what there is ---------------------------------------------------------------------------

    def rows(self) -> Mapping[str, Row]:
        """Return the row of every session file by path, as of the last look."""
        return self._rows

    def is_current(self, row: Row) -> bool:
        """Return whether this is the newest file of its session, in this home."""
        newest = self.current().get(row.session_id)
        return newest is not None and newest.path == row.path

    def current(self) -> Mapping[str, Row]:
        """Return the newest file of each session, by session id."""
        if self._current is None:
            self._current = self._newest()
        return self._current

    def _newest(self) -> dict[str, Row]:
        newest: dict[str, Row] = {}
        for row in self._rows.values():
            if row.error is not None:
                continue
            other = newest.get(row.session_id)
            if other is None or _newer(row, other):
                newest[row.session_id] = row
        return newest

    def name_of(self, row: Row) -> str | None:
        """Return the name the thread was given, by whoever gave it last."""
        given = self._names.all()
        if row.thread_id not in given:
            return row.name
        # An empty name in Codex's own list clears it.
        return value(given[row.thread_id], MAX_VALUE_CHARS) or None

    def locate(self, rollout_id: str) -> str | None:
        """Return the path of a rollout by its id."""
        return self._by_rollout.get(rollout_id.lower())

    def locator(self, path: str) -> Callable[[str], str | None]:
        """Return how to find the bases of a file: in the home, then beside the file itself."""
        if path in self._rows:
            return self.locate
        folder = os.path.dirname(path)
        beside: dict[str, str] = {}
        with contextlib.suppress(OSError):
            beside = {
                name.rollout_id: os.path.join(folder, entry)
                for entry in os.listdir(folder)
                if (name := tree.parse_name(entry)) is not None
            }
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
        for row in self._rows.values():
            if row.error is not None and wanted in {row.session_id, row.thread_id}:
                raise _unreadable(row.path, row.error)
        message = f"no session {session[:80]!r} under {self.codex_home}"
        raise Refusal("unknown_session", message, {"session": session[:200]})

    # --- keeping up ------------------------------------------------------------------------------

    def refresh(self) -> Iterator[Progress]:
        """Bring the index up to date with the folders, a slice at a time.

        Yields after each slice, at least once; stopping early loses nothing that was yielded.
        """
        self._load()
        found = tree.scan(self.codex_home)
        self.unnamable = tuple(path for path in found if not is_storable(path))
        for path in self.unnamable:
            del found[path]
        new, changed = self._compared(found, [path for path in self._rows if path not in found])
        self._by_rollout = _by_rollout(found.values())
        # The newest sessions are wanted first.
        new.sort(key=lambda file: -file.mtime_ns)
        of_bytes = sum(file.size for file in new)
        done = size = since = 0
        batch: list[Row] = []
        for file in new:
            old = self._rows.get(file.path)
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
        """Look again at some session files; return the sessions whose rows changed."""
        self._load()
        active, archived = (root + os.sep for root in tree.roots(self.codex_home))
        # A file may have changed its form, and then the other one counts.
        asked = {form for path in paths for form in _forms(path) if is_storable(path)}
        found: dict[str, Found] = {}
        for path in asked:
            if path.startswith((active, archived)):
                file = tree.find(path, archived=path.startswith(archived))
                if file is not None and not _has_plain_form(file):
                    found[path] = file
        gone = [path for path in asked if path in self._rows and path not in found]
        new, changed = self._compared(found, gone)
        for file in found.values():
            self._by_rollout.setdefault(file.name.rollout_id, file.path)
        rows: list[Row] = []
        for file in new:
            row = self._read(file)
            changed |= _changed(self._rows.get(file.path), row)
            rows.append(row)
        self._put(rows)
        return changed

    def open(self, row: Row) -> SessionFile:
        """Return the session as it is now; raise `unreadable_source` when it cannot be read."""
        # Taken out meanwhile: one that broke off in the middle is of no use to anybody.
        session = self._readers.pop(row.path, None) or self._resume(row.path)
        try:
            session = (
                open_session(row.path, self.locate)
                if session is None
                else session.read_on(self.locate)
            )
        except UnreadableSource as error:
            raise _unreadable(row.path, str(error)) from error
        self._keep(session)
        return session

    def close(self) -> None:
        """Save what would be slow to read again, and let go of the index."""
        for session in self._readers.values():
            self._save(session)
        self.index.close()

    # --- inside ----------------------------------------------------------------------------------

    def _load(self) -> None:
        if not self._loaded:
            self._rows = self.index.rows()
            self._current = None
            self._loaded = True

    def _compared(
        self, found: Mapping[str, Found], gone: list[str]
    ) -> tuple[list[Found], set[str]]:
        """Forget the files that are gone; return those to be read, and the sessions concerned."""
        changed = {self._rows[path].session_id for path in gone}
        lost = {self._rows[path].rollout_id for path in gone}
        new: dict[str, Found] = {}
        come: set[str] = set()
        for path, file in found.items():
            old = self._rows.get(path)
            # What could not be read may be readable now: rights do not show in a look.
            if old is None or old.look != file.look or old.error is not None:
                new[path] = file
            if old is None or file.inode != old.inode or file.size < old.size:
                come.add(file.name.rollout_id)
        self._forget(gone)
        # Who builds on a file that came, went or was replaced is read anew; a move changes nothing.
        for row in self._built_on(lost ^ come):
            file = found.get(row.path) or tree.find(row.path, archived=row.archived)
            if file is not None:
                self._let_go(row.path)
                self.index.remove([row.path])
                new[row.path] = file
        return list(new.values()), changed

    def _built_on(self, rollouts: set[str]) -> list[Row]:
        if not rollouts:
            return []
        by_rollout = {row.rollout_id: row for row in self._rows.values()}
        building: list[Row] = []
        for row in self._rows.values():
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
        if rows:
            self.index.put(rows)
            self._rows |= {row.path: row for row in rows}
            self._current = None

    def _forget(self, paths: list[str]) -> None:
        if paths:
            self.index.remove(paths)
            self._current = None
        lost: set[str] = set()
        for path in paths:
            row = self._rows.pop(path)
            self._let_go(path)
            if self._by_rollout.get(row.rollout_id) == path:
                del self._by_rollout[row.rollout_id]
                lost.add(row.rollout_id)
        for row in self._rows.values() if lost else ():
            if row.rollout_id in lost:  # an archived twin, or one that is active again
                self._by_rollout.setdefault(row.rollout_id, row.path)

    def _let_go(self, path: str) -> None:
        self._readers.pop(path, None)
        self._saved_at.pop(path, None)

    def _read(self, file: Found) -> Row:
        known = file.path in self._rows
        reader = self._readers.pop(file.path, None)
        try:
            if reader is None and known:
                reader = self._resume(file.path)
            session = (
                open_session(file.path, self.locate)
                if reader is None
                else reader.read_on(self.locate)
            )
            row = row_of(file, session)
        except UnreadableSource as error:
            return unreadable_row(file, str(error))
        except Exception as error:  # noqa: BLE001 - a defect about one file, not the end for all
            logger.error("%s: %s", file.path, type(error).__name__)  # noqa: TRY400 - no content
            return unreadable_row(file, f"a defect of ours, {type(error).__name__}")
        if known:
            self._keep(session)
        elif file.size >= _SAVED_AT_ONCE:
            self._save(session)
        return row

    def _resume(self, path: str) -> SessionFile | None:
        saved = self.index.state(path)
        session = None if saved is None else SessionFile.load(path, saved)
        if session is not None:
            self._saved_at[path] = session.mark.offset
        return session

    def _keep(self, session: SessionFile) -> None:
        """Hold on to a reader that is in use, and let go of the one used longest ago."""
        self._readers[session.path] = session
        self._readers.move_to_end(session.path)
        offset = session.mark.offset
        if offset - self._saved_at.get(session.path, 0) >= _SAVED_FROM:
            self._save(session)
        while len(self._readers) > _READERS:
            _, old = self._readers.popitem(last=False)
            self._save(old)

    def _save(self, session: SessionFile) -> None:
        offset = session.mark.offset
        if offset < _SAVED_FROM or offset == self._saved_at.get(session.path):
            return
        state = session.save()
        if state is not None:
            self._saved_at[session.path] = offset
            self.index.put_state(session.path, (offset, 0, session.mark.inode), state)

    def _find_path(self, path: str) -> Row:
        path = os.path.abspath(path)
        row = self._rows.get(path)
        if row is not None and row.error is None:
            return row
        try:
            look = os.stat(path)
            name = tree.parse_name(os.path.basename(path))
            rollout_id = "" if name is None else name.rollout_id
            thread_id = "" if name is None else name.thread_id
            file = Found(
                path,
                tree.RolloutName(thread_id, rollout_id, rollout_file.is_compressed(path)),
                archived=False,
                size=look.st_size,
                mtime_ns=look.st_mtime_ns,
                inode=look.st_ino,
            )
            return row_of(file, open_session(path, self.locator(path)))
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
        except ValueError as error:
            raise _unreadable(path, "no file can have this name") from error
        except UnreadableSource as error:
            raise _unreadable(path, str(error)) from error


def _unreadable(path: str, reason: str) -> Refusal:
    message = f"{path} cannot be read: {reason}"
    return Refusal("unreadable_source", message, {"path": path, "reason": reason})


def _newer(row: Row, other: Row) -> bool:
    """Return whether a file is the more current one of a thread: segments carry a UUIDv7."""
    if row.rollout_id != other.rollout_id:
        # The thread's own id, which the first file carries, may be of any kind.
        first, other_first = row.rollout_id == row.thread_id, other.rollout_id == other.thread_id
        return (not first, row.rollout_id) > (not other_first, other.rollout_id)
    return (not row.archived, row.path) > (not other.archived, other.path)


def _changed(old: Row | None, row: Row) -> set[str]:
    """Return the sessions that a file is about that was read again."""
    if old is None:
        return {row.session_id}
    if row.error is not None and row.error == old.error:
        return set()  # as unreadable as before
    return {old.session_id, row.session_id}


def _forms(path: str) -> tuple[str, str]:
    """Return a path and that of the same session file in its other form."""
    return path, path.removesuffix(".zst") if path.endswith(".zst") else f"{path}.zst"


def _has_plain_form(file: Found) -> bool:
    return file.name.compressed and os.path.exists(file.path.removesuffix(".zst"))


def _by_rollout(files: Iterable[Found]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for file in files:
        # An active file goes before its archived twin.
        if file.name.rollout_id not in paths or not file.archived:
            paths[file.name.rollout_id] = file.path
    return paths


def _is_path(session: str) -> bool:
    return os.sep in session or "/" in session or session.endswith((".jsonl", ".jsonl.zst"))
