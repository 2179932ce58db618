"""Reads the bytes of one session file, plain or compressed, and makes the lines of one.

`contract.RolloutReader` documents the methods of a reader.

Codex continues the numbers after the last line that it understands.  We continue after the highest
ordinal of any JSON line in the last piece of the file that has one: a torn line has none, and
unknown lines may repeat, skip or lack numbers.

Our own lines are ASCII. So a line that a crash cut off is still UTF-8.  Codex refuses a file with
any other byte, but continues with the next line after this one (STO-15).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Protocol, TypeVar

import orjson
from attrs import frozen

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from codex_checkpoints.core.agents.codex.reader import CHUNK
from codex_checkpoints.core.fields import object_of
from codex_checkpoints.storage import session_files
from codex_checkpoints.storage.contract import (
    LONGEST_FIRST_LINE,
    Copied,
    Feed,
    HistoryItem,
    Identity,
    Mark,
    NewThread,
    Reading,
    See,
    UnreadableSource,
    Unsupported,
    in_text,
)
from codex_checkpoints.storage.file_lock import open_flags

T = TypeVar("T")

_PROOF = 4096
_FRONT, _BACK = 1 << 20, 1 << 22
"""Bytes that are given of the two ends; longer lines would be read without their blobs."""
_FIRST = 1 << 15
"""Bytes of each end that are read first."""
_AT_ONCE = 3 << 15
"""A file of at most this many bytes is read by one call."""

_READ_THROUGH = 1 << 28
_WINDOW_LOG = 25  # a compressed file may ask for 32 MiB of memory, no more
# A non-file at this path must not block us; `_opened` then refuses it.
_FLAGS = os.O_RDONLY | open_flags("BINARY", "NONBLOCK")


class ChunkReader(ABC):
    """The common part of readers; subclasses say where the bytes are."""

    @abstractmethod
    def chunks(self, path: str, offset: int, limit: int | None) -> Iterator[bytes]:
        """Yield the bytes from `offset` to `limit` or the end; raises `UnreadableSource`."""

    def first_line(self, path: str) -> bytes:
        data = b""
        for more in self.chunks(path, 0, None):
            data += more
            line, end, _ = data.lstrip().partition(b"\n")
            if end:
                return line + end
            if len(data) >= LONGEST_FIRST_LINE:
                return data
        return data.lstrip()

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        return _fed(self.chunks(path, offset, limit), offset, feed)

    def ends(self, path: str, see: See[T]) -> T:
        return see(self.chunks(path, 0, _FRONT), self._last(path))

    def _last(self, path: str) -> Iterator[bytes]:
        """Yield the last bytes of a compressed file; nothing if it is too long to read through."""
        size, last = 0, deque[bytes](maxlen=_BACK // CHUNK)
        for data in self.chunks(path, 0, None):
            last.append(data)
            size += len(data)
            if size > _READ_THROUGH:
                return
        yield from reversed(last)


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
        return session_files.identity(path)

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        start = 0 if old is None else old.offset
        with _opened(path) as (file, status):
            source = session_files.source_of(status)
            if session_files.is_compressed(path):
                if old is not None:
                    return None  # it does not grow: it is another file
                offset, rest = self.read(path, 0, feed)
                return Reading(Mark(offset, source, "", ""), rest)
            if old is not None and (status.st_size < start or _mark(file, start, source) != old):
                return None
            os.lseek(file, start, os.SEEK_SET)
            offset, rest = _fed(_portions(partial(os.read, file), start, None), start, feed)
            return Reading(_mark(file, offset, source), rest)

    def ends(self, path: str, see: See[T]) -> T:
        if session_files.is_compressed(path):
            return super().ends(path, see)
        with _opened(path) as (file, status):
            size = status.st_size
            data = os.read(file, _AT_ONCE if size <= _AT_ONCE else _FIRST)
            if len(data) >= size:
                return see((data,), (data,))
            return see(_front(file, data), _back(file, size))

    def mark_at(self, path: str, offset: int, source: str) -> Mark:
        if session_files.is_compressed(path):
            return Mark(offset, source, "", "")
        with _opened(path) as (file, _):
            return _mark(file, offset, source)

    def chunks(self, path: str, offset: int, limit: int | None) -> Iterator[bytes]:
        with _opened(path) as (file, _):
            if not session_files.is_compressed(path):
                os.lseek(file, offset, os.SEEK_SET)
                yield from _portions(partial(os.read, file), offset, limit)
                return
            with decompressed(file) as plain:
                skipped = 0
                while skipped < offset and (data := plain.read(min(CHUNK, offset - skipped))):
                    skipped += len(data)
                yield from _portions(plain.read, offset, limit)


def _front(file: int, data: bytes) -> Iterator[bytes]:
    offset = 0
    while data:
        yield data
        offset += len(data)
        os.lseek(file, offset, os.SEEK_SET)
        data = os.read(file, min(CHUNK, _FRONT - offset))


def _back(file: int, end: int) -> Iterator[bytes]:
    farthest, size = max(0, end - _BACK), _FIRST
    while end > farthest:
        start = max(farthest, end - size)
        os.lseek(file, start, os.SEEK_SET)
        data = os.read(file, end - start)
        if len(data) < end - start:
            return  # it is being cut off
        yield data
        end, size = start, CHUNK


def _mark(file: int, offset: int, source: str) -> Mark:
    os.lseek(file, 0, os.SEEK_SET)
    head = os.read(file, min(_PROOF, offset))
    os.lseek(file, max(0, offset - _PROOF), os.SEEK_SET)
    return Mark(offset, source, _digest(head), _digest(os.read(file, min(_PROOF, offset))))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


class _opened:  # noqa: N801 - as a function; a generator takes longer
    """Open a file for reading; raises `UnreadableSource` when that fails, then or later."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> tuple[int, os.stat_result]:
        try:
            self._file = os.open(self._path, _FLAGS)
        except OSError as error:
            raise _unreadable(error) from error
        try:
            return self._file, _regular(self._file)
        except BaseException as error:
            self.__exit__(None, error, None)
            raise

    def __exit__(self, _kind: object, error: BaseException | None, _at: object) -> None:
        os.close(self._file)
        if isinstance(error, OSError):
            raise _unreadable(error) from error


def _regular(file: int) -> os.stat_result:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableSource("not a regular file")
    return status


def _unreadable(error: OSError) -> UnreadableSource:
    return UnreadableSource(error.strerror or type(error).__name__)


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextlib.contextmanager
def decompressed(file: int) -> Generator[_Stream]:
    """Read an open zstd file; raises `UnreadableSource` if it is damaged."""
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


_ENVELOPE = frozenset({"timestamp", "ordinal", "type", "payload"})

_THREAD_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_thread_id(text: str) -> bool:
    """Return whether a text is a thread id as Codex makes them: a UUID in lower case."""
    return _THREAD_ID.fullmatch(text) is not None


def id_of(new: NewThread) -> str:
    """Return the id of a new thread; raise `Unsupported` for a head that Codex would refuse."""
    thread_id = str(new.meta.get("id"))
    if not is_thread_id(thread_id):
        raise Unsupported("a session id is a UUID in lower case")
    if new.meta.get("history_mode", "legacy") not in ("legacy", "paginated"):
        raise Unsupported("a history mode that Codex does not know")
    return thread_id


def lines_of(new: NewThread, at: datetime) -> Iterator[bytes]:
    """Yield the lines of a new thread, its `session_meta` first; raises `Unsupported`."""
    stamp = new.meta.get("timestamp")
    head = HistoryItem("session_meta", new.meta, stamp if isinstance(stamp, str) else None)
    yield from _numbered(chain((head,), new.items), _first_ordinal(new.meta), at)


def _numbered(
    items: Iterable[HistoryItem | Copied], ordinal: int | None, at: datetime
) -> Iterator[bytes]:
    """Yield lines; a copied one keeps its ordinal, and later lines continue from there."""
    for item in items:
        if isinstance(item, HistoryItem):
            yield line_of(item, ordinal, at)
            own = ordinal
        else:
            if not follows(item.line, None):
                raise Unsupported("a copied line is one line of UTF-8")
            yield item.line + b"\n"
            own = ordinal_of(item.line)
        if ordinal is not None:
            ordinal = max(ordinal, own + 1 if own is not None else ordinal)


def _first_ordinal(meta: Mapping[str, object]) -> int | None:
    """Return the ordinal after the base of a history; None in a legacy one."""
    if meta.get("history_mode") != "paginated":
        return None
    match meta.get("history_base"):
        case {"end_ordinal_exclusive": int(end)}:
            return end
        case _:
            return 0


def line_of(item: HistoryItem, ordinal: int | None, at: datetime) -> bytes:
    """Return an item as one line with its LF, in the order of keys that Codex writes.

    `at` is the time of an item without one.  Raises `Unsupported` for a value that Codex cannot
    read as JSON: an invalid number, half a surrogate pair, a repeated key of the envelope.
    """
    if not _ENVELOPE.isdisjoint(item.extra):
        raise Unsupported("a key of the envelope is also in `extra`")
    envelope: dict[str, object] = {"timestamp": item.timestamp or in_text(at)}
    if ordinal is not None:
        envelope["ordinal"] = ordinal
    envelope |= {"type": item.type, "payload": dict(item.payload), **item.extra}
    compact = (",", ":")
    try:
        text = json.dumps(envelope, ensure_ascii=False, allow_nan=False, separators=compact)
        text.encode()
    except ValueError as error:  # whose text may quote the item
        raise Unsupported("an item that is not JSON in Unicode") from error
    if not text.isascii():
        text = json.dumps(envelope, separators=compact)
    return text.encode("ascii") + b"\n"


def lines_after(
    last: int | None, items: Sequence[HistoryItem | Copied], at: datetime
) -> tuple[list[bytes], tuple[int, int] | None]:
    """Return lines after one with the ordinal `last`, and the ordinals of their first and last.

    Raises `Unsupported` for a copied line that does not continue there.
    """
    lines: list[bytes] = []
    for number, item in enumerate(items, 1):
        ordinal = None if last is None else last + number
        match item:
            case HistoryItem():
                lines.append(line_of(item, ordinal, at))
            case Copied(line=line):
                if not follows(line, ordinal):
                    raise Unsupported("a copied line does not go on with the history")
                lines.append(line + b"\n")
    return lines, (last + 1, last + len(lines)) if last is not None and lines else None


# --- how a file ends -----------------------------------------------------------------------------

ReadAt = Callable[[int, int], bytes]
"""Returns `length` bytes from an offset on, fewer only at the end; may raise `OSError`."""

_STEP = 1 << 18
_LOOK_BACK = 1 << 20
"""Minimum number of bytes read at the end; more are read until an ordinal is found."""

_LONGEST_HEAD = 1 << 24
_BLANK = b" \t\r\n"


@frozen
class End:
    """The highest ordinal near the end, None in a legacy history; whether the last LF is absent."""

    ordinal: int | None
    torn: bool


def end_of(read_at: ReadAt, size: int, thread_id: str) -> End:
    """Read the end of a session file of `size` bytes.

    Raises `Unsupported`, with the reason, for a file that Codex does not resume, as far as its
    first line and its end show: no `session_meta` first, another thread's, an unknown history mode,
    bytes that are not UTF-8, a paginated history without any ordinal.  Raises `OSError`.
    """
    paginated = _is_paginated(_head(read_at, size), thread_id)
    highest: int | None = None
    looked = 0
    for line in _backwards(read_at, size):
        looked += len(line) + 1
        if not _is_utf8(line):
            raise Unsupported("the session file is not UTF-8")
        found = ordinal_of(line)
        if found is not None and (highest is None or found > highest):
            highest = found
        if looked >= _LOOK_BACK and (highest is not None or not paginated):
            break
    if paginated and highest is None:
        raise Unsupported("a paginated history without ordinals")
    torn = size > 0 and read_at(size - 1, 1) != b"\n"
    return End(highest if paginated else None, torn)


def reading(file: int) -> ReadAt:
    """Return a function that reads an open file at any offset."""

    def read_at(start: int, length: int) -> bytes:
        os.lseek(file, start, os.SEEK_SET)
        parts: list[bytes] = []
        while length > 0 and (data := os.read(file, length)):
            parts.append(data)
            length -= len(data)
        return b"".join(parts)

    return read_at


def follows(line: bytes, ordinal: int | None) -> bool:
    """Return whether a line can be copied, and has the due ordinal, if any."""
    if b"\n" in line or not _is_utf8(line):
        return False
    return ordinal is None or ordinal_of(line) == ordinal


def ordinal_of(line: bytes) -> int | None:
    """Return the ordinal of a line, None if it is not a JSON object or has none."""
    found = _record(line).get("ordinal")
    return found if type(found) is int and found >= 0 else None


def _is_paginated(head: bytes, thread_id: str) -> bool:
    record = _record(head)
    meta = object_of(record.get("payload"))
    if record.get("type") != "session_meta" or not meta:
        raise Unsupported("the session file does not begin with its session_meta")
    if str(meta.get("id")).lower() != thread_id:
        raise Unsupported("the session file is another session's")
    mode = meta.get("history_mode", "legacy")
    if mode not in ("legacy", "paginated"):
        raise Unsupported("a history mode that Codex does not know")
    return mode == "paginated"


def _record(line: bytes) -> Mapping[str, object]:
    """Return the JSON object of a line; an empty one for anything else."""
    try:
        return object_of(orjson.loads(line))
    except orjson.JSONDecodeError:
        return {}


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _head(read_at: ReadAt, size: int) -> bytes:
    """Return the first line that is not blank."""
    data = b""
    while len(data) < min(size, _LONGEST_HEAD) and (more := read_at(len(data), _STEP)):
        data += more
        line, ended, _ = data.lstrip(_BLANK).partition(b"\n")
        if ended:
            return line
    return data.lstrip(_BLANK)


def _backwards(read_at: ReadAt, size: int) -> Iterator[bytes]:
    """Yield the lines of a file from the last to the first, without LF."""
    # The pieces of the line whose beginning is not found yet, the last one first.
    pieces: list[bytes] = []
    offset = size
    while offset > 0:
        start = max(0, offset - _STEP)
        data = read_at(start, offset - start)
        first, *lines = data.split(b"\n")
        if lines:
            pieces.append(lines.pop())
            yield b"".join(reversed(pieces))
            yield from reversed(lines)
            pieces = []
        pieces.append(first)
        offset = start
    yield b"".join(reversed(pieces))
