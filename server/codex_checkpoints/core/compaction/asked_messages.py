"""Word the requests that are not user messages for a replacement or a pack (NOW-1, NOW-5).

A goal, an approved plan and the task of a helper reach a session outside its user messages, so a
replacement that keeps only those would lose the purpose of the session.
"""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.rollout.asked import Asked, AskedKind
from codex_checkpoints.core.rollout.ours import AGENT_LINE, GOAL_LINE, PLAN_LINE
from codex_checkpoints.core.rollout.turns import Turns


@frozen
class AskedMessage:
    """A request as a message: where it came from, and its whole text under a heading."""

    kind: AskedKind
    text: str


@frozen
class AskedMessages:
    """These requests: those `before` the last user message, and those `after` it."""

    before: tuple[AskedMessage, ...] = ()
    after: tuple[AskedMessage, ...] = ()


def asked_messages(turns: Turns) -> AskedMessages:
    """Return the goal in force, the newest approved plan and the newest task of another agent.

    A goal that has ended is there only where nobody wrote a message: it was the only request.
    """
    typed = [turn.said.seq for turn in turns.counting() if turn.said and turn.said.typed]
    goal = turns.goal
    if goal is not None and not goal.is_in_force and (typed or goal.foreign):
        goal = None
    asked = [each for each in (turns.agent, turns.plan, goal) if each is not None]
    last = max(typed, default=-1)
    return AskedMessages(
        tuple(_worded(each) for each in asked if each.seq < last),
        tuple(_worded(each) for each in asked if each.seq >= last),
    )


def _worded(asked: Asked) -> AskedMessage:
    match asked.kind:
        case "goal":
            head = f"{GOAL_LINE} ({asked.status or 'active'}):"
        case "plan":
            head = PLAN_LINE
        case _:
            head = AGENT_LINE
    return AskedMessage(asked.kind, f"{head}\n\n{asked.text}")
