"""Whole lines out of arriving bytes, and only those that somebody needs.

Rules (interfaces, "Lines, `seq`, identity"):

1. Lines end at LF bytes only; one CR before the LF is dropped.
2. A blank line counts nowhere.  Every other line counts, readable or not.
3. With ordinals `seq` is the highest `ordinal` of an envelope that could be read so far; without,
   it is the number of lines so far that are not blank.

A line is first judged by its prefix (`wishes`); most are dropped after a look at a hundred bytes.
Work per line does not depend on its length, and memory neither on the length of a line nor on that
of the file (`long_line`).  What a line says is told by `parsing`; where the bytes come from is not
known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from attrs import Factory

from codex_checkpoints.core.rollout.items import (
    QUIET,
    Item,
    SessionMeta,
    Tokens,
    Unknown,
    Unreadable,
    UserMessage,
)
from codex_checkpoints.core.rollout.long_line import LongLine
from codex_checkpoints.core.rollout.parsing import BOM, parse
from codex_checkpoints.core.rollout.wishes import READ, SKIP, STAMP, TOKENS, WORK, Judge, judge
from codex_checkpoints.values import define

CHUNK = 1 << 16
"""How many bytes a caller should offer at a time; larger reads made scanning slower."""

_NO_LIMIT = 1 << 62
_BRACE = 0x7D

_Match = Callable[[bytes, int], re.Match[bytes] | None]


def _no_match(_data: bytes, _at: int) -> None:
    return None


class Line(NamedTuple):
    """A line that somebody may need.

    `position` counts the lines that are not blank, from 1, through the whole chain of files; `seq`
    is the number of the scale the file uses.  The line lies in `data` from `start` to `end`, since
    to copy it would often be for nothing.  Without an `item` it need not be read yet; `prefix` is
    by what it was told.  A `shortened` line has lost its blobs.  `told` is the time that was read
    together with an `item`.
    """

    wish: int
    position: int
    seq: int
    data: bytes
    start: int
    end: int
    item: Item | None = None
    prefix: re.Match[bytes] | None = None
    shortened: bool = False
    told: str | None = None

    @property
    def stamp(self) -> str | None:
        """Return when the line was written, as it says; its prefix has the time in one place."""
        if self.prefix is None:
            return self.told
        return self.data[self.start : self.start + STAMP.stop][STAMP].decode(errors="replace")

    @property
    def raw(self) -> bytes:
        """Return the bytes of the line."""
        return self.data[self.start : self.end]


@define
class Scale:
    """Where a reader stands, in numbers: the part of a scanner that outlives the process."""

    lines: int = 0
    top: int = -1
    ordinals: bool | None = None
    paginated: bool = False
    stamp: str | None = None
    skipped: dict[str, int] = Factory(dict[str, int])

    @property
    def seq(self) -> int:
        """Return `seq` after the last line (DSC-21)."""
        return self.top if self.ordinals else self.lines

    def count(self, reason: str) -> None:
        """Note one more line that gave nothing, and why."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


class Scanner:
    """Turn bytes into the lines that matter; offer it chunks, it says what it consumed."""

    def __init__(self, scale: Scale, judging: Judge | None = None, *, hot: bool = True) -> None:
        """Start at `scale`; `hot=False` sends every line to the full parser."""
        self.scale = scale
        self.judging = judging
        """By what lines are judged, once it is known what kind of file this is."""
        self.limit = _NO_LIMIT
        """The first ordinal that is no longer wanted, where a base is cut."""
        self.until = _NO_LIMIT
        """The position of the last line that is wanted, to look at the end of a turn."""
        self.stopped = False
        self._hot = hot
        self._long: LongLine | None = None
        self._unproven: tuple[bytes, int] | None = None
        self._repeated = -1

    @property
    def pending(self) -> int:
        """How many consumed bytes belong to a long line that has not ended yet."""
        return 0 if self._long is None else self._long.size

    def feed(self, data: bytes) -> tuple[list[Line], int]:  # noqa: C901, PLR0912, PLR0915 - the one hot loop
        """Return the lines of interest in `data`, and how many bytes were consumed.

        `data` begins where the last call stopped.  The bytes of an unfinished line are not
        consumed, unless the line is longer than a chunk.  Of the kinds of which only the newest
        line is ever read only the newest of `data` is returned, after all others.
        """
        out: list[Line] = []
        i = 0
        if self._long is not None:
            i = self._go_on(self._long, data, out)
            if i < 0:
                return out, len(data)
        scale, limit, until = self.scale, self.limit, self.until
        find, add = data.find, out.append
        match, wishes = self._judge()
        lines, top, ordinals = scale.lines, scale.top, scale.ordinals
        tokens: list[tuple[int, int, int, int]] = []
        spoke: tuple[int, int] | None = None
        last, top_before = -1, top  # the last line whose ordinal rests on its prefix alone
        while not self.stopped:
            if lines >= until:
                self.stopped = True
                break
            j = find(b"\n", i)
            if j < 0:
                break
            prefix = match(data, i)
            if prefix is None or data[j - 1] != _BRACE or data[j - 2] != _BRACE:
                ordinal = -1  # payload and envelope end in a brace each
            elif ordinals:
                ordinal = int(prefix[1])
                if ordinal >= limit:
                    self.stopped = True
                    break
            else:
                ordinal = lines + 1
            # A repeated ordinal is for the full parser to count.
            if prefix is None or ordinal <= (top if ordinals else lines):
                scale.lines, scale.top, last_top = lines, top, top
                self._repeated = -1
                self._read(out, data[i:j])
                lines, top, ordinals = scale.lines, scale.top, scale.ordinals
                match, wishes = self._judge()
                if not ordinals or last_top < top:
                    last = -1
                # Should the line before turn out to be none, this one's ordinal still stands.
                top_before = max(top_before, self._repeated)
                i = j + 1
                continue
            if ordinals:
                top_before, top = top, ordinal
            lines += 1
            last = i
            wish = wishes[prefix.lastindex or 0]
            if wish > WORK:
                add(Line(wish, lines, ordinal, data, i, j, None, prefix))
            elif wish > TOKENS:
                spoke = wish, lines
            elif wish == TOKENS:
                tokens.append((lines, ordinal, i, j))
            i = j + 1
        scale.lines, scale.top = lines, top
        if last >= 0:
            scale.stamp = data[last : last + STAMP.stop][STAMP].decode(errors="replace")
            if ordinals:
                self._unproven = (data[last : find(b"\n", last)], top_before)
        for position, ordinal, k, j in reversed(tokens):
            item, _, _ = parse(data[k:j])
            if isinstance(item, Tokens):  # one torn at a brace is none
                add(Line(READ, position, ordinal, data, k, j, item))
                if item.window is not None:
                    break
        if spoke is not None:
            wish, position = spoke
            add(Line(wish, position, position, data, 0, 0))
        if i == 0 and not self.stopped and len(data) >= CHUNK:
            self._long = self._begin_long(data)
            self._go_on(self._long, data, out)
            i = len(data)
        return out, i

    def _judge(self) -> tuple[_Match, tuple[int, ...]]:
        """Return by what lines are judged now; nothing is before a line could be read."""
        if self.judging is None or not self._hot:
            return _no_match, ()
        return self.judging.prefix.match, self.judging.wishes

    def _begin_long(self, data: bytes) -> LongLine:
        """Judge a line that is longer than a chunk."""
        match, wishes = self._judge()
        prefix = match(data, 0)
        if prefix is None:
            return LongLine(-1, READ, None)
        ordinal = int(prefix[1]) if self.scale.ordinals else -1
        repeated = self.scale.ordinals and ordinal <= self.scale.top
        return LongLine(ordinal, READ if repeated else wishes[prefix.lastindex or 0], prefix)

    def settle(self) -> None:
        """Prove the last line, when its prefix alone raised `seq`; call this at the end of data.

        In the middle of a file a line whose ordinal lies is followed by one that mends it.
        """
        if self._unproven is None:
            return
        raw, top_before = self._unproven
        self._unproven = None
        item, _, _ = parse(raw)
        if isinstance(item, Unreadable):
            self.scale.top = top_before
            self.scale.count(item.reason)

    def settle_mode(self, *, paginated: bool, ordinals: bool, typed: bool = False) -> None:
        """Say how the file numbers its lines and tells what happened, as its head has it.

        `typed` says that events tell what a person typed, so that the history need not.
        """
        self.scale.paginated = paginated
        self.scale.ordinals = ordinals
        self.judging = judge(paginated=paginated, ordinals=ordinals, typed=typed)

    def _read(self, out: list[Line], raw: bytes, *, shortened: bool = False) -> None:
        """Send one line through the full parser."""
        scale = self.scale
        raw = raw.removesuffix(b"\r")
        if scale.lines == 0:
            raw = raw.removeprefix(BOM)
        if not raw.strip():
            return
        item, ordinal, stamp = parse(raw, first=scale.lines == 0)
        if scale.ordinals and ordinal is not None and ordinal >= self.limit:
            self.stopped = True
            return
        scale.lines += 1
        if isinstance(item, Unreadable):
            scale.count(item.reason)
            return
        scale.stamp = stamp or scale.stamp
        self._number(item, ordinal)
        if isinstance(item, Unknown):
            scale.count("unknown_type")
        elif item is not QUIET:
            numbers = scale.lines, scale.seq
            out.append(Line(READ, *numbers, raw, 0, len(raw), item, None, shortened, stamp))
            if isinstance(item, UserMessage) and not item.in_history and not scale.paginated:
                self.settle_mode(paginated=False, ordinals=bool(scale.ordinals), typed=True)

    def _number(self, item: Item, ordinal: int | None) -> None:
        """Move `seq`; the first line that can be read settles by what."""
        scale = self.scale
        if scale.ordinals is None:
            head = isinstance(item, SessionMeta)
            paginated = item.paginated if head else ordinal is not None
            self.settle_mode(paginated=paginated, ordinals=paginated or ordinal is not None)
        if scale.ordinals:
            if ordinal is None:
                scale.count("no_ordinal")
            elif ordinal <= scale.top:
                scale.count("repeated_ordinal")
                self._repeated = ordinal
                if self._unproven is not None:
                    raw, top_before = self._unproven
                    self._unproven = raw, max(top_before, ordinal)
            else:
                scale.top = ordinal
                self._unproven = None

    def _go_on(self, long: LongLine, data: bytes, out: list[Line]) -> int:
        """Take more of a long line; return where the next line begins, or -1."""
        j = data.find(b"\n")
        long.add(data if j < 0 else data[:j])
        if j < 0:
            return -1
        self._long = None
        scale = self.scale
        if scale.ordinals and long.ordinal >= self.limit:
            self.stopped = True
        elif long.given_up:
            scale.lines += 1
            scale.count("too_long")
        elif long.wish in {READ, TOKENS} or long.shortened:
            self._read(out, long.raw, shortened=long.shortened)
        elif long.last != _BRACE:
            scale.lines += 1
            scale.count("not_json")
        else:
            if scale.ordinals and long.raw:
                self._unproven = (long.raw, scale.top)
            scale.lines += 1
            scale.top = max(scale.top, long.ordinal)
            if long.wish != SKIP:
                raw, prefix = long.raw, long.prefix
                line = Line(long.wish, scale.lines, scale.seq, raw, 0, len(raw), None, prefix)
                out.append(line)
        return j + 1
