"""The digest of a session file, by which it is later known whether its bytes are the same."""

from __future__ import annotations

import hashlib

from codex_checkpoints.threads.contract import RolloutReader


def fingerprint(reader: RolloutReader, path: str, limit: int | None = None) -> tuple[str, int]:
    """Return the digest of the bytes of a file, or of the first `limit`, and how many they are.

    Raises `UnreadableSource`.
    """
    found = hashlib.sha256()
    size = 0

    def feed(data: bytes) -> int:
        nonlocal size
        found.update(data)
        size += len(data)
        return len(data)

    reader.read(path, 0, feed, limit)
    return f"sha256:{found.hexdigest()}", size
