"""Searches a session file for some bytes, as fast as this language can.

An image takes much room, and no record shows its content: it is skipped.

For exact bytes there is `bytes.find`.  Without case SQLite's LIKE is the fastest loop at hand: it
jumps from one possible first letter to the next.  For frequent letters `bytes.lower` and `find` are
faster; a regular expression takes ten times as long (bench/README.md).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

_COMMON = b" etnasoirlcdpuhfmgybwvxk_-/.,:()=jqz0123456789"
"""The bytes of sessions, the most frequent first; all others are rarer."""

_FREQUENT = frozenset(b" etnasoirlcdpum")
"""Jumping to each of these takes longer than lowering all letters."""

_LEAST = 4
"""A shorter end of a piece would be found too often."""

_IMAGE = b'"image_url":"data:image/'
_OPENED = _IMAGE.rindex(b'"')
"""Offset of the last quotation mark in an image's beginning; inside a text they are escaped."""

_LIKE = "SELECT CAST(? AS TEXT) LIKE ? ESCAPE '!'"


class ByteSearch:
    """Searches data that comes in chunks for one of some pieces.

    With `folded` there is one piece, of ASCII with small letters, and case does not count.
    """

    def __init__(self, pieces: Sequence[bytes], *, folded: bool) -> None:
        self._pieces = pieces
        self._overlap = max(map(len, pieces)) - 1
        self._tail, self._in_image = b"", False
        self._folded, self._pattern = folded, _pattern(pieces[0]) if folded else None
        # Chunks come on one thread at a time, but not always on the same.
        self._sql = sqlite3.connect(":memory:", check_same_thread=False) if self._pattern else None

    def begin(self) -> None:
        """Begin with another file."""
        self._tail, self._in_image = b"", False

    def found(self, chunk: bytes) -> bool:
        """Return whether the next chunk contains a piece, or a piece crosses its beginning."""
        chunk = self._without_image(chunk)
        if not chunk:
            return False
        edge, overlap = self._tail + chunk[: self._overlap], self._overlap
        self._tail = (edge if len(chunk) < overlap else chunk)[-overlap:] if overlap else b""
        return self._holds(edge) or (self._may_hold(chunk) and self._holds(chunk))

    def _without_image(self, chunk: bytes) -> bytes:
        """Return a chunk without an image that began in an earlier one, or continues after it."""
        begin = 0
        if self._in_image:
            begin = chunk.find(b'"')
            if begin < 0:
                return b""
            self._tail = b""
        end = chunk.rfind(b'"')
        self._in_image = chunk.startswith(_IMAGE, end - _OPENED) if end >= _OPENED else False
        return chunk[begin : end if self._in_image else None]

    def close(self) -> None:
        """Close the SQLite connection."""
        if self._sql is not None:
            self._sql.close()

    def _holds(self, data: bytes) -> bool:
        data = data.lower() if self._folded else data
        return any(piece in data for piece in self._pieces)

    def _may_hold(self, chunk: bytes) -> bool:
        # For LIKE a text ends at a NUL, which no line of JSON contains, but torn files do.
        if self._sql is None or b"\0" in chunk:
            return True
        return bool(self._sql.execute(_LIKE, (chunk, self._pattern)).fetchone()[0])


def _pattern(piece: bytes) -> str | None:
    """Return the pattern for a piece from its rarest byte on; None if that byte is frequent."""
    text = piece.decode("ascii")
    starts = range(max(1, len(text) - _LEAST + 1))
    first = min(starts, key=lambda start: _frequency(piece[start]))
    if piece[first] in _FREQUENT:
        return None
    return "%" + "".join(f"!{each}" if each in "%_!" else each for each in text[first:]) + "%"


def _frequency(byte: int) -> int:
    place = _COMMON.find(byte)
    return 0 if place < 0 else len(_COMMON) - place
