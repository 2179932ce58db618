"""Makes messages for a replacement or a pack from other requests (NOW-1, NOW-5).

A goal, an approved plan and the task of a helper reach a session outside its user messages, so a
replacement that keeps only those would lose the purpose of the session.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from codex_checkpoints.core.agents.codex.own_messages import AGENT_LINE, GOAL_LINE, PLAN_LINE
from codex_checkpoints.core.requests import AskedKind, UserlessRequest
from codex_checkpoints.core.turns import Turns


@frozen
class AskedMessage:
    """A request as a message: its origin, the heading, and the whole request.

    `followed_by` is the number of user messages after it.
    """

    kind: AskedKind
    heading: str
    asked: str
    followed_by: int

    @property
    def text(self) -> str:
        """Return the text of the message."""
        return f"{self.heading}\n\n{self.asked}"


@frozen
class AskedMessages:
    """These requests, the oldest first.

    `has_goal`: the session has a goal, or had one; an earlier replacement's message about it is
    old.
    """

    messages: tuple[AskedMessage, ...] = ()
    has_goal: bool = False


_GOAL: Final = re.compile(rf"{GOAL_LINE} \([^()\n]{{1,64}}\):\n\n")


def names_goal(text: str) -> bool:
    """Return whether a message is one of those below, about a goal."""
    return _GOAL.match(text) is not None


def asked_messages(turns: Turns) -> AskedMessages:
    """Return the goal in force, the newest approved plan and the newest task of another agent.

    A goal that has ended is included only without user messages: it was the only request.
    """
    typed = [turn.request for turn in turns.counting() if turn.request and turn.request.typed]
    goal = turns.goal
    has_goal = goal is not None and not goal.foreign
    if goal is not None and not goal.is_in_force and (typed or goal.foreign):
        goal = None
    asked = [each for each in (turns.agent, turns.plan, goal) if each is not None]
    asked.sort(key=lambda each: each.seq)
    messages: list[AskedMessage] = []
    for each in asked:
        later = sum(len(request.texts) for request in typed if request.seq > each.seq)
        messages.append(AskedMessage(each.kind, _heading(each), each.text, later))
    return AskedMessages(tuple(messages), has_goal)


def _heading(asked: UserlessRequest) -> str:
    match asked.kind:
        case "goal":
            return f"{GOAL_LINE} ({asked.status or 'active'}):"
        case "plan":
            return PLAN_LINE
        case _:
            return AGENT_LINE
