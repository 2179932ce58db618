"""The states that `diff` compares, with the file hashes of now, and the outline of a session."""

from __future__ import annotations

from bisect import bisect_right

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.offering import (
    Outline,
    OutlineTurn,
    outline_budget,
    outline_of,
)
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.reading.session_file import find_turn
from codex_checkpoints.service.sessions import Sessions


def state_at(
    sessions: Sessions, session: str, turn: str | int | None
) -> tuple[str, str | None, Checkpoint]:
    """Return the state at the end of a turn or now (AGN-11), with the ids of session and turn."""
    row, opened = sessions.open(session)
    if turn is None:
        return row.session_id, None, sessions.projections.current(opened)
    found = find_turn(opened.now(), turn, row.session_id).turn_id
    return row.session_id, found, sessions.show(session, found).checkpoint


def outline(sessions: Sessions, session: str) -> Outline:
    """Return the outline of a session; refuses as `Sessions.find`, `unreadable_source`."""
    windows = Histories(sessions).windows(session)
    _, opened = sessions.open(session)
    starts = [each.opened_seq for each in windows]
    turns = (
        OutlineTurn(
            number,
            turn.turn_id,
            windows[max(0, bisect_right(starts, turn.opened_seq) - 1)].number,
            "" if turn.said is None else turn.said.text,
        )
        for number, turn in enumerate(opened.now().state.turns.counting(), 1)
    )
    return outline_of(turns, outline_budget(sessions.named))
