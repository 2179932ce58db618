"""Copies lines up to the end of a turn, files and earlier work into a branch (AGN-12, AGN-25).

Lines are copied byte for byte, except heads, and the window ids of compactions (WIN-10, WIN-13).
Codex reads no file with bytes that are not UTF-8: each such byte becomes a character that JSON
forbids.  A file that changed since it was planned is refused (AGN-84); it may have grown.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from attrs import Factory, define, frozen

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.checkpoint.redaction import MARK, SCANNED, secrets
from codex_checkpoints.core.compaction.records import Range
from codex_checkpoints.core.events import HistoryBase
from codex_checkpoints.core.fields import digest_of, is_object, load, object_of, text_of
from codex_checkpoints.core.restore.markers import Pin
from codex_checkpoints.core.restore.pack import Pinned, Unseen
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.restore.references import (
    NOTHING,
    Fallback,
    ModeChange,
    References,
    Span,
    Trace,
    chunk_id,
    in_order,
    references_of,
)
from codex_checkpoints.core.restore.source_lines import before_task, leading
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.reading.session_file import (
    Fingerprint,
    Locate,
    bases_below,
    fingerprint,
    lines_of,
)
from codex_checkpoints.service.records.import_records import ImportRecords
from codex_checkpoints.service.records.operation_records import RestoreRecords
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import (
    Copied,
    HistoryItem,
    RolloutReader,
    Row,
    UnreadableSource,
)
from codex_checkpoints.storage.workspace import Workspace

_FIRST = "first_window_id"
_WINDOW_IDS = (_FIRST, "previous_window_id", "window_id")

_NO_UTF8 = re.compile("[\udc80-\udcff]")
_SUBSTITUTE = "\x1a"
"""Replaces a byte that is not UTF-8; JSON forbids it unescaped at any place."""

_MOST_LEADING = 32
"""More lines than Codex writes before a prompt."""

QUIET = HistoryItem("event_msg", {"type": "token_count", "info": None, "rate_limits": None})
"""A record without content, of a type that Codex writes often."""


@define
class WindowNames:
    """New ids for the windows of a session; the first window of a branch has its id already."""

    _first: str
    _new_id: Callable[[], str]
    _known: dict[str, str] = Factory(dict[str, str])

    def renamed(self, line: bytes) -> bytes:
        """Return the record of a compaction with the window ids of the branch.

        One that is nested too deeply for Python keeps its own.
        """
        try:
            return self._renamed(line)
        except RecursionError:
            return line

    def _renamed(self, line: bytes) -> bytes:
        record = json.loads(line)
        payload = object_of(record.get("payload"))
        recorded = {name: old for name in _WINDOW_IDS if (old := text_of(payload.get(name)))}
        if not recorded:
            return line
        if _FIRST in recorded and self._first not in self._known.values():
            self._known.setdefault(recorded[_FIRST], self._first)
        record["payload"] = {**payload, **{name: self._new(old) for name, old in recorded.items()}}
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        return text.encode(errors="backslashreplace")  # as JSON escapes half a surrogate pair

    def _new(self, old: str) -> str:
        if old not in self._known:
            self._known[old] = self._new_id()
        return self._known[old]


@frozen
class CopiedPart:
    """A file of a history: its cut, and its size and digest when it was planned."""

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

    The turn lasts up to the `following` one.  Raises `UnreadableSource`.
    """
    lines = islice(_chain(reader, map(_Sealed, parts)), turn.opened, until)
    if following.in_task:
        return turn.opened + before_task(lines)
    return until - leading(deque(lines, maxlen=_MOST_LEADING))


def copied_history(
    reader: RolloutReader, parts: Iterable[CopiedPart], until: int, names: WindowNames
) -> Iterator[HistoryItem | Copied]:
    """Yield the lines of a branch after its head, up to position `until`.

    Positions count the lines that are not blank, from 1, through all files.  Raises
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
            yield QUIET  # Codex forgets the lines before a second head
        elif b'"compacted"' in line and object_of(load(line)).get("type") == "compacted":
            yield Copied(names.renamed(line))
        else:
            yield Copied(in_utf8(line))
        if position >= until:
            break
    if position < until:
        raise UnreadableSource(CHANGED)
    for each in sealed:
        each.check(reader)


def whole_history(reader: RolloutReader, parts: Iterable[CopiedPart]) -> Iterator[bytes]:
    """Yield all lines of a history as they are, through all files; raises `UnreadableSource`.

    It raises at the end also for a file that changed since it was planned.
    """
    sealed = tuple(map(_Sealed, parts))
    yield from _chain(reader, sealed)
    for each in sealed:
        each.check(reader)


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
        """Read the rest of it, and raise `UnreadableSource` if it changed."""
        part, found = self.part, self._found
        if found.size < part.size:
            reader.read(part.path, found.size, found.add, part.size)
        if found.digest != part.digest:
            raise UnreadableSource(CHANGED if part.cut is None else _BASE_CHANGED)


def in_utf8(line: bytes) -> bytes:
    """Return a line in UTF-8; a line that was not JSON stays invalid."""
    if line.isascii():
        return line
    return _NO_UTF8.sub(_SUBSTITUTE, line.decode(errors="surrogateescape")).encode()


def _wrapped(line: bytes) -> HistoryItem:
    """Return a line of the oldest files in the envelope that Codex reads today (ROL-16)."""
    value = load(line)
    if not is_object(value) or "type" not in value:
        return QUIET
    return HistoryItem("response_item", value)


def _chain(reader: RolloutReader, parts: Iterable[_Sealed]) -> Iterator[bytes]:
    for each in parts:
        cut = each.part.cut
        yield from each.lines(reader) if cut is None else _below(reader, each, cut)


def _below(reader: RolloutReader, base: _Sealed, cut: HistoryBase) -> Iterator[bytes]:
    """Yield a base's lines up to its cut: an ordinal, or a byte if lines have none."""
    head = head_of(reader.first_line(base.part.path))
    if head is None or not head.paginated or cut.end_ordinal is None:
        yield from base.lines(reader, cut.end_offset)
        return
    for line in base.lines(reader):
        ordinal = object_of(load(line)).get("ordinal")
        if type(ordinal) is int and ordinal >= cut.end_ordinal:
            return
        yield line


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def chunks_now(workspace: Workspace, base: str | None, spans: Iterable[Span]) -> dict[str, str]:
    """Return the present hashes of lines, by the id of their chunk (AGN-36)."""
    found: dict[str, str] = {}
    contents: dict[str, bytes | None] = {}
    for span in spans:
        if span.uri not in contents:
            contents[span.uri] = workspace.content(base, span.uri)
        part = _lines(contents[span.uri], span.start, span.end)
        if part is not None:
            found[chunk_id(span)] = digest_of(part)
    return found


def pinned_now(workspace: Workspace, base: str | None, pin: Pin) -> Pinned:
    """Return a pin with its text and hash, or the reason why it has none."""
    content = workspace.content(base, pin.uri)
    if pin.start is not None and pin.end is not None:
        part = _lines(content, pin.start, pin.end)
        found = None if part is None else digest_of(part)
        text = None if content is None else _text(content, pin.start, pin.end)
    else:
        part, found = content, workspace.hashes(base, [pin.uri]).get(pin.uri)
        text = None if content is None else content.decode(errors="replace")
    if part is not None:
        return Pinned(pin.uri, pin.start, pin.end, found, text)
    why = "no_lines" if content is not None else _unseen(workspace, base, pin.uri)
    return Pinned(pin.uri, pin.start, pin.end, found, None, why)


def _unseen(workspace: Workspace, base: str | None, uri: str) -> Unseen:
    if workspace.missing(base, [uri]):
        return "missing"
    # A file above the limit is known by its size and time.
    return "bound" if workspace.hashes(base, [uri]) else "unreadable"


def _text(content: bytes, start: int, end: int) -> str:
    """Return the text of some lines, without the parts of secrets in the file."""
    lines = _LINE.findall(content)
    cuts = (lines[: start - 1], lines[start - 1 : end], lines[end:])
    before, text, behind = (b"".join(each).decode(errors="replace") for each in cuts)
    before, behind = before[-SCANNED:], behind[:SCANNED]
    parts: list[str] = []
    first, last = len(before), len(before) + len(text)
    at = first
    for begin, stop in secrets(before + text + behind):
        if begin < last and first < stop:
            parts += [text[at - first : max(begin, first) - first], MARK]
            at = min(stop, last)
    return "".join(parts) + text[at - first :]


def _lines(content: bytes | None, start: int, end: int) -> bytes | None:
    if content is None:
        return None
    found = _LINE.findall(content)[start - 1 : end]
    return b"".join(found) if found else None


_LONGEST = 64
"""Number of consecutive compactions that are followed: each costs reading a whole session."""

UNKNOWN = Fallback("earlier_unknown")


@frozen
class Earlier:
    """Files and modes before the own lines of a session; `gaps` are the unknown parts."""

    references: References = NOTHING
    modes: tuple[ModeChange, ...] = ()
    gaps: tuple[Fallback, ...] = ()


def earlier_work(sessions: Sessions, row: Row, trace: Trace, most: int = _LONGEST) -> Earlier:
    """Return the work before the own lines of a session, which `trace` has read.

    Refuses `storage_error`; raises `UnreadableSource`.
    """
    found = _above(sessions, row, trace) if most else Earlier(gaps=(UNKNOWN,))
    if isinstance(found, Earlier):
        return found
    before, traces = earlier_work(sessions, *found, most - 1), found[1].traces()
    modes = in_order(before.modes, traces.modes)
    # Hashes and sizes depend on the time of a request.
    return Earlier(references_of(None, traces, {}, {}, before.references), modes, before.gaps)


def _above(sessions: Sessions, row: Row, trace: Trace) -> Earlier | tuple[Row, Trace]:
    """Return the contents of a restore's or import's record, or the source of a compaction."""
    seed, restores = trace.replay.state.seed, RestoreRecords(sessions.records)
    made = restores.made(row.session_id)
    if made is not None:
        return _carried(made, None if seed is None else seed.seq)
    if seed is None:
        return Earlier()
    root = [row, *sessions.catalogue.chains.below(row)][-1].session_id
    made = restores.made(root)
    if made is not None:
        return _carried(made, seed.seq)
    began = sessions.compactions.began(root)
    if began is not None:
        return _compacted(sessions, began.source) or Earlier(gaps=(UNKNOWN,))
    arrived = ImportRecords(sessions.records).made(root)
    return Earlier(modes=() if arrived is None else arrived.pack.modes, gaps=(UNKNOWN,))


def _carried(made: Restore, seed: int | None) -> Earlier:
    modes = tuple(each for each in made.modes if seed is not None and each.seq <= seed)
    return Earlier(made.references, modes, tuple(gap for gap in made.fallbacks if gap == UNKNOWN))


def _compacted(sessions: Sessions, source: Range) -> tuple[Row, Trace] | None:
    """Read the source of a compaction up to its end; None if it is gone or changed."""
    catalogue = sessions.catalogue
    newest = catalogue.current().get(source.session_id)
    others = (row for row in catalogue.files_of(source.session_id) if row != newest)
    for row in (*filter(None, [newest]), *others):
        try:
            found = fingerprint(catalogue.reader, row.path, source.bytes_before)
        except UnreadableSource:
            continue
        if found == (source.prefix, source.bytes_before):
            trace = Trace(last=source.to_seq)
            catalogue.read_with(trace.replay, row)
            return row, trace
    return None
