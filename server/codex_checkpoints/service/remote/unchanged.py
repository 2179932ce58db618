"""Detects, without reading a session, that it has nothing new for a remote."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.core.portable.redacted_lines import REDACTION
from codex_checkpoints.core.portable.said import SAID
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import (
    COMPACTIONS,
    IMPORTS,
    MARKERS,
    PULLS,
    RESTORES,
    UPDATES,
    Records,
)
from codex_checkpoints.storage.remote.contract import HistoryStore, SessionRow
from codex_checkpoints.storage.remote.pushed import LastPush, last_push, remember_push

_RECORDS = (UPDATES, MARKERS, COMPACTIONS, RESTORES, IMPORTS, PULLS)


def inputs_of(sessions: Sessions, row: Row) -> str:
    """Return a digest of the sources of a session's push: files, records, names, rules."""
    chain = (row, *sessions.catalogue.chains.below(row))
    files = [(each.path, each.rollout.version) for each in chain]
    records = [sessions.records.stamp(row.session_id, name) for name in _RECORDS]
    return digest_of(orjson.dumps([REDACTION, SAID, files, records, sessions.title(row)]))


def pushed_version(sessions: Sessions, place: str, row: Row) -> str | None:
    """Return the version of a session's row in a remote, if this machine pushed exactly this."""
    last = last_push(sessions.records.session_dir(row.session_id))
    if last is None or last.place != place or last.inputs != inputs_of(sessions, row):
        return None
    return last.version


def unchanged_rows(store: HistoryStore, versions: Mapping[str, str]) -> dict[str, SessionRow]:
    """Return the rows that still have these versions, by session; raises `RemoteError`."""
    found = ((store.row(session_id), version) for session_id, version in versions.items())
    return {
        there.row.session_id: there.row
        for there, version in found
        if there is not None and there.version == version
    }


def remember(records: Records, store: HistoryStore, session_id: str, inputs: str) -> None:
    """Record that a session was pushed with these inputs; raises `RemoteError`."""
    there = store.row(session_id)
    if there is not None:
        last = LastPush(store.place, there.version, inputs)
        remember_push(records.session_dir(session_id), last)
