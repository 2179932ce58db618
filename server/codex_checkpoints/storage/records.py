"""Keeps our own durable files, below the state folder (rules, "Files"), and makes times and ids.

A file is either replaced whole or only grows by whole lines, both by `atomic_files`.  Except for
the index we write no other files there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime

import orjson

from codex_checkpoints.core.checkpoint.memory import Update, update_of
from codex_checkpoints.core.checkpoint.records import BadCheckpoint, Checkpoint, from_bytes
from codex_checkpoints.core.fields import object_of, text_of, whole_of
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.atomic_files import (
    PATIENCE,
    Journal,
    StorageError,
    is_held,
    open_journal,
    own,
    storage_errors,
)
from codex_checkpoints.storage.contract import in_text
from codex_checkpoints.storage.journal_lines import lines_in

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint_v1.json"
UPDATES = "updates.jsonl"
OBSERVED = "observed.jsonl"
RECEIPTS = "receipts.jsonl"
COMPACTIONS = "compactions.jsonl"
HOOK_FAILED = "HookFailed"
"""The type of an audit event: a call of our hook failed."""
MARKERS = "markers.jsonl"
RESTORES = "restores.jsonl"
IMPORTS = "imports.jsonl"
PULLS = "pulls.jsonl"
FILE_RESTORES = "file_restores.jsonl"
FILE_COPIES = "file_copies.jsonl"
RESTORING = "restoring"
"""The folder with a file for each session that is being made."""
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TEMPORARY = re.compile(r"\.[\w.-]+\.[0-9a-f]{16}\.tmp")
_TEMPORARY_BESIDE = re.compile(rf"\.[\w.-]+\.{re.escape(CHECKPOINT)}\.[0-9a-f]{{16}}\.tmp")

FileStamp = tuple[int, int]
"""The size of a file and the time of its last change in ns: equal while it is unchanged."""


class Records:
    """The files of the state folder; `beside` puts checkpoints next to their session files."""

    def __init__(self, state_dir: str, *, beside: bool = False) -> None:
        self.state_dir = state_dir
        self.beside = beside
        self.audit = Audit(state_dir)

    @property
    def sessions_dir(self) -> str:
        """Return the folder with a folder for each session."""
        return os.path.join(self.state_dir, "sessions")

    def noted_at(self, path: str) -> str | None:
        """Return the session whose checkpoint depends on the record at a path, else None."""
        return self._session_at(path, {UPDATES, OBSERVED})

    def marked_at(self, path: str) -> str | None:
        """Return the session whose markers and pins are at a path, else None."""
        return self._session_at(path, {MARKERS})

    def _session_at(self, path: str, names: Container[str]) -> str | None:
        folder, name = os.path.split(path)
        above, session_id = os.path.split(folder)
        return session_id if name in names and above == self.sessions_dir else None

    def session_dir(self, session_id: str) -> str | None:
        """Return the folder of a session; None for an id that cannot be its name."""
        if _SESSION_ID.fullmatch(session_id) is None or session_id.endswith("."):
            return None
        return os.path.join(self.sessions_dir, session_id)

    def checkpoint_path(self, session_id: str, rollout_path: str) -> str | None:
        """Return the path of the checkpoint of a session (DSC-4, DSC-70)."""
        if self.beside:
            stem = rollout_path.removesuffix(".zst").removesuffix(".jsonl")
            return f"{stem}.{CHECKPOINT}"
        folder = self.session_dir(session_id)
        return None if folder is None else os.path.join(folder, CHECKPOINT)

    def write_checkpoint(self, session_id: str, rollout_path: str, data: bytes) -> bool:
        """Store a checkpoint, durably; return whether its bytes had to change (DSC-80).

        It is logged if the old file was not a checkpoint (TRU-4).
        """
        path = self.checkpoint_path(session_id, rollout_path)
        if path is None:
            return False
        with storage_errors():
            before = _content(path)
            if before == data:
                return False
            if before is not None and not _is_checkpoint(before):
                logger.warning("%s was not a checkpoint and was rewritten", path)
            atomic_files.in_folder(path, lambda: atomic_files.replace(path, data))
        return True

    def checkpoint(self, session_id: str, rollout_path: str) -> Checkpoint | None:
        """Return the stored checkpoint of a session, None if there is none that can be read."""
        path = self.checkpoint_path(session_id, rollout_path)
        with contextlib.suppress(OSError, BadCheckpoint):
            data = None if path is None else _content(path)
            return None if data is None else from_bytes(data)
        return None

    def damaged_checkpoints(self, rollouts: Mapping[str, str]) -> Iterator[str]:
        """Yield the unreadable stored checkpoints of sessions with these session files."""
        for session_id, rollout in rollouts.items():
            path = self.checkpoint_path(session_id, rollout)
            with contextlib.suppress(OSError):
                found = None if path is None else _content(path)
                if path is not None and found is not None and not _is_checkpoint(found):
                    yield path

    def updates(self, session_id: str) -> tuple[Update, ...]:
        """Return the accepted updates of a session in the order of its file."""
        found = (update_of(line) for line in self.lines(session_id, UPDATES))
        return tuple(update for update in found if update is not None)

    def observed(self, session_id: str) -> dict[tuple[str, int], str]:
        """Return the hashes that were seen right after an observation, by uri and `seq`."""
        found: dict[tuple[str, int], str] = {}
        for line in map(object_of, self.lines(session_id, OBSERVED)):
            uri, seq, seen = text_of(line.get("uri")), whole_of(line.get("seq")), line.get("hash")
            if uri is not None and seq is not None and isinstance(seen, str):
                found.setdefault((uri, seq), seen)
        return found

    def add_observed(self, session_id: str, seen: Mapping[tuple[str, int], str]) -> None:
        """Append such hashes; raises `StorageError`."""
        at = now()
        lines = [{"uri": uri, "seq": seq, "hash": seen[uri, seq], "at": at} for uri, seq in seen]
        with self.journal(session_id, OBSERVED) as journal:
            journal.append(*lines)

    def add_receipt(self, session_id: str, receipt: Mapping[str, object]) -> None:
        """Append a receipt of a context given to Codex; raises `StorageError`."""
        with self.journal(session_id, RECEIPTS) as journal:
            journal.append(receipt)

    def known(self) -> frozenset[str]:
        """Return the sessions that have a folder of ours."""
        with contextlib.suppress(OSError):
            return frozenset(os.listdir(self.sessions_dir))
        return frozenset()

    def holding(self, name: str) -> frozenset[str]:
        """Return the sessions whose folder holds a file of this name."""
        folders = _paths(self.sessions_dir)
        with_it = (each for each in folders if os.path.lexists(os.path.join(each, name)))
        return frozenset(map(os.path.basename, with_it))

    def stamp(self, session_id: str, name: str) -> FileStamp | None:
        """Return size and time of a file of a session; None if it is missing."""
        folder = self.session_dir(session_id)
        return None if folder is None else stamp_at(os.path.join(folder, name))

    def lines(self, session_id: str, name: str) -> Iterator[object]:
        """Yield the JSON values of a file that only grows; raises `StorageError`."""
        folder = self.session_dir(session_id)
        return iter(()) if folder is None else lines_in(os.path.join(folder, name))

    @contextlib.contextmanager
    def journal(self, session_id: str, name: str) -> Generator[Journal]:
        """Hold the right to write to a file of a session, as `atomic_files.open_journal`."""
        folder = self.session_dir(session_id)
        if folder is None:
            raise StorageError("the id of the session is not the name of a folder")
        with open_journal(os.path.join(folder, name)) as journal:
            yield journal

    def remove(self, session_id: str, name: str) -> None:
        """Remove a file of a session, if any; raises `StorageError`."""
        folder = self.session_dir(session_id)
        if folder is not None and _is_missing(folder):
            return
        with self.journal(session_id, name) as journal:
            journal.clear()

    def operations_begun(self) -> tuple[str, ...]:
        """Return the ids of operations that are running, or were when a process was killed."""
        names = (os.path.basename(path).removesuffix(".jsonl") for path in _paths(self._restoring))
        return tuple(sorted(filter(_SESSION_ID.fullmatch, names)))

    def unfinished_operations(self) -> tuple[str, ...]:
        """Return the ids of operations that killed processes left unfinished."""
        return tuple(
            each for each in self.operations_begun() if not is_held(self._operation_path(each))
        )

    def operation_journal(
        self, session_id: str, patience: float = PATIENCE
    ) -> contextlib.AbstractContextManager[Journal]:
        """Lock the file of an operation; it is deleted with its last line."""
        return open_journal(self._operation_path(session_id), patience)

    def operation_lines(self, session_id: str) -> Iterator[object]:
        """Yield the lines in the file of an operation; raises `StorageError`."""
        if self.session_dir(session_id) is None:
            return iter(())
        return lines_in(self._operation_path(session_id))

    def clear_leftovers(self, beside: Iterable[str] = ()) -> int:
        """Remove leftover temporary files of killed processes, also in `beside`; return a count."""
        places = [(folder, _TEMPORARY) for folder in (self.state_dir, *_paths(self.sessions_dir))]
        places += [(folder, _TEMPORARY_BESIDE) for folder in beside]
        return sum(
            atomic_files.clear(path)
            for folder, ours in places
            for path in _paths(folder)
            if path.endswith(".tmp") and ours.fullmatch(os.path.basename(path))
        )

    @property
    def _restoring(self) -> str:
        return os.path.join(self.state_dir, RESTORING)

    def _operation_path(self, session_id: str) -> str:
        return os.path.join(self._restoring, f"{session_id}.jsonl")


def _is_missing(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def stamp_at(path: str) -> FileStamp | None:
    """Return size and time of a file; None if it is missing."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns
    return None


def _is_checkpoint(data: bytes) -> bool:
    try:
        from_bytes(data)
    except BadCheckpoint:
        return False
    return True


def _content(path: str) -> bytes | None:
    """Return the bytes of a file, None if it is missing, and no bytes for a symbolic link."""
    if os.path.islink(path):
        return b""
    with (
        contextlib.suppress(FileNotFoundError),
        open(path, "rb", opener=own) as file,
    ):
        return file.read()
    return None


def _paths(folder: str) -> tuple[str, ...]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return tuple(entry.path for entry in entries)
    return ()


def now() -> str:
    """Return the present time in UTC, ISO 8601 with milliseconds and `Z`."""
    return in_text(moment())


def moment() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def new_ids(at: datetime, count: int) -> tuple[str, ...]:
    """Return UUIDs of version 7 for one moment, in ascending order."""
    at_ms = int(at.timestamp() * 1000)
    return tuple(uuid7(at_ms, os.urandom(RANDOM_BYTES), place) for place in range(count))


def new_id() -> str:
    """Return a UUID of version 7, for the present millisecond."""
    return uuid7(time.time_ns() // 1_000_000, os.urandom(RANDOM_BYTES))


RANDOM_BYTES = 8
"""The bytes that one id needs from a random source."""


def uuid7(at_ms: int, random: bytes, place: int = 0) -> str:
    """Return a UUID of version 7 for a time in ms since 1970 and eight random bytes (WIN-1).

    Several of one millisecond are in the order of their `place`, 0 to 4095.
    """
    if len(random) != RANDOM_BYTES:
        message = f"a UUID takes {RANDOM_BYTES} random bytes"
        raise ValueError(message)
    low = int.from_bytes(random) & (1 << 62) - 1
    number = (at_ms & (1 << 48) - 1) << 80 | 7 << 76 | (place & 0xFFF) << 64 | 2 << 62 | low
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


AUDIT = "audit.jsonl"


class Audit:
    """`audit.jsonl`: the events of all operations, a line each (rules, "Audit").

    Lines of earlier builds also have `digest` and `previous`; their `audit.head` stays as it is.
    """

    def __init__(self, state_dir: str) -> None:
        self._path = os.path.join(state_dir, AUDIT)

    def add(self, event: Mapping[str, object]) -> None:
        """Append an event, durable on return; raises `StorageError`."""
        with atomic_files.locked(self._path) as file, atomic_files.storage_errors():
            atomic_files.append(file, orjson.dumps(event) + b"\n", os.path.dirname(self._path))

    def check(self) -> None:
        """Raise `StorageError` if no event could be added; nothing is written."""
        with atomic_files.storage_errors(), contextlib.suppress(FileNotFoundError):
            os.close(atomic_files.open_to_append(self._path))

    def events(self) -> Iterator[object]:
        """Yield the readable lines, the oldest first; raises `StorageError`."""
        return lines_in(self._path)
