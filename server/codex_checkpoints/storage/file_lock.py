"""Locks open files in the way that Codex does: `flock`, on Windows `LockFileEx`.

Nothing here waits, and a lock ends with its process.  `storage/locks` explains the meaning of
Codex's own locks, `atomic_files` the meaning of ours.
"""

from __future__ import annotations

import contextlib
import os
import sys


def open_flags(*names: str) -> int:
    """Return flags of `os.open`, without those that this system does not have."""
    flags = 0
    for name in names:
        flags |= getattr(os, f"O_{name}", 0)
    return flags


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

    _AT_ONCE = 1
    _AT_ONCE_AND_ALONE = 3
    # Rust's `File::try_lock` locks this range, so these are the bytes to ask for.
    _WHOLE = 0xFFFFFFFF

    def _locked(descriptor: int, *, shared: bool) -> bool:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        lock = kernel.LockFileEx
        lock.argtypes = (wintypes.HANDLE, *(wintypes.DWORD,) * 4, ctypes.POINTER(_Overlapped))
        lock.restype = wintypes.BOOL
        handle = msvcrt.get_osfhandle(descriptor)
        place = ctypes.byref(_Overlapped())
        kind = _AT_ONCE if shared else _AT_ONCE_AND_ALONE
        return bool(lock(handle, kind, 0, _WHOLE, _WHOLE, place))

    def is_supported(descriptor: int) -> bool:  # noqa: ARG001 - as elsewhere
        """Return whether the file system has locks at all."""
        return True

    def unlock(descriptor: int) -> None:
        """Unlock; an unlocked file is left alone."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        native = kernel.UnlockFileEx
        native.argtypes = (wintypes.HANDLE, *(wintypes.DWORD,) * 3, ctypes.POINTER(_Overlapped))
        native.restype = wintypes.BOOL
        handle = msvcrt.get_osfhandle(descriptor)
        native(handle, 0, _WHOLE, _WHOLE, ctypes.byref(_Overlapped()))

    # A lock keeps others from reading the locked range; no line ever lies so far out.
    _BEHIND_ALL_LINES = 1 << 40

    def take_to_append(descriptor: int) -> bool:
        """Lock without waiting, but let readers in; raises `OSError` if nothing can be locked."""
        os.lseek(descriptor, _BEHIND_ALL_LINES, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _locked(descriptor: int, *, shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def is_supported(descriptor: int) -> bool:
        """Return whether the file system has locks at all."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        unlock(descriptor)
        return True

    def take_to_append(descriptor: int) -> bool:
        """Lock without waiting, but let readers in; raises `OSError` if nothing can be locked."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Unlock; an unlocked file is left alone."""
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def share(descriptor: int) -> bool:
    """Lock without waiting, shared with other probes; any failure counts as held."""
    return _locked(descriptor, shared=True)


def take(descriptor: int) -> bool:
    """Lock without waiting, exclusively; any failure counts as held."""
    return _locked(descriptor, shared=False)
