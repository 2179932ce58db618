"""The records that an anchor stands for, found by reading the session once more.

Whoever sees a note wants to see what it rests on: the message that is cited, or a call with its
outcome.  What may be cited, and which anchors there are, is told by `anchors`.
"""

from __future__ import annotations

import json

import orjson

from codex_checkpoints.core.checkpoint.reducer import counting
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.rollout.fields import is_list, is_object, object_of
from codex_checkpoints.core.rollout.items import (
    AssistantMessage,
    CommandRun,
    FilesChanged,
    FileViewed,
    Item,
    Quiet,
    ToolCall,
    ToolOutput,
    ToolRan,
    Unknown,
    UserMessage,
    Worked,
)
from codex_checkpoints.core.rollout.reader import NOTED, Line
from codex_checkpoints.values import frozen

MOST_RECORDS = 8
"""A call stands in two or three records; an id that is in more is no call's."""

MOST_TEXT = 20_000
"""Of a longer text in a record this many code points are shown."""

_BY_SEQ = "seq:"
_NOBODY_CITES = AssistantMessage | Quiet | Unknown | Worked


@frozen
class Record:
    """One record of a session as it stands, but for texts that are long: JSON for a person."""

    seq: int
    text: str


class Citation:
    """A session read for the records of one anchor."""

    def __init__(self, ref: str) -> None:
        """Look for the message or the call with this id; `seq:<number>` names a message."""
        self.replay = Replay()
        self.replay.beside(self)
        self._ref = ref
        number = ref.removeprefix(_BY_SEQ)
        self._seq = int(number) if number != ref and number.isdecimal() else None
        self._needle = orjson.dumps(ref)
        self._found: list[tuple[int, bytes]] = []

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no line that a checkpoint does not want."""
        return NOTED

    def take(self, line: Line) -> None:
        """Keep a line that is cited."""
        if len(self._found) < MOST_RECORDS and self._is_cited(line):
            self._found.append((line.seq, line.raw))

    def records(self) -> tuple[Record, ...]:
        """Return what was found, in the order of the session."""
        return tuple(Record(seq, _shown(raw)) for seq, raw in self._found)

    def _is_cited(self, line: Line) -> bool:
        item = counting(self.replay.state, line.item)
        if isinstance(item, _NOBODY_CITES) or (
            isinstance(item, ToolOutput) and self.replay.state.paginated
        ):
            return False
        if self._seq is not None:
            return line.seq == self._seq
        return self._needle in line.raw and _id_of(item) == self._ref


def _id_of(item: Item) -> str | None:
    """Return the id by which an item may be cited."""
    match item:
        case UserMessage(ref=ref):
            return ref
        case ToolCall() | ToolOutput() | CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            return item.call_id
        case _:
            return None


def _shown(raw: bytes) -> str:
    try:
        record: object = json.loads(raw.decode(errors="replace"))
    except (ValueError, RecursionError):
        return ""
    text = json.dumps(_cut(record), ensure_ascii=False, indent=2)
    return text.encode(errors="replace").decode()


def _cut(value: object) -> object:
    """Shorten the texts of a record that nobody would read to the end."""
    if isinstance(value, str):
        left = len(value) - MOST_TEXT
        return value if left <= 0 else f"{value[:MOST_TEXT]}… ({left} more characters)"
    if is_list(value):
        return [_cut(each) for each in value]
    if is_object(value):
        return {key: _cut(each) for key, each in object_of(value).items()}
    return value
