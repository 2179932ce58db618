"""The turns of a session: beginning, end, rollback, and the records of each (rules, "Turns").

The reducer stores the task and the plan of a turn in the turn itself, so that a rollback only
leaves turns out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from attrs import Factory, define, field

Ended = Literal["answered", "aborted", "failed", "open"]
"""How a turn ended."""

_QUESTIONS: Final = frozenset({"?", "\uff1f"})
_CLOSING: Final = " \t\r\n\"'`*_~)]}>\u201d\u2019\u00bb\u300d\u300f\uff09"
"""What may stand behind a question mark: quotes, brackets, marks of Markdown."""


def asks(answer: str) -> bool:
    """Return whether an answer ends with a question (rules, "Digest")."""
    return answer.rstrip(_CLOSING)[-1:] in _QUESTIONS


TASK_ENDS: Final = frozenset({"task_complete", "turn_complete"})
"""The events that end a task; with an `error` it failed."""

Steps = tuple[tuple[str, bool], ...]
"""The steps of a plan in order: text, and whether it is done."""


@define
class LastMessage:
    """The last user message of a turn that has a text: the task, if the turn counts."""

    text: str
    ref: str
    seq: int
    order: int


@define
class Planned:
    """The last plan recorded in a turn."""

    steps: Steps
    call_id: str
    seq: int
    order: int


@define
class Turn:
    """One turn.

    `opened` and `ended` are positions of lines; `ended_seq` is `seq` there.  `messages` are the
    references of its user messages.  `stamp` is the time of the first one, as its line has it.
    `failed`: its task ended with an error; `asks`: its last answer so far ends with a question.
    """

    turn_id: str
    opened: int
    opened_seq: int
    in_task: bool
    ended: int | None = None
    ended_seq: int | None = None
    aborted: bool = False
    rolled_back: bool = False
    messages: list[str] = Factory(list[str])
    said: LastMessage | None = None
    planned: Planned | None = None
    stamp: str | None = None
    failed: bool = False
    asks: bool = False


@define
class Turns:
    """The turns of a session in order, and the task that is running."""

    turns: list[Turn] = Factory(list[Turn])
    aliases: dict[str, int] = Factory(dict[str, int])
    """By the id of a task without a turn of its own: the turn it belongs to."""
    task: str | None = None
    task_open: bool = False
    nameless: int | None = None
    """The turn of a task that has no id."""
    _places: dict[str, int] = field(init=False, factory=dict[str, int])

    def __attrs_post_init__(self) -> None:
        self._places = {turn.turn_id: place for place, turn in enumerate(self.turns)}

    def task_started(self, turn_id: str | None) -> None:
        """Begin a task; its turn begins with its first message."""
        self.task = turn_id
        self.task_open = True
        self.nameless = None

    def task_ended(self, turn_id: str | None, position: int, seq: int, *, aborted: bool) -> None:
        """End a task, and its turn if it has one."""
        ending = turn_id if turn_id is not None else self.task
        place = self._places.get(ending) if ending is not None else self.nameless
        if place is None and aborted and not self.task_open:
            place = self._without_task()
        if place is not None and self.turns[place].ended is None:
            turn = self.turns[place]
            turn.ended, turn.ended_seq, turn.aborted = position, seq, aborted
        elif place is None and ending is not None:
            before = self._last_counting()
            if before is not None:
                self.aliases[ending] = before
        if turn_id is None or turn_id == self.task:
            self.task = self.nameless = None
            self.task_open = False

    def user_message(
        self, turn_id: str | None, position: int, seq: int, stamp: str | None = None
    ) -> Turn:
        """Return the turn of a user message; open one if there is none, or none that counts."""
        named = turn_id if turn_id is not None else self.task if self.task_open else None
        place = self._places.get(named) if named is not None else self.nameless
        if place is not None and not self.turns[place].rolled_back:
            return self.turns[place]
        in_task = named is not None or self.task_open
        turn = Turn(named or f"turn-{seq}", position, seq, in_task, stamp=stamp)
        if named is None and self.task_open:
            self.nameless = len(self.turns)
        self._places[turn.turn_id] = len(self.turns)
        self.turns.append(turn)
        return turn

    def at(self, turn_id: str | None) -> Turn | None:
        """Return the turn that a record belongs to; None before the first turn."""
        for named in (turn_id, self.task):
            if named is None:
                continue
            place = self._places.get(named, self.aliases.get(named))
            if place is not None:
                return self.turns[place]
        place = self._last_counting()
        return None if place is None else self.turns[place]

    def roll_back(self, count: int) -> None:
        """Roll back the newest `count` turns that still count."""
        for turn in reversed(self.turns):
            if count <= 0:
                break
            if not turn.rolled_back:
                turn.rolled_back = True
                count -= 1

    def counting(self) -> Iterator[Turn]:
        """Yield the turns that are not rolled back, in order."""
        return (turn for turn in self.turns if not turn.rolled_back)

    def counts(self, turn_id: str | None) -> bool:
        """Return whether records of this turn count; without a turn they do (DSC-78)."""
        if turn_id is None:
            return True
        place = self._places.get(turn_id, self.aliases.get(turn_id))
        return place is not None and not self.turns[place].rolled_back

    def forget(self) -> None:
        """Drop all turns: the file has a better source for them."""
        self.turns.clear()
        self.aliases.clear()
        self._places.clear()
        self.nameless = None

    def _without_task(self) -> int | None:
        """Return the newest turn if it has no task and has not ended."""
        place = self._last_counting()
        if place is None or self.turns[place].in_task or self.turns[place].ended is not None:
            return None
        return place

    def _last_counting(self) -> int | None:
        newest_first = reversed(range(len(self.turns)))
        return next((place for place in newest_first if not self.turns[place].rolled_back), None)
