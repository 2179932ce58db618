"""Keeps checkpoints current while session files and workspace files change (DSC-80).

Any thread marks paths in a `SessionWatcher`; its owner calls `drain`.  Marks of one file merge, so
ten events cost one check.
"""

from __future__ import annotations

import heapq
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TypeVar

from attrs import frozen

from codex_checkpoints.service.reading.checkpoints import DriftDetector, StoredCheckpoint, Strayed
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import Row, Touched
from codex_checkpoints.storage.records import MARKERS, FileStamp
from codex_checkpoints.storage.workspace import native

logger = logging.getLogger(__name__)

DEBOUNCE_SECONDS = 0.03
"""How long marks are collected after the first one; later marks do not extend it."""

RECONCILE_SECONDS = 10.0
"""How often everything is polled without an event, since events may be lost."""

_QUIET_SECONDS = 1.1
"""Delay before a file that was being written is checked again."""

_ATTENDED = 4
_IN_TURN = 60
"""Of sessions that are not followed, a poll checks one part of this many."""

_AT_LEAST = 32
"""Minimum number of sessions in such a part."""

_TURNS, _FEW = 5, 3
"""The same for followed sessions, except those loaded in Codex or viewed by the user."""


T = TypeVar("T")


@frozen
class Changed:
    """Sessions that changed, and where: `rollout`, `workspace`, `memory` or `markers`."""

    session_ids: tuple[str, ...]
    reason: str


def _changes(**session_ids: Iterable[str]) -> list[Changed]:
    """Return the changes by their reason; nothing for a reason without sessions."""
    found = {reason: tuple(sorted(each)) for reason, each in session_ids.items()}
    return [Changed(each, reason) for reason, each in found.items() if each]


@frozen
class _Observed:
    """The places of a followed session's files: folders to watch, and names in them."""

    folders: frozenset[str]
    names: frozenset[str]

    def is_touched_by(self, path: str) -> bool:
        folder, name = os.path.split(path)
        return path in self.folders or (folder in self.folders and name in self.names)


class SessionWatcher:
    """The changes since the last check, for the sessions of one home."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._store = sessions.catalogue.store
        self.marked = threading.Event()
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._observed: dict[str, _Observed] = {}
        self._digests: dict[str, str] = {}
        self._marked: dict[str, FileStamp | None] = {}
        self._folders: frozenset[str] = frozenset()
        self._live: frozenset[str] = frozenset()
        self._attended: list[str] = []
        self._looks = 0
        self._newest: tuple[object, list[Row]] = None, []
        self._guard = DriftDetector() if sessions.settings.drift_guard else None
        sessions.projections.follows = True

    @property
    def patience(self) -> float:
        """Return the timeout in seconds until the next mark."""
        waiting = self.sessions.projections.waiting
        return _QUIET_SECONDS if waiting else RECONCILE_SECONDS

    def unmarked(self) -> list[Changed]:
        """Poll after a timeout without a mark: files being written, else everything."""
        waiting = self.sessions.projections.take_waiting()
        if not waiting:
            return self.reconcile()
        return _changes(workspace=self._keep(self._current(waiting)))

    def mark(self, path: str) -> None:
        """Note, from any thread, that a path may have changed."""
        with self._lock:
            self._paths.add(path)
        self.marked.set()

    def trees(self) -> tuple[str, ...]:
        """Return the folders to watch recursively."""
        return (*self._store.watched, self.sessions.records.sessions_dir)

    def attend(self, session_id: str) -> None:
        """Follow the files of a session that the user views, regardless of its age."""
        if session_id in self._attended[-1:]:
            return
        attended = [each for each in self._attended if each != session_id]
        self._attended = [*attended, session_id][-_ATTENDED:]
        if session_id not in self._observed:
            self._keep(self._current([session_id]))
            self._choose_folders()

    def update_reported(self, session_id: str) -> None:
        """Update a session whose change was already reported, so that it is not reported again."""
        self._marked[session_id] = self.sessions.records.stamp(session_id, MARKERS)
        self._keep(self._current([session_id]))

    def folders(self) -> frozenset[str]:
        """Return the folders to watch without their subfolders."""
        return self._folders

    def begin(self) -> Changed:
        """Update the checkpoints of the followed sessions, after a first refresh."""
        return next(filter(None, self.beginning()))

    def beginning(self) -> Iterator[Changed | None]:
        """Do the same in steps, one session each; other code may use the sessions in between.

        Yields None for each step, and finally the changes.
        """
        self._lives_changed()
        self.sessions.take_unreported()
        changed = set[str]()
        for row in self._followed():
            changed |= self._keep(self._current([row.session_id]))
            changed |= self.sessions.catalogue.take_completed()
            yield None
        late = self.sessions.take_unreported()  # found between the steps
        changed |= late | self._keep(self._current(late))
        self._choose_folders()
        yield Changed(tuple(sorted(changed)), "rollout")

    def keep_all(self) -> Changed:
        """Update every session's checkpoint."""
        changed = self._keep(self.sessions.catalogue.current().values())
        return Changed(tuple(sorted(changed)), "rollout")

    def drain(self) -> list[Changed]:
        """Check the marked paths; return the changes."""
        with self._lock:
            paths, self._paths = self._paths, set()
            self.marked.clear()
        touched = self._store.touched(paths)
        rollouts = self._rollouts_changed(touched)
        if touched.lives:
            rollouts |= self._lives_changed()
        memory = self._memory_changed(touched.foreign) - rollouts
        workspace = self._workspace_changed(touched.foreign) - rollouts - memory
        markers = self._markers_changed(touched.foreign)
        return _changes(rollout=rollouts, memory=memory, workspace=workspace, markers=markers)

    def reconcile(self) -> list[Changed]:
        """Check the followed sessions, and in turn part of the rest, marked or not; return changes.

        Everything is checked if a folder of session files changed.
        """
        self._looks += 1
        catalogue = self.sessions.catalogue
        changed: set[str] = set()
        if self._store.has_moved():
            self.sessions.refresh()
        else:
            looked_at = {row.path: row for row in self._in_turn([*catalogue.rows().values()])}
            looked_at |= {row.path: row for row in self._followed()}
            # An unreadable file may be readable now, which a check does not notice.
            changed = catalogue.refresh_paths(
                path
                for path, row in looked_at.items()
                if row.must_be_read or not self._store.is_unchanged(row.rollout)
            )
        changed |= self.sessions.take_unreported() | self._lives_changed()
        self._keep(self._current(changed))
        others = self._keep(row for row in self._due() if row.session_id not in changed)
        others |= self._keep(self._outdated(self._in_turn(self._others())))
        self._choose_folders()
        return _changes(rollout=changed, workspace=others)

    def take_strayed(self) -> tuple[Strayed, ...]:
        """Return, once, the edits outside the plan since the last call."""
        return () if self._guard is None else self._guard.take()

    def _lives_changed(self) -> set[str]:
        before, self._live = self._live, self._store.live_threads()
        return set(before ^ self._live)

    def _rollouts_changed(self, touched: Touched) -> set[str]:
        files = touched.rollouts
        changed = self.sessions.catalogue.refresh_paths(files) if files else set[str]()
        if touched.everything:
            self.sessions.refresh()
        changed |= self.sessions.take_unreported()
        if changed:
            self._keep(self._current(changed))
            self._choose_folders()
        return changed

    def _memory_changed(self, paths: Iterable[str]) -> set[str]:
        """Update the sessions whose updates, or whose bases' updates, may have grown."""
        found = (self.sessions.records.noted_at(path) for path in paths)
        noted = {each for each in found if each is not None}
        if not noted:
            return set()
        # A session inherits the memory of its bases.
        return self._keep(self._current(noted | self.sessions.catalogue.chains.sessions_on(noted)))

    def _markers_changed(self, paths: Iterable[str]) -> set[str]:
        """Return the sessions whose markers or pins changed; their checkpoints do not."""
        records = self.sessions.records
        marked = {found for path in paths if (found := records.marked_at(path)) is not None}
        stamps = {each: records.stamp(each, MARKERS) for each in marked}
        changed = {each for each, stamp in stamps.items() if self._marked.get(each) != stamp}
        self._marked |= stamps
        return {row.session_id for row in self._current(changed)}

    def _workspace_changed(self, paths: Iterable[str]) -> set[str]:
        """Update the sessions that observed one of these files, or a file below one of them."""
        paths = set(paths)
        if not paths:
            return set()
        found = [
            session
            for session, observed in self._observed.items()
            if any(map(observed.is_touched_by, paths))
        ]
        inside = ((row, (row.base or "").rstrip(os.sep) + os.sep) for row in self._others())
        concerned = [
            row for row, folder in inside if any(each.startswith(folder) for each in paths)
        ]
        changed = self._keep(self._current(found)) | self._keep(self._outdated(concerned))
        if any(os.path.isdir(path) for path in paths):
            self._choose_folders()
        return changed

    def _outdated(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the sessions whose stored checkpoint has an older hash."""
        projections = self.sessions.projections
        for row in () if projections.storage_problem is not None else rows:
            if projections.is_outdated(row):
                yield row

    def _others(self) -> list[Row]:
        """Return the sessions that are not followed and may have a stored checkpoint."""
        current, records = self.sessions.catalogue.current(), self.sessions.records
        followed = {row.session_id for row in self._followed()}
        known = current.keys() if records.beside else records.known()
        others = self._current(known - followed)
        return sorted((row for row in others if row.base), key=lambda row: row.session_id)

    def _due(self) -> list[Row]:
        """Return the followed sessions in use, and part of the other followed ones in turn."""
        used, rest = list[Row](), list[Row]()
        for row in self._followed():
            in_use = row.session_id in self._live or row.session_id in self._attended
            (used if in_use else rest).append(row)
        return used + self._in_turn(rest, _TURNS, _FEW)

    def _in_turn(
        self, all_of_them: list[T], most: int = _IN_TURN, least: int = _AT_LEAST
    ) -> list[T]:
        """Return the next part in turn, so that each is checked eventually."""
        parts = min(most, max(1, len(all_of_them) // least))
        return all_of_them[self._looks % parts :: parts]

    def _current(self, session_ids: Iterable[str]) -> list[Row]:
        current = self.sessions.catalogue.current()
        return [current[session] for session in session_ids if session in current]

    def _keep(self, rows: Iterable[Row]) -> set[str]:
        changed: set[str] = set()
        followed = {row.session_id for row in self._followed()}
        for row in rows:
            try:
                opened = self.sessions.catalogue.open(row)
                projection = self.sessions.projections.keep(row, opened)
            except Refusal as refusal:
                logger.warning("session %s: %s", row.session_id, refusal.code)
                continue
            except Exception as error:  # noqa: BLE001 - a defect about one, not the end for all
                logger.error("session %s: %s", row.session_id, type(error).__name__)  # noqa: TRY400 - no text of a session
                continue
            if row.session_id in followed:
                self._observed[row.session_id] = self._observe(opened, projection)
                if self._guard is not None:
                    self._guard.look(opened.now(), projection)
            if self._is_news(row.session_id, projection, remember=row.session_id in followed):
                changed.add(row.session_id)
        return changed

    def _is_news(self, session_id: str, projection: StoredCheckpoint, *, remember: bool) -> bool:
        """Return whether the bytes changed since our last check, regardless of who stored them."""
        digest = sha256(projection.data).hexdigest()
        before = self._digests.get(session_id)
        if remember:
            self._digests[session_id] = digest
        return projection.changed if before is None else before != digest

    def _followed(self) -> list[Row]:
        """Return the newest active sessions, those loaded in Codex, and those viewed last."""
        current = self.sessions.catalogue.current()
        if self._newest[0] is not current:
            active = (row for row in current.values() if not row.archived)
            count = self.sessions.settings.followed_sessions
            newest = heapq.nlargest(count, active, key=lambda row: row.at)
            self._newest = current, newest
        followed = {row.session_id: row for row in self._newest[1]}
        followed |= {row.session_id: row for row in self._current([*self._live, *self._attended])}
        return list(followed.values())

    def _choose_folders(self) -> None:
        followed = {row.session_id for row in self._followed()}
        for known in (self._observed, self._digests, self._marked):
            for session in known.keys() - followed:
                del known[session]
        if self._guard is not None:
            self._guard.forget_all_but(followed)
        self._folders = frozenset().union(*(each.folders for each in self._observed.values()))

    def _observe(self, opened: SessionFile, projection: StoredCheckpoint) -> _Observed:
        artifacts = projection.checkpoint.artifacts
        files = [uri for uri, artifact in artifacts.items() if artifact.kind == "file"]
        folders = self.sessions.workspace.folders(opened.now().state.base, files)
        # Any part of the path may be recreated or renamed.
        names = (native(part) for uri in files for part in uri.split("/"))
        return _Observed(frozenset(folders), frozenset(names))
