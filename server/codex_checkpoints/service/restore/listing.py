"""Lists restores and audit events, and compares a restore with its source as it is now."""

from __future__ import annotations

from itertools import islice

from attrs import evolve, frozen

from codex_checkpoints.core.fields import (
    Json,
    digest_of,
    list_of,
    load,
    object_of,
    text_of,
    texts_of,
)
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.service.reading.session_file import fingerprint, lines_of
from codex_checkpoints.service.records.operation_records import RestoreRecords
from codex_checkpoints.service.refusal import Refusal, one_named, reading
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import UnreadableSource


@frozen
class Listed:
    """A restore and its two sessions, without titles if they are gone.

    Details have the pack, and whether the source still begins with the bytes that it had when it
    was restored; `source_unchanged` is None if that cannot be read.
    """

    record: Restore
    branch_title: str | None
    branch_available: bool
    source_title: str | None
    source_available: bool
    pack: str | None = None
    source_unchanged: bool | None = None


def restores(sessions: Sessions, session: str | None = None) -> tuple[Listed, ...]:
    """Return the restores of a session, as source or branch, or all; the oldest first.

    A deleted session still has its id in records.  Refuses `unknown_session`, `ambiguous_session`.
    """
    records = RestoreRecords(sessions.records)
    found = records.all() if session is None else records.of(_named(sessions, session))
    return tuple(_listed(sessions, each) for each in found)


def details(sessions: Sessions, operation: str) -> Listed:
    """Return a restore by its id or a unique prefix; refuses `unknown_operation`."""
    known = {each.operation_id: each for each in RestoreRecords(sessions.records).all()}
    name = one_named(known, operation)
    if name is None:
        message = f"no restore {operation[:80]!r}"
        raise Refusal("unknown_operation", message, {"operationId": operation[:200]})
    record = known[name]
    return evolve(
        _listed(sessions, record),
        pack=_pack(sessions, record),
        source_unchanged=_is_unchanged(sessions, record),
    )


def audit(
    sessions: Sessions, session: str | None = None, operation: str | None = None
) -> tuple[Json, ...]:
    """Return the events of a session, as source or branch, or of an operation, or all.

    The events of a session include all events of the operations that name it: the first events of a
    restore do not name its branch.  They are in the order of writing.  Refuses `storage_error`.
    """
    session_id = None if session is None else _named(sessions, session)
    with reading("audit"):
        events = tuple(map(object_of, sessions.records.audit.events()))
    named = [each for each in events if session_id in {None, *_sessions_of(each)}]
    own = {text_of(each.get("operationId")) for each in named} - {None}
    return tuple(
        event
        for event in events
        if (session_id in {None, *_sessions_of(event)} or event.get("operationId") in own)
        and operation in {None, event.get("operationId")}
    )


def _named(sessions: Sessions, session: str) -> str:
    try:
        return sessions.find(session).session_id
    except Refusal as refusal:
        if refusal.code != "unknown_session":
            raise
        records = RestoreRecords(sessions.records).all()
        gone = (each for one in records for each in (one.session_id, one.source_session_id))
        name = one_named(gone, session)
        if name is None:
            raise
        return name


def _listed(sessions: Sessions, record: Restore) -> Listed:
    def side(session_id: str) -> tuple[str | None, bool]:
        row = sessions.catalogue.current().get(session_id)
        return (None, False) if row is None else (sessions.title(row), True)

    return Listed(record, *side(record.session_id), *side(record.source_session_id))


def _is_unchanged(sessions: Sessions, record: Restore) -> bool | None:
    """Return whether a file of the source still begins with the bytes that were restored."""
    size = record.source_bytes
    rows = sessions.catalogue.files_of(record.source_session_id)
    if size is None or not rows:
        return None
    reader = sessions.catalogue.reader
    try:
        return any(fingerprint(reader, row.path, size)[0] == record.source_digest for row in rows)
    except UnreadableSource:
        return None


def _pack(sessions: Sessions, record: Restore) -> str | None:
    """Read the pack from the branch; None if it is gone or different."""
    row = sessions.catalogue.current().get(record.session_id)
    if row is None or record.pack is None:
        return None
    try:
        line = next(islice(lines_of(sessions.catalogue.reader, row.path), 1, 2), b"")
    except UnreadableSource:
        return None
    payload = object_of(object_of(load(line)).get("payload"))
    items = [*map(object_of, list_of(payload.get("replacement_history")))]
    text = "".join(texts_of(items[0].get("content"))) if items else ""
    return text if digest_of(text.encode()) == record.pack.digest else None


def _sessions_of(event: Json) -> tuple[str | None, str | None]:
    return text_of(event.get("sessionId")), text_of(event.get("sourceSessionId"))
