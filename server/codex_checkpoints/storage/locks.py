"""Checks Codex's writer locks to see which threads are loaded, and takes one in order to write.

Codex keeps `thread-writer-locks/<thread>.lock` locked while a thread is loaded.  A probe creates
nothing, waits at most a fifth of a second, and unlocks at once.  `hold` takes the lock as Codex
does, and is the only way to a `WriterLock`, without which `writer` writes nothing (STO-16).

A thread counts as live in doubt: another process keeps `.coordination.lock` longer
than we wait, or the system does not let us open a lock file.  A session wrongly called live is only
refused; one wrongly called free would be damaged.

A probe takes a shared lock.  It conflicts with Codex's exclusive lock just as well, needs no right
to write, and two probes do not take each other for Codex.  `hold` takes an exclusive one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Generator, Sequence

from codex_checkpoints.storage import file_lock
from codex_checkpoints.storage.contract import StorageFailed, ThreadIsLive, Unsupported
from codex_checkpoints.storage.rollout_file import is_thread_id
from codex_checkpoints.storage.session_files import lock_folder, parse_name

_COORDINATION = ".coordination.lock"
_SUFFIX = ".lock"

# Follow no link, never block, and do not inherit.
_CAREFULLY = file_lock.open_flags(
    "CLOEXEC", "NOFOLLOW", "NONBLOCK", "NOCTTY", "BINARY", "NOINHERIT"
)

_COORDINATION_WAIT = 0.2
# Codex keeps it for milliseconds; it would itself wait for 30 seconds.
_COORDINATION_WAIT_TO_WRITE = 5.0
_COORDINATION_PAUSE = 0.005
# Codex waits while we hold the coordination lock, so many locks are probed in portions.
_AT_A_TIME = 64


def live_threads(codex_home: str) -> frozenset[str]:
    """Return the threads whose writer lock is held."""
    place = lock_folder(codex_home)
    try:
        locks = sorted(name for name in os.listdir(place) if name.endswith(_SUFFIX))
    except OSError:
        return frozenset()
    names = (name.removesuffix(_SUFFIX) for name in locks)
    threads = [*filter(is_thread_id, names)]
    live: set[str] = set()
    for start in range(0, len(threads), _AT_A_TIME):
        live |= _held(place, threads[start : start + _AT_A_TIME])
    return frozenset(live)


def is_live(codex_home: str, thread_id: str) -> bool:
    """Return whether the thread's writer lock is held; an invalid thread id is not live."""
    return is_thread_id(thread_id) and bool(_held(lock_folder(codex_home), (thread_id,)))


class WriterLock:
    """The right to write to one thread of one Codex home; it ends with the `hold` it came from."""

    def __init__(self, seal: object, codex_home: str, thread_id: str) -> None:
        if seal is not _SEAL:
            raise TypeError("a writer lock comes from hold()")
        self._home = _absolute(codex_home)
        self.thread_id = thread_id
        self._ended = False

    def end(self) -> None:
        """Make `check` refuse everything from here on."""
        self._ended = True

    def check(self, path: str) -> None:
        """Raise if this does not allow writing to a rollout now.

        `Unsupported` for a rollout whose name is not this thread's; `ValueError`, a caller's
        mistake, if the lock was released, or for another Codex home.
        """
        if self._ended:
            raise ValueError("the lock is no longer held")
        if not _absolute(path).startswith(os.path.join(self._home, "")):
            raise ValueError("the lock is another Codex home's")
        check_name(path, self.thread_id)


def check_name(path: str, thread_id: str) -> None:
    """Raise `Unsupported` for a rollout without the name of this thread."""
    name = parse_name(os.path.basename(path))
    if name is None or name.thread_id != thread_id:
        raise Unsupported("the session file has the name of another session")


_SEAL = object()


def _absolute(path: str) -> str:
    return os.path.normcase(os.path.abspath(path))


@contextlib.contextmanager
def hold(codex_home: str, thread_id: str) -> Generator[WriterLock]:
    """Hold a thread's writer lock as Codex does; Codex and all others are refused meanwhile.

    Makes the folder of locks, and removes the thread's lock file at the end.  A killed process
    leaves that file, but unlocked.  Raises `ThreadIsLive` when another holds the lock or keeps
    `.coordination.lock`, `StorageFailed` when the files cannot be opened, `Unsupported` for an
    invalid thread id.
    """
    if not is_thread_id(thread_id):
        raise Unsupported("no session id")
    place = lock_folder(codex_home)
    path = _lock_of(place, thread_id)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(place)
        descriptor = _claim(place, path)
    except OSError as error:
        raise StorageFailed(error.strerror or type(error).__name__) from error
    lock = WriterLock(_SEAL, codex_home, thread_id)
    try:
        yield lock
    finally:
        lock.end()
        _give_back(place, path, descriptor)


def _claim(place: str, path: str) -> int:
    """Open and lock a thread's lock file; raises `ThreadIsLive` and `OSError`."""
    with _writing_coordinated(place) as coordinated:
        if not coordinated:
            raise ThreadIsLive("another process keeps the sessions from being opened")
        descriptor = _made(path)
        # A file that replaced the other belongs to somebody who does not coordinate.
        if file_lock.take(descriptor) and _is_same(descriptor, path):
            return descriptor
        os.close(descriptor)
        raise ThreadIsLive("another process has the session open")


def _give_back(place: str, path: str, descriptor: int) -> None:
    """Remove the lock file and unlock; without coordination the file stays, but unlocked."""
    with contextlib.suppress(OSError), _writing_coordinated(place) as coordinated:
        if coordinated and _is_same(descriptor, path):
            if os.name == "nt":  # an open file cannot be removed there
                os.close(descriptor)
                descriptor = -1
            os.unlink(path)
    if descriptor >= 0:
        os.close(descriptor)


@contextlib.contextmanager
def _writing_coordinated(place: str) -> Generator[bool]:
    """Keep others from opening or closing threads; yields False on a timeout."""
    descriptor = _made(os.path.join(place, _COORDINATION))
    try:
        yield _take_in_time(file_lock.take, descriptor, _COORDINATION_WAIT_TO_WRITE)
    finally:
        os.close(descriptor)  # this unlocks as well


def _made(path: str) -> int:
    """Open a lock file in order to lock it, created if missing; raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _CAREFULLY, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "a lock is not a regular file")
    return descriptor


def _lock_of(place: str, thread_id: str) -> str:
    return os.path.join(place, thread_id + _SUFFIX)


def _held(place: str, threads: Sequence[str]) -> set[str]:
    there = [thread for thread in threads if _is_file(_lock_of(place, thread))]
    if not there:
        return set()
    with _coordinated(place) as coordinated:
        if not coordinated:
            return set(there)
        return {thread for thread in there if _is_held(_lock_of(place, thread))}


@contextlib.contextmanager
def _coordinated(place: str) -> Generator[bool]:
    """Keep Codex from opening threads; yields False on a timeout."""
    path = os.path.join(place, _COORDINATION)
    if not os.path.lexists(path):
        yield True
        return
    with _opened(path) as descriptor:
        yield descriptor is not None and _take_in_time(
            file_lock.share, descriptor, _COORDINATION_WAIT
        )


def _take_in_time(lock: Callable[[int], bool], descriptor: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (taken := lock(descriptor)) and time.monotonic() < end:
        time.sleep(_COORDINATION_PAUSE)
    return taken


def _is_held(path: str) -> bool:
    with _opened(path) as descriptor:
        if descriptor is None:
            # Gone since the check: its owner closed the thread.  Still there: unknown.
            return _is_file(path)
        if not file_lock.share(descriptor):
            return True
        # Without a coordination lock the file may have been removed and made again between our
        # opening and our locking; then our lock says nothing about the new one.
        return not _is_same(descriptor, path) and _is_file(path)


@contextlib.contextmanager
def _opened(path: str) -> Generator[int | None]:
    """Open a regular file for reading, following no link and not blocking; unlock it at the end."""
    descriptor: int | None = None
    if _is_file(path):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    try:
        regular = descriptor is not None and stat.S_ISREG(os.fstat(descriptor).st_mode)
        yield descriptor if regular else None
    finally:
        if descriptor is not None:
            file_lock.unlock(descriptor)
            os.close(descriptor)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _is_same(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
