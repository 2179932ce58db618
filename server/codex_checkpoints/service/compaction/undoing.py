"""Take a compaction back: the pointer moves to the point before it (JUN-25).

A compaction into a new session leaves its source as it was, so a record is enough.  One in place
replaced what Codex sends, and bytes are never removed: there a further window is opened, with the
history as it was, read from the bytes of then, and with whatever was said since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from datetime import datetime

from codex_checkpoints.core.compaction.records import (
    Installed,
    Prepared,
    Record,
    Undone,
    digest_of,
    standing,
)
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.service.compaction.installing import (
    CompactionWork,
    Operation,
    moment,
    settle,
)
from codex_checkpoints.service.compaction.request import Outside, Uncompacted, session_live
from codex_checkpoints.service.compaction.source import Source, Sources, behind, opened_after
from codex_checkpoints.service.compaction_records import CompactionsOf, is_undone, storing
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.undertaking import undertaking
from codex_checkpoints.stamps import in_text


class Undoing:
    """Takes compactions of one home back."""

    def __init__(self, sessions: Sessions, outside: Outside) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._outside = outside
        self._sources = Sources(sessions)

    def uncompact(self, compaction_id: str) -> Uncompacted:
        """Take a compaction back, durable on return.

        Refuses `unknown_compaction`, `conflict` where it was taken back already or its window is no
        longer the current one, and, in place, `session_live`, `turn_not_complete`,
        `unreadable_source`; `storage_error`.  Raises `Cancelled` before anything is written.
        """
        record = self._sessions.compactions.find(compaction_id)
        if record.into == "new":
            self._point_back(record)
        else:
            self._reopen(record)
        source_id = record.source.session_id
        return Uncompacted(compaction_id, source_id, source_id, record.into)

    def _point_back(self, record: Installed) -> None:
        """Add the record alone: the source is as it was."""
        undone = _undone(record, self._outside.moment())
        self._sessions.pace.commit()
        with self._undertaking(record, undone, None) as held:
            held.add(undone)

    def _reopen(self, record: Installed) -> None:
        """Open a further window with the history as it was."""
        source = self._sources.split(record.source.session_id, record.source.bytes_before)
        self._check(record, source)
        items = self._items(record, source)
        at = self._outside.moment()
        window_id, turn_id = self._outside.new_ids(at, 2)
        chain = opened_after(source.traced.history.chain, window_id)
        lines = behind(source, items, chain, turn_id, moment(at))
        undone = _undone(record, at, chain)
        self._sessions.pace.commit()
        with self._undertaking(record, undone, source.last_turn) as held:
            held.add(Prepared(undone))
            self._sessions.threads.append(source.session_id, lines, at, expected=source.look)

    @contextlib.contextmanager
    def _undertaking(
        self, record: Installed, undone: Undone, turn: Turn | None
    ) -> Generator[CompactionsOf]:
        """Hold the records of the source while a block takes a compaction back."""
        sessions, source_id = self._sessions, record.source.session_id
        operation = Operation(sessions, self._outside.moment, record.compaction_id, source_id, turn)
        event = operation.undone(undone, source_id)
        with storing(source_id), sessions.compactions.held(source_id) as held:
            settle(sessions, held)
            if is_undone(held.records, record.compaction_id):
                raise _conflict(record, "undone", "it was taken back already")
            work = CompactionWork(sessions, source_id, undone, event, held)
            with undertaking(sessions.records, record.compaction_id, work) as prepare:
                prepare(work.line)
                yield held
                work.published = True

    def _check(self, record: Installed, source: Source) -> None:
        """Refuse to take back what cannot be, with nothing written."""
        if source.live:
            raise session_live(source.session_id)
        said_since = len(source.traced.history.items) > len(record.items)
        # A turn that was cut off before a forced compaction stays open, and so does the way back.
        if said_since and not source.ended:
            message = f"the last turn of session {source.session_id} is open"
            raise Refusal("turn_not_complete", message, {"sessionId": source.session_id})
        with storing(source.session_id):
            records = self._sessions.compactions.of(source.session_id)
        if is_undone(records, record.compaction_id):
            raise _conflict(record, "undone", "it was taken back already")
        if standing(records, source.session_id) != record:
            raise _conflict(record, "later_compaction", "a later one comes first")
        if source.traced.history.chain.current not in _windows_of(record, records):
            raise _conflict(record, "later_window", "the session is in another window by now")

    def _items(self, record: Installed, source: Source) -> tuple[Json, ...]:
        """Return the history as it was before, with what came since."""
        now, count = source.traced.history.items, len(record.items)
        before = self._sources.items_in_front(source)
        same = digest_of(now[:count]) == record.replacement
        if not same or digest_of(before) != record.source.history:
            raise _conflict(record, "other_bytes", "its session file was written anew since")
        return (*before, *now[count:])


def _windows_of(record: Installed, records: Sequence[Record]) -> set[str | None]:
    """Return the windows in which a compaction stands (JUN-25).

    They are the one that it opened, and the one in which it is there again since the newest of
    those behind it was taken back.
    """
    since = records[records.index(record) + 1 :]
    undone = [each.window for each in since if isinstance(each, Undone)]
    opened = [window.current for window in undone if window is not None]
    return {record.windows.after.current, *opened[-1:]}


def _undone(record: Installed, at: datetime, window: Chain | None = None) -> Undone:
    return Undone(record.compaction_id, in_text(at), "user", "requested by the user", window)


def _conflict(record: Installed, reason: str, words: str) -> Refusal:
    message = f"compaction {record.compaction_id} is not taken back: {words}"
    facts = {"compactionId": record.compaction_id, "reason": reason}
    return Refusal("conflict", message, facts)
