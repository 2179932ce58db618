"""Whole lines out of arriving bytes, each with its place, and only those that somebody asks for.

`rollout.lines` does the same for checkpoints; it may give up a long line and forgets where a line
stood.  A history needs every byte of its items, however long they are, and must find a window again
that a rollback brings back.  So here a reader says by the first bytes of a line whether it wants to
`SKIP` it, to `NOTE` that it is there, or to `READ` it; what is not read is never held.

The rules of lines and of `seq` are those of the interfaces, "Lines, `seq`, identity".
"""

from __future__ import annotations

import re
from typing import Protocol

from codex_checkpoints.core.history.envelope import (
    NOTHING,
    PREFIX,
    Line,
    Place,
    Wish,
    load_line,
    said_by,
    tags_of,
)
from codex_checkpoints.core.rollout.fields import Json, is_object, object_of, text_of, whole_of
from codex_checkpoints.core.rollout.parsing import BOM

CHUNK = 1 << 16
"""How many bytes a caller should offer at a time."""

LONGEST = 1 << 28
"""A line that is longer than this is passed over."""

_NO_LIMIT = 1 << 62


class Taker(Protocol):
    """A reader of lines."""

    def wish(self, kind: str, tag: str | None, inner: str | None) -> Wish:
        """Say what is wanted of a line; the tags are None where the first bytes do not tell."""
        ...

    def take(self, line: Line) -> None:
        """Take a line that was noted or read."""
        ...


class Lines:
    """Cut bytes into lines for a taker; offer it chunks, it says what it consumed."""

    def __init__(self, taker: Taker, start: Place = Place(0, 0)) -> None:  # noqa: B008 - a value
        """Begin at a place of a chain of files."""
        self.stopped = False
        """Whether a limit was reached, so that no more bytes are wanted from this file."""
        self.count = 0
        """How many lines there were that are not blank."""
        self.unread = 0
        """How many of them gave nothing."""
        self._taker = taker
        self._file, self._at = start
        self._top = -1
        self._ordinals: bool | None = None
        self._limit = _NO_LIMIT
        self._first = self._at == 0
        self._long: _LongLine | None = None
        self._wishes: dict[tuple[bytes, bytes | None, bytes | None], Wish] = {}

    @property
    def seq(self) -> int:
        """Return `seq` after the last line (DSC-21)."""
        return self._top if self._ordinals else self.count

    @property
    def place(self) -> Place:
        """Return where the next line begins."""
        return Place(self._file, self._at)

    def next_file(self, limit: int | None = None) -> None:
        """Go on with the first byte of the next file of a chain, up to the ordinal `limit`."""
        self._file, self._at = self._file + 1, 0
        self.begin_file(limit)

    def begin_file(self, limit: int | None) -> None:
        """Say up to which ordinal the file at hand is wanted."""
        self._limit = _NO_LIMIT if limit is None else limit
        self.stopped, self._first, self._long = False, self._at == 0, None

    def feed(self, data: bytes) -> int:
        """Take the whole lines in `data`; return how many bytes were consumed.

        `data` begins where the last call stopped.  The bytes of an unfinished line are not
        consumed, unless the line is longer than a chunk.
        """
        i = 0
        if self._long is not None:
            i = self._go_on(self._long, data)
            if i < 0:
                self._at += len(data)
                return len(data)
        while not self.stopped:
            j = data.find(b"\n", i)
            if j < 0:
                break
            self._line(data, i, j, Place(self._file, self._at + i))
            i = j + 1
        if i == 0 and not self.stopped and len(data) >= CHUNK:
            self._long = self._begin_long(data)
            self._go_on(self._long, data)
            i = len(data)
        self._at += i
        return i

    def close(self, tail: bytes) -> None:
        """Say that a file has ended, with a last line that may lack its LF."""
        if self._long is not None:
            tail, place = self._long.raw, self._long.place
            self._long = None
        else:
            place = self.place
        whole = tail.rstrip().endswith(b"}") and not self.stopped
        if whole and is_object(load_line(tail)):
            self._line(tail, 0, len(tail), place)

    def _line(self, data: bytes, i: int, j: int, place: Place) -> None:
        prefix = PREFIX.match(data, i, j)
        if prefix is None or data[j - 2 : j] != b"}}":
            self._read(data[i:j], place)
            return
        if self._is_beyond(prefix):
            return
        wish = self._wish(prefix)
        if wish is Wish.READ:
            self._read(data[i:j], place)
            return
        self._note(prefix, place, wish)

    def _note(self, prefix: re.Match[bytes], place: Place, wish: Wish) -> None:
        """Count a line that need not be read, and pass on that it is there."""
        self._number(None if prefix[2] is None else int(prefix[2]), None)
        if wish is Wish.NOTE:
            kind, tag, inner = tags_of(prefix[3], prefix[4], prefix[5] or prefix[6])
            stamp, first = prefix[1].decode(errors="replace"), self._first
            line = (kind, tag, inner, place, self.seq, stamp, first, NOTHING, NOTHING)
            self._taker.take(Line(*line))
        self._first = False

    def _wish(self, prefix: re.Match[bytes]) -> Wish:
        key = (prefix[3], prefix[4], prefix[5] or prefix[6])
        wish = self._wishes.get(key)
        if wish is None:
            wish = self._wishes[key] = self._taker.wish(*tags_of(*key))
        return wish

    def _is_beyond(self, prefix: re.Match[bytes]) -> bool:
        if self._ordinals and prefix[2] is not None and int(prefix[2]) >= self._limit:
            self.stopped = True
        return self.stopped

    def _read(self, raw: bytes, place: Place) -> None:
        """Read one line wholly; what Codex could not read is counted and passed over."""
        raw = raw.removesuffix(b"\r")
        raw = raw.removeprefix(BOM) if place.offset == 0 else raw
        if not raw.strip():
            return
        value = load_line(raw)
        ordinal = whole_of(value.get("ordinal")) if is_object(value) else None
        if self._ordinals and ordinal is not None and ordinal >= self._limit:
            self.stopped = True
            return
        kind, payload = said_by(value, first=self.count == 0)
        if kind is None:
            self.count += 1
            self.unread += 1
            return
        self._number(ordinal, payload if kind == "session_meta" else None)
        tag, inner = text_of(payload.get("type")), text_of(payload.get("role"))
        if inner is None:
            inner = text_of(object_of(payload.get("item")).get("type"))
        envelope = object_of(value)
        if self._taker.wish(kind, tag, inner) is not Wish.SKIP:
            stamp = text_of(envelope.get("timestamp")) or ""
            line = (kind, tag, inner, place, self.seq, stamp, self._first, payload, envelope)
            self._taker.take(Line(*line))
        self._first = False

    def _number(self, ordinal: int | None, head: Json | None) -> None:
        """Move `seq`; the first line that can be read settles by what."""
        self.count += 1
        if self._ordinals is None:
            paginated = head is not None and head.get("history_mode") == "paginated"
            self._ordinals = paginated or ordinal is not None
        if ordinal is not None:
            self._top = max(self._top, ordinal)

    def _begin_long(self, data: bytes) -> _LongLine:
        prefix = PREFIX.match(data, 0, CHUNK)
        wish = Wish.READ if prefix is None else self._wish(prefix)
        if prefix is not None and self._is_beyond(prefix):
            wish = Wish.SKIP
        return _LongLine(Place(self._file, self._at), prefix, wish)

    def _go_on(self, long: _LongLine, data: bytes) -> int:
        """Take more of a long line; return where the next line begins, or -1."""
        j = data.find(b"\n")
        long.add(data if j < 0 else data[:j])
        if j < 0 or self.stopped:
            return -1
        self._long = None
        if long.wish is Wish.READ:
            self._read(long.raw, long.place)
        elif long.prefix is not None and long.ends_well:
            self._note(long.prefix, long.place, long.wish)
        else:
            self.count += 1
            self.unread += 1
        return j + 1


class _LongLine:
    """A line longer than a chunk, as it comes; its bytes are held only if it is to be read."""

    def __init__(self, place: Place, prefix: re.Match[bytes] | None, wish: Wish) -> None:
        self.place = place
        self.prefix = prefix
        self.wish = wish
        self.ends_well = False
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def raw(self) -> bytes:
        return b"".join(self._parts)

    def add(self, data: bytes) -> None:
        self._size += len(data)
        self.ends_well = data.endswith(b"}") if data else self.ends_well
        if self.wish is Wish.READ:
            self._parts.append(data)
        if self._size > LONGEST:
            self._parts.clear()
