"""Cuts the bytes of a session into lines and gives each line to every fold.

Lines and `seq` follow (rules, "Lines, `seq`, identity").  A fold takes the lines in order and keeps
the parts it needs; several folds share one pass.  Memory does not grow with the file: of a long
line that no fold wants only the first bytes are read, and a long line that is wanted for its words
is read without its images, a very long one without its base64 blobs, with `…` in their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

import orjson
from attrs import Factory, define, field, frozen

from codex_checkpoints.core.agents.codex.items import Item, Signal
from codex_checkpoints.core.agents.codex.parsing import (
    BOM,
    item_of,
    record_of,
    signal_of,
    turn_id_of,
    turn_named_by,
)
from codex_checkpoints.core.fields import (
    NOTHING,
    Json,
    UnreadableLine,
    is_object,
    load,
    text_of,
    whole_of,
)

CHUNK = 1 << 16
"""Bytes to feed at a time; larger pieces were slower."""

PASSED_OVER_FROM = 1 << 17
"""An unwanted line of at least this many bytes is not read."""

BLOBS_FROM = 1 << 22
"""A line wanted for its words loses its base64 blobs from this many bytes on."""

LONGEST = 1 << 23
"""A line of more bytes without its blobs is counted as `too_long` and not read."""

LONGEST_WHOLE = 1 << 28
"""The same limit for a line that is wanted whole."""

# The part of a long line that a fold wants: its place, its text without blobs, or every byte.
NOTED: Final = 0
WORDS: Final = 1
WHOLE: Final = 2

_NO_LIMIT = 1 << 62
_BLOB = re.compile(rb"(?<![A-Za-z0-9+/=_-])([A-Za-z0-9+/=_-]{16})[A-Za-z0-9+/=_-]{4096,}")
"""It begins where a word does: tried at each byte, a line of 8 MB took a minute."""
_CUT_BLOB = rb"\1" + "…".encode()
_IMAGE = re.compile(rb'("image_url":"data:image/)[^"]+(?<!\\)"')
"""An image in a line; inside a text its quotes are escaped."""

_OPTIONAL = rb'(?:,"id":"[^"\\]{0,256}")?(?:,"status":"[^"\\]{0,64}")?'
_ITEM = rb',"thread_id":"[^"\\]{0,64}","turn_id":"[^"\\]{0,64}","item":\{"type":"([A-Za-z]+)"'
_PREFIX = re.compile(
    rb'\{"timestamp":"([^"\\]{0,64})",(?:"ordinal":(0|[1-9][0-9]{0,14}),)?'
    rb'"type":"([a-z_]+)","payload":\{'
    rb'(?:"type":"([a-z_]+)"' + _OPTIONAL + rb'(?:,"role":"([a-z]+)"|' + _ITEM + rb")?)?"
)
"""The beginning of a line as Codex writes it; a bare quote cannot occur inside a JSON string."""


@frozen(order=True)
class LinePlace:
    """Where a line begins: the number of the file in its chain, and the offset in bytes."""

    file: int
    offset: int


@define(eq=False)
class Line:
    """One line of a session.

    `position` counts the lines that are not blank, from 1, through the whole chain.  `tag` is the
    type inside the payload, `inner` the role of a message or the type of a completed item.
    `shortened`: the line lost its blobs.
    """

    file: int
    offset: int
    position: int
    seq: int
    kind: str
    tag: str | None
    inner: str | None
    payload: Json
    """Empty if the reader skipped the line."""
    envelope: Json
    """The whole line; the payload itself if the line has no envelope (`bare`)."""
    stamp: str | None
    raw: bytes
    bare: bool = False
    mended: bool = False
    """Whether lone surrogates were replaced, which Codex does not do."""
    shortened: bool = False
    passed_over: bool = False
    _item: Item | None = field(init=False, default=None)

    @property
    def item(self) -> Item:
        """Return the item of the line, made on first use."""
        if self._item is None:
            self._item = item_of(self.kind, self.payload, bare=self.bare)
        return self._item

    @property
    def signal(self) -> Signal:
        """Return the signal in the beginning of the line."""
        return signal_of(self.kind, self.tag, self.inner)

    @property
    def turn_id(self) -> str | None:
        """Return the turn that the line names as a response item, or None."""
        return turn_id_of(self.payload)

    @property
    def named_turn(self) -> str | None:
        """Return the turn that the line names as a response item or an event, or None."""
        return turn_named_by(self.payload)

    @property
    def place(self) -> LinePlace:
        """Return the place where the line begins."""
        return LinePlace(self.file, self.offset)


class Fold(Protocol):
    """A consumer of the lines of a session, in order."""

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Return the part of a long line that this fold needs; `kind` is None if it is unknown.

        A fold whose source is another fold, which decides, needs no more than `NOTED`.
        """
        return NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        ...


@define
class ReadPosition:
    """The position of a reader and its counts; saved with a session."""

    lines: int = 0
    top: int = -1
    ordinals: bool | None = None
    paginated: bool = False
    stamp: str | None = None
    skipped: dict[str, int] = Factory(dict[str, int])
    file: int = 0
    offset: int = 0
    seed: int | None = None
    """The `seq` of the checkpoint that the session begins with."""

    @property
    def own_seq(self) -> int:
        """Return `seq` after the last line, without the seed's."""
        return self.top if self.ordinals else self.lines

    @property
    def shift(self) -> int:
        """Return how far `seq` is ahead of the session's own lines.

        Its first line follows the seed: lines are counted from 1, ordinals from 0.
        """
        return 0 if self.seed is None else self.seed + bool(self.ordinals)

    @property
    def seq(self) -> int:
        """Return `seq` after the last line (DSC-21)."""
        return self.own_seq if self.seed is None else self.own_seq + self.shift

    def count(self, reason: str) -> None:
        """Count a line that gave no item, by its reason."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def settle(self, kind: str, payload: Json, ordinal: int | None) -> None:
        """Set how the file numbers its lines; the first line that can be read decides."""
        numbered = ordinal is not None
        is_head = kind == "session_meta"
        self.paginated = payload.get("history_mode") == "paginated" if is_head else numbered
        self.ordinals = self.paginated or numbered

    def move(self, ordinal: int | None) -> None:
        """Advance to the ordinal of the next line."""
        if ordinal is None:
            self.count("no_ordinal")
        elif ordinal <= self.top:
            self.count("repeated_ordinal")
        else:
            self.top = ordinal


class Reader:
    """Cuts bytes into lines, numbers them, and gives each to every fold."""

    def __init__(
        self, *folds: Fold, scale: ReadPosition | None = None, start: LinePlace | None = None
    ) -> None:
        """Begin at the position of a scale, or at a place in a chain of files."""
        self.folds = list(folds)
        self.scale = ReadPosition() if scale is None else scale
        if start is not None:
            self.scale.file, self.scale.offset = start.file, start.offset
        self.stopped = False
        """Whether a limit was reached: this file needs no more bytes."""
        self.until = _NO_LIMIT
        """The `position` of the last line to read."""
        self.last = _NO_LIMIT
        """The `seq` of the last line to read."""
        self.needle = b""
        """If set, only lines with these bytes are read, and lines are not counted."""
        self.passes_over: Callable[[bytes, str, str | None, str | None], bool] | None = None
        """If set, it gets the bytes, kind, tag and inner of a line; if true, only its place counts.
        """
        self.exact = True
        """True if sharing the pass lost no fold any data."""
        self._limit = _NO_LIMIT
        self._long: _LongLine | None = None

    @property
    def pending(self) -> int:
        """The number of consumed bytes that belong to a long line without its end."""
        return 0 if self._long is None else self._long.size

    def next_file(self, limit: int | None = None) -> None:
        """Continue with the next file of the chain; `limit` as in `begin_file`."""
        self.scale.file, self.scale.offset = self.scale.file + 1, 0
        self.begin_file(limit)

    def begin_file(self, limit: int | None = None) -> None:
        """Read the current file, up to the ordinal `limit` (exclusive)."""
        self._limit = _NO_LIMIT if limit is None else limit
        self.stopped, self._long = False, None

    def drop_unfinished(self) -> None:
        """Forget a long line without its end; the caller feeds its bytes again."""
        self.scale.offset -= self.pending
        self._long = None

    def feed(self, data: bytes) -> int:
        """Read the whole lines in `data`; return how many bytes were consumed.

        Feed the rest again, together with the next bytes.  The bytes of an unfinished line are not
        consumed, unless the line is longer than a chunk.
        """
        scale, begun, i = self.scale, self.scale.offset, 0
        if self._long is not None:
            i = self._continue(self._long, data)
            if i < 0:
                scale.offset = begun + len(data)
                return len(data)
        while not self.stopped:
            if scale.lines >= self.until:
                self.stopped = True
                break
            j = data.find(b"\n", i)
            if j < 0:
                break
            scale.offset = begun + i
            if self.needle and scale.lines and data.find(self.needle, i, j) < 0:
                pass  # the first line is always read: it may be the head
            elif j - i < PASSED_OVER_FROM:
                self._read(data[i:j], begun + i)
            else:
                long = self._begin_long(data[i:j])
                self._continue(long, data[i : j + 1])
            i = j + 1
        if i == 0 and not self.stopped and len(data) >= CHUNK:
            self._long = self._begin_long(data)
            self._long.add(data)
            i = len(data)
        scale.offset = begun + i
        return i

    def close(self, tail: bytes) -> None:
        """Read a last line without its LF, if it is whole; the file has ended."""
        offset = self.scale.offset
        if self._long is not None:
            tail, offset, self._long = self._long.taken(), self._long.offset, None
        if not self.stopped and is_whole(tail):
            self._read(tail, offset)

    def _read(
        self, raw: bytes, offset: int, *, shortened: bool = False, pictured: bool = True
    ) -> None:
        scale, mended = self.scale, False
        if self.passes_over is not None and raw.endswith(b"}"):
            prefix = _PREFIX.match(raw)
            if prefix and self._is_in_order(prefix) and self.passes_over(raw, *_tags(prefix)):
                self._note(prefix, offset)
                return
        try:
            # Parsing takes memory of twelve times the length, and the process keeps it.
            value: object = orjson.loads(raw if pictured else _IMAGE.sub(rb'\1"', raw))
        except orjson.JSONDecodeError:
            raw = raw.removesuffix(b"\r")
            if offset == 0 and raw.startswith(BOM):
                raw = raw.removeprefix(BOM)
                self._read(raw, len(BOM), shortened=shortened, pictured=pictured)
                return
            if not raw.strip():
                return
            value, mended = load(raw), True
        if not is_object(value):
            scale.lines += 1
            scale.count(value.reason if isinstance(value, UnreadableLine) else "not_object")
            return
        ordinal = whole_of(value.get("ordinal"))
        if scale.ordinals and ordinal is not None and ordinal >= self._limit:
            self.stopped = True
            return
        kind, payload, bare = record_of(value, first=scale.lines == 0)
        scale.lines += 1
        stamp = text_of(value.get("timestamp"))
        scale.stamp = stamp or scale.stamp
        if stamp is None and not bare:
            scale.count("no_time")
        if scale.ordinals is None:
            scale.settle(kind, NOTHING if bare else payload, ordinal)
        if scale.ordinals:
            scale.move(ordinal)
        tag, inner = payload.get("type"), payload.get("role")
        if type(inner) is not str:
            item = payload.get("item")
            inner = text_of(item.get("type")) if is_object(item) else None
        line = Line(
            scale.file, offset, scale.lines, scale.seq, kind, tag if type(tag) is str else None,
            inner, payload, value, stamp, raw, bare, mended, shortened,
        )  # fmt: skip
        self._hand_out(line)

    def _hand_out(self, line: Line) -> None:
        if line.seq > self.last:
            self.stopped = True
            return
        for fold in self.folds:
            fold.take(line)

    def _begin_long(self, data: bytes) -> _LongLine:
        prefix = _PREFIX.match(data)
        if prefix is not None and not self._is_in_order(prefix):
            prefix = None
        tags = (None, None, None) if prefix is None else _tags(prefix)
        least = WORDS if prefix is None or self.needle else NOTED
        wanted = [max(least, fold.wants(*tags)) for fold in self.folds] or [least]
        return _LongLine(self.scale.offset, prefix, max(wanted), min(wanted))

    def _is_in_order(self, prefix: re.Match[bytes]) -> bool:
        """Return whether the beginning of the line is enough to number it."""
        if not self.scale.ordinals:
            return self.scale.ordinals is not None
        return prefix[2] is not None and int(prefix[2]) > self.scale.top

    def _continue(self, long: _LongLine, data: bytes) -> int:
        """Add bytes to a long line; return where the next line begins, or -1."""
        j = data.find(b"\n")
        long.add(data if j < 0 else data[:j])
        if j < 0:
            return -1
        self._long = None
        skipped = sum(self.scale.skipped.values())
        if long.given_up:
            self.scale.lines += 1
            self.scale.count("too_long")
        elif not long.passed_over:
            raw, pictured = long.taken(), long.wanted == WHOLE
            if self.needle in raw or not self.scale.lines:
                self._read(raw, long.offset, shortened=long.shortened, pictured=pictured)
        elif long.last != b"}":
            self.scale.lines += 1
            self.scale.count("not_json")
        elif long.prefix is not None:
            self._note(long.prefix, long.offset)
        if long.is_mixed and (
            long.size > BLOBS_FROM or sum(self.scale.skipped.values()) != skipped
        ):
            self.exact = False  # for a fold that wants less, the line had no blobs or was skipped
        return j + 1

    def _note(self, prefix: re.Match[bytes], offset: int) -> None:
        """Count a skipped line, and give it to the folds without its payload."""
        scale = self.scale
        if scale.ordinals:
            if int(prefix[2]) >= self._limit:
                self.stopped = True
                return
            scale.top = int(prefix[2])
        scale.lines += 1
        kind, tag, inner = _tags(prefix)
        scale.stamp = stamp = prefix[1].decode(errors="replace")
        line = Line(
            scale.file, offset, scale.lines, scale.seq, kind, tag, inner,
            NOTHING, NOTHING, stamp, b"", passed_over=True,
        )  # fmt: skip
        self._hand_out(line)


class _LongLine:
    """A line that comes in several pieces: its length, its end, and its bytes if needed.

    `wanted` is the most that a fold wants of it, `least` the least.
    """

    def __init__(
        self, offset: int, prefix: re.Match[bytes] | None, wanted: int, least: int
    ) -> None:
        self.offset = offset
        self.prefix = prefix
        self.size = 0
        self.last = b""
        self.is_mixed = least < wanted
        self.shortened = self.given_up = self.passed_over = False
        self.wanted = wanted
        self._parts: list[bytes] = []
        self._kept = 0

    def taken(self) -> bytes:
        """Return its bytes, and keep none."""
        raw = b"".join(self._parts)
        self._parts.clear()
        return raw

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.last = data.rstrip()[-1:] or self.last
        self.passed_over = self.wanted == NOTED and self.size >= PASSED_OVER_FROM
        if self.given_up or self.passed_over:
            self._parts.clear()
            return
        if self.wanted == WORDS and self._kept + len(data) > BLOBS_FROM:
            if not self.shortened:
                self.shortened = True
                self._parts = [_BLOB.sub(_CUT_BLOB, self.taken())]
                self._kept = len(self._parts[0])
            data = _BLOB.sub(_CUT_BLOB, data)
        self._parts.append(data)
        self._kept += len(data)
        if self._kept > (LONGEST_WHOLE if self.wanted == WHOLE else LONGEST):
            self._parts.clear()
            self.given_up = True


def is_whole(tail: bytes) -> bool:
    """Return whether a last line without its LF is a whole object."""
    return tail.rstrip().endswith(b"}") and is_object(load(tail.removeprefix(BOM)))


def _tags(prefix: re.Match[bytes]) -> tuple[str, str | None, str | None]:
    tag, inner = prefix[4], prefix[5] or prefix[6]
    return (
        prefix[3].decode(),
        None if tag is None else tag.decode(),
        None if inner is None else inner.decode(),
    )
