"""Read a session again for a restore, for what a checkpoint does not keep.

The reducer decides which call did what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import Observation, Place, name_of
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import script
from codex_checkpoints.core.rollout.fields import Json, object_of, renew, text_of
from codex_checkpoints.core.rollout.items import (
    Seen,
    TaskEnded,
    TaskStarted,
    TurnContext,
)
from codex_checkpoints.core.rollout.paths import uri_of
from codex_checkpoints.core.rollout.reader import Fold, Line
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.values import frozen

MAX_SPANS = 64
"""The most partial reads that are kept, the newest."""

_FILES = 1 << 16
_PATCHES = 256


@frozen
class Span:
    """The lines `start` to `end`, from 1, of a file."""

    uri: str
    start: int
    end: int


def _spans(uri: str, seen: Seen, place: Place) -> Iterator[Span]:
    """Yield the lines that a command read of a file, where its text has the first and the last.

    The text is read even where Codex itself lists the files: its list has no lines.
    """
    if seen.script is None:
        return
    _, turn_folder, base = place
    reading = script.read_script(seen.script)
    for read in reading.reads:
        if read.start is None or read.end is None:
            continue
        # The folder that a script changes to stands in front of the name, or in the call.
        names = {read.path, f"{reading.folder}/{read.path}" if reading.folder else read.path}
        named = (
            uri_of(name, folder=seen.folder, turn_folder=turn_folder, base=base) for name in names
        )
        if any(found is not None and found.uri == uri for found in named):
            yield Span(uri, read.start, read.end)


_MODES = 64


@frozen
class ModeChange:
    """The collaboration mode from the record `seq` on, and the turn that it began with."""

    seq: int
    mode: str
    turn_id: str | None


@frozen
class Traces:
    """What was found; `spans` and `patches` newest first, `modes` in order, the last in force.

    `deleted` are the files that the session itself deleted or moved, and did not restore.
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
    """Join the modes before and in a session; the mode it began with is no change."""
    if earlier and own and own[0].mode == earlier[-1].mode:
        own = own[1:]
    return (*earlier, *own)[-_MODES:]


class Trace(Fold):
    """The fold that collects what a restore refers to, beside a replay of the session."""

    def __init__(self, *, last: int | None = None) -> None:
        """Ignore records with a `seq` above `last`."""
        self.replay = Replay()
        self.replay.folds.append(self)
        if last is not None:
            self.replay.last = last
        self.replay.state.observers.append(self._observe)
        self.settings: Json | None = None
        """The payload of the newest `turn_context`: model, effort, approvals."""
        # The newest of each kind stand last.
        self._touched: dict[str, None] = {}
        self._sent: dict[str, None] = {}
        self._spans: dict[Span, None] = {}
        self._patches: dict[str, None] = {}
        self._deleted: dict[str, None] = {}
        self._modes: deque[ModeChange] = deque(maxlen=_MODES)
        self._naming_due = False
        self._ends: dict[int, str] = {}

    def traces(self) -> Traces:
        """Return what was found so far."""
        return Traces(
            frozenset(self._touched),
            frozenset(self._sent),
            tuple(reversed(self._spans)),
            tuple(reversed(self._patches)),
            tuple(self._modes),
            frozenset(self._deleted),
        )

    def _observe(self, observed: Observation) -> None:
        place, moves = observed.place, False
        for each in observed.seen():
            moves = each.action == "move" and not moves  # a move has two files: from and to
            uri = name_of(each, place)[0] if each.kind == "file" else None
            if uri is None:
                continue
            renew(self._sent if each.action == "read" else self._touched, uri, None, _FILES)
            if each.call_id:
                renew(self._patches, each.call_id[:MAX_URI_CHARS], None, _PATCHES)
            for span in _spans(uri, each, place):
                renew(self._spans, span, None, MAX_SPANS)
            self._deleted.pop(uri, None)
            if moves or each.action == "delete":
                renew(self._deleted, uri, None, _FILES)

    def ended_at(self, turn: Turn) -> str | None:
        """Return when a turn ended, by the record that ended it; None where none does."""
        return None if turn.ended is None else self._ends.get(turn.ended)

    def take(self, line: Line) -> None:
        """Note modes, messages and ends of turns."""
        if line.seq < self.replay.state.own_from:
            return
        match self.replay.reducer.item:
            case TaskStarted(turn_id=turn_id):
                # The first task of a file of ours only names the session: it is no turn.
                if not self._naming_due:
                    mode = text_of(line.payload.get("collaboration_mode_kind"))
                    self._mode(line, turn_id, mode)
                self._naming_due = False
            case TaskEnded():
                if line.stamp is not None:
                    self._ends[line.position] = line.stamp
            case TurnContext(turn_id=turn_id):
                if line.kind == "turn_context":  # not an event that says less
                    self.settings = line.payload
                mode = line.payload.get("collaboration_mode")
                name = text_of(mode) or text_of(object_of(mode).get("mode"))
                self._mode(line, turn_id, name)
            case "compacted":
                self._naming_due = self._naming_due or line.position == 2  # noqa: PLR2004 - the second record
            case _:
                pass

    def _mode(self, line: Line, turn_id: str | None, name: str | None) -> None:
        mode = "" if name is None else value(name, MAX_VALUE_CHARS)
        if mode and (not self._modes or self._modes[-1].mode != mode):
            self._modes.append(ModeChange(line.seq, mode, turn_id))
