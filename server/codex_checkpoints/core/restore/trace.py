"""A session read once more for a restore: what a checkpoint does not keep of it.

Which files were changed and which were read, which lines of them, which patches were applied, in
which modes the session worked, and what its user said last.  `Trace` is fed as `Replay` is and
gives the same checkpoint; which call did what, and which message is a person's, it leaves to the
reducer and to `gathering`.  It is slower, for one session at a time, and is not saved.
"""

from __future__ import annotations

from collections import deque

from codex_checkpoints.core.checkpoint import reducer
from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.restore.gathering import Gathered, Span
from codex_checkpoints.core.rollout import contextual
from codex_checkpoints.core.rollout.fields import Json, load, object_of, text_of
from codex_checkpoints.core.rollout.items import (
    Compacted,
    ItemCompleted,
    TaskStarted,
    TurnContext,
    UserMessage,
)
from codex_checkpoints.core.rollout.lines import Line
from codex_checkpoints.core.rollout.parsing import item_of
from codex_checkpoints.core.rollout.wishes import COMPACTED, CONTEXT, HISTORY
from codex_checkpoints.values import frozen

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


class Trace(Replay):
    """A replay that also gathers what a restore refers to."""

    def __init__(self, *, hot: bool = True, last: int | None = None) -> None:
        """Begin before the first byte of a session; no record with a `seq` above `last` counts."""
        super().__init__(hot=hot)
        self._last = last
        self._gathered = Gathered()
        self._state = State(observations=self._gathered)
        self._modes: deque[ModeChange] = deque(maxlen=_MODES)
        self._messages: deque[Message] = deque(maxlen=_MESSAGES)
        self._naming_due = False

    def feed(self, data: bytes) -> int:
        """Apply the whole lines in `data`; return how many bytes were consumed."""
        lines, consumed = self._lines(data)
        if self._last is not None:
            lines = [line for line in lines if line.seq <= self._last]
        self._state.paginated = self._scanner.scale.paginated
        reducer.reduce(self._state, lines)
        for line in lines:
            if line.seq >= self._state.own_from:
                self._look(line)
        return consumed

    def save(self) -> object | None:
        """Return None: a trace is read anew."""
        return None

    @classmethod
    def load(cls, value: object) -> Trace | None:  # noqa: ARG003 - there is nothing to take up
        """Return None: a trace is read anew."""
        return None

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
        for turn in self._state.turns.turns:
            if not turn.rolled_back:
                refs.update(turn.messages)
            if turn.turn_id == turn_id:
                break
        said = [message for message in self._messages if message.ref in refs]
        return tuple(said[len(said) - min(count, len(said)) :])

    def _look(self, line: Line) -> None:
        """Take modes and messages; whose message it is shows in the turns of the reducer."""
        match line.item:
            case TaskStarted(turn_id=turn_id):
                # The first task of a file of ours only names the session: it is no turn.
                if not self._naming_due:
                    self._mode(
                        line, turn_id, text_of(_payload(line).get("collaboration_mode_kind"))
                    )
                self._naming_due = False
            case TurnContext(turn_id=turn_id):
                self._mode(line, turn_id, _mode_in(_payload(line)))
            case ItemCompleted(item=UserMessage() as message) | (UserMessage() as message):
                self._said(line, message)
            case Compacted():
                self._compacted(line)
            case None:
                self._look_inside(line)
            case _:
                pass

    def _look_inside(self, line: Line) -> None:
        """Take a line that was judged by its prefix alone."""
        if line.wish == CONTEXT:
            payload = _payload(line)
            self._mode(line, text_of(payload.get("turn_id")), _mode_in(payload))
        elif line.wish == HISTORY:
            message = item_of(line.raw)
            if isinstance(message, UserMessage):
                self._said(line, message)
        elif line.wish == COMPACTED:
            self._compacted(line)

    def _compacted(self, line: Line) -> None:
        if line.position == 2:  # noqa: PLR2004 - the second record
            self._naming_due = True

    def _mode(self, line: Line, turn_id: str | None, told: str | None) -> None:
        mode = "" if told is None else value(told, MAX_VALUE_CHARS)
        if mode and (not self._modes or self._modes[-1].mode != mode):
            self._modes.append(ModeChange(line.seq, mode, turn_id))

    def _said(self, line: Line, message: UserMessage) -> None:
        ref = message.ref
        if ref is None or len(ref) > MAX_URI_CHARS:
            ref = f"seq:{line.seq}"
        parts = [part for part in message.texts if not contextual.is_image_wrapper(part)]
        text = value(contextual.request_of("\n".join(parts)), MAX_MESSAGE_CHARS)
        if text:
            self._messages.append(Message(ref, text))


def _payload(line: Line) -> Json:
    return object_of(object_of(load(line.raw)).get("payload"))


def _mode_in(payload: Json) -> str | None:
    told = payload.get("collaboration_mode")
    return text_of(told) or text_of(object_of(told).get("mode"))
