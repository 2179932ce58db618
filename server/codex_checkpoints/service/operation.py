"""Runs compaction, restore, import, deletion and connect as atomic operations.

1. prepare: write the operation, with everything its end needs, to `restoring/<id>.jsonl`;
2. publish: make a session or a file, append to one, or remove one, in one step;
3. record: write the records and the audit;
4. settle: remove the file of step 1.

A process that dies before step 2 has published nothing; one that dies later lacks steps 3 and 4.
So one rule settles an interrupted operation: a published one is recorded, any other is rolled back.
A failed operation is settled at once, and the operation of a killed process at the next start
(`recovery`).  The file of step 1 stays locked, so no other process settles a running operation.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Protocol

from attrs import define

from codex_checkpoints.core.fields import object_of
from codex_checkpoints.core.restore.events import Operation
from codex_checkpoints.core.restore.pack_items import TurnSource
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.storage.atomic_files import Append, Journal, StorageError
from codex_checkpoints.storage.records import Records

logger = logging.getLogger(__name__)

INTERRUPTED = "interrupted"
"""The code of an operation whose process was killed."""


class PendingOperation(Protocol):
    """The end of an operation; if `record` or `roll_back` fails, the next start retries it."""

    def is_published(self) -> bool:
        """Return whether step 2 is done."""
        ...

    def record(self) -> None:
        """Write the records and the events of the published step."""
        ...

    def roll_back(self, code: str) -> bool:
        """Remove the files of a session that was not created; return whether all are gone."""
        ...


@contextlib.contextmanager
def atomic_operation(records: Records, name: str, work: PendingOperation) -> Generator[Append]:
    """Run a block as steps 1 and 2 of an operation, then do steps 3 and 4; yield its `append`.

    A block that fails with one of our errors is settled too; any other failure, and an operation
    that cannot be settled now, is left to the next start.  Raises `StorageError`, if the audit
    cannot be written before anything is done.
    """
    records.audit.check()
    with records.operation_journal(name) as journal:
        try:
            yield journal.append
        except (StorageError, Refusal, Cancelled) as error:
            settle(name, journal, work, _code_of(error))
            raise
        settle(name, journal, work, INTERRUPTED)


def settle(name: str, journal: Journal, work: PendingOperation, code: str) -> bool:
    """Do steps 3 and 4, or roll back an unpublished operation; return whether that is done."""
    try:
        if work.is_published():
            work.record()
        elif not work.roll_back(code):
            return False
        journal.clear()
    except (StorageError, Refusal) as error:
        logger.warning("storage_error: the next start will settle %s: %s", name, error)
        return False
    return True


def _code_of(error: StorageError | Refusal | Cancelled) -> str:
    if isinstance(error, Refusal):
        return error.code
    return "cancelled" if isinstance(error, Cancelled) else "storage_error"


def added(
    records: Records, session_id: str, name: str, lines: Iterable[Mapping[str, object]]
) -> None:
    """Append lines to a file in our folder of a session; without lines, do not create it."""
    found = tuple(lines)
    if found:
        with records.journal(session_id, name) as journal:
            for line in found:
                journal.append(line)


def removed(records: Records, session_id: str, names: Iterable[str]) -> bool:
    """Remove files in our folder of a session that was not created; return whether all are gone."""
    are_gone = True
    for name in names:
        try:
            records.remove(session_id, name)
        except StorageError as error:
            logger.warning("storage_error: cannot remove %s of %s: %s", name, session_id, error)
            are_gone = False
    return are_gone


def operation_of(
    settings: Settings,
    operation_id: str,
    session_id: str | None,
    source_id: str | None,
    turn_id: str | None = None,
) -> Operation:
    """Return the common part of an operation's events; a restore's events have more."""
    turn = None if turn_id is None or source_id is None else TurnSource(source_id, turn_id)
    user, org = settings.user_id, settings.org_id
    return Operation(operation_id, session_id, source_id, None, turn, None, user, org)


@define
class SingleStep:
    """An operation that publishes one thing and leaves one event; `PendingOperation`.

    `undo` removes the files written before; it returns whether all are gone.
    """

    _records: Records
    _event: Mapping[str, object]
    _is_done: Callable[[], bool]
    _undo: Callable[[], bool] = lambda: True
    published: bool | None = None
    """None if it must be checked."""

    def is_published(self) -> bool:
        """Return whether the change was made."""
        return self._is_done() if self.published is None else self.published

    def record(self) -> None:
        """Write the event."""
        close(self._records, self._event, again=self.published is None)

    def roll_back(self, code: str) -> bool:
        """Remove the files written before; no event is needed."""
        del code
        return self._undo()


def close(records: Records, event: Mapping[str, object], *, again: bool) -> None:
    """Write the closing event of an operation, once; `again` if another process may have.

    Raises `StorageError`.
    """
    this = event.get("type"), event.get("operationId")
    events = map(object_of, records.audit.events()) if again else ()
    if all((each.get("type"), each.get("operationId")) != this for each in events):
        records.audit.add(event)
