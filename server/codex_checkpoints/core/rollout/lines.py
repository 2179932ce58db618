"""Whole lines out of arriving bytes, and only those that somebody needs.

Rules (interfaces, "Lines, `seq`, identity"):

1. Lines end at LF bytes only; one CR before the LF is dropped.
2. A blank line counts nowhere.  Every other line counts, readable or not.
3. With ordinals `seq` is the highest `ordinal` of an envelope that could be read so far; without,
   it is the number of lines so far that are not blank.

Most bytes of a rollout are tool outputs and images that no checkpoint needs.  So a line is first
judged by its *prefix*: Codex writes the keys of an envelope in a fixed order, and nine lines in
ten can be dropped after looking at a hundred bytes.  The test is exact.  Whatever does not match
to the byte (other key order, spaces, a line of another tool, a torn line) goes to the full parser.

Work per line does not depend on its length, and memory neither on the length of a line nor on
that of the file: a long line that nobody needs is skipped as it comes, a long line that is needed
loses its base64 blobs on the way in, and is given up when it is still too long.

What a line says is `items`' business.  Where the bytes come from is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from attrs import Factory, define, frozen

from codex_checkpoints.core.rollout import items
from codex_checkpoints.core.rollout.items import Compacted, Item, SessionMeta, Unknown, Unreadable

CHUNK = 1 << 16
"""How many bytes a caller should offer at a time; larger reads made scanning slower."""

BLOBS_FROM = 1 << 22
"""A needed line beyond this many bytes loses its base64 blobs."""

LONGEST = 1 << 24
"""A needed line that is longer than this without its blobs is given up as `too_long`."""

_BLOB = re.compile(rb"([A-Za-z0-9+/=_-]{16})[A-Za-z0-9+/=_-]{4096,}")
_NO_LIMIT = 1 << 62

_HEAD = b'{"timestamp":"'
_PLAIN = b'","type":"'
_NUMBERED = b'","ordinal":'
_RESPONSE = b'response_item","payload":{"type":"'
_EVENT = b'event_msg","payload":{"type":"'
_ITEM = b'"item":{"type":"'
_NAME = b'"name":"'
_STAMP_END = 38  # `{"timestamp":"` and a timestamp of 24 characters
_BRACE = 0x7D


class Wish(IntEnum):
    """What is to become of a line with a given tag."""

    SKIP = 0
    PARSE = 1
    TOKENS = 2  # only the newest is ever read
    CONTEXT = 3  # only the newest is ever read
    OUTPUT = 4  # read when its call waits for more than the fact that it ended
    COMPACTED = 5  # that it is there is all there is to know
    CALL = 6  # read when its outcome comes, if it may matter then
    RUN = 7  # a command with its outcome, read when it may matter
    ITEM = 8  # decided by the item's own type
    PLAN_CALL = 9  # a call that matters only when it is `update_plan`


Table = dict[bytes, Wish]


def _table(makers: Mapping[str, object], **wishes: str) -> Table:
    """Return what to do with each known tag: skip the quiet ones, read the others, but for some."""
    table = {
        tag.encode(): Wish.SKIP if make is items.quiet else Wish.PARSE
        for tag, make in makers.items()
    }
    for wish, tags in wishes.items():
        table |= dict.fromkeys(tags.encode().split(), Wish[wish.upper()])
    return table


@frozen
class Interests:
    """Which lines a kind of file needs read, by the tag of the line."""

    responses: Table
    events: Table
    items: Table


_LINES = _table(items.LINES, context="turn_context", compacted="compacted")

PAGINATED = Interests(
    responses=dict.fromkeys(_table(items.RESPONSES), Wish.SKIP)
    | {b"function_call": Wish.PLAN_CALL},
    events=_table(
        items.EVENTS,
        skip="user_message patch_apply_end exec_command_end mcp_tool_call_end view_image_tool_call",
        tokens="token_count",
        item="item_completed",
    ),
    items=_table(items.ITEMS, run="CommandExecution"),
)
"""Items alone tell what happened, whatever the model's history repeats (ROL-14)."""

LEGACY = Interests(
    responses=_table(
        items.RESPONSES,
        call="function_call",
        output="function_call_output custom_tool_call_output",
    ),
    events=_table(items.EVENTS, tokens="token_count", item="item_completed"),
    items=dict.fromkeys(_table(items.ITEMS), Wish.SKIP),
)

LEGACY_WITH_EVENTS = Interests(
    responses=LEGACY.responses | {b"message": Wish.SKIP}, events=LEGACY.events, items=LEGACY.items
)
"""Once user messages stand in events, nobody asks the messages of the model's history."""


@define
class Line:
    """A line that somebody may need.

    `position` counts the lines that are not blank, from 1, through the whole chain of files;
    `seq` is the number of the scale the file uses.  `item` is there unless the line may be read
    lazily, by what `wish` says.
    """

    position: int
    seq: int
    wish: Wish
    raw: bytes
    item: Item | None
    shortened: bool = False


@define
class Scale:
    """Where a reader stands, in numbers: the part of a scanner that outlives the process."""

    lines: int = 0
    readable: int = 0
    top: int = -1
    ordinals: bool | None = None
    paginated: bool = False
    stamp: str | None = None
    skipped: dict[str, int] = Factory(dict)

    @property
    def seq(self) -> int:
        """Return `seq` after the last line (DSC-21)."""
        return self.top if self.ordinals else self.lines

    def count(self, reason: str) -> None:
        """Note one more line that gave nothing, and why."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


class Scanner:
    """Turn bytes into the lines that matter; offer it chunks, it says what it consumed."""

    def __init__(
        self, scale: Scale, interests: Interests | None = None, *, hot: bool = True
    ) -> None:
        """Start at `scale`; `hot=False` sends every line to the full parser."""
        self.scale = scale
        self.interests = interests
        self.limit = _NO_LIMIT
        """The first ordinal that is no longer wanted, where a base is cut."""
        self.until = _NO_LIMIT
        """The position of the last line that is wanted, to look at the end of a turn."""
        self.stopped = False
        self._hot = hot
        self._long: _Long | None = None
        self._unproven: tuple[bytes, int] | None = None

    @property
    def pending(self) -> int:
        """How many consumed bytes belong to a long line that has not ended yet."""
        return 0 if self._long is None else self._long.size

    def feed(self, data: bytes) -> tuple[list[Line], int]:  # noqa: C901, PLR0912, PLR0915 - the one hot loop
        """Return the lines of interest in `data`, and how many bytes were consumed.

        `data` begins where the last call stopped.  The bytes of an unfinished line are not
        consumed, unless the line is longer than a chunk.
        """
        out: list[Line] = []
        i = 0
        if self._long is not None:
            i = self._go_on(self._long, data, out)
            if i < 0:
                return out, len(data)
        scale = self.scale
        find, starts = data.find, data.startswith
        interests = self.interests if self._hot else None
        last = -1  # where the last line begins whose ordinal rests on its prefix alone
        last_end = top_before = 0
        while not self.stopped:
            if scale.lines >= self.until:
                self.stopped = True
                break
            j = find(b"\n", i)
            if j < 0 and (i > 0 or len(data) < CHUNK):
                break
            wish: Wish | None = None
            ordinal = -1
            if interests is not None and starts(_HEAD, i):
                p = i + _STAMP_END
                q = 0
                if starts(_PLAIN, p):
                    if not scale.ordinals:
                        q = p + 10
                elif starts(_NUMBERED, p):
                    q = find(b',"type":"', p + 12, p + 40)
                    digits = data[p + 12 : q] if q > 0 else b""
                    if digits.isdigit():
                        ordinal = int(digits)
                        # A repeated ordinal is for the full parser to count.
                        q = 0 if scale.ordinals and ordinal <= scale.top else q + 9
                    else:
                        q = 0
                if q <= 0:
                    pass
                elif starts(_RESPONSE, q):
                    q += len(_RESPONSE)
                    wish = interests.responses.get(data[q : find(b'"', q, q + 48)])
                    if wish == Wish.PLAN_CALL:
                        name = find(_NAME, q, q + 400)
                        if name < 0:
                            wish = None
                        elif starts(b'update_plan"', name + len(_NAME)):
                            wish = Wish.PARSE
                        else:
                            wish = Wish.SKIP
                elif starts(_EVENT, q):
                    q += len(_EVENT)
                    wish = interests.events.get(data[q : find(b'"', q, q + 48)])
                    if wish == Wish.ITEM:
                        k = find(_ITEM, q, q + 300)
                        q = k + len(_ITEM)
                        tag = data[q : find(b'"', q, q + 48)] if k > 0 else b""
                        wish = interests.items.get(tag)
                else:
                    e = find(b'"', q, q + 48)
                    if starts(b'","payload":{', e):
                        wish = _LINES.get(data[q:e])
            if j < 0:
                self._long = _Long(ordinal, wish)
                self._go_on(self._long, data, out)
                return out, len(data)
            if wish is None or wish == Wish.PARSE or data[j - 1] != _BRACE:
                self._read(out, data[i:j])
                if self._hot:
                    interests = self.interests
                last = -1
            else:
                if scale.ordinals:
                    if ordinal >= self.limit:
                        self.stopped = True
                        break
                    last_end, top_before = j, scale.top
                    scale.top = ordinal
                last = i
                scale.lines += 1
                scale.readable += 1
                if wish != Wish.SKIP:
                    self._take(out, data[i:j], wish)
            i = j + 1
        self._unproven = None
        if last >= 0:
            scale.stamp = data[last + len(_HEAD) : last + _STAMP_END].decode(errors="replace")
            if scale.ordinals:
                self._unproven = (data[last:last_end], top_before)
        return out, i

    def settle(self) -> None:
        """Prove the last line, when its prefix alone raised `seq`; call this at the end of data.

        In the middle of a file a line whose ordinal lies is followed by one that mends it.
        """
        if self._unproven is None:
            return
        raw, top_before = self._unproven
        self._unproven = None
        parsed = items.parse(raw)
        if isinstance(parsed.item, Unreadable):
            self.scale.top = top_before
            self.scale.readable -= 1
            self.scale.count(parsed.item.reason)

    def _take(self, out: list[Line], raw: bytes, wish: Wish) -> None:
        item = Compacted() if wish == Wish.COMPACTED else None
        out.append(Line(self.scale.lines, self.scale.seq, wish, raw, item))

    def _read(self, out: list[Line], raw: bytes, *, shortened: bool = False) -> None:
        """Send one line through the full parser."""
        scale = self.scale
        raw = raw.removesuffix(b"\r")
        if scale.lines == 0:
            raw = raw.removeprefix(b"\xef\xbb\xbf")  # some editors and exports add a mark
        if not raw.strip():
            return
        parsed = items.parse(raw, first=scale.lines == 0)
        item, ordinal = parsed.item, parsed.ordinal
        if scale.ordinals and ordinal is not None and ordinal >= self.limit:
            self.stopped = True
            return
        scale.lines += 1
        if isinstance(item, Unreadable):
            scale.count(item.reason)
            return
        scale.readable += 1
        scale.stamp = parsed.timestamp or scale.stamp
        if scale.ordinals is None:
            paginated = isinstance(item, SessionMeta) and item.paginated
            self.settle_mode(
                paginated=paginated or ordinal is not None and not isinstance(item, SessionMeta),
                ordinals=paginated or ordinal is not None,
            )
        if scale.ordinals:
            if ordinal is None:
                scale.count("no_ordinal")
            elif ordinal <= scale.top:
                scale.count("repeated_ordinal")
            else:
                scale.top = ordinal
        if isinstance(item, Unknown):
            scale.count("unknown_type")
        elif item is not items.QUIET:
            out.append(Line(scale.lines, scale.seq, Wish.PARSE, raw, item, shortened))

    def settle_mode(self, *, paginated: bool, ordinals: bool) -> None:
        """Say how the file numbers its lines and tells what happened, as its head has it."""
        self.scale.paginated = paginated
        self.scale.ordinals = ordinals
        self.interests = PAGINATED if paginated else LEGACY

    def _go_on(self, long: _Long, data: bytes, out: list[Line]) -> int:
        """Take more of a long line; return where the next line begins, or -1."""
        j = data.find(b"\n")
        long.add(data if j < 0 else data[:j])
        if j < 0:
            return -1
        self._long = None
        scale = self.scale
        if long.given_up:
            scale.lines += 1
            scale.count("too_long")
        elif long.parts is not None and long.wish not in _LAZY:
            self._read(out, b"".join(long.parts), shortened=long.shortened)
        elif long.last != _BRACE:
            scale.lines += 1
            scale.count("not_json")
        elif scale.ordinals and long.ordinal >= self.limit:
            self.stopped = True
        else:
            scale.lines += 1
            scale.readable += 1
            scale.top = max(scale.top, long.ordinal) if scale.ordinals else scale.top
            if long.wish is not None and long.wish != Wish.SKIP:
                self._take(out, b"".join(long.parts or ()), long.wish)
        return j + 1


_LAZY = frozenset(set(Wish) - {Wish.PARSE, Wish.ITEM, Wish.PLAN_CALL})


class _Long:
    """A line longer than a chunk, as it comes."""

    def __init__(self, ordinal: int, wish: Wish | None) -> None:
        unwanted = wish in {Wish.SKIP, Wish.COMPACTED}
        self.ordinal = ordinal
        self.wish = wish
        self.parts: list[bytes] | None = None if unwanted else []
        self.size = 0
        self.kept = 0
        self.last = 0
        self.shortened = False
        self.given_up = False

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.last = data[-1] if data else self.last
        if self.parts is None:
            return
        if self.kept + len(data) > BLOBS_FROM:
            if not self.shortened:
                self.parts = [_BLOB.sub(rb"\1", b"".join(self.parts))]
                self.shortened = True
            data = _BLOB.sub(rb"\1", data)
            self.kept = sum(map(len, self.parts)) if len(self.parts) == 1 else self.kept
        self.parts.append(data)
        self.kept += len(data)
        if self.kept > LONGEST:
            self.parts = None
            self.given_up = True
