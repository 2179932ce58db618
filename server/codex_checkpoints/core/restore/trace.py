"""A session read once more for a restore: what a checkpoint does not keep of it.

Which files were changed and which were read, which lines of them, which patches were applied, in
which modes the session worked, what its user said last, and when turns ended.  Which call did what,
and which message is a person's, is left to the reducer and to `gathering`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeVar

from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.reducer import counting, ref_of, words_of
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import Observation, Place, name_of
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import shell
from codex_checkpoints.core.rollout.fields import Json, object_of, text_of
from codex_checkpoints.core.rollout.items import (
    Compacted,
    Seen,
    TaskEnded,
    TaskStarted,
    TurnContext,
    UserMessage,
)
from codex_checkpoints.core.rollout.paths import uri_of
from codex_checkpoints.core.rollout.reader import NOTED, Line
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.values import frozen

MAX_SPANS = 64
"""How many partial reads are kept, the newest."""

_FILES = 1 << 16
_PATCHES = 256

_Key = TypeVar("_Key")


@frozen
class Span:
    """The lines `start` to `end`, from 1, of a file."""

    uri: str
    start: int
    end: int


class Gathered:
    """The traces of what a session observed: the newest of each kind stand last."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.touched: dict[str, None] = {}
        self.sent: dict[str, None] = {}
        self.spans: dict[Span, None] = {}
        self.patches: dict[str, None] = {}
        self.deleted: dict[str, None] = {}

    def observe(self, observed: Observation) -> None:
        """Take an observation; each is read at once."""
        place, moves = observed.place, False
        for each in observed.seen():
            moves = each.action == "move" and not moves  # the file that is moved, then where to
            if each.kind == "file":
                uri, _ = name_of(each, place)
                if uri is not None:
                    self._file(uri, each, place)
                    self.deleted.pop(uri, None)
                    if moves or each.action == "delete":
                        _renew(self.deleted, uri, _FILES)

    def _file(self, uri: str, seen: Seen, place: Place) -> None:
        _renew(self.sent if seen.action == "read" else self.touched, uri, _FILES)
        if seen.call_id:
            _renew(self.patches, seen.call_id[:MAX_URI_CHARS], _PATCHES)
        for span in _spans(uri, seen, place):
            _renew(self.spans, span, MAX_SPANS)


def _renew(known: dict[_Key, None], key: _Key, total: int) -> None:
    """Make `key` the newest; of too many the oldest is forgotten."""
    known.pop(key, None)
    known[key] = None
    if len(known) > total:
        del known[next(iter(known))]


def _spans(uri: str, seen: Seen, place: Place) -> Iterator[Span]:
    """Yield the lines that a command read of a file, where its text names the first and the last.

    The command is asked even where Codex itself says which files it read: that names no lines.
    """
    if seen.script is None:
        return
    _, turn_folder, base = place
    reading = shell.read_script(seen.script)
    for read in reading.reads:
        if read.start is None or read.end is None:
            continue
        # Codex puts the folder that a script changes to in front of the name, or it stands in
        # the folder of the call already.
        names = {read.path, f"{reading.folder}/{read.path}" if reading.folder else read.path}
        named = (
            uri_of(name, folder=seen.folder, turn_folder=turn_folder, base=base) for name in names
        )
        if any(found is not None and found.uri == uri for found in named):
            yield Span(uri, read.start, read.end)


MAX_MESSAGE_CHARS = 2000
"""Code points of a user message in the continuity window."""

_MODES = 64
_MESSAGES = 256


@frozen
class ModeChange:
    """The collaboration mode from the record `seq` on, and the turn that it began with."""

    seq: int
    mode: str
    turn_id: str | None


@frozen
class Message:
    """What a person said: a value of at most `MAX_MESSAGE_CHARS` code points."""

    ref: str
    text: str


@frozen
class Traces:
    """What was found; `spans` and `patches` newest first, `modes` in order, the last in force.

    `deleted` are the files that the session itself took away, and did not put back.
    """

    touched: frozenset[str] = frozenset()
    sent: frozenset[str] = frozenset()
    spans: tuple[Span, ...] = ()
    patches: tuple[str, ...] = ()
    modes: tuple[ModeChange, ...] = ()
    deleted: frozenset[str] = frozenset()


def in_order(
    earlier: tuple[ModeChange, ...], own: tuple[ModeChange, ...]
) -> tuple[ModeChange, ...]:
    """Return the changes of the mode before and in a session; the mode it began with is none."""
    if earlier and own and own[0].mode == earlier[-1].mode:
        own = own[1:]
    return (*earlier, *own)[-_MODES:]


class Trace:
    """The fold that gathers what a restore refers to, beside a replay of the session."""

    def __init__(self, *, last: int | None = None) -> None:
        """Begin before the first byte of a session; no record with a `seq` above `last` counts."""
        self.replay = Replay()
        self.replay.folds.append(self)
        if last is not None:
            self.replay.last = last
        self._gathered = Gathered()
        self.replay.state.observers.append(self._gathered.observe)
        self._modes: deque[ModeChange] = deque(maxlen=_MODES)
        self._messages: deque[Message] = deque(maxlen=_MESSAGES)
        self._naming_due = False
        self._ends: dict[int, str] = {}

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no line that a checkpoint does not want."""
        return NOTED

    def traces(self) -> Traces:
        """Return what was found up to here."""
        gathered = self._gathered
        return Traces(
            frozenset(gathered.touched),
            frozenset(gathered.sent),
            tuple(reversed(gathered.spans)),
            tuple(reversed(gathered.patches)),
            tuple(self._modes),
            frozenset(gathered.deleted),
        )

    def window(self, count: int, turn_id: str) -> tuple[Message, ...]:
        """Return the last `count` messages of the user up to a turn, oldest first.

        Those of turns that are rolled back do not count.
        """
        refs: set[str] = set()
        for turn in self.replay.state.turns.turns:
            if not turn.rolled_back:
                refs.update(turn.messages)
            if turn.turn_id == turn_id:
                break
        said = [message for message in self._messages if message.ref in refs]
        return tuple(said[len(said) - min(count, len(said)) :])

    def ended_at(self, turn: Turn) -> str | None:
        """Return when a turn ended, as the record says that ended it; None where none does."""
        return None if turn.ended is None else self._ends.get(turn.ended)

    def take(self, line: Line) -> None:
        """Take modes, messages and ends; whose message it is shows in the turns of the replay."""
        if line.seq < self.replay.state.own_from:
            return
        match counting(self.replay.state, line.item):
            case TaskStarted(turn_id=turn_id):
                # The first task of a file of ours only names the session: it is no turn.
                if not self._naming_due:
                    told = text_of(line.payload.get("collaboration_mode_kind"))
                    self._mode(line, turn_id, told)
                self._naming_due = False
            case TaskEnded():
                if line.stamp is not None:
                    self._ends[line.position] = line.stamp
            case TurnContext(turn_id=turn_id):
                self._mode(line, turn_id, _mode_in(line.payload))
            case UserMessage() as message:
                self._said(line, message)
            case Compacted():
                self._naming_due = self._naming_due or line.position == 2  # noqa: PLR2004 - the second record
            case _:
                pass

    def _mode(self, line: Line, turn_id: str | None, told: str | None) -> None:
        mode = "" if told is None else value(told, MAX_VALUE_CHARS)
        if mode and (not self._modes or self._modes[-1].mode != mode):
            self._modes.append(ModeChange(line.seq, mode, turn_id))

    def _said(self, line: Line, message: UserMessage) -> None:
        text = words_of(message, MAX_MESSAGE_CHARS)
        if text:
            self._messages.append(Message(ref_of(message, line), text))


def _mode_in(payload: Json) -> str | None:
    told = payload.get("collaboration_mode")
    return text_of(told) or text_of(object_of(told).get("mode"))
