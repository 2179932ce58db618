"""Tracks the path of each rollout, and its base rollout."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice, zip_longest

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.events import SessionMeta
from codex_checkpoints.core.fields import load, object_of
from codex_checkpoints.service.reading.session_file import (
    CopiedLines,
    Locate,
    SessionFile,
    bases_below,
    bytes_between,
    lines_of,
)
from codex_checkpoints.storage.contract import (
    OURS,
    Rollout,
    RolloutReader,
    Row,
    UnreadableSource,
)
from codex_checkpoints.storage.store import ThreadStore

_ENDLESS = 1 << 62
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class RolloutBases:
    """The chains of rollouts in one store, as of the last check."""

    def __init__(self, store: ThreadStore) -> None:
        self._store = store
        self._places: dict[str, str] = {}
        self._copied: dict[tuple[str, str], int] = {}

    def begin(self, places: Mapping[str, str]) -> None:
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
            self._copied.clear()
            if self._places.get(row.rollout_id) == row.path:
                del self._places[row.rollout_id]
                lost.add(row.rollout_id)
        for row in self._store.rows().values() if lost else ():
            if row.rollout_id in lost:  # an archived copy, or one that was unarchived
                self._places.setdefault(row.rollout_id, row.path)

    def copied(self, reader: RolloutReader, fork: str, base: str) -> int:
        """Return the number of lines of a base that its fork copied, by their paths."""
        known = self._copied.get((fork, base))
        if known is None:
            found = copied_lines(reader, fork, base)
            known = found.lines
            if not found.is_all:  # otherwise more lines may still be written
                self._copied[fork, base] = known
        return known

    def locate(self, rollout_id: str) -> str | None:
        """Return the path of a rollout by its id."""
        return self._places.get(rollout_id.lower())

    def locator(self, path: str) -> Callable[[str], str | None]:
        """Return a function that finds the bases of a file: in the home, then beside the file."""
        if path in self._store.rows():
            return self.locate
        beside = self._store.beside(path)
        return lambda rollout_id: self.locate(rollout_id) or beside.get(rollout_id.lower())

    def below(self, row: Row) -> Iterator[Row]:
        """Yield the rollouts that this one builds on, nearest first."""
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

    def is_broken(self, row: Row) -> bool:
        """Return whether a rollout that this one builds on is missing, or builds on this one."""
        chain = [row, *self.below(row)]
        base = chain[-1].base_rollout
        path = None if base is None else self.locate(base)
        return base is not None and (path is None or any(each.path == path for each in chain))

    def weight(self, row: Row) -> int:
        """Return the size of a session with all its bases, in bytes."""
        return sum(each.rollout.size for each in (row, *self.below(row)))

    def built_on(self, rollouts: set[str]) -> list[Row]:
        """Return the rollouts that build on one of these."""
        return [
            row
            for row in (self._store.rows().values() if rollouts else ())
            if row.base_rollout is not None  # most do not build on another
            and any(each.base_rollout in rollouts for each in (row, *self.below(row)))
        ]

    def sessions_on(self, sessions: Iterable[str]) -> set[str]:
        """Return the sessions that build on a rollout of one of these."""
        bases = set(sessions)
        return {
            row.session_id
            for row in self._store.current().values()
            if any(base.session_id in bases for base in self.below(row))
        }


@frozen
class Base:
    """A session that another one builds on, and the part that it uses.

    The other session has its records below `below`, shifted by `moved`, and its notes that were
    accepted before `until`.
    """

    thread: str
    below: int
    until: datetime | None
    moved: int = 0


def inherited(
    opened: SessionFile, locate: Locate, updates: Callable[[str], tuple[Update, ...]]
) -> tuple[Update, ...]:
    """Return the updates that a session inherits, the oldest session's first.

    The chain ends at an unreadable base, and at a cut without an ordinal, since the records below
    cannot be ordered.
    """
    # The seed of a session of ours shifts the `seq` of all files built on it equally.
    shift = opened.now().scale.shift
    found: tuple[Update, ...] = ()
    copies = copies_of(opened, locate, lambda thread: bool(updates(thread)))
    for base in (*bases_of(opened, locate, ours=False), *copies):
        own = [each for each in updates(base.thread) if each.seq - shift < base.below]
        if base.until is not None:
            own = [each for each in own if (time_of(each.at) or _LONG_AGO) < base.until]
        found = (*(_moved(each, base.moved) for each in own), *found)
    return found


def _moved(update: Update, by: int) -> Update:
    """Return an update shifted for a file with this many more lines in front."""
    named = re.fullmatch(r"turn-([0-9]{1,15})", update.turn_id or "") if by else None
    turn_id = update.turn_id if named is None else f"turn-{int(named[1]) + by}"
    return evolve(update, seq=update.seq + by, turn_id=turn_id)


def bases_of(opened: SessionFile, locate: Locate, *, ours: bool = True) -> Iterator[Base]:
    """Yield the sessions that one builds on by reference, nearest first.

    Without `ours` the chain ends before a session that we made.
    """
    head = opened.head
    if not _inherits(head, ours=ours) or not opened.now().scale.ordinals:
        return
    seen = {opened.session_id}
    below: int | None = None
    until: datetime | None = None
    with contextlib.suppress(UnreadableSource):
        for path, cut in bases_below(opened.reader, opened.path, locate)[0]:
            if not _inherits(head, ours=ours) or cut.end_ordinal is None:
                return
            below = cut.end_ordinal if below is None else min(below, cut.end_ordinal)
            until = _earlier(until, time_of(head and head.timestamp))
            head = head_of(opened.reader.first_line(path))
            thread = (head and head.session_id) or opened.reader.identify(path).thread_id
            if thread not in seen:
                seen.add(thread)
                yield Base(thread, below, until)


def copies_of(opened: SessionFile, locate: Locate, matters: Callable[[str], bool]) -> list[Base]:
    """Return the sessions whose lines an older fork copied, nearest first.

    The result is empty if none of these sessions `matters`, since comparing lines is slow.
    """
    head, path = opened.head, opened.path
    forks: list[tuple[str, str, str, str | None]] = []
    found: list[Base] = []
    with contextlib.suppress(UnreadableSource):
        while head is not None and is_copy(head) and head.forked_from is not None:
            thread, base = head.forked_from, locate(head.forked_from)
            if base is None or thread in {opened.session_id, *(each[0] for each in forks)}:
                break
            forks.append((thread, path, base, head.timestamp))
            path, head = base, head_of(opened.reader.first_line(base))
        if not any(matters(thread) for thread, *_ in forks):
            return found
        below, until = _ENDLESS, None
        for thread, path, base, stamp in forks:
            # The head of a fork precedes the lines that it copied.
            below = min(below - 1, 1 + _copied_lines(opened, path, base))
            until = _earlier(until, time_of(stamp))
            found.append(Base(thread, below, until, len(found) + 1))
    return found


def is_copy(head: SessionMeta) -> bool:
    """Return whether a fork with this head copied the lines of its parent."""
    return head.base is None and not head.paginated and head.originator != OURS


def _copied_lines(opened: SessionFile, fork: str, base: str) -> int:
    reader, known = opened.reader, opened.copied.get(base)
    if known is not None and (known.base_size is None or not _has_more(reader, base, known)):
        return known.lines
    found = copied_lines(reader, fork, base)
    if not found.is_all:  # otherwise more lines may still be written
        opened.copied[base] = found
    return found.lines


def _has_more(reader: RolloutReader, base: str, known: CopiedLines) -> bool:
    size = known.base_size or 0
    return bytes_between(reader, base, size, size + 1) != b""


def copied_lines(reader: RolloutReader, fork: str, base: str, *, ours: bool = False) -> CopiedLines:
    """Return how many lines of a base its fork contains.

    They follow the fork's own head.  Codex gives them new times, and ids if they had none; a branch
    of `ours` lacks the head of the base, and has its own window ids.
    """
    own = islice(lines_of(reader, fork), 1, None)
    size = count = 0

    def also(portion: bytes) -> None:
        nonlocal size
        size += len(portion)

    theirs = islice(lines_of(reader, base, also=also), int(ours), None)
    for copy, line in zip_longest(own, theirs):
        if copy is None:
            return CopiedLines(count, is_all=True)
        if line is None:
            return CopiedLines(count, base_size=size)
        said = _said(line)
        if said != _said(copy) and not (ours and said[0] in {"compacted", "session_meta"}):
            return CopiedLines(count)
        count += 1
    return CopiedLines(count, is_all=True)


def _said(line: bytes) -> tuple[object, object]:
    record = object_of(load(line))
    payload = {key: each for key, each in object_of(record.get("payload")).items() if key != "id"}
    return record.get("type"), payload


def time_of(stamp: str | None) -> datetime | None:
    """Return the moment of a time stamp, None if it is not a time."""
    with contextlib.suppress(ValueError):
        moment = None if stamp is None else datetime.fromisoformat(stamp)
        return None if moment is None or moment.tzinfo is None else moment
    return None


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _inherits(head: SessionMeta | None, *, ours: bool) -> bool:
    return (
        head is not None
        and head.base is not None
        and head.inherited_below is None
        and (ours or head.originator != OURS)
    )
