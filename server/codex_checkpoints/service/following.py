"""Keep checkpoints current as session files and workspace files change (DSC-80).

`Follower` is told from any thread that a path may have changed, and works that off when its owner
calls `drain`: marks of the same file merge, so ten events cost one look.  It decides which folders
are worth watching: the session folders, and the folders of files that the newest sessions
observed.  Who watches, and who is told of a change, is left to the doors.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable

from attrs import frozen

from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Projection, Sessions
from codex_checkpoints.threads import tree
from codex_checkpoints.threads.index import Row
from codex_checkpoints.threads.session_file import SessionFile

logger = logging.getLogger(__name__)

DEBOUNCE_SECONDS = 0.03
"""How long to gather marks after the first one; later marks do not prolong it."""

RECONCILE_SECONDS = 10.0
"""How often everything is looked at without being told: events can be lost."""


@frozen
class Changed:
    """Sessions that are not what they were: because of their `rollout` or of the `workspace`."""

    session_ids: tuple[str, ...]
    reason: str


@frozen
class _Observed:
    """Where the files of a followed session lie: folders to watch, and names that matter there."""

    folders: frozenset[str]
    names: frozenset[str]

    def is_touched_by(self, path: str) -> bool:
        """Return whether a change at `path` may concern one of the files."""
        folder, name = os.path.split(path)
        return path in self.folders or (folder in self.folders and name in self.names)


class Follower:
    """What changed since the last look, for the sessions of one home."""

    def __init__(self, sessions: Sessions) -> None:
        """Follow the sessions of this service; `mark` may be called at once."""
        self.sessions = sessions
        self.marked = threading.Event()
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._observed: dict[str, _Observed] = {}
        self._folders: frozenset[str] = frozenset()

    def mark(self, path: str) -> None:
        """Note, from any thread, that a path may have changed."""
        with self._lock:
            self._paths.add(path)
        self.marked.set()

    def trees(self) -> tuple[str, str]:
        """Return the folders that are to be watched with everything below."""
        return tree.roots(self.sessions.catalogue.codex_home)

    def folders(self) -> frozenset[str]:
        """Return the folders of observed files that are to be watched by themselves."""
        return self._folders

    def begin(self) -> Changed:
        """Bring the checkpoints of the followed sessions up to date, after a first refresh."""
        rows = self._followed()
        changed = self._keep(rows)
        self._choose_folders()
        return Changed(tuple(sorted(changed)), "rollout")

    def keep_all(self) -> Changed:
        """Bring every session's checkpoint up to date."""
        changed = self._keep(self.sessions.catalogue.current().values())
        return Changed(tuple(sorted(changed)), "rollout")

    def drain(self) -> list[Changed]:
        """Look again at what was marked; return what changed."""
        with self._lock:
            paths, self._paths = self._paths, set()
            self.marked.clear()
        if not paths:
            return []
        inside = {path for path in paths if self._is_in_tree(path)}
        changes: list[Changed] = []
        rollouts = self._rollouts_changed(inside)
        if rollouts:
            changes.append(Changed(tuple(sorted(rollouts)), "rollout"))
        workspace = self._workspace_changed(paths - inside) - rollouts
        if workspace:
            changes.append(Changed(tuple(sorted(workspace)), "workspace"))
        return changes

    def reconcile(self) -> list[Changed]:
        """Look at everything without having been told."""
        changed = set(self.sessions.refresh())
        current = self.sessions.catalogue.current()
        rows = [current[session] for session in changed if session in current]
        changed |= self._keep(rows)
        changes = [Changed(tuple(sorted(changed)), "rollout")] if changed else []
        others = self._keep(row for row in self._followed() if row.session_id not in changed)
        if others:
            changes.append(Changed(tuple(sorted(others)), "workspace"))
        self._choose_folders()
        return changes

    # --- inside ----------------------------------------------------------------------------------

    def _is_in_tree(self, path: str) -> bool:
        return any(path == root or path.startswith(root + os.sep) for root in self.trees())

    def _rollouts_changed(self, paths: set[str]) -> set[str]:
        """Look at session files; anything else in the tree means: look at the whole tree."""
        if not paths:
            return set()
        catalogue = self.sessions.catalogue
        files = {path for path in paths if tree.parse_name(os.path.basename(path)) is not None}
        changed = catalogue.look(files)
        if any(os.path.isdir(path) or not os.path.exists(path) for path in paths - files):
            changed |= self.sessions.refresh()
        current = catalogue.current()
        rows = [current[session] for session in changed if session in current]
        self._keep(rows)
        self._choose_folders()
        return changed

    def _workspace_changed(self, paths: Iterable[str]) -> set[str]:
        """Look at the sessions that observed one of these files, or a file below one of them."""
        paths = set(paths)
        if not paths:
            return set()
        current = self.sessions.catalogue.current()
        met = [
            current[session]
            for session, observed in self._observed.items()
            if session in current and any(map(observed.is_touched_by, paths))
        ]
        changed = self._keep(met)
        if any(os.path.isdir(path) for path in paths):
            self._choose_folders()
        return changed

    def _keep(self, rows: Iterable[Row]) -> set[str]:
        """Project sessions; return those whose stored bytes changed."""
        changed: set[str] = set()
        followed = {row.session_id for row in self._followed()}
        for row in rows:
            try:
                opened = self.sessions.catalogue.open(row)
                projection = self.sessions.keep(row, opened)
            except Refusal as refusal:
                logger.warning("session %s: %s", row.session_id, refusal.code)
                continue
            if row.session_id in followed:
                self._observed[row.session_id] = self._observe(opened, projection)
            if projection.changed:
                changed.add(row.session_id)
        return changed

    def _followed(self) -> list[Row]:
        """Return the sessions whose files are worth watching: the newest of the active ones."""
        rows = [row for row in self.sessions.catalogue.current().values() if not row.archived]
        rows.sort(key=lambda row: row.updated_at or "", reverse=True)
        return rows[: self.sessions.settings.followed_sessions]

    def _choose_folders(self) -> None:
        followed = {row.session_id for row in self._followed()}
        self._observed = {
            session: observed for session, observed in self._observed.items() if session in followed
        }
        self._folders = frozenset().union(*(each.folders for each in self._observed.values()))

    def _observe(self, opened: SessionFile, projection: Projection) -> _Observed:
        artifacts = projection.checkpoint.artifacts
        files = [uri for uri, artifact in artifacts.items() if artifact.kind == "file"]
        folders = self.sessions.workspace.folders(opened.now().state.base, files)
        # Any part of the way may be made again or renamed.
        names = (part for uri in files for part in uri.split("/"))
        return _Observed(frozenset(folders), frozenset(names))
