"""Keeps the bytes of files that are replaced or removed, so that this can be undone.

`SafetyCopies` has the files that a restore replaces, a folder for each operation; `FileCopies` the
files that Codex is about to replace, a packed file for each content.  Only their owner may read
them.  Each takes a bounded size and keeps a copy for a bounded time; the oldest go first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator

from attrs import frozen

from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.storage import atomic_files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BYTES = 200 << 20
MOST_SECONDS = 30 * 86_400

LARGEST_COPY = 5 << 20
"""Maximum size in bytes of a file that a hook copies."""

_MOST_COPIES = 10_000
"""Number of copies to check before Codex continues."""


@frozen
class Copy:
    """A copy, or all of one operation: its name, its bytes on the disk, its last use in ns."""

    name: str
    size: int
    mtime_ns: int


class SafetyCopies:
    """The copies in one state folder of files that restores replaced."""

    def __init__(self, state_dir: str) -> None:
        self.folder = os.path.join(state_dir, "file-restores")

    def keep(self, operation_id: str, name: str, data: bytes) -> None:
        """Keep some bytes, durably; raises `StorageError`."""
        path = os.path.join(self.folder, operation_id, name)
        with atomic_files.storage_errors():
            atomic_files.in_folder(path, lambda: atomic_files.publish(path, (data,)))

    def kept(self, operation_id: str, name: str) -> bytes | None:
        """Return kept bytes, None if they are gone."""
        path = os.path.join(self.folder, operation_id, name)
        with contextlib.suppress(OSError), open(path, "rb", opener=atomic_files.own) as file:
            return file.read()
        return None

    def remove(self, operation_id: str) -> bool:
        """Remove the copies of an operation; return whether all are gone."""
        path = os.path.join(self.folder, operation_id)
        shutil.rmtree(path, ignore_errors=True)
        return not os.path.lexists(path)

    def prune(self) -> None:
        """Remove copies that are too old, and the oldest while all take too much."""
        for each in _too_many(self.copies()):
            self.remove(each.name)

    def copies(self) -> list[Copy]:
        """Return the copies of each operation, the newest first."""
        return _newest_first(_entries(self.folder))


class FileCopies:
    """The copies in one state folder of files that Codex replaced, by the hash of their bytes."""

    def __init__(self, state_dir: str) -> None:
        self.folder = os.path.join(state_dir, "file-copies")

    def keep(self, data: bytes) -> str:
        """Keep some bytes, durably, and remove older ones; return their hash.

        Raises `StorageError`.
        """
        digest = digest_of(data)
        path = self._path(digest)
        with atomic_files.storage_errors():
            try:
                os.utime(path, follow_symlinks=False)
            except FileNotFoundError:
                packed = zstd.compress(data)
                with contextlib.suppress(FileExistsError):  # another hook was faster
                    atomic_files.in_folder(path, lambda: atomic_files.publish(path, (packed,)))
                self.prune()
        return digest

    def kept(self, digest: str) -> bytes | None:
        """Return the bytes with a hash; None if they are gone or damaged."""
        with contextlib.suppress(OSError, EOFError, zstd.ZstdError):
            with (
                open(self._path(digest), "rb", opener=atomic_files.own) as packed,
                zstd.ZstdFile(packed) as plain,
            ):
                data = plain.read(LARGEST_COPY + 1)
            return data if digest_of(data) == digest else None
        return None

    def prune(self) -> None:
        """Remove copies that are too old, and the oldest while there are too many."""
        for each in _too_many(self.copies(), _MOST_COPIES):
            self.remove(each.name)

    def remove(self, name: str) -> None:
        """Remove a copy."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, name))

    def copies(self) -> list[Copy]:
        """Return the copies, the newest first."""
        return _newest_first(_entries(self.folder))

    def _path(self, digest: str) -> str:
        return os.path.join(self.folder, f"{digest.removeprefix('sha256:')}.zst")


def _too_many(copies: Iterable[Copy], most: int | None = None) -> Iterator[Copy]:
    """Yield the copies beyond the bounds of time, size and number; the newest come first."""
    total, oldest = 0, time.time_ns() - MOST_SECONDS * 1_000_000_000
    for number, each in enumerate(copies, 1):
        total += each.size
        is_many = most is not None and number > most
        if is_many or total > MOST_BYTES or each.mtime_ns < oldest:
            yield each


def _newest_first(copies: Iterable[Copy]) -> list[Copy]:
    return sorted(copies, key=lambda each: -each.mtime_ns)


def _entries(folder: str) -> Iterator[Copy]:
    """Yield the files of a folder, and its folders with the size of all their files."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                size = found.st_size
                if entry.is_dir(follow_symlinks=False):
                    size = sum(each.size for each in _entries(entry.path))
                yield Copy(entry.name, size, found.st_mtime_ns)
