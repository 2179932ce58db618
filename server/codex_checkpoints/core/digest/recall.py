"""Finds the record that an anchor names, or the lines that contain a text (RCL-1).

Only the conversation can be recalled: messages of the user and the agent, calls, outputs, patches
and summaries.  Instructions, reasoning and the heads of files cannot.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.items import outcome_in
from codex_checkpoints.core.agents.codex.own_messages import UNDO, is_ours
from codex_checkpoints.core.agents.codex.reader import WORDS, Fold, Line
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.calls import (
    CALLS,
    DIALOG,
    OURS,
    OUTPUTS,
    json_in,
    output_of,
    script_of,
    secrets_of,
    without_answers,
)
from codex_checkpoints.core.digest.extract import MOST
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.events import (
    UNKNOWN,
    AgentWrote,
    CommandRun,
    FilesChanged,
    GoalSet,
    Outcome,
    PlanTold,
    TaskEnded,
    ToolRan,
    Trouble,
    UserMessage,
)
from codex_checkpoints.core.fields import Json, object_of, text_of, texts_of, words_of
from codex_checkpoints.core.shell import posix
from codex_checkpoints.core.turns import Turns

RecordKind = Literal["user", "assistant", "call", "output", "patch", "summary", "file", "error"]

MOST_TEXT = 8_000
"""The most code points of one answer."""

MOST_HITS = 1000
_TURN = re.compile(r"t([1-9][0-9]{0,6})")
_SEQ = re.compile(r"#?([0-9]{1,15})")


@frozen
class Entry:
    """A record that can be recalled: its number, its turn, its ids and its text, redacted.

    `about` is the script or the arguments of its call.  `repeats`: another record of the session
    has the same content, or the record is itself a look at the session.  `in_history`: it is the
    history's copy of a user message.  `stamp` is the time of its line; `outcome` is the result of
    an output, without the printed text.
    """

    seq: int
    turn_id: str | None
    kind: RecordKind
    ids: tuple[str, ...]
    text: str
    about: str = ""
    repeats: bool = False
    in_history: bool = False
    stamp: str | None = None
    outcome: Outcome = UNKNOWN

    @property
    def lines(self) -> int:
        """Return the number of lines of its text."""
        return self.text.count("\n") + 1


@frozen
class Ref:
    """The target of a reference: a `seq`, the number of a turn, or an id."""

    seq: int | None = None
    turn: int | None = None
    id: str | None = None

    @classmethod
    def of(cls, text: str) -> Ref:
        """Read a reference: `#12`, `12`, `seq:12`, `t3`, or the id of a message or a call."""
        if found := _SEQ.fullmatch(text.removeprefix("seq:")):
            return cls(seq=int(found[1]))
        if found := _TURN.fullmatch(text):
            return cls(turn=int(found[1]))
        return cls(id=text)


@frozen
class _Said:
    kind: RecordKind
    text: str
    ids: tuple[str | None, ...]
    repeats: bool = False
    outcome: Outcome = UNKNOWN


class Recall(Fold):
    """Collects the entries of a session that a test accepts, as far as `part` keeps them.

    `is_named` sees an entry before its redaction, which is slow, and must not read its text.  The
    newest `most` of the kept lines are returned, with the rest of their entry.  `is_wanted` sees
    the line of a session file first.  With `scripts` the text of a command's call is its script,
    else its arguments.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        replay: Replay,
        is_named: Callable[[Entry], bool],
        part: Callable[[Entry], Entry | None],
        most: int | None = None,
        is_wanted: Callable[[Line], bool] = lambda _line: True,
        *,
        scripts: bool = False,
    ) -> None:
        """Follow a replay that has read nothing yet."""
        self._state, self._deriver = replay.state, replay.deriver
        self._known = replay.derivation
        self._is_wanted, self._scripts = is_wanted, scripts
        self._is_named, self._part = is_named, part
        self._most, self._lines = most, 0
        self._calls: dict[str | None, str] = {}
        self._looks: set[str | None] = set()
        self._secrets: dict[str | None, frozenset[str | None]] = {}
        """By call of a dialog, the ids of its secret questions."""
        self.entries: deque[Entry] = deque()
        self._compacted: deque[int] = deque(maxlen=MOST)
        """The `seq` of the compactions that were not undone, the newest last."""
        self._copy: Entry | None = None
        """The history's copy of a message, which may precede the turn that it opens."""
        replay.folds.append(self)

    @property
    def turns(self) -> Turns:
        """Return the turns of the session."""
        return self._state.turns

    @property
    def typed(self) -> bool:
        """Return whether the session also has its user messages outside the history."""
        return self._state.typed

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Ask for the words of every line."""
        return WORDS

    def take(self, line: Line) -> None:
        """Keep a line that is accepted."""
        if line.kind == "compacted":
            self._compaction(line)
        if line.passed_over or not self._known.counts(line.seq):
            return
        read = self._read(line)
        if not self._is_wanted(line):
            deque(read, 0)  # its information about a call serves other lines
            return
        for said in read:
            kind, text, ids = said.kind, said.text, said.ids
            turn = self._state.turns.at(line.named_turn)
            if text.strip():
                entry = Entry(
                    line.seq,
                    None if turn is None else turn.turn_id,
                    kind,
                    tuple(each for each in ids if each),
                    text,
                    self._calls.get(ids[0] if ids else None, "") if kind != "user" else "",
                    said.repeats,
                    in_history=kind == "user" and line.tag == "message",
                    stamp=line.stamp,
                    outcome=said.outcome,
                )
                copy, self._copy = self._copy, None
                if copy and kind == "user" and not entry.in_history and self.entries[-1] is copy:
                    self.entries[-1] = evolve(copy, turn_id=entry.turn_id)
                if self._is_named(entry):
                    found = self._part(evolve(entry, text=redact(plain(text))))
                    if found is not None:
                        self._keep(found)
                        self._copy = found if entry.in_history else None

    def _compaction(self, line: Line) -> None:
        """Record a compaction, or drop the summary of an undone one."""
        if line.tag != UNDO:
            self._compacted.append(line.seq)
            return
        gone = self._compacted.pop() if self._compacted else None
        for each in [*self.entries]:
            if each.kind == "summary" and each.seq == gone:
                self.entries.remove(each)
                self._lines -= each.lines

    def _keep(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._lines += entry.lines
        while self._most and self._lines - self.entries[0].lines >= self._most:
            self._lines -= self.entries.popleft().lines

    def _read(self, line: Line) -> Iterator[_Said]:
        payload, tag = line.payload, line.tag
        call_id = text_of(payload.get("call_id"))
        if tag in CALLS:
            text = text_of(payload.get("arguments")) or text_of(payload.get("input")) or ""
            words = words_of(object_of(payload.get("action")).get("command"))
            text = text or " ".join(words or ())
            script = script_of(line.item) or text
            self._calls[call_id] = ends_of(script)
            if len(self._calls) > MOST:
                del self._calls[next(iter(self._calls))]
            name = text_of(payload.get("name"))
            looks = name in OURS
            self._looks |= {call_id} if looks else set()
            if name == DIALOG and (secrets := secrets_of(json_in(text))):
                self._secrets[call_id] = secrets
            kind = "patch" if "*** Begin Patch" in text else "call"
            yield _Said(kind, script if self._scripts else text, (call_id,), looks)
        elif isinstance(self._deriver.item, PlanTold) and self._deriver.item.approved:
            yield from self._told(payload, line)
        elif tag in OUTPUTS:
            looks = call_id in self._looks
            self._looks.discard(call_id)
            output, secrets = output_of(payload), self._secrets.pop(call_id, None)
            output = without_answers(output, secrets) if secrets else output
            ended = outcome_in((output,))
            # The readable form: very old ones are JSON.
            text = (ended.printed or output) if output.startswith("{") else output
            outcome = Outcome(ended.failed, ended.exit_code)
            yield _Said("output", text, (call_id,), looks, outcome)
        elif line.kind == "compacted":
            text = text_of(payload.get("message")) or ""
            if not (tag == UNDO or is_ours(text)):
                yield _Said("summary", injected_text.without_summary_start(text), ())
        elif tag == "message" and line.inner == "assistant":
            text = "\n".join(texts_of(payload.get("content")))
            yield _Said("assistant", text, (text_of(payload.get("id")),))
        elif tag == "message" and line.inner == "user":
            texts = texts_of(payload.get("content"))
            if injected_text.is_human(texts):
                repeats = self._state.typed
                yield _Said("user", "\n".join(texts), (text_of(payload.get("id")),), repeats)
        elif tag == "item_completed":
            yield from self._item(payload, line)
        else:
            yield from self._told(payload, line)

    def _told(self, payload: Json, line: Line) -> Iterator[_Said]:
        """Yield the other texts of an event or an item: requests, results, errors."""
        match self._deriver.item:
            case UserMessage() as item if injected_text.is_by_person(item):
                yield _Said("user", "\n".join(item.texts), (item.ref,))
            case GoalSet(objective=objective) if objective is not None:
                goal = self._state.turns.goal
                is_new = goal is not None and goal.seq == line.seq
                yield _Said("user", objective, (), repeats=not is_new)
            case PlanTold(text=text, approved=True):
                yield _Said("user", text, ())
            case AgentWrote(text=text) as item if text:
                yield _Said("assistant" if item.is_answer else "user", text, (item.ref,))
            case Trouble(text=text) | TaskEnded(error=Trouble(text=text)):
                yield _Said("error", text, ())
            case _:
                if line.kind == "event_msg":
                    yield from self._item(payload, line)

    def _item(self, payload: Json, line: Line) -> Iterator[_Said]:
        """Yield the texts of an item or an event that ends a call.

        Response items repeat them, except for user messages.
        """
        value = object_of(payload.get("item")) or payload
        match line.item:
            case UserMessage() as item:
                yield _Said("user", "\n".join(item.texts), (item.ref,))
            case CommandRun() as item:
                printed = item.printed or ""
                self._calls[item.call_id] = ends_of(posix.script_of(item.argv))
                text = f"$ {posix.script_of(item.argv)}\n{printed}"
                yield _Said("output", text, (item.call_id,), repeats=True)
            case FilesChanged() as item:
                yield _Said("patch", "\n".join(_diffs(value)), (item.call_id,), repeats=True)
            case ToolRan() as item:
                yield _Said("output", "\n".join(item.texts), (item.call_id,), repeats=True)
            case _:
                if value.get("type") == "AgentMessage":
                    text = "\n".join(texts_of(value.get("content")))
                    yield _Said("assistant", text, (text_of(value.get("id")),), repeats=True)


def _diffs(value: Json) -> Iterator[str]:
    """Yield the changes of files with patch headers."""
    for path, each in object_of(value.get("changes")).items():
        change = object_of(each)
        yield f"*** {str(change.get('type') or 'update').capitalize()} File: {path}"
        if (moved := text_of(change.get("move_path"))) is not None:
            yield f"*** Move to: {moved}"
        yield text_of(change.get("unified_diff")) or text_of(change.get("content")) or ""


def shown(entry: Entry, ignored: Ignoring) -> Entry | None:
    """Return an entry without files that are never quoted; None if it is about such a file."""
    if entry.kind == "patch":
        return None if ignored.patch(entry.text) else entry
    if ignored.script(entry.about):
        return None
    is_output = entry.kind == "output"
    return evolve(entry, text=ignored.without(entry.text)) if is_output else entry


def says_more(entry: Entry) -> bool:
    """Return whether no other record of the session has the same content."""
    return not entry.repeats
