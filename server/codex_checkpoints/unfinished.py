"""Files that grow under a temporary name: who is still at one, and which a dead process left.

Whoever writes such a file keeps it locked until it has its own name.  The lock ends with the
process, so what was left behind is known at once and for sure, on any clock.  On Windows a lock
would keep the writer itself from giving the file its name, and some file systems have none; there,
a file that nobody has touched for a minute counts as left.

Which names are temporary, and in which folders they lie, is known to `records` and to the store of
session files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Generator

from codex_checkpoints import file_lock

_LOCKS = os.name != "nt"
_ATTEMPTS = 100
_PAUSE = 0.01
_UNTOUCHED_SECONDS = 60
_CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_MADE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED
_ASKED = os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | _CLOSED


@contextlib.contextmanager
def growing(path: str, mode: int) -> Generator[int]:
    """Make a file; until the block ends, everybody can tell that somebody is at it.

    The descriptor is the caller's to write to and to close.  A block that ends in an error takes
    the file with it.  Raises `OSError`, `FileExistsError` when there is such a file.
    """
    descriptor = _made(path, mode)
    mark = os.dup(descriptor) if _LOCKS else None
    try:
        yield descriptor
    except BaseException:
        discard(path)
        raise
    finally:
        if mark is not None:
            os.close(mark)


def discard(path: str) -> None:
    """Remove a temporary file; where that fails, the next start will."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def clear(path: str) -> bool:
    """Remove a temporary file that nobody is at any more; return whether it is gone by this.

    Never fails, and follows no link.
    """
    with contextlib.suppress(OSError):
        if not _LOCKS:
            return _clear_by_age(path)
        file = os.open(path, _ASKED)
        try:
            # Held while it goes, so that a file made under this name meanwhile is not meant.
            if stat.S_ISREG(os.fstat(file).st_mode) and _is_ours(file, path):
                os.unlink(path)
                return True
            return not file_lock.is_supported(file) and _clear_by_age(path)
        finally:
            os.close(file)
    return False


def _clear_by_age(path: str) -> bool:
    look = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(look.st_mode) or time.time() - look.st_mtime <= _UNTOUCHED_SECONDS:
        return False
    os.unlink(path)
    return True


def _made(path: str, mode: int) -> int:
    lost = False
    for _ in range(_ATTEMPTS):
        try:
            file = os.open(path, _MADE, mode)
        except FileExistsError:
            if not lost:
                raise
            time.sleep(_PAUSE)
            continue
        # A file system without locks, as some networks have: there, age tells what was left.
        if not _LOCKS or _is_ours(file, path) or not file_lock.is_supported(file):
            return file
        # Somebody who clears up came between the two calls, and is about to remove it.
        os.close(file)
        lost = True
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _is_ours(file: int, path: str) -> bool:
    """Lock a file, and return whether it is still the one of this name."""
    if not file_lock.take(file):
        return False
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    return False
