"""Collects the quotable content of a session: requests, answers, changes, checks and texts.

It follows a replay, whose state has the turns and observations.  Memory is bounded: the newest
`TEXTS` code points of texts are kept, and the newest requests, answers, files and commands.  The
result depends on the lines alone.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import sha256
from typing import Any, Final

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.call_texts import DIALOG, json_in, output_of, script_of
from codex_checkpoints.core.agents.codex.injected_text import without_payloads
from codex_checkpoints.core.agents.codex.items import Item, outcome_in, outcome_of_script
from codex_checkpoints.core.agents.codex.own_messages import UNDO, is_ours
from codex_checkpoints.core.agents.codex.parsing import CALLS, OUTPUTS, item_of, turn_id_of
from codex_checkpoints.core.agents.codex.reader import NOTED, WORDS, Fold, Line
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.digest.answers import TurnAnswers
from codex_checkpoints.core.digest.calls import (
    SILENT,
    calls_in,
    chosen_in,
    files_of_patch,
    is_refusal,
    notification_in,
    patched_in,
    quoted_lines,
    texts_handed_over,
)
from codex_checkpoints.core.digest.changes import Changes
from codex_checkpoints.core.digest.outcomes import (
    seconds_of,
)
from codex_checkpoints.core.digest.quotes import Quotes
from codex_checkpoints.core.digest.records import Answer, DigestSource, Quote, Utterance
from codex_checkpoints.core.digest.replacements import Replacements
from codex_checkpoints.core.digest.truncate import ends_of, label_of
from codex_checkpoints.core.effects import Effects, Run
from codex_checkpoints.core.events import (
    AgentWrote,
    CallEnded,
    CommandRun,
    GoalSet,
    Outcome,
    PlanTold,
    ReviewTold,
    ToolCall,
    UserMessage,
)
from codex_checkpoints.core.fields import Json, load, object_of, renew, text_of, texts_of, words_of
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.shell.script import BEGIN
from codex_checkpoints.core.turns import TASK_ENDS

MOST = 1024
"""The most requests, answers, files and commands that are kept, each: the newest."""

_ASK_SUBAGENTS = frozenset({"send_input", "resume_agent"})
_OF_SUBAGENTS = _ASK_SUBAGENTS | {"spawn_agent", "wait_agent", "wait", "close_agent"}
_ITEM = "AgentMessage"
_RUNNING: Final = re.compile(r"Process running with session ID (\d{1,10})")


@frozen
class _Call:
    """A call that waits for its output: its label, and its subject.

    `ran` is equal for two calls that do the same, and `seq` is the call's own.  `folder` is the
    folder that it names.
    """

    label: str
    about: str
    ran: str
    seq: int
    folder: str | None = None


class DigestExtract(Fold):
    """Keeps the quotable texts of a session while a replay reads it."""

    def __init__(self, replay: Replay, session_id: str, whole: State | None = None) -> None:
        """Follow a replay; `whole` is the state of the session if only a part of it is read.

        It supplies the rolled back turns, and how turns ended.
        """
        self._whole = whole or replay.state
        self._position = 0
        self._state, self._deriver = replay.state, replay.deriver
        self._known = replay.derivation
        self._session = session_id
        self._requests: deque[tuple[Utterance, bool]] = deque(maxlen=MOST)
        self._turns: dict[str | None, TurnAnswers] = {}
        self._newest: TurnAnswers | None = None
        self._changes = Changes()
        self._replaced = Replacements()
        self._quotes = Quotes()
        self._calls: dict[str, _Call] = {}
        self._running: dict[str, _Call] = {}
        self._called_at = -1
        """The `seq` of the newest call; in code mode no record names the call of a command."""
        self._patches: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By call, the line of a patch without an outcome so far, and the files that it names."""
        self._callers: dict[str, str | None] = {}
        self._goal: str | None = None
        """The objective kept last: each report of a goal repeats it."""
        self._review: tuple[Utterance, bool] | None = None
        """The request for a review, until a user message repeats it in more detail."""
        self._reviewed: str | None = None
        """The task of that review: a message of another one is another request."""
        self._said_with: dict[tuple[str | None, str], None] = {}
        """Arguments passed with a command, by turn: they are quoted with their first command."""
        replay.folds.append(self)

    @classmethod
    def near_the_end(
        cls, whole: Replay, lines: bytes, session_id: str, position: int | None = None
    ) -> DigestExtract:
        """Read only the last `lines` of the session `whole`, or those that end at a position."""
        end = whole.near_the_end(lines, position)
        found = cls(end, session_id, whole.state)
        end.feed(lines)
        return found

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Ask for the words of all quotable content."""
        quoted = kind in {None, "response_item", "compacted"} or inner == _ITEM
        return WORDS if quoted else NOTED

    def take(self, line: Line) -> None:
        """Keep the content of a line."""
        self._position = line.position
        if line.passed_over or not self._known.counts(line.seq):
            return
        payload, tag = line.payload, line.tag
        if tag in CALLS:
            self._call(payload, line)
        elif isinstance(self._deriver.item, PlanTold):
            self._told(self._deriver.item, line)
        elif tag in OUTPUTS:
            self._output(payload, line)
        elif tag == "message" and line.inner == "assistant":
            self._answered(payload, line)
        elif line.inner == _ITEM:
            self._item(object_of(payload.get("item")), line)
        elif tag == "message" and (told := notification_in(payload)):
            self._subagents(told, None, line)
        elif line.kind == "compacted":
            self._compacted(payload, line)
        elif tag in TASK_ENDS:
            self._ended(payload, line)
        else:
            self._told(self._deriver.item, line)
        for each in self._deriver.events:
            if isinstance(each, CallEnded):
                self._ended_call(Effects(each), line)

    def gathered(self) -> DigestSource:
        """Return the kept records, without the rolled back turns."""
        turns, end = self._whole.turns, self._position
        counted = [turn for turn in turns.counting() if turn.opened <= end]
        numbers = {turn.turn_id: number for number, turn in enumerate(counted, 1)}
        gone = {turn.turn_id for turn in turns.turns if turn.rolled_back}

        def placed(where: RecordPlace) -> RecordPlace:
            turn = numbers.get(where.turn_id or "")
            return evolve(where, turn=turn, age=len(counted) - (turn or 0))

        def asked(where: RecordPlace) -> RecordPlace:
            """Return the place of a request; a request between turns belongs to the next turn."""
            if where.turn_id is not None:
                return where
            opened = (turn for turn in counted if turn.opened_seq >= where.seq)
            turn = next(opened, None)
            return where if turn is None else evolve(where, turn_id=turn.turn_id)

        ends = dict(self._whole.ends())
        answers: list[Answer] = []
        for turn in counted:
            found = self._turns.get(turn.turn_id, TurnAnswers())
            answers += found.answers(ends[turn.turn_id], placed)
        ended = ends[counted[-1].turn_id] if counted else None
        unfinished = counted[-1].turn_id if ended == "open" else None
        summaries = (
            each for each in self._replaced.now.summaries if each.where.turn_id not in gone
        )
        summary = next(summaries, None)
        plans = [number for number, turn in enumerate(counted, 1) if turn.planned is not None]
        return DigestSource(
            len(counted),
            tuple(
                evolve(said, where=placed(asked(said.where)))
                for said, in_history in self._requests
                if said.where.turn_id not in gone and not (in_history and self._whole.typed)
            ),
            tuple(answers),
            ended,
            len(counted) - plans[-1] if plans else None,
            {
                uri: evolve(
                    trail,
                    where=placed(trail.where),
                    turns=tuple(numbers[each] for each in trail.turn_ids if each in numbers),
                )
                for uri, trail in self._changes.files.items()
            },
            tuple(
                evolve(each, where=placed(each.where))
                for each in self._changes.checks.last.values()
                if each.where.turn_id not in gone
            ),
            self._changes.edits,
            {
                ran: each.seq
                for ran, each in self._changes.checks.passed.items()
                if each.turn_id not in gone
            },
            summary and evolve(summary, where=placed(summary.where)),
            tuple(
                evolve(each, where=placed(each.where))
                for each in self._quotes.without(gone, unfinished)
            ),
            self._replaced.now.below,
            self._replaced.now.carried,
            counted[-1].reason if counted else None,
            None if turns.goal is None else turns.goal.status,
            unnamed=tuple(
                (placed(where), script)
                for where, script in self._changes.unnamed
                if where.turn_id not in gone
            ),
        )

    # --- reading lines -----------------------------------------------------------------------

    def _where(self, line: Line, turn_id: str | None = None) -> RecordPlace:
        turn = self._state.turns.at(turn_id)
        return RecordPlace(self._session, line.seq, None if turn is None else turn.turn_id)

    def _of(self, where: RecordPlace) -> TurnAnswers:
        found = self._turns.setdefault(where.turn_id, TurnAnswers())
        _keep_newest(self._turns)
        return found

    def _told(self, item: Item, line: Line) -> None:
        """Keep a request, the result of a subagent, or the findings of a review."""
        match item:
            case UserMessage():
                self._asked(item, line)
            case GoalSet(objective=objective) if objective is not None:
                if objective != self._goal:
                    self._asked_otherwise(objective, None, line)
                self._goal = objective
            case PlanTold(text=text, approved=True):
                self._asked_otherwise(text, None, line)
            case AgentWrote(text=text) if text and item.is_answer:
                self._subagent(item.author, text, line)
            case AgentWrote():
                text = item.text or (self._state.head and self._state.head.agent)
                where = self._where(line, item.turn_id)
                self._asked_otherwise(text or item.recipient, where.turn_id, line)
            case ReviewTold(text=text, ended=False):
                self._reviewed = item.turn_id or self._state.turns.task
                self._asked_otherwise(text, self._reviewed, line)
                self._review = self._requests[-1] if self._requests else None
            case ReviewTold(text=text) if text:
                where = self._where(line, item.turn_id)
                turn = self._of(where)
                turn.item = turn.said(where, text)
            case _:
                pass

    def _asked_otherwise(self, text: str, turn_id: str | None, line: Line) -> None:
        """Keep a request outside a user message; without a turn it belongs to the next one."""
        where = RecordPlace(self._session, line.seq, turn_id)
        text = without_payloads(text.strip(), [])[0]
        if text:
            self._requests.append((Utterance(where, ends_of(text)), False))

    def _asked(self, item: UserMessage, line: Line) -> None:
        if injected_text.is_by_person(item):
            texts = (part for part in item.texts if not injected_text.is_image_wrapper(part))
            text = injected_text.request_of("\n".join(texts)).strip()
            text = without_payloads(text, [])[0]
            if text:
                where = self._where(line, item.turn_id)
                of_review = {self._reviewed, self._state.turns.reviewer}
                if self._review in [*self._requests][-1:] and where.turn_id in of_review:
                    self._requests.pop()  # the message repeats it in more detail
                self._review = None
                said = Utterance(where, ends_of(text))
                self._requests.append((said, item.in_history))

    def _answered(self, payload: Json, line: Line) -> None:
        text = "\n".join(texts_of(payload.get("content"))).strip()
        if not text:
            return
        where = self._where(line, turn_id_of(payload))
        turn = self._of(where)
        said = turn.said(where, text)
        if payload.get("phase") == "commentary":
            turn.commentary = said
        else:
            turn.before, turn.answer = turn.answer, said
            self._newest = turn
        self._quotes.add(Quote(where, "answer", "", said.text if said.text == text else text))

    def _item(self, item: Json, line: Line) -> None:
        """Keep an answer in an item; mostly a message of the history repeats it."""
        text = "\n".join(texts_of(item.get("content"))).strip()
        if text and item.get("phase") != "commentary":
            where = self._where(line, text_of(line.payload.get("turn_id")))
            turn = self._of(where)
            turn.item = turn.said(where, text)

    def _subagents(self, told: Json, agent_id: str | None, line: Line) -> None:
        """Keep the answers of subagents with the turns that called them."""
        status = object_of(told.get("status"))
        alone = agent_id or text_of(told.get("agent_path")) or text_of(told.get("agent_id")) or ""
        for name, found in ({alone: status} if "completed" in status else status).items():
            text = (text_of(object_of(found).get("completed")) or "").strip()
            if not text:
                continue
            self._subagent(name, text, line)

    def _subagent(self, name: str, text: str, line: Line) -> None:
        """Keep the answer of one subagent."""
        where = self._where(line, self._callers.get(name))
        if self._of(where).by_subagent(name, Utterance(where, ends_of(text))):
            self._quotes.add(Quote(where, "output", "subagent", text))

    def _ended(self, payload: Json, line: Line) -> None:
        where = self._where(line, text_of(payload.get("turn_id")))
        text = (text_of(payload.get("last_agent_message")) or "").strip()
        if text:
            turn = self._of(where)
            turn.reported = turn.said(where, text)

    def _compacted(self, payload: Json, line: Line) -> None:
        if line.tag == UNDO:
            self._replaced.undo()
            return
        self._replaced.begin(line.seq)
        text = text_of(payload.get("message")) or ""
        if is_ours(text):
            self._replaced.ours(text)
        elif summary := injected_text.without_summary_start(text).strip():
            said = Utterance(self._where(line), ends_of(summary))
            self._replaced.summary(said)
            taken = None if self._newest is None else self._newest.without(said.text)
            if taken is not None:
                self._quotes.without_last(taken.where)

    def _call(self, payload: Json, line: Line) -> None:
        call_id, name = text_of(payload.get("call_id")) or "", text_of(payload.get("name")) or ""
        action = object_of(payload.get("action"))
        text = text_of(payload.get("arguments")) or text_of(payload.get("input")) or ""
        if action:
            text = " ".join(words_of(action.get("command")) or ()) or text
        item = item_of(line.kind, payload, bare=line.bare)
        where = self._where(line, turn_id_of(payload))
        parts, script = [text], script_of(item)
        if isinstance(item, ToolCall) and item.is_script:
            parts = calls_in(item) or parts
            script = "; ".join(part for part in parts if part != text and BEGIN not in part)
        label, about = label_of(script or name), ends_of(script or text)
        is_patch = BEGIN in text
        given = item.arguments if isinstance(item, ToolCall) else None
        folder = text_of(object_of(given).get("workdir"))
        within = folder or self._known.folder or ""
        ran = "\0".join((name, within, script if script and parts == [text] else text))
        call = _Call("" if is_patch else label, about, _hash_of(ran), line.seq, folder)
        if name == "write_stdin":
            session = str(object_of(load(text.encode(errors="replace"))).get("session_id"))
            call = self._running.get(session, call)
        if name in _ASK_SUBAGENTS and (agent_id := text_of(json_in(text).get("id"))):
            renew(self._callers, agent_id, where.turn_id, MOST)
        self._calls[call_id], self._called_at = call, line.seq
        _keep_newest(self._calls)
        if not text or name in SILENT or name == DIALOG:  # it is listed with the requests
            return
        about = about if parts == [text] else ends_of(text)
        handed = None if script or is_patch else texts_handed_over(text)
        if handed is not None:
            label, said = label_of(f"{name} {handed[0]}".strip()), handed[1]
            self._quotes.add(Quote(where, "written", label, said, about))
            return
        for part in parts:
            (said, others), files = quoted_lines(part), []
            if others and (where.turn_id, others) not in self._said_with:
                renew(self._said_with, (where.turn_id, others), None, MOST)
                first, *rest = said.split("\n")
                said = "\n".join([f"{first} {others}", *rest])
            if BEGIN in part:
                said, files = files_of_patch(said, self._relative)
            if said.strip():
                said, _ = without_payloads(said, [])
                self._quotes.add(Quote(where, "call", label, said, about))
            for names, rows in files:
                self._quotes.add(Quote(where, "patch", ", ".join(names), rows, about))
        if is_patch:
            self._patches[call_id] = (line.seq, patched_in(text))
            _keep_newest(self._patches)

    def _relative(self, path: str) -> str:
        return path.removeprefix(f"{self._state.base}/")

    def _output(self, payload: Json, line: Line) -> None:
        call_id, output = text_of(payload.get("call_id")) or "", output_of(payload)
        named = text_of(payload.get("name")) or "tool"  # an output of Codex itself has no call
        call = self._calls.get(call_id, _Call(named, "", "", line.seq))
        where = self._where(line, turn_id_of(payload))
        found = _RUNNING.search(output, 0, 1024)
        if found is not None:
            self._running[found[1]] = call
            _keep_newest(self._running)
        if call.label in _OF_SUBAGENTS:
            told, agent_id = json_in(output), text_of(json_in(call.about).get("id"))
            if spawned := text_of(told.get("agent_id")) or text_of(told.get("task_name")):
                renew(self._callers, spawned, where.turn_id, MOST)
            self._subagents(told, agent_id, line)
            return
        if call.label == DIALOG:
            if chosen := chosen_in(json_in(call.about), json_in(output)):
                self._requests.append((Utterance(where, ends_of(chosen), chosen=True), False))
            return
        outcome = (outcome_of_script if output.startswith("Script ") else outcome_in)((output,))
        text = outcome.printed
        if call_id in self._patches:
            self._patched(*self._patches.pop(call_id), outcome, where)
        if text and text.strip() and call.label and call.label not in SILENT:
            failed = outcome.ended if outcome.failed else ""
            self._quotes.add(Quote(where, "output", call.label, text, call.about, call.ran, failed))
            self._quotes.ran(call.ran, call.seq, where)

    def _patched(
        self, seq: int, files: tuple[str, ...], outcome: Outcome, where: RecordPlace
    ) -> None:
        """Record that a patch was refused: no file holds its lines."""
        if not is_refusal(outcome):
            return
        trails = [self._changes.files.get(self._relative(each)) for each in files]
        if trails and all(trail and trail.where.seq >= seq for trail in trails):
            return  # the files did change: another part of the script failed
        self._quotes.refuse(seq)
        self._changes.checks.refused(files, outcome, where, self._changes.edits)

    def _ended_call(self, effects: Effects, line: Line) -> None:
        """Record the outcome of a call: the files that it changed, and how the command ended."""
        ended = effects.ended
        where = self._where(line, ended.turn_id)
        call = self._calls.get(ended.call.call_id)
        began = self._called_at if call is None else call.seq
        # The call holds the change; its answer only confirms it.
        at = where if call is None else evolve(where, seq=began)
        self._changes.observe(effects, at, began)
        for run in self._runs_in(effects, line):
            self._changes.ran(run, effects, where)

    def _runs_in(self, effects: Effects, line: Line) -> tuple[Run, ...]:
        """Return the commands whose end is reported."""
        match effects.ended.call:
            case ToolCall(name="write_stdin") as item:  # its time covers the last look only
                call = self._running.get(str(object_of(item.arguments).get("session_id")))
                is_over = call is not None and effects.outcome.failed is not None
                return (Run(call.label, effects.outcome, call.folder),) if call and is_over else ()
            case CommandRun():
                seconds = seconds_of(object_of(line.payload.get("item")) or line.payload, ())
            case _:
                seconds = seconds_of({}, effects.ended.texts)
        return tuple(evolve(each, seconds=seconds) for each in effects.runs)


def _hash_of(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


def _keep_newest(kept: dict[Any, Any]) -> None:
    """Drop the oldest entry of a table that exceeds `MOST`."""
    if len(kept) > MOST:
        del kept[next(iter(kept))]
