"""What the beginning and the end of a session file tell, without the rest (rules, "Lists").

A fact is what reading the whole file gives, or None.  What stands between the two ends is not seen,
so three things are taken for granted, since Codex does no other: each turn has an id of its own, a
file of bare lines stays one, and a name that only the middle of an older file holds stands in
Codex's list of names as well.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.replay import folder_in, words_of
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import contextual, items
from codex_checkpoints.core.rollout.fields import is_object, load, text_of, whole_of
from codex_checkpoints.core.rollout.parsing import BOM, item_of, record_of
from codex_checkpoints.core.rollout.reader import PASSED_OVER_FROM
from codex_checkpoints.core.rollout.turns import Turns
from codex_checkpoints.values import Factory, define

_ENVELOPE = rb'\{"timestamp":"[^"\\\n]{0,64}",(?:"ordinal":[0-9]{1,15},)?"type":"'
_ITEM = (
    rb'item_completed","thread_id":"[^"\\\n]{0,64}","turn_id":"[^"\\\n]{0,64}","item":\{"type":"'
)
_quiet = re.compile(
    _ENVELOPE
    + rb'(?:response_item"|world_state"|token_usage_record"|event_msg","payload":\{"type":"'
    rb'(?:agent_[a-z_]*"|exec_command_end"|mcp_tool_call_end"|patch_apply_end"|web_search_end"'
    rb'|view_image_tool_call"|' + _ITEM + rb'(?!UserMessage")[A-Za-z]+"))'
).match
"""Matches a line, as Codex writes it, that tells nothing but its time.  Nearly all lines do so."""

_tagged = re.compile(
    _ENVELOPE + rb'(?:event_msg","payload":\{"type":"([a-z_]+)|(turn_context))"'
).match
_PROMPT, _TURN, _TOKENS, _WINDOW, _MODEL, _NAME = (1 << bit for bit in range(6))
_ALL = (1 << 6) - 1
_TELLS = {
    b"token_count": _TOKENS | _WINDOW,
    b"turn_context": _MODEL,
    b"thread_settings_applied": _MODEL,
    **dict.fromkeys((b"task_started", b"turn_started"), _TURN | _WINDOW),
    **dict.fromkeys((b"task_complete", b"turn_complete", b"turn_aborted"), _TURN),
    b"user_message": _PROMPT | _TURN,
    b"thread_name_updated": _NAME,
}
"""What some lines tell, by the type of their event or their kind."""


def _told_by(line: bytes) -> int:
    """Return what a line that is not quiet may tell."""
    tagged = _tagged(line)
    return _ALL if tagged is None else _TELLS.get(tagged[tagged.lastindex or 0], _ALL)


_IN_FRONT = 1 << 14
"""In front of a prompt its task begins, mostly within so many bytes."""

_FARTHEST = 1 << 20
"""No more pieces are taken when so many bytes were read at the end, and a line among them."""


@define
class Glance:
    """The facts that the ends of a file tell.

    `tokens` are None though `tokens_known` where a compaction stands behind the last report.
    """

    head: items.SessionMeta
    cwd: str | None = None
    first_text: str | None = None
    stamp: str | None = None
    name: str | None = None
    task: str | None = None
    model: str | None = None
    tokens: items.Tokens | None = None
    tokens_known: bool = False
    window: int | None = None
    turn_open: bool | None = None


_INSTRUCTIONS = b',"base_instructions":{"text":'
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_AHEAD = 4096
_known_instructions: deque[bytes] = deque(maxlen=8)
"""Instructions in heads that were read, each a JSON text: those of a version are alike."""


def _without_instructions(head: bytes) -> bytes:
    """Return a head without the instructions in it, which take longest to parse, if known."""
    at = head.find(_INSTRUCTIONS, 0, _AHEAD) + len(_INSTRUCTIONS)
    if at < len(_INSTRUCTIONS):
        return head
    for text in tuple(_known_instructions):
        if head.startswith(text, at):
            return b'%s""%s' % (head[:at], head[at + len(text) :])
    text = _TEXT.match(head, at)
    if text is not None and isinstance(load(text[0]), str):
        _known_instructions.append(text[0])
    return head


Cut = tuple[bytes, int | None]
"""Bytes of a file that ends at a cut, and the ordinal there; None for a cut at a byte."""


class _Seen(NamedTuple):
    """What a line gives, its ordinal and time, and whether it has no envelope."""

    item: items.Item
    ordinal: int | None
    stamp: str | None
    bare: bool


def glance(
    front: Iterable[bytes],
    back: Iterable[bytes],
    base: Callable[[items.SessionMeta], Cut] = lambda _head: (b"", None),
) -> Glance | None:
    """Return what a file tells; None where only all of it does, as it does not begin with a head.

    `front` are pieces of the file from its beginning on, `back` pieces from its end backwards.
    Each is read as far as needed; they may overlap, and neither need reach the other end.  `base`
    returns the beginning of the oldest file that one with this head builds on, up to its cut.
    """
    lines = _forwards(front)
    first = _seen(_without_instructions(next(lines, b"").removeprefix(BOM)), first=True)
    if first is None or not isinstance(first.item, items.SessionMeta):
        return None
    head = first.item
    if head.inherited_below is not None and not head.paginated and first.ordinal is None:
        return None  # ordinals tell where the lines of a subagent begin
    found = Glance(head, head.cwd)
    beginning = _Beginning(found, -1 if first.ordinal is None else first.ordinal)
    if head.base is not None:
        data, beginning.below = base(head)
        lines = _forwards((data,))
        next(lines, None)  # its head
        beginning.top = -1
    beginning.read(lines)
    _End(found, beginning).read(back)
    return found


def _seen(raw: bytes, *, first: bool = False, paginated: bool = False) -> _Seen | None:
    """Return what a line holds; None if it is no JSON object."""
    record = load(raw)
    if not is_object(record):
        return None
    kind, payload, bare = record_of(record, first=first)
    # The other one of the two repeats it (ROL-14).
    repeated = "user_message" if paginated else "item_completed"
    item = "quiet" if payload.get("type") == repeated else item_of(kind, payload, bare=bare)
    return _Seen(item, whole_of(record.get("ordinal")), text_of(record.get("timestamp")), bare)


def _message(item: items.UserMessage, head: items.SessionMeta) -> items.UserMessage | None:
    """Return a message that the user wrote; those of the history count in bare files alone."""
    if item.in_history != head.bare:
        return None
    by_person = contextual.is_human if item.in_history else contextual.is_typed
    return item if by_person(item.texts) else None


@define
class _Beginning:
    """The lines up to the first prompt.

    `typed`: events mark messages from here on.  `naming` is the task that only names a session of
    ours, `named` whether it is over; None where the second line, which tells, was not seen.
    `below` is the ordinal at which a file that this one builds on is cut.
    """

    found: Glance
    top: int
    typed: bool = False
    naming: str | None = None
    named: bool | None = None
    below: int | None = None

    def read(self, lines: Iterator[bytes]) -> None:
        """Read the lines behind the head."""
        head = self.found.head
        own_from = -1 if head.inherited_below is None else head.inherited_below
        passes_over = own_from < 0 and head.cwd is not None and not (head.bare or head.base)
        for raw in lines:
            wanted = _PROMPT if self.named else _PROMPT | _TURN
            is_quiet = passes_over and (_quiet(raw) or not _told_by(raw) & wanted)
            seen = None if is_quiet else _seen(raw, paginated=head.paginated)
            if self.named is None:
                self.named = seen is None or seen.item != "compacted"
            if seen is None:
                continue
            if self.below is not None and (seen.ordinal or 0) >= self.below:
                return
            self.top = max(self.top, -1 if seen.ordinal is None else seen.ordinal)
            if self.top >= own_from:
                self._take(seen.item)
            if self.found.first_text is not None and self.named:
                return

    def _take(self, item: items.Item) -> None:
        found = self.found
        match item:
            case items.TaskStarted(turn_id=turn_id) if not self.named and self.naming is None:
                self.naming = turn_id or ""
            case items.TaskEnded(turn_id=turn_id) if not self.named and self.naming is not None:
                self.named = turn_id in {None, self.naming}
            case items.UserMessage():
                if not item.in_history:
                    self.typed = True
                elif found.cwd is None and not (self.typed or found.head.paginated):
                    found.cwd = folder_in(item)
                message = _message(item, found.head)
                if message is not None and found.first_text is None:
                    found.first_text = words_of(message, MAX_VALUE_CHARS) or None
            case _:
                pass


@define
class _End:
    """The lines from the last one backwards, up to the last prompt and what stands before it.

    `task_known` and `open_known` also say that a fact cannot be told; `events` are those of turns,
    the newest first.
    """

    found: Glance
    before: _Beginning
    task_known: bool = False
    open_known: bool = False
    name_known: bool = False
    is_bare: bool = False
    events: list[items.Item] = Factory(list[items.Item])

    def read(self, pieces: Iterable[bytes]) -> None:
        """Read the file backwards."""
        found, head, first_text = self.found, self.found.head, self.found.first_text
        if head.bare:
            found.first_text = None  # until it is sure that no event marks the messages
            self.open_known = True
        if not self.before.named:
            self.task_known = self.open_known = True  # a message may be the name of the session
        far, rest = 0, b""
        for piece in pieces:
            far += len(piece)
            first = piece.find(b"\n")
            if first < 0:
                rest = piece + rest
                continue
            if not self._read(piece, rest) or far >= _FARTHEST:
                break
            rest = piece[:first]
        if head.bare and self.is_bare:
            found.first_text = first_text
            found.stamp = found.stamp or head.timestamp

    def _read(self, piece: bytes, rest: bytes) -> bool:
        """Read the lines that begin in a piece, which `rest` follows, the newest first.

        Returns False where no line in front tells more, or not enough to take another piece.
        """
        prompt, end, unknown = -1, len(piece), self._unknown()
        reads_all = self.found.stamp is None or self.found.head.bare
        while (at := piece.rfind(b"\n", 0, end)) >= 0:
            start, stop, end = at + 1, end, at
            if not (rest or reads_all) and _quiet(piece, start, stop):
                continue
            raw, rest = piece[start:stop] + rest, b""
            if not reads_all and (_quiet(raw) or not _told_by(raw) & unknown):
                continue
            was_known = self.task_known
            if not self._read_line(raw):
                return False
            if self.task_known and not was_known:
                prompt = at
            unknown = self._unknown()
            reads_all = self.found.stamp is None or self.found.head.bare
        # In front of a prompt its task begins, mostly nearby.
        return not self.task_known or 0 <= prompt <= _IN_FRONT

    def _unknown(self) -> int:
        """Return what lines are still to tell; a task may be the one that names the session."""
        found = self.found
        turn_known = self.open_known and self.before.naming is None
        return (
            (0 if self.task_known else _PROMPT)
            | (0 if turn_known else _TURN)
            | (0 if found.tokens_known else _TOKENS)
            | (0 if found.window is not None else _WINDOW)
            | (0 if found.model is not None else _MODEL)
            | (0 if self.name_known else _NAME)
        )

    def _read_line(self, raw: bytes) -> bool:
        """Read a line; return False where no other one tells more."""
        found, head = self.found, self.found.head
        seen = _seen(raw, paginated=head.paginated) if raw else None
        if seen is None:
            return len(raw) < PASSED_OVER_FROM  # a reader passes it over, and then it counts
        if head.bare:
            self.is_bare = seen.bare
            if not seen.bare:
                return False
        found.stamp = found.stamp or seen.stamp
        return self._take(seen) and not (
            self.task_known and self.open_known and found.tokens_known and found.model
        )

    def _take(self, seen: _Seen) -> bool:
        """Take a line; return False where what stands before it tells nothing for certain."""
        found, item = self.found, seen.item
        if isinstance(item, items.TurnContext):
            found.model = item.model if found.model is None else found.model
            return True
        own_from = found.head.inherited_below
        if own_from is not None and (seen.ordinal is None or seen.ordinal < own_from):
            return isinstance(item, str) and item != "compacted"
        match item:
            case "compacted":
                found.tokens_known = True
            case items.Tokens():
                if not found.tokens_known:
                    found.tokens, found.tokens_known = item, True
                found.window = item.window if found.window is None else found.window
            case items.Named(name=name) if not self.name_known:
                found.name = None if name is None else value(name, MAX_VALUE_CHARS)
                self.name_known = True
            case items.RolledBack(turns=turns) if turns > 0:
                self.task_known = True
                self.events.append(item)
            case items.UserMessage():
                self._take_message(item)
            case items.TaskStarted(turn_id=turn_id):
                found.window = item.window if found.window is None else found.window
                return self._take_task(item, turn_id)
            case items.TaskEnded(turn_id=turn_id):
                return self._take_task(item, turn_id)
            case _:
                pass
        return True

    def _take_message(self, item: items.UserMessage) -> None:
        message = _message(item, self.found.head)
        if message is None:
            return
        self.events.append(message)
        if not self.task_known:
            self.found.task = words_of(message, MAX_VALUE_CHARS) or None
            self.task_known = self.found.task is not None

    def _take_task(self, item: items.TaskStarted | items.TaskEnded, turn_id: str | None) -> bool:
        """Take a task; what stands before that which names the session is no turn."""
        naming = self.before.naming
        if naming is not None and turn_id in {None, naming}:
            return False
        self.events.append(item)
        if isinstance(item, items.TaskStarted) and not self.open_known:
            self._judge()
        return True

    def _judge(self) -> None:
        """Tell from the events of the newest tasks whether the last turn is open, if they do."""
        if self._has_ended():
            self.open_known, self.found.turn_open = True, False
            return
        turns = Turns()
        begun = {each.turn_id for each in self.events if isinstance(each, items.TaskStarted)}
        for each in reversed(self.events):
            match each:
                case items.TaskStarted(turn_id=turn_id):
                    turns.task_started(turn_id)
                case items.TaskEnded(turn_id=turn_id, aborted=aborted):
                    turns.task_ended(turn_id, 0, 0, aborted=aborted)
                case items.UserMessage(turn_id=turn_id):
                    if turn_id is not None and turn_id not in begun:
                        self.open_known = True  # its turn may be an earlier one
                        return
                    turns.user_message(turn_id, 0, len(turns.turns))
                case _:
                    pass
        if turns.task_open:
            self.open_known = self.found.turn_open = True
        elif turns.turns:
            last = turns.turns[-1]
            self.open_known = True
            self.found.turn_open = last.ended is None if last.in_task else None

    def _has_ended(self) -> bool:
        """Return whether the newest task has one turn and ended behind it, as nearly all do."""
        if len(self.events) < 2:  # noqa: PLR2004 - a task begins and ends
            return False
        newest, *messages, begun = self.events
        return (
            isinstance(newest, items.TaskEnded)
            and isinstance(begun, items.TaskStarted)
            and begun.turn_id is not None
            and newest.turn_id == begun.turn_id
            and bool(messages)
            and all(
                isinstance(each, items.UserMessage) and each.turn_id in {None, begun.turn_id}
                for each in messages
            )
        )


def _forwards(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the whole lines that are not blank, from the beginning on."""
    rest = b""
    for piece in pieces:
        data, start = rest + piece, 0
        while (end := data.find(b"\n", start)) >= 0:
            line, start = data[start:end], end + 1
            if line.strip():
                yield line
        rest = data[start:]
