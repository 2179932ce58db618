"""Keep the bytes of files that are replaced or removed, so that this can be undone.

Each operation has a folder of copies, which only its owner may read.  Together they take a bounded
size, and each is kept for a bounded time; the oldest go first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time

from codex_checkpoints.storage import durable

MOST_BYTES = 200 << 20
MOST_SECONDS = 30 * 86_400


class SafetyCopies:
    """The copies in one state folder."""

    def __init__(self, state_dir: str) -> None:
        self._folder = os.path.join(state_dir, "file-restores")

    def keep(self, operation_id: str, name: str, data: bytes) -> None:
        """Keep some bytes, durably; raises `StorageError`."""
        path = os.path.join(self._folder, operation_id, name)
        with durable.storage_errors():
            durable.in_folder(path, lambda: durable.publish(path, (data,)))

    def kept(self, operation_id: str, name: str) -> bytes | None:
        """Return kept bytes, None where they are gone."""
        path = os.path.join(self._folder, operation_id, name)
        with contextlib.suppress(OSError), open(path, "rb", opener=durable.own) as file:
            return file.read()
        return None

    def remove(self, operation_id: str) -> bool:
        """Remove the copies of an operation; return whether all are gone."""
        path = os.path.join(self._folder, operation_id)
        shutil.rmtree(path, ignore_errors=True)
        return not os.path.lexists(path)

    def prune(self) -> None:
        """Remove copies that are too old, and the oldest while all take too much."""
        total = 0
        for operation_id, size, age in self._operations():
            total += size
            if total > MOST_BYTES or age > MOST_SECONDS:
                self.remove(operation_id)

    def _operations(self) -> list[tuple[str, int, float]]:
        """Return id, bytes and age in seconds of each operation, the newest first."""
        found: list[tuple[str, int, float]] = []
        with contextlib.suppress(OSError), os.scandir(self._folder) as folders:
            for folder in folders:
                with contextlib.suppress(OSError), os.scandir(folder.path) as files:
                    size = sum(file.stat(follow_symlinks=False).st_size for file in files)
                    age = time.time() - folder.stat(follow_symlinks=False).st_mtime
                    found.append((folder.name, size, age))
        return sorted(found, key=lambda each: each[2])
