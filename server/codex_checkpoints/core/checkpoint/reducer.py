"""State + line -> state: the rules by which a session becomes what we keep of it.

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

from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.state import NAMED, Observation, State
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.items import (
    QUIET,
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
    Unknown,
    UserMessage,
    Worked,
)
from codex_checkpoints.core.rollout.parsing import EVENTS, ITEMS, LINES, RESPONSES, quiet, worked
from codex_checkpoints.core.rollout.reader import NOTED, WORDS, Line, Scale
from codex_checkpoints.core.rollout.turns import Planned, Said, Steps

_EVENTS_BESIDE_ITEMS = frozenset(
    {
        "user_message",
        "patch_apply_end",
        "exec_command_end",
        "mcp_tool_call_end",
        "view_image_tool_call",
    }
)
"""Events that repeat in a paginated file what its items say (ROL-14)."""


class Reducer:
    """The fold over a session's lines that keeps what a checkpoint is made of."""

    def __init__(self, state: State, scale: Scale) -> None:
        """Go on from a state; `scale` is that of the reader."""
        self._state = state
        self._scale = scale

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Return whether a long line is read: most are outputs and images."""
        match kind:
            case None:
                return WORDS
            case "response_item":
                return WORDS if self._wants_response(tag, inner) else NOTED
            case "event_msg":
                return WORDS if self._wants_event(tag, inner) else NOTED
            case _:
                return NOTED if kind == "compacted" or LINES.get(kind) is quiet else WORDS

    def _wants_response(self, tag: str | None, inner: str | None) -> bool:
        if tag is None or tag not in RESPONSES:
            return True
        if self._scale.paginated:
            return tag == "function_call"  # it may be a plan
        if tag == "message":
            return inner is None or (inner == "user" and not self._state.typed)
        return RESPONSES[tag] not in {quiet, worked}

    def _wants_event(self, tag: str | None, inner: str | None) -> bool:
        paginated = self._scale.paginated
        if tag == "item_completed" and inner in ITEMS:
            return paginated and ITEMS[inner] is not quiet
        return EVENTS.get(tag or "") is not quiet and not (
            paginated and tag in _EVENTS_BESIDE_ITEMS
        )

    def take(self, line: Line) -> None:  # noqa: C901, PLR0912 - a case for each kind of item
        """Take the next line."""
        state, item = self._state, line.item
        state.paginated = self._scale.paginated
        if item is QUIET:
            return
        if line.seq < state.own_from and not isinstance(item, TurnContext):
            if isinstance(item, Unknown):
                self._scale.count("unknown_type")
            return
        match item:
            case ToolCall():
                state.worked_at = line.position
                _call(state, item, line)
            case ToolOutput():
                if not state.paginated:
                    _answer(state, item, line)
            case ItemCompleted():
                if state.paginated:
                    _completed(state, item, line)
            case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
                if not state.paginated:
                    _event(state, item, line)
            case UserMessage():
                if not state.paginated:
                    _message(state, item, line)
            case AssistantMessage():
                state.answered_at = line.position
            case Worked():
                state.worked_at = line.position
            case Tokens():
                state.tokens, state.tokens_at = item, line.position
                state.window = state.window if item.window is None else item.window
            case TurnContext():
                state.turn_folder = item.cwd or state.turn_folder
                state.model = state.model if item.model is None else item.model
            case TaskStarted():
                _task_started(state, item)
            case TaskEnded():
                _task_ended(state, item, line)
            case SessionMeta():
                if state.head is None:
                    state.begin(item)
            case RolledBack(turns=turns):
                state.turns.roll_back(turns)
            case Compacted():
                _compacted(state, line)
            case Named(name=name):
                state.name = None if name is None else value(name, MAX_VALUE_CHARS)
            case Unknown():
                self._scale.count("unknown_type")
            case _:
                pass


def _task_started(state: State, item: TaskStarted) -> None:
    state.window = state.window if item.window is None else item.window
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


# --- what people said ----------------------------------------------------------------------------


def _message(state: State, item: UserMessage, line: Line) -> None:
    """Take a message of role user that stands outside an item."""
    state.worked_at = line.position
    if item.in_history:
        if state.typed:
            return
        if state.base is None:
            state.base = _folder_in(item)
    elif not state.typed:
        # From here on events say who typed what; what the history seemed to say is void.
        state.typed = True
        state.first_text = None
        state.planned = _last_plan(state)
        state.turns.forget()
    _said(state, item, item.turn_id, line)


def _folder_in(item: UserMessage) -> str | None:
    """Find the folder of a session that has no other place for it (ROL-16)."""
    import re  # noqa: PLC0415 - for the oldest files alone

    for text in item.texts:
        if "<environment_context>" in text[:256]:
            found = re.compile(r"<cwd>([^<]{1,4096})</cwd>").search(text, 0, 65_536)
            if found is not None:
                return found[1]
    return None


def _last_plan(state: State) -> Planned | None:
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    return plans[-1] if plans else state.planned


def _said(state: State, item: UserMessage, turn_id: str | None, line: Line) -> None:
    """Take a message that may be a person's."""
    from codex_checkpoints.core.rollout import contextual  # noqa: PLC0415 - as `tools`

    by_person = contextual.is_human if item.in_history else contextual.is_typed
    if not by_person(item.texts):
        return
    text = words_of(item, MAX_VALUE_CHARS)
    if state.first_text is None:
        state.first_text = text or None
    if state.naming not in NAMED:
        return
    ref = ref_of(item, line)
    turn = state.turns.user_message(turn_id, line.position, line.seq, line.stamp)
    turn.messages.append(ref)
    if text:
        turn.said = Said(text, ref, line.seq, state.next_order())


def counting(state: State, item: Item) -> Item:
    """Return what counts of an item in a file of this kind (ROL-14).

    A paginated file has items for what happened, an older one has events; where events say what a
    person typed, the messages of the history say nothing.
    """
    match item:
        case ItemCompleted():
            return item.item if state.paginated else QUIET
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            return QUIET if state.paginated else item
        case UserMessage(in_history=in_history):
            return QUIET if state.paginated or (in_history and state.typed) else item
        case _:
            return item


def ref_of(item: UserMessage, line: Line) -> str:
    """Return by what a message is cited: its id, else its number."""
    return f"seq:{line.seq}" if item.ref is None or len(item.ref) > MAX_URI_CHARS else item.ref


def words_of(item: UserMessage, limit: int) -> str:
    """Return what was said, as a value."""
    from codex_checkpoints.core.rollout import contextual  # noqa: PLC0415 - as `tools`

    parts = [part for part in item.texts if not contextual.is_image_wrapper(part)]
    return value(contextual.request_of("\n".join(parts)), limit)


# --- what the model did --------------------------------------------------------------------------


def _completed(state: State, completed: ItemCompleted, line: Line) -> None:
    """Take an item of a paginated file."""
    match completed.item:
        case UserMessage() as item:
            _said(state, item, completed.turn_id, line)
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed() as item:
            state.observe(Observation(_place(state, line), item, shortened=line.shortened))
        case _:
            pass


def _call(state: State, item: ToolCall, line: Line) -> None:
    """Take a call: a plan counts at once, anything else when its outcome comes."""
    from codex_checkpoints.core.rollout import tools  # noqa: PLC0415 - it loads many modules

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
            state.calls.wait(item, len(line.raw))
    else:
        state.calls.wait(item, len(line.raw))


def _plan_call(state: State, steps: Steps | None, call: ToolCall, line: Line) -> None:
    if steps is None:
        state.unread_calls += 1
        return
    kept = tuple((value(text, MAX_VALUE_CHARS), done) for text, done in steps)
    planned = Planned(kept, call.call_id[:MAX_URI_CHARS], line.seq, state.next_order())
    turn = state.turns.at(call.turn_id)
    if turn is None:
        state.planned = planned
    else:
        turn.planned = planned


def _answer(state: State, item: ToolOutput, line: Line) -> None:
    """Take the answer to a call that waits."""
    from codex_checkpoints.core.rollout import tools  # noqa: PLC0415 - it loads many modules

    state.worked_at = line.position
    asked = state.calls.waiting.get(item.call_id)
    if asked is None:
        return
    call, _ = asked
    done = any("Success." in text for text in item.texts)
    if not done and tools.needs_success(call):
        state.calls.end(item.call_id)  # not decided: an event may still say that it was done
        return
    state.calls.decide(item.call_id)
    state.observe(Observation(_place(state, line), call, item.texts, line.shortened))


def _event(
    state: State, item: CommandRun | FilesChanged | ToolRan | FileViewed, line: Line
) -> None:
    """Take an event that says what came of a call, unless its answer came before."""
    if item.call_id and item.call_id in state.calls.decided:
        return
    state.observe(Observation(_place(state, line), item, shortened=line.shortened))
    state.calls.decide(item.call_id)


def _place(state: State, line: Line) -> tuple[int, str | None, str | None]:
    return line.seq, state.turn_folder, state.base
