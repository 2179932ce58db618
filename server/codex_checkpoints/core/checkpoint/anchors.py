"""What of a session may be cited as evidence, found by reading it once more (DSC-34, DSC-82).

A checkpoint forgets old calls and the words of old messages; the session file has them all.  Both
readers here go through it as any other does, and keep what they look for: `CallSearch` whether one
call has an outcome, `Newest` the messages and calls of the end.  Where the bytes come from is not
known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import orjson

from codex_checkpoints.core.checkpoint import reducer
from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS
from codex_checkpoints.core.checkpoint.records import EvidenceSource
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import contextual, tools
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    FilesChanged,
    FileViewed,
    Item,
    ItemCompleted,
    ToolCall,
    ToolOutput,
    ToolRan,
    UserMessage,
)
from codex_checkpoints.core.rollout.lines import CHUNK, Line, Scale, Scanner
from codex_checkpoints.core.rollout.long_line import LongLine
from codex_checkpoints.core.rollout.parsing import head_of, item_of, parse
from codex_checkpoints.core.rollout.turns import Turns
from codex_checkpoints.core.rollout.wishes import CALL, PATCH, PLAIN_CALL, READ, RUN
from codex_checkpoints.values import frozen

FIRST_WORDS = 80
"""How much of a message or a command tells which one it is."""

_CALLS = frozenset({CALL, PATCH, PLAIN_CALL, RUN})
_APPLIED = ("Success.",)


@frozen
class Anchor:
    """Something that evidence may name; `text` are its first words."""

    source: EvidenceSource
    ref: str
    text: str
    seq: int


# --- one call ------------------------------------------------------------------------------------


class CallSearch(Replay):
    """A session read for one call alone; what else it says is not kept.

    The bytes of the id are looked for, and only lines that hold them are read; none is counted.  A
    line whose text merely quotes the id says nothing about the call.
    """

    def __init__(self, call_id: str) -> None:
        """Look for the outcome of this call."""
        super().__init__()
        self._call_id = call_id
        self._needle = orjson.dumps(call_id)
        self._long: LongLine | None = None
        self._headless = True
        self.found = False

    @property
    def pending(self) -> int:
        """How many of the bytes fed so far belong to a last line that has not ended."""
        return 0 if self._long is None else self._long.size

    def feed(self, data: bytes) -> int:
        """Look through the whole lines in `data`; once found, no more is wanted."""
        if self.found:
            return 0
        start = 0 if self._long is None else self._go_on(self._long, data)
        end = data.rfind(b"\n", start) + 1
        if end:
            if self._headless:
                self._take_head(data[start : data.find(b"\n", start)])
            self._look_through(data, start, end)
        elif start == 0 and len(data) >= CHUNK:
            self._long = LongLine(-1, READ, None)
            self._long.add(data)
            end = len(data)
        return max(start, end)

    def drop_unfinished(self) -> None:
        """Forget a long last line that has not ended; its bytes will be offered again."""
        super().drop_unfinished()
        self._long = None

    def _go_on(self, long: LongLine, data: bytes) -> int:
        """Take more of a long line; return where the next one begins."""
        end = data.find(b"\n")
        long.add(data if end < 0 else data[:end])
        if end < 0:
            return len(data)
        self._long = None
        raw = long.raw
        if self._headless:
            self._take_head(raw)
        if self._needle in raw:
            self._read(raw)
        return end + 1

    def _take_head(self, raw: bytes) -> None:
        """Take what the first line says of the session, unless it was told before."""
        head = head_of(raw.strip()) if self._state.head is None else None
        if head is not None:
            reducer.begin(self._state, head)
        self._headless = not raw.strip()

    def _look_through(self, data: bytes, start: int, end: int) -> None:
        while not self.found and (at := data.find(self._needle, start, end)) >= 0:
            begin = data.rfind(b"\n", start, at) + 1 or start
            stop = data.find(b"\n", at, end)
            self._read(data[begin:stop])
            start = stop + 1

    def _read(self, raw: bytes) -> None:
        item, ordinal, _ = parse(raw)
        if self.scale.ordinals and ordinal is not None and ordinal >= self._scanner.limit:
            return  # behind the cut of a base
        own = ordinal is None or ordinal >= self._state.own_from
        self.found = own and _outcome_of(item) == self._call_id


def _outcome_of(item: Item) -> str | None:
    """Return the id of the call whose outcome an item tells."""
    if isinstance(item, ItemCompleted):
        item = item.item
    match item:
        case CommandRun(call_id=call_id, status=status):
            return None if status == "in_progress" else call_id
        case ToolOutput() | FilesChanged() | ToolRan() | FileViewed():
            return item.call_id
        case _:
            return None


# --- the newest ----------------------------------------------------------------------------------


class Newest(Replay):
    """A session read for the newest messages and calls that may be cited."""

    def __init__(self, limit: int) -> None:
        """Keep about so many of each."""
        super().__init__()
        # An older file tells of one call in several lines, and some lines tell of none.
        self._calls: deque[Line] = deque(maxlen=4 * limit)
        self._messages: deque[Line] = deque(maxlen=limit)
        self._limit = limit
        self._all: Turns | None = None

    @classmethod
    def near_the_end(cls, whole: Replay, lines: bytes, turns: Turns, limit: int) -> Newest:
        """Look through the last `lines` alone of a session that was read as far as they go.

        `turns` are those of now, should there be an unfinished line as well.  `is_enough` tells
        whether the anchors are those that reading it all would give.
        """
        newest, scale, state = cls(limit), whole.scale, whole.state
        newest._all = turns
        newest._state = State(
            head=state.head, own_from=state.own_from, typed=state.typed, seed=state.seed
        )
        count = sum(1 for line in lines.split(b"\n") if line.strip())
        newest._scanner = Scanner(Scale(scale.lines - count, -1, scale.ordinals, scale.paginated))
        newest._scanner.settle_mode(
            paginated=scale.paginated, ordinals=bool(scale.ordinals), typed=state.typed
        )
        newest.feed(lines)
        return newest

    @property
    def is_enough(self) -> bool:
        """Whether nothing further back would be listed or would tell more."""
        return len(self._called()) >= self._limit and all(each.text for each in self._said())

    def feed(self, data: bytes) -> int:
        """Apply the whole lines in `data`, and keep those that may be cited."""
        lines, consumed = self._lines(data)
        self._state.paginated = self._scanner.scale.paginated
        reducer.reduce(self._state, lines)
        for line in lines:
            if line.seq >= self._state.own_from:
                self._keep(line)
        return consumed

    def anchors(self) -> list[Anchor]:
        """Return messages of turns that count, then calls that have an outcome, newest first."""
        return [*self._said(), *self._called()]

    def _keep(self, line: Line) -> None:
        # A copy of the line alone: it lies in a chunk that would stay for its sake.
        if line.wish in _CALLS:
            self._calls.append(_alone(line))
            return
        item = line.item.item if isinstance(line.item, ItemCompleted) else line.item
        match item:
            case UserMessage(in_history=False) if contextual.is_typed(item.texts):
                self._messages.append(_alone(line))
            case ToolCall() | CommandRun() | FilesChanged() | ToolRan() | FileViewed():
                self._calls.append(_alone(line))
            case _:
                pass

    def _said(self) -> list[Anchor]:
        texts = {ref: (text, line.seq) for line in self._messages for ref, text in _message(line)}
        anchors: list[Anchor] = []
        turns = self.state.turns if self._all is None else self._all
        for turn in reversed([*turns.counting()]):
            said = turn.said
            if said is not None and said.ref not in texts:
                texts[said.ref] = value(said.text, FIRST_WORDS), said.seq
            for ref in reversed(turn.messages):
                if len(anchors) >= self._limit:
                    return anchors
                text, seq = texts.get(ref, ("", turn.opened_seq))
                anchors.append(Anchor("user", ref, text, seq))
        return anchors

    def _called(self) -> list[Anchor]:
        anchors: dict[str, Anchor] = {}
        for line in reversed(self._calls):
            if len(anchors) >= self._limit:
                break
            for call_id, words in self._call(line):
                anchors.setdefault(call_id, Anchor("tool_output", call_id, words, line.seq))
        return list(anchors.values())

    def _call(self, line: Line) -> Iterator[tuple[str, str]]:
        item = item_of(line.raw) if line.item is None else line.item
        item = item.item if isinstance(item, ItemCompleted) else item
        match item:
            case ToolCall(call_id=call_id, name=name):
                if not self.state.paginated and call_id in self.state.calls.decided:
                    names = [seen.name for seen in tools.called(item, _APPLIED)]
                    yield call_id, _words(names, call_id) or name
            case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
                if _outcome_of(item):
                    names = [seen.name for seen in tools.seen_by(item)]
                    yield item.call_id, _words(names, item.call_id)
            case _:
                pass


def _alone(line: Line) -> Line:
    raw = line.raw
    return line._replace(data=raw, start=0, end=len(raw), prefix=None)


def _message(line: Line) -> Iterator[tuple[str, str]]:
    item = line.item.item if isinstance(line.item, ItemCompleted) else line.item
    if isinstance(item, UserMessage):
        ref = item.ref
        if ref is None or len(ref) > MAX_URI_CHARS:
            ref = f"seq:{line.seq}"
        parts = [part for part in item.texts if not contextual.is_image_wrapper(part)]
        yield ref, value(contextual.request_of("\n".join(parts)), FIRST_WORDS)


def _words(names: Iterable[str], call_id: str) -> str:
    """Return what a call met, in a few words; its id stands beside them."""
    return value(", ".join(name.removesuffix(f"/{call_id}") for name in names), FIRST_WORDS)
