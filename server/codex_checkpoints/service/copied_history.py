"""The lines of a session up to the end of a turn, to be copied into a branch (AGN-12, AGN-25).

They are pulled portion by portion, so that memory does not grow with the session, and copied byte
for byte.  Places stay as they are: a branch numbers its records as its source does, so whatever
names a record goes on being right.  Only heads cannot go along, for Codex forgets all that stands
before a second one: the first is replaced by the branch's own, another by a line that says nothing.
The windows that the copied history opened have new ids in the branch, since an id is that of one
session alone (WIN-13): in the records of compactions these ids are put in the place of the old
ones, each always by the same, and nothing else of such a line is touched (WIN-10).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import orjson

from codex_checkpoints.core.rollout.fields import is_object, load, object_of
from codex_checkpoints.core.rollout.items import HistoryBase
from codex_checkpoints.core.rollout.parsing import BOM, head_of
from codex_checkpoints.service.session_file import Locate, bases_below
from codex_checkpoints.threads.contract import Copied, Item, RolloutReader

_PORTION = 1 << 24

# Within a text every quote is escaped, so this finds keys of the record alone.
_WINDOW_ID = re.compile(rb'(?P<key>"(?P<role>first_|previous_)?window_id"\s*:\s*)"(?P<id>[^"\\]*)"')

QUIET = Item("event_msg", {"type": "token_count", "info": None, "rate_limits": None})
"""A record of which Codex writes many and that says nothing."""


class WindowNames:
    """New ids for the windows of a session; the first window of a branch has one already."""

    def __init__(self, first: str, new_id: Callable[[], str]) -> None:
        """Give the first window the id `first`, every other one that is met a new one."""
        self._first = first
        self._new_id = new_id
        self._known: dict[bytes, str] = {}

    def renamed(self, line: bytes) -> bytes:
        """Return the record of a compaction with the ids that its windows have in the branch."""
        return _WINDOW_ID.sub(self._new, line)

    def _new(self, found: re.Match[bytes]) -> bytes:
        old = found["id"]
        if old not in self._known:
            is_first = found["role"] == b"first_" and self._first not in self._known.values()
            self._known[old] = self._first if is_first else self._new_id()
        return b'%b"%b"' % (found["key"], self._known[old].encode())


def copied_history(
    reader: RolloutReader, path: str, locate: Locate, until: int, names: WindowNames
) -> Iterator[Item | Copied]:
    """Yield what a branch holds behind its head: the lines up to the one at position `until`.

    Positions count the lines that are not blank, from 1, through the whole chain of files.  Raises
    `UnreadableSource`.
    """
    bare = False
    for position, line in enumerate(_chain(reader, path, locate), 1):
        if position > until:
            return
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
            yield Copied(line)


def begins_with_head(reader: RolloutReader, path: str, locate: Locate) -> bool:
    """Return whether the first line of a history is a head, whose place the branch's own takes."""
    first = next(_chain(reader, path, locate), b"")
    return head_of(first) is not None


def _wrapped(line: bytes) -> Item:
    """Give a line of the oldest files the envelope that Codex reads today (ROL-16)."""
    value = load(line)
    if not is_object(value) or "type" not in value:
        return QUIET
    return Item("response_item", value)


def _chain(reader: RolloutReader, path: str, locate: Locate) -> Iterator[bytes]:
    """Yield the lines of a history, those of its bases below their cut first."""
    below, _ = bases_below(reader, path, locate)
    for base, cut in reversed(below):
        yield from _below(reader, base, cut)
    yield from lines_of(reader, path, None)


def _below(reader: RolloutReader, path: str, cut: HistoryBase) -> Iterator[bytes]:
    """Yield a base's lines: ordinals say where it is cut; one without them is cut by its bytes."""
    head = head_of(reader.first_line(path))
    if head is None or not head.paginated or cut.end_ordinal is None:
        yield from lines_of(reader, path, cut.end_offset)
        return
    for line in lines_of(reader, path, None):
        ordinal = object_of(load(line)).get("ordinal")
        if type(ordinal) is int and ordinal >= cut.end_ordinal:
            return
        yield line


def lines_of(reader: RolloutReader, path: str, end: int | None = None) -> Iterator[bytes]:
    """Yield the lines of one file that are not blank, up to the byte `end`.

    The last may lack its LF if it is whole.  Raises `UnreadableSource`.
    """
    offset, rest = 0, b""
    while True:
        begins = offset == 0
        portion, offset = _portion(reader, path, offset, end)
        if not portion:
            break
        *lines, rest = (rest + (portion.removeprefix(BOM) if begins else portion)).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines if line.strip())
    if rest.strip() and _is_whole(rest):
        yield rest.removesuffix(b"\r")


def _portion(reader: RolloutReader, path: str, offset: int, end: int | None) -> tuple[bytes, int]:
    """Read on from an offset; return what was read, and where to go on."""
    taken: list[bytes] = []
    size = 0

    def feed(data: bytes) -> int:
        nonlocal size
        if size >= _PORTION:
            return 0
        taken.append(data)
        size += len(data)
        return len(data)

    reached, _ = reader.read(path, offset, feed, end)
    return b"".join(taken), reached


def _is_whole(line: bytes) -> bool:
    try:
        return is_object(orjson.loads(line))
    except orjson.JSONDecodeError:
        return False
