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

Nothing fails here: an item of a wrong shape was left out when it was parsed.  What people said is
taken by `messages`, calls and what came of them by `work`: both are loaded with the first line that
needs them, for a short look at a session has none.  Hashes of files, accepted updates and bounds
come in where a checkpoint is asked for, in `projection`.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.state import NAMED, State
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.glimpse import call_id_of, keeps_folder, may_patch
from codex_checkpoints.core.rollout.items import (
    AssistantMessage,
    Compacted,
    Item,
    Named,
    RolledBack,
    SessionMeta,
    TaskEnded,
    TaskStarted,
    Tokens,
    TurnContext,
    UserMessage,
    Worked,
)
from codex_checkpoints.core.rollout.lines import Line
from codex_checkpoints.core.rollout.parsing import item_of
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
            from codex_checkpoints.core.checkpoint.work import take_answer  # noqa: PLC0415

            take_answer(state, _call_id(line), line)
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
            from codex_checkpoints.core.checkpoint.messages import take_message  # noqa: PLC0415

            take_message(state, item, line)
        case Tokens():
            state.set_tokens(item, line.position)
        case Compacted():
            _compacted(state, line)
        case Named(name=name):
            state.name = None if name is None else value(name, MAX_VALUE_CHARS)
        case AssistantMessage():
            state.answered_at = line.position
        case Worked():
            state.worked_at = line.position
        case _:
            from codex_checkpoints.core.checkpoint.work import take_work  # noqa: PLC0415

            take_work(state, item, line)


def _task_started(state: State, item: TaskStarted, line: Line) -> None:
    state.set_window(item.window, line.position)
    if state.naming == "due":
        state.naming = item.turn_id or ""
        return
    state.turns.task_started(item.turn_id)


def _task_ended(state: State, item: TaskEnded, line: Line) -> None:
    if state.naming not in NAMED and item.turn_id in {None, state.naming}:
        state.naming = "done"
        return
    state.turns.task_ended(item.turn_id, line.position, line.seq, aborted=item.aborted)


def _compacted(state: State, line: Line) -> None:
    state.compactions += 1
    state.compacted_at = line.position
    if line.position == 2 and state.naming is None:  # noqa: PLR2004 - the second record
        state.naming = "due"
