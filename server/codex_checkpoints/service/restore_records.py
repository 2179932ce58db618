"""The records of restores, as they lie with the branch and with its source (AGN-30, AGN-87).

While a branch is made its record stands apart, in `undertaken`: it is what a reader of the branch
goes by until the restore is complete, and what the next start goes by if that never came.  What a
record says is known to `core.restore`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.restore import records as lines
from codex_checkpoints.core.restore.chains import MAX_CHAIN
from codex_checkpoints.core.restore.events import Operation, StateTransferred
from codex_checkpoints.core.restore.records import Restore, restore_in, restores_in
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.records import RESTORES, Records
from codex_checkpoints.service.refusal import keeping
from codex_checkpoints.values import frozen


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
        with storing(session_id):
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


def storing(session_id: str | None) -> AbstractContextManager[None]:
    """Turn what the system refuses about these records into a refusal; None: of no session."""
    return keeping("records of restores", session_id)
