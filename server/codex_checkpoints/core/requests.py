"""Collects the requests of a session: the messages of a turn, and requests without a user message.

A goal, an approved plan, a review and another agent's message reach a session without a user
message.  A turn that works for one of them has it as its request (rules, "Turns").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from attrs import define, frozen

AskedKind = Literal["goal", "plan", "review", "agent"]

GOAL_ENDED: Final = frozenset({"complete", "completed", "cleared"})
"""The states of a goal that is no longer pursued; a paused or a limited one may continue."""

LONGEST_ASKED: Final = 20_000
"""Code points of a request that are kept to be quoted whole."""

SHORT: Final = 20
"""A request of fewer code points only continues an earlier one."""

_THEN: Final = " · then: "
_OF: Final = " — of: "
_LONGEST_JOINED: Final = 1024
"""Code points of a turn's messages that are kept: a task is shorter."""


@frozen
class UserlessRequest:
    """A request that is not a user message.

    `text` is all of it, redacted; `short` is one line, cut as a task.  `status` is the status of a
    goal, as Codex names it.  `order` is its place among the requests of the session.
    """

    kind: AskedKind
    text: str
    short: str
    ref: str
    seq: int
    order: int
    status: str | None = None
    foreign: bool = False
    """Whether it is another thread's goal, whose records this session has copied."""

    @property
    def is_in_force(self) -> bool:
        """Return whether it still counts: a goal until it is complete or cleared."""
        return self.status not in GOAL_ENDED and not self.foreign


@define
class Request:
    """The request of a turn: its messages in order, and the newest of them.

    `of` is the approved plan that was handed over right before the first message.  `typed`: one of
    them is a user message.  `asked` is the kind of the request of a turn without user messages.
    """

    texts: list[str]
    ref: str
    seq: int
    order: int
    of: str | None = None
    typed: bool = False
    asked: AskedKind | None = None

    @property
    def first(self) -> str:
        """Return the message that opened the turn: a later one only steers it."""
        return self.texts[0]

    @property
    def text(self) -> str:
        """Return its messages in one line, uncut."""
        return joined(self, ())[0]

    def steer(self, text: str, ref: str, seq: int, order: int) -> None:
        """Add a message to the turn; one that only repeats the message before it adds no text."""
        is_full = sum(map(len, self.texts[:-1])) > _LONGEST_JOINED
        if is_full:
            self.texts[-1] = text
        elif text != self.texts[-1]:
            self.texts.append(text)
        self.ref, self.seq, self.order = ref, seq, order


def joined(request: Request, earlier: Iterable[str]) -> tuple[str, bool]:
    """Return the text of a turn's request, uncut, and whether it names an earlier one.

    `earlier` are the first messages of the requests before it, newest first.  A short one names the
    newest of `SHORT` code points or more, or the plan that it follows.
    """
    first, *then = request.texts
    of = request.of
    if of is None and len(first) < SHORT:
        of = next((each for each in earlier if len(each) >= SHORT), None)
    named = [_OF, of] if of else []
    return "".join([first, *named, *(_THEN + text for text in then)]), bool(named)


def asked_in(task: str) -> str:
    """Return the request in the text of a task: the one that it continues, or its first message."""
    return (task.partition(_OF)[2] or task).partition(_THEN)[0]


_HEADING: Final = re.compile(r"#{1,6}\s+(.*\S)\s*")
_STEP: Final = re.compile(r"(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(.*\S)\s*")
_IMPLEMENTS: Final = re.compile(r"implement the (?:approved |proposed )?plan\.?", re.IGNORECASE)


def heading_of(plan: str) -> str:
    """Return the first heading of an approved plan, else its first line."""
    lines = [line for line in plan.split("\n") if line.strip()]
    headings = (found[1] for line in lines if (found := _HEADING.fullmatch(line)))
    return next(headings, lines[0] if lines else "")


def steps_of(plan: str) -> list[str]:
    """Return the items of the outermost lists of an approved plan."""
    return [found[1] for line in plan.split("\n") if (found := _STEP.fullmatch(line))]


def implements_plan(message: str) -> bool:
    """Return whether a person approves the preceding plan with this message."""
    return _IMPLEMENTS.fullmatch(message.strip()) is not None
