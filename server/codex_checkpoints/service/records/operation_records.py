"""Reads and writes the records of compactions and restores, and how our sessions began."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Literal

from attrs import define, frozen

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.records import (
    Installed,
    Placement,
    Prepared,
    Record,
    Strategy,
    Undone,
    began_session,
    current_compaction,
    record_of,
    to_value,
)
from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.portable.seeds import seed_in
from codex_checkpoints.core.restore.events import TRANSFERRED, Operation
from codex_checkpoints.core.restore.records import Restore, line_of, restores_in
from codex_checkpoints.service.refusal import SHORTEST_PREFIX, Refusal, keeping
from codex_checkpoints.storage.atomic_files import Journal, StorageError
from codex_checkpoints.storage.contract import UnreadableSource
from codex_checkpoints.storage.records import COMPACTIONS, IMPORTS, MARKERS, RESTORES, Records
from codex_checkpoints.storage.store import ThreadStore

logger = logging.getLogger(__name__)


@frozen
class WindowOrigin:
    """How we opened a window: `by` a compaction, or with the history before one (WIN-12)."""

    strategy: Strategy | None = None
    trigger: Placement = "manual"
    tokens_before: int | None = None
    by: Installed | None = None
    undone: Installed | None = None


@define
class CompactionsOf:
    """The records of one session, and the right to add to them."""

    _journal: Journal
    records: tuple[Record, ...]

    @property
    def prepared(self) -> Installed | Undone | None:
        """Return the record of a change that was begun and whose end is unknown."""
        match self.records[-1:]:
            case (Prepared(record=record),):
                return record
            case _:
                return None

    def add(self, record: Record) -> None:
        """Add a record, durably; raises `StorageError`."""
        self._journal.append(to_value(record))
        self.records = (*self.records, record)

    def settle(self, *, done: bool) -> None:
        """End the last prepared change, done or not."""
        prepared = self.prepared
        if prepared is not None and done:
            self.add(prepared)
        elif prepared is not None:
            self._journal.remove_last()
            self.records = self.records[:-1]


@define
class CompactionRecords:
    """The records of all our compactions."""

    _records: Records

    def of(self, session_id: str) -> tuple[Record, ...]:
        """Return the records of a session, the oldest first; refuses `storage_error`."""
        with storing_compaction(session_id):
            return self.read(session_id)

    def read(self, session_id: str) -> tuple[Record, ...]:
        """Return the records of a session, as `of` does; raises `StorageError`."""
        found = map(record_of, self._records.lines(session_id, COMPACTIONS))
        return tuple(record for record in found if record is not None)

    def holders(self) -> list[str]:
        """Return the sessions that have any, in order."""
        return sorted(self._records.holding(COMPACTIONS))

    @contextlib.contextmanager
    def locked(self, session_id: str) -> Generator[CompactionsOf]:
        """Lock the records of a session, to add to them; raises `StorageError`."""
        with self._records.journal(session_id, COMPACTIONS) as journal:
            yield CompactionsOf(journal, self.read(session_id))

    def wait(self, session_id: str) -> None:
        """Wait until no process locks the records of a session; refuses `storage_error`."""
        with storing_compaction(session_id), self.locked(session_id):
            pass

    def forget(self, session_id: str) -> None:
        """Remove the records of a session that was not made; raises `StorageError`."""
        for name in (MARKERS, COMPACTIONS):
            self._records.remove(session_id, name)

    def began(self, session_id: str) -> Installed | None:
        """Return the compaction that a session began with; refuses `storage_error`."""
        return began_session(self.of(session_id), session_id)

    def is_undone(self, made: Installed) -> bool:
        """Return whether a compaction was undone; refuses `storage_error`."""
        return is_undone(self.of(made.source.session_id), made.compaction_id)

    def began_undone(self, session_id: str) -> bool:
        """Return whether the compaction that made a session was undone."""
        try:
            made = self.began(session_id)
            return made is not None and self.is_undone(made)
        except Refusal as refusal:
            logger.warning("%s: %s", refusal.code, refusal.message)
            return False

    def continued_by(self, session_id: str) -> str | None:
        """Return the session in which a compaction continued this one, None without one."""
        try:
            newest = current_compaction(self.of(session_id), session_id)
        except Refusal as refusal:
            logger.warning("%s: %s", refusal.code, refusal.message)
            return None
        return newest.session_id if newest is not None and newest.into == "new" else None

    def into_new(self, session_id: str) -> list[tuple[str, str, bool]]:
        """Return each compaction into a new session, that session, and whether it was undone.

        Refuses `storage_error`.
        """
        records = self.of(session_id)
        made = (each for each in records if isinstance(each, Installed) and each.into == "new")
        own = (each for each in made if each.source.session_id == session_id)
        return [
            (each.compaction_id, each.session_id, is_undone(records, each.compaction_id))
            for each in own
        ]

    def points_at(self, session_id: str) -> bool:
        """Return whether another session is continued in this one; refuses `storage_error`."""
        made = [each for each in self.of(session_id) if isinstance(each, Installed)]
        sources = {each.source.session_id for each in made if each.session_id == session_id}
        return any(self.continued_by(each) == session_id for each in sources - {session_id})

    def by_window(self, session_id: str) -> dict[str | None, WindowOrigin]:
        """Return how each window opened by us began, by id; refuses `storage_error`."""
        found: dict[str | None, WindowOrigin] = {}
        made: dict[str, Installed] = {}
        for record in self.of(session_id):
            if isinstance(record, Installed):
                made[record.compaction_id] = record
                before = record.sizes.before.tokens
                found[record.windows.after.current] = WindowOrigin(
                    record.strategy, record.placement, before, by=record
                )
            elif isinstance(record, Undone) and record.window is not None:
                found[record.window.current] = WindowOrigin(undone=made.get(record.compaction_id))
        found.pop(None, None)
        return found

    def find(self, name: str) -> Installed:
        """Return a compaction by its id, the new session's id, or a prefix of one.

        Refuses `unknown_compaction`, with the compactions in force of a session that was named
        instead, `ambiguous_session`, `storage_error`.
        """
        found: dict[str, Installed] = {}
        of_sources: dict[str, list[str]] = {}
        for holder in self.holders():
            for record in (each for each in self.of(holder) if isinstance(each, Installed)):
                own = [record.session_id] if record.into == "new" else []
                if name in {record.compaction_id, *own}:
                    return record
                if any(each.startswith(name.lower()) for each in (record.compaction_id, *own)):
                    found[record.compaction_id] = record
                elif record.source.session_id == holder and holder.startswith(name.lower()):
                    in_force = [] if self.is_undone(record) else [record.compaction_id]
                    of_sources.setdefault(holder, []).extend(in_force)
        if len(name) < SHORTEST_PREFIX or not found:
            message = f"no compaction {name[:80]!r}"
            is_one = len(name) >= SHORTEST_PREFIX and len(of_sources) == 1
            candidates = of_sources.popitem()[1][-20:] if is_one else []
            facts = {"compactionId": name[:200], "candidates": candidates}
            raise Refusal("unknown_compaction", message, facts)
        if len(found) > 1:
            message = f"{name!r} is the beginning of the ids of {len(found)} compactions"
            raise Refusal("ambiguous_session", message, {"candidates": sorted(found)[:20]})
        return found.popitem()[1]


def storing_compaction(session_id: str) -> AbstractContextManager[None]:
    """Turn a `StorageError` about these records into a refusal."""
    return keeping("records of compactions", session_id)


def is_undone(records: tuple[Record, ...], compaction_id: str) -> bool:
    """Return whether a compaction was undone."""
    return any(isinstance(each, Undone) and each.compaction_id == compaction_id for each in records)


@frozen
class BegunRestore:
    """A restore that has not ended; a prepared one has its record and the counts of its event."""

    operation: Operation
    record: Restore | None = None
    transferred: Mapping[str, int] = MappingProxyType({})


@define
class RestoreRecords:
    """The records of all our restores."""

    _records: Records

    def of(self, session_id: str) -> tuple[Restore, ...]:
        """Return the records of a session, the oldest first; refuses `storage_error`."""
        with storing_restore(session_id):
            return self.read(session_id)

    def read(self, session_id: str) -> tuple[Restore, ...]:
        """Return the records of a session, as `of` does; raises `StorageError`."""
        begun = self.begun(session_id)  # first, since it goes when the record is written
        found = restores_in(self._records.lines(session_id, RESTORES))
        if begun is None or begun.record is None:
            return found
        known = any(each.operation_id == begun.record.operation_id for each in found)
        return found if known else (*found, begun.record)

    def all(self) -> tuple[Restore, ...]:
        """Return every record once, the oldest first; refuses `storage_error`."""
        found: dict[str, Restore] = {}
        for session_id in sorted(self._records.holding(RESTORES)):
            for each in self.of(session_id):
                found.setdefault(each.operation_id, each)
        return tuple(sorted(found.values(), key=lambda each: (each.restored_at, each.operation_id)))

    def made(self, session_id: str) -> Restore | None:
        """Return the restore that made a session, or None; refuses `storage_error`."""
        return next((each for each in self.of(session_id) if each.session_id == session_id), None)

    def give(self, session_id: str, record: Restore) -> None:
        """Add a record to a session, once; raises `StorageError`."""
        with self._records.journal(session_id, RESTORES) as journal:
            known = restores_in(self._records.lines(session_id, RESTORES))
            if all(each.operation_id != record.operation_id for each in known):
                journal.append(line_of(record))

    def begun(self, session_id: str) -> BegunRestore | None:
        """Return the unfinished restore that is to make a branch, or None."""
        found: BegunRestore | None = None
        for line in self._records.operation_lines(session_id):
            begun = read_or_none(stored, line, BegunRestore)
            if begun is not None and (found is None or tuple(begun.transferred) == TRANSFERRED):
                found = begun
        return found


def storing_restore(session_id: str | None) -> AbstractContextManager[None]:
    """Turn a `StorageError` about these records into a refusal; None: of no session."""
    return keeping("records of restores", session_id)


def beginning_of(records: Records, session_id: str) -> Checkpoint | None:
    """Return the seed of a session (JUN-46, AGN-88)."""
    try:
        began = began_session(CompactionRecords(records).read(session_id), session_id)
        if began is not None and began.seed is not None:
            return began.seed
        restores = RestoreRecords(records).read(session_id)
        seeds = (each.seed for each in restores if each.session_id == session_id)
        found = next((seed for seed in seeds if seed is not None), None)
        return found or seed_in(records.lines(session_id, IMPORTS), session_id)
    except StorageError as error:
        reason = f"its record of how it began cannot be read: {error}"
        raise UnreadableSource(reason) from error


def continued_from(records: Records, session_id: str) -> tuple[str, int | None] | None:
    """Return the source of a session of ours, and the `seq` up to which its seed has the notes."""
    restored = RestoreRecords(records).made(session_id)
    if restored is not None:
        seed = restored.seed if restored.mode == "hard" else None
        return restored.source_session_id, None if seed is None else seed.seq
    began = CompactionRecords(records).began(session_id)
    return None if began is None else (began.source.session_id, began.source.to_seq)


DeleteBlock = Literal["standing", "referred_to"]
"""Why a session is not deleted: its compaction was not undone; a session was made from it."""


def delete_block(records: Records, store: ThreadStore, session_id: str) -> DeleteBlock | None:
    """Return the obstacle to deleting a session: its own compaction, or a session made from it.

    Refuses `storage_error`: records that cannot be read may forbid it.
    """
    if CompactionRecords(records).points_at(session_id):
        return "standing"
    branches = {
        each.session_id
        for each in RestoreRecords(records).of(session_id)
        if each.source_session_id == session_id
    }
    return None if branches.isdisjoint(store.places()) else "referred_to"
