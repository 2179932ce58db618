"""The digest of a session file, by which it is later known whether its bytes are the same."""

from __future__ import annotations

import hashlib

from codex_checkpoints.threads.contract import RolloutReader


class Fingerprint:
    """The digest of the bytes that were heard, or of the first `limit` of them."""

    def __init__(self, limit: int | None = None) -> None:
        """Begin before the first byte."""
        self._found = hashlib.sha256()
        self._limit = limit
        self.heard = 0

    @property
    def digest(self) -> str:
        """Return the digest as it is written down."""
        return f"sha256:{self._found.hexdigest()}"

    def hear(self, data: bytes) -> int:
        """Take the bytes that come next; return how many they are."""
        wanted = data if self._limit is None else data[: max(0, self._limit - self.heard)]
        self._found.update(wanted)
        self.heard += len(data)
        return len(data)


def fingerprint(reader: RolloutReader, path: str, limit: int | None = None) -> tuple[str, int]:
    """Return the digest of the bytes of a file, or of the first `limit`, and how many they are.

    Raises `UnreadableSource`.
    """
    found = Fingerprint()
    reader.read(path, 0, found.hear, limit)
    return found.digest, found.heard
