"""Returns the windows of a session, with the records of those we opened, and the outline.

Nothing is written.
"""

from __future__ import annotations

import logging
from bisect import bisect_right

from attrs import evolve

from codex_checkpoints.core.agents.codex.history.rebuild import windows_of
from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.requests import request_in
from codex_checkpoints.core.checkpoint.windowed_replay import WindowedReplay
from codex_checkpoints.core.compaction import token_budget
from codex_checkpoints.core.timeline import Timeline
from codex_checkpoints.core.windows import HistoryWindow
from codex_checkpoints.service.history.resumed_history import ChainPart, Histories
from codex_checkpoints.service.reading.session_file import FoldSpec
from codex_checkpoints.service.records.operation_records import WindowOrigin
from codex_checkpoints.service.refusal import Refusal, reading_file
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import OURS, Row

logger = logging.getLogger(__name__)


def windows_in(sessions: Sessions, session: str) -> tuple[HistoryWindow, ...]:
    """Return the windows that were not rolled back, oldest first, ours as recorded (WIN-12).

    Refuses as `Sessions.find`, `unreadable_source`.
    """
    row = sessions.find(session)
    catalogue, made = sessions.catalogue, opened_by_us(sessions, row)
    known = catalogue.known(row, TIMELINE) if row.path in catalogue.rows() else None
    if known is None:
        surveyed = Histories(sessions).first_pass(row)
        shift = _shift(sessions, row, surveyed.parts[0])
        found = windows_of(surveyed.outline, surveyed.choice)
        counting = tuple(evolve(each, opened_seq=each.opened_seq + shift) for each in found)
    else:
        counting = timeline_in(known.now()).replay.windows()
    return tuple(_with_record(made.get(each.window_id), each) for each in counting)


def undone_in(sessions: Sessions, session: str) -> dict[str | None, str | None]:
    """Return, for each window opened by an undo, the window that was undone (JUN-25)."""
    made = opened_by_us(sessions, sessions.find(session))
    return {
        each: opened.undone and opened.undone.windows.after.current
        for each, opened in made.items()
        if opened.by is None
    }


def outline(sessions: Sessions, session: str) -> token_budget.Outline:
    """Return the outline of a session; refuses as `windows_in`."""
    counting = windows_in(sessions, session)
    _, opened = sessions.open(session)
    starts = [each.opened_seq for each in counting]
    turns = (
        token_budget.OutlineTurn(
            number,
            turn.turn_id,
            counting[max(0, bisect_right(starts, turn.opened_seq) - 1)].number,
            request_in(turn) or "",
        )
        for number, turn in enumerate(opened.now().state.turns.counting(), 1)
    )
    return token_budget.outline_of(turns, token_budget.outline_budget(sessions.named))


def opened_by_us(sessions: Sessions, row: Row) -> dict[str | None, WindowOrigin]:
    """Return the records of windows that we opened in a session or below it, by window id."""
    made: dict[str | None, WindowOrigin] = {}
    for each in (*sessions.catalogue.chains.below(row), row):
        try:
            made.update(sessions.compactions.by_window(each.session_id))
        except Refusal as refusal:  # the session file still counts
            logger.warning("%s: %s", refusal.code, refusal.message)
    return made


def timeline_in(replay: Replay) -> Timeline:
    """Return the timeline that follows a replay."""
    return next(fold for fold in replay.followers if isinstance(fold, Timeline))


def _save_timeline(replay: Replay) -> object | None:
    return timeline_in(replay).save()


def _load_timeline(value: object) -> Replay | None:
    found = Timeline.load(value)
    return None if found is None else found.replay


TIMELINE = FoldSpec(
    "timeline", lambda: Timeline(WindowedReplay()).replay, _save_timeline, _load_timeline
)
"""The fold that makes, saves and loads a timeline."""


def _with_record(opened: WindowOrigin | None, window: HistoryWindow) -> HistoryWindow:
    if opened is None:
        return window
    known = window.tokens_before if opened.tokens_before is None else opened.tokens_before
    return evolve(window, strategy=opened.strategy, trigger=opened.trigger, tokens_before=known)


def _shift(sessions: Sessions, row: Row, root: ChainPart) -> int:
    """Return the offset between a session's `seq` and its lines, which a seed causes."""
    with reading_file(row):
        head = head_of(sessions.catalogue.reader.first_line(root.path))
    if head is None or head.originator != OURS:
        return 0  # only our sessions have a seed
    return sessions.open(row.path)[1].replay.scale.shift
