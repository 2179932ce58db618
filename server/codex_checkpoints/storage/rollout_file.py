"""Read the bytes of one session file, plain or compressed, from any offset on.

`contract.RolloutReader` says what the methods do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from codex_checkpoints.core.rollout.reader import CHUNK
from codex_checkpoints.storage import tree
from codex_checkpoints.storage.contract import Feed, Identity, Mark, Reading, UnreadableSource

_PROOF = 4096
_LONGEST_FIRST_LINE = 1 << 22
_WINDOW_LOG = 25  # a compressed file may ask for 32 MiB of memory, no more
# Whatever lies there instead of a file must not block us; `_opened` then refuses it.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class FileReader:
    """Reads session files by path; `contract.RolloutReader` for files."""

    def identify(self, path: str) -> Identity:
        name = tree.parse_name(os.path.basename(path))
        if name is None:
            return Identity(os.path.basename(path), "")
        return Identity(name.thread_id, name.rollout_id)

    def first_line(self, path: str) -> bytes:
        data = b""
        for more in _chunks(path, 0, None):
            data += more
            line = first_line_of(data)
            if line is not None or len(data) >= _LONGEST_FIRST_LINE:
                return data.lstrip() if line is None else line
        return data

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        rest = b""
        for data in _chunks(path, offset, limit):
            rest += data
            consumed = feed(rest)
            offset += consumed
            if consumed == 0 and len(rest) >= CHUNK:
                break
            rest = rest[consumed:]
        return offset, rest

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        if tree.is_compressed(path):
            if old is not None:
                return None  # it does not grow: it is another file
            with _opened(path) as (_, look):
                inode = tree.look_of(look)[2]
            offset, rest = self.read(path, 0, feed)
            return Reading(Mark(offset, inode, "", ""), rest)
        with _opened(path) as (file, look):
            if old is not None and not _still_holds(file, old, look):
                return None
            return _follow(file, 0 if old is None else old.offset, tree.look_of(look)[2], feed)

    def mark_at(self, path: str, offset: int, inode: int) -> Mark:
        if tree.is_compressed(path):
            return Mark(offset, inode, "", "")
        with _opened(path) as (file, _):
            return _mark(file, offset, inode)

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        for data in _chunks(path, start, None):
            parts.append(data)
            size += len(data)
            if size > longest:
                return None
        return b"".join(parts)


def first_line_of(data: bytes) -> bytes | None:
    """Return the first line in `data` that is not blank, None when none has ended there."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        line = data[start:end]
        if line.strip():
            return line
        start = end + 1
    return None


def _follow(file: int, start: int, inode: int, feed: Feed) -> Reading:
    os.lseek(file, start, os.SEEK_SET)
    offset = start
    head = tail = b""
    while True:
        data = os.read(file, CHUNK)
        consumed = feed(data) if data else 0
        if consumed:
            head = head if offset else data[: min(_PROOF, consumed)]
            tail = data[max(0, consumed - _PROOF) : consumed]
            offset += consumed
        if consumed == 0 or len(data) < CHUNK:
            break
        if consumed < len(data):
            os.lseek(file, offset, os.SEEK_SET)
    seen = len(head) == len(tail) == _PROOF
    mark = Mark(offset, inode, _digest(head), _digest(tail)) if seen else _mark(file, offset, inode)
    return Reading(mark, data[consumed:])


def _mark(file: int, offset: int, inode: int) -> Mark:
    os.lseek(file, 0, os.SEEK_SET)
    head = os.read(file, min(_PROOF, offset))
    os.lseek(file, max(0, offset - _PROOF), os.SEEK_SET)
    return Mark(offset, inode, _digest(head), _digest(os.read(file, min(_PROOF, offset))))


def _still_holds(file: int, old: Mark, look: os.stat_result) -> bool:
    size, _, identity = tree.look_of(look)
    same = identity == old.inode and size >= old.offset
    return same and _mark(file, old.offset, old.inode) == old


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


def _chunks(path: str, offset: int, limit: int | None) -> Iterator[bytes]:
    if tree.is_compressed(path):
        with _opened(path) as (file, _), decompressed(file) as plain:
            skipped = 0
            while skipped < offset and (data := plain.read(min(CHUNK, offset - skipped))):
                skipped += len(data)
            yield from _portions(plain.read, offset, limit)
        return
    with _opened(path) as (file, _):
        os.lseek(file, offset, os.SEEK_SET)
        yield from _portions(lambda size: os.read(file, size), offset, limit)


def _portions(read_some: Callable[[int], bytes], offset: int, limit: int | None) -> Iterator[bytes]:
    while True:
        want = CHUNK if limit is None else min(CHUNK, limit - offset)
        data = read_some(want) if want > 0 else b""
        if not data:
            return
        offset += len(data)
        yield data
