"""Writes a configuration file of Codex so that nothing is lost.

The old bytes are kept in a copy beside it; mode, owner and symbolic links stay.  A file that
somebody else changed since it was read is left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

from attrs import frozen

from codex_checkpoints.codex.entries import CannotEdit
from codex_checkpoints.storage import atomic_files

MAX_BYTES = 8 << 20
"""More than anybody's configuration; a larger file is not read."""

BACKUP = "codex-checkpoints.bak"
_BACKUPS = 1000


class TooLong(CannotEdit):
    """The file is longer than `MAX_BYTES`."""

    code = "limit_exceeded"


class NotWritable(CannotEdit):
    """The file or its folder is read-only, or a link leads nowhere."""

    code = "storage_error"


@frozen
class Snapshot:
    """A file as it was read; `data` is None if it does not exist."""

    path: str
    data: bytes | None


def read(path: str) -> Snapshot:
    """Read a file.  Raises `TooLong`, and `OSError` also for a non-regular file."""
    try:
        return Snapshot(path, atomic_files.read(path, MAX_BYTES))
    except FileNotFoundError:
        return Snapshot(path, None)
    except atomic_files.TooLarge:
        raise TooLong(f"it is longer than {MAX_BYTES >> 20} MiB") from None


def check_writable(before: Snapshot) -> None:
    """Raise `NotWritable` if the file is read-only.

    A rename would succeed all the same; but a read-only file is meant to stay.
    """
    target = os.path.realpath(before.path)
    folder = os.path.dirname(target)
    if before.data is None:
        if os.path.islink(before.path):
            raise NotWritable("it is a symbolic link that leads nowhere")
    elif not os.stat(target).st_mode & 0o222 or not os.access(target, os.W_OK):
        raise NotWritable("it is read-only")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NotWritable("its folder is read-only")


def keep(before: Snapshot) -> str | None:
    """Copy the old bytes beside the file, unless such a copy exists; return its path.

    None if the file does not exist.  A copy of other bytes stays.  Raises `OSError`.
    """
    if before.data is None:
        return None
    for number in range(1, _BACKUPS):
        copy = f"{before.path}.{BACKUP}{number if number > 1 else ''}"
        try:
            atomic_files.publish(copy, (before.data,))
        except FileExistsError:
            if _is(copy, before.data):
                return copy
            continue
        _like(before.path, copy)
        return copy
    raise FileExistsError(f"{_BACKUPS} copies are kept beside it already")


def replace(before: Snapshot, data: bytes) -> None:
    """Write new bytes; raises `OSError` and `CannotEdit`, and then the old file is intact."""
    target = os.path.realpath(before.path)

    def prepare(temporary: str) -> None:
        if before.data is not None:
            _like(target, temporary)
        _check_unchanged(before)

    atomic_files.replace(target, data, prepare)


def remove(before: Snapshot) -> None:
    """Remove an unchanged file.  Raises `OSError` and `CannotEdit`."""
    _check_unchanged(before)
    os.unlink(before.path)
    atomic_files.settle_folder(os.path.dirname(before.path))


def clear_leftovers(path: str) -> None:
    """Remove temporary files that a killed process left beside a file."""
    folder, name = os.path.split(os.path.realpath(path))
    left = re.compile(rf"\.{re.escape(name)}(\.{re.escape(BACKUP)}\d*)?\.[0-9a-f]{{16}}\.tmp")
    with contextlib.suppress(OSError):
        for each in filter(left.fullmatch, os.listdir(folder)):
            atomic_files.clear(os.path.join(folder, each))


def copies(path: str) -> list[str]:
    """Return the backups beside a file."""
    folder, name = os.path.split(path)
    found: list[str] = []
    with contextlib.suppress(OSError):
        for copy in sorted(os.listdir(folder)):
            number = copy.removeprefix(f"{name}.{BACKUP}")
            if number != copy and (number.isdecimal() or not number):
                found.append(os.path.join(folder, copy))
    return found


def forget_copies(path: str) -> None:
    """Remove the backups that equal the file."""
    with contextlib.suppress(OSError, CannotEdit):
        data = read(path).data
        for copy in copies(path):
            if data is not None and _is(copy, data):
                os.unlink(copy)


def _is(path: str, data: bytes) -> bool:
    with contextlib.suppress(OSError, CannotEdit):
        return read(path).data == data
    return False


def _like(old: str, new: str) -> None:
    """Give a new file the mode and, if we may, the owner of the old one."""
    status = os.stat(old)
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(new, status.st_uid, status.st_gid)
    os.chmod(new, stat.S_IMODE(status.st_mode))


def _check_unchanged(before: Snapshot) -> None:
    if read(before.path).data != before.data:
        raise CannotEdit("somebody else has changed it meanwhile")
