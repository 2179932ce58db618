"""Describes one session with its turns."""

from __future__ import annotations

from codex_checkpoints.core.checkpoint.requests import request_in
from codex_checkpoints.core.compaction import token_budget
from codex_checkpoints.service.reading.session_row import problems_of, skipped_of, utc
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import SessionDetail, TurnEntry


def detail_of(sessions: Sessions, session: str) -> SessionDetail:
    """Return one session with its turns; refuses as `Sessions.find`."""
    row, opened = sessions.open(session)
    state = opened.now().state
    return SessionDetail(
        sessions.summaries.of(row),
        tuple(
            TurnEntry(
                turn.turn_id,
                number,
                request_in(turn),
                state.has_ended(turn),
                turn.aborted,
                utc(turn.stamp),
            )
            for number, turn in enumerate(state.turns.counting(), 1)
        ),
        sessions.settings.caps_for(state.model),
        problems_of(row),
        skipped_of(row),
        None,
        token_budget.budget(row.context_window, sessions.named),
        token_budget.outline_budget(sessions.named),
    )
