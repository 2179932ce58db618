"""Keeps redacted sessions between preview and push, so that exactly the shown bytes are sent.

They are compressed in one nameless file, which only this process can read and which ends with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import BinaryIO

import orjson
from attrs import frozen

from codex_checkpoints.core.portable.said import Said
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.remote.packing import LEVEL, zstd

_FRAME = 1 << 18


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


class SpoolWriter:
    """Writes the bytes of one history; several may write to one spool in turns."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frames: list[tuple[int, int]] = []
        self._kept = bytearray()

    def write(self, data: bytes) -> None:
        """Add bytes; raises `StorageError`."""
        self._kept += data
        if len(self._kept) >= _FRAME:
            self._flush()

    def close(self) -> Spooled:
        """Return the written bytes; raises `StorageError`."""
        if self._kept:
            self._flush()
        return Spooled(self._file, tuple(self._frames))

    def _flush(self) -> None:
        packed = zstd.compress(bytes(self._kept), LEVEL)
        self._kept.clear()
        with atomic_files.storage_errors():
            offset = self._file.seek(0, 2)
            self._file.write(packed)
            self._file.flush()
        self._frames.append((offset, len(packed)))


class Spool:
    """A file for the histories of one push; `close` frees its space."""

    def __init__(self, folder: str) -> None:
        """Create the file in a folder of ours; raises `StorageError`."""
        with atomic_files.storage_errors():
            atomic_files.make_folder(folder, 0o700)
            self._file: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see `close`

    @property
    def size(self) -> int:
        """Return the size of the file; raises `StorageError`."""
        with atomic_files.storage_errors():
            return self._file.seek(0, 2)

    def writer(self) -> SpoolWriter:
        """Return a writer of one history."""
        return SpoolWriter(self._file)

    def add(self, portions: Iterable[bytes]) -> Spooled:
        """Keep a history; raises `StorageError`, and any error of `portions`."""
        writer = self.writer()
        for portion in portions:
            writer.write(portion)
        return writer.close()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


class SaidWriter:
    """Keeps the texts of a session in a spool until the numbers of its turns are known."""

    def __init__(self, spool: Spool) -> None:
        self._writer = spool.writer()

    def add(self, said: Said, is_copy: bool) -> None:  # noqa: FBT001 - as `SaidReader` has it
        """Add a text; `is_copy`: it is the history's copy of a prompt."""
        kept = [said.seq, said.turn_id, said.kind, said.at, said.text, is_copy]
        self._writer.write(orjson.dumps(kept) + b"\n")

    def close(self, numbers: Mapping[str, int], *, without_copies: bool) -> SpooledSaid:
        """Return the texts with the numbers of their turns."""
        return SpooledSaid(self._writer.close(), numbers, without_copies)


class SpooledSaid:
    """Implements `contract.SaidLog` in a spool."""

    def __init__(
        self,
        spooled: Spooled,
        numbers: Mapping[str, int],
        without_copies: bool,  # noqa: FBT001
    ) -> None:
        self._spooled, self._numbers, self._without_copies = spooled, numbers, without_copies
        self.count = sum(1 for _ in self._all())

    def digest(self, count: int) -> str:
        """Return the SHA-256 of the first `count` texts, as 64 hex digits."""
        found = sha256()
        for said in islice(self._all(), count):
            found.update(orjson.dumps([said.seq, said.turn, said.kind, said.text]))
        return found.hexdigest()

    def texts(self, start: int) -> Iterator[Said]:
        """Yield the texts from a number on, from 0."""
        return islice(self._all(), start, None)

    def _all(self) -> Iterator[Said]:
        rest = b""
        for portion in self._spooled.portions():
            *lines, rest = (rest + portion).split(b"\n")
            for line in lines:
                seq, turn_id, kind, at, text, is_copy = orjson.loads(line)
                if not (is_copy and self._without_copies):
                    yield Said(seq, self._numbers.get(turn_id), turn_id, kind, at, text)
