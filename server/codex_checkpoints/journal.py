"""A file of ours that only grows, by whole lines: everybody reads it, one at a time writes to it.

Which files these are, and where they lie, is known to `records`.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO

import orjson

from codex_checkpoints.values import frozen

PATIENCE = 10.0
"""Seconds to wait for another process that is appending to the same file."""
_PAUSE = 0.01
_LONGEST_LINE = 1 << 24
"""No line of ours comes near; one that does is passed over, so that it fills no memory."""

Append = Callable[[object], None]
"""Append one line to a file that only grows; durable when it returns, or else `StorageError`."""


class StorageError(Exception):
    """A file of ours that could not be read or written; the text is the system's reason."""


@frozen
class Unreadable:
    """A line that says nothing; one that is `torn` lacks its end, as a killed process leaves it."""

    torn: bool


class Journal:
    """The right to write to one file that only grows; it ends with the block it came from."""

    def __init__(self, file: int, folder: str) -> None:
        """Take the file, which is locked."""
        self._file = file
        self._folder = folder

    def append(self, line: object) -> None:
        """Append one line, durable on return; raises `StorageError`."""
        _append(self._file, self._folder, line)

    def take_back(self) -> None:
        """Remove the last line, of which nothing came; durable on return.

        Raises `StorageError`.
        """
        try:
            size = os.lseek(self._file, 0, os.SEEK_END)
            os.lseek(self._file, 0, os.SEEK_SET)
            with open(os.dup(self._file), "rb") as file:
                data = file.read(size)
            os.ftruncate(self._file, data.rstrip(b"\n").rfind(b"\n") + 1)
            os.fsync(self._file)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error

    def clear(self) -> None:
        """Remove all lines, also one that was torn; durable on return.

        Raises `StorageError`.
        """
        try:
            os.ftruncate(self._file, 0)
            os.fsync(self._file)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error


@contextlib.contextmanager
def held(folder: str, name: str, patience: float = PATIENCE) -> Generator[Journal]:
    """Hold the right to write to a file; one that is empty then goes again, with its folder.

    The right ends with the block, or with the process.  Raises `StorageError`, also when another
    process keeps the right for more than `patience` seconds.
    """
    path = os.path.join(folder, name)
    with _locked(path, patience) as file:
        try:
            yield Journal(file, folder)
        finally:
            with contextlib.suppress(OSError):
                if os.fstat(file).st_size == 0:
                    os.unlink(path)
                    os.rmdir(folder)
                    os.rmdir(os.path.dirname(folder))


def is_held(path: str) -> bool:
    """Return whether somebody holds the right to write to a file right now; waits for nobody.

    What cannot be locked cannot be told to be free, so it counts as held.  On a file system without
    locks nobody can write to it either.
    """
    flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError:
        return False
    try:
        return not _take(file)
    except OSError:
        return True
    finally:
        os.close(file)


def append_to(path: str, line: object) -> None:
    """Append one line to a file; durable on return, or else `StorageError`."""
    with _locked(path) as file:
        _append(file, os.path.dirname(path), line)


def lines_in(path: str) -> Iterator[object]:
    """Yield the readable lines of a file that only grows; the others are passed over.

    A last line that is torn is nobody's trouble; what else is told by `unreadable_in`.
    """
    return (line for line in all_lines_in(path) if not isinstance(line, Unreadable))


def all_lines_in(path: str) -> Iterator[object]:
    """Yield every line of a file that only grows, so that they can be counted.

    A line that is no JSON is `Unreadable`.  Raises `StorageError`.
    """
    try:
        with open(path, "rb", opener=regular) as file:
            yield from map(_value_of, _lines_of(file))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from error


def unreadable_in(path: str) -> Iterator[int]:
    """Yield which lines of a file that only grows hold no JSON object, from 1.

    Left out is a last one that lacks its end: it is being written, or whoever wrote it was killed.
    Raises `StorageError`.
    """
    try:
        with open(path, "rb", opener=regular) as file:
            for number, line in enumerate(_lines_of(file), 1):
                value = _value_of(line)
                is_torn = isinstance(value, Unreadable) and value.torn
                is_begun = is_torn and line is not None and not line.endswith(b"\n")
                if not (is_begun or isinstance(value, dict)):
                    yield number
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from error


def regular(path: str, flags: int) -> int:
    """Open a file, and nothing else: a pipe in its place would keep us waiting."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file")


def _value_of(line: bytes | None) -> object:
    if line is None:
        return Unreadable(torn=False)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return Unreadable(_is_torn(line))


def _is_torn(line: bytes) -> bool:
    """Return whether a line would be JSON if only it went on."""
    try:
        # What is not final may end within a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(line.rstrip(b"\n"))
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return error.pos >= len(error.doc)
    except UnicodeDecodeError:
        return False
    return True  # but for a part of a character


def _lines_of(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a file, None for one that is too long to be ours."""
    begun = False
    while line := file.readline(_LONGEST_LINE):
        ended = line.endswith(b"\n") or len(line) < _LONGEST_LINE
        if ended:
            yield None if begun else line
        begun = not ended


@contextlib.contextmanager
def _locked(path: str, patience: float = PATIENCE) -> Generator[int]:
    try:
        file = _hold(path, patience)
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from error
    try:
        yield file
    finally:
        os.close(file)


def _hold(path: str, patience: float) -> int:
    """Open a file that only grows, make it if need be, and lock it.

    The lock is the system's own, so it ends with the process that held it.
    """
    end = time.monotonic() + patience
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    while True:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if _is_ours(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if time.monotonic() >= end:
            raise StorageError("another process keeps it")
        time.sleep(_PAUSE)


def _is_ours(file: int, path: str) -> bool:
    """Lock a file without waiting; what was removed meanwhile is of no use."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise StorageError("not a regular file")
    if not _take(file):
        return False
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), os.stat(path))
    return False


def _append(file: int, folder: str, line: object) -> None:
    """Append one line in one write; what a killed process left of another is ended first."""
    data = orjson.dumps(line) + b"\n"
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        if size and not _ends_a_line(file, size):
            data = b"\n" + data
        try:
            _write_whole(file, data)
            if size == 0:
                _settle_folder(folder)
        except BaseException:
            # Whoever is told that it failed must not find it there later.
            with contextlib.suppress(OSError):
                os.ftruncate(file, size)
                os.fsync(file)
            raise
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from error


def _write_whole(file: int, data: bytes) -> None:
    """Write in one go and flush; a disk that takes a part of it is full."""
    if os.write(file, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)


def _ends_a_line(file: int, size: int) -> bool:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) == b"\n"


def _settle_folder(folder: str) -> None:
    """Make the name of a new file as durable as its bytes, where the system needs to be told."""
    if sys.platform != "win32":
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


# Not `file_lock`: that locks the whole file, which on Windows would keep readers out, and takes any
# failure for another's lock, where a writer has to be told what the system refused.
if sys.platform == "win32":
    import msvcrt

    # A lock keeps others from reading what it covers; no line ever lies so far out.
    _LOCKED_AT = 1 << 40

    def _take(file: int) -> bool:
        os.lseek(file, _LOCKED_AT, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _take(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
