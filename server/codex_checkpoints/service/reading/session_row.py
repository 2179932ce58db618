"""Makes the index row of a session, from all of its file or from both ends."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from codex_checkpoints.codex import SCRATCH
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.tail_summary import TailSummary
from codex_checkpoints.core.events import SessionMeta, Tokens
from codex_checkpoints.service.reading.session_file import (
    SessionFile,
)
from codex_checkpoints.storage.contract import (
    Rollout,
    Row,
    in_text,
    moment,
)


def row_of(rollout: Rollout, session: SessionFile) -> Row:
    """Return the row of a session that was read completely."""
    replay = session.now()
    state = replay.state
    task = replay.task()
    head = session.head
    tokens = None if state.tokens_stale or state.tokens is None else state.tokens
    return Row(
        rollout=rollout,
        session_id=sys.intern(session.session_id),
        cwd=_once(_newest_folder(replay)),
        base=_once(state.base),
        recorded_name=state.name,
        first_text=state.first_text,
        task=None if task is None else task.text,
        updated_at=_updated(replay.scale.stamp or (head and head.timestamp), rollout),
        model=_once(state.model),
        context_tokens=None if tokens is None else tokens.total,
        context_source=_source(tokens),
        context_window=state.window,
        windows=state.windows + 1,
        compactions=state.compactions,
        turns=sum(1 for _ in state.turns.counting()),
        turn_open=not state.is_between_turns,
        seq=replay.seq,
        problems=_json([f"{each.code}:{each.rollout_id}" for each in session.problems]),
        skipped=_json(_skipped(session)),
        **_of_head(head),
    )


def _newest_folder(replay: Replay) -> str | None:
    """Return the folder that the session's own file set last, else the head's."""
    newest = replay.state.newest_folder
    if newest is not None and newest[0] == replay.scale.file:
        return newest[1]
    return replay.state.base


def row_of_ends(rollout: Rollout, session_id: str, found: TailSummary) -> Row:
    """Return the row of a session of which only the ends were read."""
    tokens = found.tokens
    return Row(
        rollout=rollout,
        session_id=sys.intern(session_id),
        cwd=_once(found.folder),
        base=_once(found.cwd),
        recorded_name=found.name,
        first_text=found.first_text,
        task=found.task,
        updated_at=None if found.stamp is None else _updated(found.stamp, rollout),
        model=_once(found.model),
        context_tokens=None if tokens is None else tokens.total,
        context_source=_source(tokens) if found.tokens_known else None,
        context_window=found.window,
        turn_open=found.turn_open,
        **_of_head(found.head),
    )


def _of_head(head: SessionMeta | None) -> dict[str, Any]:
    """Return the fields of a row that come from the head."""
    if head is None:
        return {}
    return {
        "cli_version": _once(head.cli_version),
        "originator": _once(head.originator),
        "source": _once(head.source and value(head.source, MAX_VALUE_CHARS)),
        "background": head.background,
        "history_mode": "paginated" if head.paginated else "legacy",
        "forked_from": head.forked_from,
        "parent_session": head.parent_session,
        "base_rollout": head.base.rollout_id if head.base else None,
        "scratch": head.thread_source == SCRATCH,
        "git": _json(head.git and [each and _short(each) for each in head.git]),
    }


def _once(text: str | None) -> str | None:
    """Return a text that many rows share as one object."""
    return None if text is None else sys.intern(text)


@lru_cache(1 << 12)  # most sessions belong to few repositories
def _short(text: str) -> str:
    return text if _COMMIT.fullmatch(text) else value(text, 200)


_COMMIT = re.compile("[0-9a-f]{7,64}")
"""The hash of a commit, which differs between sessions and contains no secret."""


def _source(tokens: Tokens | None) -> str:
    return "reported" if tokens is not None and tokens.input != 0 else "estimated"


def problems_of(row: Row) -> tuple[str, ...]:
    """Return the problems of a session's files, each as `code:rollout id`."""
    return tuple(orjson.loads(row.problems)) if row.problems else ()


def skipped_of(row: Row) -> dict[str, int]:
    """Return the number of ignored lines in a session file, by reason."""
    return orjson.loads(row.skipped) if row.skipped else {}


def _json(found: object) -> str:
    return orjson.dumps(found).decode() if found else ""


def _skipped(session: SessionFile) -> dict[str, int]:
    replay = session.replay
    counts = dict(replay.scale.skipped)
    if session.tail.strip() and replay is session.now():
        counts["zero_bytes" if b"\0" in session.tail else "torn_tail"] = 1
    if replay.state.unread_calls:
        counts["unread_call"] = replay.state.unread_calls
    if replay.state.observations.left_out:
        counts["path_left_out"] = replay.state.observations.left_out
    return counts


def unreadable_row(rollout: Rollout, reason: str) -> Row:
    """Return the row of a rollout that cannot be read: only its path is known."""
    return Row(rollout, rollout.thread_id, error=reason)


_AS_WE_WRITE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z")


def utc(stamp: str | None) -> str | None:
    """Return a time as UTC with milliseconds and `Z`; None if it is not a time."""
    if stamp is None:
        return None
    try:
        when = datetime.fromisoformat(stamp)
        if _AS_WE_WRITE.fullmatch(stamp):
            return stamp
        return in_text(when.replace(tzinfo=UTC) if when.tzinfo is None else when)
    except (ValueError, OverflowError):
        return None


def _updated(stamp: str | None, rollout: Rollout) -> str:
    return utc(stamp) or moment(rollout.modified_ns)


def title_of(row: Row, name: str | None) -> str | None:
    """Return the title of a session with this name."""
    return (name and value(name, MAX_VALUE_CHARS)) or row.first_text
