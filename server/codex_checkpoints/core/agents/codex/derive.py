"""Derives the events of a session from the lines of a rollout: the one reader of Codex's records.

1. The head is the first `session_meta`; later ones belong to other sessions (ROL-4).
2. In paginated files completed items count, in older ones events and calls with their answers.
   Messages of the history count only if no events mark typed messages (ROL-14).
3. A call of an older file ends once: with its answer or with an event, whichever says so first.
4. The lines that a subagent inherited give none of these, except the settings (DSC-78).
5. Files that we make have a `compacted` record in second place; their first task only names the
   session.

A line never depends on a later one.  The state is bounded and is saved with a session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from attrs import Factory, define, evolve

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import injected_text, tools
from codex_checkpoints.core.agents.codex.inherited import is_copied, may_inherit
from codex_checkpoints.core.agents.codex.items import Item, Signal, ToolOutput
from codex_checkpoints.core.agents.codex.own_messages import (
    UNDO,
    is_ours,
    is_worded_by_us,
    opener_of,
)
from codex_checkpoints.core.agents.codex.parsing import (
    APPROVED_PLAN,
    CALLS,
    EVENTS,
    ITEMS,
    LINES,
    RESPONSES,
    goal_in,
    mode_in,
    turn_id_of,
)
from codex_checkpoints.core.agents.codex.pending_calls import PendingCalls
from codex_checkpoints.core.agents.codex.reader import (
    NOTED,
    PASSED_OVER_FROM,
    WORDS,
    Fold,
    Line,
    ReadPosition,
)
from codex_checkpoints.core.events import (
    Event,
    Record,
    SessionMeta,
    TextEvent,
    ToolCall,
    ToolResult,
    UserMessage,
)
from codex_checkpoints.core.fields import Json, list_of, load, names, object_of, text_of, texts_of
from codex_checkpoints.core.shell.script import BEGIN
from codex_checkpoints.core.turns import Turns

_EVENTS_BESIDE_ITEMS = names(
    "user_message patch_apply_end exec_command_end mcp_tool_call_end view_image_tool_call"
)
"""Events that repeat the items of a paginated file (ROL-14)."""

_PLAN = "update_plan"
_GOAL_CALLS = names("create_goal update_goal")
_KEPT_CALLS = _GOAL_CALLS | {_PLAN}
"""The calls of a paginated file of which more counts than their items show."""
_MOST_GOAL_CALLS = 64
_MOST_REWRITTEN = 64
_LONGEST_NAME = 1024
"""Files of one patch that are remembered as deleted and added again, and code points of a name."""

_GOAL_CONTEXT = ('<codex_internal_context source="goal">', "<goal_context>")
"""The beginning of the text that Codex gives the model in a task that works for the goal."""

_DELETED: Final = re.compile(r"\*\*\* Delete File: (.+?)(?:\\[rn]|[\r\n]|\Z)")
_ADDED: Final = re.compile(r"\*\*\* Add File: (.+?)(?:\\[rn]|[\r\n]|\Z)")

_FOLDER: Final = re.compile(r"<cwd>([^<]{1,4096})</cwd>")
_FOLDER_WITHIN: Final = 1 << 16
"""Code points of a message that are searched for the folder."""

_NEVER = 1 << 62
_NAMED = frozenset({None, "due", "done"})


@define
class Derivation:
    """The state of a deriver after some lines."""

    head: SessionMeta | None = None
    base: str | None = None
    folder: str | None = None
    """The folder of the turn."""
    own_from: int = -1
    """The first `seq` of a subagent's own lines."""
    inherits: bool | None = False
    """Whether a subagent's lines come from its parent now; None if none has shown it so far."""
    typed: bool = False
    """Whether events mark typed messages, so that messages of the history do not count."""
    naming: str | None = None
    """`due` until the naming task of a file of ours begins, then its id, then `done`."""
    calls: PendingCalls = Factory(PendingCalls)
    goal_calls: list[str] = Factory(list[str])
    """The newest calls for the goal without an output, which has the goal as of then."""
    rewritten: tuple[str, ...] = ()
    """The files that the newest patch of a call deletes and adds again."""

    def begin(self, head: SessionMeta) -> None:
        """Set the head."""
        self.head = head
        self.base = head.cwd
        self.own_from = -1 if head.inherited_below is None else head.inherited_below
        self.inherits = None if may_inherit(head) else False

    def counts(self, seq: int) -> bool:
        """Return whether a record counts: neither inherited from a parent, nor a mere name.

        The first task of a file that we made only names the session for people.
        """
        return seq >= self.own_from and self.naming in _NAMED


class Deriver(Fold):
    """Turns the lines of a session into records, and gives them away in order.

    `turns` are the turns so far, kept by the taker of the records.
    """

    def __init__(
        self, known: Derivation, scale: ReadPosition, turns: Turns, give: Callable[[Record], None]
    ) -> None:
        """Continue from a state; `scale` is the reader's."""
        self.whole = False
        """Whether records without events are given away, too."""
        self.item: Item = "quiet"
        """The item of the newest line, as far as it counts, for the folds that take lines."""
        self.texts: Callable[[Line], Iterable[TextEvent]] | None = None
        """Reads the texts of a line for those who quote them."""
        self.known = known
        self._scale = scale
        self._turns = turns
        self._give = give

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Return `NOTED` for lines whose kind alone counts: most outputs and images."""
        paginated = self._scale.paginated
        match kind:
            case "response_item" if tag is not None and tag in RESPONSES:
                if tag == "message":
                    wanted = inner in {None, "assistant"} or (inner == "user" and self._listens)
                elif paginated and tag == "function_call_output":
                    # Between tasks it may be an approved plan.
                    wanted = not self._turns.task_open or bool(self.known.goal_calls)
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
        return not self.known.typed or self._turns.may_be_for_goal

    @property
    def _has_no_message(self) -> bool:
        """Whether the file has no user message so far, so that a replacement's count."""
        known = self.known
        return not known.typed and known.naming is None and not self._turns.has_messages

    def _parses(self, line: Line) -> bool:
        """Return whether a line is parsed, and not only its kind noted."""
        tag, payload = line.tag, line.payload
        if self._scale.paginated and tag == "function_call":
            return text_of(payload.get("name")) in _KEPT_CALLS
        if self._scale.paginated and tag == "function_call_output":
            known = text_of(payload.get("call_id")) in self.known.goal_calls
            is_plan = payload.get("name") == APPROVED_PLAN
            return known or (is_plan and not self._turns.task_open)
        return self.wants(line.kind, tag, line.inner) != NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        found = self._derived(line)
        if self.texts is not None:
            found[:0] = self.texts(line)
        if found or self.whole:
            self._give(
                Record(
                    line.seq,
                    line.position,
                    line.file,
                    line.offset,
                    len(line.raw),
                    line.stamp,
                    line.named_turn,
                    self.known.counts(line.seq),
                    bool(self.known.calls.waiting),
                    tuple(found),
                )
            )

    def _derived(self, line: Line) -> list[Event]:
        known = self.known
        item = line.item if self._parses(line) else line.signal
        repeats = isinstance(item, UserMessage) and item.in_history and known.typed
        self.item = "given" if repeats else item
        if known.inherits is not False:
            self._inherit(item, line.seq, line.stamp)
        if item == "unknown":
            self._scale.count("unknown_type")
        if line.tag in CALLS:
            self._note_rewritten(line.payload)
        own = line.seq >= known.own_from
        found = [*self._events(item, line)] if own else self._inherited(item)
        if isinstance(item, (events.TaskStarted, events.TurnContext)):
            mode = mode_in(line.payload)
            found += [] if mode is None else [events.ModeSet(mode, item.turn_id)]
        return found

    def _inherit(self, item: Item, seq: int, stamp: str | None) -> None:
        """Find where the own lines of a subagent begin, in a file that does not say so."""
        known = self.known
        if known.head is None:
            return
        copied = is_copied(known.head, item, stamp)
        if known.inherits is None and copied is not None:
            known.inherits = copied
            known.own_from = _NEVER if copied else known.own_from
        elif known.inherits and copied is False and isinstance(item, events.TaskStarted):
            known.inherits, known.own_from = False, seq

    def _inherited(self, item: Item) -> list[Event]:
        if isinstance(item, events.TurnContext):
            return [*self._settings(item)]
        return [events.NotUnderstood("unknown_type")] if item == "unknown" else []

    def _events(self, item: Item, line: Line) -> Iterator[Event]:
        known = self.known
        match item:
            case str():
                yield from self._signal(item, line)
            case ToolCall():
                yield events.Called()
                yield from self._call(item, line)
            case ToolOutput():
                yield events.InputGiven()
                yield from self._answer(item, line)
            case (
                events.CommandRun() | events.FilesChanged() | events.ToolRan() | events.FileViewed()
            ):
                yield from self._result(item, line)
            case UserMessage():
                yield from self._message(item)
            case events.TurnContext():
                yield from self._settings(item)
            case events.TaskStarted():
                if known.naming == "due":
                    known.naming = item.turn_id or ""
                    yield evolve(item, names_session=True)
                else:
                    # The task of a subagent is a part of a turn in another session.
                    own = known.head is None or known.head.parent_session is None
                    yield item if own else evolve(item, parent=None)
            case events.TaskEnded():
                if not known.counts(line.seq) and item.turn_id in {None, known.naming}:
                    known.naming = "done"
                else:
                    yield item
            case SessionMeta():
                if known.head is None:
                    known.begin(item)
                    yield item
            case _:
                yield item

    def _signal(self, signal: Signal, line: Line) -> Iterator[Event]:
        match signal:
            case "unknown":
                yield events.NotUnderstood("unknown_type")
            case "given":
                yield events.InputGiven()
            case "thought":
                yield events.Thought()
            case "called":
                yield events.Called()
            case "answered":
                yield _answered(line)
            case "compacted":
                yield self._window(line)
            case "quiet":
                pass

    def _settings(self, item: events.TurnContext) -> Iterator[Event]:
        self.known.folder = item.cwd or self.known.folder
        yield item

    def _message(self, item: UserMessage) -> Iterator[Event]:
        """Take a message; it is a prompt if a person typed it."""
        known = self.known
        if item.in_history:
            if known.base is None and not (known.typed or self._scale.paginated):
                known.base = folder_in(item)
                if known.base is not None:
                    yield events.FolderFound(known.base)
            if any(text.lstrip().startswith(_GOAL_CONTEXT) for text in item.texts):
                yield events.GoalContinued()
        elif not known.typed:
            known.typed = True
            yield events.HistoryRetracted()
        repeats = item.in_history and known.typed
        yield item if not repeats and injected_text.is_by_person(item) else events.InputGiven()

    def _window(self, line: Line) -> Event:
        """Open a window; a long line, whose message not all readers read, opens no restore."""
        known = self.known
        requests = _requests_in(line) if self._has_no_message else ()
        is_short = len(line.raw) < PASSED_OVER_FROM
        text = text_of(line.payload.get("message")) or ""
        message, by_us = text if is_short else "", is_ours(text)
        begins_file = line.position == 2 and known.naming is None  # noqa: PLR2004 - the second record
        known.naming = "due" if begins_file else known.naming
        return events.WindowOpened(
            opener_of(line.tag, message),
            message if by_us else "",
            begins_file,
            requests,
            text if by_us else injected_text.without_summary_start(text).strip(),
            by_us,
        )

    def _call(self, item: ToolCall, line: Line) -> Iterator[Event]:
        """Take a call: a plan counts at once, any other call when its outcome comes."""
        known = self.known
        waits = not self._scale.paginated
        if item.name in _GOAL_CALLS:
            known.goal_calls = [*known.goal_calls[1 - _MOST_GOAL_CALLS :], item.call_id]
        if item.name == _PLAN and item.namespace is None:
            steps = tools.plan_of(item.arguments)
            if steps is None:
                yield events.NotUnderstood("unread_call")
            else:
                yield events.PlanSet(steps, item.call_id, item.turn_id)
            return
        if waits and item.is_script:
            reading = tools.read_code(item)
            if reading.unread:
                yield events.NotUnderstood("unread_call", reading.unread)
            for steps in reading.plans:
                yield events.PlanSet(steps, item.call_id, item.turn_id)
            waits = bool(reading.results)
        if waits:
            known.calls.wait(item, len(line.raw))

    def _answer(self, item: ToolOutput, line: Line) -> Iterator[Event]:
        """Take the answer to a waiting call."""
        known = self.known
        if item.call_id in known.goal_calls:
            known.goal_calls.remove(item.call_id)
            goal = goal_in(object_of(load("\n".join(item.texts).encode(errors="replace"))))
            if goal is not None:
                yield evolve(goal, by_call=True)
        waiting = known.calls.waiting.get(item.call_id)
        if waiting is None:
            return
        call, _ = waiting
        done = any("Success." in text for text in item.texts)
        if tools.nothing_ran(item.texts) or (not done and tools.needs_success(call)):
            known.calls.end(item.call_id)  # not decided: an event may still report success
            return
        known.calls.decide(item.call_id)
        yield self._ended(call, line, item.texts)

    def _result(self, item: ToolResult, line: Line) -> Iterator[Event]:
        """Take the outcome of a call; in an older file its answer may have come before."""
        if not self._scale.paginated:
            if item.call_id and item.call_id in self.known.calls.decided:
                return
            self.known.calls.decide(item.call_id)
        yield self._ended(item, line)

    def _ended(
        self, call: ToolCall | ToolResult, line: Line, texts: tuple[str, ...] = ()
    ) -> events.CallEnded:
        known = self.known
        of_call = call.turn_id if isinstance(call, ToolCall) else None
        return events.CallEnded(
            call,
            texts,
            known.folder,
            known.base,
            of_call or line.named_turn,
            line.shortened,
            frozenset(known.rewritten) if isinstance(call, events.FilesChanged) else frozenset(),
        )

    def _note_rewritten(self, payload: Json) -> None:
        """Note the files that a call's patch deletes and adds again: an item has them as added."""
        text = text_of(payload.get("input")) or text_of(payload.get("arguments")) or ""
        if BEGIN in text:
            deleted = {path.strip() for path in _DELETED.findall(text)}
            again = {path for path in map(str.strip, _ADDED.findall(text)) if path in deleted}
            short = sorted(path for path in again if len(path) <= _LONGEST_NAME)
            self.known.rewritten = tuple(short[:_MOST_REWRITTEN])


def _answered(line: Line) -> Event:
    """Return an answer; a search skips the text of those that it does not want."""
    payload = line.payload
    text = None if line.passed_over else "\n".join(texts_of(payload.get("content"))).strip()
    return events.Answered(text, payload.get("phase") != "commentary", turn_id_of(payload))


def _requests_in(line: Line) -> tuple[UserMessage, ...]:
    """Return the messages of people in a replacement, the newest first.

    A replacement of ours and its undo contain no new request.
    """
    if line.tag == UNDO or is_ours(text_of(line.payload.get("message")) or ""):
        return ()
    found: list[UserMessage] = []
    for each in reversed(list_of(line.payload.get("replacement_history"))):
        payload = object_of(each)
        if payload.get("type") != "message" or payload.get("role") != "user":
            continue
        texts = texts_of(payload.get("content"))
        if not any(map(is_worded_by_us, texts)):
            item = UserMessage(texts, in_history=True, ref=text_of(payload.get("id")))
            found += [item] if injected_text.is_by_person(item) else []
    return tuple(found)


def folder_in(item: UserMessage) -> str | None:
    """Return the folder of a session whose head has none (ROL-16)."""
    for text in item.texts:
        if "<environment_context>" in text[:256]:
            found = _FOLDER.search(text, 0, _FOLDER_WITHIN)
            if found is not None:
                return found[1]
    return None
