"""Our own durable files, below the state folder (interfaces, "Files").

A file is either replaced whole (written beside, flushed, renamed) or only grows by whole lines.
Nothing else of ours is ever written, but for the index.  What the records mean is known to `core`;
Codex's own files belong to `threads`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator

import orjson

from codex_checkpoints.core.checkpoint.memory import Update, update_of

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint_v1.json"
UPDATES = "updates.jsonl"
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TEMPORARY = re.compile(r"\.[\w.-]+\.[0-9a-f]{16}\.tmp")
_TEMPORARY_BESIDE = re.compile(rf"\.[\w.-]+\.{re.escape(CHECKPOINT)}\.[0-9a-f]{{16}}\.tmp")
_STALE_SECONDS = 60


class StorageError(Exception):
    """A file of ours that could not be read or written; the text is the system's reason."""


class Records:
    """The files of the state folder.

    `beside` puts a checkpoint next to its session file instead of into the session's own folder.
    """

    def __init__(self, state_dir: str, *, beside: bool = False) -> None:
        """Name the folder; nothing is created before something is to be written."""
        self.state_dir = state_dir
        self.beside = beside

    @property
    def index_path(self) -> str:
        """Return where the index lies."""
        return os.path.join(self.state_dir, "index.sqlite")

    def session_dir(self, session_id: str) -> str | None:
        """Return the folder of a session; None for an id that is no plain name."""
        if _SESSION_ID.fullmatch(session_id) is None or session_id.endswith("."):
            return None
        return os.path.join(self.state_dir, "sessions", session_id)

    def checkpoint_path(self, session_id: str, rollout_path: str) -> str | None:
        """Return where the checkpoint of a session belongs (DSC-4, DSC-70)."""
        if self.beside:
            stem = rollout_path.removesuffix(".zst").removesuffix(".jsonl")
            return f"{stem}.{CHECKPOINT}"
        folder = self.session_dir(session_id)
        return None if folder is None else os.path.join(folder, CHECKPOINT)

    def write_checkpoint(self, session_id: str, rollout_path: str, data: bytes) -> bool:
        """Store a checkpoint; return whether its bytes had to change (DSC-80).

        Durable when this returns.  Raises `StorageError`; the old file is whole then.
        """
        path = self.checkpoint_path(session_id, rollout_path)
        if path is None:
            return False
        try:
            if _content(path) == data:
                return False
            _replace(path, data)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error
        return True

    def updates(self, session_id: str) -> tuple[Update, ...]:
        """Return the accepted updates of a session in the order of its file."""
        found = (update_of(line) for line in self._lines(session_id, UPDATES))
        return tuple(update for update in found if update is not None)

    def has_updates(self) -> frozenset[str]:
        """Return the sessions that hold accepted updates."""
        folder = os.path.join(self.state_dir, "sessions")
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            return frozenset(
                entry.name for entry in entries if os.path.exists(os.path.join(entry.path, UPDATES))
            )
        return frozenset()

    def clear_leftovers(self, beside: Iterable[str] = ()) -> int:
        """Remove temporary files that a killed process left; return how many.

        `beside` are further folders, those of session files that have their checkpoint beside them.
        """
        places = [(folder, _TEMPORARY) for folder in self._folders()]
        places += [(folder, _TEMPORARY_BESIDE) for folder in beside]
        removed = 0
        for folder, ours in places:
            for path in _temporary_files(folder, ours):
                with contextlib.suppress(OSError):
                    # A younger one may be in the hands of another process.
                    if time.time() - os.stat(path).st_mtime > _STALE_SECONDS:
                        os.unlink(path)
                        removed += 1
        return removed

    def _folders(self) -> Iterator[str]:
        yield self.state_dir
        sessions = os.path.join(self.state_dir, "sessions")
        with contextlib.suppress(OSError), os.scandir(sessions) as entries:
            for entry in entries:
                yield entry.path

    def _lines(self, session_id: str, name: str) -> Iterator[object]:
        """Yield the readable lines of a file that only grows; a torn last line is passed over."""
        folder = self.session_dir(session_id)
        if folder is None:
            return
        try:
            with open(os.path.join(folder, name), "rb") as file:
                for line in file:
                    with contextlib.suppress(orjson.JSONDecodeError):
                        yield orjson.loads(line)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error


def _content(path: str) -> bytes | None:
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


def _replace(path: str, data: bytes) -> None:
    """Put `data` in the place of a file: a reader sees the old bytes or the new, never a part."""
    folder, name = os.path.split(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(temporary, flags | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _temporary_files(folder: str, ours: re.Pattern[str]) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name):
                yield entry.path
