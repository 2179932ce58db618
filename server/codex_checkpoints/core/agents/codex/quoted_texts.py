"""Reads the texts of calls and outputs for those who quote them, and the answers of other agents.

The deriver adds these events to a record.  A reader gives the words of every line that has some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.call_texts import (
    DIALOG,
    OURS,
    json_in,
    output_of,
    patch_in,
    script_of,
    written,
)
from codex_checkpoints.core.agents.codex.derive import Deriver
from codex_checkpoints.core.agents.codex.items import outcome_in, outcome_of_script
from codex_checkpoints.core.agents.codex.parsing import CALLS, OUTPUTS, turn_id_of
from codex_checkpoints.core.agents.codex.reader import NOTED, WORDS, Fold, Line
from codex_checkpoints.core.events import (
    AgentCalled,
    AgentsAnswered,
    AnswerRepeated,
    CallText,
    Chosen,
    OutputText,
    PlanMessage,
    TextEvent,
    ToolCall,
)
from codex_checkpoints.core.fields import (
    Json,
    list_of,
    names,
    object_of,
    text_of,
    texts_of,
    words_of,
)
from codex_checkpoints.core.shell import javascript
from codex_checkpoints.core.shell.script import BEGIN

_GOALS = names("create_goal get_goal goal_objective update_goal")
_SILENT = OURS | _GOALS | names("update_plan write_stdin wait")
_ASIDE = _SILENT | {DIALOG}
"""Tools whose content other events have, or that only look at something."""

_ASK_SUBAGENTS = names("send_input resume_agent")
_OF_SUBAGENTS = _ASK_SUBAGENTS | names("spawn_agent wait_agent wait close_agent")

_TASK_ENDS = names("task_complete turn_complete")
_ITEM = "AgentMessage"
_MOST = 1024
_RUNNING: Final = re.compile(r"Process running with session ID (\d{1,10})")
_NOTIFICATION: Final = re.compile(
    r"\s*<subagent_notification>(.*)</subagent_notification>\s*", re.DOTALL
)


@frozen
class _Call:
    """A call that waits for its output; `agent` is the one that it is about."""

    name: str
    agent: str | None = None
    asked: Json | None = None
    """The questions of a dialog."""


class QuotedTexts(Fold):
    """The events of a line that only those need who quote it; `of` gives them to the deriver."""

    def __init__(self, deriver: Deriver) -> None:
        """Begin before the first line, or near the end of a session."""
        self._deriver = deriver
        self._calls: dict[str, _Call] = {}

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Ask for the words of all quotable content."""
        quoted = kind in {None, "response_item", "compacted"} or inner == _ITEM
        return WORDS if quoted else NOTED

    def take(self, line: Line) -> None:
        """Do nothing: the deriver asks."""

    def of(self, line: Line) -> Iterator[TextEvent]:
        """Yield the texts of a line that the deriver has taken."""
        if line.passed_over or not self._deriver.known.counts(line.seq):
            return
        payload, tag = line.payload, line.tag
        if tag in CALLS:
            yield from self._call(payload, line)
        elif tag in OUTPUTS:
            if not isinstance(self._deriver.item, PlanMessage):
                yield from self._output(payload)
        elif line.inner == _ITEM:
            item = object_of(payload.get("item"))
            if item.get("phase") != "commentary":
                text = "\n".join(texts_of(item.get("content")))
                yield from _repeated(text, text_of(payload.get("turn_id")))
        elif tag == "message" and line.inner != "assistant":
            answers = _answers_in(_notification_in(payload))
            if answers:
                yield AgentsAnswered(answers)
        elif tag in _TASK_ENDS:
            text, turn_id = text_of(payload.get("last_agent_message")), payload.get("turn_id")
            yield from _repeated(text or "", text_of(turn_id), at_end=True)

    def _call(self, payload: Json, line: Line) -> Iterator[TextEvent]:
        call_id, name = text_of(payload.get("call_id")) or "", text_of(payload.get("name")) or ""
        action = object_of(payload.get("action"))
        text = text_of(payload.get("arguments")) or text_of(payload.get("input")) or ""
        if action:
            text = " ".join(words_of(action.get("command")) or ()) or text
        item = line.item if isinstance(line.item, ToolCall) else None
        parts, script = (text,), script_of(item)
        if item is not None and item.is_script:
            parts = _calls_in(item) or parts
            script = "; ".join(part for part in parts if part != text and BEGIN not in part)
        turn_id = turn_id_of(payload)
        agent = text_of(json_in(text).get("id")) if name in _OF_SUBAGENTS else None
        self._calls[call_id] = _Call(name, agent, json_in(text) if name == DIALOG else None)
        if len(self._calls) > _MOST:
            del self._calls[next(iter(self._calls))]
        if agent and name in _ASK_SUBAGENTS:
            yield AgentCalled(agent, turn_id)
        yield CallText(
            call_id,
            name,
            text,
            script,
            parts,
            None if item is None else text_of(object_of(item.arguments).get("workdir")),
            self._deriver.known.folder,
            None if item is None else item.process,
            name in _ASIDE,
            turn_id,
        )

    def _output(self, payload: Json) -> Iterator[TextEvent]:
        call_id, output = text_of(payload.get("call_id")) or "", output_of(payload)
        named = text_of(payload.get("name")) or "tool"  # an output of Codex itself has no call
        call, turn_id = self._calls.get(call_id, _Call(named)), turn_id_of(payload)
        if call.name in _OF_SUBAGENTS:
            answer = json_in(output)
            if agent := text_of(answer.get("agent_id")) or text_of(answer.get("task_name")):
                yield AgentCalled(agent, turn_id)
            yield AgentsAnswered(_answers_in(answer, call.agent))
        elif call.name == DIALOG:
            yield Chosen(_chosen_in(call.asked or {}, json_in(output)), turn_id)
        else:
            running = _RUNNING.search(output, 0, 1024)
            yield OutputText(
                call_id,
                named,
                (outcome_of_script if output.startswith("Script ") else outcome_in)((output,)),
                None if running is None else running[1],
                call.name in _ASIDE,
                turn_id,
            )


def _repeated(text: str, turn_id: str | None, *, at_end: bool = False) -> Iterator[TextEvent]:
    if text := text.strip():
        yield AnswerRepeated(text, turn_id, at_end)


def _calls_in(call: ToolCall) -> tuple[str, ...]:
    """Return the commands and patches of a code-mode script, none if any is not literal.

    For other calls return the arguments, since they may name a file that is never quoted.
    """
    calls, unread = javascript.literal_calls(str(call.arguments))
    inner = (evolve(call, name=each.name, arguments=each.argument) for each in calls)
    found = [
        patch_in(each.arguments) or script_of(each) or written(each.arguments)
        for each in inner
        if each.arguments and each.name not in _SILENT
    ]
    return () if unread else tuple(found)


def _chosen_in(asked: Json, answer: Json) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the questions of a dialog with the user's choices, without secret questions."""
    answers = object_of(answer.get("answers"))
    found: list[tuple[str, tuple[str, ...]]] = []
    for question in map(object_of, list_of(asked.get("questions"))):
        chosen = words_of(object_of(answers.get(text_of(question.get("id")) or "")).get("answers"))
        if chosen and not question.get("isSecret"):
            found.append((text_of(question.get("question")) or "?", tuple(chosen)))
    return tuple(found)


def _answers_in(answer: Json, agent: str | None = None) -> tuple[tuple[str, str], ...]:
    """Return the agents that a report names, with their answers; `agent` is the one asked."""
    status = object_of(answer.get("status"))
    alone = agent or text_of(answer.get("agent_path")) or text_of(answer.get("agent_id")) or ""
    by_name = {alone: status} if "completed" in status else status
    answers = (
        (name, (text_of(object_of(found).get("completed")) or "").strip())
        for name, found in by_name.items()
    )
    return tuple((name, text) for name, text in answers if text)


def _notification_in(payload: Json) -> Json:
    """Return the notification in a message about an ended subagent; empty if there is none."""
    found = _NOTIFICATION.fullmatch("\n".join(texts_of(payload.get("content"))))
    return {} if found is None else json_in(found[1].strip())
