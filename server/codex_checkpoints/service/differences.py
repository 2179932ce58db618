"""What changed in a session between two turns of it (`diff`)."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.restore.difference import Difference, difference
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.turn_names import find_turn


@frozen
class Compared:
    """Two turns of a session, and what differs between the states at their ends."""

    session_id: str
    from_turn: str
    to_turn: str
    found: Difference


def compare(sessions: Sessions, session: str, before: str | int, after: str | int) -> Compared:
    """Compare the states at the ends of two turns, each with the hashes of now.

    Refuses `unknown_session`, `unknown_turn`.
    """
    row, opened = sessions.open(session)
    replay = opened.now()
    first = find_turn(replay, before, row.session_id).turn_id
    second = find_turn(replay, after, row.session_id).turn_id
    states = (sessions.show(session, turn).checkpoint for turn in (first, second))
    return Compared(row.session_id, first, second, difference(*states))
