"""The only module that knows watchdog: one watch on one folder, and the threads it lives on.

Which folders are watched, and for how long, is said by `watcher`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING

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
from watchdog.observers.polling import PollingObserverVFS
from watchdog.utils import BaseThread

from codex_checkpoints.values import frozen
from codex_checkpoints.watch.wishes import Wish, is_at_or_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

_PROVED_AT_ONCE = 16

_COMING_AND_GOING: tuple[type[FileSystemEvent], ...] = (
    FileCreatedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
)
# Neither opening nor closing is among them: else each look of ours would cause the next.
# Changed attributes are: a file that cannot be read any more is news.
_EVERYTHING = (*_COMING_AND_GOING, FileModifiedEvent, FileAttribEvent, DirAttribEvent)
# The same to the system as everything, and yet another watch to watchdog.
_PROBE: tuple[type[FileSystemEvent], ...] = (*_COMING_AND_GOING, FileModifiedEvent)

# It logs paths, and complains of events that come while it ends.
logging.getLogger("watchdog").setLevel(logging.CRITICAL)


@frozen(eq=False)
class Source:
    """A watchdog observer with the threads it lives on, of which it hides one."""

    observer: BaseObserver
    polling: bool
    threads: tuple[threading.Thread, ...]

    def is_alive(self) -> bool:
        """Tell whether events still come through."""
        return all(thread.is_alive() for thread in self.threads)

    def stop(self) -> None:
        """End its threads and wait for them."""
        self.observer.stop()
        self.observer.join()


def begin_source(poll_interval: float | None) -> Source:
    """Start an observer: of the system's events, or one that looks every so many seconds."""
    before = set(threading.enumerate())
    if poll_interval is None:
        observer = Observer()
    else:
        # Not following links, as events do not either, and for links in circles.
        observer = PollingObserverVFS(os.lstat, _entries, polling_interval=poll_interval)
    observer.start()
    begun = set(threading.enumerate()) - before
    threads = [each for each in begun if isinstance(each, BaseThread)]
    return Source(observer, poll_interval is not None, (observer, *threads))


@frozen(eq=False)
class Watch:
    """A folder that is watched."""

    wish: Wish
    identity: tuple[int, int]
    source: Source
    scheduled: ObservedWatch
    emitter: EventEmitter
    teller: _Teller

    def serves(self, wish: Wish, real: str) -> bool:
        """Tell whether this is still the folder meant, watched as it ought to be."""
        if self.teller.lost or wish != self.wish or not self.emitter.is_alive():
            return False
        try:
            self.prove(self.teller.take_created())
            return _identity(real) == self.identity
        except OSError:
            return False

    def prove(self, folders: Iterable[str]) -> None:
        """Fail when the system's watches did not last for one of these folders of the tree.

        Watchdog passes over folders deeper down that it cannot watch. Watching such a one
        once more fails in its turn; for any other it costs no further watch.
        """
        if self.source.polling or sys.platform != "linux":
            return
        for folder in folders:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                nothing = FileSystemEventHandler()
                probe = self.source.observer.schedule(nothing, folder, event_filter=list(_PROBE))
                self.source.observer.unschedule(probe)

    def end(self) -> None:
        """Watch the folder no longer."""
        with contextlib.suppress(KeyError, OSError):
            self.source.observer.unschedule(self.scheduled)


def begin_watch(
    source: Source,
    real: str,
    wish: Wish,
    tell: Callable[[str], None],
    stir: Callable[[str | None], None],
) -> Watch:
    """Watch the folder with this real path; raises `OSError` or `RuntimeError` where it cannot be.

    `tell` gets what may have changed; `stir` what concerns the watches themselves, None for a
    change that may have ended this one.  Both are called on a thread of watchdog's.
    """
    teller = _Teller(real, wish, tell, stir)
    identity = _identity(real)
    kinds = list(_EVERYTHING if wish.whole else _COMING_AND_GOING)
    scheduled = source.observer.schedule(teller, real, recursive=wish.deep, event_filter=kinds)
    emitter = next(each for each in source.observer.emitters if each.watch is scheduled)
    watch = Watch(wish, identity, source, scheduled, emitter, teller)
    try:
        watch.prove(_last_below(real) if wish.deep else ())
    except BaseException:
        watch.end()
        raise
    return watch


class _Teller(FileSystemEventHandler):
    """Passes on the paths of one watch; called on watchdog's thread."""

    def __init__(
        self,
        real: str,
        wish: Wish,
        tell: Callable[[str], None],
        stir: Callable[[str | None], None],
    ) -> None:
        self.lost = False
        self._created: deque[str] = deque(maxlen=_PROVED_AT_ONCE)
        self._real = real
        self._wish = wish
        self._tell = tell
        self._stir = stir

    def dispatch(self, event: FileSystemEvent) -> None:
        """Tell the caller, and the keeper where it concerns what is watched."""
        coming_or_going = isinstance(event, _COMING_AND_GOING)
        for path in (os.fsdecode(event.src_path), os.fsdecode(event.dest_path)):
            if not path:
                continue
            for name in self._names_of(path):
                if self._wish.whole:
                    self._tell(name)
                if coming_or_going:
                    self._stir(name)
        if isinstance(event, DirDeletedEvent | DirMovedEvent) and event.src_path == self._real:
            self.lost = True
            self._stir(None)
        if self._wish.deep and isinstance(event, DirCreatedEvent):
            self._created.append(os.fsdecode(event.src_path))
            self._stir(None)

    def take_created(self) -> Iterator[str]:
        """Name the folders last created in the tree, once."""
        while self._created:
            yield self._created.popleft()

    def _names_of(self, path: str) -> Iterator[str]:
        if not is_at_or_below(self._real, path):
            yield path
            return
        rest = path.removeprefix(self._real.rstrip(os.sep))
        for name in self._wish.names:
            yield name.rstrip(os.sep) + rest


def _last_below(tree: str) -> Iterator[str]:
    """Name the folder that watchdog comes to last; it goes the same way."""
    last: str | None = None
    for folder, inner, _ in os.walk(tree):
        paths = [os.path.join(folder, name) for name in inner]
        last = next((path for path in reversed(paths) if not os.path.islink(path)), last)
    if last is not None:
        yield last


def _entries(path: str | None) -> Iterator[os.DirEntry[str]]:
    return os.scandir(path)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
