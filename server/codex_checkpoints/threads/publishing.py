"""Putting a whole session file in its place: it appears complete, or not at all (AGN-85).

The bytes grow under a temporary name, are flushed, and then take their name without ever taking
another file's.  A process that is killed leaves a temporary file at most, which
`clear_leftovers` finds again.  Which bytes these are is the business of `writer` and `cold`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Generator, Iterable, Iterator

from codex_checkpoints import unfinished
from codex_checkpoints.core.rollout.reader import CHUNK
from codex_checkpoints.threads.contract import Conflict, StorageFailed
from codex_checkpoints.threads.locks import is_live
from codex_checkpoints.threads.tree import parse_name, roots

_PORTION = 1 << 20
_DEPTH = 3  # sessions/YYYY/MM/DD
_IN_THE_NURSERY = re.compile(r"\.(rollout-[\w-]+\.jsonl)\.[0-9a-f]{16}\.tmp", re.ASCII)
_BESIDE = re.compile(r"\.(rollout-[\w-]+\.jsonl)\.tmp", re.ASCII)
_CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@contextlib.contextmanager
def storage() -> Generator[None]:
    """Turn what the system refuses into `StorageFailed`, with the system's reason alone."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(error.strerror or type(error).__name__) from error


def temporary_in(nursery: str, path: str) -> str:
    """Return a new temporary name for `path` in a folder of ours."""
    return os.path.join(nursery, f".{os.path.basename(path)}.{os.urandom(8).hex()}.tmp")


def temporary_beside(path: str) -> str:
    """Return the temporary name for `path` in its own folder."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.tmp")


@contextlib.contextmanager
def temporary_file(temporary: str, portions: Iterable[bytes]) -> Generator[None]:
    """Write a file that is not there yet, and flush it; memory does not grow with it.

    It is ours until the block ends, and gone when that, or the writing, fails.  Raises `OSError`,
    or what `portions` raises.
    """
    with unfinished.growing(temporary, 0o666) as descriptor:
        try:
            for portion in _gathered(portions):
                _write_all(descriptor, portion)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield


def take_name(temporary: str, path: str) -> None:
    """Give a finished temporary file its name; durable when this returns.

    Raises `Conflict` when the name is taken, `OSError`; the temporary file is gone in any case.
    """
    try:
        make_folder(os.path.dirname(path))
        try:
            _rename(temporary, path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(temporary, path)
    except FileExistsError as error:
        raise Conflict("the name is taken") from error
    finally:
        unfinished.discard(temporary)
    sync_folder(os.path.dirname(path))


def _copy(temporary: str, path: str) -> None:
    """Take the name from another file system: only now is it known to be another."""
    beside = temporary_beside(path)
    with temporary_file(beside, portions_of(temporary)):
        _rename(beside, path)
        unfinished.discard(beside)


def _rename(temporary: str, path: str) -> None:
    """Rename, but never onto a file that is there; raises `FileExistsError` then."""
    if os.name == "nt":
        os.rename(temporary, path)
        return
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links.  Nobody else makes a file of this name: it holds an id
        # that is new, or one whose writer lock we hold.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        os.rename(temporary, path)


def make_folder(folder: str) -> None:
    """Make a folder and those above it that are missing, durably; raises `OSError`."""
    if not folder or os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    sync_folder(above)


def sync_folder(folder: str) -> None:
    """Make durable which names a folder holds, as far as the system can.

    Never fails: a file system may know no such thing, a folder may be ours to write but not to
    read, and what was done there is done.
    """
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def portions_of(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file; raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | _CLOSED)
    try:
        while data := os.read(descriptor, CHUNK):
            yield data
    finally:
        os.close(descriptor)


def clear_leftovers(nursery: str, codex_home: str) -> int:
    """Remove temporary files that killed processes left; return how many.

    Those of the nursery, and those beside session files.  What another process is still writing
    stays, and so does a file of a thread that somebody holds.
    """
    return sum(
        unfinished.clear(path)
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
        for path in _files(folder, depth):
            match = ours.fullmatch(os.path.basename(path))
            name = parse_name(match[1]) if match else None
            if name is not None:
                yield path, name.thread_id


def _files(folder: str, depth: int) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("rollout-"):
                continue  # nearly all there is, and at every start
            with contextlib.suppress(OSError):
                if depth > 0 and entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, depth - 1)
                else:
                    yield entry.path


def _write_all(descriptor: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])


def _gathered(portions: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in portions worth a call each."""
    kept: list[bytes] = []
    size = 0
    for portion in portions:
        kept.append(portion)
        size += len(portion)
        if size >= _PORTION:
            yield b"".join(kept)
            kept, size = [], 0
    if kept:
        yield b"".join(kept)
