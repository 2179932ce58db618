"""Make lines of session files: those of a new thread, and those behind the end of an old one.

Codex numbers on from the last line that it understands.  We number on from the highest ordinal of
any JSON line in the last piece of the file that has one: a torn line has none, and lines that we do
not know may repeat, skip or lack numbers.

Our own lines are ASCII.  So a line that a crash cut off is still UTF-8, and Codex, which refuses a
file with any other byte, goes on with the next line (STO-15).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

import orjson

from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.storage.contract import Copied, Item, NewThread, Unsupported, in_text
from codex_checkpoints.values import frozen

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
    head = Item("session_meta", new.meta, stamp if isinstance(stamp, str) else None)
    yield from _numbered(chain((head,), new.items), _first_ordinal(new.meta), at)


def _numbered(items: Iterable[Item | Copied], ordinal: int | None, at: datetime) -> Iterator[bytes]:
    """Yield lines; a copied one keeps its ordinal, and what follows goes on from there."""
    for item in items:
        if isinstance(item, Item):
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
    """Return the ordinal behind the base of a history; None in a legacy one."""
    if meta.get("history_mode") != "paginated":
        return None
    match meta.get("history_base"):
        case {"end_ordinal_exclusive": int(end)}:
            return end
        case _:
            return 0


def line_of(item: Item, ordinal: int | None, at: datetime) -> bytes:
    """Return an item as one line with its LF, in the order of keys that Codex writes.

    `at` stands in where the item has no time of its own.  Raises `Unsupported` for what is no JSON
    that Codex can read: a number that is none, half a surrogate pair, a key of the envelope twice.
    """
    if not _ENVELOPE.isdisjoint(item.extra):
        raise Unsupported("a key of the envelope stands in `extra` as well")
    envelope: dict[str, object] = {"timestamp": item.timestamp or in_text(at)}
    if ordinal is not None:
        envelope["ordinal"] = ordinal
    envelope |= {"type": item.type, "payload": dict(item.payload), **item.extra}
    compact = (",", ":")
    try:
        text = json.dumps(envelope, ensure_ascii=False, allow_nan=False, separators=compact)
        text.encode()
    except ValueError as error:  # whose text may hold some of the item
        raise Unsupported("an item that is no JSON in Unicode") from error
    if not text.isascii():
        text = json.dumps(envelope, separators=compact)
    return text.encode("ascii") + b"\n"


def lines_behind(
    last: int | None, items: Sequence[Item | Copied], at: datetime
) -> tuple[list[bytes], tuple[int, int] | None]:
    """Return lines behind one with the ordinal `last`, and the ordinals of their first and last.

    Raises `Unsupported` for a copied line that does not go on there.
    """
    lines: list[bytes] = []
    for number, item in enumerate(items, 1):
        ordinal = None if last is None else last + number
        match item:
            case Item():
                lines.append(line_of(item, ordinal, at))
            case Copied(line=line):
                if not follows(line, ordinal):
                    raise Unsupported("a copied line does not go on with the history")
                lines.append(line + b"\n")
    return lines, (last + 1, last + len(lines)) if last is not None and lines else None


# --- how a file ends -----------------------------------------------------------------------------

ReadAt = Callable[[int, int], bytes]
"""Return `length` bytes from an offset on, fewer only at the end; may raise `OSError`."""

_STEP = 1 << 18
_LOOK_BACK = 1 << 20
"""At least so many bytes at the end are read, and more until an ordinal was found."""

_LONGEST_HEAD = 1 << 24
_BLANK = b" \t\r\n"


@frozen
class End:
    """The highest ordinal near the end, None in a legacy history; whether the last LF lacks."""

    ordinal: int | None
    torn: bool


def end_of(read_at: ReadAt, size: int, thread_id: str) -> End:
    """Look at the end of a session file of `size` bytes.

    Raises `Unsupported`, with the reason, for a file that Codex does not resume, as far as its
    first line and its end tell: no `session_meta` first, another thread's, a history mode it does
    not know, bytes that are no UTF-8, a paginated history without any ordinal.  Raises `OSError`.
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
    """Return whether a line can be copied, and has the ordinal that is due, if any."""
    if b"\n" in line or not _is_utf8(line):
        return False
    return ordinal is None or ordinal_of(line) == ordinal


def ordinal_of(line: bytes) -> int | None:
    """Return the ordinal of a line, None where it is no JSON object or has none."""
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
