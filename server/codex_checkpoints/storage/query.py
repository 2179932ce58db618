"""Answers that all stores share: the current rollout, pages of threads, the lines of a history.

A history is the lines of its bases below the cut, then its own (ROL-5).  Of a line only the ordinal
is read, of the first one also the base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import orjson

from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.storage.contract import (
    BadQuery,
    HistoryPage,
    Rollout,
    RolloutReader,
    Row,
    ThreadQuery,
    UnreadableSource,
    is_windows_path,
)
from codex_checkpoints.values import frozen


def current(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the row of the newest readable rollout of each thread, by thread id."""
    newest: dict[str, Row] = {}
    for row in rows:
        if row.error is not None:
            continue
        other = newest.get(row.session_id)
        if other is None or age(row.rollout) > age(other.rollout):
            newest[row.session_id] = row
    return newest


def age(rollout: Rollout) -> tuple[bool, str, bool, bool, str]:
    """Return the key that sorts the rollouts of a thread, the current one last."""
    # Segments carry a UUIDv7; the thread's own id, which the first one carries, may be of any kind.
    later = rollout.rollout_id != rollout.thread_id
    return later, rollout.rollout_id, not rollout.archived, not rollout.compressed, rollout.path


def by_rollout_id(rollouts: Iterable[Rollout]) -> dict[str, str]:
    """Return the paths of rollouts by their ids; an active one goes before its archived twin."""
    paths: dict[str, str] = {}
    for rollout in rollouts:
        if rollout.rollout_id not in paths or not rollout.archived:
            paths[rollout.rollout_id] = rollout.path
    return paths


Named = tuple[str | None, str | None, str | None]
"""The rollout that a session is based on, the thread it is a fork of, and its parent thread."""


def is_referred_to(rollout: Rollout, others: Iterable[Named]) -> bool:
    """Return whether one of others is based on a rollout, a fork of its thread or its subagent."""
    return any(
        base in {rollout.rollout_id, rollout.thread_id} or rollout.thread_id in {fork, parent}
        for base, fork, parent in others
    )


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows newest first, then by thread id."""
    by_id = sorted(rows, key=lambda row: row.session_id)
    return sorted(by_id, key=_stamp, reverse=True)  # a stable sort keeps the order of ids


def page(
    rows: Sequence[Row], query: ThreadQuery, name_of: Callable[[Row], str | None]
) -> tuple[Sequence[Row], str | None]:
    """Return the rows that fit a query, of rows in order, and the cursor of the next page.

    A cursor names the last row of a page, so rows that come or go do not shift it.  Raises
    `BadQuery`.
    """
    if query.limit is not None and query.limit < 0:
        raise BadQuery("limit must not be negative", "limit")
    if query.cursor is not None:
        stamp, thread_id = _place_in_list(query.cursor)
        rows = [row for row in rows if _comes_after(row, stamp, thread_id)]
    rows = [row for row in rows if row.archived == query.archived]
    # A scratch session is archived after its summary and hidden; one that is left is shown.
    rows = [row for row in rows if not (row.scratch and row.archived)]
    if query.cwd is not None:
        below = _below(query.cwd)
        rows = [row for row in rows if row.cwd is not None and below(row.cwd)]
    if query.outside:
        left_out = [_below(folder) for folder in query.outside]
        rows = [row for row in rows if not any(below(row.cwd or "") for below in left_out)]
    if query.search:
        wanted = query.search.casefold()
        rows = [row for row in rows if wanted in _searchable(row, name_of(row))]
    shown = rows if query.limit is None else rows[: query.limit]
    more = len(rows) > len(shown) and shown
    return shown, _to_cursor([_stamp(shown[-1]), shown[-1].session_id]) if more else None


def _searchable(row: Row, name: str | None) -> str:
    texts = (name or row.first_text, row.task, row.cwd, row.session_id)
    return "\n".join(text for text in texts if text).casefold()


def _below(folder: str) -> Callable[[str], bool]:
    """Return a test whether a path is this folder or lies below it."""
    windows, above = is_windows_path(folder), _plain(folder)
    inside = f"{above}/"

    def test(path: str) -> bool:
        if is_windows_path(path) != windows:
            return False
        plain = _plain(path)
        return plain == above or plain.startswith(inside)

    return test


def _plain(path: str) -> str:
    """Return a folder for comparison: without its last slash; one of Windows without case."""
    if is_windows_path(path):
        return path.replace("\\", "/").rstrip("/").casefold()
    return path.rstrip("/")


def _stamp(row: Row) -> str:
    return row.updated_at or ""


def _comes_after(row: Row, stamp: str, thread_id: str) -> bool:
    """Return whether a row comes after this place: newest first, then by id."""
    return _stamp(row) < stamp or (_stamp(row) == stamp and row.session_id > thread_id)


# --- the lines of a history ----------------------------------------------------------------------

_LONGEST_CHAIN = 1024


@frozen
class Part:
    """One rollout of a history, up to an ordinal, or else to an offset; or whole."""

    path: str
    end_ordinal: int | None = None
    end_offset: int | None = None


def head(reader: RolloutReader, path: str) -> SessionMeta | None:
    """Return the head of a rollout, None where its first line is none."""
    return head_of(reader.first_line(path))


def parts(
    reader: RolloutReader, path: str, locate: Callable[[str], str | None]
) -> tuple[Part, ...]:
    """Return the rollouts of a history, the oldest first.

    Raises `UnreadableSource` for one that is missing, or where they lead in a circle.
    """
    chain = [Part(path)]
    seen = {path}
    own = head(reader, path)
    while own is not None and own.base is not None:
        base = locate(own.base.rollout_id)
        if base is None or base in seen or len(chain) > _LONGEST_CHAIN:
            what = "missing" if base is None else "part of a circle"
            raise UnreadableSource(f"the base {own.base.rollout_id} is {what}")
        seen.add(base)
        # Ordinals say where a base is cut; one without ordinals is cut by its bytes.
        ordinal = own.base.end_ordinal if own.paginated else None
        chain.append(Part(base, ordinal, None if ordinal is not None else own.base.end_offset))
        own = head(reader, base)
    return tuple(reversed(chain))


def history_page(
    reader: RolloutReader, chain: tuple[Part, ...], cursor: str | None, limit: int | None
) -> HistoryPage:
    """Return lines from a cursor on, at most `limit`; raises `BadQuery`, `UnreadableSource`."""
    if limit is not None and limit < 1:
        raise BadQuery("limit must be at least 1", "limit")
    number, offset = (0, 0) if cursor is None else _place_in_history(cursor, len(chain))
    lines: list[bytes] = []
    while number < len(chain):
        if len(lines) == limit:
            return HistoryPage(tuple(lines), _to_cursor([number, offset]))
        room = None if limit is None else limit - len(lines)
        more, offset, ended = _lines_of(reader, chain[number], offset, room)
        lines += more
        if ended:
            number, offset = number + 1, 0
    return HistoryPage(tuple(lines), None)


def _lines_of(
    reader: RolloutReader, part: Part, offset: int, room: int | None
) -> tuple[list[bytes], int, bool]:
    """Return lines of a part, where the next one begins, and whether there is none."""
    lines: list[bytes] = []
    begun: list[bytes] = []  # of a line that has not ended yet: it may be longer than any chunk
    cut = full = False

    def feed(data: bytes) -> int:
        nonlocal offset, cut, full
        start = 0
        while not (cut or full) and (end := data.find(b"\n", start)) >= 0:
            line = b"".join((*begun, data[start:end]))
            start = end + 1
            if line.strip():
                cut, full = _is_behind(line, part), len(lines) == room
            if cut or full:
                return 0
            begun.clear()
            offset += len(line) + 1
            if line.strip():
                lines.append(line)
        begun.append(data[start:])
        return 0 if cut or full else len(data)

    reader.read(part.path, offset, feed, part.end_offset)
    rest = b"" if cut or full else b"".join(begun)
    if full and not cut:
        return lines, offset, False
    if not rest.strip():
        return lines, offset, True
    if len(lines) == room:
        return lines, offset, False
    # What lacks only its LF counts; half a line does not (STO-15).
    if _is_whole(rest) and not _is_behind(rest, part):
        lines.append(rest)
    return lines, offset, True


def _is_behind(line: bytes, part: Part) -> bool:
    return part.end_ordinal is not None and _ordinal(line) >= part.end_ordinal


def _ordinal(line: bytes) -> int:
    """Return the ordinal of a line, -1 for one that has none."""
    try:
        match orjson.loads(line):
            case {"ordinal": int(ordinal)}:
                return ordinal
            case _:
                return -1
    except orjson.JSONDecodeError:
        return -1


def _is_whole(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


# --- cursors -------------------------------------------------------------------------------------


def _place_in_list(cursor: str) -> tuple[str, str]:
    match _from_cursor(cursor):
        case [str(stamp), str(thread_id)]:
            return stamp, thread_id
        case _:
            raise _not_ours()


def _place_in_history(cursor: str, count: int) -> tuple[int, int]:
    match _from_cursor(cursor):
        case [int(number), int(offset)] if 0 <= number < count and offset >= 0:
            return number, offset
        case _:
            raise _not_ours()


def _to_cursor(place: object) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - few read by pages

    return urlsafe_b64encode(orjson.dumps(place)).decode()


def _from_cursor(cursor: str) -> object:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

    try:
        return orjson.loads(urlsafe_b64decode(cursor.encode()))
    except ValueError:
        raise _not_ours() from None


def _not_ours() -> BadQuery:
    return BadQuery("the cursor is not one of ours", "cursor")
