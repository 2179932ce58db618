"""Which threads another process holds right now, by probing Codex's writer locks.

Codex keeps `thread-writer-locks/<thread>.lock` locked while a thread is loaded. This
module only asks. It creates nothing, waits for nobody beyond a fifth of a second, and lets
go at once. Taking the locks in order to write is left to `rollout_file.py`.

The answer is "live" where the truth cannot be had: somebody keeps `.coordination.lock`
longer than we wait, or a lock file is there but the system does not let us ask. A session
that is wrongly called live only refuses a write; one that is wrongly called free would
lose it.

Our locks are shared ones. They conflict with Codex's exclusive lock just as well, they need
no right to write, and two of our own probes do not take each other for Codex.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_FOLDER = "thread-writer-locks"
_COORDINATION = ".coordination.lock"
_SUFFIX = ".lock"
_THREAD_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_COORDINATION_WAIT = 0.2
_COORDINATION_PAUSE = 0.005
# Codex waits for the coordination lock while we hold it, so a folder with many locks that
# were left behind is asked in portions.
_AT_A_TIME = 64


def folder(codex_home: str) -> str:
    """Return where the locks lie; a change there may mean that a thread was loaded or let go."""
    return str(Path(codex_home, _FOLDER))


def live_threads(codex_home: str) -> frozenset[str]:
    """Name the threads whose writer lock is held."""
    place = Path(codex_home, _FOLDER)
    try:
        locks = sorted(path for path in place.iterdir() if path.suffix == _SUFFIX)
    except OSError:
        return frozenset()
    threads = [path.stem for path in locks if _THREAD_ID.fullmatch(path.stem)]
    live: set[str] = set()
    for start in range(0, len(threads), _AT_A_TIME):
        live |= _held(place, threads[start : start + _AT_A_TIME])
    return frozenset(live)


def is_live(codex_home: str, thread_id: str) -> bool:
    """Tell whether the thread's writer lock is held; what is no thread id is not live."""
    if _THREAD_ID.fullmatch(thread_id) is None:
        return False
    return bool(_held(Path(codex_home, _FOLDER), (thread_id,)))


def _held(folder: Path, threads: Sequence[str]) -> set[str]:
    there = [thread for thread in threads if _is_file(folder / (thread + _SUFFIX))]
    if not there:
        return set()
    with _coordinated(folder) as coordinated:
        if not coordinated:
            return set(there)
        return {thread for thread in there if _is_held(folder / (thread + _SUFFIX))}


@contextlib.contextmanager
def _coordinated(folder: Path) -> Generator[bool]:
    """Keep Codex from opening threads meanwhile; `False` when that could not be had."""
    path = folder / _COORDINATION
    if not os.path.lexists(path):
        yield True
        return
    with _opened(path) as descriptor:
        taken = descriptor is not None and _take_in_time(descriptor)
        try:
            yield taken
        finally:
            if taken and descriptor is not None:
                _let_go(descriptor)


def _take_in_time(descriptor: int) -> bool:
    end = time.monotonic() + _COORDINATION_WAIT
    while not _take(descriptor):
        if time.monotonic() >= end:
            return False
        time.sleep(_COORDINATION_PAUSE)
    return True


def _is_held(path: Path) -> bool:
    with _opened(path) as descriptor:
        if descriptor is None:
            # Gone since we looked: its owner closed the thread. Still there: unknown.
            return _is_file(path)
        if not _take(descriptor):
            return True
        try:
            # Without a coordination lock the file may have been removed and made again
            # between our opening and our locking; then our lock says nothing about the new one.
            return not _is_same(descriptor, path) and _is_file(path)
        finally:
            _let_go(descriptor)


@contextlib.contextmanager
def _opened(path: Path) -> Generator[int | None]:
    """Open a regular file for reading, without following a link and without blocking."""
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    descriptor: int | None = None
    if _is_file(path):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, flags)
    try:
        regular = descriptor is not None and stat.S_ISREG(os.fstat(descriptor).st_mode)
        yield descriptor if regular else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    class _Overlapped(ctypes.Structure):
        _fields_ = (
            ("Internal", ctypes.c_void_p),
            ("InternalHigh", ctypes.c_void_p),
            ("Offset", wintypes.DWORD),
            ("OffsetHigh", wintypes.DWORD),
            ("hEvent", wintypes.HANDLE),
        )

    _FAIL_IMMEDIATELY = 1
    # Rust's `File::try_lock` locks this range, so these are the bytes to ask for.
    _WHOLE = 0xFFFFFFFF

    def _take(descriptor: int) -> bool:
        """Lock without waiting; any failure counts as held."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        lock = kernel.LockFileEx
        lock.argtypes = (wintypes.HANDLE, *(wintypes.DWORD,) * 4, ctypes.POINTER(_Overlapped))
        lock.restype = wintypes.BOOL
        handle = msvcrt.get_osfhandle(descriptor)
        place = ctypes.byref(_Overlapped())
        return bool(lock(handle, _FAIL_IMMEDIATELY, 0, _WHOLE, _WHOLE, place))

    def _let_go(descriptor: int) -> None:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        unlock = kernel.UnlockFileEx
        unlock.argtypes = (wintypes.HANDLE, *(wintypes.DWORD,) * 3, ctypes.POINTER(_Overlapped))
        unlock.restype = wintypes.BOOL
        handle = msvcrt.get_osfhandle(descriptor)
        unlock(handle, 0, _WHOLE, _WHOLE, ctypes.byref(_Overlapped()))

else:
    import fcntl

    def _take(descriptor: int) -> bool:
        """Lock without waiting; any failure counts as held."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _let_go(descriptor: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
