"""Exports a session as a portable pack, and imports one as a session to resume (AGN-14, AGN-81).

A pack is validated before any of it is written.  The audit gets ids, counts and a digest, but
nothing about a session file outside the Codex home (rules, "Lines, `seq`, identity").
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, Checkpoint
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.handoff import bundle, handoff
from codex_checkpoints.core.compaction.replacement_lines import (
    Naming,
    SourceSession,
    moment_of,
    new_session,
)
from codex_checkpoints.core.fields import Json, digest_of, object_of, text_of
from codex_checkpoints.core.portable.pack import (
    MAX_BYTES,
    NoteEvent,
    Pack,
    PackedTurn,
    PackOrigin,
    to_bytes,
)
from codex_checkpoints.core.portable.pack_export import (
    Omitted,
    SessionContents,
    note_events,
    packed,
)
from codex_checkpoints.core.portable.pack_import import (
    BadPack,
    Import,
    files_of,
    line_of,
    marker_lines,
    pack_in,
    seed_of,
)
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.core.restore.lineage import MAX_CHAIN
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.restore.references import Trace, in_order
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.history.lineages import way_up
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.operation import (
    SingleStep,
    added,
    atomic_operation,
    operation_of,
    removed,
)
from codex_checkpoints.service.progress import paced_hashes
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.session_row import utc
from codex_checkpoints.service.records.import_records import ImportRecords
from codex_checkpoints.service.records.operation_records import continued_from, storing_restore
from codex_checkpoints.service.refusal import Refusal, keeping, misfit, reading_file
from codex_checkpoints.service.restore.branch_copy import earlier_work
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.contract import HistoryItem, NewThread, Row
from codex_checkpoints.storage.records import IMPORTS, MARKERS


def chronicle_of(sessions: Sessions, row: Row, last: int) -> Trace:
    """Read a session up to the record `last`; refuses `unreadable_source`."""
    sessions.progress.expect(sessions.catalogue.chains.weight(row))
    trace = Trace(last=last)
    sessions.catalogue.read_with(trace.replay, row)
    return trace


def turns_of(session_id: str, chronicle: Trace) -> tuple[PackedTurn, ...]:
    """Return the turns of a session that are not rolled back."""
    state = chronicle.replay.state

    def end(turn: Turn) -> Literal["completed", "aborted", "open"]:
        if turn.aborted:
            return "aborted"
        return "completed" if state.has_ended(turn) else "open"

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


def past_of(
    sessions: Sessions, session_id: str
) -> tuple[tuple[PackedTurn, ...], tuple[NoteEvent, ...]]:
    """Return the turns and notes of a session before its own file, oldest first.

    They come from a pack, or from earlier sessions.  Refuses `storage_error`.
    """
    records, seen = sessions.records, set[str]()
    turns: tuple[PackedTurn, ...] = ()
    notes: tuple[NoteEvent, ...] = ()
    while session_id not in seen and len(seen) < MAX_CHAIN:
        seen.add(session_id)
        arrived = ImportRecords(records).made(session_id)
        if arrived is not None:
            return (*arrived.pack.turns, *turns), (*arrived.pack.notes, *notes)
        source = continued_from(records, session_id)
        if source is None:
            break
        session_id, until = source
        if until is not None:
            updates = sessions.projections.updates(session_id)
            notes = (*note_events(each for each in updates if each.seq <= until), *notes)
            turns = (*_turns_until(sessions, session_id, until), *turns)
    return turns, notes


def _turns_until(sessions: Sessions, session_id: str, until: int) -> tuple[PackedTurn, ...]:
    """Return the turns of a session up to a record; none if it cannot be read."""
    row = sessions.catalogue.current().get(session_id)
    if row is None:
        return ()
    try:
        return turns_of(session_id, chronicle_of(sessions, row, until))
    except Refusal:
        return ()


@frozen
class Packed:
    """A pack of a session, also as bytes; nothing is stored of a session outside this home."""

    session_id: str
    file: str
    data: bytes
    pack: Pack
    left: Omitted
    is_of_this_home: bool

    @property
    def digest(self) -> str:
        """Return the digest of the bytes."""
        return digest_of(self.data)


def pack_of(sessions: Sessions, homes: Collection[str], session: str, file: str) -> Packed:
    """Return the pack that `export` would write; write nothing, refuse as `export` does."""
    _refuse_place(sessions, file)
    row, rows = sessions.find(session), sessions.catalogue.rows
    if row.path not in rows():  # it is read from its beginning
        sessions.progress.expect(sessions.catalogue.chains.weight(row))
    row, opened = sessions.open(session)
    with reading_file(row):
        hashes = _hashes(sessions, opened)
        pack, left = packed(contents_of(sessions, row, opened, hashes), homes)
    data = to_bytes(pack)
    if len(data) > MAX_BYTES:
        message = f"the pack has {len(data)} bytes, more than {MAX_BYTES}"
        facts = {"sessionId": row.session_id, "bytes": len(data), "limit": MAX_BYTES}
        raise Refusal("limit_exceeded", message, facts)
    return Packed(row.session_id, file, data, pack, left, row.path in rows())


def export(
    sessions: Sessions,
    homes: Collection[str],
    session: str,
    file: str,
    mode: Literal["new", "replace"] = "new",
) -> Packed:
    """Write a pack to `file`, an absolute path; it is durable and complete on return.

    `homes` are home folders here, which a pack does not name.  Refuses `unknown_session`,
    `unreadable_source`, `conflict` for a folder or an existing file, `limit_exceeded` for a session
    too large for a pack, `invalid_payload`, `storage_error`.
    """
    found = pack_of(sessions, homes, session, file)
    sessions.progress.commit()
    if not found.is_of_this_home:
        _put(file, found.data, mode)
        return found
    if mode == "new" and os.path.lexists(file):  # an existing file is not from this export
        raise _is_there(file)
    checkpoint, operation_id = found.pack.checkpoint, stamps.new_id()
    operation = operation_of(sessions.settings, operation_id, found.session_id, found.session_id)
    more = {
        "packDigest": found.digest,
        "bytes": len(found.data),
        "notes": len(checkpoint.facts) + len(checkpoint.decisions),
        "markers": len(found.pack.markers),
    }
    event = event_of("PackExported", stamps.now(), operation, more)
    work = _work(sessions, event, file)
    with (
        keeping("record of the export", found.session_id),
        atomic_operation(sessions.records, operation_id, work) as prepare,
    ):
        prepare({"export": event, "file": file})
        _put(file, found.data, mode)
        work.published = True
    return found


def _hashes(sessions: Sessions, opened: SessionFile) -> Mapping[str, str]:
    replay = opened.now()
    return paced_hashes(sessions.progress, sessions.workspace, replay.state.base, replay.files())


def contents_of(
    sessions: Sessions,
    row: Row,
    opened: SessionFile,
    hashes: Mapping[str, str],
    until: int | None = None,
) -> SessionContents:
    """Return the contents of a pack of a session; `hashes` are the present ones of its files.

    `until` is the last record whose notes are packed; None packs all.
    """
    replay = opened.now()
    updates = sessions.projections.updates_of(opened)
    if until is not None:
        updates = tuple(each for each in updates if each.seq <= until)
    base = replay.state.base
    chronicle = chronicle_of(sessions, row, replay.seq)
    turns, notes = past_of(sessions, row.session_id)
    before = earlier_work(sessions, row, chronicle)
    origin = PackOrigin(
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
        (*notes, *note_events(updates)),
        Markers(sessions).marker_set(row.session_id),
        way_up(sessions, row.session_id),
        (*turns, *turns_of(row.session_id, chronicle)),
        in_order(before.modes, chronicle.traces().modes),
    )


def _refuse_place(sessions: Sessions, file: str) -> None:
    """Refuse a relative path, a place for session files, and a folder."""
    _refuse_relative(file)
    folder = os.path.realpath(os.path.dirname(file))
    watched = (os.path.realpath(place) for place in sessions.catalogue.store.watched)
    if any(folder == place or folder.startswith(place + os.sep) for place in watched):
        raise misfit("file: session files lie there, and nothing else")
    if os.path.isdir(file):
        hint = "Name the file that is to be written in it."
        facts = {"file": file, "reason": "folder", "hint": hint}
        raise Refusal("conflict", f"{file} is a folder", facts)


def _refuse_relative(file: str) -> None:
    if not os.path.isabs(file) or "\0" in file:
        raise misfit("file: must be a whole path")


def _put(file: str, data: bytes, mode: Literal["new", "replace"]) -> None:
    """Write a pack; refuses `conflict` for an existing file, and `storage_error`."""
    try:
        if mode == "new":
            atomic_files.publish(file, (data,))
        else:
            atomic_files.replace(file, data)
    except FileExistsError as error:
        raise _is_there(file) from error
    except OSError as error:
        reason = atomic_files.reason_of(error)
        message = f"{file} cannot be written: {reason}"
        raise Refusal("storage_error", message, {"file": file, "reason": reason}) from error


def _is_there(file: str) -> Refusal:
    message = f"{file} is there already"
    hint = "Name another file."
    facts = {"file": file, "reason": "file_exists", "hint": hint, "canForce": True}
    return Refusal("conflict", message, facts)


def _work(sessions: Sessions, event: Json, file: str) -> SingleStep:
    def is_written() -> bool:
        try:
            return digest_of(atomic_files.read(file, MAX_BYTES)) == event.get("packDigest")
        except (OSError, atomic_files.TooLarge):
            return False

    return SingleStep(sessions.records, event, is_written)


def reopened_export(sessions: Sessions, written: Json) -> SingleStep | None:
    """Return the export that a process wrote down; None if its line cannot be read."""
    event, file = object_of(written.get("export")), text_of(written.get("file"))
    return None if file is None or not event else _work(sessions, event, file)


@frozen
class ImportPlan:
    """A validated pack, and the session it becomes."""

    pack: Pack
    digest: str
    cwd: str
    seed: Checkpoint
    handoff: str
    name: str


def plan_import(sessions: Sessions, file: str, cwd: str) -> ImportPlan:
    """Read and validate a pack; write nothing.

    Refuses `invalid_payload`, `limit_exceeded`, `policy_text`, `unreadable_source`, and `conflict`
    if this pack was imported already.  Raises `Cancelled`.
    """
    folder = os.path.abspath(cwd)
    if not os.path.isdir(folder):
        raise misfit("cwd: must be a folder that is there")
    data = _bytes_of(file)
    sessions.progress.step()
    try:
        pack = pack_in(data)
    except BadPack as error:
        message = f"this file cannot be imported: {error}"
        facts = {"problems": list(error.problems), "reason": "not_a_pack"}
        raise Refusal(error.code, message, facts) from error
    digest = digest_of(data)
    _refuse_twice(sessions, digest)
    hashes = paced_hashes(sessions.progress, sessions.workspace, folder, files_of(pack))
    seed = seed_of(pack, hashes)
    caps = sessions.settings.caps_for(pack.origin.model)
    text = bundle(view_v1(seed, caps))
    return ImportPlan(pack, digest, folder, seed, text, _name_of(pack))


def thread_of(plan: ImportPlan, session_id: str, at: str) -> tuple[NewThread, Windows]:
    """Return the session file to create, and its windows (WIN-13).

    It names no source, which is not here, and no provider of models: Codex takes its own setting.
    """
    origin = plan.pack.origin
    head = {"cli_version": origin.cli_version, "source": "cli"}
    source = SourceSession("", plan.cwd, head | {"history_mode": origin.history_mode}, None)
    naming = Naming(plan.name, stamps.new_id(), stamps.new_id())
    ids = (session_id, stamps.new_id(), stamps.new_id())
    items = (handoff(plan.handoff.partition("\n\n")[2]),)
    made = new_session(items, source, naming, moment_of(at), ids)
    meta = {key: each for key, each in made.meta.items() if key != "forked_from_id"}
    lines = tuple(HistoryItem(line.type, line.payload) for line in made.lines)
    return NewThread(meta, lines), Windows(None, made.chain.first, made.chain.current)


def _refuse_twice(sessions: Sessions, digest: str) -> None:
    there = sessions.catalogue.current()
    for made in ImportRecords(sessions.records).all():
        sessions.progress.step()
        if made.pack_digest == digest and made.session_id in there:
            message = f"this pack is here already, as session {made.session_id}"
            facts = {"sessionId": made.session_id, "reason": "imported"}
            raise Refusal("conflict", message, facts)


def _bytes_of(file: str) -> bytes:
    _refuse_relative(file)
    try:
        return atomic_files.read(file, MAX_BYTES)
    except atomic_files.TooLarge as error:
        message = f"{file} has more than {MAX_BYTES} bytes"
        raise Refusal("limit_exceeded", message, {"file": file, "limit": MAX_BYTES}) from error
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"{file} cannot be read: {reason}"
        raise Refusal("unreadable_source", message, {"file": file, "reason": reason}) from error


def _name_of(pack: Pack) -> str:
    task = pack.checkpoint.task
    name = pack.origin.name or ("" if task is None else task.text)
    return value(name, MAX_VALUE_CHARS) or "Imported session"


IMPORTED = "PackImported"
"""The event of an import that is done."""


def import_pack(sessions: Sessions, file: str, cwd: str) -> tuple[ImportPlan, Import]:
    """Import a pack for the folder `cwd`; the session is ready for Codex on return.

    Refuses as `plan_import`, and `storage_error`; then nothing was written.
    """
    plan, records = plan_import(sessions, file, cwd), sessions.records
    operation_id, session_id, at = stamps.new_id(), stamps.new_id(), stamps.now()
    new, windows = thread_of(plan, session_id, at)
    source = plan.pack.origin.session_id
    made = Import(operation_id, session_id, source, at, plan.digest, windows, plan.seed, plan.pack)
    sessions.progress.commit()
    work = _import_work(sessions, session_id, made)
    with storing_restore(session_id), atomic_operation(records, session_id, work) as prepare:
        prepare({"import": {"operationId": operation_id}})
        added(records, session_id, IMPORTS, [line_of(made)])
        added(records, session_id, MARKERS, marker_lines(plan.pack, at))
        sessions.threads.create(new, datetime.fromisoformat(at))
        work.published = True
    return plan, made


def _import_work(sessions: Sessions, session_id: str, made: Import | None) -> SingleStep:
    """Return the work of an import; its record exists before the session is published."""

    def is_published() -> bool:
        return made is not None and sessions.catalogue.refresh_thread(session_id) is not None

    event = {}
    if made is not None:
        more = {
            "packDigest": made.pack_digest,
            "notes": len(made.seed.facts) + len(made.seed.decisions),
            "files": len(files_of(made.pack)),
            "markers": len(made.pack.markers),
        }
        ids = made.operation_id, made.session_id, made.source_session_id
        operation = operation_of(sessions.settings, *ids)
        event = event_of(IMPORTED, stamps.now(), operation, more)
    undo = partial(removed, sessions.records, session_id, (IMPORTS, MARKERS))
    return SingleStep(sessions.records, event, is_published, undo)


def reopened_import(sessions: Sessions, session_id: str) -> SingleStep:
    """Return the import that a process wrote down."""
    return _import_work(sessions, session_id, ImportRecords(sessions.records).made(session_id))
