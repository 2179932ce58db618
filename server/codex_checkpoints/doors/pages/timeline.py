"""Renders the timeline of a session for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from codex_checkpoints.core.timeline import TimelineTurn
from codex_checkpoints.sections.terminal import (
    AMBER,
    DIM,
    RED,
    Screen,
    moment,
    moment_columns,
    plain,
)
from codex_checkpoints.service.history.timelines import SessionTimeline, TimelineEvent

_BARS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS = 100
"""Columns of the text picture without a terminal."""

_NARROW: Final = 100
"""Columns below which a time is short."""
_VERY_NARROW: Final = 75
"""Columns below which calls and files are not counted."""
_SHORT: Final = "MM-DD HH:MM"

_TINTS: Final = {"failed": RED, "aborted": AMBER, "open": AMBER}


def timeline_lines(
    timeline: SessionTimeline,
    screen: Screen,
    window: int | None,
    names: Mapping[str, str],
) -> list[str]:
    """Return the use of the context as a line of bars, then a line for each turn and event.

    `window` is the size of the context window in tokens, None if it is unknown; `names` are
    requests by the id of their turn, labels of markers and titles of sessions.
    """
    rows = timeline.turns
    if not rows:
        return ["No turns yet."]
    most, full = _scale(timeline, window)
    room = f" of {window:,}" if window else ""
    about = [f"bars: the most context in use in a turn, up to {most:,}{room} tokens"]
    if any(row.most_tokens != row.context_tokens for row in rows):
        about += ["column: in use at its end, or after the compaction that follows"]
    values: Sequence[int | None] = [row.most_tokens for row in rows]
    if not most:
        full = max(1, *(row.calls for row in rows))
        about = [f"bars: calls of tools, up to {full:,} a row; the file reports no tokens"]
        values = [row.calls for row in rows]
    bars = _bars(values, full, (screen.width or _COLUMNS) - 1)
    lines = [bars, *(screen.tinted(DIM, screen.cut(each)) for each in about), ""]
    if timeline.merged > 1:
        lines += [f"Each row is {timeline.merged} turns.", ""]
    head = _line(screen, ("turn", "began", "context", "calls", "files", "failed", "request"))
    lines.append(screen.tinted(DIM, head))
    waiting = list(timeline.events)
    for at, row in enumerate(rows):
        following = rows[at + 1].turn if at + 1 < len(rows) else None
        lines.append(_row(row, timeline.merged, following, screen, names))
        while waiting and (following is None or (waiting[0].turn or 0) < following):
            lines.append(screen.tinted(DIM, _event(waiting.pop(0), screen, names)))
    return lines


def _scale(timeline: SessionTimeline, window: int | None) -> tuple[int, int]:
    """Return the most tokens in use, and the tokens of a full bar."""
    most = max((row.most_tokens or 0 for row in timeline.turns), default=0)
    return most, max(most, 1, window or 0)


def _bars(values: Sequence[int | None], full: int, columns: int) -> str:
    """Return a bar for each value, or for the largest of several if there are many."""
    size = -(-len(values) // columns)
    groups = (values[start : start + size] for start in range(0, len(values), size))
    tops = (max((each for each in group if each is not None), default=None) for group in groups)
    last = len(_BARS) - 1
    return "".join("·" if top is None else _BARS[min(top * last // full, last)] for top in tops)


def _row(
    row: TimelineTurn,
    merged: int,
    following: int | None,
    screen: Screen,
    names: Mapping[str, str],
) -> str:
    to = row.turn + merged - 1 if following is None else following - 1
    turns = str(row.turn) if merged == 1 else f"{row.turn}-{to}"
    used = "-" if row.context_tokens is None else f"{row.context_tokens:,}"
    counts = (str(row.calls), str(row.files_changed), str(row.checks_failed or "-"))
    why = "" if row.reason is None else f" ({row.reason})"
    ended = "" if row.outcome == "answered" else f"{row.outcome}{why}: "
    request = f"{ended}{names.get(row.turn_id, '')}"
    line = _line(screen, (turns, moment(row.started_at, screen), used, *counts, request))
    tint = _TINTS.get(row.outcome)
    return line if tint is None else screen.tinted(tint, line)


def _event(event: TimelineEvent, screen: Screen, names: Mapping[str, str]) -> str:
    # As wide as its column at least, so that it begins where the others do.
    name = names.get(event.id or "") or ((event.id or "") if event.kind == "branch" else "")
    return _line(screen, ("", moment(event.at, screen), f"{event.kind}  {name}".ljust(9)))


def _line(screen: Screen, cells: Sequence[str]) -> str:
    """Return the cells of a row in their columns, cut to the terminal.

    A narrow terminal shows a time without year and seconds, a very narrow one no counts of calls
    and files, since the last column has the words.
    """
    widths, shown = (7, -moment_columns(screen), 9, 5, 5, 6, 0), list(cells)
    if screen.width is not None and screen.width < _NARROW:
        widths = (7, -len(_SHORT), 9, 5, 5, 6, 0)
        shown[1] = shown[1][5:16] if len(shown[1]) == moment_columns(screen) else shown[1]
        if screen.width < _VERY_NARROW:
            widths = (*widths[:3], *widths[5:])
            shown = [*shown[:3], *shown[5:]] if len(shown) == len(widths) + 2 else shown
    texts = (
        plain(cell).rjust(size) if size > 0 else plain(cell).ljust(-size)
        for cell, size in zip(shown, widths, strict=False)
    )
    return screen.cut("  ".join(texts).rstrip())
