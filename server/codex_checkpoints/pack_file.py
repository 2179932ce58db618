"""Portable packs as files: read within a bound, written whole or not at all.

The one place that touches a file which a person names outside our own folders.  It is read only
when it is a regular file, and written under another name first; a file that is there is replaced
only on the caller's word.  What a pack holds is known to `core/portable`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Generator

_CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class TooLarge(Exception):
    """A file beyond the bound; nothing of it was read."""


def read(path: str, most: int) -> bytes:
    """Return the bytes of a file; raises `TooLarge`, and `OSError` for what is no regular file."""
    flags = os.O_RDONLY | _CLOSED | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    descriptor = os.open(path, flags)
    with open(descriptor, "rb") as file:
        look = os.fstat(descriptor)
        if not stat.S_ISREG(look.st_mode):
            raise OSError("not a regular file")
        data = b"" if look.st_size > most else file.read(most + 1)
    if look.st_size > most or len(data) > most:
        raise TooLarge
    return data


def write(path: str, data: bytes) -> None:
    """Write a file that is not there yet, for its owner's eyes; durable and whole on return.

    Raises `FileExistsError`, `OSError`; then nothing is left.
    """
    with _beside(path, data) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:
            # A file system without links: between the look and the name another may take it.
            if os.path.lexists(path):
                raise FileExistsError(path) from None
            os.rename(temporary, path)


def replace(path: str, data: bytes) -> None:
    """Put a file in the place of whatever has its name; raises `OSError`, the old one is whole."""
    with _beside(path, data) as temporary:
        os.replace(temporary, path)


@contextlib.contextmanager
def _beside(path: str, data: bytes) -> Generator[str]:
    """Write a file beside another, and yield its name; it is gone when the block ends."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:80]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
        _settle(folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _settle(folder: str) -> None:
    """Make the new name durable, as far as the system can."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
