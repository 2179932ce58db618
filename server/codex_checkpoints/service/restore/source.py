"""The source of a restore: the marker, the file that holds its turn, and the files it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from codex_checkpoints.core.checkpoint.records import UNKNOWN_HASH
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.text import MARK, SCANNED, secrets
from codex_checkpoints.core.restore.events import digest_of
from codex_checkpoints.core.restore.markers import Marker, Pin, is_detached
from codex_checkpoints.core.restore.pack import Pinned, Unseen
from codex_checkpoints.core.restore.references import chunk_id
from codex_checkpoints.core.restore.trace import Span
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.reading.session_file import (
    SessionFile,
    end_of,
    has_ended,
    unknown_turn,
)
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions, not_current
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.workspace import Workspace
from codex_checkpoints.values import frozen


@frozen
class RestoreSource:
    """The file that holds the turn of a marker, and the position of the last line to read."""

    row: Row
    opened: SessionFile
    marker: Marker
    until: int
    detached: bool


def find_source(
    sessions: Sessions, markers: Markers, session: str, checkpoint: str
) -> RestoreSource:
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
    """Return the whole id of the session to restore, None where it names no session.

    Refuses `conflict` and `unreadable_source` for a path outside this home: nothing of it is
    stored.
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


def ends_with_turn(replay: Replay, source: RestoreSource) -> bool:
    """Return whether a source that was read again still has the turn in its place."""
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


def _at_turn(sessions: Sessions, row: Row, opened: SessionFile, marker: Marker) -> RestoreSource:
    """Find the turn in the newest file, or in an older segment."""
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
            return RestoreSource(candidate, its, marker, until, detached)
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


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def hashes_now(workspace: Workspace, base: str | None, then: Mapping[str, str]) -> dict[str, str]:
    """Return the present hashes of the files of a marker."""
    now = workspace.hashes(base, then)
    return {uri: now.get(uri, UNKNOWN_HASH) for uri in then}


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
    """Return why a file cannot be read."""
    if workspace.missing(base, [uri]):
        return "missing"
    # One above the limit is known by its size and time.
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
    """Return lines of a file, counted from 1; None where it has none of them."""
    if content is None:
        return None
    found = _LINE.findall(content)[start - 1 : end]
    return b"".join(found) if found else None
