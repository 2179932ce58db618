"""Defines `file_restores.jsonl`: one record per restore of files, with the data for its undo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from codex_checkpoints.core.converters import read_or_none, stored


@frozen
class FileWrite:
    """A file that was written or removed; its hashes before and after, None for no file.

    `mode` is the mode of the file before, or of the new one; `copy` names the safety copy of the
    earlier bytes; `folders` counts the folders that were missing above a new file.
    """

    path: str
    before: str | None
    after: str | None
    mode: int
    copy: str | None
    folders: int = 0


@frozen
class FileRestore:
    """A restore of files to the end of a turn, or the undo of one (`undoes`).

    `folder` is the session's folder, to which the paths are relative.
    """

    operation_id: str
    at: str
    session_id: str
    turn_id: str
    folder: str
    writes: tuple[FileWrite, ...]
    undoes: str | None = None


def line_of(restore: FileRestore) -> dict[str, Any]:
    """Return the line of a record."""
    return stored.unstructure(restore)


def file_restore_in(line: object) -> FileRestore | None:
    """Read a record; None if the line is not a record."""
    return read_or_none(stored, line, FileRestore)


def file_restores_in(lines: Iterable[object]) -> dict[str, FileRestore]:
    """Return the records of a file by their operation; the first of one operation counts."""
    found: dict[str, FileRestore] = {}
    for each in filter(None, map(file_restore_in, lines)):
        found.setdefault(each.operation_id, each)
    return found
