"""The lines of a session up to the end of a turn, for a branch (AGN-12, AGN-25).

Lines are copied byte for byte but for heads, and for the window ids of compactions (WIN-10,
WIN-13).  Codex reads no file with bytes that are not UTF-8: each such byte becomes a character that
no JSON has.  A file that changed since it was planned is refused (AGN-84); it may have grown.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from codex_checkpoints.core.restore.references import FallbackKind, Trace
from codex_checkpoints.core.restore.source_lines import (
    Member,
    before_task,
    leading,
    payload_members,
)
from codex_checkpoints.core.rollout.fields import (
    Json,
    is_object,
    load,
    object_of,
    text_of,
    whole_of,
)
from codex_checkpoints.core.rollout.items import HistoryBase, Unreadable
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.service.reading.session_file import (
    Fingerprint,
    Locate,
    bases_below,
    fingerprint,
    lines_of,
)
from codex_checkpoints.storage.contract import Copied, Item, RolloutReader, Row, UnreadableSource
from codex_checkpoints.values import Factory, define, frozen

_FIRST = "first_window_id"
_WINDOW_IDS = frozenset({_FIRST, "previous_window_id", "window_id"})

_NO_UTF8 = re.compile("[\udc80-\udcff]")
_SUBSTITUTE = "\x1a"
"""Stands for a byte that is no UTF-8; nowhere in JSON may it stand as it is."""

_MOST_LEADING = 32
"""More lines than Codex writes before a prompt."""

QUIET = Item("event_msg", {"type": "token_count", "info": None, "rate_limits": None})
"""A record of which Codex writes many and that says nothing."""


@define
class WindowNames:
    """New ids for the windows of a session; the first window of a branch has its id already."""

    _first: str
    _new_id: Callable[[], str]
    _known: dict[str, str] = Factory(dict[str, str])

    def renamed(self, line: bytes) -> bytes:
        """Return the record of a compaction with the window ids of the branch."""
        told = list(_window_ids(line))
        if self._first not in self._known.values():
            # Keys have no order: other ids of the line may name the first window as well.
            firsts = (old for member, old in told if member.name == _FIRST)
            for old in islice(firsts, 1):
                self._known.setdefault(old, self._first)
        pieces, done = list[bytes](), 0
        for member, old in told:
            pieces += line[done : member.start], b'"%b"' % self._new(old).encode()
            done = member.end
        return b"".join([*pieces, line[done:]])

    def _new(self, old: str) -> str:
        if old not in self._known:
            self._known[old] = self._new_id()
        return self._known[old]


def _window_ids(line: bytes) -> Iterator[tuple[Member, str]]:
    for member in payload_members(line):
        if member.name in _WINDOW_IDS:
            old = text_of(load(line[member.start : member.end]))
            if old is not None:
                yield member, old


@frozen
class CopiedPart:
    """A file of a history: where it is cut, and its size and digest when it was planned."""

    path: str
    cut: HistoryBase | None
    size: int
    digest: str


def part_of(reader: RolloutReader, path: str, cut: HistoryBase | None = None) -> CopiedPart:
    """Return a file with its present size and digest; raises `UnreadableSource`."""
    digest, size = fingerprint(reader, path)
    return CopiedPart(path, cut, size, digest)


def parts_below(reader: RolloutReader, path: str, locate: Locate) -> tuple[CopiedPart, ...]:
    """Return the base files of a history, the farthest first; raises `UnreadableSource`."""
    below, _ = bases_below(reader, path, locate)
    return tuple(part_of(reader, base, cut) for base, cut in reversed(below))


def last_of(
    reader: RolloutReader, parts: Iterable[CopiedPart], turn: Turn, following: Turn, until: int
) -> int:
    """Return the position, up to `until`, of the last line of a turn that no record ends.

    The turn lasts up to the `following` one. Raises `UnreadableSource`.
    """
    lines = islice(_chain(reader, map(_Sealed, parts)), turn.opened, until)
    if following.in_task:
        return turn.opened + before_task(lines)
    return until - leading(deque(lines, maxlen=_MOST_LEADING))


def copied_history(
    reader: RolloutReader, parts: Iterable[CopiedPart], until: int, names: WindowNames
) -> Iterator[Item | Copied]:
    """Yield the lines of a branch behind its head, up to position `until`.

    Positions count the lines that are not blank, from 1, through all files. Raises
    `UnreadableSource`, at the end also for a file that changed since it was planned.
    """
    sealed = tuple(map(_Sealed, parts))
    bare, position = False, 0
    for position, line in enumerate(_chain(reader, sealed), 1):
        head = head_of(line) if position == 1 else None
        if head is not None:
            bare = head.bare
        elif bare:
            yield _wrapped(line)
        elif b'"session_meta"' in line and object_of(load(line)).get("type") == "session_meta":
            yield QUIET  # Codex forgets what stands before a second head
        elif b'"compacted"' in line and object_of(load(line)).get("type") == "compacted":
            yield Copied(names.renamed(line))
        else:
            yield Copied(_in_utf8(line))
        if position >= until:
            break
    if position < until:
        raise UnreadableSource(CHANGED)
    for each in sealed:
        each.check(reader)


def unchanged(reader: RolloutReader, parts: Iterable[CopiedPart]) -> Iterator[Item | Copied]:
    """Yield nothing; raise `UnreadableSource` where a part changed since it was planned."""
    for part in parts:
        _Sealed(part).check(reader)
    yield from ()


CHANGED = "it has changed since it was looked at"
_BASE_CHANGED = "a file that its history begins with has changed since it was looked at"


class _Sealed:
    """A part while it is read; its digest is compared with the planned one."""

    def __init__(self, part: CopiedPart) -> None:
        self.part = part
        self._found = Fingerprint(part.size)

    def lines(self, reader: RolloutReader, end: int | None = None) -> Iterator[bytes]:
        """Yield its lines, up to the byte `end` or to its planned size."""
        path, size = self.part.path, self.part.size
        return lines_of(reader, path, size if end is None else min(end, size), self._found.add)

    def check(self, reader: RolloutReader) -> None:
        """Read the rest of it, and raise `UnreadableSource` where it changed."""
        part, found = self.part, self._found
        if found.size < part.size:
            reader.read(part.path, found.size, found.add, part.size)
        if found.digest != part.digest:
            raise UnreadableSource(CHANGED if part.cut is None else _BASE_CHANGED)


def _in_utf8(line: bytes) -> bytes:
    """Return a line in UTF-8; a line that was no JSON stays none."""
    if line.isascii():
        return line
    return _NO_UTF8.sub(_SUBSTITUTE, line.decode(errors="surrogateescape")).encode()


def _wrapped(line: bytes) -> Item:
    """Return a line of the oldest files in the envelope that Codex reads today (ROL-16)."""
    value = load(line)
    if not is_object(value) or "type" not in value:
        return QUIET
    return Item("response_item", value)


def _chain(reader: RolloutReader, parts: Iterable[_Sealed]) -> Iterator[bytes]:
    for each in parts:
        cut = each.part.cut
        yield from each.lines(reader) if cut is None else _below(reader, each, cut)


def _below(reader: RolloutReader, base: _Sealed, cut: HistoryBase) -> Iterator[bytes]:
    """Yield a base's lines up to its cut: an ordinal, or a byte where lines have none."""
    head = head_of(reader.first_line(base.part.path))
    if head is None or not head.paginated or cut.end_ordinal is None:
        yield from base.lines(reader, cut.end_offset)
        return
    for line in base.lines(reader):
        ordinal = object_of(load(line)).get("ordinal")
        if type(ordinal) is int and ordinal >= cut.end_ordinal:
            return
        yield line


_NOT_UTF8 = Unreadable("not_utf8")


@frozen
class Reference:
    """The rollout and the place where the history of a branch ends; both ends are exclusive."""

    rollout_id: str
    end_ordinal: int
    end_offset: int

    def as_head(self) -> Json:
        """Return the fields for the head of the branch."""
        base = {
            "thread_id": self.rollout_id,
            "end_ordinal_exclusive": self.end_ordinal,
            "end_byte_offset": self.end_offset,
        }
        return {"history_base": base, "forked_from_ordinal_exclusive": self.end_ordinal}


def reference_to(reader: RolloutReader, row: Row, trace: Trace) -> Reference | FallbackKind:
    """Return a reference to the lines up to `trace`, or the reason to copy them.

    Raises `UnreadableSource`.
    """
    head = head_of(reader.first_line(row.path))
    if head is None or not head.paginated:
        return "copied_legacy"
    if row.rollout.compressed:
        return "copied_compressed"
    if trace.replay.state.compactions:
        return "copied_windows"  # its window would be one of the source (WIN-13)
    # What a session of ours began with moves the `seq`, and no ordinal.
    end = trace.replay.scale.own_seq + 1
    first = whole_of(object_of(load(reader.first_line(row.path))).get("ordinal"))
    if first is None or end <= first + 1:
        return "copied_in_base"
    offset = (
        None if _NOT_UTF8.reason in trace.replay.scale.skipped else _offset(reader, row.path, end)
    )
    return "copied_damaged" if offset is None else Reference(row.rollout_id, end, offset)


def _offset(reader: RolloutReader, path: str, end: int) -> int | None:
    """Return the byte where the ordinal `end` begins; None where an earlier line is not UTF-8."""
    offset, damaged = 0, False

    def feed(data: bytes) -> int:
        nonlocal offset, damaged
        start = 0
        while (stop := data.find(b"\n", start)) >= 0:
            value = load(data[start:stop])
            if _is_behind(value, end):
                break
            damaged = damaged or value == _NOT_UTF8
            start = stop + 1
        offset += start
        return start

    _, rest = reader.read(path, 0, feed)
    # What follows may begin with a later line; a last one without its LF belongs to it if it fits.
    whole = rest and b"\n" not in rest and not _is_behind(load(rest), end)
    if damaged or (whole and load(rest) == _NOT_UTF8):
        return None
    return offset + len(rest) if whole else offset


def _is_behind(line: object, end: int) -> bool:
    ordinal = whole_of(object_of(line).get("ordinal"))
    return ordinal is not None and ordinal >= end
