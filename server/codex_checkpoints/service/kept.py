"""What the sessions that we made began with, and which of them others were made from.

Three operations make sessions: a compaction into a new session, a restore, and the import of a
portable pack.  Each keeps its own records; whoever reads a session asks here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import AbstractContextManager

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.state import Seeds
from codex_checkpoints.core.compaction.records import (
    Installed,
    Record,
    Strategy,
    Undone,
    record_of,
    seed_of,
    standing,
    to_value,
    unsettled,
)
from codex_checkpoints.core.history.survey import Trigger
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.portable.arriving import links_of
from codex_checkpoints.core.portable.reading import Import, imports_in, seed_in
from codex_checkpoints.core.restore import records as lines
from codex_checkpoints.core.restore.events import Operation, StateTransferred
from codex_checkpoints.core.restore.lineage import MAX_CHAIN, Link
from codex_checkpoints.core.restore.records import Restore, restore_in, restores_in
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.service.refusal import Refusal, keeping, warn
from codex_checkpoints.storage.contract import ThreadStore, UnreadableSource
from codex_checkpoints.storage.durable import Journal, StorageError
from codex_checkpoints.storage.records import COMPACTIONS, IMPORTS, RESTORES, Records
from codex_checkpoints.values import frozen


@frozen
class Opened:
    """How we opened a window, and what it begins with (WIN-12).

    That is the replacement of the compaction `by`, or the history that was there before the
    compaction `undone`, which was then taken back by hand and summed up by nobody.
    """

    by: Installed | None = None
    undone: Installed | None = None

    @property
    def strategy(self) -> Strategy | None:
        """Return who made the replacement, None where there is none."""
        return None if self.by is None else self.by.strategy

    @property
    def trigger(self) -> Trigger:
        """Return what set it off."""
        return "manual" if self.by is None else self.by.placement

    @property
    def tokens_before(self) -> int | None:
        """Return what was in use before as it was decided by, None where the file tells."""
        return None if self.by is None else self.by.sizes.before.tokens


class CompactionsOf:
    """The records with one session, and the right to add to them."""

    def __init__(self, journal: Journal, found: tuple[Record, ...]) -> None:
        """Take the right, and what is there."""
        self._journal = journal
        self.records = found

    @property
    def prepared(self) -> Installed | Undone | None:
        """Return what was begun and has no end yet."""
        return unsettled(self.records)

    def add(self, record: Record) -> None:
        """Add a record, durable on return; raises `StorageError`."""
        self._journal.append(to_value(record))
        self.records = (*self.records, record)

    def settle(self, *, done: bool) -> None:
        """End what was prepared last: it was done, or nothing came of it."""
        prepared = self.prepared
        if prepared is None:
            return
        if done:
            self.add(prepared)
        else:
            self._journal.take_back()
            self.records = self.records[:-1]


class CompactionRecords:
    """The records of all compactions of ours."""

    def __init__(self, records: Records) -> None:
        """Keep them among these files."""
        self._records = records

    def of(self, session_id: str) -> tuple[Record, ...]:
        """Return the records with a session, the oldest first; raises `StorageError`."""
        found = map(record_of, self._records.lines(session_id, COMPACTIONS))
        return tuple(record for record in found if record is not None)

    def holders(self) -> frozenset[str]:
        """Return the sessions that have any."""
        return self._records.holding(COMPACTIONS)

    @contextlib.contextmanager
    def held(self, session_id: str) -> Generator[CompactionsOf]:
        """Hold the right to add to the records with a session; raises `StorageError`."""
        with self._records.journal(session_id, COMPACTIONS) as journal:
            yield CompactionsOf(journal, self.of(session_id))

    def give(self, session_id: str, record: Record) -> None:
        """Put a record beside a new session; raises `StorageError`."""
        with self.held(session_id) as held:
            held.add(record)

    def forget(self, session_id: str) -> None:
        """Remove the records of a session that never came to be; raises `StorageError`."""
        self._records.remove(session_id, COMPACTIONS)

    def seed(self, session_id: str) -> Checkpoint | None:
        """Return what a session goes on from; raises `StorageError` (JUN-46)."""
        return seed_of(self.of(session_id), session_id)

    def opened(self, session_id: str) -> dict[str, str]:
        """Return the compactions that opened windows of a session, by the id of the window.

        Refuses `storage_error`.
        """
        with storing_compaction(session_id):
            records = self.of(session_id)
        made = [each for each in records if isinstance(each, Installed)]
        return {
            each.windows.after.current: each.compaction_id
            for each in made
            if each.session_id == session_id and each.windows.after.current is not None
        }

    def continued_by(self, session_id: str) -> str | None:
        """Return the session where a compaction says that the work of this one goes on."""
        try:
            newest = standing(self.of(session_id), session_id)
        except StorageError as error:
            warn(__name__, "storage_error: compactions of %s: %s", session_id, error)
            return None
        return newest.session_id if newest is not None and newest.into == "new" else None

    def by_window(self, session_id: str) -> dict[str | None, Opened]:
        """Return what opened each window that a compaction of ours, or its undo, opened; by id.

        Raises `StorageError`.
        """
        found: dict[str | None, Opened] = {}
        made: dict[str, Installed] = {}
        for record in self.of(session_id):
            match record:
                case Installed():
                    made[record.compaction_id] = record
                    found[record.windows.after.current] = Opened(by=record)
                case Undone(window=Chain(current=window_id)):
                    found[window_id] = Opened(undone=made.get(record.compaction_id))
                case _:
                    pass
        found.pop(None, None)
        return found

    def points_at(self, session_id: str) -> bool:
        """Return whether the work of another session goes on in this one, by its records."""
        try:
            made = [each for each in self.of(session_id) if isinstance(each, Installed)]
        except StorageError:
            return True  # what cannot be known is not removed
        sources = {each.source.session_id for each in made if each.session_id == session_id}
        return any(self.continued_by(each) == session_id for each in sources - {session_id})

    def find(self, compaction_id: str) -> Installed:
        """Return a compaction by its id; refuses `unknown_compaction`, `storage_error`."""
        for session_id in sorted(self.holders()):
            with storing_compaction(session_id):
                found = self.of(session_id)
            for record in found:
                match record:
                    case Installed() if record.compaction_id == compaction_id:
                        return record
                    case _:
                        pass
        message = f"no compaction {compaction_id[:80]!r}"
        raise Refusal("unknown_compaction", message, {"compactionId": compaction_id[:200]})


def storing_compaction(session_id: str) -> AbstractContextManager[None]:
    """Turn what the system refuses about these records into a refusal."""
    return keeping("records of compactions", session_id)


def is_undone(records: tuple[Record, ...], compaction_id: str) -> bool:
    """Return whether a compaction was taken back already."""
    return any(isinstance(each, Undone) and each.compaction_id == compaction_id for each in records)


@frozen
class PreparedRestore:
    """A restore up to its publication: what is left to be told afterwards."""

    operation: Operation
    record: Restore
    transferred: StateTransferred


class RestoreRecords:
    """The records of all restores of ours."""

    def __init__(self, records: Records) -> None:
        """Keep them among these files."""
        self._records = records

    def of(self, session_id: str) -> tuple[Restore, ...]:
        """Return the records with a session, the oldest first; refuses `storage_error`."""
        with storing_restore(session_id):
            return self._of(session_id)

    def above(self, session_id: str) -> tuple[Restore, ...]:
        """Return the records of the branches that led to a session, and of itself (AGN-86)."""
        found: dict[str, Restore] = {}
        at: str | None = session_id
        seen: set[str] = set()
        while at is not None and at not in seen and len(seen) < MAX_CHAIN:
            seen.add(at)
            own = self.of(at)
            found |= {each.operation_id: each for each in own}
            at = next((each.source_session_id for each in own if each.session_id == at), None)
        return tuple(found.values())

    def all(self) -> tuple[Restore, ...]:
        """Return every record once, the oldest first."""
        found: dict[str, Restore] = {}
        for session_id in sorted(self.holders()):
            for each in self.of(session_id):
                found.setdefault(each.operation_id, each)
        return tuple(sorted(found.values(), key=lambda each: (each.restored_at, each.operation_id)))

    def holders(self) -> frozenset[str]:
        """Return the sessions that have any."""
        return self._records.holding(RESTORES)

    def made(self, session_id: str) -> Restore | None:
        """Return the restore that made a session, None where none did."""
        return next((each for each in self.of(session_id) if each.session_id == session_id), None)

    def give(self, session_id: str, record: Restore) -> None:
        """Put a record beside a session, once; raises `StorageError`."""
        with self._records.journal(session_id, RESTORES) as journal:
            known = restores_in(self._records.lines(session_id, RESTORES))
            if all(each.operation_id != record.operation_id for each in known):
                journal.append(lines.line_of(record))

    def seed(self, session_id: str) -> Checkpoint | None:
        """Return what a session began with; raises `StorageError` (AGN-88)."""
        return lines.seed_of(self._of(session_id), session_id)

    def begun(self, session_id: str) -> Operation | None:
        """Return the operation that is to make a branch, or was when it was killed."""
        told = (object_of(line) for line in self._records.undertaken(session_id))
        found = (kept.read_or_none(each.get("operation"), Operation) for each in told)
        return next((each for each in found if each is not None), None)

    def undertaken(self, session_id: str) -> PreparedRestore | None:
        """Return the restore that is making a branch, or was when it was killed."""
        for line in self._records.undertaken(session_id):
            told = object_of(line)
            operation = kept.read_or_none(told.get("operation"), Operation)
            record = restore_in(told.get("record"))
            transferred = kept.read_or_none(told.get("transferred"), StateTransferred)
            if operation is not None and record is not None and transferred is not None:
                return PreparedRestore(operation, record, transferred)
        return None

    def _of(self, session_id: str) -> tuple[Restore, ...]:
        found = restores_in(self._records.lines(session_id, RESTORES))
        begun = self.undertaken(session_id)
        if begun is None or any(each.operation_id == begun.record.operation_id for each in found):
            return found
        return (*found, begun.record)


def begun_line(operation: Operation) -> dict[str, object]:
    """Return an undertaking of which nothing but its operation is known yet."""
    return {"operation": kept.write(operation)}


def line_of(prepared: PreparedRestore) -> dict[str, object]:
    """Return an undertaking as JSON values."""
    return {
        "operation": kept.write(prepared.operation),
        "record": kept.write(prepared.record),
        "transferred": kept.write(prepared.transferred),
    }


def storing_restore(session_id: str | None) -> AbstractContextManager[None]:
    """Turn what the system refuses about these records into a refusal; None: of no session."""
    return keeping("records of restores", session_id)


def beginnings(records: Records) -> Seeds:
    """Return how to find what a session goes on from (JUN-46, AGN-88)."""
    kept = CompactionRecords(records), RestoreRecords(records)

    def seed(session_id: str) -> Checkpoint | None:
        try:
            found = (each.seed(session_id) for each in kept)
            return next((each for each in found if each is not None), None) or imported(session_id)
        except StorageError as error:
            reason = f"its record of how it began cannot be read: {error}"
            raise UnreadableSource(reason) from error

    def imported(session_id: str) -> Checkpoint | None:
        if records.look(session_id, IMPORTS) is None:
            return None
        # Few sessions came in a pack, and Codex waits for what is loaded here.

        return ImportRecords(records).seed(session_id)

    return seed


def went_on_from(records: Records, session_id: str) -> tuple[str, int | None] | None:
    """Return the session that one of ours was made of, None where it was made of none.

    Beside it stands how far what was noted there is in its seed alone; None where it has its own
    copy.  Refuses `storage_error`.
    """
    restored = RestoreRecords(records).made(session_id)
    if restored is not None:
        seed = restored.seed if restored.mode == "hard" else None
        return restored.source_session_id, None if seed is None else seed.seq
    with storing_compaction(session_id):
        compactions = CompactionRecords(records).of(session_id)
    for each in compactions:
        if isinstance(each, Installed) and (each.into, each.session_id) == ("new", session_id):
            return each.source.session_id, each.source.to_seq
    return None


def is_begun_from(records: Records, store: ThreadStore) -> Callable[[str], bool]:
    """Return how to find out whether a session that is still there was made from another."""
    compactions, restores = CompactionRecords(records), RestoreRecords(records)

    def refers(session_id: str) -> bool:
        if compactions.points_at(session_id):
            return True
        try:
            branches = {
                each.session_id
                for each in restores.of(session_id)
                if each.source_session_id == session_id
            }
        except Refusal:
            return True  # what cannot be read may say so
        return not branches.isdisjoint(store.places())

    return refers


class ImportRecords:
    """The records of all imports."""

    def __init__(self, records: Records) -> None:
        """Keep them among these files."""
        self._records = records

    def made(self, session_id: str) -> Import | None:
        """Return how a session was made of a pack, None where it was not.

        Refuses `storage_error`.
        """
        with storing_restore(session_id):
            found = imports_in(self._records.lines(session_id, IMPORTS))
        return next((each for each in found if each.session_id == session_id), None)

    def all(self) -> Iterator[Import]:
        """Yield every record, by session."""
        for session_id in sorted(self._records.holding(IMPORTS)):
            made = self.made(session_id)
            if made is not None:
                yield made

    def links(self, here: Container[str]) -> Iterator[Link]:
        """Yield the links that packs tell of; of sessions that are here only their own (AGN-86).

        A pack is somebody else's word: what it says of a session above must not give a session of
        this home another parent.
        """
        for made in self.all():
            own, *above = links_of(made.pack, made.session_id, made.imported_at, made.operation_id)
            yield own
            for link in above:
                if link.child in here:
                    break
                yield link

    def seed(self, session_id: str) -> Checkpoint | None:
        """Return what a session began with; raises `StorageError`."""
        return seed_in(self._records.lines(session_id, IMPORTS), session_id)
