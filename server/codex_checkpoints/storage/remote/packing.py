"""Compresses segments, and decompresses them with bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from hashlib import sha256

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from codex_checkpoints.storage.remote.contract import SEGMENT, Segment, damaged

LEVEL = 3


def unpacked(segment: Segment) -> bytes:
    """Return the bytes of a segment; raises `RemoteDamaged`, and never uses more than its size."""
    size = segment.end - segment.start
    if not 0 < size <= SEGMENT:
        raise damaged("a segment has an invalid size")
    reader = zstd.ZstdDecompressor()
    try:
        data = reader.decompress(segment.body, max_length=size + 1)
    except zstd.ZstdError as error:
        raise damaged("a segment cannot be decompressed") from error
    if len(data) != size or not reader.eof:
        raise damaged("the length of a segment does not match its name")
    return data


class SegmentStream:
    """Cuts the bytes of a history into segments, from any position; `prefix` is the prefix there.

    `portions` are all bytes from the beginning of the history; they are read lazily.
    """

    def __init__(self, portions: Iterable[bytes], most: int = SEGMENT) -> None:
        self._portions = iter(portions)
        self._most = most
        self._kept = bytearray()
        self._found = sha256()
        self.position = 0

    @property
    def prefix(self) -> str:
        """Return the hash of all bytes before the position."""
        return self._found.hexdigest()

    def seek(self, position: int) -> bool:
        """Go forward; return False if the history ends before, or is already past the position."""
        while self.position < position and self._fill():
            data = bytes(self._kept[: position - self.position])
            del self._kept[: len(data)]
            self._found.update(data)
            self.position += len(data)
        return self.position == position

    def peek(self) -> Segment | None:
        """Return the segment at the position without moving; None at the end."""
        while len(self._kept) < self._most and (portion := next(self._portions, None)) is not None:
            self._kept += portion
        data = bytes(self._kept[: self._most])
        if not data:
            return None
        following = self._found.copy()
        following.update(data)
        ends = self.position, self.position + len(data)
        body = zstd.compress(data, LEVEL)
        return Segment(*ends, self.prefix, following.hexdigest(), body)

    def _fill(self) -> bool:
        """Read some bytes into the buffer; return False at the end."""
        while not self._kept:
            portion = next(self._portions, None)
            if portion is None:
                return False
            self._kept += portion
        return True
