"""Caches pushed sessions that were opened on this machine, each as a session file.

```text
remote/<place>/<session>.<version>.jsonl    the lines of a session, as they were pushed
```

A file appears whole, after all its bytes were checked.  Those opened last are kept, `MOST_BYTES`
in all; the newest may be larger until it was pulled or another one is opened.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256

from attrs import frozen

from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.remote.contract import SessionRow

CACHE = "remote"
MOST_BYTES = 1 << 28
"""The size of all files, without the one opened last."""


@frozen
class RemoteCache:
    """The cache of the remote at `place`."""

    state_dir: str
    place: str

    @property
    def folder(self) -> str:
        """Return the folder of its files."""
        return os.path.join(self.state_dir, CACHE, sha256(self.place.encode()).hexdigest()[:16])

    def path(self, row: SessionRow) -> str:
        """Return the file of a session, which may be missing; another history has another file."""
        version = f"{row.owner}\0{row.generation}\0{row.prefix}"
        name = f"{row.session_id}.{sha256(version.encode()).hexdigest()[:16]}.jsonl"
        return os.path.join(self.folder, name)

    def keep(self, row: SessionRow, portions: Iterable[bytes]) -> str:
        """Write a session unless it is cached, and return its file.

        Raises `StorageError`, also if it would leave no room for a branch of it, and any error of
        `portions`; then nothing was written.
        """
        path = self.path(row)
        with atomic_files.storage_errors():
            if not os.path.exists(path):
                atomic_files.make_folder(os.path.join(self.state_dir, CACHE), 0o700)
                atomic_files.make_folder(self.folder, 0o700)
                self._check_room(row.size)
                with suppress(FileExistsError):  # another process opened it at the same time
                    atomic_files.publish(path, portions)
            os.utime(path)
            self._shrink(path)
        return path

    def release(self, path: str) -> None:
        """Remove a file that was pulled, if it is larger than all others may be together."""
        with atomic_files.storage_errors():
            if os.path.getsize(path) > MOST_BYTES:
                atomic_files.discard(path)

    def discard(self, session_id: str) -> None:
        """Remove the files of a session."""
        for path in self._paths():
            if os.path.basename(path).startswith(f"{session_id}."):
                atomic_files.discard(path)

    def _check_room(self, size: int) -> None:
        """Raise `StorageError` unless the disk has room for a session twice, here and as a branch.

        The size is in the row, and a store never gives more than it says.
        """
        free = shutil.disk_usage(self.folder).free
        if 2 * size > free:
            needed, has = (f"{each / 1e9:,.1f} GB" for each in (2 * size, free))
            raise atomic_files.StorageError(f"it needs {needed}, and {has} are free", self.folder)

    def _shrink(self, newest: str) -> None:
        """Remove the files of killed processes, and those opened longest ago."""
        found: list[tuple[int, int, str]] = []
        for path in self._paths():
            if path.endswith(".tmp"):
                atomic_files.clear(path)
            elif path != newest:
                with suppress(FileNotFoundError):
                    look = os.stat(path)
                    found.append((look.st_mtime_ns, look.st_size, path))
        left = MOST_BYTES
        for _, size, path in sorted(found, reverse=True):
            left -= size
            if left < 0:
                atomic_files.discard(path)

    def _paths(self) -> Iterator[str]:
        with suppress(FileNotFoundError):
            yield from (os.path.join(self.folder, name) for name in os.listdir(self.folder))
