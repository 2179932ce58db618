"""Finds the files that a call of Codex is about to write, and reads a hook's notes about them.

The session file lacks the old text of a file that is added over, replaced by a move, or written by
a command.  So a hook may copy these files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from attrs import asdict, frozen

from codex_checkpoints.core.fields import list_of, load, object_of, text_of
from codex_checkpoints.core.paths import uri_of
from codex_checkpoints.core.shell.script import files_of, inside, read_script

CopyMode = Literal["off", "replaced", "named"]
"""The files that are copied: none, those that a patch replaces, or also those of commands."""

NoteEvent = Literal["PreToolUse", "PostToolUse"]
"""The hook that noted the files: right before a call, or right after it."""

NOTE_EVENTS: tuple[NoteEvent, ...] = ("PreToolUse", "PostToolUse")

PATCH_TOOL, SHELL_TOOL = "apply_patch", "Bash"
"""The tools, by their names in Codex's hooks."""


@frozen
class Target:
    """A file that a call writes, by its uri; `source` is the uri of the file moved there."""

    uri: str
    source: str | None = None


@frozen
class NotedFile:
    """A file at the time of a note, by its uri.

    `hash` is the hash of its bytes, null if there is no file or if it could not be read because of
    `problem`.  `source` is the hash of the file that is about to be moved there.
    """

    uri: str
    hash: str | None = None
    problem: str | None = None
    source: str | None = None


@frozen
class CallNote:
    """The files that a call writes, right before it or right after it."""

    at: str
    event: NoteEvent
    call_id: str
    files: tuple[NotedFile, ...]


@frozen
class Copied:
    """A file right before a call, as the hook noted it: its text, None for no file.

    `problem` is the reason why the text is missing.  `source` is the hash of the file that the call
    moves there, `after` the hash of the file right after the call.
    """

    text: str | None = None
    problem: str | None = None
    source: str | None = None
    after: str | None = None


Copies = Callable[[str, str], Copied | None]
"""A file right before a call, by its uri; None if the hook noted nothing."""


def targets_of(
    tool: str, command: str, folder: str, base: str, mode: CopyMode
) -> tuple[Target, ...]:
    """Return the files that a call writes and whose earlier text the session file will lack.

    `command` is the patch or the script, which runs in `folder`; `base` is the session's folder.
    Files that a patch only updates are not included.
    """
    found: dict[str, Target] = {}

    def uri(path: str, within: str | None) -> str | None:
        named = uri_of(path, folder=within, turn_folder=None, base=base)
        return None if named is None or named.encoded else named.uri

    def take(path: str, source: str | None, within: str | None) -> None:
        name = uri(path, within)
        if name is not None:
            found.setdefault(name, Target(name, None if source is None else uri(source, within)))

    if tool == PATCH_TOOL:
        for path, source in _replaced_by(command):
            take(path, source, folder)
    elif tool == SHELL_TOOL:
        reading = read_script(command)
        within = inside(folder, reading.folder)
        for patch in reading.patches:
            for path, source in _replaced_by(patch):
                take(path, source, within)
        for each in reading.writes if mode == "named" else ():
            take(each.path, None, within)
    return tuple(found.values())


def _replaced_by(patch: str) -> Iterator[tuple[str, str | None]]:
    """Yield the files that a patch adds, and the targets of its moves."""
    for each in files_of(patch):
        if each.kind == "add":
            yield each.path, None
        elif each.move_to is not None:
            yield each.move_to, each.path


def line_of(note: CallNote) -> dict[str, object]:
    """Return the line of a note in `file_copies.jsonl`."""
    line = asdict(note)
    return line | {"callId": line.pop("call_id")}


def notes_in(lines: Iterable[object]) -> Iterator[CallNote]:
    """Yield the notes of such a file; other lines are skipped."""
    for line in map(object_of, lines):
        at, call_id = text_of(line.get("at")), text_of(line.get("callId"))
        named = line.get("event")
        event: NoteEvent | None = next((each for each in NOTE_EVENTS if each == named), None)
        if at and call_id and event is not None:
            files = map(object_of, list_of(line.get("files")))
            yield CallNote(at, event, call_id, tuple(_files(files)))


def _files(files: Iterable[Mapping[str, object]]) -> Iterator[NotedFile]:
    for each in files:
        uri = text_of(each.get("uri"))
        if uri is not None:
            values = (text_of(each.get(name)) for name in ("hash", "problem", "source"))
            yield NotedFile(uri, *values)


def folder_in(head: bytes, session_id: str) -> str | None:
    """Return the folder of a session from the first line of its file; None if the id differs."""
    record = object_of(load(head))
    meta = object_of(record.get("payload"))
    is_own = record.get("type") == "session_meta" and str(meta.get("id")).lower() == session_id
    return text_of(meta.get("cwd")) if is_own else None
