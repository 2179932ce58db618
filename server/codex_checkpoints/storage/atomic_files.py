"""Writes and reads our files; neither a crash nor a full disk leaves a partial file.

There are three ways to write a file, and no others:

- `replace` atomically replaces a whole file: a reader sees the old bytes or the new;
- `publish` creates a file atomically, and never takes another file's name;
- `append` adds whole lines to a file that only grows (`open_journal`, `locked`, `append_line`).

Each is durable when it returns: the bytes are flushed before a file gets its name, and the folder
is flushed after that.  Each raises `OSError` and leaves the previous state.  `storage_errors` turns
that into `StorageError`.

Files that are only ours are opened by `own`, which follows no symbolic link.  Otherwise anybody who
can write into our folder could have us write into any file of the user's.

A temporary file is locked until it has its name.  The lock ends with the process, so `clear`
removes only leftovers of a killed process.  Without locks (some file systems, and Windows, where a
locked file cannot be renamed), a temporary file that was not touched for a minute is a leftover.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Literal, TypeVar

import orjson
from attrs import frozen

from codex_checkpoints.storage import file_lock

PATIENCE = 10.0
"""Timeout for another process that is appending to the same file."""

_PAUSE = 0.01
_ATTEMPTS = 100
_UNTOUCHED_SECONDS = 60
_PORTION = 1 << 20

_LOCKS = os.name != "nt"
_SAFE = file_lock.open_flags("CLOEXEC", "BINARY")
_NO_LINK = _SAFE | file_lock.open_flags("NOFOLLOW")
_NO_WAIT = file_lock.open_flags("NONBLOCK", "NOCTTY")
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

Append = Callable[[object], None]
"""Appends one line to a file that only grows, durable on return; raises `StorageError`."""


class StorageError(Exception):
    """A file of ours that could not be read or written; the text is the system's reason.

    `path` is that file or its folder, None if the system names none.
    """

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason)
        self.path = path


class TooLarge(Exception):
    """A file beyond the bound; none of it was read."""


def reason_of(error: OSError) -> str:
    """Return the system's reason for a failure, without a path."""
    return error.strerror or str(error) or type(error).__name__


def path_of(error: OSError) -> str | None:
    """Return the file that a failure names, None if the system names none."""
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None


@contextlib.contextmanager
def storage_errors() -> Generator[None]:
    """Turn `OSError` into `StorageError`."""
    try:
        yield
    except OSError as error:
        raise StorageError(reason_of(error), path_of(error)) from error


# --- a whole file --------------------------------------------------------------------------------


def replace(path: str, data: bytes, prepare: Callable[[str], None] | None = None) -> None:
    """Replace whatever has this name with a whole file; only its owner may read it.

    `prepare` gets the name of the new file before the rename, to change its mode or to raise.
    Raises `OSError`, or the error of `prepare`; then the old file is intact.
    """
    temporary = temporary_beside(path)
    with temporary_file(temporary, (data,), 0o600):
        if prepare is not None:
            prepare(temporary)
        os.replace(temporary, path)
    settle_folder(os.path.dirname(path))


def publish(
    path: str, portions: Iterable[bytes], temporary: str | None = None, mode: int = 0o600
) -> None:
    """Create a file of some bytes atomically.

    It grows as `temporary`, or beside its place; memory does not grow with it.  Raises
    `FileExistsError` if the name is taken, `OSError`, or the error of `portions`.
    """
    temporary = temporary or temporary_beside(path)
    with temporary_file(temporary, portions, mode):
        take_name(temporary, path, mode)


def temporary_beside(path: str) -> str:
    """Return a new temporary name in the folder of a file."""
    return temporary_in(os.path.dirname(path), path)


def temporary_in(folder: str, path: str) -> str:
    """Return a new temporary name for a file in another folder, cut to the longest name."""
    name = os.path.basename(path)
    short = name if len(os.fsencode(name)) <= 200 else name[:50]  # noqa: PLR2004 - of 255
    return os.path.join(folder, f".{short}.{os.urandom(8).hex()}.tmp")


@contextlib.contextmanager
def temporary_file(temporary: str, portions: Iterable[bytes], mode: int) -> Generator[None]:
    """Write and flush a new file, locked until the block ends, and removed if that fails.

    Raises `OSError`, `FileExistsError` if the file exists.
    """
    try:
        file = _made(temporary, mode)
    except OSError:
        raise
    except BaseException:
        # An interrupt (Ctrl+C) may come before we know the descriptor.
        discard(temporary)
        raise
    try:
        try:
            for portion in _gathered(portions):
                _write(file, portion)
            os.fsync(file)
        finally:
            if not _LOCKS:
                os.close(file)
        yield
    except BaseException:
        discard(temporary)
        raise
    finally:
        if _LOCKS:
            os.close(file)


def _write(file: int, data: bytes) -> None:
    written = 0
    while written < len(data):  # once, unless the system takes less
        written += os.write(file, data[written:])


def take_name(temporary: str, path: str, mode: int = 0o666) -> None:
    """Give a finished temporary file its name, durably; raises `FileExistsError`, `OSError`."""
    folder = os.path.dirname(path)
    try:
        make_folder(folder)
        try:
            _link(temporary, path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # The file systems differ.
            beside = os.path.join(folder, f".{os.path.basename(path)}.tmp")
            with open(temporary, "rb") as source:
                portions = iter(partial(source.read, _PORTION), b"")
                with temporary_file(beside, portions, mode):
                    _link(beside, path)
                    discard(beside)
    finally:
        discard(temporary)
    settle_folder(folder)


def _link(temporary: str, path: str) -> None:
    """Rename, but never over an existing file; raises `FileExistsError` then."""
    if os.name == "nt":
        os.rename(temporary, path)
        return
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: between the check and the rename another may take the
        # name.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        os.rename(temporary, path)


def _gathered(portions: Iterable[bytes]) -> Iterator[bytes]:
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


# --- folders -------------------------------------------------------------------------------------


def make_folder(folder: str, mode: int = 0o777) -> None:
    """Make a folder with this mode, and those above it, durably; raises `OSError`.

    The error is `FileNotFoundError` if another process removed it at once.
    """
    if not folder or os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode)
    if not stat.S_ISDIR(os.stat(folder).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
    settle_folder(above)


T = TypeVar("T")


def in_folder(path: str, make: Callable[[], T]) -> T:
    """Make the folder of a file of ours, and the file in it; raises the error of `make`.

    `open_journal` in another process may remove the folder in between, if it is empty.
    """
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            make_folder(os.path.dirname(path), 0o700)
            return make()
    return make()


def settle_folder(folder: str) -> None:
    """Make the names in a folder durable, as far as the system can and we may."""
    with contextlib.suppress(OSError):
        _flush_folder(folder)


def _flush_folder(folder: str) -> None:
    if os.name == "nt":
        return
    file = os.open(folder or ".", os.O_RDONLY | _SAFE)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# --- temporary files -----------------------------------------------------------------------------


def discard(path: str) -> None:
    """Remove a temporary file; if that fails, the next start removes it."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def clear(path: str) -> bool:
    """Remove an abandoned temporary file; return whether this call removed it."""
    with contextlib.suppress(OSError):
        if not _LOCKS:
            return _clear_by_age(path)
        file = os.open(path, os.O_RDWR | _NO_WAIT | _NO_LINK)
        try:
            # Locked during the removal, so that a file made under this name meanwhile stays.
            if stat.S_ISREG(os.fstat(file).st_mode) and _is_locked_by_us(file, path):
                os.unlink(path)
                return True
            return not file_lock.is_supported(file) and _clear_by_age(path)
        finally:
            os.close(file)
    return False


def _clear_by_age(path: str) -> bool:
    look = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(look.st_mode) or time.time() - look.st_mtime <= _UNTOUCHED_SECONDS:
        return False
    os.unlink(path)
    return True


def _made(path: str, mode: int) -> int:
    lost = False
    for _ in range(_ATTEMPTS):
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, mode)
        except FileExistsError:
            if not lost:
                raise
            time.sleep(_PAUSE)
            continue
        if not _LOCKS or _is_locked_by_us(file, path) or not file_lock.is_supported(file):
            return file
        # Another process is clearing up: it locked the file first, and is about to remove it.
        os.close(file)
        lost = True
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _is_locked_by_us(file: int, path: str) -> bool:
    """Lock a file; return whether it is locked and still has this name."""
    with contextlib.suppress(FileNotFoundError):
        return file_lock.take(file) and os.path.samestat(os.fstat(file), os.lstat(path))
    return False


# --- files that only grow ------------------------------------------------------------------------


def append(file: int, data: bytes, folder: str, right: Literal["ours", "agreed"] = "ours") -> None:
    """Append whole lines to a file that we have locked; durable on return.

    A torn last line is ended first.  Raises `OSError`; then the file is unchanged.  If the lock is
    only `agreed`, bytes that another process wrote after ours stay.
    """
    size = os.lseek(file, 0, os.SEEK_END)
    data = _end_of_line(file, size) + data
    written = 0
    try:
        while written < len(data):  # once, unless the system takes less
            written += os.write(file, data[written:])
        os.fsync(file)
        if size == 0:
            _flush_folder(folder)
    except BaseException:
        # The caller gets an error, so the bytes must go.
        with contextlib.suppress(OSError):
            if right == "ours" or os.fstat(file).st_size == size + written:
                os.ftruncate(file, size)
                os.fsync(file)
        raise


def append_line(path: str, line: bytes, opener: Opener | None = None) -> None:
    """Append a line to a file that other processes grow as well, without a lock.

    It is one write at the end, so lines of several processes do not mix.  Raises `OSError`; if a
    part of the line reached the disk, the next append ends it.
    """
    file = open_to_append(path, os.O_CREAT, opener)
    try:
        size = os.fstat(file).st_size
        data = _end_of_line(file, size) + line + b"\n"
        if os.write(file, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        if size == 0:
            settle_folder(os.path.dirname(path))
    finally:
        os.close(file)


@frozen
class Journal:
    """The right to write to one file that only grows; it ends with the block of `open_journal`."""

    _file: int
    _folder: str

    def append(self, *lines: object) -> None:
        """Append JSON values as a line each, durable on return; raises `StorageError`."""
        with storage_errors():
            append(self._file, b"".join(orjson.dumps(each) + b"\n" for each in lines), self._folder)

    def remove_last(self) -> None:
        """Remove the last line, durable on return; raises `StorageError`."""
        with storage_errors():
            size = os.lseek(self._file, 0, os.SEEK_END)
            os.lseek(self._file, 0, os.SEEK_SET)
            with open(os.dup(self._file), "rb") as file:
                data = file.read(size)
            self._cut(data.rstrip(b"\n").rfind(b"\n") + 1)

    def clear(self) -> None:
        """Remove all lines, durable on return; raises `StorageError`."""
        with storage_errors():
            self._cut(0)

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        os.fsync(self._file)


@contextlib.contextmanager
def open_journal(path: str, patience: float = PATIENCE) -> Generator[Journal]:
    """Hold the right to write to a file; an empty one is removed at the end, with its folder.

    The right ends with the block, or with the process.  Raises `StorageError`, also when another
    process keeps the right for more than `patience` seconds.
    """
    folder = os.path.dirname(path)
    with locked(path, patience) as file:
        try:
            yield Journal(file, folder)
        finally:
            with contextlib.suppress(OSError):
                if os.fstat(file).st_size == 0:
                    os.unlink(path)
                    os.rmdir(folder)
                    os.rmdir(os.path.dirname(folder))


def is_held(path: str) -> bool:
    """Return whether a process holds the right to write; an unlockable file counts as held."""
    try:
        file = own(path, os.O_RDWR | _SAFE)
    except OSError:
        return False
    try:
        return not file_lock.take_to_append(file)
    except OSError:
        return True
    finally:
        os.close(file)


def open_to_append(path: str, flags: int = 0, opener: Opener | None = None) -> int:
    """Open a file that only grows, and nothing else; raises `OSError`."""
    return (opener or own)(path, os.O_RDWR | os.O_APPEND | _SAFE | flags)


@contextlib.contextmanager
def locked(path: str, patience: float = PATIENCE) -> Generator[int]:
    """Hold the lock of a file that only grows, which is made; raises `StorageError`."""
    with storage_errors():
        file = _hold(path, patience)
    try:
        yield file
    finally:
        os.close(file)


def _hold(path: str, patience: float) -> int:
    """Open a file that only grows, make it if need be, and lock it."""
    end = time.monotonic() + patience
    while True:
        file = in_folder(path, lambda: open_to_append(path, os.O_CREAT))
        try:
            with contextlib.suppress(FileNotFoundError):  # removed before we had the lock
                is_locked = file_lock.take_to_append(file)
                if is_locked and os.path.samestat(os.fstat(file), os.stat(path)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if time.monotonic() >= end:
            raise StorageError("another process has locked it")
        time.sleep(_PAUSE)


def _end_of_line(file: int, size: int) -> bytes:
    """Return the LF that the last line lacks, or no bytes."""
    if size == 0:
        return b""
    os.lseek(file, size - 1, os.SEEK_SET)
    return b"" if os.read(file, 1) == b"\n" else b"\n"


# --- reading -------------------------------------------------------------------------------------


Opener = Callable[[str, int], int]
"""Opens a path with flags; `regular` or `own`."""


def own(path: str, flags: int) -> int:
    """Open a regular file of ours; anything else raises `OSError`, a symbolic link as well."""
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a symbolic link")
    return regular(path, flags | _NO_LINK)  # it may have become one


def regular(path: str, flags: int) -> int:
    """Open a regular file; anything else raises `OSError`, as a pipe would keep us waiting."""
    file = os.open(path, flags | _NO_WAIT, 0o600)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file")


def read(path: str, most: int) -> bytes:
    """Return the bytes of a file; raises `TooLarge`, and `OSError` for a non-regular file."""
    with open(path, "rb", opener=regular) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise TooLarge
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge
    return data
