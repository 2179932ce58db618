"""Detects, without reading a session, that it has nothing new for a remote."""

from __future__ import annotations

import orjson

from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.core.portable.redacted_lines import REDACTION
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import (
    COMPACTIONS,
    IMPORTS,
    MARKERS,
    PULLS,
    RESTORES,
    UPDATES,
)
from codex_checkpoints.storage.remote.contract import HistoryStore, SessionRow
from codex_checkpoints.storage.remote.pushed import LastPush, last_push, remember_push

_RECORDS = (UPDATES, MARKERS, COMPACTIONS, RESTORES, IMPORTS, PULLS)


def inputs_of(sessions: Sessions, row: Row) -> str:
    """Return a digest of the sources of a session's push: files, records, names, rules."""
    chain = (row, *sessions.catalogue.chains.below(row))
    files = [(each.path, each.rollout.look) for each in chain]
    records = [sessions.records.look(row.session_id, name) for name in _RECORDS]
    return digest_of(orjson.dumps([REDACTION, files, records, sessions.title(row)]))


def unchanged_row(sessions: Sessions, store: HistoryStore, row: Row) -> SessionRow | None:
    """Return the row in the remote if this machine pushed exactly this; raises `RemoteError`."""
    last = last_push(sessions.records.session_dir(row.session_id))
    if last is None or last.place != store.place or last.inputs != inputs_of(sessions, row):
        return None
    there = store.row(row.session_id)
    return there.row if there is not None and there.version == last.version else None


def remember(sessions: Sessions, store: HistoryStore, session_id: str, inputs: str) -> None:
    """Record that a session was pushed with these inputs; raises `RemoteError`."""
    there = store.row(session_id)
    if there is not None:
        last = LastPush(store.place, there.version, inputs)
        remember_push(sessions.records.session_dir(session_id), last)
