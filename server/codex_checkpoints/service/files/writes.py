"""Writes files of a session's folder as one operation, and completes its record after a crash.

Each file is checked again right before it is written; one that changed meanwhile is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from codex_checkpoints.core.fields import Json, digest_of
from codex_checkpoints.core.files.records import (
    FileRestore,
    FileWrite,
    file_restores_in,
    line_of,
)
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.service.operation import atomic_operation, close, operation_of
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import project_files, records
from codex_checkpoints.storage.project_files import NotWritable, ProjectFile
from codex_checkpoints.storage.records import FILE_RESTORES
from codex_checkpoints.storage.safety_copies import SafetyCopies

RESTORED = "FilesRestored"
"""The event of a restore that wrote files."""

_NEW_MODE = 0o644


def root_of(folder: str | None, session_id: str) -> str:
    """Return the folder of a session with links resolved; refuses `missing_context`."""
    if not project_files.is_supported():
        raise misfit("files are not restored on this system: it follows links on the way to a file")
    real = None if folder is None else os.path.realpath(folder)
    if real is None or not os.path.isdir(real):
        name = "the folder of this session" if folder is None else folder
        message = f"{name} is not on this machine, so files of this session cannot be restored"
        raise Refusal("missing_context", message, {"sessionId": session_id, "folder": folder})
    return real


def hash_of(data: bytes | None) -> str | None:
    """Return the hash of a file's bytes, None for a missing file."""
    return None if data is None else digest_of(data)


@frozen
class FileChange:
    """A file with its new bytes, None to remove it; `mode` is for a new file.

    `folders` counts the folders above a removed file that are removed too if they become empty.
    """

    path: str
    data: bytes | None
    mode: int = _NEW_MODE
    folders: int = 0


@frozen
class FileRestoring:
    """One operation on files of a session, which were checked before."""

    sessions: Sessions
    session_id: str
    turn_id: str
    folder: str
    seen: Mapping[str, ProjectFile]

    def write(
        self, changes: Sequence[FileChange], undoes: str | None = None
    ) -> tuple[str, dict[str, str]]:
        """Write the changes; return the operation, and the reason for each file that failed."""
        name, problems = records.new_id(), dict[str, str]()
        if not changes:
            return name, problems
        copies = SafetyCopies(self.sessions.records.state_dir)
        copies.prune()
        root = root_of(self.folder, self.session_id)
        writes = tuple(self._write_of(number, each, root) for number, each in enumerate(changes))
        made = FileRestore(
            name, records.now(), self.session_id, self.turn_id, self.folder, writes, undoes
        )
        work = FilesWork(self.sessions, made)
        with (
            keeping("record of restored files", self.session_id),
            atomic_operation(self.sessions.records, name, work) as prepare,
        ):
            prepare({"files": line_of(made)})
            for change, write in zip(changes, writes, strict=True):
                data = self.seen[change.path].data
                if write.copy is not None and data is not None:
                    copies.keep(name, write.copy, data)
            for change, write in zip(changes, writes, strict=True):
                try:
                    seen = evolve(self.seen[change.path], mode=write.mode)
                    project_files.put(root, change.path, change.data, seen, name)
                    if change.data is None:
                        project_files.remove_folders(root, change.path, change.folders)
                except NotWritable as error:
                    problems[change.path] = str(error)
        return name, problems

    def _write_of(self, number: int, change: FileChange, root: str) -> FileWrite:
        seen = self.seen[change.path]
        is_new = seen.data is None
        return FileWrite(
            change.path,
            hash_of(seen.data),
            hash_of(change.data),
            change.mode if is_new else seen.mode,
            None if is_new else str(number),
            project_files.missing_folders(root, change.path) if is_new else 0,
        )


@frozen
class FilesWork:
    """Completes a restore of files: the record and the event of the writes; a `Work`."""

    _sessions: Sessions
    _made: FileRestore

    def is_published(self) -> bool:
        """Return whether a file was written."""
        return bool(self._done())

    def record(self) -> None:
        """Write the record and the event, once."""
        made, kept = evolve(self._made, writes=self._done()), self._sessions.records
        with kept.journal(made.session_id, FILE_RESTORES) as journal:
            if made.operation_id not in file_restores_in(
                kept.lines(made.session_id, FILE_RESTORES)
            ):
                journal.append(line_of(made))
        operation = operation_of(self._sessions.settings, made.operation_id, made.session_id, None)
        files = [{"uri": each.path, "then": each.after, "now": each.before} for each in made.writes]
        event = event_of(RESTORED, made.at, operation, {"files": files, "undoes": made.undoes})
        close(kept, event, again=True)

    def roll_back(self, code: str) -> bool:
        """Remove the safety copies; nothing was written."""
        del code
        return SafetyCopies(self._sessions.records.state_dir).remove(self._made.operation_id)

    def _done(self) -> tuple[FileWrite, ...]:
        """Return the files that hold their new bytes."""
        root = os.path.realpath(self._made.folder)
        found = [(each, project_files.look(root, each.path)) for each in self._made.writes]
        return tuple(
            write
            for write, now in found
            if isinstance(now, ProjectFile)
            and hash_of(now.data) == write.after
            and write.before != write.after
        )


def reopened(sessions: Sessions, written: Json) -> FilesWork | None:
    """Return the restore that a process recorded; None if its line cannot be read."""
    made = next(iter(file_restores_in([written.get("files")]).values()), None)
    if made is None:
        return None
    for each in made.writes:
        project_files.clear(os.path.realpath(made.folder), each.path, made.operation_id)
    return FilesWork(sessions, made)
