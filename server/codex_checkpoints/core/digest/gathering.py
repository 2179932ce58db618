"""The fold that keeps what a digest quotes: requests, answers, changes, checks and texts.

It follows a replay, whose state tells turns and observations.  Memory is bounded: of the texts the
newest `TEXTS` code points are kept, of requests, answers, files and commands the newest of each.
The result depends on the lines alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Container, Iterator
from hashlib import sha256
from typing import Any, Final

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.runs import Run, runs_in
from codex_checkpoints.core.checkpoint.state import Observation, State, name_of
from codex_checkpoints.core.digest.calls import (
    CALLS,
    DIALOG,
    OUTPUTS,
    SILENT,
    calls_in,
    chosen_in,
    files_of_patch,
    is_refusal,
    json_in,
    output_of,
    patched_in,
    quoted_lines,
    script_of,
    texts_handed_over,
    written_anew,
)
from codex_checkpoints.core.digest.checks import Checks
from codex_checkpoints.core.digest.cutting import ends_of, label_of
from codex_checkpoints.core.digest.git import commits, folders_put_back, is_in
from codex_checkpoints.core.digest.outcomes import (
    PatchCounts,
    hunks_of,
    seconds_of,
)
from codex_checkpoints.core.digest.records import (
    Answer,
    Carried,
    Gathered,
    Quote,
    Said,
    Trail,
    Where,
)
from codex_checkpoints.core.digest.touching import may_have_changed_more, rewritten_by, touched_in
from codex_checkpoints.core.rollout import contextual
from codex_checkpoints.core.rollout.contextual import without_payloads
from codex_checkpoints.core.rollout.fields import (
    Json,
    load,
    object_of,
    renew,
    text_of,
    texts_of,
    words_of,
)
from codex_checkpoints.core.rollout.items import (
    AgentWrote,
    CommandRun,
    GoalSet,
    Item,
    Outcome,
    PlanTold,
    ReviewTold,
    Seen,
    ToolCall,
    UserMessage,
    outcome_in,
    outcome_of_script,
)
from codex_checkpoints.core.rollout.ours import DIGEST_LINE, UNDO, is_ours
from codex_checkpoints.core.rollout.parsing import item_of, turn_id_of, turn_named_by
from codex_checkpoints.core.rollout.reader import NOTED, WORDS, Fold, Line
from codex_checkpoints.core.rollout.script import BEGIN
from codex_checkpoints.core.rollout.turns import TASK_ENDS, Ended, asks

TEXTS = 1 << 21
"""Code points of calls, outputs and answers that are kept to be quoted line by line."""

LONGEST = 1 << 16
"""Code points of one text; of a longer one the two ends are kept."""

MOST = 1024
"""How many requests, answers, files and commands are kept, each; the newest."""

_SUMMARIES = 16
_ASK_SUBAGENTS = frozenset({"send_input", "resume_agent"})
_OF_SUBAGENTS = _ASK_SUBAGENTS | {"spawn_agent", "wait_agent", "wait", "close_agent"}
_SUBAGENTS = 64
"""How many answers of subagents are kept of one turn."""

_ITEM = "AgentMessage"
_NOTIFICATION: Final = re.compile(
    r"\s*<subagent_notification>(.*)</subagent_notification>\s*", re.DOTALL
)
_RUNNING: Final = re.compile(r"Process running with session ID (\d{1,10})")


@define
class _Turn:
    """The answers of one turn; `before` is the answer before the last one.

    `item` is the last one that an item alone tells, `subagents` has those of subagents by their id.
    """

    answer: Said | None = None
    before: Said | None = None
    commentary: Said | None = None
    item: Said | None = None
    reported: Said | None = None
    subagents: dict[str, Said] = Factory(dict[str, Said])

    def said(self, where: Where, text: str) -> Said:
        """Return a text with its place; Codex records most answers three times, all share one."""
        cut = ends_of(text)
        known = (each.text for each in (self.answer, self.item) if each is not None)
        return Said(where, next((each for each in known if each == cut), cut))

    @property
    def last(self) -> Said | None:
        item, commentary = self.item, self.commentary
        if item is not None and commentary is not None and item.text == commentary.text:
            item = None
        return self.answer or item or commentary or self.reported


@frozen
class _Call:
    """A call that waits for its output: what names it, and what it is about.

    `ran` is the same for two calls that do the same, and `seq` that of this one.  `folder` is the
    one that it names.
    """

    label: str
    about: str
    ran: str
    seq: int
    folder: str | None = None


@frozen
class _Replaced:
    """What compactions left: the `seq` of the newest, and what those say that can be read.

    `carried` are the digest lines of the newest of ours, `summaries` those of Codex, the newest
    first.
    """

    below: int = 0
    carried: tuple[Carried, ...] = ()
    summaries: tuple[Said, ...] = ()


class Gathering(Fold):
    """Keeps the texts of a session while a replay reads it."""

    def __init__(self, replay: Replay, session_id: str, whole: State | None = None) -> None:
        """Follow a replay; `whole` is the state of the session where only a part of it is read.

        It tells which turns were rolled back, and how they ended.
        """
        self._whole = whole or replay.state
        self._position = 0
        self._state, self._reducer = replay.state, replay.reducer
        self._session = session_id
        self._requests: deque[tuple[Said, bool]] = deque(maxlen=MOST)
        self._turns: dict[str | None, _Turn] = {}
        self._newest: _Turn | None = None
        self._changes: dict[str, Trail] = {}
        self._edits = 0
        self._committed = -1
        self._unnamed: deque[tuple[Where, str]] = deque(maxlen=MOST)
        self._rewritten = frozenset[str]()
        self._checks = Checks()
        self._replaced: _Replaced = _Replaced()
        self._undoable: deque[_Replaced] = deque(maxlen=_SUMMARIES)
        """What there was before each of the newest compactions."""
        self._quotes: deque[Quote] = deque()
        self._size = 0
        self._calls: dict[str, _Call] = {}
        self._running: dict[str, _Call] = {}
        self._called_at = -1
        """The `seq` of the newest call; in code mode nobody tells which one ran a command."""
        self._newest_runs: dict[str, tuple[int, str | None]] = {}
        """Of what calls do the newest that printed something: the `seq` of the call, its turn."""
        self._patches: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By call the line of a patch without an outcome yet, and the files that it names."""
        self._callers: dict[str, str | None] = {}
        self._goal: str | None = None
        """The objective that was kept last: each report of a goal repeats it."""
        self._review: tuple[Said, bool] | None = None
        """The request for a review, until a message of the user says it in more words."""
        self._said_with: dict[tuple[str | None, str], None] = {}
        """Arguments beside a command, by turn: they stand with its first command that has them."""
        replay.folds.append(self)

    @classmethod
    def near_the_end(
        cls, whole: Replay, lines: bytes, session_id: str, position: int | None = None
    ) -> Gathering:
        """Read only the last `lines` of the session `whole`, or those that end at a position."""
        end = whole.near_the_end(lines, position)
        found = cls(end, session_id, whole.state)
        end.feed(lines)
        return found

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Ask for the words of everything that may be quoted."""
        quoted = kind in {None, "response_item", "compacted"} or inner == _ITEM
        return WORDS if quoted else NOTED

    def take(self, line: Line) -> None:
        """Keep what a line tells."""
        state = self._state
        self._position = line.position
        if line.passed_over or not state.tells(line.seq):
            return
        payload, tag = line.payload, line.tag
        if tag in CALLS:
            self._call(payload, line)
        elif isinstance(self._reducer.item, PlanTold):
            self._told(self._reducer.item, line)
        elif tag in OUTPUTS:
            self._output(payload, line)
        elif tag == "message" and line.inner == "assistant":
            self._answered(payload, line)
        elif line.inner == _ITEM:
            self._item(object_of(payload.get("item")), line)
        elif tag == "message" and (told := _notification(payload)):
            self._subagents(told, None, line)
        elif line.kind == "compacted":
            self._compacted(payload, line)
        elif tag in TASK_ENDS:
            self._ended(payload, line)
        else:
            self._told(self._reducer.item, line)
        for each in state.observed:
            self._observe(each, line)

    def gathered(self) -> Gathered:
        """Return what was kept, without the turns that were rolled back."""
        turns, end = self._whole.turns, self._position
        counted = [turn for turn in turns.counting() if turn.opened <= end]
        numbers = {turn.turn_id: number for number, turn in enumerate(counted, 1)}
        gone = {turn.turn_id for turn in turns.turns if turn.rolled_back}

        def placed(where: Where) -> Where:
            turn = numbers.get(where.turn_id or "")
            return evolve(where, turn=turn, age=len(counted) - (turn or 0))

        def asked(where: Where) -> Where:
            """Return the place of a request; what was asked between turns opened the next one."""
            if where.turn_id is not None:
                return where
            opened = (turn for turn in counted if turn.opened_seq >= where.seq)
            turn = next(opened, None)
            return where if turn is None else evolve(where, turn_id=turn.turn_id)

        ends = dict(self._whole.ends())
        answers: list[Answer] = []
        for turn in counted:
            found = self._turns.get(turn.turn_id, _Turn())
            for said in found.subagents.values():
                told = evolve(said, where=placed(said.where))
                answers.append(Answer(told, ends[turn.turn_id], asks=False, by_subagent=True))
            if found.last is not None:
                answers.append(_answer(found.last, ends[turn.turn_id], placed))
        summaries = (each for each in self._replaced.summaries if each.where.turn_id not in gone)
        summary = next(summaries, None)
        plans = [number for number, turn in enumerate(counted, 1) if turn.planned is not None]
        return Gathered(
            len(counted),
            tuple(
                evolve(said, where=placed(asked(said.where)))
                for said, in_history in self._requests
                if said.where.turn_id not in gone and not (in_history and self._whole.typed)
            ),
            tuple(answers),
            ends[counted[-1].turn_id] if counted else None,
            len(counted) - plans[-1] if plans else None,
            {
                uri: evolve(
                    trail,
                    where=placed(trail.where),
                    turns=tuple(numbers[each] for each in trail.turn_ids if each in numbers),
                )
                for uri, trail in self._changes.items()
            },
            tuple(
                evolve(each, where=placed(each.where))
                for each in self._checks.last.values()
                if each.where.turn_id not in gone
            ),
            self._edits,
            {
                ran: each.seq
                for ran, each in self._checks.passed.items()
                if each.turn_id not in gone
            },
            summary and evolve(summary, where=placed(summary.where)),
            tuple(
                evolve(each, where=placed(each.where))
                for each in self._quotes
                if each.where.turn_id not in gone and not self._ran_again(each, gone)
            ),
            self._replaced.below,
            self._replaced.carried,
            counted[-1].reason if counted else None,
            None if turns.goal is None else turns.goal.status,
            unnamed=tuple(
                (placed(where), script)
                for where, script in self._unnamed
                if where.turn_id not in gone
            ),
        )

    def _ran_again(self, quote: Quote, gone: Container[str | None]) -> bool:
        """Return whether a quote is of an output, and the same call printed another one since."""
        seq, turn_id = self._newest_runs.get(quote.ran, (-1, None))
        return quote.kind == "output" and quote.where.seq < seq and turn_id not in gone

    # --- what lines tell ---------------------------------------------------------------------

    def _where(self, line: Line, turn_id: str | None = None) -> Where:
        turn = self._state.turns.at(turn_id)
        return Where(self._session, line.seq, None if turn is None else turn.turn_id)

    def _of(self, where: Where) -> _Turn:
        found = self._turns.setdefault(where.turn_id, _Turn())
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
                self._asked_otherwise(text, None, line)
                self._review = self._requests[-1] if self._requests else None
            case ReviewTold(text=text) if text:
                where = self._where(line, item.turn_id)
                turn = self._of(where)
                turn.item = turn.said(where, text)
            case _:
                pass

    def _asked_otherwise(self, text: str, turn_id: str | None, line: Line) -> None:
        """Keep a request that is no user message; without a turn it belongs to the next one."""
        where = Where(self._session, line.seq, turn_id)
        text = without_payloads(text.strip(), [])[0]
        if text:
            self._requests.append((Said(where, ends_of(text)), False))

    def _asked(self, item: UserMessage, line: Line) -> None:
        if contextual.is_by_person(item):
            texts = (part for part in item.texts if not contextual.is_image_wrapper(part))
            text = contextual.request_of("\n".join(texts)).strip()
            text = without_payloads(text, [])[0]
            if text:
                if self._review is not None and self._review in [*self._requests][-1:]:
                    self._requests.pop()  # the message says it in more words
                self._review = None
                said = Said(self._where(line, item.turn_id), ends_of(text))
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
        self._quote(Quote(where, "answer", "", said.text if said.text == text else text))

    def _item(self, item: Json, line: Line) -> None:
        """Keep an answer that an item tells; mostly a message of the history says the same."""
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
        kept, said = self._of(where).subagents, Said(where, ends_of(text))
        known = kept.get(name)
        if known is None or known.text != said.text:
            renew(kept, name, said, _SUBAGENTS)
            self._quote(Quote(where, "output", "subagent", text))

    def _ended(self, payload: Json, line: Line) -> None:
        where = self._where(line, text_of(payload.get("turn_id")))
        text = (text_of(payload.get("last_agent_message")) or "").strip()
        if text:
            turn = self._of(where)
            turn.reported = turn.said(where, text)

    def _compacted(self, payload: Json, line: Line) -> None:
        if line.tag == UNDO:
            self._replaced = self._undoable.pop() if self._undoable else _Replaced()
            return
        self._undoable.append(self._replaced)
        self._replaced = found = evolve(self._replaced, below=line.seq)
        text = text_of(payload.get("message")) or ""
        if is_ours(text):
            self._replaced = evolve(found, carried=tuple(_carried_in(text)))
        elif summary := contextual.without_summary_start(text).strip():
            said = Said(self._where(line), ends_of(summary))
            self._replaced = evolve(found, summaries=(said, *found.summaries[: _SUMMARIES - 1]))
            self._no_answer(said.text)

    def _no_answer(self, summary: str) -> None:
        """Take the newest answer back where it is this summary: Codex records both."""
        turn = self._newest
        if turn is not None and turn.item is not None and turn.item.text == summary:
            turn.item = None
        if turn is None or turn.answer is None or turn.answer.text != summary:
            return
        if self._quotes and self._quotes[-1].where == turn.answer.where:
            self._size -= len(self._quotes.pop().text)
        turn.answer, turn.before = turn.before, None

    def _call(self, payload: Json, line: Line) -> None:
        call_id, name = text_of(payload.get("call_id")) or "", text_of(payload.get("name")) or ""
        action = object_of(payload.get("action"))
        text = text_of(payload.get("arguments")) or text_of(payload.get("input")) or ""
        if action:
            text = " ".join(words_of(action.get("command")) or ()) or text
        item = item_of(line.kind, payload, bare=line.bare)
        if (rewritten := rewritten_by(payload)) is not None:
            self._rewritten = rewritten
        where = self._where(line, turn_id_of(payload))
        parts, script = [text], script_of(item)
        if isinstance(item, ToolCall) and item.is_script:
            parts = calls_in(item) or parts
            script = "; ".join(part for part in parts if part != text and BEGIN not in part)
        label, about = label_of(script or name), ends_of(script or text)
        is_patch = BEGIN in text
        given = item.arguments if isinstance(item, ToolCall) else None
        folder = text_of(object_of(given).get("workdir"))
        within = folder or self._state.turn_folder or ""
        ran = "\0".join((name, within, script if script and parts == [text] else text))
        call = _Call("" if is_patch else label, about, _hash_of(ran), line.seq, folder)
        if name == "write_stdin":
            session = str(object_of(load(text.encode(errors="replace"))).get("session_id"))
            call = self._running.get(session, call)
        if name in _ASK_SUBAGENTS and (agent_id := text_of(json_in(text).get("id"))):
            renew(self._callers, agent_id, where.turn_id, MOST)
        self._calls[call_id], self._called_at = call, line.seq
        _keep_newest(self._calls)
        if not text or name in SILENT or name == DIALOG:  # it stands with the requests
            return
        about = about if parts == [text] else ends_of(text)
        handed = None if script or is_patch else texts_handed_over(text)
        if handed is not None:
            label, said = label_of(f"{name} {handed[0]}".strip()), handed[1]
            self._quote(Quote(where, "written", label, said, about))
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
                self._quote(Quote(where, "call", label, said, about))
            for names, rows in files:
                self._quote(Quote(where, "patch", ", ".join(names), rows, about))
        if is_patch:
            self._patches[call_id] = (line.seq, patched_in(text))
            _keep_newest(self._patches)

    def _relative(self, path: str) -> str:
        return path.removeprefix(f"{self._state.base}/")

    def _output(self, payload: Json, line: Line) -> None:
        call_id, output = text_of(payload.get("call_id")) or "", output_of(payload)
        call = self._calls.get(call_id, _Call("tool", "", "", line.seq))
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
                self._requests.append((Said(where, ends_of(chosen), chosen=True), False))
            return
        outcome = (outcome_of_script if output.startswith("Script ") else outcome_in)((output,))
        text = outcome.printed
        if call_id in self._patches:
            self._patched(*self._patches.pop(call_id), outcome, where)
        if text and text.strip() and call.label and call.label not in SILENT:
            failed = outcome.ended if outcome.failed else ""
            self._quote(Quote(where, "output", call.label, text, call.about, call.ran, failed))
            if call.ran:
                renew(self._newest_runs, call.ran, (call.seq, where.turn_id), MOST)

    def _patched(self, seq: int, files: tuple[str, ...], outcome: Outcome, where: Where) -> None:
        """Take the quote of a patch back that was refused: no file holds its lines."""
        if not is_refusal(outcome):
            return
        trails = [self._changes.get(self._relative(each)) for each in files]
        if trails and all(trail and trail.where.seq >= seq for trail in trails):
            return  # the files did change: what failed is another part of the script
        at = len(self._quotes) - 1
        while at >= 0 and self._quotes[at].where.seq >= seq:
            if (self._quotes[at].where.seq, self._quotes[at].kind) == (seq, "patch"):
                self._size -= len(self._quotes[at].text)
                del self._quotes[at]
            at -= 1
        self._checks.refused(files, outcome, where, self._edits)

    def _quote(self, quote: Quote) -> None:
        quote = evolve(quote, text=ends_of(quote.text, LONGEST))
        self._quotes.append(quote)
        self._size += len(quote.text)
        while self._size > TEXTS:
            self._size -= len(self._quotes.popleft().text)

    def _observe(self, observed: Observation, line: Line) -> None:
        """Take the outcome of a call: the files that it changed, and how the command ended."""
        item = observed.item
        of_call = item.turn_id if isinstance(item, ToolCall) else None
        named = of_call or turn_named_by(line.payload)
        where = self._where(line, named)
        changed = [each for each in touched_in(observed, self._rewritten) if each.edits]
        hunks = hunks_of(item, line) if changed else {}
        whole = written_anew(item) if changed else frozenset[str]()
        call = self._calls.get(item.call_id)
        began = self._called_at if call is None else call.seq
        # The call has what was changed; its answer only says that it was.
        at = where if call is None else evolve(where, seq=began)
        for each in changed:
            self._edits += 1
            self._checks.edited(each.name, each.uri)
            trail = self._changes.pop(each.uri, None)
            if trail is None:
                trail = Trail(where, onto=each.onto, began=began)
            elif each.onto is None:
                trail.onto = None
            rows = None if each.moved_to else hunks.get(each.name)
            counts = None if rows is None else PatchCounts.of(rows)
            one = evolve(each, anew=each.anew or each.name in whole)
            trail.take(at, one, counts, began)
            self._changes[each.uri] = trail
            _keep_newest(self._changes)
        if may_have_changed_more(observed):
            script = next((run.script for run in runs_in(observed)), "")
            self._unnamed.append((at, ends_of(script)))
        for run in self._runs_in(observed, line):
            self._git(run, observed, where)
            inside = name_of(Seen("file", "_", "read", run.folder), observed.place)[0] or "_"
            self._checks.ran(run, where, inside[:-1], self._edits)

    def _runs_in(self, observed: Observation, line: Line) -> tuple[Run, ...]:
        """Return the commands whose end is told."""
        match observed.item:
            case ToolCall(name="write_stdin") as item:  # its time is that of the last look alone
                call = self._running.get(str(object_of(item.arguments).get("session_id")))
                is_over = call is not None and observed.outcome.failed is not None
                return (Run(call.label, observed.outcome, call.folder),) if call and is_over else ()
            case CommandRun():
                seconds = seconds_of(object_of(line.payload.get("item")) or line.payload, ())
            case _:
                seconds = seconds_of({}, observed.texts)
        return tuple(evolve(each, seconds=seconds) for each in runs_in(observed))

    def _git(self, run: Run, observed: Observation, where: Where) -> None:
        """Take what git put back; what may have been committed before stays in the files."""
        for folder in folders_put_back(run, observed):
            for known, trail in self._changes.items():
                is_new = trail.created and trail.began > self._committed
                is_open = trail.where.seq > self._committed
                if is_open and not is_new and is_in(known, folder):
                    self._edits += 1
                    trail.put_back_at(where, whole=trail.began > self._committed)
        if commits(run):
            self._committed = where.seq
            for trail in self._changes.values():
                trail.commit()


def _answer(said: Said, ended: Ended, placed: Callable[[Where], Where]) -> Answer:
    return Answer(evolve(said, where=placed(said.where)), ended, asks(said.text))


def _hash_of(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


def _notification(payload: Json) -> Json:
    """Return what a message tells of a subagent that has ended; empty where it tells nothing."""
    found = _NOTIFICATION.fullmatch("\n".join(texts_of(payload.get("content"))))
    return {} if found is None else json_in(found[1].strip())


def _keep_newest(kept: dict[Any, Any]) -> None:
    """Drop the oldest entry of a table that has grown over `MOST`."""
    if len(kept) > MOST:
        del kept[next(iter(kept))]


_CARRIED = re.compile(r"- (?:t[0-9]+ )?#([0-9]{1,15}) (.+)")


def _carried_in(handoff: str) -> Iterator[Carried]:
    """Yield the anchored lines of the digest that a handoff holds."""
    section = ""
    for line in handoff.partition(DIGEST_LINE)[2].split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        elif found := _CARRIED.fullmatch(line):
            yield Carried(section, int(found[1]), found[2])
