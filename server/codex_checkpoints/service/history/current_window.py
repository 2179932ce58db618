"""Checks whether the handoff is still in the session's current context window; finds its id.

Codex waits for the answer and a session may be large, so the bytes are searched from the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from attrs import frozen

from codex_checkpoints.core.agents.codex.history.items import Item
from codex_checkpoints.core.agents.codex.own_messages import CHECKPOINT_LINE
from codex_checkpoints.core.agents.codex.parsing import BOM, record_of
from codex_checkpoints.core.agents.codex.reader import CHUNK, LinePlace
from codex_checkpoints.core.compaction.handoff import BEGINNINGS, COMPACTION, ROLLBACK, Recent
from codex_checkpoints.core.fields import first_window, load, object_of
from codex_checkpoints.service.reading.derived_cache import CachedKind
from codex_checkpoints.service.reading.session_file import bases_below, bytes_between
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import RolloutReader, Row

_BLOCK = 1 << 18
"""Bytes searched at a time, sized for the caches of a processor."""

_LINE = 1 << 8
"""Number of bytes within which a line names its kind."""

_BEGINS = (COMPACTION, ROLLBACK)
"""Parts of a line that opens a new window, or may reopen an earlier one."""

_VIEW = CHECKPOINT_LINE.encode()
"""The beginning of a view, as encoded in a file."""

_MANY = 16
"""Among more lines with a view, one view is searched for separately."""

_LONG = 1 << 20
"""Bytes; a shorter search is not cached."""

_Rollouts = Sequence[tuple[str, int]]
"""Rollouts of a session, newest first, with the byte where each ends."""


@frozen
class CurrentWindow:
    """The items that may contain the bundle, and the window's id."""

    items: tuple[Item, ...]
    window_id: str | None


def window_near_the_end(sessions: Sessions, row: Row, view: str) -> CurrentWindow | None:
    """Return the window to search this view in; None if only the whole history shows it."""
    if row.rollout.compressed:
        return None
    reader, trace = sessions.catalogue.reader, orjson.dumps(view)[1:-1]  # as encoded in a file
    path, size = row.path, row.rollout.size
    places = _places(sessions, row)
    if places is None:
        last, begins = last_line_with(reader, path, size, (*_BEGINS, trace)), size
    else:
        last, begins = _last_of(reader, path, size, places, trace)
    recent = None if last is None else _recent(reader, path, size, last, trace)
    if last is not None and (recent is None or not recent.certain(view)):
        return None
    if recent is not None and recent.compacted:
        return CurrentWindow(tuple(recent.items), recent.window_id)
    below = _below(sessions, row)
    if below is None:
        return None
    if recent is not None:
        return _opened(reader, path, ((path, begins), *below), tuple(recent.items))
    if any(last_line_with(reader, *base, (trace,)) is not None for base in below):
        return None
    return _opened(reader, path, below, ())


@frozen
class _Searched:
    """The places that `_places` returned, all before the byte `end`."""

    end: int
    places: tuple[int, ...]


WINDOW = CachedKind("window", 2, _Searched)
"""The last search for the start of the current window; it quotes nothing."""


def _places(sessions: Sessions, row: Row) -> tuple[int, ...] | None:
    """Return the positions of lines that contain a view, newest first; None if there are many.

    The last position is the newest line after which a window may begin.  The result of a long
    search is cached, and the next search stops there.
    """
    catalogue, path, size = sessions.catalogue, row.path, row.rollout.size
    reader, opened = catalogue.reader, catalogue.open(row)
    known = catalogue.cache.get(opened, WINDOW, lambda _found: None)
    least = 0 if known is None else known.end
    places, reached = list[int](), size
    while (place := last_line_with(reader, path, reached, (*_BEGINS, _VIEW), least)) is not None:
        places.append(place)
        reached = place
        if len(places) > _MANY or _begins(line_at(reader, path, place, size)):
            break
    else:
        reached = least
        places += () if known is None else known.places
    if len(places) > _MANY:
        return None
    mark, newest = opened.mark, max(places, default=0)
    if size - reached >= _LONG and newest < mark.offset <= size:
        catalogue.cache.put(opened, WINDOW, _Searched(mark.offset, tuple(places)))
    return tuple(places)


def _begins(line: bytes) -> bool:
    return any(each in line for each in _BEGINS)


def _last_of(
    reader: RolloutReader, path: str, size: int, places: Sequence[int], trace: bytes
) -> tuple[int | None, int]:
    """Return the position of the first line that opens a window or contains a text, else None.

    The second value is the end of the newest line that opens one, 0 if there is none.
    """
    last: int | None = None
    for place in places:
        line = line_at(reader, path, place, size)
        if last is None and (_begins(line) or trace in line):
            last = place
        if _begins(line):
            return last, place + len(line)
    return last, 0


def _below(sessions: Sessions, row: Row) -> _Rollouts | None:
    """Return the base rollouts with their cuts; None if one is compressed."""
    bases, _ = bases_below(
        sessions.catalogue.reader, row.path, sessions.catalogue.chains.locator(row.path)
    )
    rows = sessions.catalogue.rows()
    below: list[tuple[str, int]] = []
    for path, cut in bases:
        base = rows.get(path)
        if base is None or base.rollout.compressed:
            return None
        size = base.rollout.size
        below.append((path, size if cut.end_offset is None else min(size, cut.end_offset)))
    return below


def _opened(
    reader: RolloutReader, current: str, rollouts: _Rollouts, items: tuple[Item, ...]
) -> CurrentWindow | None:
    """Return these items with the id of the window that the newest compaction opened.

    Without a compaction in `rollouts` the head of the current one names the first window.  None if
    a rollback may have reopened an earlier window.
    """
    for path, end in rollouts:
        place = last_line_with(reader, path, end, _BEGINS)
        if place is not None:
            recent = _read_alone(line_at(reader, path, place, end), place)
            certain = recent.compacted and not _follows_rollback(reader, path, place)
            return CurrentWindow(items, recent.window_id) if certain else None
    return CurrentWindow(items, _first_window(reader, current))


def _recent(reader: RolloutReader, path: str, size: int, last: int, trace: bytes) -> Recent | None:
    """Read from the line on where the window begins or where the text is.

    `last` is the last such line, or a rollback.  A compaction without the text is read alone: the
    text does not come after it.  None if a rollback may have reopened an earlier window.
    """
    line = line_at(reader, path, last, size)
    if COMPACTION in line and trace not in line:
        recent = _read_alone(line, last)
    else:
        place = last_line_with(reader, path, size, (COMPACTION, trace))
        if place is None:
            return None
        last, recent = place, Recent(LinePlace(0, place))
        recent.reader.begin_file(None)
        _, rest = reader.read(path, place, recent.reader.feed)
        recent.reader.close(rest)
    rolled_back = recent.compacted and _follows_rollback(reader, path, last)
    return None if rolled_back else recent


def _read_alone(line: bytes, place: int) -> Recent:
    recent = Recent(LinePlace(0, place))
    recent.reader.begin_file(None)
    recent.reader.close(line)
    return recent


def _follows_rollback(reader: RolloutReader, path: str, place: int) -> bool:
    """Return whether a rollback precedes a position, with no start of a task in between."""
    found = last_line_with(reader, path, place, (*BEGINNINGS, ROLLBACK))
    if found is None:
        return False
    return ROLLBACK in bytes_between(reader, path, found, min(place, found + _LINE))


def _first_window(reader: RolloutReader, path: str) -> str | None:
    head = object_of(load(reader.first_line(path).removeprefix(BOM)))
    kind, payload, _ = record_of(head, first=True)
    return first_window(payload) if kind == "session_meta" else None


def last_line_with(
    reader: RolloutReader, path: str, size: int, traces: Sequence[bytes], least: int = 0
) -> int | None:
    """Return the position of the last line that contains one of some traces, from `least` on."""
    overlap = max(map(len, traces))
    end = size
    while end > least:
        start = max(least, end - _BLOCK)
        data = bytes_between(reader, path, start, min(size, end + overlap))
        at = max(data.rfind(trace) for trace in traces)
        if at >= 0:
            return _line_begin(reader, path, start + at)
        end = start
    return None


def line_at(reader: RolloutReader, path: str, place: int, size: int) -> bytes:
    """Return the line that begins at a position, without its line feed."""
    line, end = b"", place
    while end < size:
        data = bytes_between(reader, path, end, min(size, end + CHUNK))
        found = data.find(b"\n")
        if found >= 0:
            return line + data[:found]
        if not data:
            break  # the file became shorter
        line, end = line + data, end + len(data)
    return line


def _line_begin(reader: RolloutReader, path: str, place: int) -> int:
    end = place
    while end > 0:
        start = max(0, end - CHUNK)
        found = bytes_between(reader, path, start, end).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
