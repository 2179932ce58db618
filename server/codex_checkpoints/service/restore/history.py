"""Restores that were done: their list, their details and their events.

A record lies with the branch and with the source, so either may be gone (AGN-87).  The text of a
pack is in no record; it is read from the branch, as long as that is there.  Whether all of it is
still as it was written is asked in `verifying`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.restore.sealing import digest_of
from codex_checkpoints.core.rollout.fields import Json, is_list, load, object_of, text_of, texts_of
from codex_checkpoints.durable import StorageError
from codex_checkpoints.service.reading.lines import lines_of
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row, UnreadableSource
from codex_checkpoints.values import frozen

_SHORTEST_PREFIX = 8


@frozen
class Side:
    """One end of a restore as it is now; `title` is None where the session is gone."""

    title: str | None
    available: bool


@frozen
class Listed:
    """A restore, with what became of its two sessions; `pack` is asked for by details alone."""

    record: Restore
    branch: Side
    source: Side
    pack: str | None = None


class RestoreHistory:
    """The restores of one home."""

    def __init__(self, sessions: Sessions) -> None:
        """Read the records of these sessions; nothing is read yet."""
        self._sessions = sessions
        self._restores = RestoreRecords(sessions.records)

    def restores(self, session: str | None = None) -> tuple[Listed, ...]:
        """Return the restores of a session, as source or branch, or all; the oldest first.

        A session that is gone is still known by its id.  Refuses `unknown_session` where neither a
        file nor a record tells of it, `ambiguous_session`.
        """
        if session is None:
            return tuple(map(self._listed, self._restores.all()))
        session_id = self._named(session)
        return tuple(map(self._listed, self._restores.of(session_id)))

    def details(self, operation: str) -> Listed:
        """Return everything about a restore, by its id or a unique beginning of it.

        Refuses `unknown_operation`.
        """
        found = [each for each in self._restores.all() if each.operation_id.startswith(operation)]
        exact = [each for each in found if each.operation_id == operation]
        if len(operation) >= _SHORTEST_PREFIX and len(found) == 1:
            exact = found
        if not exact:
            message = f"no restore {operation[:80]!r}"
            raise Refusal("unknown_operation", message, {"operationId": operation[:200]})
        return self._listed(exact[0], pack=self._pack(exact[0]))

    def audit(self, session: str | None = None, operation: str | None = None) -> tuple[Json, ...]:
        """Return the events of a session, as source or branch, or of an operation, or all.

        They are in the order of their writing.  Refuses `storage_error`.
        """
        session_id = None if session is None else self._named(session)
        return tuple(
            event
            for event in self._events()
            if (session_id is None or session_id in _sessions_of(event))
            and (operation is None or event.get("operationId") == operation)
        )

    # --- inside ----------------------------------------------------------------------------------

    def _events(self) -> Iterator[Json]:
        try:
            yield from map(object_of, self._sessions.records.events())
        except StorageError as error:
            message = f"the audit cannot be read: {error}"
            raise Refusal("storage_error", message, {"reason": str(error)}) from error

    def _named(self, session: str) -> str:
        try:
            return self._sessions.find(session).session_id
        except Refusal as refusal:
            if refusal.code != "unknown_session":
                raise
            gone = {each for told in self._restores.all() for each in _ends_of(told)}
            fitting = sorted(each for each in gone if each.startswith(session))
            if session in gone or (len(session) >= _SHORTEST_PREFIX and len(fitting) == 1):
                return session if session in gone else fitting[0]
            raise

    def _listed(self, record: Restore, pack: str | None = None) -> Listed:
        branch, source = self._side(record.session_id), self._side(record.source_session_id)
        return Listed(record, branch, source, pack)

    def _side(self, session_id: str) -> Side:
        row = self._row(session_id)
        title = None if row is None else self._sessions.title(row)
        return Side(title, available=row is not None)

    def _row(self, session_id: str) -> Row | None:
        return self._sessions.catalogue.current().get(session_id)

    def _pack(self, record: Restore) -> str | None:
        """Read the pack out of the branch; None where that is gone, or holds another."""
        row = self._row(record.session_id)
        if row is None or record.pack is None:
            return None
        try:
            first = list(islice(lines_of(self._sessions.catalogue.reader, row.path), 2))
        except UnreadableSource:
            return None
        payload = object_of(object_of(load(first[-1]) if first else None).get("payload"))
        items = payload.get("replacement_history")
        content = object_of(items[0]).get("content") if is_list(items) and items else None
        text = "".join(texts_of(content))
        return text if digest_of(text.encode()) == record.pack.digest else None


def _ends_of(record: Restore) -> tuple[str, str]:
    return record.session_id, record.source_session_id


def _sessions_of(event: Json) -> tuple[str | None, str | None]:
    return text_of(event.get("sessionId")), text_of(event.get("sourceSessionId"))
