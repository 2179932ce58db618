"""Follows trees and folders: keeps a watch on each as long as it is asked for and there."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Literal

from codex_checkpoints.watch.silence import sends_no_events, system
from codex_checkpoints.watch.watches import Source, Watch, begin_source, begin_watch
from codex_checkpoints.watch.wishes import Wish, wishes, with_parents

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

MAX_FOLDERS = 512

# Comings and goings are noticed at once; this is for those that no event tells of.
_TEND_EVERY = 5.0
_ROUNDS = 8
_LET_EVENTS_GATHER = 0.02

_log = logging.getLogger(__name__)


class Watcher:
    """Follows trees and folders until it is stopped."""

    def __init__(
        self,
        look_again: Callable[[str], None],
        *,
        polling: bool | None = None,
        poll_interval: float = 1.0,
    ) -> None:
        """Begin with nothing to follow.

        `look_again` gets the path, under the name by which its tree or folder is followed. It
        is called on a thread of the watcher, must be quick, and must not call back.
        `polling`: always, never unless events cannot be had, or (`None`) as the system needs.
        """
        self._look_again = look_again
        self._polling = polling
        self._poll_interval = poll_interval
        self._trees: set[str] = set()
        self._folders: set[str] = set()
        self._watches: dict[str, Watch] = {}
        self._sources: dict[bool, Source] = {}
        self._awaited: frozenset[str] = frozenset()
        self._news: set[str] = set()
        self._logged: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="watch-keeper", daemon=True)
        self._keeper.start()

    @property
    def mode(self) -> Literal["events", "polling", "mixed"]:
        """Tell how changes are noticed at present."""
        with self._lock:
            kinds = {watch.source.polling for watch in self._watches.values()}
        if len(kinds) > 1:
            return "mixed"
        return "polling" if kinds == {True} or (not kinds and self._polling) else "events"

    def follow_tree(self, path: str) -> None:
        """Follow a folder with all below it; look at it after this call, not before."""
        path = os.path.abspath(path)
        with self._lock:
            fresh = {path} - self._trees
            self._trees.add(path)
            self._settle(fresh)
            if self._news:
                self._wake.set()

    def follow_folders(self, paths: set[str]) -> None:
        """Follow exactly these folders, without what lies deeper; then look at them."""
        folders = sorted({os.path.abspath(path) for path in paths})
        if len(folders) > MAX_FOLDERS:
            self._log_once("too many folders, left out: %d", len(folders) - MAX_FOLDERS)
        with self._lock:
            fresh = set(folders[:MAX_FOLDERS]) - self._folders
            self._folders = set(folders[:MAX_FOLDERS])
            self._settle(fresh)
            if self._news:
                self._wake.set()

    def stop(self) -> None:
        """End all threads and wait for them; nothing is told after that."""
        self._stopping.set()
        self._wake.set()
        self._keeper.join()
        with self._lock:
            self._watches.clear()
            while self._sources:
                self._sources.popitem()[1].stop()

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
                    self._tell(name)
            except Exception as error:  # noqa: BLE001 - without the keeper nothing is mended
                self._log_once("could not mend what is watched: %s", type(error).__name__)

    def _tell(self, path: str) -> None:
        try:
            self._look_again(path)
        except Exception as error:  # noqa: BLE001 - it would end watchdog's thread for good
            self._log_once("a change was told in vain: %s", type(error).__name__)

    def _settle(self, fresh: AbstractSet[str] = frozenset()) -> None:
        """Watch what is there to be watched; remember names that may have changed unseen."""
        if self._stopping.is_set():
            return
        asked = self._trees | self._folders
        self._awaited = frozenset(with_parents(asked))
        for _ in range(_ROUNDS):
            if not (changed := self._settle_once()):
                break
            # What is followed from now on is looked at after this anyway.
            self._news |= changed & asked - fresh

    def _settle_once(self) -> set[str]:
        """Begin and end watches as needed, and name the folders concerned."""
        asked_for = wishes(self._trees, self._folders)
        changed: set[str] = set()
        for polling in [each for each, source in self._sources.items() if not source.is_alive()]:
            self._log_once("watchdog broke off, begun anew: %s", "polling" if polling else "events")
            self._sources.pop(polling).stop()
        for real, watch in [*self._watches.items()]:
            if real not in asked_for or not watch.serves(asked_for[real], real):
                del self._watches[real]
                watch.end()
                changed |= watch.wish.names
        missing = [real for real in asked_for if real not in self._watches]
        silent = self._silent(missing)
        for real in missing:
            if self._begin(real, asked_for[real], (True,) if real in silent else (False, True)):
                changed |= asked_for[real].names
        return changed

    def _begin(self, real: str, wish: Wish, ways: tuple[bool, ...]) -> bool:
        for polling in ways:
            try:
                source = self._source(polling=polling)
                self._watches[real] = begin_watch(source, real, wish, self._tell, self._stir)
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
        """Choose the folders that are to be polled."""
        if self._polling is not None or not folders:
            return set(folders) if self._polling else set()
        mounts, release = system()
        silent = {real for real in folders if sends_no_events(real, mounts, release)}
        if silent:
            self._log_once("file systems without events, polling instead: %d", len(silent))
        return silent

    def _source(self, *, polling: bool) -> Source:
        if polling not in self._sources:
            self._sources[polling] = begin_source(self._poll_interval if polling else None)
        return self._sources[polling]

    def _stir(self, path: str | None) -> None:
        """Wake the keeper, if the path matters to it or it is told to look in any case."""
        if path is None or path in self._awaited:
            self._wake.set()

    def _log_once(self, message: str, value: object) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _log.warning(message, value)
