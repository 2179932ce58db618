"""Which turn of a session is meant, where it ends, and whether it has (interfaces, "Turns").

A turn is always named within its session (AGN-11).  How turns come about is known to the core.
"""

from __future__ import annotations

import re

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.service.refusal import Refusal

_NUMBER = re.compile(r"[0-9]{1,9}")


def find_turn(replay: Replay, turn: str | int, session_id: str) -> Turn:
    """Find a turn by its id, or by its number among those not rolled back, from 1.

    Refuses `unknown_turn`.
    """
    turns = replay.state.turns
    for each in turns.turns:
        if each.turn_id == turn:
            return each
    counting = list(turns.counting())
    number = int(turn) if _NUMBER.fullmatch(str(turn)) else 0
    if 1 <= number <= len(counting):
        return counting[number - 1]
    raise unknown_turn(replay, turn, session_id)


def unknown_turn(replay: Replay, turn: str | int, session_id: str) -> Refusal:
    """Return the refusal of a turn that a session does not have."""
    message = f"session {session_id} has no turn {str(turn)[:80]!r}"
    count = len(list(replay.state.turns.counting()))
    facts = {"sessionId": session_id, "turnId": str(turn)[:200], "turns": count}
    return Refusal("unknown_turn", message, facts)


def end_of(turn: Turn, turns: list[Turn]) -> int | None:
    """Return the position of the line that ends a turn, None where it is still open."""
    if turn.ended is not None:
        return turn.ended
    # Without task events, or when it was cut off, a turn lasts up to the next one.
    following = turns[turns.index(turn) + 1 :]
    return following[0].opened - 1 if following else None


def is_between_turns(state: State) -> bool:
    """Return whether nothing more is to come in the session as it stands (JUN-16, JUN-17)."""
    turns = state.turns.turns
    return not state.turns.task_open and (not turns or has_ended(turns[-1], state))


def has_ended(turn: Turn, state: State) -> bool:
    """Return whether nothing more is to come in a turn."""
    if turn.ended is not None or turn.in_task:
        return turn.ended is not None
    # Without task events: when another follows, or when it was answered and nothing is under way.
    answered = state.ends_with_answer and not state.calls.waiting
    return turn is not state.turns.turns[-1] or answered
