"""Collects the quotable content of a session: requests, answers, changes, checks and texts.

It follows a stream, whose state has the turns and observations.  Memory is bounded: the newest
`TEXTS` code points of texts are kept, and the newest requests, answers, files and commands.  The
result depends on the records alone.
"""

from __future__ import annotations

from collections import deque
from hashlib import sha256
from typing import Any

from attrs import evolve, frozen

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.injected_text import without_payloads
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.stream import Stream
from codex_checkpoints.core.digest.answers import TurnAnswers
from codex_checkpoints.core.digest.calls import (
    choices_of,
    files_of_patch,
    is_refusal,
    patched_in,
    quoted_lines,
    texts_handed_over,
)
from codex_checkpoints.core.digest.changes import Changes
from codex_checkpoints.core.digest.quotes import Quotes
from codex_checkpoints.core.digest.records import Answer, DigestSource, Quote, Utterance
from codex_checkpoints.core.digest.replacements import Replacements
from codex_checkpoints.core.digest.truncate import ends_of, label_of
from codex_checkpoints.core.effects import Effects, Run
from codex_checkpoints.core.events import Event, Outcome, Record, ToolCall
from codex_checkpoints.core.fields import renew
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.shell.script import BEGIN

MOST = 1024
"""The most requests, answers, files and commands that are kept, each: the newest."""


@frozen
class _Call:
    """A call that waits for its output: its label, and its subject.

    `ran` is equal for two calls that do the same, and `seq` is the call's own.  `folder` is the
    folder that it names.  `aside`: its output is not quoted.
    """

    label: str
    about: str
    ran: str
    seq: int
    folder: str | None = None
    aside: bool = False


class DigestExtract(events.Fold):
    """Keeps the quotable texts of a session."""

    def __init__(self, stream: Stream, session_id: str, whole: State | None = None) -> None:
        """Follow a stream; `whole` is the state of the session if only a part of it is read.

        It supplies the rolled back turns, and how turns ended.
        """
        self._whole = whole or stream.state
        self._position = 0
        self._state = stream.state
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
        stream.follow(self, texts=True)

    @classmethod
    def near_the_end(
        cls, whole: Replay, lines: bytes, session_id: str, position: int | None = None
    ) -> DigestExtract:
        """Read only the last `lines` of the session `whole`, or those that end at a position."""
        end = whole.near_the_end(lines, position)
        found = cls(end, session_id, whole.state)
        end.feed(lines)
        return found

    def take(self, record: Record) -> None:
        """Keep the content of a record."""
        self._position = record.position
        if record.counts:
            for event in record.events:
                self._take(event, record)

    def _take(self, event: Event, record: Record) -> None:  # noqa: C901, PLR0912 - a case for each kind
        match event:
            case events.UserMessage():
                self._asked(event, record)
            case events.GoalSet(objective=str(objective), by_call=False):
                if objective != self._goal:
                    self._asked_otherwise(objective, None, record)
                self._goal = objective
            case events.PlanMessage(text=text, approved=True):
                self._asked_otherwise(text, None, record)
            case events.AgentWrote():
                self._agent_wrote(event, record)
            case events.ReviewMessage():
                self._reviewed_by(event, record)
            case events.Chosen():
                where = self._where(record, event.turn_id)
                if chosen := choices_of(event):
                    self._requests.append((Utterance(where, ends_of(chosen), chosen=True), False))
            case events.Answered():
                self._answered(event, record)
            case events.AnswerRepeated():
                self._repeated(event, record)
            case events.AgentCalled():
                where = self._where(record, event.turn_id)
                renew(self._callers, event.agent, where.turn_id, MOST)
            case events.AgentsAnswered():
                for name, text in event.answers:
                    self._subagent(name, text, record)
            case events.WindowOpened():
                self._window_opened(event, record)
            case events.CallText():
                self._call(event, record)
            case events.OutputText():
                self._output(event, record)
            case events.CallEnded():
                self._ended_call(Effects(event), record)
            case _:
                pass

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

    # --- taking events -----------------------------------------------------------------------

    def _where(self, record: Record, turn_id: str | None = None) -> RecordPlace:
        turn = self._state.turns.at(turn_id)
        return RecordPlace(self._session, record.seq, None if turn is None else turn.turn_id)

    def _of(self, where: RecordPlace) -> TurnAnswers:
        found = self._turns.setdefault(where.turn_id, TurnAnswers())
        _keep_newest(self._turns)
        return found

    def _agent_wrote(self, event: events.AgentWrote, record: Record) -> None:
        """Keep the task that another agent gives, or its result."""
        if event.text and event.is_answer:
            self._subagent(event.author, event.text, record)
            return
        text = event.text or (self._state.head and self._state.head.agent)
        where = self._where(record, event.turn_id)
        self._asked_otherwise(text or event.recipient, where.turn_id, record)

    def _reviewed_by(self, event: events.ReviewMessage, record: Record) -> None:
        """Keep the request for a review, or its findings."""
        if not event.ended:
            self._reviewed = event.turn_id or self._state.turns.task
            self._asked_otherwise(event.text, self._reviewed, record)
            self._review = self._requests[-1] if self._requests else None
        elif event.text:
            where = self._where(record, event.turn_id)
            turn = self._of(where)
            turn.item = turn.said(where, event.text)

    def _asked_otherwise(self, text: str, turn_id: str | None, record: Record) -> None:
        """Keep a request outside a user message; without a turn it belongs to the next one."""
        where = RecordPlace(self._session, record.seq, turn_id)
        text = without_payloads(text.strip(), [])[0]
        if text:
            self._requests.append((Utterance(where, ends_of(text)), False))

    def _asked(self, event: events.UserMessage, record: Record) -> None:
        texts = (part for part in event.texts if not injected_text.is_image_wrapper(part))
        text = injected_text.request_of("\n".join(texts)).strip()
        text = without_payloads(text, [])[0]
        if text:
            where = self._where(record, event.turn_id)
            of_review = {self._reviewed, self._state.turns.reviewer}
            if self._review in [*self._requests][-1:] and where.turn_id in of_review:
                self._requests.pop()  # the message repeats it in more detail
            self._review = None
            self._requests.append((Utterance(where, ends_of(text)), event.in_history))

    def _answered(self, event: events.Answered, record: Record) -> None:
        text = event.text
        if not text:
            return
        where = self._where(record, event.turn_id)
        turn = self._of(where)
        said = turn.said(where, text)
        if event.final:
            turn.before, turn.answer = turn.answer, said
            self._newest = turn
        else:
            turn.commentary = said
        self._quotes.add(Quote(where, "answer", "", said.text if said.text == text else text))

    def _repeated(self, event: events.AnswerRepeated, record: Record) -> None:
        """Keep an answer that mostly a message of the history has as well."""
        where = self._where(record, event.turn_id)
        turn = self._of(where)
        said = turn.said(where, event.text)
        if event.at_end:
            turn.reported = said
        else:
            turn.item = said

    def _subagent(self, name: str, text: str, record: Record) -> None:
        """Keep the answer of another agent with the turn that called it."""
        where = self._where(record, self._callers.get(name))
        if self._of(where).by_subagent(name, Utterance(where, ends_of(text))):
            self._quotes.add(Quote(where, "output", "subagent", text))

    def _window_opened(self, event: events.WindowOpened, record: Record) -> None:
        if event.by == "undo":
            self._replaced.undo()
            return
        self._replaced.begin(record.seq)
        if event.by_us:
            self._replaced.ours(event.text)
        elif event.text:
            said = Utterance(self._where(record), ends_of(event.text))
            self._replaced.summary(said)
            taken = None if self._newest is None else self._newest.without(said.text)
            if taken is not None:
                self._quotes.without_last(taken.where)

    def _call(self, event: events.CallText, record: Record) -> None:
        text, parts, script = event.text, event.parts, event.script
        where = self._where(record, event.turn_id)
        label, about = label_of(script or event.name), ends_of(script or text)
        is_patch = BEGIN in text
        within = event.folder or event.turn_folder or ""
        ran = "\0".join((event.name, within, script if script and parts == (text,) else text))
        call = _Call(
            "" if is_patch else label, about, _hash_of(ran), record.seq, event.folder, event.aside
        )
        if event.process is not None:
            call = self._running.get(event.process, call)
        self._calls[event.call_id], self._called_at = call, record.seq
        _keep_newest(self._calls)
        if not text or event.aside:
            return
        about = about if parts == (text,) else ends_of(text)
        handed = None if script or is_patch else texts_handed_over(text)
        if handed is not None:
            label, said = label_of(f"{event.name} {handed[0]}".strip()), handed[1]
            self._quotes.add(Quote(where, "written", label, said, about))
            return
        for part in parts:
            (said, others), files = quoted_lines(part), []
            others = [row for row in others if (where.turn_id, row) not in self._said_with]
            for row in others:
                renew(self._said_with, (where.turn_id, row), None, MOST)
            said = "\n".join([*others, said])
            if BEGIN in part:
                said, files = files_of_patch(said, self._relative)
            if said.strip():
                said, _ = without_payloads(said, [])
                self._quotes.add(Quote(where, "call", label, said, about))
            for names, rows in files:
                self._quotes.add(Quote(where, "patch", ", ".join(names), rows, about))
        if is_patch:
            self._patches[event.call_id] = (record.seq, patched_in(text))
            _keep_newest(self._patches)

    def _relative(self, path: str) -> str:
        return path.removeprefix(f"{self._state.base}/")

    def _output(self, event: events.OutputText, record: Record) -> None:
        unknown = _Call(event.tool, "", "", record.seq, aside=event.aside)
        call = self._calls.get(event.call_id, unknown)
        where = self._where(record, event.turn_id)
        if event.process is not None:
            self._running[event.process] = call
            _keep_newest(self._running)
        outcome = event.outcome
        if event.call_id in self._patches:
            self._patched(*self._patches.pop(event.call_id), outcome, where)
        text = outcome.printed
        if text and text.strip() and call.label and not call.aside:
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

    def _ended_call(self, effects: Effects, record: Record) -> None:
        """Record the outcome of a call: the files that it changed, and how the command ended."""
        ended = effects.ended
        where = self._where(record, ended.turn_id)
        call = self._calls.get(ended.call.call_id)
        began = self._called_at if call is None else call.seq
        # The call holds the change; its answer only confirms it.
        at = where if call is None else evolve(where, seq=began)
        self._changes.observe(effects, at, began)
        for run in self._runs_in(effects):
            self._changes.ran(run, effects, where)

    def _runs_in(self, effects: Effects) -> tuple[Run, ...]:
        """Return the commands whose end is reported."""
        item = effects.ended.call
        if isinstance(item, ToolCall) and item.process is not None:
            # The time of this call covers the last look only.
            call = self._running.get(item.process)
            is_over = call is not None and effects.outcome.failed is not None
            return (Run(call.label, effects.outcome, call.folder),) if call and is_over else ()
        return tuple(evolve(each, seconds=effects.seconds) for each in effects.runs)


def _hash_of(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


def _keep_newest(kept: dict[Any, Any]) -> None:
    """Drop the oldest entry of a table that exceeds `MOST`."""
    if len(kept) > MOST:
        del kept[next(iter(kept))]
