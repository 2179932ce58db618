"""Caches the last push of a session from this machine: `pushed.json` beside our records of it.

Without the cache a push reads the session again and finds nothing new.
"""

from __future__ import annotations

import contextlib
import os

import orjson
from attrs import frozen

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.storage import atomic_files

PUSHED = "pushed.json"
_LARGEST = 1 << 12


@frozen
class LastPush:
    """The remote, the version of the row there, and a digest of all sources of the push."""

    place: str
    version: str
    inputs: str


def last_push(folder: str | None) -> LastPush | None:
    """Return the last push of the session with this folder; None if it is unknown."""
    if folder is None:
        return None
    with contextlib.suppress(OSError, atomic_files.TooLarge, orjson.JSONDecodeError):
        data = atomic_files.read(os.path.join(folder, PUSHED), _LARGEST)
        return read_or_none(stored, orjson.loads(data), LastPush)
    return None


def remember_push(folder: str | None, push: LastPush) -> None:
    """Store the last push; if that fails, the next push reads the session again."""
    if folder is None:
        return
    path = os.path.join(folder, PUSHED)
    with contextlib.suppress(OSError):
        data = orjson.dumps(stored.unstructure(push)) + b"\n"
        atomic_files.in_folder(path, lambda: atomic_files.replace(path, data))
