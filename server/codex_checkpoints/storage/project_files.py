"""Reads, replaces and removes files of the user's projects, below one folder, without links.

The paths come from session files and are not to be trusted.  A file is written only if it is still
the one that was examined: same file, size and times.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Sequence
from typing import Literal

from attrs import frozen

from codex_checkpoints.storage.file_lock import open_flags
from codex_checkpoints.storage.workspace import native

LARGEST = 1 << 26
"""Maximum size in bytes of a file that is examined."""

Problem = Literal["outside", "link", "too_large", "unreadable"]

_FOLDER = os.O_RDONLY | open_flags("DIRECTORY", "NOFOLLOW", "CLOEXEC")
_FILE = os.O_RDONLY | open_flags("NONBLOCK", "NOFOLLOW", "NOCTTY", "CLOEXEC", "BINARY")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | open_flags("NOFOLLOW", "CLOEXEC", "BINARY")
_WRITERS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_NO_FILE = (FileNotFoundError, NotADirectoryError)

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size and times: the difference between two states of a file."""


class NotWritable(Exception):
    """A file that is left unchanged; the text says why."""


@frozen
class ProjectFile:
    """A file as it was read: its bytes, None if it is missing, its mode and its stamp."""

    data: bytes | None = None
    mode: int = 0o644
    stamp: Stamp | None = None


def is_supported() -> bool:
    """Return whether this system can open a file relative to an open folder."""
    return os.open in os.supports_dir_fd


def look(root: str, uri: str, most: int = LARGEST) -> ProjectFile | Problem:
    """Return a file below a folder, or why it is skipped; a file of more than `most` bytes is."""
    parts = _parts(uri)
    if parts is None:
        return "outside"
    try:
        with _folder(root, parts[:-1]) as folder:
            return _read(folder, parts[-1], most)
    except _NO_FILE:
        return ProjectFile()
    except NotWritable:
        return "outside"
    except OSError as error:
        return "link" if error.errno in {errno.ELOOP, errno.EMLINK} else "unreadable"


def put(root: str, uri: str, data: bytes | None, seen: ProjectFile, tag: str) -> None:
    """Give a file these bytes, durably, or remove it; its folder is made if it is gone.

    It must still be as it was `seen`, and keeps that mode.  `tag` names the temporary file, for
    `clear`.  Raises `NotWritable`; then the file is unchanged, and no folder was made.
    """
    parts = _parts(uri)
    if parts is None:
        raise NotWritable("it lies outside the folder of the session")
    if seen.data is not None and not seen.mode & _WRITERS:
        raise NotWritable("it is read-only")
    try:
        with _folder(root, parts[:-1], make=data is not None) as folder:
            if data is None:
                _check(folder, parts[-1], seen)
                os.unlink(parts[-1], dir_fd=folder)
            else:
                _replace(folder, parts[-1], _temporary(parts[-1], tag), data, seen)
            os.fsync(folder)
    except OSError as error:
        raise NotWritable(error.strerror or type(error).__name__) from error


def missing_folders(root: str, uri: str) -> int:
    """Return how many folders above a file do not exist."""
    parts = (_parts(uri) or ())[:-1]
    for count in range(len(parts), 0, -1):
        with contextlib.suppress(OSError, NotWritable), _folder(root, parts[:count]):
            return len(parts) - count
    return len(parts)


def remove_folders(root: str, uri: str, count: int) -> None:
    """Remove up to `count` empty folders above a file, the innermost first."""
    parts = (_parts(uri) or ())[:-1]
    with contextlib.suppress(OSError, NotWritable):
        for place in range(len(parts) - 1, len(parts) - 1 - count, -1):
            with _folder(root, parts[:place]) as above:
                os.rmdir(parts[place], dir_fd=above)
                os.fsync(above)


def clear(root: str, uri: str, tag: str) -> None:
    """Remove the temporary file that a killed process left beside a file."""
    parts = _parts(uri)
    with contextlib.suppress(OSError, NotWritable):
        if parts is not None:
            with _folder(root, parts[:-1]) as folder:
                os.unlink(_temporary(parts[-1], tag), dir_fd=folder)


def _temporary(name: str, tag: str) -> str:
    return f".{name[:50]}.{tag}.tmp"


def _parts(uri: str) -> Sequence[str] | None:
    """Return the names on the way to a file; None for one that is never written."""
    parts = native(uri).split("/")
    if any(part in {"", ".", ".."} or "\0" in part or "\\" in part for part in parts):
        return None
    return None if ".git" in map(str.lower, parts) else parts


@contextlib.contextmanager
def _folder(root: str, parts: Sequence[str], *, make: bool = False) -> Generator[int]:
    """Open the folder of a file, refusing links and other repositories on the way.

    With `make` those that are missing are made, durably, and removed where the block fails.
    """
    folder = os.open(root, _FOLDER & ~open_flags("NOFOLLOW"))
    made: list[tuple[int, str]] = []
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                    made.append((os.dup(folder), part))
            inner = _inner(folder, part)
            os.close(folder)
            folder = inner
        yield folder
        for above, _ in made:
            os.fsync(above)
    except BaseException:
        for above, part in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(part, dir_fd=above)
        raise
    finally:
        os.close(folder)
        for above, _ in made:
            os.close(above)


def _inner(folder: int, name: str) -> int:
    """Open a folder in another one, refusing a link and another repository."""
    inner = os.open(name, _FOLDER, dir_fd=folder)
    try:
        os.lstat(".git", dir_fd=inner)
    except FileNotFoundError:
        return inner
    except OSError:
        os.close(inner)
        raise
    os.close(inner)
    raise NotWritable("it lies in another repository")


def _read(folder: int, name: str, most: int) -> ProjectFile | Problem:
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            return "link" if found.st_nlink > 1 and stat.S_ISREG(found.st_mode) else "unreadable"
        if found.st_size > most:
            return "too_large"
        with open(file, "rb", closefd=False) as whole:
            data = whole.read(found.st_size + 1)
        if _stamp(os.fstat(file)) != _stamp(found):
            return "unreadable"  # somebody writes to it
        return ProjectFile(data, stat.S_IMODE(found.st_mode), _stamp(found))
    finally:
        os.close(file)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _check(folder: int, name: str, seen: ProjectFile) -> None:
    """Raise `NotWritable` if a file differs from the version that was seen."""
    try:
        now: Stamp | None = _stamp(os.lstat(name, dir_fd=folder))
    except FileNotFoundError:
        now = None
    if now != seen.stamp:
        raise NotWritable("it was changed meanwhile")


def _replace(folder: int, name: str, temporary: str, data: bytes, seen: ProjectFile) -> None:
    file = os.open(temporary, _NEW, 0o600, dir_fd=folder)
    try:
        try:
            written = 0
            while written < len(data):
                written += os.write(file, data[written:])
            os.fchmod(file, seen.mode)
            os.fsync(file)
        finally:
            os.close(file)
        # Between this check and the rename nothing may happen; the system offers no exchange that
        # compares.  A new file never takes the name of another.
        _check(folder, name, seen)
        if seen.stamp is None:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.unlink(temporary, dir_fd=folder)
        else:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
