"""Watches folders with watchdog, and reports the paths that may have changed.

`Watcher` decides which folders are watched; a `Watch` is one of them.  A thread of ours, the
keeper, restarts a watch when its folder was replaced.  Changes that watchdog misses deeper in a
tree are found by regular polling (`service.sessions.session_watcher`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from attrs import frozen
from watchdog.events import (
    DirAttribEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver
from watchdog.observers.polling import PollingObserverVFS

logger = logging.getLogger(__name__)


@frozen
class WatchRequest:
    """How to watch a folder under its `names`: all below, also changes of content (`whole`)."""

    deep: bool
    whole: bool
    names: frozenset[str]


def requests(trees: set[str], folders: set[str]) -> dict[str, WatchRequest]:
    """Return the watches for the present folders, by the real path of each.

    The parent of a tree is watched too, since the tree may go or come back; if the parent is
    missing, the nearest existing folder above.
    """
    found: dict[str, WatchRequest] = {}

    def ask(real: str, name: str, *, deep: bool, whole: bool) -> None:
        known = found.get(real, WatchRequest(deep, whole, frozenset()))
        names = known.names | {name}
        found[real] = WatchRequest(deep or known.deep, whole or known.whole, names)

    followed = [(tree, True) for tree in trees] + [(folder, False) for folder in folders]
    for name, deep in followed:
        if (real := _real_folder(name)) is not None:
            ask(real, name, deep=deep, whole=True)
    deep_ones = [real for real, request in found.items() if request.deep]
    for tree in trees:
        name, real = _nearest_above(tree)
        # One watch a folder: the system merges two of them, and the narrow one would win.
        if real is not None and not any(is_at_or_below(deep, real) for deep in deep_ones):
            ask(real, name, deep=False, whole=False)
    return found


def with_parents(paths: set[str]) -> Iterator[str]:
    """Yield the paths with all folders above them."""
    for path in paths:
        yield path
        while (parent := os.path.dirname(path)) != path:
            yield parent
            path = parent  # noqa: PLW2901 - upwards


def is_at_or_below(folder: str, path: str) -> bool:
    """Return whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _nearest_above(path: str) -> tuple[str, str | None]:
    above = os.path.dirname(path)
    while (real := _real_folder(above)) is None and above != os.path.dirname(above):
        above = os.path.dirname(above)
    return above, real


def _real_folder(path: str) -> str | None:
    # A watch on a link reports only changes of the link.
    real = os.path.realpath(path)
    return real if os.path.isdir(real) else None


_COMING_AND_GOING: tuple[type[FileSystemEvent], ...] = (
    FileCreatedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
)
# Neither opening nor closing is among them: otherwise each read of ours would cause the next.
# Changed attributes are: a file that cannot be read any more is news.
_EVERYTHING = (*_COMING_AND_GOING, FileModifiedEvent, FileAttribEvent, DirAttribEvent)

# It logs paths, and complains of events that come while it ends.
logging.getLogger("watchdog").setLevel(logging.CRITICAL)


def begin_observer(poll_interval: float | None) -> BaseObserver:
    """Start an observer: of the system's events, or a polling one."""
    if poll_interval is None:
        observer = Observer()
    else:
        # It does not follow links, as events do not either, and because links may form circles.
        observer = PollingObserverVFS(os.lstat, _entries, polling_interval=poll_interval)
    observer.start()
    return observer


class Watch(FileSystemEventHandler):
    """A folder that is watched; it passes on paths on watchdog's thread."""

    def __init__(
        self,
        observer: BaseObserver,
        real: str,
        request: WatchRequest,
        report: Callable[[str], None],
        wake: Callable[[str | None], None],
    ) -> None:
        """Watch the folder with this real path; raises `OSError`, `RuntimeError` if that fails.

        `report` is a callback for the paths that may have changed; `wake` for those that came or
        went, None for a change that may have ended this watch.  Both run on a thread of watchdog's.
        """
        self.request = request
        self._observer = observer
        self._real = real
        self._report = report
        self._wake_keeper = wake
        self._lost = False
        self._identity = _identity(real)
        kinds = list(_EVERYTHING if request.whole else _COMING_AND_GOING)
        self._scheduled = observer.schedule(self, real, recursive=request.deep, event_filter=kinds)
        self._emitter = next(each for each in observer.emitters if each.watch is self._scheduled)

    def serves(self, request: WatchRequest) -> bool:
        """Return whether this still watches its folder as requested."""
        if self._lost or request != self.request or not self._emitter.is_alive():
            return False
        try:
            return _identity(self._real) == self._identity
        except OSError:
            return False

    def end(self) -> None:
        """Stop watching the folder."""
        with contextlib.suppress(KeyError, OSError):
            self._observer.unschedule(self._scheduled)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Report the paths of an event; wake the keeper if a folder may have come or gone."""
        coming_or_going = isinstance(event, _COMING_AND_GOING)
        for path in (os.fsdecode(event.src_path), os.fsdecode(event.dest_path)):
            for name in self._names_of(path) if path else ():
                if self.request.whole:
                    self._report(name)
                if coming_or_going:
                    self._wake_keeper(name)
        if isinstance(event, DirDeletedEvent | DirMovedEvent) and event.src_path == self._real:
            self._lost = True
            self._wake_keeper(None)

    def _names_of(self, path: str) -> Iterator[str]:
        if not is_at_or_below(self._real, path):
            yield path
            return
        rest = path.removeprefix(self._real.rstrip(os.sep))
        for name in self.request.names:
            yield name.rstrip(os.sep) + rest


def _entries(path: str | None) -> Iterator[os.DirEntry[str]]:
    return os.scandir(path)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


_SILENT_FILE_SYSTEMS = re.compile(
    r"nfs\d?|cifs|smb.*|9p|drvfs|vboxsf|fuse\.(?:sshfs|vmhgfs-fuse)", re.IGNORECASE
)
_WSL_DRIVE = re.compile(r"/mnt/[a-z](?:/|$)")


def sends_no_events(path: str, mounts: str, release: str) -> bool:
    """Return whether changes go unnoticed, by `/proc/mounts` and the kernel's release.

    Elsewhere than on Linux only the network paths of Windows are recognised.
    """
    if path.startswith("\\\\"):
        return True
    if "microsoft" in release.lower() and _WSL_DRIVE.match(path):
        return True
    nearest, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:  # noqa: PLR2004 - device, folder, type
            continue
        folder = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
        if is_at_or_below(folder, path) and len(folder) >= len(nearest):
            nearest, kind = folder, fields[2]
    return _SILENT_FILE_SYSTEMS.fullmatch(kind) is not None


def system() -> tuple[str, str]:
    """Return the mounts and the kernel's release; empty if they need not be known."""
    if sys.platform != "linux":
        return "", ""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            return mounts.read(), os.uname().release
    except OSError:
        return "", os.uname().release


MAX_FOLDERS = 512

# For folders that come or go without an event.
_TEND_EVERY = 5.0
_ROUNDS = 8
_LET_EVENTS_GATHER = 0.02


class Watcher:
    """Follows trees and folders until it is stopped."""

    def __init__(
        self,
        on_change: Callable[[str], None],
        *,
        polling: bool | None = None,
        poll_interval: float = 1.0,
    ) -> None:
        """Begin with nothing to follow.

        `on_change` is a callback; it gets the path, under the name by which its tree or folder is
        followed.  It runs on a thread of the watcher, must be quick, and must not call back.
        `polling`: True always, False without events, None as the file system needs.
        """
        self._on_change = on_change
        self._polling = polling
        self._poll_interval = poll_interval
        self._trees: set[str] = set()
        self._folders: set[str] = set()
        self._watches: dict[str, Watch] = {}
        self._observers: dict[bool, BaseObserver] = {}
        self._relevant: frozenset[str] = frozenset()
        self._news: set[str] = set()
        self._logged: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="watch-keeper", daemon=True)
        self._keeper.start()

    def follow_tree(self, path: str) -> None:
        """Follow a folder with all below it; read it after this call, not before."""
        with self._lock:
            self._follow(self._trees | {os.path.abspath(path)}, self._folders)

    def follow_folders(self, paths: set[str]) -> None:
        """Follow exactly these folders, but not their subfolders; then read them."""
        folders = sorted({os.path.abspath(path) for path in paths})
        if len(folders) > MAX_FOLDERS:
            self._log_once("too many folders, left out: %d", len(folders) - MAX_FOLDERS)
        with self._lock:
            self._follow(self._trees, set(folders[:MAX_FOLDERS]))

    def _follow(self, trees: set[str], folders: set[str]) -> None:
        new = (trees - self._trees) | (folders - self._folders)
        self._trees, self._folders = trees, folders
        self._settle(new)
        if self._news:
            self._wake.set()

    def stop(self) -> None:
        """End all threads and wait for them; nothing is reported after that."""
        self._stopping.set()
        self._wake.set()
        self._keeper.join()
        with self._lock:
            self._watches.clear()
            while self._observers:
                observer = self._observers.popitem()[1]
                observer.stop()
                observer.join()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_TEND_EVERY)
            self._stopping.wait(_LET_EVENTS_GATHER)
            self._wake.clear()
            if self._stopping.is_set():
                return
            try:
                with self._lock:
                    self._settle()
                    news, self._news = self._news, set()
                for name in sorted(news):
                    self._report(name)
            except Exception as error:  # noqa: BLE001 - without the keeper nothing is mended
                self._log_once("could not mend what is watched: %s", type(error).__name__)

    def _report(self, path: str) -> None:
        try:
            self._on_change(path)
        except Exception as error:  # noqa: BLE001 - it would end watchdog's thread for good
            self._log_once("change callback failed: %s", type(error).__name__)

    def _settle(self, new: AbstractSet[str] = frozenset()) -> None:
        """Begin every possible watch; remember names that may have changed unseen."""
        if self._stopping.is_set():
            return
        asked = self._trees | self._folders
        self._relevant = frozenset(with_parents(asked))
        for _ in range(_ROUNDS):
            if not (changed := self._settle_once()):
                break
            # Newly followed folders are read after this anyway.
            self._news |= changed & asked - new

    def _settle_once(self) -> set[str]:
        """Begin and end watches as needed; return the names of the folders concerned."""
        wanted = requests(self._trees, self._folders)
        changed: set[str] = set()
        for real, watch in [*self._watches.items()]:
            if real not in wanted or not watch.serves(wanted[real]):
                del self._watches[real]
                watch.end()
                changed |= watch.request.names
        missing = [real for real in wanted if real not in self._watches]
        silent = self._silent(missing)
        for real in missing:
            if self._begin(real, wanted[real], (True,) if real in silent else (False, True)):
                changed |= wanted[real].names
        return changed

    def _begin(self, real: str, request: WatchRequest, ways: tuple[bool, ...]) -> bool:
        for polling in ways:
            try:
                observer = self._observer(polling=polling)
                watch = Watch(observer, real, request, self._report, self._wake_keeper)
                self._watches[real] = watch
            except (FileNotFoundError, NotADirectoryError):
                return False
            except (OSError, RuntimeError) as error:
                # Out of watches, instances or threads, or no events here.
                what = "not even polling: %s" if polling else "no events, polling instead: %s"
                number = error.errno if isinstance(error, OSError) else None
                self._log_once(what, number or type(error).__name__)
            else:
                return True
        return False

    def _silent(self, folders: list[str]) -> set[str]:
        """Return the folders that are to be polled."""
        if self._polling is not None or not folders:
            return set(folders) if self._polling else set()
        mounts, release = system()
        silent = {real for real in folders if sends_no_events(real, mounts, release)}
        if silent:
            self._log_once("file systems without events, polling instead: %d", len(silent))
        return silent

    def _observer(self, *, polling: bool) -> BaseObserver:
        if polling not in self._observers:
            interval = self._poll_interval if polling else None
            self._observers[polling] = begin_observer(interval)
        return self._observers[polling]

    def _wake_keeper(self, path: str | None) -> None:
        """Wake the keeper for a path above one that is followed, or for None."""
        if path is None or path in self._relevant:
            self._wake.set()

    def _log_once(self, message: str, value: object) -> None:
        if message not in self._logged:
            self._logged.add(message)
            logger.warning(message, value)
