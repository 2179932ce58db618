"""Takes the requests of a session into its state, and finds its task.

A request is a user message, a goal, an approved plan, a review, or a message of another agent;
`Turns` decides the effect of each on the turns.
"""

from __future__ import annotations

from attrs import evolve

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.titles import PICTURE, title_in
from codex_checkpoints.core.checkpoint.records import (
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    Evidence,
    Task,
)
from codex_checkpoints.core.checkpoint.redaction import cut, redact, value
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.events import Record
from codex_checkpoints.core.requests import (
    LONGEST_ASKED,
    AskedKind,
    Request,
    UserlessRequest,
    heading_of,
    steps_of,
)
from codex_checkpoints.core.turns import Planned, Turn


def take_replaced(state: State, messages: tuple[events.UserMessage, ...], record: Record) -> None:
    """Take the newest message of a replacement that has words, in a file that has no other."""
    for item in messages:
        text = words_of(item, MAX_VALUE_CHARS)
        if text:
            ref = ref_of(item, record.seq)
            order = state.turns.next_order()
            state.turns.replaced = Request([text], ref, record.seq, order, typed=True)
            _title(state, title_of(item), record.seq, in_history=True)
            return


def take_message(state: State, item: events.UserMessage, record: Record) -> None:
    """Take a message that a person typed."""
    text = words_of(item, MAX_VALUE_CHARS)
    _title(state, title_of(item), record.seq, in_history=item.in_history)
    if not record.counts:
        return
    turns, ref = state.turns, ref_of(item, record.seq)
    turn = turns.user_message(
        item.turn_id, record.position, record.seq, record.at, in_history=item.in_history
    )
    turn.messages.append(ref)
    turn.pictured = turn.pictured or item.pictured
    if text:
        plan = turns.approved(text)
        if plan is not None:
            turn.planned = _planned_by(plan, plan.text)
        turns.say(turn, text, ref, record.seq, turns.next_order())


def trust_events(state: State) -> None:
    """Drop the messages of the history: from here on the file marks typed messages."""
    state.typed = True
    if state.first_in_history:
        state.first_text, state.first_in_history = None, False
    state.turns.replaced = None
    plans = state.turns.forget_history()
    state.planned = max((*plans, *filter(None, [state.planned])), key=_order, default=None)


def _order(planned: Planned) -> int:
    return planned.order


def _title(state: State, text: str, seq: int, *, in_history: bool) -> None:
    """Take the first request as the title of the session, a message of the history last.

    A fork that refers to its source takes its own first one, as Codex does.
    """
    is_bare = state.head is not None and state.head.bare  # it has only the history
    is_better = state.first_in_history and not in_history and not is_bare
    is_own = state.head is None or seq >= state.head.forked_at
    is_better = is_better or (is_own and state.first_of_source)
    if text and (state.first_text is None or is_better):
        state.first_text, state.first_in_history = text, in_history
        state.first_of_source = not is_own


def asked_by(state: State, kind: AskedKind, text: str, record: Record) -> UserlessRequest:
    """Return a request that is not a user message."""
    short, whole = value(text, MAX_VALUE_CHARS), cut(redact(text), LONGEST_ASKED)
    return UserlessRequest(
        kind, whole, short, f"seq:{record.seq}", record.seq, state.turns.next_order()
    )


def take_goal(state: State, item: events.GoalSet, record: Record) -> None:
    """Take the current goal; a fork copies records about its source's goal."""
    own = None if state.head is None else state.head.session_id
    if item.objective is None:
        state.turns.set_goal(None)
        return
    foreign = item.thread_id is not None and own is not None and item.thread_id != own
    goal = asked_by(state, "goal", item.objective, record)
    goal = evolve(goal, status=item.status, foreign=foreign)
    state.turns.set_goal(goal)
    if not item.by_call:  # a person set it, and it may be the only start of the session
        _title(state, goal.short, record.seq, in_history=False)


def take_plan(state: State, plan: UserlessRequest, *, approved: bool) -> None:
    """Take a plan; one that a person approved is a request, and has the plan's steps.

    Such a plan is passed on outside any task.
    """
    if not approved:
        state.turns.proposed = plan
        return
    if state.turns.task_open:
        return
    state.turns.ask(plan)
    state.planned = _planned_by(plan, plan.text)
    _title(state, value(heading_of(plan.text), MAX_VALUE_CHARS), plan.seq, in_history=False)


def _planned_by(plan: UserlessRequest, text: str) -> Planned:
    steps = tuple((value(step, MAX_VALUE_CHARS), False) for step in steps_of(text))
    return Planned(steps, plan.ref, plan.seq, plan.order, approved=True)


def take_letter(state: State, item: events.AgentWrote, record: Record) -> None:
    """Take the message of another agent; the result of a subagent is not a request."""
    if item.is_answer:
        return
    agent = None if state.head is None else state.head.agent
    asked = asked_by(state, "agent", item.text or agent or item.recipient, record)
    if item.ref is not None and len(item.ref) <= MAX_URI_CHARS:
        asked = evolve(asked, ref=item.ref)
    state.turns.ask(asked)
    _title(state, asked.short, record.seq, in_history=False)


def ref_of(item: events.UserMessage, seq: int) -> str:
    """Return the reference of a message: its id, else its number."""
    return f"seq:{seq}" if item.ref is None or len(item.ref) > MAX_URI_CHARS else item.ref


def words_of(item: events.UserMessage, limit: int) -> str:
    """Return the text that the person typed, as a value."""
    return value(injected_text.without_payloads(_request_of(item), [])[0], limit)


def _request_of(item: events.UserMessage) -> str:
    parts = [part for part in item.texts if not injected_text.is_image_wrapper(part)]
    return injected_text.request_of("\n".join(parts))


def title_of(item: events.UserMessage) -> str:
    """Return the title that a first message gives its session; empty if it has none."""
    words = injected_text.without_payloads(title_in(_request_of(item)), [])[0]
    return value(words, MAX_VALUE_CHARS) or (PICTURE if item.pictured else "")


def task_of(state: State) -> Task | None:
    """Return the newest request that counts, else the task of the seed (DSC-29)."""
    start = state.seed or state.recovered
    before = None if start is None else start.task
    last = state.turns.task_of(None if before is None else before.text)
    if last is None:
        return before
    return Task(cut(last.text, MAX_VALUE_CHARS), Evidence("user", last.request.ref))


def request_in(turn: Turn) -> str | None:
    """Return the request of a turn, cut like a task; it may be only a picture."""
    if turn.request is None:
        return PICTURE if turn.pictured else None
    return cut(turn.request.text, MAX_VALUE_CHARS)
