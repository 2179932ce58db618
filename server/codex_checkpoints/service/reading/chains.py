"""Where each rollout lies, and which builds on which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.rollout.items import HistoryBase, SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.core.rollout.reader import Place, Reader
from codex_checkpoints.service.reading.session_file import Locate, SessionFile, bases_below
from codex_checkpoints.storage.contract import (
    Rollout,
    RolloutReader,
    Row,
    ThreadStore,
    UnreadableSource,
)
from codex_checkpoints.values import frozen


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


@frozen
class ChainPart:
    """One rollout of a chain, and where it is cut: at an ordinal, or at a byte."""

    path: str
    ordinal: int | None = None
    end: int | None = None


class Taker(Protocol):
    """A pass over the lines of a chain."""

    reader: Reader


def parts_below(reader: RolloutReader, path: str, locate: Locate) -> tuple[ChainPart, ...]:
    """Return the rollouts that one builds on, the oldest first; raises `UnreadableSource`."""
    below, _ = bases_below(reader, path, locate)
    return tuple(_base(reader, base, cut) for base, cut in reversed(below))


def read_parts(
    reader: RolloutReader, taker: Taker, parts: tuple[ChainPart, ...], start: Place, own: str
) -> tuple[ChainPart, ...]:
    """Read a chain from a place on; return it cut where it ends now.

    Only the session's own file must be readable.
    """
    lines, read = taker.reader, list(parts[: start.file])
    for number, part in enumerate(parts[start.file :], start.file):
        if number > start.file:
            lines.next_file(part.ordinal)
        else:
            lines.begin_file(part.ordinal)
        offset = start.offset if number == start.file else 0
        try:
            reached, rest = reader.read(part.path, offset, lines.feed, part.end)
        except UnreadableSource:
            if part.path == own:
                raise
            read.append(part)
            continue  # `doctor` reports it
        if not lines.stopped:
            lines.close(rest)
        read.append(ChainPart(part.path, part.ordinal, reached + len(rest)))
    return tuple(read)


def _base(reader: RolloutReader, path: str, cut: HistoryBase) -> ChainPart:
    head = head_of(reader.first_line(path))
    numbered = head is not None and head.paginated and cut.end_ordinal is not None
    return ChainPart(path, cut.end_ordinal) if numbered else ChainPart(path, None, cut.end_offset)


_OURS = "codex-checkpoints"


def inherited(
    opened: SessionFile, locate: Locate, updates: Callable[[str], tuple[Update, ...]]
) -> tuple[Update, ...]:
    """Return the updates that a session inherits, the oldest session's first.

    A base that cannot be read, and a cut without an ordinal, end it, since what lies below cannot
    be ordered.
    """
    head, replay = opened.head, opened.now()
    if not _inherits(head) or not replay.scale.ordinals:
        return ()
    # What a session of ours began with moves the `seq` of all who build on it alike.
    shift = replay.scale.shift
    found: tuple[Update, ...] = ()
    seen = {opened.session_id}
    below: int | None = None
    try:
        for path, cut in bases_below(opened.reader, opened.path, locate)[0]:
            if not _inherits(head) or cut.end_ordinal is None:
                break
            below = cut.end_ordinal if below is None else min(below, cut.end_ordinal)
            head = head_of(opened.reader.first_line(path))
            thread = (head and head.session_id) or opened.reader.identify(path).thread_id
            if thread not in seen:
                seen.add(thread)
                older = (each for each in updates(thread) if each.seq - shift < below)
                found = (*older, *found)
    except UnreadableSource:
        pass
    return found


def _inherits(head: SessionMeta | None) -> bool:
    return (
        head is not None
        and head.base is not None
        and head.inherited_below is None
        and head.originator != _OURS
    )
