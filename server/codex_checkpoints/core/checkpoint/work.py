"""State + calls -> state: what the model asked for, and what came of it.

Which of the forms counts in which file is the business of `reducer`; what a call did is told by
`rollout/tools.py`, and read no sooner than `observations` asks.
"""

from __future__ import annotations

from codex_checkpoints.core.checkpoint import messages
from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.glimpse import ends_whole, may_patch
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    FilesChanged,
    FileViewed,
    Item,
    ItemCompleted,
    ToolCall,
    ToolOutput,
    ToolRan,
    UserMessage,
)
from codex_checkpoints.core.rollout.lines import Line
from codex_checkpoints.core.rollout.parsing import item_of
from codex_checkpoints.core.rollout.turns import Planned, Steps


def take_work(state: State, item: Item, line: Line) -> None:
    """Take what the model did, in any of the forms in which files tell it."""
    match item:
        case ToolCall():
            state.worked_at = line.position
            _call(state, item, line)
        case ToolOutput(call_id=call_id):
            if not state.paginated:
                take_answer(state, call_id, line)
        case ItemCompleted(item=inner, turn_id=turn_id):
            if state.paginated:
                _completed(state, inner, turn_id, line)
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            if not state.paginated:
                _event(state, item, line)
        case _:
            pass


def _completed(state: State, item: object, turn_id: str | None, line: Line) -> None:
    """Take an item of a paginated file."""
    match item:
        case UserMessage():
            messages.said(state, item, turn_id, line)
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            _observe(state, tools.seen_by(item, shortened=line.shortened), line.seq)
        case _:
            pass


def _call(state: State, item: ToolCall, line: Line) -> None:
    """Take a call that was read: a plan counts at once, anything else when its outcome comes."""
    if item.name == "update_plan" and item.namespace is None:
        _plan_call(state, tools.plan_of(item.arguments), item, line)
    elif state.paginated:
        pass
    elif tools.is_script(item):
        reading = tools.read_script(item)
        state.unread_calls += reading.unread
        for steps in reading.plans:
            _plan_call(state, steps, item, line)
        if reading.expected:
            state.calls.wait(item.call_id, line.raw)
    else:
        state.calls.wait(item.call_id, line.raw)


def _plan_call(state: State, steps: Steps | None, call: ToolCall, line: Line) -> None:
    if steps is None:
        state.unread_calls += 1
        return
    state.order += 1
    call_id = call.call_id[:MAX_URI_CHARS]
    planned = Planned(steps, call_id, line.seq, state.order, messages.value_of)
    state.hold(planned, sum(len(text) for text, _ in steps))
    turn = state.turns.at(call.turn_id)
    if turn is None:
        state.planned = planned
    else:
        turn.planned = planned


def take_answer(state: State, call_id: str, line: Line) -> None:
    """Take the answer to a call that waits."""
    state.worked_at = line.position
    calls = state.calls
    asked = calls.waiting.get(call_id)
    if asked is None:
        return
    (call, plain), answer = asked, line.raw
    told = line.item is not None or ends_whole(answer)
    if not told and not isinstance(item_of(answer), ToolOutput):
        return
    failed = not plain and may_patch(call) and b"Success." not in answer
    if failed and tools.needs_success(item_of(call)):
        calls.end(call_id)  # and is not decided: an event may still say that it was done
        return
    calls.end(call_id)
    calls.decide(call_id)
    place = line.seq, state.turn_folder, state.base
    if line.shortened and isinstance(line.item, ToolOutput):
        item = item_of(call)
        if isinstance(item, ToolCall):
            state.observations.add(place, tools.called(item, line.item.texts, shortened=True))
    else:
        state.observations.tell(place, call, answer, plain=plain)


def _event(
    state: State, item: CommandRun | FilesChanged | ToolRan | FileViewed, line: Line
) -> None:
    """Take an event that tells what came of a call, unless its answer came before."""
    if item.call_id and item.call_id in state.calls.decided:
        return
    state.calls.end(item.call_id)
    _observe(state, tools.seen_by(item, shortened=line.shortened), line.seq)
    state.calls.decide(item.call_id)


def _observe(state: State, seen: tuple[tools.Seen, ...], seq: int) -> None:
    state.observations.add((seq, state.turn_folder, state.base), seen)
