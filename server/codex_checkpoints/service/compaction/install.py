"""Writes a compaction atomically, and undoes it (CKP-14, JUN-26).

Each step is durable before the next: the checkpoint (DSC-53); a *prepared* record; the new session
or the lines; the record, which moves the pointer (JUN-24); the event (CKP-2, CKP-11), without text.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from attrs import define, evolve, frozen

from codex_checkpoints.core.agents.codex.history.tokens import of_items
from codex_checkpoints.core.agents.codex.history.windows import Chain
from codex_checkpoints.core.compaction.records import (
    Installed,
    Prepared,
    Record,
    Undone,
    current_compaction,
    digest_of,
    record_of,
    to_value,
)
from codex_checkpoints.core.compaction.replacement_lines import moment_of
from codex_checkpoints.core.fields import Json, object_of, text_of
from codex_checkpoints.core.restore.events import Operation, event_of
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.compaction.request import HookRunner, session_live
from codex_checkpoints.service.compaction.source import (
    CompactionSource,
    Sources,
    appended_lines,
    opened_after,
)
from codex_checkpoints.service.operation import INTERRUPTED, atomic_operation, close, operation_of
from codex_checkpoints.service.records.operation_records import (
    CompactionsOf,
    is_undone,
    storing_compaction,
)
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import Row, UnreadableSource, in_text
from codex_checkpoints.storage.records import Records

logger = logging.getLogger(__name__)

_NOT_IN_EVENT = frozenset({"type", "compactionId", "at", "sessionId", "items", "seed"})


@define
class CompactionWork:
    """A compaction, or its undo, from its first line to its last; `operation.PendingOperation`.

    `records` are the source's, if the caller has them already.
    """

    _sessions: Sessions
    _session_id: str
    _record: Installed | Undone
    _event: Mapping[str, object]
    _records: CompactionsOf | None = None
    published: bool = False

    @property
    def line(self) -> dict[str, object]:
        """Return the facts that the next start of the service needs to finish it."""
        record = to_value(self._record)
        return {"compaction": record, "sessionId": self._session_id, "event": self._event}

    def is_published(self) -> bool:
        """Return whether the new session or window exists."""
        if self.published:
            return True
        with self._locked() as log:
            return _has_happened(self._sessions, self._record, log.records)

    def record(self) -> None:
        """Settle the prepared record, and write the event."""
        with self._locked() as log:
            if log.prepared == self._record:
                log.settle(done=True)
            close(self._sessions.records, self._event, again=not self.published)

    def roll_back(self, code: str) -> bool:
        """Remove the prepared record; the caller writes the event."""
        del code
        record = self._record
        with self._locked() as log:
            if log.prepared == record:
                if isinstance(record, Installed) and record.into == "new":
                    self._sessions.compactions.forget(record.session_id)
                log.settle(done=False)
        return True

    @contextlib.contextmanager
    def _locked(self) -> Generator[CompactionsOf]:
        if self._records is not None:
            yield self._records
        else:
            with self._sessions.compactions.locked(self._session_id) as log:
                yield log


@contextlib.contextmanager
def changing(
    sessions: Sessions, source_id: str, record: Installed | Undone, event: Mapping[str, object]
) -> Generator[CompactionsOf]:
    """Lock the records of a session while a block changes it atomically."""
    with storing_compaction(source_id), sessions.compactions.locked(source_id) as log:
        left = log.prepared
        if left is not None:  # a killed process left it; the next start writes its event
            work = CompactionWork(sessions, source_id, left, {}, log)
            if work.is_published():
                log.settle(done=True)
            else:
                work.roll_back(INTERRUPTED)
        if is_undone(log.records, record.compaction_id):
            raise _conflict(record, "undone", "it was undone already")
        work = CompactionWork(sessions, source_id, record, event, log)
        with atomic_operation(sessions.records, record.compaction_id, work) as prepare:
            prepare(work.line)
            yield log
            work.published = True


def reopened(sessions: Sessions, written: Json) -> CompactionWork | None:
    """Return the compaction in the file of an operation; None if its line cannot be read."""
    record, session_id = record_of(written.get("compaction")), text_of(written.get("sessionId"))
    if session_id is None or not isinstance(record, Installed | Undone):
        return None
    return CompactionWork(sessions, session_id, record, object_of(written.get("event")))


def _has_happened(
    sessions: Sessions, record: Installed | Undone, records: Sequence[Record]
) -> bool:
    """Return whether a session was published, or a window opened, as a record says."""
    match record:
        case Installed(into="new"):
            return sessions.catalogue.refresh_thread(record.session_id) is not None
        case Installed():
            of, window = record, record.windows.after.current
        case Undone(window=None):
            return record in records
        case Undone():
            of = _undone(record, records)
            window = None if record.window is None else record.window.current
    if of is None or window is None:
        return False
    row = sessions.catalogue.refresh_thread(of.source.session_id)
    return row is not None and _opens(sessions, row, of.source.bytes_before, window)


def _opens(sessions: Sessions, row: Row, start: int, window_id: str) -> bool:
    needle = f'"window_id":"{window_id}"'.encode()
    found = False

    def feed(data: bytes) -> int:
        nonlocal found
        found = found or needle in data
        return max(0, len(data) - len(needle))

    try:
        _, rest = sessions.catalogue.reader.read(row.path, start, feed)
    except UnreadableSource:
        return False
    return found or needle in rest


def _undone(record: Undone, records: Sequence[Record]) -> Installed | None:
    made = (each for each in records if isinstance(each, Installed))
    return next((each for each in made if each.compaction_id == record.compaction_id), None)


@frozen
class Events:
    """Makes and writes the events of one compaction."""

    _records: Records
    _moment: Callable[[], datetime]
    _operation: Operation

    @classmethod
    def of(
        cls,
        sessions: Sessions,
        moment: Callable[[], datetime],
        operation_id: str,
        source_id: str,
        turn: Turn | None,
    ) -> Events:
        """Return the events of a compaction; `turn` is the last one of its source."""
        ids = operation_id, None, source_id, None if turn is None else turn.turn_id
        return cls(sessions.records, moment, operation_of(sessions.settings, *ids))

    def event(
        self, kind: str, more: Mapping[str, object], session_id: str | None = None, step: int = 0
    ) -> dict[str, object]:
        """Return an event."""
        operation = evolve(self._operation, session_id=session_id)
        return event_of(kind, in_text(self._moment()), operation, {**more, "step": step})

    @contextlib.contextmanager
    def failing(self) -> Generator[None]:
        """Write the event of a refusal in a block."""
        try:
            yield
        except Refusal as refusal:
            self.note("CompactionFailed", {"code": refusal.code})
            raise

    def note(self, kind: str, more: Mapping[str, object], step: int = 0) -> None:
        """Write an event; a failure stops nothing, since the records hold the same."""
        try:
            self._records.audit.add(self.event(kind, more, step=step))
        except StorageError as error:
            operation_id = self._operation.operation_id
            logger.warning("storage_error: no event of %s: %s", operation_id, error)


def fields_of(record: Installed | Undone) -> dict[str, object]:
    """Return the fields of a compaction, or of its undoing, that its event has."""
    known = to_value(record)
    fields: dict[str, object] = {name: known[name] for name in known if name not in _NOT_IN_EVENT}
    return fields | ({"items": len(record.items)} if isinstance(record, Installed) else {})


@define
class Undoing:
    """Undoes compactions of one home."""

    _sessions: Sessions
    _outside: HookRunner

    def uncompact(self, compaction_id: str) -> Installed:
        """Undo a compaction, durable on return; return its record.

        Refuses `unknown_compaction`, `conflict` if it was undone already or its window is not the
        current one any more, and, in place, `session_live`, `turn_not_complete`,
        `unreadable_source`; `storage_error`.  Raises `Cancelled` before anything is written.
        """
        record = self._sessions.compactions.find(compaction_id)
        if record.into == "new":
            self._point_back(record)
        else:
            self._reopen(record)
        return record

    def _point_back(self, record: Installed) -> None:
        undone = _undone_record(record, self._outside.moment())
        self._sessions.progress.commit()
        with self._changing(record, undone) as log:
            log.add(undone)

    def _reopen(self, record: Installed) -> None:
        sources, of = Sources(self._sessions), record.source
        source = sources.read(of.session_id, cut=of.bytes_before)
        self._check(record, source)
        items = _items(record, source, sources.items_in_front(source))
        at = self._outside.moment()
        window_id, turn_id = self._outside.new_ids(at, 2)
        chain = opened_after(source.traced.history.chain, window_id)
        # The number of items before, and the items added since.
        added = of_items(source.traced.history.items[len(record.items) :])
        size = record.sizes.before.tokens + added
        lines = appended_lines(
            source, items, size, chain, turn_id, moment_of(in_text(at)), undo=True
        )
        undone = _undone_record(record, at, chain)
        self._sessions.progress.commit()
        with self._changing(record, undone, source) as log:
            log.add(Prepared(undone))
            self._sessions.threads.append(source.session_id, lines, at, expected=source.version)

    def _changing(
        self, record: Installed, undone: Undone, source: CompactionSource | None = None
    ) -> AbstractContextManager[CompactionsOf]:
        sessions, source_id = self._sessions, record.source.session_id
        turn = None if source is None else source.last_turn
        events = Events.of(sessions, self._outside.moment, record.compaction_id, source_id, turn)
        event = events.event("CompactionUndone", fields_of(undone), source_id)
        return changing(sessions, source_id, undone, event)

    def _check(self, record: Installed, source: CompactionSource) -> None:
        if source.live:
            raise session_live(source.session_id)
        has_new_items = len(source.traced.history.items) > len(record.items)
        # A turn that was cut off before a forced compaction stays open, and an undo stays possible.
        if has_new_items and not source.ended:
            message = f"the last turn of session {source.session_id} is open"
            raise Refusal("turn_not_complete", message, {"sessionId": source.session_id})
        records = self._sessions.compactions.of(source.session_id)
        if is_undone(records, record.compaction_id):
            raise _conflict(record, "undone", "it was undone already")
        if current_compaction(records, source.session_id) != record:
            raise _conflict(record, "later_compaction", "a later compaction must be undone first")
        if source.traced.history.chain.current not in _windows_of(record, records):
            raise _conflict(record, "later_window", "the session has moved to another window")


def _items(
    record: Installed, source: CompactionSource, before: tuple[Json, ...]
) -> tuple[Json, ...]:
    """Return the history `before` the compaction, and the items added since."""
    now, count = source.traced.history.items, len(record.items)
    same = digest_of(now[:count]) == record.replacement
    if not same or digest_of(before) != record.source.history:
        raise _conflict(record, "other_bytes", "its session file was rewritten since")
    return (*before, *now[count:])


def _windows_of(record: Installed, records: Sequence[Record]) -> set[str | None]:
    """Return the windows in which a compaction is current: its own, and a reopened one (JUN-25)."""
    since = records[records.index(record) + 1 :]
    undone = [each.window for each in since if isinstance(each, Undone)]
    opened = [window.current for window in undone if window is not None]
    return {record.windows.after.current, *opened[-1:]}


def _undone_record(record: Installed, at: datetime, window: Chain | None = None) -> Undone:
    return Undone(record.compaction_id, in_text(at), "user", "requested by the user", window)


def _conflict(record: Installed | Undone, reason: str, words: str) -> Refusal:
    message = f"compaction {record.compaction_id} cannot be undone: {words}"
    facts = {"compactionId": record.compaction_id, "reason": reason}
    return Refusal("conflict", message, facts)
