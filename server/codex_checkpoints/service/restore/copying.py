"""The lines of a session up to the end of a turn, to be copied into a branch (AGN-12, AGN-25).

They are pulled portion by portion, so that memory does not grow with the session, and copied byte
for byte.  Places stay as they are: a branch numbers its records as its source does, so whatever
names a record goes on being right.  Only heads cannot go along, for Codex forgets all that stands
before a second one: the first is replaced by the branch's own, another by a line that says nothing.
The windows that the copied history opened have new ids in the branch, since an id is that of one
session alone (WIN-13): in the records of compactions these ids are put in the place of the old
ones, each always by the same, and nothing else of such a line is touched (WIN-10).

Codex reads no file with bytes that are no UTF-8.  A line with such bytes says nothing, and goes on
saying nothing: each of them becomes a character that no JSON has, so that the line keeps its place.

What is copied is what was planned: a file that is another one by now, or shorter, is refused before
the branch is published (AGN-84).  One that only grew is the same.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from codex_checkpoints.core.history.leading import before_task, leading
from codex_checkpoints.core.restore.references import FallbackKind
from codex_checkpoints.core.restore.trace import Trace
from codex_checkpoints.core.rollout.fields import (
    Json,
    is_object,
    load,
    object_of,
    text_of,
    whole_of,
)
from codex_checkpoints.core.rollout.items import HistoryBase, Unreadable
from codex_checkpoints.core.rollout.members import Member, payload_members
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
from codex_checkpoints.values import frozen

_FIRST = "first_window_id"
_WINDOW_IDS = frozenset({_FIRST, "previous_window_id", "window_id"})

_NO_UTF8 = re.compile("[\udc80-\udcff]")
_SUBSTITUTE = "\x1a"
"""Stands for a byte that is no UTF-8; nowhere in JSON may it stand as it is."""

_MOST_LEADING = 32
"""More lines than Codex writes before a prompt."""

QUIET = Item("event_msg", {"type": "token_count", "info": None, "rate_limits": None})
"""A record of which Codex writes many and that says nothing."""


class WindowNames:
    """New ids for the windows of a session; the first window of a branch has one already."""

    def __init__(self, first: str, new_id: Callable[[], str]) -> None:
        """Give the first window the id `first`, every other one that is met a new one."""
        self._first = first
        self._new_id = new_id
        self._known: dict[str, str] = {}

    def renamed(self, line: bytes) -> bytes:
        """Return the record of a compaction with the ids that its windows have in the branch."""
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
    """Yield where the record itself tells an id, and which; what it installs has its own keys."""
    for member in payload_members(line):
        if member.name in _WINDOW_IDS:
            old = text_of(load(line[member.start : member.end]))
            if old is not None:
                yield member, old


@frozen
class CopiedPart:
    """A file of a history: where it is cut, and how long it was and what it held when planned."""

    path: str
    cut: HistoryBase | None
    size: int
    digest: str


def part_of(reader: RolloutReader, path: str, cut: HistoryBase | None = None) -> CopiedPart:
    """Return a file as it is now; raises `UnreadableSource`."""
    digest, size = fingerprint(reader, path)
    return CopiedPart(path, cut, size, digest)


def parts_below(reader: RolloutReader, path: str, locate: Locate) -> tuple[CopiedPart, ...]:
    """Return the files that a history begins with before a file of its own, the farthest first.

    Raises `UnreadableSource`.
    """
    below, _ = bases_below(reader, path, locate)
    return tuple(part_of(reader, base, cut) for base, cut in reversed(below))


def last_of(
    reader: RolloutReader, parts: Iterable[CopiedPart], turn: Turn, following: Turn, until: int
) -> int:
    """Return the position of the last line that is a turn's own, of those up to `until`.

    That is for a turn that no record ends, and that lasts up to the `following` one.  Raises
    `UnreadableSource`.
    """
    lines = islice(_chain(reader, map(_Sealed, parts)), turn.opened, until)
    if following.in_task:
        return turn.opened + before_task(lines)
    return until - leading(deque(lines, maxlen=_MOST_LEADING))


def copied_history(
    reader: RolloutReader, parts: Iterable[CopiedPart], until: int, names: WindowNames
) -> Iterator[Item | Copied]:
    """Yield what a branch holds behind its head: the lines up to the one at position `until`.

    Positions count the lines that are not blank, from 1, through the whole chain of files.  Raises
    `UnreadableSource`, in the end also where a file is no longer as it was planned.
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
            yield QUIET
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
    """Yield nothing, for a branch that names the lines of its source: they are those planned.

    Raises `UnreadableSource` where they are not.
    """
    for part in parts:
        _Sealed(part).check(reader)
    yield from ()


def begins_with_head(reader: RolloutReader, path: str) -> bool:
    """Return whether the first line of a file is a head, whose place the branch's own takes."""
    return head_of(reader.first_line(path)) is not None


CHANGED = "it has changed since it was looked at"
_BASE_CHANGED = "a file that its history begins with has changed since it was looked at"


class _Sealed:
    """A part while it is read: what passes is held against what was planned."""

    def __init__(self, part: CopiedPart) -> None:
        """Begin before its first byte."""
        self.part = part
        self._found = Fingerprint(part.size)

    def lines(self, reader: RolloutReader, end: int | None = None) -> Iterator[bytes]:
        """Yield its lines, up to the byte `end` or to where it ended."""
        path, size = self.part.path, self.part.size
        return lines_of(reader, path, size if end is None else min(end, size), self._found.add)

    def check(self, reader: RolloutReader) -> None:
        """Hear what was not read of it, and raise `UnreadableSource` where it is another now."""
        part, found = self.part, self._found
        if found.size < part.size:
            reader.read(part.path, found.size, found.add, part.size)
        if found.digest != part.digest:
            raise UnreadableSource(CHANGED if part.cut is None else _BASE_CHANGED)


def _in_utf8(line: bytes) -> bytes:
    """Return a line with nothing in it but UTF-8; what made it no JSON leaves it none."""
    if line.isascii():
        return line
    return _NO_UTF8.sub(_SUBSTITUTE, line.decode(errors="surrogateescape")).encode()


def _wrapped(line: bytes) -> Item:
    """Give a line of the oldest files the envelope that Codex reads today (ROL-16)."""
    value = load(line)
    if not is_object(value) or "type" not in value:
        return QUIET
    return Item("response_item", value)


def _chain(reader: RolloutReader, parts: Iterable[_Sealed]) -> Iterator[bytes]:
    """Yield the lines of a history, those of its bases below their cut first."""
    for each in parts:
        cut = each.part.cut
        yield from each.lines(reader) if cut is None else _below(reader, each, cut)


def _below(reader: RolloutReader, base: _Sealed, cut: HistoryBase) -> Iterator[bytes]:
    """Yield a base's lines: ordinals say where it is cut; one without them is cut by its bytes."""
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
    """Where in which rollout the history of a branch ends; both ends are exclusive."""

    rollout_id: str
    end_ordinal: int
    end_offset: int

    def as_head(self) -> Json:
        """Return the fields of a head that say so."""
        base = {
            "thread_id": self.rollout_id,
            "end_ordinal_exclusive": self.end_ordinal,
            "end_byte_offset": self.end_offset,
        }
        return {"history_base": base, "forked_from_ordinal_exclusive": self.end_ordinal}


def reference_to(reader: RolloutReader, row: Row, trace: Trace) -> Reference | FallbackKind:
    """Return how a branch names the lines up to where `trace` stands, or why it has to copy them.

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
    """Return where the first line with an ordinal from `end` on begins, or the file ends.

    None where a line in front of that is no UTF-8: Codex reads no such file.
    """
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
    """Return whether a line, as JSON, has an ordinal from `end` on."""
    ordinal = whole_of(object_of(line).get("ordinal"))
    return ordinal is not None and ordinal >= end
