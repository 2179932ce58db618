"""Hashes the present contents of observed files on this machine.

A checkpoint names files by uri: relative to the session's folder (its base), or absolute.  This
module turns uris into hashes, and into the folders to watch for changes.

The paths come from session files and are not to be trusted.  So a file is checked before it is
opened, opened without following a link and without blocking, and checked again through the open
descriptor.  Never more is read than its size, so that an endless file (`/proc`) gives nothing.

A hash is cached with the file's identity, size and times.  A file that changed within the clock
tick in which it was hashed is read again.
"""

# Uris are text, and thousands are looked up at a time: `os.path` neither rewrites them on the
# way nor makes an object of each.

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from attrs import define, field, frozen

from codex_checkpoints.core.checkpoint.records import FOLDER
from codex_checkpoints.core.fields import renew
from codex_checkpoints.storage.file_lock import open_flags

DEFAULT_HASH_LIMIT = 64 * 1024 * 1024

_CHUNK = 1024 * 1024
_ATTEMPTS = 3
_REMEMBERED = 16_384
# The coarsest time stamps in use are FAT's, of two seconds.
_GRANULARITY_NS = 2_000_000_000
_QUIET_NS = 1_000_000_000

_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\|//")
# Names that Windows takes for a device, a pipe or a second stream of a file, at any place.
# Compiled on demand: other systems never need it.
_WINDOWS_SPECIAL = (
    r"(?i)^[\\/]{2}[.?][\\/]|^.[^:]*:.*:|^[^:]{2,}:|^[A-Za-z]:(?![\\/])"
    r"|(?:^|[\\/])(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3])"
    r"[ ]*(?:[.:][^\\/]*)?(?:[\\/]|$)"
)


_FILE_FLAGS = os.O_RDONLY | open_flags(
    "NONBLOCK", "NOFOLLOW", "NOCTTY", "CLOEXEC", "NOINHERIT", "BINARY"
)
_FOLDER_FLAGS = os.O_RDONLY | open_flags("PATH", "DIRECTORY", "NOFOLLOW", "CLOEXEC")

_NAMES_ARE_UTF8 = sys.getfilesystemencoding() == "utf-8"

_Stamp = tuple[int, int, int, int, int]
"""The difference between two states of a file, without reading it."""


def _stamp_of(look: os.stat_result) -> _Stamp:
    return look.st_dev, look.st_ino, look.st_size, look.st_mtime_ns, look.st_ctime_ns


@frozen
class _Hashed:
    stamp: _Stamp
    value: str
    at_ns: int

    def holds(self, stamp: _Stamp) -> bool:
        """Return whether an equal stamp proves equal content: not if it was fresh when hashed."""
        newest = max(stamp[-2:])
        return self.stamp == stamp and newest + _GRANULARITY_NS < self.at_ns


def native(text: str) -> str:
    """Return Python's form of a file name in UTF-8, in any locale."""
    return text if _NAMES_ARE_UTF8 else os.fsdecode(text.encode(errors="surrogateescape"))


class Workspace:
    """Reads the files that sessions observed."""

    def __init__(
        self,
        hash_limit: int = DEFAULT_HASH_LIMIT,
        outside: bool = False,  # noqa: FBT001, FBT002 - a setting, passed on as it is
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Hash content up to `hash_limit` bytes; `outside` allows files outside the base."""
        self._hash_limit = hash_limit
        self._outside = outside
        self._clock = clock
        self._known: dict[str, _Hashed] = {}
        self._lock = threading.Lock()

    def hashes(self, base: str | None, uris: Iterable[str]) -> dict[str, str]:
        """Return the hash of the file at each uri; a uri without one is left out."""
        return self._hashes(self._place(base), uris)

    def _hashes(self, place: _Place | None, uris: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for uri, path, root in _found(place, uris):
            if (value := self._hash(root, path)) is not None:
                found[uri] = value
        return found

    def looks(self, base: str | None, uris: Iterable[str]) -> dict[str, str | None]:
        """Return the same with `FOLDER` for a folder, and None for a file that is gone.

        Files that cannot be seen are left out.
        """
        wanted, place = tuple(uris), self._place(base)
        found: dict[str, str | None] = {**self._hashes(place, wanted)}
        unseen = [uri for uri in wanted if uri not in found]
        gone = [uri for uri in unseen if place is not None and place.is_gone(uri)]
        folders = [uri for uri, path, _ in _found(place, unseen) if os.path.isdir(path)]
        return found | dict.fromkeys(gone) | dict.fromkeys(folders, FOLDER)

    def quiet(self, base: str | None, latest: Mapping[str, int]) -> tuple[dict[str, str], bool]:
        """Return the hashes of files inside the base that last changed by a time, in ns, each.

        A file that changed within the last second is left out; the second value says whether there
        is one.
        """
        found: dict[str, str] = {}
        waiting, place = False, self._place(base)
        for uri, path, root in _found(place, latest):
            with contextlib.suppress(OSError, ValueError):
                changed = os.lstat(path).st_mtime_ns
                if changed > latest[uri] or place is None or not _is_below(place.root, path):
                    continue
                age = self._clock() - changed
                waiting = waiting or 0 <= age < _QUIET_NS
                value = self._hash(root, path) if age >= _QUIET_NS else None
                if value is not None and os.lstat(path).st_mtime_ns == changed:
                    found[uri] = value
        return found, waiting

    def content(self, base: str | None, uri: str) -> bytes | None:
        """Return the bytes of the file at a uri; None if it has no hash, or one of its size."""
        with contextlib.suppress(OSError, ValueError):
            for _, path, root in _found(self._place(base), (uri,)):
                with _opened(root, path, os.lstat(path)) as (file, look):
                    is_small = look.st_size <= self._hash_limit
                    return b"".join(_pieces(file, look.st_size)) if is_small else None
        return None

    def sizes(self, base: str | None, uris: Iterable[str]) -> dict[str, int]:
        """Return the size of the file at each uri; a uri without a hash is left out."""
        found: dict[str, int] = {}
        for uri, path, _ in _found(self._place(base), uris):
            with contextlib.suppress(OSError, ValueError):
                look = os.lstat(path)
                if stat.S_ISREG(look.st_mode):
                    found[uri] = look.st_size
        return found

    def is_here(self, base: str | None) -> bool:
        """Return whether the base folder exists on this machine."""
        return self._place(base) is not None

    def missing(self, base: str | None, uris: Iterable[str]) -> tuple[str, ...]:
        """Return the uris without a file now; none if the base is not here."""
        if (place := self._place(base)) is None:
            return ()
        paths = ((uri, place.path(uri)) for uri in uris)
        return tuple(uri for uri, path in paths if path is not None and _is_gone(path))

    def folders(self, base: str | None, uris: Iterable[str]) -> set[str]:
        """Return the existing folders in which a change may concern one of the files.

        All folders between the base and a file are among them, since a folder may be renamed or
        made again, and the folder a link leads to.  For a file outside the base it is only its own
        folder.
        """
        place = self._place(base)
        return set() if place is None else {each for uri in uris for each in place.folders(uri)}

    def _place(self, base: str | None) -> _Place | None:
        if base is None or not _is_native(base) or not os.path.isabs(base):
            return None
        try:
            root = os.path.realpath(native(base), strict=True)
            if not os.path.isdir(root):
                return None
        except (OSError, ValueError):
            return None
        return _Place(os.path.normpath(native(base)), root, self._outside)

    def _hash(self, root: str, path: str) -> str | None:
        with contextlib.suppress(OSError, ValueError):
            for _ in range(_ATTEMPTS):
                checked = os.lstat(path)
                if not stat.S_ISREG(checked.st_mode):
                    return None
                with self._lock:
                    hashed = self._known.get(path)
                    if hashed is not None and hashed.holds(_stamp_of(checked)):
                        renew(self._known, path, hashed, _REMEMBERED)
                        return hashed.value
                if (value := self._read(root, path, checked)) is not None:
                    return value
        return None

    def _read(self, root: str, path: str, checked: os.stat_result) -> str | None:
        """Hash the file that was checked; None if it is another by now, or changing."""
        try:
            with _opened(root, path, checked) as (file, look):
                if look.st_size > self._hash_limit:
                    return f"stat:{look.st_size}-{look.st_mtime_ns}"
                at_ns, stamp = self._clock(), _stamp_of(look)
                digest, size = hashlib.sha256(), 0
                for piece in _pieces(file, look.st_size):
                    digest.update(piece)
                    size += len(piece)
                if size < look.st_size or _stamp_of(os.fstat(file)) != stamp:
                    return None
        except _Replaced:
            return None
        value = f"sha256:{digest.hexdigest()}"
        with self._lock:
            renew(self._known, path, _Hashed(stamp, value, at_ns), _REMEMBERED)
        return value


@define
class _Place:
    """A base that exists, for one request."""

    base: str
    root: str
    outside: bool
    _real_folders: dict[str, str | None] = field(factory=dict[str, "str | None"])

    def path(self, uri: str) -> str | None:
        """Return the path of a file by text only; None if it may not be read."""
        if not _is_native(uri):
            return None
        path = os.path.normpath(os.path.join(self.base, native(uri)))
        if _is_below(self.base, path):
            return path
        # Asking for a file on a strange host would show that host who we are.
        return path if self.outside and not path.startswith("\\\\") else None

    def real_path(self, uri: str) -> str | None:
        """Return the path of a file without links; None if it may not be hashed."""
        if (path := self.path(uri)) is None:
            return None
        folder, name = os.path.split(path)
        if (real_folder := self._real_folder(folder)) is None:
            return None
        real = os.path.join(real_folder, name)
        try:
            if stat.S_ISLNK(os.lstat(real).st_mode):
                real = os.path.realpath(real, strict=True)
        except (OSError, ValueError):
            return None
        return real if self.outside or _is_below(self.root, real) else None

    def is_gone(self, uri: str) -> bool:
        """Return whether a file is missing at a uri, at a place that may be hashed."""
        if (path := self.path(uri)) is None or not _is_gone(path):
            return False
        return self.outside or _is_below(self.root, os.path.realpath(path))

    def root_of(self, path: str) -> str:
        """Return the folder below which every link on the way to the file is refused."""
        return self.root if _is_below(self.root, path) else os.path.splitdrive(path)[0] + os.sep

    def folders(self, uri: str) -> Iterator[str]:
        """Yield the existing folders on the way to the file."""
        if (path := self.path(uri)) is None:
            return
        folder = os.path.dirname(path)
        if _is_below(self.base, path):
            yield from self._way_to(folder)
        elif self._may_be_watched(folder):
            yield folder
        if (real := self.real_path(uri)) is not None:
            real_folder = os.path.dirname(real)
            if real_folder != self._real_folder(folder):
                yield real_folder

    def _way_to(self, folder: str) -> Iterator[str]:
        way = self.base
        yield way
        for part in os.path.relpath(folder, self.base).split(os.sep):
            way = os.path.normpath(os.path.join(way, part))
            if not self._may_be_watched(way):
                return
            yield way

    def _may_be_watched(self, folder: str) -> bool:
        real = self._real_folder(folder)
        if real is None or not os.path.isdir(real):
            return False
        return self.outside or real == self.root or _is_below(self.root, real)

    def _real_folder(self, folder: str) -> str | None:
        if folder not in self._real_folders:
            try:
                self._real_folders[folder] = os.path.realpath(folder, strict=True)
            except (OSError, ValueError):
                self._real_folders[folder] = None
        return self._real_folders[folder]


def _is_native(path: str) -> bool:
    """Return whether a base or a uri fits this system, and a plain file."""
    if sys.platform == "win32":
        from_root = path.startswith(("/", "\\")) and not path.startswith(("//", "\\\\"))
        return not from_root and re.search(_WINDOWS_SPECIAL, path) is None
    return _WINDOWS_PATH.match(path) is None


def _found(place: _Place | None, uris: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield uris with the path of each, and the folder below which no link is followed."""
    for uri in () if place is None else uris:
        if place is not None and (path := place.real_path(uri)) is not None:
            yield uri, path, place.root_of(path)


def _is_gone(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _is_below(folder: str, path: str) -> bool:
    inside = os.path.normcase(folder).rstrip(os.sep) + os.sep
    return os.path.normcase(path).startswith(inside)


class _Replaced(OSError):
    """The path leads to another file now, or to none that is regular."""


@contextlib.contextmanager
def _opened(root: str, path: str, checked: os.stat_result) -> Generator[tuple[int, os.stat_result]]:
    """Open the file that was checked; raises `_Replaced` if it is another, or not regular."""
    if not stat.S_ISREG(checked.st_mode):
        raise _Replaced
    file = _open_below(root, path)
    try:
        look = os.fstat(file)
        if not stat.S_ISREG(look.st_mode) or not os.path.samestat(look, checked):
            raise _Replaced
        yield file, look
    finally:
        os.close(file)


def _open_below(root: str, path: str) -> int:
    """Open a file for reading, refusing every link on the way to it from the root."""
    if os.open not in os.supports_dir_fd:
        return os.open(path, _FILE_FLAGS)
    *parts, name = os.path.relpath(path, root).split(os.sep)
    folder = os.open(root, _FOLDER_FLAGS)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, _FILE_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield at most `size` bytes."""
    while size > 0 and (chunk := os.read(descriptor, min(size, _CHUNK))):
        size -= len(chunk)
        yield chunk
