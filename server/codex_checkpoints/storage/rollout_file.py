"""Read the bytes of one session file, plain or compressed, from any offset on.

`contract.RolloutReader` says what the methods do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Protocol

from codex_checkpoints.core.rollout.reader import CHUNK
from codex_checkpoints.storage import tree
from codex_checkpoints.storage.contract import (
    Ends,
    Feed,
    Identity,
    Mark,
    Reading,
    UnreadableSource,
)
from codex_checkpoints.storage.file_lock import open_flags

_PROOF = 4096
_LONGEST_FIRST_LINE = 1 << 22
_FRONT, _BACK = 1 << 20, 1 << 22
"""How much is given of the two ends; longer lines would be read without their blobs."""
_FIRST_FRONT, _FIRST_BACK = 1 << 15, 3 << 14
_READ_THROUGH = 1 << 28
_WINDOW_LOG = 25  # a compressed file may ask for 32 MiB of memory, no more
# Whatever lies there instead of a file must not block us; `_opened` then refuses it.
_FLAGS = os.O_RDONLY | open_flags("BINARY", "NONBLOCK")


class ChunkReader(ABC):
    """What readers have in common; the heirs say where the bytes are."""

    @abstractmethod
    def chunks(self, path: str, offset: int, limit: int | None) -> Iterator[bytes]:
        """Yield the bytes from `offset` to `limit` or the end; raises `UnreadableSource`."""

    def first_line(self, path: str) -> bytes:
        data = b""
        for more in self.chunks(path, 0, None):
            data += more
            line, ended, _ = data.lstrip().partition(b"\n")
            if ended:
                return line
            if len(data) >= _LONGEST_FIRST_LINE:
                break
        return data.lstrip()

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        return _fed(self.chunks(path, offset, limit), offset, feed)

    @contextlib.contextmanager
    def ends(self, path: str) -> Generator[Ends]:
        yield self.chunks(path, 0, _FRONT), self._last(path)

    def _last(self, path: str) -> Iterator[bytes]:
        """Yield the last bytes of what must be read through; nothing where that is too long."""
        size, last = 0, deque[bytes](maxlen=_BACK // CHUNK)
        for data in self.chunks(path, 0, None):
            last.append(data)
            size += len(data)
            if size > _READ_THROUGH:
                return
        yield from reversed(last)

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        for data in self.chunks(path, start, None):
            parts.append(data)
            size += len(data)
            if size > longest:
                return None
        return b"".join(parts)


def _fed(chunks: Iterable[bytes], offset: int, feed: Feed) -> tuple[int, bytes]:
    rest = b""
    for data in chunks:
        rest += data
        consumed = feed(rest)
        offset += consumed
        if consumed == 0 and len(rest) >= CHUNK:
            break
        rest = rest[consumed:]
    return offset, rest


class FileReader(ChunkReader):
    """Reads session files by path; `contract.RolloutReader` for files."""

    def identify(self, path: str) -> Identity:
        name = tree.parse_name(os.path.basename(path))
        if name is None:
            return Identity(os.path.basename(path), "")
        return Identity(name.thread_id, name.rollout_id)

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        start = 0 if old is None else old.offset
        with _opened(path) as (file, look):
            inode = tree.look_of(look)[2]
            if tree.is_compressed(path):
                if old is not None:
                    return None  # it does not grow: it is another file
                offset, rest = self.read(path, 0, feed)
                return Reading(Mark(offset, inode, "", ""), rest)
            if old is not None and (look.st_size < start or _mark(file, start, inode) != old):
                return None
            os.lseek(file, start, os.SEEK_SET)
            offset, rest = _fed(_portions(partial(os.read, file), start, None), start, feed)
            return Reading(_mark(file, offset, inode), rest)

    @contextlib.contextmanager
    def ends(self, path: str) -> Generator[Ends]:
        if tree.is_compressed(path):
            with super().ends(path) as ends:
                yield ends
            return
        with _opened(path) as (file, look):
            yield _front(file), _back(file, look.st_size)

    def mark_at(self, path: str, offset: int, inode: int) -> Mark:
        if tree.is_compressed(path):
            return Mark(offset, inode, "", "")
        with _opened(path) as (file, _):
            return _mark(file, offset, inode)

    def chunks(self, path: str, offset: int, limit: int | None) -> Iterator[bytes]:
        with _opened(path) as (file, _):
            if not tree.is_compressed(path):
                os.lseek(file, offset, os.SEEK_SET)
                yield from _portions(partial(os.read, file), offset, limit)
                return
            with decompressed(file) as plain:
                skipped = 0
                while skipped < offset and (data := plain.read(min(CHUNK, offset - skipped))):
                    skipped += len(data)
                yield from _portions(plain.read, offset, limit)


def _front(file: int) -> Iterator[bytes]:
    offset, size = 0, _FIRST_FRONT
    while offset < _FRONT:
        os.lseek(file, offset, os.SEEK_SET)
        data = os.read(file, min(size, _FRONT - offset))
        if not data:
            return
        yield data
        offset, size = offset + len(data), 2 * size


def _back(file: int, end: int) -> Iterator[bytes]:
    farthest, size = max(0, end - _BACK), _FIRST_BACK
    while end > farthest:
        start = max(farthest, end - size)
        os.lseek(file, start, os.SEEK_SET)
        data = os.read(file, end - start)
        if len(data) < end - start:
            return  # it is being cut off
        yield data
        end, size = start, 2 * size


def _mark(file: int, offset: int, inode: int) -> Mark:
    os.lseek(file, 0, os.SEEK_SET)
    head = os.read(file, min(_PROOF, offset))
    os.lseek(file, max(0, offset - _PROOF), os.SEEK_SET)
    return Mark(offset, inode, _digest(head), _digest(os.read(file, min(_PROOF, offset))))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


@contextlib.contextmanager
def _opened(path: str) -> Generator[tuple[int, os.stat_result]]:
    """Open a file for reading; raise `UnreadableSource` when that fails, then or later."""
    try:
        file = os.open(path, _FLAGS)
        try:
            look = os.fstat(file)
            if not stat.S_ISREG(look.st_mode):
                raise UnreadableSource("not a regular file")
            yield file, look
        finally:
            os.close(file)
    except OSError as error:
        raise UnreadableSource(error.strerror or type(error).__name__) from error


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextlib.contextmanager
def decompressed(file: int) -> Generator[_Stream]:
    """Read an open zstd file; raises `UnreadableSource` where it is damaged."""
    # Imported when needed: most homes hold no compressed session at all.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415

    options = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}
    with os.fdopen(os.dup(file), "rb") as packed:
        try:
            with zstd.ZstdFile(packed, options=options) as plain:
                yield plain
        except (EOFError, zstd.ZstdError) as error:
            raise UnreadableSource(str(error)) from error


def _portions(read_some: Callable[[int], bytes], offset: int, limit: int | None) -> Iterator[bytes]:
    while True:
        want = CHUNK if limit is None else min(CHUNK, limit - offset)
        data = read_some(want) if want > 0 else b""
        if not data:
            return
        offset += len(data)
        yield data
