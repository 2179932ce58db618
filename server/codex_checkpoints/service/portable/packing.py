"""Export a session as a portable pack (AGN-14, AGN-81).

The audit gets ids, counts and a digest, but nothing about a session file outside the Codex home
(rules, "Lines, `seq`, identity").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import Literal

from codex_checkpoints.core.audit import digest_of
from codex_checkpoints.core.portable.leaving import Left, SessionContents, note_events, packed
from codex_checkpoints.core.portable.pack import (
    MAX_BYTES,
    NoteEvent,
    Origin,
    Pack,
    PackedTurn,
    to_bytes,
)
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.core.restore.lineage import MAX_CHAIN
from codex_checkpoints.core.restore.trace import Trace, in_order
from codex_checkpoints.core.rollout.fields import Json, object_of, text_of
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.service.kept import ImportRecords, went_on_from
from codex_checkpoints.service.lineages import way_up
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.reading.catalogue import utc
from codex_checkpoints.service.reading.pace import paced_hashes
from codex_checkpoints.service.reading.session_file import SessionFile, has_ended
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.restore.planning import earlier_work, unreadable
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.undertaking import OneStep, operation_of, undertaking
from codex_checkpoints.storage import durable
from codex_checkpoints.storage.contract import Row, UnreadableSource
from codex_checkpoints.values import define, evolve, frozen


@frozen
class Past:
    """Turns and note events, oldest first."""

    turns: tuple[PackedTurn, ...] = ()
    notes: tuple[NoteEvent, ...] = ()


def chronicle_of(sessions: Sessions, row: Row, last: int) -> Trace:
    """Read a session up to the record `last`; refuses `unreadable_source`."""
    sessions.pace.expect(sessions.catalogue.chains.weight(row))
    trace = Trace(last=last)
    sessions.catalogue.read_with(trace.replay, row)
    return trace


def turns_of(session_id: str, chronicle: Trace) -> tuple[PackedTurn, ...]:
    """Return the turns of a session that are not rolled back."""
    state = chronicle.replay.state

    def end(turn: Turn) -> Literal["completed", "aborted", "open"]:
        if turn.aborted:
            return "aborted"
        return "completed" if has_ended(turn, state) else "open"

    return tuple(
        PackedTurn(
            session_id,
            turn.turn_id,
            number,
            turn.stamp and utc(turn.stamp),
            (ended := chronicle.ended_at(turn)) and utc(ended),
            end(turn),
        )
        for number, turn in enumerate(state.turns.counting(), 1)
    )


def past_of(sessions: Sessions, session_id: str) -> Past:
    """Return the past of a session before its own file: from a pack, or from earlier sessions.

    Refuses `storage_error`.
    """
    found = [*_pasts(sessions, session_id)]
    return Past(
        tuple(turn for past in reversed(found) for turn in past.turns),
        tuple(note for past in reversed(found) for note in past.notes),
    )


def _pasts(sessions: Sessions, session_id: str) -> Iterator[Past]:
    records, seen = sessions.records, set[str]()
    while session_id not in seen and len(seen) < MAX_CHAIN:
        seen.add(session_id)
        arrived = ImportRecords(records).made(session_id)
        if arrived is not None:
            yield Past(arrived.pack.turns, arrived.pack.notes)
            return
        source = went_on_from(records, session_id)
        if source is None:
            return
        session_id, until = source
        if until is not None:
            updates = sessions.projections.updates(session_id)
            notes = note_events(each for each in updates if each.seq <= until)
            yield Past(_turns_until(sessions, session_id, until), notes)


def _turns_until(sessions: Sessions, session_id: str, until: int) -> tuple[PackedTurn, ...]:
    """Return the turns of a session up to a record; none where it cannot be read."""
    row = sessions.catalogue.current().get(session_id)
    if row is None:
        return ()
    try:
        return turns_of(session_id, chronicle_of(sessions, row, until))
    except Refusal:
        return ()


@frozen
class Packed:
    """A written or previewed pack; nothing is stored of a session outside this home."""

    session_id: str
    file: str
    size: int
    digest: str
    pack: Pack
    left: Left
    dry_run: bool
    is_of_this_home: bool


@define
class Packing:
    """Exports packs; the time and new ids come from the caller."""

    _sessions: Sessions
    _homes: Collection[str]
    _now: Callable[[], str]
    _new_id: Callable[[], str]

    def preview(self, session: str, file: str) -> Packed:
        """Return what a pack would hold; write nothing."""
        return self._packed(session, file)[0]

    def write(self, session: str, file: str, mode: Literal["new", "replace"] = "new") -> Packed:
        """Write a pack to `file`, an absolute path; it is durable and complete on return.

        Refuses `unknown_session`, `unreadable_source`, `conflict` for a folder or an existing file,
        `limit_exceeded` for a session too large for a pack, `invalid_payload`, `storage_error`.
        """
        found, data = self._packed(session, file)
        self._sessions.pace.commit()
        if not found.is_of_this_home:
            _put(file, data, mode)
            return evolve(found, dry_run=False)
        if mode == "new" and os.path.lexists(file):  # what is there is not of this export
            raise _is_there(file)
        event = self._event(found)
        work = _work(self._sessions, event, file)
        with (
            keeping("record of the export", found.session_id),
            undertaking(self._sessions.records, str(event["operationId"]), work) as prepare,
        ):
            prepare({"export": event, "file": file})
            _put(file, data, mode)
            work.published = True
        return evolve(found, dry_run=False)

    def _packed(self, session: str, file: str) -> tuple[Packed, bytes]:
        self._refuse_place(file)
        row, opened = self._opened(session)
        try:
            pack, left = packed(self._contents(row, opened), self._homes)
        except UnreadableSource as error:
            raise unreadable(row, str(error)) from error
        data = to_bytes(pack)
        if len(data) > MAX_BYTES:
            message = f"the pack has {len(data)} bytes, more than {MAX_BYTES}"
            facts = {"sessionId": row.session_id, "bytes": len(data), "limit": MAX_BYTES}
            raise Refusal("limit_exceeded", message, facts)
        found = Packed(
            row.session_id,
            file,
            len(data),
            digest_of(data),
            pack,
            left,
            dry_run=True,
            is_of_this_home=row.path in self._sessions.catalogue.rows(),
        )
        return found, data

    def _opened(self, session: str) -> tuple[Row, SessionFile]:
        """Open a session; a file outside this home is read from its beginning."""
        sessions = self._sessions
        row = sessions.find(session)
        if row.path not in sessions.catalogue.rows():
            sessions.pace.expect(sessions.catalogue.chains.weight(row))
        return sessions.open(session)

    def _contents(self, row: Row, opened: SessionFile) -> SessionContents:
        sessions, replay = self._sessions, opened.now()
        updates = sessions.projections.updates_of(opened)
        base = replay.state.base
        hashes = paced_hashes(sessions.pace, sessions.workspace, base, replay.files())
        markers = Markers(sessions, self._now, self._new_id)
        chronicle = chronicle_of(sessions, row, replay.seq)
        past = past_of(sessions, row.session_id)
        before = earlier_work(sessions, row, chronicle)
        origin = Origin(
            row.session_id,
            sessions.catalogue.store.name_of(row),
            "paginated" if row.history_mode == "paginated" else "legacy",
            row.cli_version,
            replay.state.model,
        )
        return SessionContents(
            origin,
            base,
            replay.checkpoint(updates, hashes),
            (*past.notes, *note_events(updates)),
            markers.marker_set(row.session_id),
            way_up(sessions, row.session_id),
            (*past.turns, *turns_of(row.session_id, chronicle)),
            in_order(before.modes, chronicle.traces().modes),
        )

    def _refuse_place(self, file: str) -> None:
        """Refuse a relative path, a place for session files, and a folder."""
        if not os.path.isabs(file) or "\0" in file:
            raise misfit("file: must be a whole path")
        folder = os.path.realpath(os.path.dirname(file))
        watched = (os.path.realpath(place) for place in self._sessions.catalogue.store.watched)
        if any(folder == place or folder.startswith(place + os.sep) for place in watched):
            raise misfit("file: session files lie there, and nothing else")
        if os.path.isdir(file):
            hint = "Name the file that is to be written in it."
            facts = {"file": file, "reason": "folder", "hint": hint}
            raise Refusal("conflict", f"{file} is a folder", facts)

    def _event(self, found: Packed) -> Json:
        checkpoint = found.pack.checkpoint
        more = {
            "packDigest": found.digest,
            "bytes": found.size,
            "notes": len(checkpoint.facts) + len(checkpoint.decisions),
            "markers": len(found.pack.markers),
        }
        now, ids = self._now(), (self._new_id(), found.session_id, found.session_id)
        return event_of("PackExported", now, operation_of(self._sessions.settings, *ids), more)


def _put(file: str, data: bytes, mode: Literal["new", "replace"]) -> None:
    """Write a pack; refuses `conflict` for a file that is there, and `storage_error`."""
    try:
        if mode == "new":
            durable.publish(file, (data,))
        else:
            durable.replace(file, data)
    except FileExistsError as error:
        raise _is_there(file) from error
    except OSError as error:
        reason = durable.reason_of(error)
        message = f"{file} cannot be written: {reason}"
        raise Refusal("storage_error", message, {"file": file, "reason": reason}) from error


def _is_there(file: str) -> Refusal:
    message = f"{file} is there already"
    hint = "Name another file."
    facts = {"file": file, "reason": "file_exists", "hint": hint, "canForce": True}
    return Refusal("conflict", message, facts)


def _work(sessions: Sessions, event: Json, file: str) -> OneStep:
    def is_written() -> bool:
        try:
            return digest_of(durable.read(file, MAX_BYTES)) == event.get("packDigest")
        except (OSError, durable.TooLarge):
            return False

    return OneStep(sessions.records, event, is_written)


def reopened(sessions: Sessions, written: Json) -> OneStep | None:
    """Return the export that a process wrote down; None where its line cannot be read."""
    event, file = object_of(written.get("export")), text_of(written.get("file"))
    return None if file is None or not event else _work(sessions, event, file)
