"""Lists of sessions: which fit, in which order, and in which parts.

What is known of a session stands in the rows of the index; nothing is read for a list.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable

import orjson
from attrs import frozen

from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.threads.index import Row


@frozen
class Summary:
    """One session in a list; `None` where nothing is known."""

    session_id: str
    path: str
    cwd: str | None
    title: str | None
    task: str | None
    updated_at: str
    cli_version: str | None
    model: str | None
    context_tokens: int | None
    context_tokens_source: str
    context_window: int | None
    windows: int
    compactions: int
    suspect_facts: int
    live: bool
    archived: bool
    forked_from: str | None
    parent_session: str | None
    continued_by: str | None
    turns: int
    seq: int


@frozen
class Page:
    """A part of the list, and where the next part begins."""

    items: tuple[Summary, ...]
    next_cursor: str | None


def fitting(
    rows: Iterable[Row],
    title: Callable[[Row], str | None],
    *,
    cwd: str | None = None,
    search: str | None = None,
) -> list[Row]:
    """Return the rows of a folder or below it, with a text in title, task, folder or id."""
    found = list(rows)
    if cwd is not None:
        found = [row for row in found if row.cwd is not None and _is_below(row.cwd, cwd)]
    if search:
        wanted = search.casefold()
        found = [row for row in found if wanted in _searchable(row, title(row))]
    return found


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows newest first, then by id."""
    by_id = sorted(rows, key=lambda row: row.session_id)
    return sorted(by_id, key=_stamp, reverse=True)  # a stable sort keeps the order of ids


def part(rows: list[Row], limit: int | None, cursor: str | None) -> tuple[list[Row], str | None]:
    """Return the rows behind a cursor, at most `limit`, and the cursor of what follows them.

    A cursor names the last row that was shown, so rows that come or go elsewhere do not shift it.
    """
    if limit is not None and limit < 0:
        raise Refusal("invalid_payload", "limit must not be negative", {"problems": ["limit"]})
    if cursor is not None:
        stamp, session_id = _from_cursor(cursor)
        rows = [row for row in rows if _comes_after(row, stamp, session_id)]
    shown = rows if limit is None else rows[:limit]
    more = len(rows) > len(shown) and shown
    return shown, _to_cursor(shown[-1]) if more else None


def _searchable(row: Row, title: str | None) -> str:
    texts = (title, row.task, row.cwd, row.session_id)
    return "\n".join(text for text in texts if text).casefold()


def _folder(path: str) -> str:
    plain = path.replace("\\", "/").rstrip("/") if is_windows_path(path) else path.rstrip("/")
    return plain.casefold() if is_windows_path(path) else plain


def _is_below(path: str, folder: str) -> bool:
    if is_windows_path(path) != is_windows_path(folder):
        return False
    plain, above = _folder(path), _folder(folder)
    return plain == above or plain.startswith(f"{above}/")


def is_windows_path(path: str) -> bool:
    """Return whether a folder is one of Windows, by how it begins."""
    return path[1:3] in {":\\", ":/"} or path.startswith("\\\\")


def _stamp(row: Row) -> str:
    return row.updated_at or ""


def _comes_after(row: Row, stamp: str, session_id: str) -> bool:
    """Return whether a row stands behind this place: newest first, then by id."""
    return _stamp(row) < stamp or (_stamp(row) == stamp and row.session_id > session_id)


def _to_cursor(row: Row) -> str:
    data = orjson.dumps([row.updated_at or "", row.session_id])
    return base64.urlsafe_b64encode(data).decode()


def _from_cursor(cursor: str) -> tuple[str, str]:
    try:
        match orjson.loads(base64.urlsafe_b64decode(cursor.encode())):
            case [str(stamp), str(session_id)]:
                return stamp, session_id
            case _:
                pass
    except ValueError:
        pass
    raise Refusal("invalid_payload", "the cursor is not one of ours", {"problems": ["cursor"]})
