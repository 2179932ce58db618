"""What a store is told of a rollout, derived from what was read of it.

The store keeps explicit fields and derives nothing (STO-14); so it is done here, above it.
"""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from codex_checkpoints.codex import SCRATCH
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.turn_names import is_between_turns
from codex_checkpoints.threads.contract import Rollout, Row


def row_of(rollout: Rollout, session: SessionFile) -> Row:
    """Return what there is to tell of a session."""
    replay = session.now()
    state = replay.state
    task = replay.task()
    head = session.head
    tokens = None if state.tokens_stale or state.tokens is None else state.tokens
    reported = tokens is not None and tokens.input != 0
    return Row(
        rollout=rollout,
        session_id=session.session_id,
        cwd=state.base,
        recorded_name=state.name,
        first_text=state.first_text,
        task=None if task is None else task.text,
        updated_at=_utc(replay.scale.stamp or (head and head.timestamp), rollout.mtime_ns),
        cli_version=head and head.cli_version,
        originator=head and head.originator,
        history_mode=None if head is None else "paginated" if head.paginated else "legacy",
        model=state.model,
        context_tokens=None if tokens is None else tokens.total,
        context_source="reported" if reported else "estimated",
        context_window=state.window,
        windows=state.compactions + 1,
        compactions=state.compactions,
        turns=sum(1 for _ in state.turns.counting()),
        turn_open=not is_between_turns(state),
        seq=replay.seq,
        forked_from=head and head.forked_from,
        parent_session=head and head.parent_session,
        base_rollout=head.base.rollout_id if head is not None and head.base else None,
        scratch=head is not None and head.thread_source == SCRATCH,
        problems=_json([f"{each.code}:{each.rollout_id}" for each in session.problems]),
        skipped=_json(_skipped(session)),
    )


def problems_of(row: Row) -> tuple[str, ...]:
    """Return what is wrong with the files of a session: each a code, a colon and a rollout id."""
    return tuple(orjson.loads(row.problems)) if row.problems else ()


def skipped_of(row: Row) -> dict[str, int]:
    """Return how much of a session file gave nothing, by reason."""
    return orjson.loads(row.skipped) if row.skipped else {}


def _json(found: object) -> str:
    return orjson.dumps(found).decode() if found else ""


def _skipped(session: SessionFile) -> dict[str, int]:
    """Return what gave nothing, by reason."""
    replay = session.replay
    counts = dict(replay.scale.skipped)
    if session.tail.strip() and replay is session.now():
        counts["torn_tail"] = 1
    if replay.state.unread_calls:
        counts["unread_call"] = replay.state.unread_calls
    if replay.state.observations.left_out:
        counts["path_left_out"] = replay.state.observations.left_out
    return counts


def unreadable_row(rollout: Rollout, reason: str) -> Row:
    """Return the row of a rollout that cannot be read: it is known by its place alone."""
    return Row(rollout, rollout.thread_id, error=reason)


def utc(stamp: str) -> str | None:
    """Return a time of a record as UTC with milliseconds and `Z`; None for what is no time."""
    try:
        return _iso(datetime.fromisoformat(stamp))
    except (ValueError, OverflowError):
        return None


def _utc(stamp: str | None, mtime_ns: int) -> str:
    """Return a time as UTC with milliseconds and `Z`; a file without times has that of its file."""
    told = None if stamp is None else utc(stamp)
    if told is not None:
        return told
    try:
        return _iso(datetime.fromtimestamp(mtime_ns / 1e9, UTC))
    except (ValueError, OverflowError, OSError):
        return _iso(datetime.fromtimestamp(0, UTC))


def _iso(when: datetime) -> str:
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return when.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
