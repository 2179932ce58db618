"""Where a restore begins: the marker, and the file that holds its turn.

What of it goes over is found by `plan`; markers themselves are kept by `marking`.
"""

from __future__ import annotations

from collections.abc import Iterator

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.restore.markers import Marker, is_detached
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.turn_names import end_of, has_ended, unknown_turn
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.session_names import not_current
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.values import frozen


@frozen
class Source:
    """The file that holds the turn of a marker, and the position of the last line that is read."""

    row: Row
    opened: SessionFile
    marker: Marker
    until: int
    detached: bool


def find_source(sessions: Sessions, markers: Markers, session: str, checkpoint: str) -> Source:
    """Find a marker and its turn.

    Refuses `unknown_session`, `unknown_checkpoint`, `unreadable_source` where the session of
    the turn is gone, `unknown_turn`, `turn_not_complete`, `conflict`.
    """
    row, opened = sessions.open(session)
    if not sessions.catalogue.is_current(row):
        raise not_current(sessions.catalogue, row)
    marker = markers.find(row.session_id, checkpoint)
    if marker.session_id != row.session_id:  # a hard branch refers to its source
        row, opened = _elsewhere(sessions, marker)
    return _at_turn(sessions, row, opened, marker)


def asked_of(sessions: Sessions, session: str) -> str | None:
    """Return the whole id of the session that a restore is asked of, None where no one is named.

    Refuses `conflict` and `unreadable_source` for a path that is none of this home's session files:
    of such a file nothing is stored.
    """
    rows = sessions.catalogue.rows
    try:
        row = sessions.find(session)
    except Refusal as refusal:
        path = refusal.facts.get("path")
        if not isinstance(path, str):
            return None
        if path not in rows():
            raise
        return rows()[path].session_id
    if row.path not in rows():
        raise not_current(sessions.catalogue, row)
    return row.session_id


def ends_with_turn(replay: Replay, source: Source) -> bool:
    """Return whether a source that was read again still has the turn where it was found."""
    turns = replay.state.turns.turns
    for turn in turns:
        if turn.turn_id == source.marker.turn_id:
            end = end_of(turn, turns)
            ended = end == source.until or (end is None and not turn.in_task)
            return ended and replay.scale.lines == source.until
    return False


def _elsewhere(sessions: Sessions, marker: Marker) -> tuple[Row, SessionFile]:
    try:
        return sessions.open(marker.session_id)
    except Refusal as refusal:
        if refusal.code != "unknown_session":
            raise
        message = f"session {marker.session_id}, which the marker refers to, is gone"
        facts = {"sessionId": marker.session_id, "reason": "gone"}
        raise Refusal("unreadable_source", message, facts) from refusal


def _at_turn(sessions: Sessions, row: Row, opened: SessionFile, marker: Marker) -> Source:
    """Find the file with the turn: the newest one, or an older segment that still has it."""
    detached = is_detached(marker, opened.now().state.turns)
    for candidate, its in _segments(sessions, row, opened):
        now = its.now()
        turns = now.state.turns.turns
        found = next((turn for turn in turns if turn.turn_id == marker.turn_id), None)
        if found is not None:
            if not has_ended(found, now.state):
                message = f"turn {found.turn_id[:80]!r} of {row.session_id} has not ended"
                facts = {"sessionId": row.session_id, "turnId": found.turn_id}
                raise Refusal("turn_not_complete", message, facts)
            until = end_of(found, turns)
            # No line ends the last turn: what is said from here on belongs to it no more.
            until = now.scale.lines if until is None else until
            return Source(candidate, its, marker, until, detached)
    raise unknown_turn(opened.now(), marker.turn_id, row.session_id)


def _segments(
    sessions: Sessions, row: Row, opened: SessionFile
) -> Iterator[tuple[Row, SessionFile]]:
    yield row, opened
    catalogue = sessions.catalogue
    older = [
        each
        for each in catalogue.rows().values()
        if each.session_id == row.session_id and each.path != row.path and each.error is None
    ]
    for each in sorted(older, key=lambda each: each.rollout_id, reverse=True):
        yield each, catalogue.open(each)
