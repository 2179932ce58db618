"""Keeps a session's changes to files and the results of its checks."""

from __future__ import annotations

from collections import deque
from typing import Final

from attrs import Factory, define, evolve

from codex_checkpoints.core.changes.file_history import FileHistory, PatchCounts
from codex_checkpoints.core.changes.git import commits, folders_put_back, is_in
from codex_checkpoints.core.digest.calls import written_anew
from codex_checkpoints.core.digest.checks import Checks
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.effects import Effects, Run
from codex_checkpoints.core.record_place import RecordPlace

_MOST: Final = 1024
"""The most files, and the most commands, that are kept: the newest."""


@define
class Changes:
    """The trails of the files by uri, and the checks; `edits` counts all changes of files.

    `unnamed` are the commands that may have changed files without naming them.
    """

    files: dict[str, FileHistory] = Factory(dict[str, FileHistory])
    checks: Checks = Factory(Checks)
    edits: int = 0
    unnamed: deque[tuple[RecordPlace, str]] = Factory(
        lambda: deque[tuple[RecordPlace, str]](maxlen=_MOST)
    )
    _committed: int = -1

    def observe(self, effects: Effects, where: RecordPlace, began: int) -> None:
        """Record the files changed by a call that began at a `seq`."""
        whole = written_anew(effects.ended.call) if effects.edits else frozenset[str]()
        for each in effects.edits:
            self.edits += 1
            self.checks.edited(each.name, each.uri)
            trail = self.files.pop(each.uri, None)
            if trail is None:
                trail = FileHistory(where, onto=each.onto, began=began)
            elif each.onto is None:
                trail.onto = None
            rows = None if each.moved_to else effects.rows.get(each.name)
            counts = None if rows is None else PatchCounts.of(rows)
            one = evolve(each, rewrites=each.rewrites or each.name in whole)
            trail.take(where, one, counts, began)
            self.files[each.uri] = trail
            if len(self.files) > _MOST:
                del self.files[next(iter(self.files))]
        if effects.may_have_changed_more:
            script = next((run.script for run in effects.runs), "")
            self.unnamed.append((where, ends_of(script)))

    def ran(self, run: Run, effects: Effects, where: RecordPlace) -> None:
        """Record a command that ended."""
        self._git(run, effects, where)
        inside = effects.uri_of("_", run.folder) or "_"
        self.checks.ran(run, where, inside[:-1], self.edits)

    def _git(self, run: Run, effects: Effects, where: RecordPlace) -> None:
        """Record the files that git restored; changes that may be committed are kept."""
        for folder in folders_put_back(run, effects):
            for known, trail in self.files.items():
                is_new = trail.created and trail.began > self._committed
                is_open = trail.where.seq > self._committed
                if is_open and not is_new and is_in(known, folder):
                    self.edits += 1
                    trail.put_back_at(where, whole=trail.began > self._committed)
        if commits(run):
            self._committed = where.seq
            for trail in self.files.values():
                trail.commit()
