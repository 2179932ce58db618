"""Writes session files: a new one, lines at the end of one, a move, a removal (STO-12, STO-16).

Existing bytes are never changed.  Everything but a new file needs the thread's `WriterLock`.

Codex packs old session files into one zstd frame.  Such a file is never appended to: it is unpacked
beside itself, and removed when the plain file is complete.  Of both forms the plain one counts, so
a process may be killed at any point.

Codex 0.169 keeps the path of a thread in a database of its own.  Without such a row it uses the
folder: a file in `archived_sessions/` is archived, and `codex unarchive` restores it.  With a row
it still lists a moved file rightly, but neither resumes, archives nor unarchives it ("no rollout
found"), until the file is back in its old place or the database is rebuilt.  Codex itself moves all
files of a thread: later segments build on earlier ones.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime

from codex_checkpoints.core.agents.codex.reader import CHUNK
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.contract import (
    Conflict,
    Copied,
    HistoryItem,
    StorageFailed,
    UnreadableSource,
    Unsupported,
)
from codex_checkpoints.storage.file_lock import open_flags
from codex_checkpoints.storage.locks import WriterLock, is_live
from codex_checkpoints.storage.rollout_file import decompressed, end_of, lines_after, reading
from codex_checkpoints.storage.session_files import parse_name, roots, version_of, within

PACKED = ".zst"
_DEPTH = 3  # sessions/YYYY/MM/DD
_IN_THE_NURSERY = re.compile(r"\.(rollout-[\w-]+\.jsonl)\.[0-9a-f]{16}\.tmp", re.ASCII)
_BESIDE = re.compile(r"\.(rollout-[\w-]+\.jsonl)\.tmp", re.ASCII)
_CAREFULLY = open_flags("BINARY", "CLOEXEC", "NOFOLLOW", "NONBLOCK")


@contextlib.contextmanager
def _storage() -> Generator[None]:
    try:
        yield
    except FileExistsError as error:
        raise Conflict("the name is taken") from error
    except OSError as error:
        raise StorageFailed(atomic_files.reason_of(error)) from error


Written = tuple[int, int, tuple[int, int] | None]
"""Where an append begins and ends, and the ordinals of its first and last line, if any."""


def publish(path: str, lines: Iterable[bytes], nursery: str) -> None:
    """Write a new session file from whole lines; durable and complete when it appears.

    It grows in `nursery`, or beside its place if that is another file system.  Raises `Conflict`
    when such a file exists, packed or not, `StorageFailed`; then nothing is left.
    """
    if os.path.lexists(path) or os.path.lexists(path + PACKED):
        raise Conflict("there is such a session file already")
    with _storage():
        atomic_files.make_folder(nursery, 0o700)
        atomic_files.publish(path, lines, atomic_files.temporary_in(nursery, path), 0o666)


def append(
    path: str,
    items: Sequence[HistoryItem | Copied],
    at: datetime,
    lock: WriterLock,
    expected: str | None,
) -> Written:
    """Append lines to a plain session file in one write, durable when this returns.

    The numbers of a paginated history are continued.  If the last line has no LF, that is written
    first.  Raises `Conflict` when the file is gone or another version than `expected`,
    `Unsupported` for a file or a line that Codex would refuse, `StorageFailed`.  After an error the
    file is unchanged: a written part is truncated, unless somebody without the lock has written
    after it.
    """
    lock.check(path)
    if path.endswith(PACKED):
        raise Unsupported("a packed session file is not appended to; unpack it first")
    with _storage(), _opened(path) as (file, status):
        if expected is not None and expected != version_of(status):
            raise Conflict("the session file has changed since it was read")
        end = end_of(reading(file), status.st_size, lock.thread_id)
        lines, ordinals = lines_after(end.ordinal, items, at)
        data = b"".join(lines)
        if not data:
            return status.st_size, status.st_size, ordinals
        atomic_files.append(file, data, os.path.dirname(path), "agreed")
        stop = os.lseek(file, 0, os.SEEK_CUR)
        return stop - len(data) - end.torn, stop, ordinals


def check(path: str, thread_id: str) -> None:
    """Raise as `append` would for a plain session file as it is now."""
    with _storage(), _opened(path) as (file, status):
        end_of(reading(file), status.st_size, thread_id)


def move(source: str, target: str, lock: WriterLock) -> None:
    """Move a session file; its time of change stays.  Durable when this returns.

    It is atomic: killed, it leaves the file in the old place or in the new one.  Raises `Conflict`
    when the source is gone or the target taken, `StorageFailed`.
    """
    lock.check(source)
    lock.check(target)
    if os.path.lexists(source):
        drop_twin(source, lock)
    with _storage():
        atomic_files.make_folder(os.path.dirname(target))
        plain = target.removesuffix(PACKED)
        # A file of this name could only come from another move of this thread, and we hold its
        # lock: so this is not a race, and one rename is better than a link and a removal.
        if os.path.lexists(plain) or os.path.lexists(plain + PACKED):
            raise Conflict("there is such a session file already")
        try:
            os.rename(source, target)
        except FileNotFoundError as error:
            raise Conflict("the session file is gone") from error
        atomic_files.settle_folder(os.path.dirname(target))
        atomic_files.settle_folder(os.path.dirname(source))


def remove(path: str, lock: WriterLock) -> None:
    """Remove a session file in both forms, if it exists; durable when this returns."""
    lock.check(path)
    if os.path.lexists(path):
        drop_twin(path, lock)
    with _storage(), contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    atomic_files.settle_folder(os.path.dirname(path))


@contextlib.contextmanager
def _opened(path: str) -> Generator[tuple[int, os.stat_result]]:
    """Open a plain session file for appending; raises `Conflict` if it is gone."""
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | _CAREFULLY)
    except FileNotFoundError as error:
        raise Conflict("the session file is gone") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unsupported("a link is not followed") from error
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise Unsupported("not a regular file")
        yield file, status
    finally:
        os.close(file)


# --- packed files --------------------------------------------------------------------------------


def unpack(path: str, lock: WriterLock) -> str:
    """Replace a `.zst` with the plain file; return its path, durable.

    Time of change and permissions stay as in the packed file.  Killed at any point, this leaves the
    packed file, or both.  Raises `UnreadableSource` when it cannot be unpacked to its end,
    `Conflict` when it is gone or exists in two differing forms, `StorageFailed`.
    """
    lock.check(path)
    if not path.endswith(PACKED):
        raise Unsupported("the session file is plain already")
    plain = path.removesuffix(PACKED)
    if os.path.lexists(plain):
        drop_twin(plain, lock)
        return plain
    with _storage():
        status = _status(path)
        folder, name = os.path.split(plain)
        temporary = os.path.join(folder, f".{name}.tmp")
        atomic_files.discard(temporary)  # a killed process left it: the lock is ours now
        with atomic_files.temporary_file(temporary, _plain(path), 0o666):
            if os.name != "nt":
                os.chmod(temporary, stat.S_IMODE(status.st_mode))
            os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
            atomic_files.take_name(temporary, plain)
        os.unlink(path)
        atomic_files.settle_folder(os.path.dirname(path))
    return plain


def drop_twin(path: str, lock: WriterLock) -> None:
    """Remove the packed form beside a plain file, if the plain one has all of it.

    It would reappear when the plain file is moved or removed.  Raises `Conflict` when it has
    anything else, `StorageFailed`.
    """
    lock.check(path)
    if path.endswith(PACKED):
        return
    packed = path + PACKED
    with _storage():
        if not os.path.lexists(packed):
            return
        if not _begins_with(path, packed):
            raise Conflict("the session file lies there twice, and the two differ")
        os.unlink(packed)
        atomic_files.settle_folder(os.path.dirname(path))


def _begins_with(path: str, packed: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    try:
        return all(os.read(descriptor, len(data)) == data for data in _plain(packed))
    except UnreadableSource:
        return False
    finally:
        os.close(descriptor)


def _status(path: str) -> os.stat_result:
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Conflict("the session file is gone") from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableSource("not a regular file")
    return status


def _plain(path: str) -> Iterator[bytes]:
    """Yield the bytes of a packed file; raises `UnreadableSource` if it is damaged."""
    file = os.open(path, os.O_RDONLY | _CAREFULLY)
    try:
        with decompressed(file) as plain:
            while data := plain.read(CHUNK):
                yield data
    finally:
        os.close(file)


# --- leftovers of killed processes ----------------------------------------------------------------


def clear_leftovers(nursery: str, codex_home: str) -> int:
    """Remove abandoned temporary files; return their number."""
    return sum(
        atomic_files.clear(path)
        for path, thread_id in _temporary_files(nursery, codex_home)
        if not is_live(codex_home, thread_id)
    )


def _temporary_files(nursery: str, codex_home: str) -> Iterator[tuple[str, str]]:
    """Yield paths of temporary files, each with the thread it was for."""
    active, archived = roots(codex_home)
    for folder, depth, ours in (
        (nursery, 0, _IN_THE_NURSERY),
        (active, _DEPTH, _BESIDE),
        (archived, 0, _BESIDE),
    ):
        for entry, _, is_passed in within(folder, depth):
            hidden = entry.name.startswith(".") and not is_passed
            match = ours.fullmatch(entry.name) if hidden else None
            name = parse_name(match[1]) if match else None
            if name is not None:
                yield entry.path, name.thread_id
