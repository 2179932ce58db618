"""Copies the files that Codex is about to write, and finds these copies again (`fileCopies`).

The hook calls this before each tool call, and Codex waits.  So this opens neither the index nor the
session, and reads only the first line of its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from attrs import evolve, frozen

from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.core.files.copies import (
    SHELL_TOOL,
    CallNote,
    Copied,
    Copies,
    CopyMode,
    NotedFile,
    NoteEvent,
    Target,
    folder_in,
    line_of,
    notes_in,
    targets_of,
)
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage import atomic_files, project_files
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.project_files import ProjectFile
from codex_checkpoints.storage.records import FILE_COPIES, Records
from codex_checkpoints.storage.safety_copies import LARGEST_COPY, FileCopies

_LONGEST_HEAD = 1 << 20
"""Bytes of the first line of a session file, which holds the instructions."""

_PROBLEMS = {
    "too_large": "the file that was there is too large to copy",
    "link": "a link was there, which is not copied",
    "binary": "the file that was there is not text, and is not copied",
    "unreadable": "the file that was there could not be read",
}
_GONE = "a file was there, and its copy is gone"


@frozen
class ToolUse:
    """A call of a tool, right before it or right after it, as Codex reports it to its hooks.

    `command` is the patch or the script, which runs in `folder`.
    """

    event: NoteEvent
    session: str
    transcript: str
    call_id: str
    tool: str
    command: str
    folder: str


def note(records: Records, use: ToolUse, mode: CopyMode) -> None:
    """Copy the files that a call is about to write; after it, note their hashes.

    Refuses `unknown_session` if the session file is another's; raises `StorageError`.
    """
    if use.event == "PostToolUse" and (mode != "named" or use.tool != SHELL_TOOL):
        return  # the session file has the text that a patch wrote
    if not project_files.is_supported():
        return  # no file comes back on this system
    base = _base(use)
    root = os.path.realpath(base)
    copies = FileCopies(records.state_dir)
    files = list[NotedFile]()
    for target in targets_of(use.tool, use.command, use.folder, base, mode):
        files += _noted(root, target, copies if use.event == "PreToolUse" else None)
    if files:
        line = line_of(CallNote(stamps.now(), use.event, use.call_id, tuple(files)))
        with records.journal(use.session, FILE_COPIES) as journal:
            journal.append(line)


def _base(use: ToolUse) -> str:
    """Return the folder of the session; refuses `unknown_session`."""
    try:
        with open(use.transcript, "rb", opener=atomic_files.own) as file:
            folder = folder_in(file.readline(_LONGEST_HEAD), use.session)
    except OSError:
        folder = None
    if folder is None:
        message = "the file that Codex names is not that of this session"
        raise Refusal("unknown_session", message, {"sessionId": use.session})
    return folder


def _noted(root: str, target: Target, copies: FileCopies | None) -> Iterator[NotedFile]:
    """Yield a file as it is now, copied into `copies`; none for one outside the folder."""
    found = project_files.look(root, target.uri, LARGEST_COPY)
    if found == "outside":
        return
    noted = NotedFile(target.uri)
    if not isinstance(found, ProjectFile):
        noted = evolve(noted, problem=found)
    elif found.data is not None:
        digest = digest_of(found.data)
        if copies is not None and (problem := _copy(found.data, copies)) is not None:
            noted = evolve(noted, problem=problem)
        else:
            noted = evolve(noted, hash=digest)
    if copies is not None and target.source is not None:
        source = project_files.look(root, target.source, LARGEST_COPY)
        if isinstance(source, ProjectFile) and source.data is not None:
            noted = evolve(noted, source=digest_of(source.data))
    yield noted


def _copy(data: bytes, copies: FileCopies) -> str | None:
    """Copy a text; return why other bytes are not copied.  Raises `StorageError`."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return "binary"
    copies.keep(data)
    return None


def copies_of(records: Records, session_id: str) -> Copies:
    """Return the copies of a session, by call and file; raises `StorageError`."""
    before: dict[tuple[str, str], NotedFile] = {}
    after: dict[tuple[str, str], str | None] = {}
    for each in notes_in(records.lines(session_id, FILE_COPIES)):
        for file in each.files:
            if each.event == "PreToolUse":
                before.setdefault((each.call_id, file.uri), file)
            else:
                after.setdefault((each.call_id, file.uri), file.hash)
    kept = FileCopies(records.state_dir)

    def copied(call_id: str, uri: str) -> Copied | None:
        noted = before.get((call_id, uri))
        if noted is None:
            return None
        found = Copied(source=noted.source, after=after.get((call_id, uri)))
        if noted.problem is not None:
            return evolve(found, problem=_PROBLEMS.get(noted.problem, _GONE))
        if noted.hash is None:
            return found
        data = kept.kept(noted.hash)
        return evolve(found, problem=_GONE) if data is None else evolve(found, text=data.decode())

    return copied
