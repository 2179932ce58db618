"""Reads the lines of our files that only grow; a line that is too long or torn stops nothing."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

import orjson
from attrs import frozen

from codex_checkpoints.storage.atomic_files import (
    Opener,
    StorageError,
    own,
    path_of,
    reason_of,
)

_LONGEST_LINE = 1 << 24
"""A longer line, which is never ours, is skipped, so that it fills no memory."""


@frozen
class UnreadableRecord:
    """A line that is not JSON; a `torn` one lacks its end, as a killed process leaves it."""

    torn: bool


def lines_in(path: str, opener: Opener = own) -> Iterator[object]:
    """Yield the readable lines of a file that only grows; raises `StorageError`."""
    values = map(value_of, raw_lines_in(path, opener))
    return (value for value in values if not isinstance(value, UnreadableRecord))


def unreadable_in(path: str) -> Iterator[int]:
    """Yield the numbers, from 1, of lines that are not JSON objects, except a torn last one."""
    for number, line in enumerate(raw_lines_in(path), 1):
        value = value_of(line)
        is_torn = isinstance(value, UnreadableRecord) and value.torn
        is_begun = is_torn and line is not None and not line.endswith(b"\n")
        if not (is_begun or isinstance(value, dict)):
            yield number


def raw_lines_in(path: str, opener: Opener = own) -> Iterator[bytes | None]:
    """Yield the lines of a file, None for one that is too long; nothing if the file is missing.

    Raises `StorageError`.
    """
    try:
        with open(path, "rb", opener=opener) as file:
            yield from _bounded(file)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageError(reason_of(error), path_of(error)) from error


def _bounded(file: BinaryIO) -> Iterator[bytes | None]:
    begun = False
    while line := file.readline(_LONGEST_LINE):
        ended = line.endswith(b"\n") or len(line) < _LONGEST_LINE
        if ended:
            yield None if begun else line
        begun = not ended


def value_of(line: bytes | None) -> object:
    """Return the JSON value of a line, `UnreadableRecord` if it is not JSON."""
    if line is None:
        return UnreadableRecord(torn=False)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return UnreadableRecord(_is_torn(line))


def _is_torn(line: bytes) -> bool:
    """Return whether a line would be JSON if it continued."""
    try:
        # Text that is not final may end within a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(line.rstrip(b"\n"))
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return error.pos >= len(error.doc)
    except UnicodeDecodeError:
        return False
    return True  # except for a part of a character
