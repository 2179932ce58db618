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

Nothing fails here: an item of a wrong shape was left out by `items`.  Hashes of files, accepted
updates and bounds come in where a checkpoint is asked for, in `checkpoint_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
import attrs
from attrs import Factory, define

from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS, Limits
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.observations import Observations
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Evidence,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import contextual, items, tools
from codex_checkpoints.core.rollout.items import (
    AssistantMessage,
    CommandRun,
    Compacted,
    FilesChanged,
    FileViewed,
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
    parse,
)
from codex_checkpoints.core.rollout.lines import Line, Wish
from codex_checkpoints.core.rollout.tools import Seen
from codex_checkpoints.core.rollout.turns import Planned, Said, Turns

_PENDING = 1024
"""How many calls may wait for their outcome; the oldest is given up."""

_DECIDED = 4096
"""How many calls with a known outcome are remembered, so that later records change nothing."""

_PENDING_BYTES = 1 << 23
"""How many bytes of calls may wait."""

_CWD = re.compile(r"<cwd>([^<]{1,4096})</cwd>")


@define
class State:
    """Everything the reducer knows of a session after some of its lines."""

    head: SessionMeta | None = None
    base: str | None = None
    typed: bool = False
    """Whether typed messages were found, so that the model's history is no longer asked."""
    model: str | None = None
    name: str | None = None
    first_text: str | None = None
    turn_folder: str | None = None
    turns: Turns = Factory(Turns)
    planned: Planned | None = None
    """A plan recorded before the first turn."""
    observations: Observations = Factory(Observations)
    pending: dict[str, bytes] = Factory(dict)
    """Calls that wait for their outcome: the line of the call, read when the outcome is there."""
    decided: dict[str, None] = Factory(dict)
    compactions: int = 0
    tokens: Tokens | None = None
    tokens_stale: bool = False
    window: int | None = None
    naming: str | None = None
    """`due` until the naming task of a file of ours begins, then its id, then `done`."""
    order: int = 0
    unread_calls: int = 0
    ends_with_answer: bool = False
    """In files without task events: whether the last response item closes the turn."""
    context_line: bytes | None = None
    tokens_line: bytes | None = None


def reduce(state: State, line: Line) -> None:
    """Apply one line to the state, in place."""
    if line.item is None:
        _lazy(state, line)
        return
    item = line.item
    head = state.head
    if head is not None and head.inherited_below is not None and line.seq < head.inherited_below:
        if isinstance(item, TurnContext):
            _turn_context(state, item)
        return
    match item:
        case SessionMeta():
            if state.head is None:
                begin(state, item)
        case TurnContext():
            _turn_context(state, item)
        case TaskStarted():
            _task_started(state, item)
        case TaskEnded():
            _task_ended(state, item, line)
        case RolledBack(turns=turns):
            state.turns.roll_back(turns)
        case UserMessage():
            _user_message(state, item, line)
        case ItemCompleted(item=inner, turn_id=turn_id):
            if _paginated(state):
                _completed(state, inner, turn_id, line)
        case Tokens():
            _tokens(state, item)
        case Compacted():
            state.compactions += 1
            state.tokens_stale = True
            if line.position == 2 and state.naming is None:  # noqa: PLR2004 - the second record
                state.naming = "due"
        case Named(name=name):
            state.name = name
        case ToolCall():
            _call(state, item, line)
        case AssistantMessage():
            state.ends_with_answer = True
        case ToolOutput() | CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            if not _paginated(state):
                _outcome(state, item, line)
        case _:
            pass


def begin(state: State, head: SessionMeta) -> None:
    """Take a head: who the session is and where its paths begin."""
    state.head = head
    state.base = head.cwd


def settle(state: State) -> None:
    """Read the lines of which only the newest counts; call this before looking at the state."""
    if state.context_line is not None:
        context = parse(state.context_line).item
        state.context_line = None
        if isinstance(context, TurnContext):
            _turn_context(state, context)
    if state.tokens_line is not None:
        tokens = parse(state.tokens_line).item
        state.tokens_line = None
        if isinstance(tokens, Tokens):
            _tokens(state, tokens)
    state.observations.settle()


def checkpoint_of(
    state: State,
    seq: int,
    updates: Iterable[Update],
    hashes: Mapping[str, str],
    limits: Limits,
) -> Checkpoint:
    """Return the checkpoint: f(records, accepted updates, current hashes of observed files)."""
    settle(state)
    remembered = memory.replay(updates, state.turns.counts, limits)
    artifacts = {
        uri: Artifact(uri, met.kind, hashes.get(uri) if met.hashable else met.hash, met.seq)
        for uri, met in state.observations.kept(limits).items()
    }
    recent = sorted(artifacts, key=lambda uri: (-artifacts[uri].last_observed_seq, uri))
    return Checkpoint(
        seq,
        _task(state),
        _plan(state, remembered, limits),
        remembered.decisions,
        artifacts,
        remembered.facts,
        tuple(recent[: limits.max_recent_artifacts]),
    )


def _paginated(state: State) -> bool:
    return state.head is not None and state.head.paginated


# --- what a checkpoint says ----------------------------------------------------------------------


def _task(state: State) -> Task | None:
    said = [turn.said for turn in state.turns.counting() if turn.said is not None]
    if not said:
        return None
    last = max(said, key=lambda one: one.order)
    return Task(last.text, Evidence("user", last.ref))


def _plan(state: State, remembered: memory.Memory, limits: Limits) -> Plan:
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    if state.planned is not None:
        plans.append(state.planned)
    last = max(plans, key=lambda one: one.order) if plans else None
    # An update is applied after the record with its `seq`, so it wins a tie (DSC-79).
    if remembered.plan is not None and (last is None or remembered.plan_seq >= last.seq):
        return remembered.plan
    if last is None:
        return Plan()
    kept = last.steps[: limits.max_plan_steps_total]
    return Plan(
        tuple(Step(f"s{place}", text) for place, (text, _) in enumerate(kept, 1)),
        {f"s{place}": done for place, (_, done) in enumerate(kept, 1)},
        Evidence("tool_output", last.call_id),
    )


# --- one line ------------------------------------------------------------------------------------


def _lazy(state: State, line: Line) -> None:
    """Take a line that was judged by its prefix alone, and read it no sooner than needed."""
    raw = line.raw
    match line.wish:
        case Wish.TOKENS:
            if b'"info":null' not in raw[:160]:
                state.tokens_line = raw
                state.tokens_stale = False
            return
        case Wish.CONTEXT:
            folder = items.context_folder(raw)
            if folder is not None:
                state.turn_folder = folder
                state.context_line = raw
                return
        case Wish.CALL:
            call_id = items.command_call_id(raw)
            if call_id is not None:
                _wait(state, call_id, raw)
                return
        case Wish.RUN:
            _observe(state, items.without_output(raw), line)
            return
        case Wish.OUTPUT:
            call_id = items.output_call_id(raw)
            if call_id is not None and call_id not in state.pending:
                return
            if call_id is not None and items.command_call_id(state.pending[call_id]) == call_id:
                _outcome(state, ToolOutput(call_id, ()), line)
                return
        case _:
            pass
    parsed = parse(raw)
    reduce(state, attrs.evolve(line, wish=Wish.PARSE, item=parsed.item))


def _turn_context(state: State, item: TurnContext) -> None:
    state.turn_folder = item.cwd or state.turn_folder
    state.model = item.model or state.model


def _tokens(state: State, item: Tokens) -> None:
    state.window = item.window or state.window
    if item.total is not None:
        state.tokens = item
        state.tokens_stale = False


def _task_started(state: State, item: TaskStarted) -> None:
    state.window = item.window or state.window
    if state.naming == "due":
        state.naming = item.turn_id or ""
        return
    state.turns.task_started(item.turn_id)


def _task_ended(state: State, item: TaskEnded, line: Line) -> None:
    if state.naming not in {None, "due", "done"} and item.turn_id in {None, state.naming}:
        state.naming = "done"
        return
    state.turns.task_ended(item.turn_id, line.position, line.seq, aborted=item.aborted)


def _user_message(state: State, item: UserMessage, line: Line) -> None:
    if _paginated(state):
        return
    state.ends_with_answer = False
    if item.in_history:
        if state.typed:
            return
        _environment(state, item)
    elif not state.typed:
        # From here on events tell who typed what; what the history seemed to say is void.
        state.typed = True
        state.first_text = None
        state.planned = _last_plan(state)
        state.turns.forget()
    _said(state, item, line)


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


def _said(state: State, item: UserMessage, line: Line) -> None:
    """Take a message that may be a person's."""
    if not contextual.is_human(item.texts):
        return
    ref = item.ref
    if ref is None or len(ref) > MAX_URI_CHARS:
        ref = f"seq:{line.seq}"
    text = value(contextual.request_of("\n".join(item.texts)), MAX_VALUE_CHARS)
    if state.first_text is None and text:
        state.first_text = text
    if state.naming not in {None, "due", "done"}:
        return
    turn = state.turns.user_message(item.turn_id, line.position, line.seq)
    turn.messages.append(ref)
    if text:
        state.order += 1
        turn.said = Said(text, ref, line.seq, state.order)


def _completed(state: State, item: object, turn_id: str | None, line: Line) -> None:
    """Take an item of a paginated file."""
    match item:
        case UserMessage():
            _said(state, attrs.evolve(item, turn_id=turn_id), line)
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            _observe(state, tools.seen_by(item, shortened=line.shortened), line)
        case _:
            pass


def _call(state: State, item: ToolCall, line: Line) -> None:
    """Take a call that was read: a plan counts at once, anything else when its outcome comes."""
    state.ends_with_answer = False
    if _paginated(state):
        if item.name == "update_plan":
            _plan_call(state, tools.plan_of(item.arguments), item, line)
        return
    if item.name == "update_plan":
        _plan_call(state, tools.plan_of(item.arguments), item, line)
    elif tools.is_script(item):
        reading = tools.read_script(item)
        state.unread_calls += reading.unread
        for steps in reading.plans:
            _plan_call(state, steps, item, line)
        if reading.expected:
            _wait(state, item.call_id, line.raw)
    else:
        _wait(state, item.call_id, line.raw)


def _wait(state: State, call_id: str, raw: bytes) -> None:
    """Let a call wait for its outcome; the oldest are given up when too much waits."""
    if call_id in state.decided:
        return
    pending = state.pending
    pending[call_id] = raw
    while len(pending) > _PENDING or (
        len(pending) > 1 and sum(map(len, pending.values())) > _PENDING_BYTES
    ):
        del pending[next(iter(pending))]


def _plan_call(
    state: State, steps: Iterable[tuple[str, bool]] | None, call: ToolCall, line: Line
) -> None:
    if steps is None:
        state.unread_calls += 1
        return
    state.order += 1
    kept = [(value(text, MAX_VALUE_CHARS), done) for text, done in steps]
    planned = Planned(kept, call.call_id[:MAX_URI_CHARS], line.seq, state.order)
    turn = state.turns.at(call.turn_id)
    if turn is None:
        state.planned = planned
    else:
        turn.planned = planned


def _outcome(state: State, item: tools.Outcome, line: Line) -> None:
    """Take the first record that tells what came of a call; later ones change nothing."""
    call_id = item.call_id
    if call_id and call_id in state.decided:
        return
    waiting = state.pending.pop(call_id, None)
    if isinstance(item, ToolOutput):
        if waiting is None:
            return
        if items.command_call_id(waiting) == call_id:
            _observe(state, waiting, line)
        else:
            call = parse(waiting).item
            if isinstance(call, ToolCall):
                _observe(state, tools.called(call, item.texts), line)
    else:
        _observe(state, tools.seen_by(item, shortened=line.shortened), line)
    state.decided[call_id] = None
    while len(state.decided) > _DECIDED:
        del state.decided[next(iter(state.decided))]


def _observe(state: State, what: bytes | tuple[Seen, ...], line: Line) -> None:
    if what:
        state.observations.add(line.seq, state.turn_folder, state.base, what)
