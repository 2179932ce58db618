"""Reads facts from both ends of a session file, without the rest (rules, "Lists").

A fact has the value that reading the whole file gives, or None. The middle of the file is not read,
so some properties are assumed, since Codex always writes them. Each turn has an id of its own. A
file of bare lines, which have no time, contains only such lines. A name that is only in the middle
of an older file is in Codex's list of names as well. An approved plan comes before the first
prompt. A goal that the model sets is pursued at once, in a task without a user message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from attrs import Factory, define

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import injected_text, items
from codex_checkpoints.core.agents.codex import line_facts as facts
from codex_checkpoints.core.agents.codex.derive import folder_in
from codex_checkpoints.core.agents.codex.inherited import is_copied, may_inherit
from codex_checkpoints.core.agents.codex.parsing import BOM, item_of, record_of
from codex_checkpoints.core.agents.codex.reader import PASSED_OVER_FROM
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import cut, value
from codex_checkpoints.core.checkpoint.requests import title_of, words_of
from codex_checkpoints.core.fields import Json, is_object, load, text_of, whole_of
from codex_checkpoints.core.requests import heading_of, implements_plan
from codex_checkpoints.core.turns import Turns

_NEEDED = facts.PROMPT | facts.TURN | facts.TOKENS | facts.MODEL
"""More is read until these are all known."""

_MOST_QUIET = 32
"""Trying more of them takes longer than matching a line."""

_IN_FRONT = 1 << 14
"""The task of a prompt begins before it, mostly within this many bytes."""

_MORE = 1 << 17
"""Number of bytes before a short request that are searched for the request it continues."""

_FORK = 1 << 19
"""Number of bytes of a fork's own lines that are searched for its first request."""

_FARTHEST = 3 << 19
"""Reading stops after this many bytes at the end, if they contain a line."""


@define
class TailSummary:
    """The facts in the ends of a file.

    `tokens` are None though `tokens_known` if a compaction follows the last report.
    """

    head: events.SessionMeta
    cwd: str | None = None
    folder: str | None = None
    first_text: str | None = None
    stamp: str | None = None
    name: str | None = None
    task: str | None = None
    model: str | None = None
    tokens: events.Tokens | None = None
    tokens_known: bool = False
    window: int | None = None
    turn_open: bool | None = None


Cut = tuple[bytes, int | None]
"""Bytes of a file that ends at a cut, and the ordinal there; None for a cut at a byte."""


_Line = tuple[bytes, int, int]
"""Some bytes, and the start and end of a line in them."""

_SPACE = 0x20
_AHEAD = 512
"""Number of bytes of a line that show its kind."""

_Seen = tuple[items.Item, Json, bool]
"""The item of a line, the line, and whether it has no envelope."""


def glance(
    front: Iterable[bytes],
    back: Iterable[bytes],
    base: Callable[[events.SessionMeta], Cut] = lambda _head: (b"", None),
) -> TailSummary | None:
    """Return the facts of a file; None if only the whole file gives them, as it has no head.

    `front` are pieces of the file from its beginning on, `back` pieces from its end backwards.
    Each is read as far as needed; they may overlap, and neither need reach the other end.  `base`
    returns the beginning of the oldest file that one with this head builds on, up to its cut.
    """
    lines = _forwards(front)
    data, start, stop = next(lines, (b"", 0, 0))
    raw = data[start:stop]
    first = _seen(raw.removeprefix(BOM), first=True)
    if first is None or not isinstance(first[0], events.SessionMeta):
        return None
    head, top = first[0], _ordinal(first[1])
    if head.inherited_below is not None and not head.paginated and top < 0:
        return None  # ordinals show where the subagent's lines begin
    found = TailSummary(head, head.cwd)
    beginning, own_title = _Beginning(found, top), None
    if head.forked_at:
        own_title, is_known = _own_title(head, top, lines)
        if not is_known:
            return None
    if head.base is not None:
        data, beginning.below = base(head)
        lines = _forwards((data,))
        next(lines, None)  # its head
        beginning.top = -1
    beginning.read(lines)
    if beginning.inherits is not False:
        return None  # only the task ids of the whole file show where its own lines begin
    found.first_text = own_title or found.first_text
    _End(found, beginning, raw).read(back)
    return found


def _own_title(
    head: events.SessionMeta, top: int, lines: Iterator[_Line]
) -> tuple[str | None, bool]:
    """Return the title from a fork's own lines, and whether it is known."""
    own, size = _Beginning(TailSummary(head), top), 0

    def measured() -> Iterator[_Line]:
        nonlocal size
        for line in lines:
            size += line[2] - line[1]
            yield line

    own.read(measured())
    title = own.found.first_text
    return title, title is not None or size < _FORK


def _seen(raw: bytes, *, first: bool = False, paginated: bool = False) -> _Seen | None:
    """Return the content of a line; None if it is not a JSON object."""
    record = load(raw)
    if not is_object(record):
        return None
    kind, payload, bare = record_of(record, first=first)
    # The other kind repeats it (ROL-14).
    repeated = "user_message" if paginated else "item_completed"
    item = "quiet" if payload.get("type") == repeated else item_of(kind, payload, bare=bare)
    return item, record, bare


def _ordinal(record: Json) -> int:
    """Return the ordinal of a line, -1 if it has none."""
    ordinal = whole_of(record.get("ordinal"))
    return -1 if ordinal is None else ordinal


def _message(item: events.UserMessage, head: events.SessionMeta) -> events.UserMessage | None:
    """Return a message that the user wrote; messages of the history count only in bare files."""
    return item if item.in_history == head.bare and injected_text.is_by_person(item) else None


@lru_cache(32)  # the newest messages are examined again with each earlier turn
def _words(texts: tuple[str, ...]) -> str | None:
    return words_of(events.UserMessage(texts), MAX_VALUE_CHARS) or None


@define
class _Beginning:
    """The lines up to the first prompt.

    `typed`: events mark messages from here on; `has_tasks`: and tasks.  `naming` is the task that
    only names a session of ours, `named` whether it is over; None if the second line, which
    decides, was not seen.  `below` is the ordinal at which a file that this one builds on is cut.
    `planned`: an approved plan precedes the first prompt.  `inherits` is as in `State`.
    """

    found: TailSummary
    top: int
    typed: bool = False
    has_tasks: bool = False
    naming: str | None = None
    named: bool | None = None
    below: int | None = None
    planned: bool = False
    turns: Turns = Factory(Turns)
    inherits: bool | None = False

    def read(self, lines: Iterator[_Line]) -> None:
        """Read the lines after the head."""
        found, head = self.found, self.found.head
        own_from = -1 if head.inherited_below is None else head.inherited_below
        self.inherits = None if may_inherit(head) else False
        passes_over = own_from < 0 and head.cwd is not None and not (head.bare or head.base)
        passes_over = passes_over and self.inherits is False
        for data, start, stop in lines:
            kind = facts.kind_of(data, start, stop) if passes_over else None
            given = facts.of_kind(kind)
            seen = None
            if given & (facts.PROMPT if self.named else facts.PROMPT | facts.TURN):
                seen = _seen(data[start:stop], paginated=head.paginated)
            elif given & facts.TURN:
                self.has_tasks = True
            if self.named is None:
                self.named = seen is None or seen[0] != "compacted"
            if seen is None:
                continue
            item, record, _ = seen
            if self.inherits is None:
                self.inherits = is_copied(head, item, text_of(record.get("timestamp")))
                if self.inherits:
                    return
            ordinal = _ordinal(record)
            if self.below is not None and max(ordinal, 0) >= self.below:
                return
            self.top = max(self.top, ordinal)
            if self.top >= own_from:
                self._take(item)
            if found.first_text is not None and self.named:
                return

    def _take(self, item: items.Item) -> None:
        found = self.found
        match item:
            case events.TaskStarted(turn_id=turn_id, parent=parent):
                self.has_tasks = True
                if not self.named and self.naming is None:
                    self.naming = turn_id or ""
                else:
                    own = found.head.parent_session is None
                    self.turns.task_started(turn_id, parent=parent if own else None)
            case events.TaskEnded(turn_id=turn_id) if not self.named and self.naming is not None:
                self.named = turn_id in {None, self.naming}
            case events.TaskEnded(turn_id=turn_id, aborted=aborted):
                self.turns.task_ended(turn_id, 0, 0, aborted=aborted)
            case events.UserMessage():
                if not item.in_history:
                    self.typed = True
                elif found.cwd is None and not (self.typed or found.head.paginated):
                    found.cwd = folder_in(item)
                message = _message(item, found.head)
                if message is not None and found.first_text is None:
                    found.first_text = title_of(message) or None
            case events.PlanMessage(text=text, approved=True) if not self.turns.task_open:
                self.planned = True
                self._title(value(heading_of(text), MAX_VALUE_CHARS))
            case events.GoalSet(objective=objective) if objective is not None:
                self._title(value(objective, MAX_VALUE_CHARS))
            case events.AgentWrote() if not item.is_answer:
                text = item.text or found.head.agent or item.recipient
                self._title(value(text, MAX_VALUE_CHARS))
            case _:
                pass

    def _title(self, text: str) -> None:
        if self.found.first_text is None:
            self.found.first_text = text or None


@define
class _End:
    """The lines from the last one backwards, up to the last prompt and the lines needed before it.

    `unknown` are the facts that earlier lines may still give, without those that none can give.
    `events` are the events of turns, the newest first.  A line gives none of them if one of `quiet`
    is `shift` bytes after its beginning; `shift` is constant while ordinals have as many digits.
    `short`: the task is known, except for an earlier request that it may name; `begun` is how far
    from the end it was found.
    """

    found: TailSummary
    before: _Beginning
    first_line: bytes
    unknown: int = facts.ALL
    is_bare: bool = False
    quiet: tuple[bytes, ...] = facts.QUIET
    shift: int = 1 << 62
    events: list[items.Item] = Factory(list[items.Item])
    short: bool = False
    begun: int = 0

    def read(self, pieces: Iterable[bytes]) -> None:
        """Read the file backwards."""
        found, head, first_text = self.found, self.found.head, self.found.first_text
        if head.bare:
            found.first_text = None  # until it is certain that no event marks the messages
            self.unknown = facts.PROMPT  # nothing else is recorded there
        if not self.before.named:
            self.unknown &= ~(facts.PROMPT | facts.TURN)  # a message may be the name of the session
        if self.before.planned:
            self.unknown &= ~facts.PROMPT  # the task may name the plan
        far, rest = 0, list[bytes]()
        for piece in pieces:
            far += len(piece)
            first = piece.find(b"\n")
            if first < 0:
                rest.append(piece)
                continue
            before, most = self.begun, _FARTHEST if self.begun == 0 else _MORE
            if not self._read(piece, rest) or far - before >= most:
                break
            if self.short and not self.begun:
                self.begun = far
            rest = [piece[:first]]
        else:
            if b"".join(reversed(rest)) == self.first_line and head.base is None:
                self._tell_task(is_all=True)
        if self.is_bare:
            found.first_text = first_text
            found.stamp = found.stamp or head.timestamp
        if found.folder is None and (self.is_bare or found.task is not None):
            found.folder = found.cwd  # Codex writes the folder with each turn, or never

    def _read(self, piece: bytes, rest: Sequence[bytes]) -> bool:
        """Read the lines that begin in a piece, newest first.

        `rest` is the continuation of the last one, as pieces from the end backwards. Returns False
        if earlier lines have no more facts, or not enough to read another piece.
        """
        self.is_bare = self.found.head.bare
        match = facts.bare_kind_of if self.is_bare else facts.kind_of
        # Nothing before the task that names the session counts.
        always = 0 if self.before.naming is None else facts.TURN
        prompt, stop, wanted = 0, len(piece), self.unknown | always
        quiet, shift = self.quiet, self.shift
        while start := piece.rfind(b"\n", 0, stop) + 1:
            if not piece.startswith(quiet, start + shift, stop):
                begun = piece[start : start + _AHEAD] + rest[-1][:_AHEAD] if rest else b""
                kind = match(begun) if rest else match(piece, start, stop)
                if wanted & facts.of_kind(kind):
                    raw = piece[start:stop]
                    if not self._read_line(b"".join((raw, *reversed(rest))) if rest else raw):
                        return False
                    if wanted & facts.PROMPT and not self.unknown & facts.PROMPT:
                        prompt = start
                    wanted = self.unknown | always
                elif kind is not None and kind.lastindex and not rest:
                    # A fact that is not wanted now is not wanted later.
                    begins, ends = kind.start(1), kind.end()
                    shift = begins - start
                    found = piece[begins:ends]
                    is_new = not found.startswith(quiet) and not found.endswith(facts.HANDED_OVER)
                    if is_new and len(quiet) < _MOST_QUIET:
                        quiet = (*quiet, found)
            stop, rest = start - 1, ()
        self.quiet, self.shift = quiet, shift
        # The task of a prompt begins before it, mostly nearby.
        return bool(wanted & facts.PROMPT) or 0 < prompt <= _IN_FRONT

    def _read_line(self, raw: bytes) -> bool:
        """Read a line; return False if no other line has more facts."""
        found, head = self.found, self.found.head
        seen = _seen(raw, paginated=head.paginated) if raw else None
        if seen is None:
            return len(raw) < PASSED_OVER_FROM  # a reader skips it, and then it counts
        item, record, is_bare = seen
        if head.bare and not is_bare:
            self.is_bare = False
            return False
        if found.stamp is None:
            found.stamp = text_of(record.get("timestamp"))
            if found.stamp is not None:
                self.unknown &= ~facts.TIME
        own_from = head.inherited_below
        is_own = own_from is None or own_from <= _ordinal(record)
        return self._take(item, is_own=is_own) and bool(self.unknown & _NEEDED)

    def _take(self, item: items.Item, *, is_own: bool) -> bool:
        """Take a line; return False if earlier lines certainly have no more facts."""
        found = self.found
        if isinstance(item, events.TurnContext):
            if item.model is not None and self.unknown & facts.MODEL:
                found.model = item.model
                self.unknown &= ~facts.MODEL
            if item.folder is not None and self.unknown & facts.FOLDER:
                found.folder = item.folder
                self.unknown &= ~facts.FOLDER
            return True
        if not is_own:
            return isinstance(item, str) and item != "compacted"
        match item:
            case events.Tokens():
                self._take_tokens(item)
                self._take_window(item.window)
            case events.ThreadNamed(name=name) if self.unknown & facts.NAME:
                found.name = None if name is None else value(name, MAX_VALUE_CHARS)
                self.unknown &= ~facts.NAME
            case events.RolledBack(turns=turns) if turns > 0:
                self.unknown &= ~facts.PROMPT
                self.events.append(item)
            case events.UserMessage():
                self._take_message(item)
            case events.GoalSet() | events.PlanMessage(approved=True) | events.AgentWrote():
                self.unknown &= ~facts.PROMPT  # it may be the task
            case events.TaskStarted(turn_id=turn_id):
                self._take_window(item.window)
                return self._take_task(item, turn_id)
            case events.TaskEnded(turn_id=turn_id):
                return self._take_task(item, turn_id)
            case "compacted":
                self._take_tokens(None)
            case _:
                pass
        return True

    def _take_tokens(self, tokens: events.Tokens | None) -> None:
        if self.unknown & facts.TOKENS:
            self.found.tokens, self.found.tokens_known = tokens, True
            self.unknown &= ~facts.TOKENS

    def _take_window(self, window: int | None) -> None:
        if window is not None and self.unknown & facts.WINDOW:
            self.found.window = window
            self.unknown &= ~facts.WINDOW

    def _take_message(self, item: events.UserMessage) -> None:
        message = _message(item, self.found.head)
        if message is None:
            return
        self.events.append(message)
        if self._has_no_tasks:
            self._tell_task()  # each message is a turn

    @property
    def _has_no_tasks(self) -> bool:
        """Whether no event reports tasks, as in older files."""
        known = self.found.head.bare or self.found.first_text is not None
        return known and not self.before.has_tasks

    def _take_task(self, item: events.TaskStarted | events.TaskEnded, turn_id: str | None) -> bool:
        """Take a task; nothing before the task that names the session is a turn."""
        naming = self.before.naming
        if naming is not None and turn_id in {None, naming}:
            return False
        self.events.append(item)
        self.before.has_tasks = True
        if isinstance(item, events.TaskStarted):
            if self.unknown & facts.TURN:
                self._judge()
            self._tell_task()
        return True

    def _tell_task(self, *, is_all: bool = False) -> None:
        """Find the task in the newest turns, if possible; `is_all`: there are no other turns.

        The model may have worked for a goal in a task without a user message.
        """
        if not self.unknown & facts.PROMPT:
            return
        turns, is_known = self._replayed()
        task = turns.task_of()
        if not is_known or (task is not None and implements_plan(task.request.first)):
            self.unknown &= ~facts.PROMPT
        elif task is not None and (is_all or not task.may_name_more):
            self.found.task = cut(task.text, MAX_VALUE_CHARS)
            self.unknown &= ~facts.PROMPT
            if self._has_no_tasks:
                self.unknown &= ~facts.TURN  # no event will show it
        else:
            self.short = task is not None

    def _replayed(self) -> tuple[Turns, bool]:
        """Return the turns from the events so far, and whether no task without a message is a turn.

        A task that declares that it does not continue the goal has no request.
        """
        turns, own = Turns(), self.found.head.parent_session is None
        silent, is_known = False, True
        for each in reversed(self.events):
            match each:
                case events.TaskStarted(turn_id=turn_id, parent=parent, for_goal=for_goal):
                    is_known, silent = is_known and not silent, for_goal is not False
                    turns.task_started(turn_id, parent=parent if own else None)
                case events.TaskEnded(turn_id=turn_id, aborted=aborted):
                    is_known, silent = is_known and not silent, False
                    turns.task_ended(turn_id, 0, 0, aborted=aborted)
                case events.UserMessage(turn_id=turn_id):
                    silent = False
                    turn = turns.user_message(turn_id, 0, len(turns.turns))
                    text = _words(each.texts)
                    if text is not None:
                        turns.say(turn, text, "", 0, turns.next_order())
                case _:
                    pass
        return turns, is_known and not silent

    def _judge(self) -> None:
        """Decide from the events of the newest tasks whether the last turn is open, if possible."""
        if self._has_ended():
            self._settle(turn_open=False)
            return
        begun = {each.turn_id for each in self.events if isinstance(each, events.TaskStarted)}
        named = (
            each.turn_id
            for each in self.events
            if isinstance(each, events.UserMessage | events.TaskEnded)
        )
        if any(turn_id is not None and turn_id not in begun for turn_id in named):
            self._settle(turn_open=None)  # its turn may be an earlier one
            return
        turns, is_known = self._replayed()
        if turns.task_open:
            self._settle(turn_open=True)
        elif turns.turns:
            last = turns.turns[-1]
            is_open = last.ended is None if last.in_task else None
            self._settle(turn_open=is_open if is_known or not is_open else None)

    def _settle(self, *, turn_open: bool | None) -> None:
        self.found.turn_open = turn_open
        self.unknown &= ~facts.TURN

    def _has_ended(self) -> bool:
        """Return whether the newest task has ended and has one turn, as nearly all do."""
        if len(self.events) < 2:  # noqa: PLR2004 - a task begins and ends
            return False
        newest, *messages, begun = self.events
        return (
            isinstance(newest, events.TaskEnded)
            and isinstance(begun, events.TaskStarted)
            and begun.turn_id is not None
            and newest.turn_id == begun.turn_id
            and bool(messages)
            and all(
                isinstance(each, events.UserMessage) and each.turn_id in {None, begun.turn_id}
                for each in messages
            )
        )


def _forwards(pieces: Iterable[bytes]) -> Iterator[_Line]:
    """Yield the whole lines that are not blank, from the beginning on."""
    rest = b""
    for piece in pieces:
        data, start = rest + piece, 0
        while (stop := data.find(b"\n", start)) >= 0:
            if data[start] > _SPACE or data[start:stop].strip():
                yield data, start, stop
            start = stop + 1
        rest = data[start:]
