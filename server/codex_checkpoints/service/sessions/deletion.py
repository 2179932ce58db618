"""Deletes a session that we made, and records that it is gone (AGN-18).

The user's own turns in it since are deleted only if they agree.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.fields import Json, object_of, text_of
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.service.operation import SingleStep, atomic_operation, operation_of
from codex_checkpoints.service.records.operation_records import RestoreRecords
from codex_checkpoints.service.refusal import Refusal, keeping, reading_file
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import SessionSummary
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.contract import Row

DELETED = "SessionDeleted"
"""The event of a session that was deleted."""


def delete(
    sessions: Sessions,
    session: str,
    *,
    force: bool = False,
    agreed: Callable[[SessionSummary], bool] = lambda _: True,
) -> SessionSummary:
    """Delete a session of ours that nothing refers to; return its last summary.

    Refuses as `ThreadManager.delete`, `has_own_turns` without `force`, and `cancelled` if `agreed`,
    which is asked last, says no.
    """
    row = sessions.own(session)
    was = sessions.summaries.of(row)
    sessions.threads.check_delete(row.session_id)
    own = own_turns(sessions, row)
    if own and not force:
        message = f"session {row.session_id} has turns of your own: {own}"
        hint = f"`codex-checkpoints archive {row.session_id}` puts it away with them."
        facts = {"sessionId": row.session_id, "ownTurns": own, "hint": hint, "canForce": True}
        raise Refusal("has_own_turns", message, facts)
    if not agreed(was):
        raise Refusal("cancelled", "nothing was deleted")
    name = stamps.new_id()
    operation = operation_of(sessions.settings, name, row.session_id, None)
    event = event_of(DELETED, stamps.now(), operation, {"forced": force, "ownTurns": own})
    work = _work(sessions, event)
    with (
        keeping("record of its deletion", row.session_id),
        atomic_operation(sessions.records, name, work) as prepare,
    ):
        prepare({"delete": event})
        try:
            sessions.threads.delete(row.session_id)
        except Refusal as refusal:
            # A process that deletes it meanwhile writes its own event, perhaps after this check.
            # Only a failing disk can leave the file removed by us.
            if refusal.code != "storage_error":
                work.published = False
            raise
        work.published = True
    return was


def own_turns(sessions: Sessions, row: Row) -> int:
    """Return the number of turns, including rolled back ones, that began after our lines.

    A subagent that works for the session counts as one more.  Refuses `unreadable_source`,
    `storage_error`.
    """
    made = RestoreRecords(sessions.records).made(row.session_id)
    # After a compaction, an import or a hard restore we made no turns, so there is nothing to skip.
    start = 0 if made is None else made.branch_bytes or 0
    replay, reader = Replay(), sessions.catalogue.reader
    with reading_file(row):
        reader.read(row.path, 0, replay.feed, start)
        ours = replay.scale.lines
        _, rest = reader.read(row.path, start, replay.feed)
    turns = replay.with_tail(rest).state.turns.turns
    subagents = sum(
        each.parent_session == row.session_id for each in sessions.catalogue.rows().values()
    )
    return sum(turn.opened > ours for turn in turns) + subagents


def _work(sessions: Sessions, event: Json) -> SingleStep:
    session_id = str(event.get("sessionId"))

    def is_deleted() -> bool:
        """Return whether it is gone without an event: otherwise another process deleted it."""
        events = map(object_of, sessions.records.audit.events())
        return sessions.catalogue.refresh_thread(session_id) is None and not any(
            (each.get("type"), each.get("sessionId")) == (DELETED, session_id) for each in events
        )

    return SingleStep(sessions.records, event, is_deleted)


def reopened(sessions: Sessions, written: Json) -> SingleStep | None:
    """Return the deletion that a process recorded; None if its line cannot be read."""
    event = object_of(written.get("delete"))
    return None if text_of(event.get("sessionId")) is None else _work(sessions, event)
