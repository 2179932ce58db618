"""What lies behind a session that is to leave: its turns, and what the sessions before it tell.

A session that was made of another has none of the lines that led to it.  The turns and the notes of
before are told by those sessions themselves, as far as they are still there, and by the pack that
one of them came in.  In which modes they worked is known to `service/restore/earlier_work`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from codex_checkpoints.core.portable.leaving import note_events
from codex_checkpoints.core.portable.pack import NoteEvent, PackedTurn
from codex_checkpoints.core.restore.chains import MAX_CHAIN
from codex_checkpoints.core.restore.trace import Trace
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.service.beginnings import went_on_from
from codex_checkpoints.service.import_records import ImportRecords
from codex_checkpoints.service.reading.rows import utc
from codex_checkpoints.service.reading.turn_names import has_ended
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.values import frozen


@frozen
class Past:
    """Turns and steps in the history of notes, oldest first."""

    turns: tuple[PackedTurn, ...] = ()
    notes: tuple[NoteEvent, ...] = ()


def chronicle_of(sessions: Sessions, row: Row, last: int) -> Trace:
    """Read a session up to the record `last`; refuses `unreadable_source`."""
    sessions.pace.expect(sessions.catalogue.chains.weight(row))
    trace = Trace(last=last)
    sessions.catalogue.read_with(trace.replay, row)
    return trace


def turns_of(session_id: str, chronicle: Trace) -> tuple[PackedTurn, ...]:
    """Return the turns of a session that are not rolled back."""
    state = chronicle.replay.state

    def end(turn: Turn) -> Literal["completed", "aborted", "open"]:
        if turn.aborted:
            return "aborted"
        return "completed" if has_ended(turn, state) else "open"

    def packed(number: int, turn: Turn) -> PackedTurn:
        began, ended = turn.stamp, chronicle.ended_at(turn)
        return PackedTurn(
            session_id,
            turn.turn_id,
            number,
            None if began is None else utc(began),
            None if ended is None else utc(ended),
            end(turn),
        )

    return tuple(packed(number, turn) for number, turn in enumerate(state.turns.counting(), 1))


def past_of(sessions: Sessions, session_id: str) -> Past:
    """Return what a session came with, which no file of its own tells.

    A pack brought it along, or it stands with the sessions that this one goes on from.  Refuses
    `storage_error`.
    """
    found = [*_pasts(sessions, session_id)]
    return Past(
        tuple(turn for past in reversed(found) for turn in past.turns),
        tuple(note for past in reversed(found) for note in past.notes),
    )


def _pasts(sessions: Sessions, session_id: str) -> Iterator[Past]:
    """Yield what each session on the way up tells, the nearest first."""
    records, seen = sessions.records, set[str]()
    while session_id not in seen and len(seen) < MAX_CHAIN:
        seen.add(session_id)
        arrived = ImportRecords(records).made(session_id)
        if arrived is not None:
            yield Past(arrived.pack.turns, arrived.pack.notes)
            return
        source = went_on_from(records, session_id)
        if source is None:
            return
        session_id, until = source
        if until is not None:
            updates = sessions.projections.updates(session_id)
            notes = note_events(each for each in updates if each.seq <= until)
            yield Past(_turns_until(sessions, session_id, until), notes)


def _turns_until(sessions: Sessions, session_id: str, until: int) -> tuple[PackedTurn, ...]:
    """Return the turns of a session up to a record; none where it is gone or cannot be read."""
    row = sessions.catalogue.current().get(session_id)
    if row is None:
        return ()
    try:
        return turns_of(session_id, chronicle_of(sessions, row, until))
    except Refusal:
        return ()
