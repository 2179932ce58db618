"""State + lines -> state: the rules by which a session becomes what we keep of it.

1. The head is the first `session_meta`; later ones are somebody else's (ROL-4).
2. The task is the last message with a text that a person typed in a turn that still counts.
   Where a file tells typed messages apart (items, events), only those are asked; a message of the
   model's history is a person's only where nothing of it is contextual (DSC-29, DSC-30).
3. The plan is the last `update_plan` of a turn that still counts, taken at the call itself.
4. An artifact is what a call with a known outcome met.  It stays observed when its turn is rolled
   back, since the operation did happen (DSC-78).  The later observation gives its kind.
5. The lines that a subagent inherited give none of these.
6. In a file whose second record is a `compacted` one, which is how we make them, the first task
   only names the session for people.

Nothing fails here: an item of a wrong shape was left out when it was parsed.  Hashes of files,
accepted updates and bounds come in where a checkpoint is asked for, in `projection`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.text import looked_at, value
from codex_checkpoints.core.rollout import contextual, tools
from codex_checkpoints.core.rollout.glimpse import (
    call_id_of,
    ends_whole,
    keeps_folder,
    may_patch,
)
from codex_checkpoints.core.rollout.items import (
    AssistantMessage,
    CommandRun,
    Compacted,
    FilesChanged,
    FileViewed,
    Item,
    ItemCompleted,
    Named,
    RolledBack,
    SessionMeta,
    TaskEnded,
    TaskStarted,
    Tokens,
    ToolCall,
    ToolOutput,
    ToolRan,
    TurnContext,
    UserMessage,
    Worked,
)
from codex_checkpoints.core.rollout.lines import Line
from codex_checkpoints.core.rollout.parsing import item_of
from codex_checkpoints.core.rollout.turns import Planned, Said, Steps
from codex_checkpoints.core.rollout.wishes import (
    ANSWER,
    CALL,
    COMPACTED,
    CONTEXT,
    HISTORY,
    OUTPUT,
    PATCH,
    PLAIN_CALL,
    RUN,
    WORK,
)

_CALLS = frozenset({CALL, PLAIN_CALL, PATCH})
_HISTORY_WAITS = frozenset({HISTORY, CONTEXT, ANSWER, WORK})
_CWD = re.compile(r"<cwd>([^<]{1,4096})</cwd>")
_NAMED = frozenset({None, "due", "done"})


def begin(state: State, head: SessionMeta) -> None:
    """Take a head: who the session is and where its paths begin."""
    state.head = head
    state.base = head.cwd
    state.own_from = -1 if head.inherited_below is None else head.inherited_below


def reduce(state: State, lines: Iterable[Line]) -> None:
    """Apply lines to the state, in place."""
    context: Line | None = None
    history: list[Line] = []
    for line in lines:
        wish = line.wish
        if history and wish not in _HISTORY_WAITS:
            _settle_history(state, history, line)
        if line.seq < state.own_from and wish != CONTEXT:
            if isinstance(line.item, TurnContext):
                _take(state, line.item, line)
        elif line.item is not None:
            _take(state, line.item, line)
        elif wish == RUN:
            place = line.seq, state.turn_folder, state.base
            state.observations.tell(place, line.raw)
        elif wish == OUTPUT:
            _answered(state, _call_id(line), line)
        elif wish in _CALLS:
            _call_line(state, line)
        elif wish == CONTEXT:
            key, prefix = state.folder_key, line.prefix
            if key and prefix and keeps_folder(line.data, prefix.end(), line.end, key):
                context = line
            else:
                _take(state, item_of(line.raw), line)
        elif wish == HISTORY:
            history.append(line)
        else:
            _take_newest(state, line)
    _settle_history(state, history, None)
    if context is not None:
        state.hold_context(context.position, context.raw)


# --- lines that were judged by their prefix alone ------------------------------------------------


def _settle_history(state: State, history: list[Line], before: Line | None) -> None:
    """Read the user messages of the model's history, unless they are void by now."""
    said = None if before is None else before.item
    event = isinstance(said, UserMessage) and not said.in_history
    if state.base is None or not (state.typed or event):
        for line in history:
            _take(state, item_of(line.raw), line)
    history.clear()


def _take_newest(state: State, line: Line) -> None:
    if line.wish == ANSWER:
        state.answered_at = max(state.answered_at, line.position)
    elif line.wish == WORK:
        state.worked_at = max(state.worked_at, line.position)
    elif line.wish == COMPACTED and (not line.raw or isinstance(item_of(line.raw), Compacted)):
        # One torn at a brace is none; one longer than a chunk was not kept to be looked at.
        _compacted(state, line)


def _call_line(state: State, line: Line) -> None:
    raw = line.raw
    call_id = _call_id(line) if line.wish == PATCH else call_id_of(raw)
    if call_id is None or call_id in state.calls.waiting:
        # Before it takes another's place it must prove that it is a call at all.
        _take(state, item_of(raw), line)
    else:
        state.worked_at = line.position
        state.calls.wait(call_id, raw, plain=line.wish == PLAIN_CALL and not may_patch(raw))


def _call_id(line: Line) -> str:
    """Return the call id in the prefix of an answer or a patch."""
    prefix = line.prefix
    found = None if prefix is None or prefix.lastindex is None else prefix[prefix.lastindex - 1]
    return (found or b"").decode(errors="replace")


# --- lines that were read ------------------------------------------------------------------------


def _take(state: State, item: Item, line: Line) -> None:
    match item:
        case SessionMeta():
            if state.head is None:
                begin(state, item)
        case TurnContext():
            if item.cwd:
                state.set_folder(item.cwd)
            state.set_model(item.model, line.position)
        case TaskStarted():
            _task_started(state, item, line)
        case TaskEnded():
            _task_ended(state, item, line)
        case RolledBack(turns=turns):
            state.turns.roll_back(turns)
        case UserMessage():
            _user_message(state, item, line)
        case Tokens():
            state.set_tokens(item, line.position)
        case Compacted():
            _compacted(state, line)
        case Named(name=name):
            state.name = None if name is None else _value(name)
        case _:
            _take_work(state, item, line)


def _take_work(state: State, item: Item, line: Line) -> None:
    """Take what the model said or did."""
    match item:
        case AssistantMessage():
            state.answered_at = line.position
        case Worked():
            state.worked_at = line.position
        case ToolCall():
            state.worked_at = line.position
            _call(state, item, line)
        case ToolOutput(call_id=call_id):
            if not state.paginated:
                _answered(state, call_id, line)
        case ItemCompleted(item=inner, turn_id=turn_id):
            if state.paginated:
                _completed(state, inner, turn_id, line)
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            if not state.paginated:
                _event(state, item, line)
        case _:
            pass


def _task_started(state: State, item: TaskStarted, line: Line) -> None:
    state.set_window(item.window, line.position)
    if state.naming == "due":
        state.naming = item.turn_id or ""
        return
    state.turns.task_started(item.turn_id)


def _task_ended(state: State, item: TaskEnded, line: Line) -> None:
    if state.naming not in _NAMED and item.turn_id in {None, state.naming}:
        state.naming = "done"
        return
    state.turns.task_ended(item.turn_id, line.position, line.seq, aborted=item.aborted)


def _compacted(state: State, line: Line) -> None:
    state.compactions += 1
    state.compacted_at = line.position
    if line.position == 2 and state.naming is None:  # noqa: PLR2004 - the second record
        state.naming = "due"


# --- messages ------------------------------------------------------------------------------------


def _user_message(state: State, item: UserMessage, line: Line) -> None:
    if state.paginated:
        return
    state.worked_at = line.position
    if item.in_history:
        if state.typed:
            return
        _environment(state, item)
    elif not state.typed:
        # From here on events tell who typed what; what the history seemed to say is void.
        state.typed = True
        state.first_said = None
        state.planned = _last_plan(state)
        state.turns.forget()
    _said(state, item, item.turn_id, line)


def _environment(state: State, item: UserMessage) -> None:
    """Find the folder of a session that has no other place for it (ROL-16)."""
    if state.base is None:
        for text in item.texts:
            found = _CWD.search(text, 0, 65_536) if "<environment_context>" in text[:256] else None
            if found is not None:
                state.base = found[1]
                return


def _last_plan(state: State) -> Planned | None:
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    return plans[-1] if plans else state.planned


def _said(state: State, item: UserMessage, turn_id: str | None, line: Line) -> None:
    """Take a message that may be a person's."""
    if not contextual.is_human(item.texts):
        return
    ref = item.ref
    if ref is None or len(ref) > MAX_URI_CHARS:
        ref = f"seq:{line.seq}"
    parts = [part for part in item.texts if not contextual.is_image_wrapper(part)]
    text = looked_at(contextual.request_of("\n".join(parts)))
    said = Said(text, ref, line.seq, state.order, _value) if text else None
    if said is not None:
        state.hold(said, len(text))
    if state.first_said is None:
        state.first_said = said
    if state.naming not in _NAMED:
        return
    turn = state.turns.user_message(turn_id, line.position, line.seq, line.stamp)
    turn.messages.append(ref)
    if said is not None:
        state.order += 1
        said.order = state.order
        turn.said = said


def _value(text: str) -> str:
    return value(text, MAX_VALUE_CHARS)


# --- calls and what came of them -----------------------------------------------------------------


def _completed(state: State, item: object, turn_id: str | None, line: Line) -> None:
    """Take an item of a paginated file."""
    match item:
        case UserMessage():
            _said(state, item, turn_id, line)
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
    planned = Planned(steps, call_id, line.seq, state.order, _value)
    state.hold(planned, sum(len(text) for text, _ in steps))
    turn = state.turns.at(call.turn_id)
    if turn is None:
        state.planned = planned
    else:
        turn.planned = planned


def _answered(state: State, call_id: str, line: Line) -> None:
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
