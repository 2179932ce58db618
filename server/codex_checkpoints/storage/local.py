"""The store of a Codex home: rollouts in files, what readers found in them in SQLite (STO-9).

The files are the truth.  The index remembers what readers found, so that a list reads no file; an
index that is absent, old, damaged or locked is filled again.  `contract.ThreadStore` says what the
methods do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from codex_checkpoints.storage import locks, tree, writer
from codex_checkpoints.storage import query as queries
from codex_checkpoints.storage.contract import (
    OURS,
    Appended,
    Conflict,
    Copied,
    Fault,
    HistoryPage,
    Item,
    Look,
    NewThread,
    Patch,
    Rollout,
    Row,
    StorageFailed,
    StoredThread,
    ThreadIsLive,
    ThreadNotFound,
    ThreadPage,
    ThreadQuery,
    Touched,
    UnreadableSource,
    Unset,
    Unsupported,
)
from codex_checkpoints.storage.index import Index, is_storable
from codex_checkpoints.storage.lines import id_of, is_thread_id, lines_of
from codex_checkpoints.storage.names import GivenNames
from codex_checkpoints.storage.rollout_file import FileReader


class LocalThreadStore:
    """The threads of one Codex home; `contract.ThreadStore` for files."""

    def __init__(self, codex_home: str, state_dir: str, clock: Callable[[], str]) -> None:
        """Open the index below `state_dir`; `clock` returns the time, UTC, ISO 8601."""
        self.codex_home = codex_home
        self.reader = FileReader()
        self._nursery = state_dir
        self._index = Index(os.path.join(state_dir, "index.sqlite"), codex_home)
        self._names = GivenNames(codex_home, state_dir, clock)
        self._rows: dict[str, Row] | None = None
        self._current: dict[str, Row] | None = None
        self._ordered: list[Row] | None = None
        self._unnamable: tuple[str, ...] = ()

    # --- histories -------------------------------------------------------------------------------

    def create_thread(self, new: NewThread, at: datetime) -> Rollout:
        thread_id = id_of(new)
        if self._rollouts_of(thread_id):
            raise Conflict("it exists already")
        path = self._in_sight(tree.place_of(self.codex_home, thread_id, at))
        writer.publish(path, lines_of(new, at), self._nursery)
        return self._seen(path)

    def append_items(
        self,
        thread_id: str,
        items: Sequence[Item | Copied],
        at: datetime,
        expected: Look | None = None,
    ) -> Appended:
        self._written_by_us(thread_id)
        with locks.hold(self.codex_home, thread_id) as lock:
            rollout = self._newest(thread_id)
            if expected is not None and rollout.look != expected:
                raise Conflict("the session has gone on since it was looked at")
            if rollout.archived:
                raise Unsupported("an archived session is not continued; unarchive it first")
            path = rollout.path
            if rollout.compressed:
                path = writer.unpack(path, lock)
                expected = None
            written = writer.append(path, items, at, lock, expected)
        return Appended(self._seen(path), written.start, written.end, written.ordinals)

    def check_append(self, thread_id: str) -> None:
        self._written_by_us(thread_id)
        rollout = self._newest(thread_id)
        if locks.is_live(self.codex_home, thread_id):
            raise ThreadIsLive("another process has the session open")
        if rollout.archived:
            raise Unsupported("an archived session is not continued; unarchive it first")
        locks.check_name(rollout.path, thread_id)
        if not rollout.compressed:
            writer.check(rollout.path, thread_id)

    def load_history(
        self, thread_id: str, cursor: str | None = None, limit: int | None = None
    ) -> HistoryPage:
        path = self._newest(thread_id).path
        by_id = queries.by_rollout_id(tree.scan(self.codex_home).values())
        chain = queries.parts(self.reader, path, lambda rollout_id: by_id.get(rollout_id.lower()))
        return queries.history_page(self.reader, chain, cursor, limit)

    # --- what there is ---------------------------------------------------------------------------

    def rollouts(self) -> Mapping[str, Rollout]:
        found = tree.scan(self.codex_home)
        self._unnamable = tuple(path for path in found if not is_storable(path))
        for path in self._unnamable:
            del found[path]
        return found

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

    def rows(self) -> Mapping[str, Row]:
        return self._known()

    def current(self) -> Mapping[str, Row]:
        if self._current is None:
            self._current = queries.current(self._known().values())
        return self._current

    def live_threads(self) -> frozenset[str]:
        return locks.live_threads(self.codex_home)

    def name_of(self, row: Row) -> str | None:
        return self._names.of(row)

    def read_thread(self, thread_id: str) -> StoredThread:
        row = self._row_of(thread_id)
        return StoredThread(row, self.name_of(row), locks.is_live(self.codex_home, thread_id))

    def list_threads(self, query: ThreadQuery) -> ThreadPage:
        if self._ordered is None:
            self._ordered = queries.ordered(self.current().values())
        name_of = self._names.all()
        rows, cursor = queries.page(self._ordered, query, name_of)
        live = self.live_threads()
        return ThreadPage(
            tuple(StoredThread(row, name_of(row), row.session_id in live) for row in rows), cursor
        )

    # --- metadata --------------------------------------------------------------------------------

    def update_thread_metadata(self, patches: Iterable[tuple[str, Patch]]) -> None:
        patches = tuple(patches)
        named = [(who, patch.name) for who, patch in patches if not isinstance(patch.name, Unset)]
        for row, name in [(self._row_of(thread_id), name) for thread_id, name in named]:
            self._names.give(row.session_id, name, legacy=self._is_legacy(row))
        found = [patch.row for _, patch in patches if isinstance(patch.row, Row)]
        gone = [patch.of for _, patch in patches if patch.row is None and patch.of is not None]
        if found or gone:
            self._index.put(found, gone)
            known = self._known()
            for path in gone:
                known.pop(path, None)
            known |= {row.path: row for row in found}
            self._current = self._ordered = None

    def recall(self, path: str) -> object:
        return self._index.state(path)

    def remember(self, path: str, look: Look, state: object) -> None:
        self._index.put_state(path, look, state)

    # --- lifecycle -------------------------------------------------------------------------------

    def archive_thread(self, thread_id: str) -> Rollout:
        return self._move(thread_id, archive=True)

    def unarchive_thread(self, thread_id: str) -> Rollout:
        return self._move(thread_id, archive=False)

    def delete_thread(self, thread_id: str) -> None:
        self._written_by_us(thread_id)
        with locks.hold(self.codex_home, thread_id) as lock:
            own = self._present(thread_id)
            if len(own) > 1:
                raise Conflict("the session has gone on in a later file")
            made_by = queries.head(self.reader, own[0].path)
            if made_by is None or made_by.originator != OURS:
                raise Conflict("only sessions that codex-checkpoints made are deleted")
            if queries.is_referred_to(own[0], self._lineage(own[0].path)):
                raise Conflict("another session builds on this one or works for it")
            writer.remove(own[0].path, lock)
        self.update_thread_metadata([(thread_id, Patch(row=None, of=own[0].path))])

    # --- surroundings ----------------------------------------------------------------------------

    @property
    def place(self) -> str:
        return self.codex_home

    @property
    def watched(self) -> tuple[str, ...]:
        return tree.watched(self.codex_home)

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

    def close(self) -> None:
        self._index.close()

    # --- inside ----------------------------------------------------------------------------------

    def _known(self) -> dict[str, Row]:
        if self._rows is None:
            self._rows = self._index.rows()
        return self._rows

    def _rollouts_of(self, thread_id: str) -> list[Rollout]:
        """Look for the session files of a thread, the newest last."""
        own = tree.scan(self.codex_home, thread_id)
        known = (row.path for row in self._known().values() if row.session_id == thread_id)
        # A file may be of another thread than its name says.
        own |= {path: file for path, file in self.look(known).items() if file is not None}
        return sorted((own[path] for path in filter(is_storable, own)), key=queries.age)

    def _present(self, thread_id: str) -> list[Rollout]:
        own = self._rollouts_of(thread_id)
        if not own:
            raise ThreadNotFound("there is no such session")
        return own

    def _newest(self, thread_id: str) -> Rollout:
        return self._present(thread_id)[-1]

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

    def _written_by_us(self, thread_id: str) -> None:
        """Raise for a thread that no lock could be taken for."""
        if not is_thread_id(thread_id):
            self._newest(thread_id)
            raise Unsupported("Codex knows no lock for such a session id")

    def _row_of(self, thread_id: str) -> Row:
        return self.current().get(thread_id) or Row(self._newest(thread_id), thread_id)

    def _is_legacy(self, row: Row) -> bool:
        """Return whether Codex keeps the thread's name in its list; others it keeps in SQLite."""
        if row.history_mode is not None:
            return row.history_mode == "legacy"
        own = queries.head(self.reader, row.path)
        return own is not None and not own.paginated

    def _move(self, thread_id: str, *, archive: bool) -> Rollout:
        self._written_by_us(thread_id)
        with locks.hold(self.codex_home, thread_id) as lock:
            own = self._present(thread_id)
            if own[-1].archived == archive:
                raise Conflict(f"the session is {'archived' if archive else 'active'} already")
            # All of them, as Codex does; the current one last, so that whoever was killed in
            # between can do it again.
            for rollout in own:
                if rollout.archived != archive:
                    target = tree.place_for(self.codex_home, rollout.path, archived=archive)
                    target = self._in_sight(target)
                    writer.move(rollout.path, target, lock)
                    if not archive:
                        _touch(target)
        return self._newest(thread_id)

    def _lineage(self, without: str) -> Iterator[queries.Named]:
        """Yield of every other session file what it names."""
        known = self._known()
        for path, file in tree.scan(self.codex_home).items():
            row = known.get(path)
            if path == without:
                continue
            if row is not None and row.rollout.look == file.look and row.error is None:
                yield row.base_rollout, row.forked_from, row.parent_session
                continue
            try:
                own = queries.head(self.reader, path)
            except UnreadableSource as error:
                raise Conflict("a session that cannot be read may build on this one") from error
            if own is not None:
                base = own.base.rollout_id if own.base else None
                yield base, own.forked_from, own.parent_session


def _touch(path: str) -> None:
    """Let a file count as used now, as Codex does; without the right to it nothing is lost."""
    try:
        os.utime(path)
    except OSError as error:
        import logging  # noqa: PLC0415 - rarely needed, and slow to load

        logging.getLogger(__name__).warning("%s: %s", path, error.strerror)
