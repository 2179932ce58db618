"""A file of lines that only grows and that other processes grow as well.

Session files, which need Codex's locks, are left to `writer`.
"""

from __future__ import annotations

import errno
import os
import stat

from codex_checkpoints.threads.publishing import sync_folder

_FLAGS = (
    os.O_RDWR
    | os.O_APPEND
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


def look_at(path: str) -> tuple[int, int, int]:
    """Return what must be equal for a file to be unchanged.

    Raises `OSError`, also for what is no file: opening it might never return.
    """
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return found.st_size, found.st_mtime_ns, found.st_ino


def check(path: str) -> None:
    """Raise `OSError` where no line could be appended as things are; nothing is written or made."""
    try:
        os.close(_opened(path, _FLAGS))
    except FileNotFoundError:
        if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def append_line(path: str, line: bytes) -> None:
    """Append a line, durable when this returns; raises `OSError`.

    It is one write at the end, so lines of several processes do not mix.  Where the last line was
    torn, the LF that it lacks goes first, in the same write.
    """
    file = _opened(path, _FLAGS | os.O_CREAT)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and _byte_at(file, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + line + b"\n"
        if os.write(file, data) < len(data):
            # Whoever comes next ends what was torn, and no reader takes it for a line.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        if size == 0:
            sync_folder(os.path.dirname(path))
    finally:
        os.close(file)


def _opened(path: str, flags: int) -> int:
    file = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def _byte_at(file: int, offset: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, 1)
