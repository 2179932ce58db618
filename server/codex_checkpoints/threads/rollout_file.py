"""The bytes of one session file, plain or compressed, from any offset on.

Offsets are those of the plain text.  A file may grow, shrink, be replaced by another with the
same name, change its form between two looks, or vanish while it is read (ROL-2, ROL-10); `Mark`
is how a reader notices.  What the bytes say is not known here.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator

from attrs import frozen

from codex_checkpoints.core.rollout.lines import CHUNK

_PROOF = 4096
_WINDOW_LOG = 25  # a compressed file may ask for 32 MiB of memory, no more


class UnreadableSource(Exception):
    """A session file that cannot be read; the text says why, without its content."""


@frozen
class Mark:
    """Where a reader stands in a file, and what lies around that place.

    `head` and `tail` are digests of the first and the last bytes before `offset`.
    """

    offset: int
    inode: int
    head: str
    tail: str


def is_compressed(path: str) -> bool:
    """Return whether the file holds a zstd frame, by its name."""
    return path.endswith(".zst")


def first_line(path: str, longest: int = 1 << 22) -> bytes:
    """Return the first line without its LF, or what there is of it up to `longest` bytes."""
    parts: list[bytes] = []
    size = 0
    for data in chunks(path, 0):
        end = data.find(b"\n")
        parts.append(data if end < 0 else data[:end])
        size += len(parts[-1])
        if end >= 0 or size >= longest:
            break
    return b"".join(parts)


def read(
    path: str, offset: int, feed: Callable[[bytes], int], limit: int | None = None
) -> tuple[int, bytes]:
    """Feed everything from `offset` to `limit` or the end.

    Returns the offset of the first byte that was not consumed, and what lies from there to the
    end.  `feed` says how many bytes of a chunk it consumed and is offered the rest again, together
    with what follows; when it takes nothing of a full chunk, nothing more is wanted.
    """
    if is_compressed(path) or limit is not None:
        return _read_stream(chunks(path, offset, limit), offset, feed)
    try:
        with open(path, "rb", buffering=0) as file:
            while True:
                file.seek(offset)
                data = file.read(CHUNK)
                consumed = feed(data) if data else 0
                offset += consumed
                if consumed == 0 or len(data) < CHUNK:
                    return offset, data[consumed:]
    except OSError as error:
        raise _unreadable(error) from error


def _read_stream(
    stream: Iterator[bytes], offset: int, feed: Callable[[bytes], int]
) -> tuple[int, bytes]:
    rest = b""
    for data in stream:
        rest += data
        consumed = feed(rest)
        offset += consumed
        if consumed == 0 and len(rest) >= CHUNK:
            break
        rest = rest[consumed:]
    return offset, rest


def chunks(path: str, offset: int, limit: int | None = None) -> Iterator[bytes]:
    """Yield the plain bytes from `offset` to `limit` or the end."""
    try:
        with _open(path) as file:
            _skip(file, offset, compressed=is_compressed(path))
            while True:
                want = CHUNK if limit is None else min(CHUNK, limit - offset)
                data = file.read(want) if want > 0 else b""
                if not data:
                    return
                offset += len(data)
                yield data
    except (OSError, EOFError) as error:
        raise _unreadable(error) from error


def piece(path: str, start: int, longest: int) -> bytes | None:
    """Return the bytes from `start` to the end; None when they are more than `longest`."""
    parts: list[bytes] = []
    size = 0
    for data in chunks(path, start):
        parts.append(data)
        size += len(data)
        if size > longest:
            return None
    return b"".join(parts)


def mark(path: str, offset: int, inode: int) -> Mark:
    """Return a mark at `offset`, which must lie behind a line that was read."""
    if is_compressed(path):
        return Mark(offset, inode, "", "")
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(min(_PROOF, offset))
            file.seek(max(0, offset - _PROOF))
            tail = file.read(min(_PROOF, offset))
    except OSError as error:
        raise _unreadable(error) from error
    return Mark(offset, inode, _digest(head), _digest(tail))


def still_holds(path: str, old: Mark, size: int, inode: int) -> bool:
    """Return whether a reader that stood at `old` may read on from there.

    A compressed file does not grow: whatever changed, it is read anew.
    """
    if is_compressed(path) or size < old.offset or inode != old.inode:
        return False
    return mark(path, old.offset, inode) == old


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _unreadable(error: BaseException) -> UnreadableSource:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UnreadableSource(reason or type(error).__name__)


def _open(path: str):  # noqa: ANN202 - two unrelated readers with one method in common
    if not is_compressed(path):
        return open(path, "rb", buffering=0)
    # Imported when needed: most homes hold no compressed session at all.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415

    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return zstd.ZstdFile(path, "rb", options=options)


def _skip(file, offset: int, *, compressed: bool) -> None:  # noqa: ANN001
    if not compressed:
        file.seek(offset)
        return
    while offset > 0:
        data = file.read(min(CHUNK, offset))
        if not data:
            return
        offset -= len(data)
