"""Where each rollout lies, and which builds on which."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.service.reading.session_file import Locate, SessionFile, bases_below
from codex_checkpoints.storage.contract import (
    OURS,
    Rollout,
    Row,
    ThreadStore,
    UnreadableSource,
)


class Chains:
    """The chains of rollouts in one store, as of the last look."""

    def __init__(self, store: ThreadStore) -> None:
        self._store = store
        self._places: dict[str, str] = {}

    def begin(self, files: Iterable[Rollout]) -> None:
        """Take these as all rollouts; an active file goes before its archived twin."""
        self._places = {}
        for file in files:
            if file.rollout_id not in self._places or not file.archived:
                self._places[file.rollout_id] = file.path

    def begin_at(self, places: Mapping[str, str]) -> None:
        """Take these paths by rollout id as all rollouts."""
        self._places = dict(places)

    def add(self, files: Iterable[Rollout]) -> None:
        """Add rollouts."""
        for file in files:
            self._places.setdefault(file.rollout_id, file.path)

    def forget(self, gone: Iterable[Row]) -> None:
        """Forget rollouts that are gone from the store."""
        lost: set[str] = set()
        for row in gone:
            if self._places.get(row.rollout_id) == row.path:
                del self._places[row.rollout_id]
                lost.add(row.rollout_id)
        for row in self._store.rows().values() if lost else ():
            if row.rollout_id in lost:  # an archived twin, or one that is active again
                self._places.setdefault(row.rollout_id, row.path)

    def locate(self, rollout_id: str) -> str | None:
        """Return the path of a rollout by its id."""
        return self._places.get(rollout_id.lower())

    def locator(self, path: str) -> Callable[[str], str | None]:
        """Return how to find the bases of a file: in the home, then beside the file itself."""
        if path in self._store.rows():
            return self.locate
        beside = self._store.beside(path)
        return lambda rollout_id: self.locate(rollout_id) or beside.get(rollout_id.lower())

    def below(self, row: Row) -> Iterator[Row]:
        """Yield the rollouts that this one builds on, the nearest first."""
        seen = {row.path}
        step: Row | None = row
        while step is not None and step.base_rollout is not None:
            path = self.locate(step.base_rollout)
            if path is None or path in seen:
                return
            seen.add(path)
            step = self._store.rows().get(path)
            if step is not None:
                yield step

    def weight(self, row: Row) -> int:
        """Return the size of a session with all that it builds on, in bytes."""
        return sum(each.rollout.size for each in (row, *self.below(row)))

    def built_on(self, rollouts: set[str]) -> list[Row]:
        """Return the rollouts that build on one of these."""
        if not rollouts:
            return []
        by_rollout = {row.rollout_id: row for row in self._store.rows().values()}
        building: list[Row] = []
        for row in self._store.rows().values():
            step: Row | None = row
            seen: set[str] = set()
            while step is not None and step.base_rollout is not None and step.path not in seen:
                if step.base_rollout in rollouts:
                    building.append(row)
                    break
                seen.add(step.path)
                step = by_rollout.get(step.base_rollout)
        return building

    def sessions_on(self, sessions: Iterable[str]) -> set[str]:
        """Return the sessions that build on a rollout of one of these."""
        bases = set(sessions)
        return {
            row.session_id
            for row in self._store.current().values()
            if any(base.session_id in bases for base in self.below(row))
        }


def inherited(
    opened: SessionFile, locate: Locate, updates: Callable[[str], tuple[Update, ...]]
) -> tuple[Update, ...]:
    """Return the updates that a session inherits, the oldest session's first.

    A base that cannot be read, and a cut without an ordinal, end it, since what lies below cannot
    be ordered.
    """
    # What a session of ours began with moves the `seq` of all who build on it alike.
    shift = opened.now().scale.shift
    found: tuple[Update, ...] = ()
    for thread, below in bases_of(opened, locate, ours=False):
        found = (*(each for each in updates(thread) if each.seq - shift < below), *found)
    return found


def bases_of(
    opened: SessionFile, locate: Locate, *, ours: bool = True
) -> Iterator[tuple[str, int]]:
    """Yield the sessions that one builds on, the nearest first, with the ordinal of each cut.

    Without `ours` a session that we made ends them.
    """
    head = opened.head
    if not _inherits(head, ours=ours) or not opened.now().scale.ordinals:
        return
    seen = {opened.session_id}
    below: int | None = None
    with contextlib.suppress(UnreadableSource):
        for path, cut in bases_below(opened.reader, opened.path, locate)[0]:
            if not _inherits(head, ours=ours) or cut.end_ordinal is None:
                return
            below = cut.end_ordinal if below is None else min(below, cut.end_ordinal)
            head = head_of(opened.reader.first_line(path))
            thread = (head and head.session_id) or opened.reader.identify(path).thread_id
            if thread not in seen:
                seen.add(thread)
                yield thread, below


def _inherits(head: SessionMeta | None, *, ours: bool) -> bool:
    return (
        head is not None
        and head.base is not None
        and head.inherited_below is None
        and (ours or head.originator != OURS)
    )
