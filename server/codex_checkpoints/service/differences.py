"""Compare two turns, of one session or of two (`diff`); both with the file hashes of now.

A marker stands on a turn, and a branch is a session, so both can be compared too.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.outline import Outline, OutlineTurn, outline_of
from codex_checkpoints.core.restore.summary import difference
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.reading.session_file import find_turn
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.values import frozen


@frozen
class TurnPlace:
    """The end of a turn of a session, or the session now (AGN-11)."""

    session: str
    turn: str | int | None


@frozen
class Compared:
    """Two states and their difference; a turn is None for a session as it is now."""

    session_id: str
    from_turn: str | None
    to_session: str
    to_turn: str | None
    found: dict[str, Any]


def compare(sessions: Sessions, before: TurnPlace, after: TurnPlace) -> Compared:
    """Compare two states; refuses `unknown_session`, `unknown_turn`."""
    first, first_turn, one = _at(sessions, before)
    second, second_turn, other = _at(sessions, after)
    return Compared(first, first_turn, second, second_turn, difference(one, other))


def _at(sessions: Sessions, place: TurnPlace) -> tuple[str, str | None, Checkpoint]:
    row, opened = sessions.open(place.session)
    if place.turn is None:
        return row.session_id, None, sessions.projections.current(opened)
    turn = find_turn(opened.now(), place.turn, row.session_id).turn_id
    return row.session_id, turn, sessions.show(place.session, turn).checkpoint


def outline(sessions: Sessions, session: str) -> Outline:
    """Return the outline of a session; refuses as `Sessions.find`, `unreadable_source`."""
    windows = Histories(sessions).windows(session)
    _, opened = sessions.open(session)
    starts = [each.opened_seq for each in windows]
    return outline_of(
        OutlineTurn(
            number,
            turn.turn_id,
            windows[max(0, bisect_right(starts, turn.opened_seq) - 1)].number,
            "" if turn.said is None else turn.said.text,
        )
        for number, turn in enumerate(opened.now().state.turns.counting(), 1)
    )
