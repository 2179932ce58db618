"""A line longer than a chunk, as it comes.

A long line that nobody needs is skipped; of one that is needed the base64 blobs are left out on
the way in, and it is given up when it is still too long.
"""

from __future__ import annotations

import re

from codex_checkpoints.core.rollout.wishes import ANSWER, COMPACTED, SKIP, WORK

BLOBS_FROM = 1 << 22
"""A needed line beyond this many bytes loses its base64 blobs."""

LONGEST = 1 << 23
"""A needed line that is longer than this without its blobs is given up as `too_long`."""

_BLOB = re.compile(rb"([A-Za-z0-9+/=_-]{16})[A-Za-z0-9+/=_-]{4096,}")
_PROVABLE = 1 << 17
"""A line that nobody needs is kept up to so many bytes, in case it is the last and in doubt."""

_UNREAD = frozenset({SKIP, ANSWER, WORK, COMPACTED})


class LongLine:
    """What is known of the line so far: how long it is, how it ends, and its bytes if needed."""

    def __init__(self, ordinal: int, wish: int, prefix: re.Match[bytes] | None) -> None:
        """Begin a line by what its prefix says."""
        self.ordinal = ordinal
        self.wish = wish
        self.prefix = prefix
        self.size: int = 0
        self.last: int = 0
        self.shortened = False
        self.given_up = False
        self._parts: list[bytes] = []
        self._kept: int = 0

    @property
    def raw(self) -> bytes:
        """Return the line; empty where it is long and only matters that it is there."""
        return b"".join(self._parts)

    def add(self, data: bytes) -> None:
        """Take the next bytes of the line."""
        if not data:
            return
        self.size += len(data)
        self.last = (data.rstrip() or bytes([self.last]))[-1]
        if self.given_up or (self.wish in _UNREAD and self.size > _PROVABLE):
            self._parts.clear()
            return
        if self._kept + len(data) > BLOBS_FROM:
            if not self.shortened:
                self.shortened = True
                self._parts = [_BLOB.sub(rb"\1", self.raw)]
                self._kept = len(self._parts[0])
            data = _BLOB.sub(rb"\1", data)
        self._parts.append(data)
        self._kept += len(data)
        if self._kept > LONGEST:
            self._parts.clear()
            self.given_up = True
