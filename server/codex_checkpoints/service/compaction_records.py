"""The records of compactions, as they lie in `compactions.jsonl` of the sessions they are about.

Each stands with its source; one of a compaction into a new session stands with that, too, since it
holds what the new session goes on from.  The newest one with the source that was not taken back is
the pointer (JUN-24).  What a record says is known to `core.compaction`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from contextlib import AbstractContextManager

from codex_checkpoints.core.checkpoint.records import Checkpoint
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
from codex_checkpoints.durable import Journal, StorageError
from codex_checkpoints.records import COMPACTIONS, Records
from codex_checkpoints.service.refusal import Refusal, keeping
from codex_checkpoints.values import frozen

logger = logging.getLogger(__name__)


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
        with storing(session_id):
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
            logger.warning("storage_error: compactions of %s: %s", session_id, error)
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
            with storing(session_id):
                found = self.of(session_id)
            for record in found:
                match record:
                    case Installed() if record.compaction_id == compaction_id:
                        return record
                    case _:
                        pass
        message = f"no compaction {compaction_id[:80]!r}"
        raise Refusal("unknown_compaction", message, {"compactionId": compaction_id[:200]})


def storing(session_id: str) -> AbstractContextManager[None]:
    """Turn what the system refuses about these records into a refusal."""
    return keeping("records of compactions", session_id)


def is_undone(records: tuple[Record, ...], compaction_id: str) -> bool:
    """Return whether a compaction was taken back already."""
    return any(isinstance(each, Undone) and each.compaction_id == compaction_id for each in records)
