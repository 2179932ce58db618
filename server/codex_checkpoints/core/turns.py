"""Decides where a turn begins, which task belongs to it, its request and its end.

Every rule about turns is here (rules, "Turns"), for tasks too (rules, "Task").  A session's events
are reported to `Turns` in order.  A turn keeps its own task and plan, so that a rollback only
leaves turns out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from attrs import Factory, define, evolve, field, frozen

from codex_checkpoints.core.events import Steps
from codex_checkpoints.core.requests import (
    SHORT,
    Request,
    UserlessRequest,
    asked_in,
    implements_plan,
    joined,
)

Ended = Literal["answered", "aborted", "failed", "open"]
"""How a turn ended."""

_QUESTIONS: Final = frozenset({"?", "\uff1f"})
_CLOSING: Final = " \t\r\n\"'`*_~)]}>\u201d\u2019\u00bb\u300d\u300f\uff09"
"""Characters that may follow a question mark: quotes, brackets, marks of Markdown."""


def asks(answer: str) -> bool:
    """Return whether an answer ends with a question mark (rules, "Digest")."""
    return answer.rstrip(_CLOSING)[-1:] in _QUESTIONS


NO_REASON: Final = "no answer, and Codex recorded no reason"
"""The reason of a turn that ended without an answer and without an error."""


@define
class Planned:
    """The last plan recorded in a turn; `approved`: by a person, so `call_id` names its record."""

    steps: Steps
    call_id: str
    seq: int
    order: int
    approved: bool = False


@define
class Typed:
    """The requests of a turn without the messages that only the history records."""

    messages: list[str]
    request: Request | None


@define
class Turn:
    """One turn.

    `opened` and `ended` are positions of lines; `ended_seq` is `seq` there.  `messages` are the
    references of its requests.  `stamp` is the time of the first one, as its line has it.  `spoke`:
    it has an answer; `answered`: a final one follows its last call; `asks`: the final answer ends
    with a question.  `reason` says why it failed, or its last error.  `by_user`: a rollback counts
    it.  `from_history`: only the model's history records it.  `pictured`: a message has a picture.
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
    request: Request | None = None
    planned: Planned | None = None
    stamp: str | None = None
    failed: bool = False
    reason: str | None = None
    spoke: bool = False
    answered: bool = False
    asks: bool = False
    by_user: bool = True
    from_history: bool = False
    pictured: bool = False
    typed: Typed | None = None
    """Its requests before messages of the history steered it."""


@frozen
class TaskText:
    """The request that is the task, and its text, uncut.

    `may_name_more`: it is short, and no earlier request is known that it continues.
    """

    request: Request
    text: str
    may_name_more: bool


@define
class _Task:
    """The running task: where it began, and the known facts of its turn.

    `asked`: something other than a user message began it; `for_goal`: it goes on with the goal,
    None if that is not known.  `spoke`: the model answered in it, which may also be the summary
    of a compaction.  `reason` is an error before its turn began.
    """

    turn_id: str | None = None
    position: int = 0
    seq: int = 0
    stamp: str | None = None
    asked: bool = False
    for_goal: bool | None = None
    spoke: bool = False
    reason: str | None = None


@define
class Turns:
    """The turns of a session in order, the running task, and the other requests."""

    turns: list[Turn] = Factory(list[Turn])
    aliases: dict[str, int] = Factory(dict[str, int])
    """By the id of a task without a turn of its own: the turn it belongs to."""
    parents: dict[str, str] = Factory(dict[str, str])
    """By the id of a task: the turn of this session that it is a part of."""
    running: _Task | None = None
    nameless: int | None = None
    """The turn of a task that has no id."""
    goal: UserlessRequest | None = None
    plan: UserlessRequest | None = None
    agent: UserlessRequest | None = None
    """The newest goal, approved plan, and message of another agent."""
    unused: list[UserlessRequest] = Factory(list[UserlessRequest])
    """Plans, reviews and messages of agents that no turn has taken as its request yet."""
    proposed: UserlessRequest | None = None
    """The plan that the agent proposed last, until a person approves it."""
    replaced: Request | None = None
    """The newest user message of a replacement, in a file that has no other."""
    review: str | None = None
    """The task of the newest review, if the record that begins the review names it."""
    reviewing: bool = False
    """Whether a review has begun, and the task of its reviewer has not."""
    reviewer: str | None = None
    """The turn of the newest review whose reviewer has a task of its own."""
    order: int = 0
    _places: dict[str, int] = field(init=False, factory=dict[str, int])

    def __attrs_post_init__(self) -> None:
        self._places = {turn.turn_id: place for place, turn in enumerate(self.turns)}

    # --- reports of lines -------------------------------------------------------------------------

    def task_started(  # noqa: PLR0913 - the fields of the record
        self,
        turn_id: str | None,
        position: int = 0,
        seq: int = 0,
        stamp: str | None = None,
        *,
        parent: str | None = None,
        for_goal: bool | None = None,
    ) -> None:
        """Begin a task; its turn begins with its first message, or when the model works."""
        if self.reviewing and parent is None:  # older files do not name it there
            parent = self.review or self._reviewing_task()
        if turn_id is not None and parent is not None and parent != turn_id:
            self.parents[turn_id] = self.parents.get(parent, parent)
        if self.reviewing:
            self.reviewing, self.reviewer = False, self._turn_of(turn_id)
        task = _Task(self._turn_of(turn_id), position, seq, stamp, for_goal is True, for_goal)
        self.running = task
        self.nameless = None

    def task_ended(  # noqa: PLR0913 - the fields of the record
        self,
        turn_id: str | None,
        position: int,
        seq: int,
        *,
        aborted: bool,
        answered: bool = False,
        reason: str | None = None,
    ) -> None:
        """End a task, and its turn if it has one; `answered`: the record holds the answer."""
        if turn_id in self.parents:
            return  # it ends with the turn that it is a part of
        self.reviewing = False
        turn_id = self._ended_review(turn_id)
        ending = turn_id if turn_id is not None else self.task
        is_running = turn_id is None or turn_id == self.task
        if self.running is not None and is_running and self.running.spoke and not aborted:
            self._open_for_request()
        place = self._places.get(ending) if ending is not None else self.nameless
        if place is None and aborted and self.running is None:
            place = self._without_task()
        if place is not None and self.turns[place].ended is None:
            turn = self.turns[place]
            turn.ended, turn.ended_seq, turn.aborted = position, seq, aborted
            turn.failed = not aborted and (reason is not None or not (answered or turn.answered))
            turn.reason = (reason or turn.reason or NO_REASON) if turn.failed else None
        elif place is None and ending is not None:
            before = self._last_counting()
            if before is not None:
                self.aliases[ending] = before
        if is_running:
            self.running = self.nameless = None

    def user_message(
        self,
        turn_id: str | None,
        position: int,
        seq: int,
        stamp: str | None = None,
        *,
        in_history: bool = False,
    ) -> Turn:
        """Return the turn of a user message; open one if there is none, or none that counts."""
        named = self._turn_of(turn_id) or self.task
        place = self._places.get(named) if named is not None else self.nameless
        if place is not None and not self.turns[place].rolled_back:
            return self._steered(self.turns[place], in_history=in_history)
        in_task = named is not None or self.running is not None
        turn = Turn(named or f"turn-{seq}", position, seq, in_task, stamp=stamp)
        turn.from_history = in_history
        return self._open(turn)

    def _steered(self, turn: Turn, *, in_history: bool) -> Turn:
        """Return the turn that a further message steers; turns of the history may be dropped."""
        turn.by_user = True
        if in_history and not turn.from_history and turn.typed is None:
            request = turn.request and evolve(turn.request, texts=[*turn.request.texts])
            turn.typed = Typed([*turn.messages], request)
        return turn

    def say(self, turn: Turn, text: str, ref: str, seq: int, order: int) -> None:
        """Add the text of a user message to its turn; a review repeats it in fewer words."""
        if turn.request is None or (turn.request.asked == "review" and not turn.request.typed):
            turn.request = Request([text], ref, seq, order, self._new_plan(), typed=True)
            self.unused.clear()
        else:
            turn.request.steer(text, ref, seq, order)
            turn.request.typed = True

    def ask(self, asked: UserlessRequest, turn_id: str | None = None) -> None:
        """Take a plan, a review or a message of another agent, for the turn that works on it.

        `turn_id` is the task of a review.
        """
        if asked.kind == "plan":
            self.plan = asked
        elif asked.kind == "agent":
            self.agent = asked
        self.reviewing, self.review = asked.kind == "review", turn_id
        self.unused.append(asked)
        del self.unused[:-_MOST_UNUSED]
        if self.running is not None:
            self.running.asked = True
            if asked.kind != "plan":  # it opens its turn as a user message does
                self._open_for_request()

    def approved(self, message: str) -> UserlessRequest | None:
        """Return the proposed plan that a user message approves; it is a request from now on."""
        plan = self.proposed
        if plan is None or not implements_plan(message):
            return None
        self.proposed = None
        plan = evolve(plan, order=self.next_order())
        self.ask(plan)
        return plan

    def set_goal(self, goal: UserlessRequest | None) -> bool:
        """Take the goal as it is now, None when it is cleared; return whether it is a request.

        It is one when it is new or takes effect again; other changes keep its place.
        """
        known = self.goal
        if goal is None:
            self.goal = known and evolve(known, status="cleared")
            return False
        resumed = goal.status == "active" and known is not None and known.status != "active"
        if known is not None and known.text == goal.text and not resumed:
            self.goal = evolve(known, status=goal.status)
            return False
        self.goal = goal
        return known is None or known.text != goal.text

    def goal_continues(self) -> None:
        """Note that the running task works for the goal."""
        if self.running is not None:
            self.running.asked = self.running.for_goal = True

    def called(self) -> None:
        """Note a call of the model: work, so a task without a turn gets one."""
        self._worked(opens=True)

    def thought(self) -> None:
        """Note reasoning of the model: a compaction makes it think as well."""
        self._worked(opens=False)

    def spoke(self, turn_id: str | None, text: str | None, *, final: bool) -> None:
        """Note a message of the model; `text` is None if it was not read."""
        self._worked(opens=False)
        if self.running is not None:
            self.running.spoke = True
        turn = self.at(turn_id) if text is None or text else None
        if turn is not None and turn.ended is None and final:
            turn.spoke, turn.answered, turn.reason = True, True, None
            turn.asks = text is not None and asks(text)

    def failed(self, reason: str) -> None:
        """Note an error; the turn continues if Codex tries again."""
        turn = self._running_turn()
        if turn is not None and turn.ended is None:
            turn.reason = reason
        elif self.running is not None:
            self.running.reason = reason

    def compacted(self) -> None:
        """Note a compaction: the model's messages before it in its task were the summary."""
        if self.running is None:
            return
        self.running.spoke = False
        turn = self._running_turn()
        if turn is not None and turn.ended is None:
            turn.answered = False

    def roll_back(self, count: int) -> None:
        """Roll back the newest `count` turns of a user, and the others after them."""
        for turn in reversed(self.turns):
            if count <= 0:
                break
            if not turn.rolled_back:
                turn.rolled_back = True
                count -= turn.by_user

    def forget_history(self) -> list[Planned]:
        """Drop the turns that only the history records; return the plans recorded in them.

        The file has a better source for user messages.
        """
        gone = [turn for turn in self.turns if turn.from_history]
        kept = [turn for turn in self.turns if not turn.from_history]
        names = {place: turn.turn_id for place, turn in enumerate(self.turns)}
        for turn in kept:
            if turn.typed is not None:
                turn.messages, turn.request = turn.typed.messages, turn.typed.request
                turn.by_user, turn.typed = False, None
        self.turns[:] = kept
        self._places = {turn.turn_id: place for place, turn in enumerate(kept)}
        moved = {alias: self._places.get(names[place]) for alias, place in self.aliases.items()}
        self.aliases = {alias: place for alias, place in moved.items() if place is not None}
        self.nameless = None
        return [turn.planned for turn in gone if turn.planned and not turn.rolled_back]

    # --- answers to folds -------------------------------------------------------------------------

    def next_order(self) -> int:
        """Return the next number in the order of requests and plans."""
        self.order += 1
        return self.order

    @property
    def task(self) -> str | None:
        """Return the turn id of the running task."""
        return None if self.running is None else self.running.turn_id

    @property
    def task_open(self) -> bool:
        """Return whether a task is running."""
        return self.running is not None

    @property
    def may_be_for_goal(self) -> bool:
        """Return whether there is a goal, and a task is running that has no turn yet."""
        is_new = self.running is not None and not self.running.asked
        return is_new and self.goal is not None and self._running_turn() is None

    @property
    def has_messages(self) -> bool:
        """Return whether a user message was read."""
        return any(turn.request is not None and turn.request.typed for turn in self.turns)

    def at(self, turn_id: str | None) -> Turn | None:
        """Return the turn that a record belongs to; None before the first turn."""
        for named in (self._turn_of(turn_id), self.task):
            if named is None:
                continue
            place = self._places.get(named, self.aliases.get(named))
            if place is not None:
                return self.turns[place]
        place = self._last_counting()
        return None if place is None else self.turns[place]

    def counting(self) -> Iterator[Turn]:
        """Yield the turns that are not rolled back, in order."""
        return (turn for turn in self.turns if not turn.rolled_back)

    def counts(self, turn_id: str | None) -> bool:
        """Return whether records of this turn count; without a turn they do (DSC-78)."""
        named = self._turn_of(turn_id)
        if named is None:
            return True
        place = self._places.get(named, self.aliases.get(named))
        return place is not None and not self.turns[place].rolled_back

    def task_of(self, before: str | None = None) -> TaskText | None:
        """Return the request that is the task (DSC-29).

        `before` is the task of the session that this one continues.

        A goal in force or an approved plan is the task if it is newer than the last user message.
        Otherwise the newest turn of a user is.  Without user messages, the newest request is.
        """
        requests = [turn.request for turn in self.counting() if turn.request is not None]
        typed = [each for each in requests if each.typed] or requests
        last = max(typed, key=lambda one: one.order, default=self.replaced)
        goal = self._goal_as_task(requests)
        plan = None if self.plan is None else _alone(self.plan, self.plan.order)
        newest = max(
            (each for each in (last, goal, plan) if each is not None),
            key=lambda one: one.order,
            default=None,
        )
        if newest is None:
            return None
        if newest is not last:
            return TaskText(newest, newest.first, may_name_more=False)
        earlier = [
            each for each in requests if each.order < newest.order and each.asked != "review"
        ]
        earlier.sort(key=lambda one: -one.order)
        firsts = [each.first for each in earlier]
        text, is_named = joined(newest, firsts if before is None else [*firsts, asked_in(before)])
        return TaskText(newest, text, may_name_more=not is_named and len(newest.first) < SHORT)

    def other_requests(self) -> tuple[UserlessRequest, ...]:
        """Return the requests that are not user messages and still count, oldest first.

        They are the goal until it ends, the newest approved plan, and the newest message of another
        agent.  A compaction or a restore has to carry them beside the user's messages.
        """
        known = (self.goal, self.plan, self.agent)
        still = (each for each in known if each is not None and each.is_in_force)
        return tuple(sorted(still, key=lambda each: each.order))

    def has_ended(self, turn: Turn, *, answered: bool) -> bool:
        """Return whether a turn has ended; `answered`: an answer comes last and no call waits."""
        if turn.ended is not None or turn.in_task:
            return turn.ended is not None
        # Without task events a turn has ended when another follows, or when it was answered.
        return turn is not self.turns[-1] or answered

    def ended(self, turn: Turn, *, answered: bool) -> Ended:
        """Return how a turn ended, as `has_ended`; one that was cut off is `open` nevertheless."""
        if turn.aborted:
            return "aborted"
        if turn.failed:
            return "failed"
        if turn.ended is not None:
            return "answered"
        if not self.has_ended(turn, answered=answered):
            return "open"
        if turn.reason is not None:
            return "failed"
        # A turn that went on after its last answer was cut off.
        return "open" if turn.spoke and not turn.answered else "answered"

    # --- implementation ---------------------------------------------------------------------------

    def _goal_as_task(self, requests: list[Request]) -> Request | None:
        """Return the goal in force as a request, as new as the newest turn that works for it."""
        goal = self.goal
        if goal is None or not goal.is_in_force:
            return None
        turns = (each.order for each in requests if not each.typed and each.ref == goal.ref)
        return _alone(goal, max(turns, default=goal.order))

    def _new_plan(self) -> str | None:
        """Return the approved plan if no request came after it."""
        plan = self.plan
        orders = (turn.request.order for turn in self.turns if turn.request is not None)
        return None if plan is None or max(orders, default=0) > plan.order else plan.short

    def _reviewing_task(self) -> str | None:
        """Return the running task if a review began it."""
        turn = self._running_turn()
        is_review = turn is not None and turn.request is not None and turn.request.asked == "review"
        return self.task if is_review else None

    def _ended_review(self, turn_id: str | None) -> str | None:
        """Return the turn of a task that ends: in older files the task of a review only ends."""
        place = None if self.reviewer is None else self._places.get(self.reviewer)
        is_known = turn_id == self.task or turn_id in self._places or turn_id in self.aliases
        if turn_id is None or is_known or place is None or self.turns[place].ended is not None:
            return turn_id
        self.aliases[turn_id] = place
        self.reviewer, reviewer = None, self.reviewer
        return reviewer

    def _turn_of(self, turn_id: str | None) -> str | None:
        """Return the id of the turn that a task belongs to: its own, or its parent's."""
        return turn_id if turn_id is None else self.parents.get(turn_id, turn_id)

    def _running_turn(self) -> Turn | None:
        """Return the turn of the running task, else the last turn that has no task."""
        place = self.nameless
        if self.task is not None:
            place = self._places.get(self.task)
        if place is None and self.running is None:
            place = self._without_task()
        return None if place is None else self.turns[place]

    def _worked(self, *, opens: bool) -> None:
        """Note work of the model; a request opens the turn, or else a call (`opens`)."""
        if self.running is not None and (opens or self.running.asked):
            self._open_for_request()
        turn = self._running_turn()
        if turn is not None and turn.ended is None and opens:
            turn.answered, turn.reason = False, None

    def _open_for_request(self) -> None:
        """Open the turn of the running task, if it has none, for a request that is not typed."""
        running = self.running
        if running is None or self._running_turn() is not None:
            return
        turn_id = running.turn_id or f"turn-{running.seq}"
        turn = Turn(turn_id, running.position, running.seq, in_task=True, stamp=running.stamp)
        asked = self._asked_now()
        turn.by_user = asked is not None and asked.kind == "agent"
        self._open(turn)
        if asked is not None:
            turn.messages.append(asked.ref)
            turn.request = _alone(asked, self.next_order())
        elif self.replaced is not None:
            turn.request = evolve(
                self.replaced, texts=[*self.replaced.texts], order=self.next_order()
            )
        self.unused.clear()

    def _asked_now(self) -> UserlessRequest | None:
        """Return the request of a task without a user message."""
        by_kind = {each.kind: each for each in self.unused}
        if (review := by_kind.get("review")) is not None:
            return review
        for_goal = None if self.running is None else self.running.for_goal
        if self.goal is not None and for_goal is None:
            for_goal = self.goal.status == "active"
        if self.goal is not None and for_goal:
            return self.goal
        return by_kind.get("plan") or by_kind.get("agent")

    def _open(self, turn: Turn) -> Turn:
        running = self.running
        if running is not None:
            turn.reason, running.reason = running.reason, None
            if running.turn_id is None:
                self.nameless = len(self.turns)
        self._places[turn.turn_id] = len(self.turns)
        self.turns.append(turn)
        return turn

    def _without_task(self) -> int | None:
        """Return the newest turn if it has no task and has not ended."""
        place = self._last_counting()
        if place is None or self.turns[place].in_task or self.turns[place].ended is not None:
            return None
        return place

    def _last_counting(self) -> int | None:
        newest_first = reversed(range(len(self.turns)))
        return next((place for place in newest_first if not self.turns[place].rolled_back), None)


_MOST_UNUSED: Final = 16


def _alone(asked: UserlessRequest, order: int) -> Request:
    """Return a request that is not a user message."""
    return Request([asked.short], asked.ref, asked.seq, order, asked=asked.kind)
