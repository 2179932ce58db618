"""Makes the timeline of a session, and the conversation of one of its turns, for people."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.call_texts import json_in
from codex_checkpoints.core.agents.codex.items import outcome_in
from codex_checkpoints.core.agents.codex.skipping import passing_over
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.calls import is_refusal
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.fields import list_of, object_of, text_of
from codex_checkpoints.core.recall.entries import Entry, Recall, says_more
from codex_checkpoints.core.restore.lineage import Link
from codex_checkpoints.core.restore.markers import marker_set_of
from codex_checkpoints.core.shell.script import BEGIN
from codex_checkpoints.core.timeline import Timeline, TimelineTurn, merged
from codex_checkpoints.core.windows import compacted_in
from codex_checkpoints.service.history.copied_turns import Times, times_of
from codex_checkpoints.service.history.lineages import leaving
from codex_checkpoints.service.history.windows import TIMELINE, timeline_in
from codex_checkpoints.service.reading.session_file import (
    SessionFile,
    bytes_between,
    end_of,
    find_turn,
)
from codex_checkpoints.service.reading.session_row import utc
from codex_checkpoints.service.refusal import keeping, misfit
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import MARKERS

MOST_EVENTS = 1024
"""Maximum number of events to keep, the newest."""

_LARGEST_PICTURE = 1 << 22

EventKind = Literal["compaction", "marker", "branch"]


@frozen
class TimelineEvent:
    """An event of a session, with the last turn at that time.

    `kind` is `compaction`, one that was not undone, `marker`, or `branch`: another session was made
    from this one.  `id` is the id of the compaction of ours, or else of the window; of the marker;
    of the other session.  All but `kind` are null if not recorded; without a `seq` the turn follows
    from the time.
    """

    kind: EventKind
    turn: int | None
    seq: int | None
    at: str | None
    id: str | None


@frozen
class SessionTimeline:
    """The turns of a session that were not rolled back, and its events, each in order.

    There are at most 400 rows: `merged` is the number of turns that a row represents, usually 1.
    There are at most the 1,024 newest events.
    """

    turns: tuple[TimelineTurn, ...]
    events: tuple[TimelineEvent, ...]
    merged: int


def timeline(sessions: Sessions, session: str) -> SessionTimeline:
    """Return the timeline of a session; refuses as `Sessions.find`, `unreadable_source`."""
    row = sessions.find(session)
    # The fold continues from its saved state.
    found = timeline_in(sessions.catalogue.follow(row, TIMELINE).now())
    times = times_of(sessions, row)
    turns = (_at(turn, times.get(turn.seq)) for turn in found.turns())
    size, rows = merged(tuple(turns))
    events = sorted(
        _events(sessions, row, found),
        key=lambda each: (each.turn or 0, each.seq is None, each.seq or 0, each.at or ""),
    )
    dated = tuple(
        evolve(row, started_at=utc(row.started_at), ended_at=utc(row.ended_at)) for row in rows
    )
    return SessionTimeline(dated, tuple(events[-MOST_EVENTS:]), size)


def _at(turn: TimelineTurn, times: Times | None) -> TimelineTurn:
    """Return a turn with the original times if it was copied."""
    return turn if times is None else evolve(turn, started_at=times[0], ended_at=times[1])


def _events(sessions: Sessions, row: Row, found: Timeline) -> Iterator[TimelineEvent]:
    turns = list(found.replay.state.turns.counting())
    opened = [turn.opened_seq for turn in turns]
    began = [utc(turn.stamp) for turn in turns]

    def event(kind: EventKind, seq: int | None, at: str | None, name: str | None) -> TimelineEvent:
        at = utc(at)
        if seq is not None:
            turn = bisect_right(opened, seq)
        else:  # its place is not recorded, but perhaps its time
            turn = sum(at is not None and time is not None and time <= at for time in began)
        return TimelineEvent(kind, turn or None, seq, at, name)

    ours = sessions.compactions.by_window(row.session_id)
    for window in compacted_in(found.replay.windows()):
        how = ours.get(window.window_id)
        made = None if how is None else how.by
        name = window.window_id if made is None else made.compaction_id
        yield event("compaction", window.opened_seq, window.opened_at, name)
    next_opened = (*opened[1:], found.replay.seq + 1)
    ends = {turn.turn_id: end - 1 for turn, end in zip(turns, next_opened, strict=False)}
    with keeping("markers", row.session_id):
        markers = marker_set_of(sessions.records.lines(row.session_id, MARKERS)).markers
    for marker in markers:
        if marker.session_id == row.session_id and marker.turn_id in ends:
            yield event("marker", ends[marker.turn_id], marker.created_at, marker.checkpoint_id)
    for link in leaving(sessions, row.session_id):
        yield event("branch", _place(link, ends, found.replay), link.at, link.child)


def _place(link: Link, ends: dict[str, int], replay: Replay) -> int | None:
    if link.cut.turn_id is not None:
        return ends.get(link.cut.turn_id)
    ordinal = link.cut.ordinal_exclusive
    return None if ordinal is None else ordinal - 1 + replay.scale.shift


NEAR = 1 << 22
"""Bytes of a session to search for a turn at a time, from the end backwards."""

_FAR = 8
"""If a turn begins before this fraction of a session, the session is read from its beginning."""

_MOST_NEAR = 8
"""Multiple of that size up to which a turn is read at once; a longer one is read from the start."""

MOST_ITEMS = 200
"""Maximum number of items in an answer."""

MOST_TEXT = 8_000
"""Maximum code points of an item; the rest can be recalled."""

OUTPUT_ENDS = (3_000, 1_000)
"""Code points from the beginning and from the end of an output that is longer than both."""


@frozen
class TranscriptItem:
    """A record of a turn: its text, redacted, and its whole length.

    `kind` is `user`, `assistant`, `plan`, `call`, `output`, `patch` or `summary`.  A plan has a
    line a step, with `[x]` in front of a done step, `[>]` of one in progress, else `[ ]`.  A long
    text is cut: `text` is its beginning and `tail`, for an output only, its end.  `about` is the
    command of an output; `exitCode` is how it ended, null if the output does not show it.
    `failed`: a command failed, or a patch was not applied.  `answered`: the output of a call is
    further on in the turn.
    """

    ref: str
    kind: str
    text: str
    tail: str
    total: int
    about: str
    exit_code: int | None
    failed: bool
    answered: bool
    at: str | None


@frozen
class TurnTranscript:
    """A turn with its items from `offset` on; `nextOffset` is null if no more follow.

    `total` counts all items of the turn.
    """

    turn_id: str
    turn: int | None
    items: tuple[TranscriptItem, ...]
    next_offset: int | None
    total: int


def transcript(sessions: Sessions, session: str, turn: str | int, offset: int) -> TurnTranscript:
    """Return the messages and actions of a turn, in order.

    Refuses as `Sessions.find`, `unknown_turn`, `unreadable_source`, `invalid_payload`.
    """
    if offset < 0:
        raise misfit("offset: must be 0 or more")
    row, opened = sessions.open(session)
    state = opened.now().state
    meant = find_turn(opened.now(), turn, row.session_id)
    until = end_of(meant, state.turns.turns)
    # Without ordinals earlier lines may name it.
    is_numbered = opened.replay.scale.paginated and not row.rollout.compressed
    near, last = (is_numbered and _around(opened, meant.opened, until)) or (None, 0)
    replay = Replay() if near is None else opened.replay.near_the_end(near, last)
    recall = Recall(
        replay,
        lambda entry: entry.turn_id == meant.turn_id and says_more(entry),
        lambda entry: entry,
        scripts=True,
    )
    # Lines before the turn are only read to find where turns begin.
    replay.passes_over = passing_over(lambda _raw: replay.scale.lines + 1 >= meant.opened)
    if near is None:
        sessions.catalogue.read_with(replay, row, until)
    else:
        replay.until = replay.until if until is None else until
        replay.feed(near)
        if not replay.stopped and last == opened.replay.scale.lines:
            replay.close(opened.tail)
    numbers = {each.turn_id: number for number, each in enumerate(state.turns.counting(), 1)}
    entries = [each for each in recall.entries if not (recall.typed and each.in_history)]
    answers = {each.ids[:1]: each for each in entries if each.kind == "output" and each.ids}
    patches = {each.ids[:1] for each in entries if each.kind == "patch"}
    visible = [
        each
        for each in entries
        if each.kind != "output"
        or not _is_only_confirmation(each, of_patch=each.ids[:1] in patches)
    ]
    some = visible[offset : offset + MOST_ITEMS]
    shown = tuple(_item(each, answers.get(each.ids[:1])) for each in some)
    end = offset + MOST_ITEMS
    next_offset = end if end < len(visible) else None
    return TurnTranscript(
        meant.turn_id, numbers.get(meant.turn_id), shown, next_offset, len(visible)
    )


def _around(opened: SessionFile, first: int, until: int | None) -> tuple[bytes, int] | None:
    """Return the lines around those from `first` to `until`, and the position of the last one.

    They are searched for backwards from the end, or from the next known position.  None if that is
    slower than reading from the beginning, if they begin before the file does, as in a base, if
    they are long, or if the file changed.
    """
    places, lines_read = opened.places, opened.replay.scale.lines
    if first * _FAR < lines_read:
        return None
    places[lines_read] = opened.mark.offset
    known = [] if until is None else [each for each in places if each >= until]
    position = min(known, default=lines_read)
    last, end = position, places[position]
    kept, size = b"", NEAR
    while end > 0 and len(kept) < _MOST_NEAR * NEAR:
        start = max(0, end - size)
        data = bytes_between(opened.reader, opened.path, start, end)
        if len(data) != end - start:
            return None
        cut = 0 if start == 0 else data.find(b"\n") + 1
        if start > 0 and cut in {0, len(data)}:
            size *= 2  # a line that is longer
            continue
        lines = data[cut:]
        end, size = start + cut, NEAR
        position -= sum(1 for line in lines.split(b"\n") if line.strip())
        places[position] = end
        if until is not None and position >= until:
            last = position
            continue
        kept = lines + kept
        if position < first:
            return kept, last
    return None


def _is_only_confirmation(output: Entry, *, of_patch: bool) -> bool:
    """Return whether an output only says that a plan was set or a patch applied."""
    if not of_patch:
        return _plan_in(output.about) is not None
    return bool(_APPLIED.fullmatch(_printed(output)))


_APPLIED = re.compile(
    r"(?:bash: [^\n]*warning: here-document[^\n]*\n)*Success\.[^\n]*(?:\n[AMDR] [^\n]*)*\s*"
)
"""The whole output of a patch whose hunks were all applied."""


def _printed(output: Entry) -> str:
    """Return the output of a command, without Codex's additions."""
    printed = outcome_in((output.text,)).printed
    return output.text if printed is None else printed


def _item(entry: Entry, answer: Entry | None) -> TranscriptItem:
    """Return a record as a transcript shows it; `answer` is the output of its call."""
    is_output = entry.kind == "output"
    text = _printed(entry) if is_output else entry.text
    plan = _plan_in(text) if entry.kind == "call" else None
    text = text if plan is None else plan
    about = redact(plain(entry.about))[:MOST_TEXT] if is_output else ""
    refused = (
        entry.kind == "patch"
        and answer is not None
        and is_refusal(evolve(answer.outcome, printed=_printed(answer)))
    )
    first, last = OUTPUT_ENDS if is_output else (MOST_TEXT, 0)
    is_cut = len(text) > first + last
    return TranscriptItem(
        f"#{entry.seq}",
        entry.kind if plan is None else "plan",
        text[:first] if is_cut else text,
        text[len(text) - last :] if is_cut else "",
        len(text),
        (about.partition(BEGIN)[0].strip() or "apply_patch") if BEGIN in about else about,
        entry.outcome.exit_code,
        failed=bool(entry.outcome.failed) or refused,
        answered=entry.kind == "call" and answer is not None,
        at=utc(entry.stamp),
    )


_MARKS = {"completed": "x", "in_progress": ">"}


def _plan_in(arguments: str) -> str | None:
    """Return the steps of the plan that a call sets, a line each; None for any other call."""
    if not arguments.startswith('{"'):
        return None
    value = json_in(arguments)
    if "plan" not in value or not value.keys() <= {"plan", "explanation"}:
        return None
    lines = [text_of(value.get("explanation")) or ""]
    for each in map(object_of, list_of(value.get("plan"))):
        mark = _MARKS.get(text_of(each.get("status")) or "", " ")
        lines.append(f"[{mark}] {text_of(each.get('step')) or ''}")
    return "\n".join(lines).strip("\n") or "[ ]"
