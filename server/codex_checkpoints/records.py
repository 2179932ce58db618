"""Our own durable files, below the state folder (interfaces, "Files").

A file is either replaced whole (written beside, flushed, renamed) or only grows by whole lines.
Nothing else of ours is ever written, but for the index.  What the records mean is known to `core`;
Codex's own files belong to `threads`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import BinaryIO

import orjson

from codex_checkpoints.core.checkpoint.memory import Update, update_of

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint_v1.json"
UPDATES = "updates.jsonl"
RECEIPTS = "receipts.jsonl"
COMPACTIONS = "compactions.jsonl"
AUDIT = "audit.jsonl"
HOOK_FAILED = "HookFailed"
"""The type under which a call of our hook that failed stands in the audit."""
MARKERS = "markers.jsonl"
RESTORES = "restores.jsonl"
IMPORTS = "imports.jsonl"
HINTS = "hints.jsonl"
RESTORING = "restoring"
"""The folder with a file for each branch that is being made."""
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TEMPORARY = re.compile(r"\.[\w.-]+\.[0-9a-f]{16}\.tmp")
_TEMPORARY_BESIDE = re.compile(rf"\.[\w.-]+\.{re.escape(CHECKPOINT)}\.[0-9a-f]{{16}}\.tmp")
_STALE_SECONDS = 60
_PATIENCE = 10.0
"""Seconds to wait for another process that is appending to the same file."""
_PAUSE = 0.01
_LONGEST_LINE = 1 << 24
"""No line of ours comes near; one that does is passed over, so that it fills no memory."""

Look = tuple[int, int]
"""The size of a file and the time of its last change: what tells that it may be another."""

Append = Callable[[object], None]
"""Append one line to a file that only grows; durable when it returns, or else `StorageError`."""


class StorageError(Exception):
    """A file of ours that could not be read or written; the text is the system's reason."""


class Journal:
    """The right to write to one file that only grows; it ends with the block it came from."""

    def __init__(self, file: int, folder: str) -> None:
        """Take the file, which is locked."""
        self._file = file
        self._folder = folder

    def append(self, line: object) -> None:
        """Append one line, durable on return; raises `StorageError`."""
        _append(self._file, self._folder, line)

    def take_back(self) -> None:
        """Remove the last line, of which nothing came; durable on return.

        Raises `StorageError`.
        """
        try:
            size = os.lseek(self._file, 0, os.SEEK_END)
            os.lseek(self._file, 0, os.SEEK_SET)
            with open(os.dup(self._file), "rb") as file:
                data = file.read(size)
            os.ftruncate(self._file, data.rstrip(b"\n").rfind(b"\n") + 1)
            os.fsync(self._file)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error

    def clear(self) -> None:
        """Remove all lines, also one that was torn; durable on return.

        Raises `StorageError`.
        """
        try:
            os.ftruncate(self._file, 0)
            os.fsync(self._file)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error


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

    @property
    def sessions_dir(self) -> str:
        """Return where the folders of sessions lie."""
        return os.path.join(self.state_dir, "sessions")

    def noted_at(self, path: str) -> str | None:
        """Return the session whose accepted updates lie at a path, None where none do."""
        folder, name = os.path.split(path)
        above, session_id = os.path.split(folder)
        return session_id if name == UPDATES and above == self.sessions_dir else None

    def session_dir(self, session_id: str) -> str | None:
        """Return the folder of a session; None for an id that is no plain name."""
        if _SESSION_ID.fullmatch(session_id) is None or session_id.endswith("."):
            return None
        return os.path.join(self.sessions_dir, session_id)

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

    def appending(self, session_id: str) -> contextlib.AbstractContextManager[Append]:
        """Hold the right to append to the accepted updates of a session.

        Between `updates` and the append nobody else adds one.  The right ends with the block, or
        with the process.  A file that is still empty then goes again, with its folder.  Raises
        `StorageError`, also when another process keeps the right for too long.
        """
        return self._growing(session_id, UPDATES)

    def add_receipt(self, session_id: str, receipt: Mapping[str, object]) -> None:
        """Note what was handed to Codex, without its text; raises `StorageError`."""
        with self._growing(session_id, RECEIPTS) as append:
            append(receipt)

    def has_updates(self) -> frozenset[str]:
        """Return the sessions that hold accepted updates."""
        return self.holding(UPDATES)

    def holding(self, name: str) -> frozenset[str]:
        """Return the sessions whose folder holds a file of this name."""
        with contextlib.suppress(OSError), os.scandir(self.sessions_dir) as entries:
            return frozenset(
                entry.name for entry in entries if os.path.exists(os.path.join(entry.path, name))
            )
        return frozenset()

    def look(self, session_id: str, name: str) -> Look | None:
        """Look at a file of a session without reading it; None where there is none."""
        folder = self.session_dir(session_id)
        if folder is None:
            return None
        try:
            found = os.stat(os.path.join(folder, name))
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns

    def lines(self, session_id: str, name: str) -> Iterator[object]:
        """Yield the JSON values of a file that only grows; raises `StorageError`."""
        return self._lines(session_id, name)

    def journal(self, session_id: str, name: str) -> contextlib.AbstractContextManager[Journal]:
        """Hold the right to write to a file that only grows, as `appending` does."""
        return self._held(session_id, name)

    def remove(self, session_id: str, name: str) -> None:
        """Remove a file of a session that never came to be; raises `StorageError`."""
        with self._held(session_id, name) as journal:
            journal.clear()

    def add_event(self, event: Mapping[str, object]) -> None:
        """Append an event to the audit of all operations; raises `StorageError`."""
        path = os.path.join(self.state_dir, AUDIT)
        try:
            file = _hold(path)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error
        try:
            _append(file, self.state_dir, event)
        finally:
            os.close(file)

    def events(self) -> Iterator[object]:
        """Yield the events of all operations, the oldest first; raises `StorageError`."""
        return _lines_in(os.path.join(self.state_dir, AUDIT))

    def undertakings(self) -> tuple[str, ...]:
        """Return the branches that are being made, or were when a process was killed."""
        with contextlib.suppress(OSError), os.scandir(self._restoring) as entries:
            names = (entry.name.removesuffix(".jsonl") for entry in entries)
            return tuple(sorted(name for name in names if _SESSION_ID.fullmatch(name)))
        return ()

    def undertaking(
        self, session_id: str, patience: float = _PATIENCE
    ) -> contextlib.AbstractContextManager[Journal]:
        """Hold what is written down of a branch while it is made; raises `StorageError`.

        It goes with the block when its lines were taken back; else the next start finds it.
        """
        return self._held_in(self._restoring, f"{session_id}.jsonl", patience)

    def undertaken(self, session_id: str) -> Iterator[object]:
        """Yield what is written down of a branch that is being made; raises `StorageError`."""
        if self.session_dir(session_id) is None:
            return iter(())
        return _lines_in(os.path.join(self._restoring, f"{session_id}.jsonl"))

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

    @contextlib.contextmanager
    def _growing(self, session_id: str, name: str) -> Generator[Append]:
        with self._held(session_id, name) as journal:
            yield journal.append

    @contextlib.contextmanager
    def _held(self, session_id: str, name: str) -> Generator[Journal]:
        folder = self.session_dir(session_id)
        if folder is None:
            raise StorageError("the id of the session is not the name of a folder")
        with self._held_in(folder, name) as journal:
            yield journal

    @contextlib.contextmanager
    def _held_in(self, folder: str, name: str, patience: float = _PATIENCE) -> Generator[Journal]:
        path = os.path.join(folder, name)
        try:
            file = _hold(path, patience)
        except OSError as error:
            raise StorageError(error.strerror or str(error)) from error
        try:
            yield Journal(file, folder)
        finally:
            with contextlib.suppress(OSError):
                if os.fstat(file).st_size == 0:
                    os.unlink(path)
                    os.rmdir(folder)
                    os.rmdir(os.path.dirname(folder))
            os.close(file)

    def _folders(self) -> Iterator[str]:
        yield self.state_dir
        with contextlib.suppress(OSError), os.scandir(self.sessions_dir) as entries:
            for entry in entries:
                yield entry.path

    def _lines(self, session_id: str, name: str) -> Iterator[object]:
        folder = self.session_dir(session_id)
        return iter(()) if folder is None else _lines_in(os.path.join(folder, name))

    @property
    def _restoring(self) -> str:
        return os.path.join(self.state_dir, RESTORING)


def _lines_in(path: str) -> Iterator[object]:
    """Yield the readable lines of a file that only grows; a torn last line is passed over."""
    try:
        with open(path, "rb", opener=_regular) as file:
            for line in _lines_of(file):
                with contextlib.suppress(orjson.JSONDecodeError):
                    yield orjson.loads(line)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from error


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file but for those that are too long to be ours."""
    begun = False
    while line := file.readline(_LONGEST_LINE):
        ended = line.endswith(b"\n") or len(line) < _LONGEST_LINE
        if ended and not begun:
            yield line
        begun = not ended


def _content(path: str) -> bytes | None:
    with (
        contextlib.suppress(FileNotFoundError),
        open(path, "rb", opener=_regular) as file,
    ):
        return file.read()
    return None


def _regular(path: str, flags: int) -> int:
    """Open a file, and nothing else: a pipe in its place would keep us waiting."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file")


def _replace(path: str, data: bytes) -> None:
    """Put `data` in the place of a file: a reader sees the old bytes or the new, never a part."""
    folder, name = os.path.split(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")
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


def _hold(path: str, patience: float = _PATIENCE) -> int:
    """Open a file that only grows, make it if need be, and lock it.

    The lock is the system's own, so it ends with the process that held it.
    """
    end = time.monotonic() + patience
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    while True:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if _is_ours(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if time.monotonic() >= end:
            raise StorageError("another process keeps it")
        time.sleep(_PAUSE)


def _is_ours(file: int, path: str) -> bool:
    """Lock a file without waiting; what was removed meanwhile is of no use."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise StorageError("not a regular file")
    if not _take(file):
        return False
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), os.stat(path))
    return False


def _append(file: int, folder: str, line: object) -> None:
    """Append one line in one write; what a killed process left of another is ended first."""
    data = orjson.dumps(line) + b"\n"
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        if size and not _ends_a_line(file, size):
            data = b"\n" + data
        try:
            _write_whole(file, data)
            if size == 0:
                _settle_folder(folder)
        except BaseException:
            # Whoever is told that it failed must not find it there later.
            with contextlib.suppress(OSError):
                os.ftruncate(file, size)
                os.fsync(file)
            raise
    except OSError as error:
        raise StorageError(error.strerror or str(error)) from error


def _write_whole(file: int, data: bytes) -> None:
    """Write in one go and flush; a disk that takes a part of it is full."""
    if os.write(file, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)


def _ends_a_line(file: int, size: int) -> bool:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) == b"\n"


def _settle_folder(folder: str) -> None:
    """Make the name of a new file as durable as its bytes, where the system needs to be told."""
    if sys.platform != "win32":
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


if sys.platform == "win32":
    import msvcrt

    # A lock keeps others from reading what it covers; no line ever lies so far out.
    _LOCKED_AT = 1 << 40

    def _take(file: int) -> bool:
        os.lseek(file, _LOCKED_AT, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _take(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _temporary_files(folder: str, ours: re.Pattern[str]) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name):
                yield entry.path
