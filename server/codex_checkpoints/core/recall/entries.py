"""Finds the record that an anchor names, or the lines that contain a text (RCL-1).

Only the conversation can be recalled: messages of the user and the agent, calls, outputs, patches
and summaries.  Instructions, reasoning and the heads of files cannot.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.events import (
    UNKNOWN,
    Fold,
    Outcome,
    Record,
    RecordedText,
    Source,
    TextKind,
    WindowOpened,
)
from codex_checkpoints.core.turns import Turns

RecordKind = TextKind | Literal["file"]

MOST_TEXT = 8_000
"""The most code points of one answer."""

MOST_HITS = 1000
_COMPACTIONS = 1024
"""The newest compactions that are known: an undo drops the summary of the last one."""

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


class Recall(Fold):
    """Collects the entries of a session that a test accepts, as far as `part` keeps them.

    `is_named` sees an entry before its redaction, which is slow, and must not read its text.  The
    newest `most` of the kept lines are returned, with the rest of their entry.  `is_wanted` sees
    the record of a session file first.  With `scripts` the text of a command's call is its script,
    else its arguments.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        replay: Replay,
        is_named: Callable[[Entry], bool],
        part: Callable[[Entry], Entry | None],
        most: int | None = None,
        is_wanted: Callable[[Source], bool] = lambda _source: True,
        *,
        scripts: bool = False,
    ) -> None:
        """Follow a replay that has read nothing yet."""
        self._state = replay.state
        self._is_named, self._part = is_named, part
        self._most, self._lines = most, 0
        self.entries: deque[Entry] = deque()
        self._compacted: deque[int] = deque(maxlen=_COMPACTIONS)
        """The `seq` of the compactions that were not undone, the newest last."""
        self._copy: Entry | None = None
        """The history's copy of a message, which may precede the turn that it opens."""
        replay.follow(self)
        replay.give_texts(self._recorded, is_wanted, ends_of, scripts=scripts)

    @property
    def turns(self) -> Turns:
        """Return the turns of the session."""
        return self._state.turns

    @property
    def typed(self) -> bool:
        """Return whether the session also has its user messages outside the history."""
        return self._state.typed

    def take(self, record: Record) -> None:
        """Record a compaction, or drop the summary of an undone one."""
        for event in record.events:
            if isinstance(event, WindowOpened):
                self._window_opened(event, record.seq)

    def _recorded(self, text: RecordedText) -> None:
        """Keep a text that is accepted."""
        turn = self._state.turns.at(text.turn_id)
        entry = Entry(
            text.seq,
            None if turn is None else turn.turn_id,
            text.kind,
            text.ids,
            text.text,
            text.about,
            text.repeats,
            in_history=text.in_history,
            stamp=text.at,
            outcome=text.outcome,
        )
        copy, self._copy = self._copy, None
        if copy and entry.kind == "user" and not entry.in_history and self.entries[-1] is copy:
            self.entries[-1] = evolve(copy, turn_id=entry.turn_id)
        if self._is_named(entry):
            found = self._part(evolve(entry, text=redact(plain(entry.text))))
            if found is not None:
                self._keep(found)
                self._copy = found if entry.in_history else None

    def _window_opened(self, event: WindowOpened, seq: int) -> None:
        if event.by != "undo":
            self._compacted.append(seq)
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
