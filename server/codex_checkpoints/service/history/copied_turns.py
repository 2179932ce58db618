"""Finds the turns that a fork in the older format copied from its parent, and their times.

Codex copies whole lines after the fork's own head and gives them the time of the fork.
"""

from __future__ import annotations

from attrs import evolve

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.service.history.windows import TIMELINE, timeline_in
from codex_checkpoints.service.reading.rollout_bases import is_copy
from codex_checkpoints.service.reading.session_row import utc
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import SessionDetail
from codex_checkpoints.storage.contract import Row, UnreadableSource

Times = tuple[str | None, str | None]
"""When a turn began and ended."""

_HEAD = 1
"""Number of lines of a fork before the copied ones."""


def copied_from(sessions: Sessions, row: Row) -> tuple[Row, int] | None:
    """Return a fork's parent, and the number of lines it copied; None for other sessions."""
    catalogue = sessions.catalogue
    parent = catalogue.current().get(row.forked_from or "")
    if parent is None or parent.error is not None or row.history_mode != "legacy":
        return None
    try:
        head = head_of(catalogue.reader.first_line(row.path))
        if head is None or not is_copy(head):
            return None
        count = catalogue.chains.copied(catalogue.reader, row.path, parent.path)
    except UnreadableSource:
        return None
    return (parent, count) if count else None


def times_of(sessions: Sessions, row: Row) -> dict[int, Times]:
    """Return the times of the copied turns, from the session in which they were made.

    The keys are the `seq` at which these turns begin in the fork.
    """
    steps: list[tuple[Row, int]] = []
    seen = {row.path}
    step = copied_from(sessions, row)
    while step is not None and step[0].path not in seen:
        steps.append(step)
        seen.add(step[0].path)
        step = copied_from(sessions, step[0])
    times: dict[int, Times] = {}
    for parent, count in reversed(steps):
        own = _times_in(sessions, parent) | times
        times = {seq + _HEAD: each for seq, each in own.items() if seq <= count}
    return times


def with_times(sessions: Sessions, detail: SessionDetail) -> SessionDetail:
    """Return a session whose copied turns have their original times."""
    row = sessions.find(detail.summary.path)
    if copied_from(sessions, row) is None:
        return detail
    times, turns = times_of(sessions, row), sessions.open(row.path)[1].now().state.turns.counting()
    begun = [times.get(turn.opened_seq, (turn.stamp, None))[0] for turn in turns]
    dated = (evolve(turn, started_at=utc(at)) for turn, at in zip(detail.turns, begun, strict=True))
    return evolve(detail, turns=tuple(dated))


def _times_in(sessions: Sessions, row: Row) -> dict[int, Times]:
    try:
        found = timeline_in(sessions.catalogue.follow(row, TIMELINE).now())
    except Refusal:
        return {}
    return {turn.seq: (turn.started_at, turn.ended_at) for turn in found.turns()}
