"""Makes the checkpoint of a session from its bytes.

`Replay` takes bytes in pieces of any size; the result is the same as for one pass over the whole
(DSC-75).  It can be saved and loaded.  Other folds can take the same lines in the same pass.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Self

import orjson
from attrs import define

from codex_checkpoints.core.agents.codex import items, tools
from codex_checkpoints.core.agents.codex.items import SessionMeta
from codex_checkpoints.core.agents.codex.own_messages import is_ours, opener_of
from codex_checkpoints.core.agents.codex.parsing import (
    APPROVED_PLAN,
    EVENTS,
    ITEMS,
    LINES,
    RESPONSES,
    goal_in,
    turn_id_of,
)
from codex_checkpoints.core.agents.codex.reader import (
    NOTED,
    PASSED_OVER_FROM,
    WORDS,
    Line,
    Reader,
    ReadPosition,
    is_whole,
)
from codex_checkpoints.core.agents.codex.turns import Planned, Steps
from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    FOLDER,
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    Artifact,
    Checkpoint,
    Evidence,
    Limits,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.recovered import in_our_text
from codex_checkpoints.core.checkpoint.redaction import find_secret, value
from codex_checkpoints.core.checkpoint.requests import (
    asked_by,
    take_goal,
    take_letter,
    take_message,
    take_plan,
    take_replaced,
    task_of,
)
from codex_checkpoints.core.checkpoint.state import (
    NO_SEEN,
    FileObservation,
    Hashes,
    Observation,
    SeenHashes,
    State,
)
from codex_checkpoints.core.converters import states
from codex_checkpoints.core.fields import load, names, object_of, text_of, texts_of, time_of

_EVENTS_BESIDE_ITEMS = names(
    "user_message patch_apply_end exec_command_end mcp_tool_call_end view_image_tool_call"
)
"""Events that repeat the items of a paginated file (ROL-14)."""

_PLAN = "update_plan"
_GOAL_CALLS = names("create_goal update_goal")
_KEPT_CALLS = _GOAL_CALLS | {_PLAN}
"""The calls of a paginated file of which more counts than their items show."""
_MOST_GOAL_CALLS = 64


class Reducer:
    """The fold that keeps the state of a session; `scale` is the reader's.

    1. The head is the first `session_meta`; later ones belong to other sessions (ROL-4).
    2. The task is the newest request that counts, as `Turns` decides.  Items and events mark typed
       messages; if there are none, messages of the model's history that nobody injected count, else
       the messages of the newest replacement (DSC-29, DSC-30).
    3. The plan is the last `update_plan` of a turn that counts.
    4. An artifact comes from a call with a known outcome.  It stays when its turn is rolled back,
       since the operation did happen (DSC-78).  The latest observation decides its kind.
    5. The lines that a subagent inherited give none of these.
    6. Files that we make have a `compacted` record in second place; their first task only names the
       session.

    In paginated files completed items count, in older ones events.  Messages of the history count
    only if no events mark typed messages (ROL-14).
    """

    def __init__(self, state: State, scale: ReadPosition) -> None:
        self.item: items.Item = "quiet"
        """The part of the newest line that counts."""
        self._state = state
        self._scale = scale

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Return `NOTED` for lines whose kind alone counts: most outputs and images."""
        paginated = self._scale.paginated
        match kind:
            case "response_item" if tag is not None and tag in RESPONSES:
                if tag == "message":
                    wanted = inner in {None, "assistant"} or (inner == "user" and self._listens)
                elif paginated and tag == "function_call_output":
                    # Between tasks it may be an approved plan.
                    wanted = not self._state.turns.task_open or bool(self._state.goal_calls)
                elif paginated:
                    wanted = tag in {"function_call", "agent_message"}
                else:
                    wanted = not isinstance(RESPONSES[tag], str)
            case "response_item":
                wanted = True
            case "event_msg" if tag == "item_completed" and inner is not None and inner in ITEMS:
                wanted = (paginated or inner == "Plan") and not isinstance(ITEMS[inner], str)
            case "event_msg":
                repeated = paginated and tag in _EVENTS_BESIDE_ITEMS
                wanted = not (repeated or isinstance(EVENTS.get(tag or ""), str))
            case "compacted":
                wanted = self._has_no_message
            case _:
                wanted = not isinstance(LINES.get(kind or ""), str)
        return WORDS if wanted else NOTED

    @property
    def _listens(self) -> bool:
        """Whether a message of the history may be a request, or mark a task as one for a goal."""
        return not self._state.typed or self._state.turns.may_be_for_goal

    @property
    def _has_no_message(self) -> bool:
        """Whether the file has no user message so far, so that a replacement's count."""
        state = self._state
        return not state.typed and state.naming is None and not state.turns.has_messages

    def _parses(self, line: Line) -> bool:
        """Return whether a line is parsed, and not only its kind noted."""
        tag, payload = line.tag, line.payload
        if self._state.paginated and tag == "function_call":
            return text_of(payload.get("name")) in _KEPT_CALLS
        if self._state.paginated and tag == "function_call_output":
            known = text_of(payload.get("call_id")) in self._state.goal_calls
            is_plan = payload.get("name") == APPROVED_PLAN
            return known or (is_plan and not self._state.turns.task_open)
        return self.wants(line.kind, tag, line.inner) != NOTED

    def take(self, line: Line) -> None:  # noqa: C901, PLR0912, PLR0915 - a case for each kind
        """Take the next line."""
        state = self._state
        state.observed.clear()
        state.paginated = self._scale.paginated
        item = line.item if self._parses(line) else line.signal
        repeats = isinstance(item, items.UserMessage) and item.in_history and state.typed
        self.item = "told" if repeats else item
        state.inherit(item, line.seq, line.stamp)
        if isinstance(item, str):
            self._signal(item, line)
            return
        if line.seq < state.own_from and not isinstance(item, items.TurnContext):
            return
        match item:
            case items.ToolCall():
                state.worked_at = line.position
                state.turns.called()
                _call(state, item, line)
            case items.Tokens():
                state.tokens, state.tokens_at = item, line.position
                state.window = state.window if item.window is None else item.window
                state.resets_at = state.resets_at if item.resets_at is None else item.resets_at
            case items.Limits(resets_at=resets_at):
                state.resets_at = resets_at
            case items.ToolOutput():
                _answer(state, item, line)
            case items.CommandRun() | items.FilesChanged() | items.ToolRan() | items.FileViewed():
                _result(state, item, line)
            case items.UserMessage():
                take_message(state, item, line)
            case items.TurnContext():
                state.turn_folder = item.cwd or state.turn_folder
                if item.folder is not None:
                    state.newest_folder = line.file, item.folder
                state.model = state.model if item.model is None else item.model
            case items.TaskStarted():
                _task_started(state, item, line)
            case items.TaskEnded():
                _task_ended(state, item, line)
            case items.Trouble():
                state.turns.failed(_reason(state, item))
            case items.GoalSet():
                take_goal(state, item, line)
            case items.PlanTold(text=text):
                take_plan(state, asked_by(state, "plan", text, line), approved=item.approved)
            case items.AgentWrote():
                take_letter(state, item, line)
            case items.ReviewTold(text=text):
                if not item.ended:
                    state.turns.ask(asked_by(state, "review", text, line))
            case items.SessionMeta():
                if state.head is None:
                    state.begin(item)
            case items.RolledBack(turns=turns):
                state.turns.roll_back(turns)
            case items.ThreadNamed(name=name):
                state.name = None if name is None else value(name, MAX_VALUE_CHARS)

    def _signal(self, item: items.Signal, line: Line) -> None:
        state = self._state
        match item:
            case "unknown":
                self._scale.count("unknown_type")
            case _ if line.seq < state.own_from:
                pass
            case "told":
                state.worked_at = line.position
            case "thought":
                state.worked_at = line.position
                state.turns.thought()
            case "called":
                state.worked_at = line.position
                state.turns.called()
            case "answered":
                state.answered_at = line.position
                _answered(state, line)
            case "compacted":
                if self._has_no_message:
                    take_replaced(state, line)
                _compacted(state, line)
            case "quiet":
                pass


def _task_started(state: State, item: items.TaskStarted, line: Line) -> None:
    state.window = state.window if item.window is None else item.window
    if state.naming == "due":
        state.naming = item.turn_id or ""
        return
    # The task of a subagent is a part of a turn in another session.
    parent = item.parent if state.head is None or state.head.parent_session is None else None
    state.turns.task_started(
        item.turn_id, line.position, line.seq, line.stamp, parent=parent, for_goal=item.for_goal
    )


def _task_ended(state: State, item: items.TaskEnded, line: Line) -> None:
    if not state.tells(line.seq) and item.turn_id in {None, state.naming}:
        state.naming = "done"
        return
    state.turns.task_ended(
        item.turn_id,
        line.position,
        line.seq,
        aborted=item.aborted,
        answered=item.answered,
        reason=None if item.error is None else _reason(state, item.error),
    )


def _reason(state: State, trouble: items.Trouble) -> str:
    """Return the message of an error, with the time when a used-up limit begins anew."""
    text = value(trouble.text, MAX_VALUE_CHARS)
    resets_at = time_of(state.resets_at) if trouble.is_limit else None
    return text if resets_at is None else f"{text} (resets {resets_at})"


def _answered(state: State, line: Line) -> None:
    """Note an answer; a search skips those that it does not want."""
    payload = line.payload
    if not state.tells(line.seq):
        return
    text = None if line.passed_over else "\n".join(texts_of(payload.get("content"))).strip()
    final = payload.get("phase") != "commentary"
    state.turns.spoke(turn_id_of(payload), text, final=final)


def _compacted(state: State, line: Line) -> None:
    """Count a window; a long line, whose message not all readers read, opens no restore."""
    state.windows += 1
    state.compacted_at = line.position
    state.turns.compacted()
    is_short = len(line.raw) < PASSED_OVER_FROM
    message = (text_of(line.payload.get("message")) or "") if is_short else ""
    opener = opener_of(line.tag, message)
    change = {"compaction": 1, "undo": -1, "restore": 0}[opener]
    state.compactions = max(0, state.compactions + change)
    if line.position == 2 and state.naming is None:  # noqa: PLR2004 - the second record
        state.naming = "due"
        if is_ours(message) and state.seed is None:
            state.recovered = in_our_text(message, f"seq:{line.seq}")


def _call(state: State, item: items.ToolCall, line: Line) -> None:
    """Take a call: a plan counts at once, any other call when its outcome comes."""
    waits = not state.paginated
    if item.name in _GOAL_CALLS:
        state.goal_calls = [*state.goal_calls[1 - _MOST_GOAL_CALLS :], item.call_id]
    if item.name == _PLAN and item.namespace is None:
        _plan_call(state, tools.plan_of(item.arguments), item, line)
        return
    if waits and item.is_script:
        reading = tools.read_code(item)
        state.unread_calls += reading.unread
        for steps in reading.plans:
            _plan_call(state, steps, item, line)
        waits = bool(reading.results)
    if waits:
        state.calls.wait(item, len(line.raw))


def _plan_call(state: State, steps: Steps | None, call: items.ToolCall, line: Line) -> None:
    if steps is None:
        state.unread_calls += 1
        return
    kept = tuple((value(text, MAX_VALUE_CHARS), done) for text, done in steps)
    planned = Planned(kept, call.call_id[:MAX_URI_CHARS], line.seq, state.turns.next_order())
    turn = state.turns.at(call.turn_id)
    if turn is None:
        state.planned = planned
    else:
        turn.planned = planned


def _answer(state: State, item: items.ToolOutput, line: Line) -> None:
    """Take the answer to a waiting call."""
    state.worked_at = line.position
    if item.call_id in state.goal_calls:
        state.goal_calls.remove(item.call_id)
        goal = goal_in(object_of(load("\n".join(item.texts).encode(errors="replace"))))
        if goal is not None:
            take_goal(state, goal, line, of_call=True)
    waiting = state.calls.waiting.get(item.call_id)
    if waiting is None:
        return
    call, _ = waiting
    done = any("Success." in text for text in item.texts)
    if tools.nothing_ran(item.texts) or (not done and tools.needs_success(call)):
        state.calls.end(item.call_id)  # not decided: an event may still report success
        return
    state.calls.decide(item.call_id)
    _observe(state, call, line, item.texts)


def _result(state: State, item: items.ToolResult, line: Line) -> None:
    """Take the outcome of a call; in an older file its answer may have come before."""
    if not state.paginated:
        if item.call_id and item.call_id in state.calls.decided:
            return
        state.calls.decide(item.call_id)
    _observe(state, item, line)


def _observe(
    state: State, item: items.ToolCall | items.ToolResult, line: Line, texts: tuple[str, ...] = ()
) -> None:
    place = line.seq, state.turn_folder, state.base
    state.observe(Observation(place, item, texts, line.shortened, line.stamp))


def plan_of(state: State, remembered: memory.Memory, limits: Limits) -> Plan:
    """Return the newer of the last recorded and the last accepted plan, else the seed's plan."""
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    if state.planned is not None:
        plans.append(state.planned)
    last = max(plans, key=lambda one: one.order, default=None)
    # An update is applied after the record with its `seq`, so it wins a tie (DSC-79).
    if remembered.plan is not None and (last is None or remembered.plan_seq >= last.seq):
        return remembered.plan
    if last is None:
        before = state.seed or state.recovered
        return Plan() if before is None else before.plan
    kept = last.steps[: limits.max_plan_steps_total]
    return Plan(
        tuple(Step(f"s{place}", text) for place, (text, _) in enumerate(kept, 1)),
        {f"s{place}": done for place, (_, done) in enumerate(kept, 1)},
        Evidence("user" if last.approved else "tool_output", last.call_id),
    )


def _artifact(uri: str, observed: FileObservation, hashes: Hashes, seen: SeenHashes) -> Artifact:
    if not observed.hashable or hashes.get(uri) == FOLDER:
        known = None if observed.hashable else observed.hash
        return Artifact(uri, observed.kind, known, observed.seq)
    now, then = hashes.get(uri), observed.hash or seen.get((uri, observed.seq))
    comparable = now is None or then is None or now.partition(":")[0] == then.partition(":")[0]
    shown = then if uri in hashes and comparable else None
    return Artifact(uri, observed.kind, now, observed.seq, seen_hash=shown)


LONGEST_TAIL = 1 << 23
"""A longer last line, in bytes, is not read before its LF is there."""

SAVED = 26
"""The version of the result of `Replay.save`."""


@define
class _Saved:
    version: int
    scale: ReadPosition
    state: State


class Replay(Reader):
    """A reader whose fold keeps the state of a session after the bytes so far."""

    def __init__(self, state: State | None = None, scale: ReadPosition | None = None) -> None:
        """Begin before the first byte of a session, or after a saved state."""
        super().__init__(scale=scale)
        self.state = State() if state is None else state
        self.reducer = Reducer(self.state, self.scale)
        self.folds.append(self.reducer)

    def read_alone(self) -> None:
        """Drop the folds that share the pass."""
        self.folds[:] = [self.reducer]

    @property
    def seq(self) -> int:
        """Return `seq` after the last whole line."""
        return self.scale.seq

    def begin(self, head: SessionMeta) -> None:
        """Take the head before the first line, for a session whose history begins elsewhere."""
        self.state.begin(head)
        self.scale.paginated = self.scale.ordinals = head.paginated

    def begin_from(self, seed: Checkpoint) -> None:
        """Take the checkpoint that the session begins with, before its first line (JUN-46)."""
        self.state.seed = seed
        self.state.observations.begin(seed)
        self.scale.seed = seed.seq

    def with_tail(self, tail: bytes) -> Self:
        """Return a copy that has read an unfinished last line; itself if the line is not whole."""
        if self.stopped or not is_whole(tail):
            return self
        ahead = copy.deepcopy(self)
        ahead.drop_unfinished()
        ahead.close(tail)
        return ahead

    def near_the_end(self, lines: bytes, position: int | None = None) -> Replay:
        """Return a replay positioned before the last `lines` that this one has read.

        `position` is the position of the last of them, if it is not the last line read.
        """
        scale, state = self.scale, self.state
        count = sum(1 for line in lines.split(b"\n") if line.strip())
        seed = None if state.seed is None else state.seed.seq
        begun = (scale.lines if position is None else position) - count
        at = ReadPosition(begun, -1, scale.ordinals, scale.paginated, seed=seed)
        end = State(state.head, state.base, own_from=state.own_from, typed=state.typed)
        end.seed, end.recovered = state.seed, state.recovered
        return Replay(end, at)

    def task(self) -> Task | None:
        """Return the task of the checkpoint."""
        return task_of(self.state)

    def checkpoint(
        self,
        updates: Iterable[Update],
        hashes: Hashes,
        limits: Limits | None = None,
        seen: SeenHashes = NO_SEEN,
    ) -> Checkpoint:
        """Return the checkpoint after the last whole line (DSC-1)."""
        limits = Limits() if limits is None else limits
        state = self.state
        remembered = memory.replay(updates, state.turns.counts, limits, state.seed)
        kept = state.observations.kept(limits, hashes, seen)
        artifacts = {uri: _artifact(uri, each, hashes, seen) for uri, each in kept.items()}
        recent = [uri for uri, each in kept.items() if not each.minor]
        recent.sort(key=lambda uri: (-artifacts[uri].last_observed_seq, uri))
        return Checkpoint(
            self.seq,
            task_of(state),
            plan_of(state, remembered, limits),
            remembered.decisions,
            artifacts,
            remembered.facts,
            tuple(recent[: limits.max_recent_artifacts]),
        )

    def files(self) -> tuple[str, ...]:
        """Return the uris of the files and folders on which a checkpoint depends."""
        return self.state.observations.uris()

    def save(self) -> object | None:
        """Return everything as JSON values; call it only between lines.

        Returns None while a waiting call holds a secret: no secret is stored on disk (DSC-81), and
        the call cannot be read without it when its outcome comes.
        """
        waiting = (states.unstructure(call) for call, _ in self.state.calls.waiting.values())
        if any(find_secret(orjson.dumps(call).decode()) for call in waiting):
            return None
        self.state.observations.settle()
        return states.unstructure(_Saved(SAVED, self.scale, self.state))

    @classmethod
    def load(cls, value: object) -> Replay | None:
        """Return the replay that `save` stored; None if it is damaged or of another version."""
        try:
            kept = states.structure(value, _Saved)
        except Exception:  # noqa: BLE001 - an unreadable cache is ignored
            return None
        return cls(kept.state, kept.scale) if kept.version == SAVED else None
