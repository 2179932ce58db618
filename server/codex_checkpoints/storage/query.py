"""Answers that all stores share: the current rollout of a thread, and pages of threads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence

import orjson

from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.storage.contract import (
    BadQuery,
    Rollout,
    RolloutReader,
    Row,
    ThreadQuery,
    is_windows_path,
)


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
    return row.at


def _comes_after(row: Row, stamp: str, thread_id: str) -> bool:
    """Return whether a row comes after this place: newest first, then by id."""
    return _stamp(row) < stamp or (_stamp(row) == stamp and row.session_id > thread_id)


def head(reader: RolloutReader, path: str) -> SessionMeta | None:
    """Return the head of a rollout, None where its first line is none."""
    return head_of(reader.first_line(path))


def _to_cursor(place: object) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - few read by pages

    return urlsafe_b64encode(orjson.dumps(place)).decode()


def _place_in_list(cursor: str) -> tuple[str, str]:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

    with contextlib.suppress(ValueError):
        match orjson.loads(urlsafe_b64decode(cursor.encode())):
            case [str(stamp), str(thread_id)]:
                return stamp, thread_id
            case _:
                pass
    raise BadQuery("the cursor is not one of ours", "cursor")
