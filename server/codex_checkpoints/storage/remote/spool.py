"""Keeps redacted histories between preview and push, so that exactly the shown bytes are sent.

They are compressed in one nameless file, which only this process can read and which ends with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from attrs import frozen

from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.remote.packing import LEVEL, zstd

_FRAME = 1 << 20


@frozen
class Spooled:
    """The bytes of one history, in frames of the file: each its offset and length."""

    _file: BinaryIO
    _frames: tuple[tuple[int, int], ...]

    def portions(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning; raises `StorageError`."""
        for offset, length in self._frames:
            with atomic_files.storage_errors():
                self._file.seek(offset)
                packed = self._file.read(length)
            yield zstd.decompress(packed)


class Spool:
    """A file for the histories of one push; `close` frees its space."""

    def __init__(self, folder: str) -> None:
        """Create the file in a folder of ours; raises `StorageError`."""
        with atomic_files.storage_errors():
            atomic_files.make_folder(folder, 0o700)
            self._file: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see `close`

    def add(self, portions: Iterable[bytes]) -> Spooled:
        """Keep a history; raises `StorageError`, and any error of `portions`."""
        frames: list[tuple[int, int]] = []
        kept = bytearray()
        for portion in portions:
            kept += portion
            if len(kept) >= _FRAME:
                frames.append(self._write(kept))
                kept.clear()
        if kept:
            frames.append(self._write(kept))
        return Spooled(self._file, tuple(frames))

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def _write(self, data: bytearray) -> tuple[int, int]:
        packed = zstd.compress(bytes(data), LEVEL)
        with atomic_files.storage_errors():
            offset = self._file.seek(0, 2)
            self._file.write(packed)
            self._file.flush()
        return offset, len(packed)
