"""Verify records of operations: compute their digests again (AGN-62); and list restores.

A line that only lacks its end was left by a crash; a session file that is gone is counted.  An
operation stands in the audit, in a record with its source and in one with its branch; one that
ended before there was a branch stands in the audit alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from codex_checkpoints.core.audit import DIGEST, Head, breaks, digest_of, is_intact
from codex_checkpoints.core.compaction.records import Installed, Undone
from codex_checkpoints.core.compaction.records import digest_of as digest_of_items
from codex_checkpoints.core.restore.events import Fault, unended
from codex_checkpoints.core.restore.events import verify as verify_events
from codex_checkpoints.core.restore.records import Restore, restore_in
from codex_checkpoints.core.rollout.fields import (
    Json,
    is_object,
    list_of,
    load,
    object_of,
    text_of,
    texts_of,
)
from codex_checkpoints.service.kept import CompactionRecords, RestoreRecords
from codex_checkpoints.service.reading.session_file import fingerprint, lines_of
from codex_checkpoints.service.refusal import Refusal, one_named, reading
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import UnreadableSource
from codex_checkpoints.storage.durable import UnreadableRecord
from codex_checkpoints.storage.records import IMPORTS, RESTORES
from codex_checkpoints.values import frozen

Look = Fault | Literal["same"] | None
"""What came of a look at a file: None where it is gone."""


def _beginnings(
    restores: Iterable[Restore], compactions: Iterable[Installed]
) -> Iterator[tuple[Fault, str, int | None]]:
    """Yield the recorded beginnings of files: the fault if one differs, its digest and its size.

    Of a session only the newest compaction checks the bytes in front of it: they include the rest.
    """
    for each in restores:
        branch = Fault("changed_branch", each.operation_id, each.session_id)
        source = Fault("changed_source", each.operation_id, each.source_session_id)
        yield branch, each.branch_digest, each.branch_bytes
        yield source, each.source_digest, each.source_bytes
    for each in {each.source.session_id: each for each in compactions}.values():
        source = Fault("changed_source", each.compaction_id, each.source.session_id)
        yield source, each.source.prefix, each.source.bytes_before


def _look(sessions: Sessions, fault: Fault, digest: str, size: int | None) -> Look:
    """Return the fault where the first bytes of its session have another digest."""
    paths = _paths(sessions, fault.session_id)
    if size is None or not paths:
        return None
    reader = sessions.catalogue.reader
    try:
        same = any(fingerprint(reader, path, size)[0] == digest for path in paths)
    except UnreadableSource:
        return None
    return "same" if same else fault


def _continued(sessions: Sessions, record: Installed) -> Look:
    paths = _paths(sessions, record.session_id)
    try:
        found = [digest_of_items(_replacement(sessions, path)) for path in paths]
    except UnreadableSource:
        return None
    if not found:
        return None
    same = record.replacement in found
    return "same" if same else Fault("changed_branch", record.compaction_id, record.session_id)


def _replacement(sessions: Sessions, path: str) -> list[Json]:
    """Return the items that a session of ours begins with; raises `UnreadableSource`."""
    line = next(islice(lines_of(sessions.catalogue.reader, path), 1, 2), b"")
    payload = object_of(object_of(load(line)).get("payload"))
    return [*map(object_of, list_of(payload.get("replacement_history")))]


def _paths(sessions: Sessions, session_id: str | None) -> list[str]:
    return [row.path for row in sessions.catalogue.files_of(session_id or "")]


_SEALED = (
    "PackExported",
    "PackImported",
    "CompactionBlocked",
    "CompactionFailed",
    "CompactionInstalled",
    "CompactionObserved",
    "CompactionUndone",
)
"""The events that had a digest before every line was written with one, beside those of restores."""
_DONE = ("RestoreCompleted", "PackImported")
"""The events that end an operation which left records."""
_WITH_RECORDS = (None, "BranchCreated", *_DONE)
"""The events that come behind the records of an operation, and a record, which has no type."""
_PACKED = "packDigest"
"""What the record and the event of an import have, and those of a restore have not."""


@frozen
class Verified:
    """The number of checks, and the faults; `unavailable` files were not checked."""

    events: int
    records: int
    files: int
    unavailable: int
    findings: tuple[Fault, ...]


def verify(sessions: Sessions) -> Verified:
    """Check the audit, and records and files of operations; refuses `storage_error`.

    Others may write meanwhile, so the order of reading matters: a recorded operation that does not
    run has all its events, an operation with all events has its records, and an operation of the
    audit that does not run has its end.
    """
    records = sessions.records
    with reading("records"):
        open_before = frozenset(unended(records.audit.events()))
        lines, changes = _lines(sessions), _changes(sessions)
        under_way = frozenset(records.undertakings())
        begun = map(RestoreRecords(records).begun, under_way)
        running = {each.operation.operation_id for each in begun if each}
        head = records.audit.head()  # first: the audit only grows
        audit = tuple(records.audit.lines())
        later = _lines(sessions)
    log = [object_of(line) for line, _ in audit]
    intact = [line for _, line in lines if is_intact(line)]
    ended = [line for line in intact if line.get("sessionId") not in under_way]
    restores = {each.operation_id: each for each in map(restore_in, intact) if each is not None}
    compactions = [each for each in changes if isinstance(each, Installed)]
    began = [*_beginnings(restores.values(), compactions)]
    sessions.pace.expect(sum(size or 0 for _, _, size in began))
    found = [_look(sessions, *each) for each in began]
    found += [_continued(sessions, each) for each in compactions if each.into == "new"]
    unavailable = sum(look is None for look in found)
    cut = [each for each in unended(log) if each in open_before and each not in running]
    findings = (
        *_changed_lines(audit, log, head),
        *(
            Fault("changed_record", text_of(line.get("operationId")), session_id)
            for session_id, line in lines
            if not is_intact(line)
        ),
        *_lacking_events(log, ended, cut),
        *_lacking_changes(log, [each for each in changes if each.compaction_id not in under_way]),
        *_lacking_records(sessions, (*ended, *log), later),
        *(look for look in found if isinstance(look, Fault)),
    )
    events = sum(map(bool, log))
    return Verified(events, len(lines), len(found) - unavailable, unavailable, findings)


_Lines = list[tuple[str, Json]]
"""Records of restores and of imports, each with the session that it lies with."""


def _lines(sessions: Sessions) -> _Lines:
    return [
        (session_id, object_of(line))
        for name in (RESTORES, IMPORTS)
        for session_id in sorted(sessions.records.holding(name))
        for line in sessions.records.lines(session_id, name)
    ]


def _changes(sessions: Sessions) -> tuple[Installed | Undone, ...]:
    """Return the recorded compactions and undoings, each once, the newest last."""
    records = CompactionRecords(sessions.records)
    found = {
        (type(record), record.compaction_id): record
        for session_id in records.holders()
        for record in records.read(session_id)
        if isinstance(record, Installed | Undone)
    }
    return tuple(sorted(found.values(), key=lambda record: record.at))


def _changed_lines(
    audit: Sequence[tuple[object, str]], log: Sequence[Json], head: Head | None
) -> list[Fault]:
    """Return the faults of the audit by itself; `log` has an empty event for a line that is none.

    A line without its end was left by a crash.
    """
    found = [*verify_events(log)]
    known = {each.line for each in found if each.code == "changed_line"}
    for number, ((line, _), event) in enumerate(zip(audit, log, strict=True), 1):
        damaged = not is_object(line) and not (isinstance(line, UnreadableRecord) and line.torn)
        seals = DIGEST in event or event.get("type") in _SEALED
        if (damaged or (seals and not is_intact(event))) and number not in known:
            known.add(number)
            found.append(Fault("changed_line", text_of(event.get("operationId")), line=number))
    chain = breaks(zip(log, (digest for _, digest in audit), strict=True), head)
    for number in dict.fromkeys(chain):
        if number not in known:  # else the line says it
            behind = number + 1 if number < len(log) else None
            found.append(Fault("broken_chain", None, line=behind))
    return sorted(found, key=lambda fault: fault.line or len(log) + 1)


def _lacking_events(
    log: Sequence[Json], ended: Sequence[Json], cut: Iterable[str]
) -> Iterator[Fault]:
    """Yield the recorded and the `cut` operations that have no closing event."""
    done = {text_of(event.get("operationId")) for event in log if event.get("type") in _DONE}
    recorded = (text_of(line.get("operationId")) for line in ended)
    for each in dict.fromkeys((*recorded, *cut)):
        if each and each not in done:
            yield Fault("missing_lines", each)


def _lacking_changes(log: Sequence[Json], changes: Iterable[Installed | Undone]) -> Iterator[Fault]:
    told = {(event.get("type"), event.get("operationId")) for event in log}
    for change in changes:
        if (f"Compaction{type(change).__name__}", change.compaction_id) not in told:
            yield Fault("missing_lines", change.compaction_id)


def _lacking_records(sessions: Sessions, told: Iterable[Json], later: _Lines) -> Iterator[Fault]:
    here = {row.session_id for row in sessions.catalogue.rows().values()}
    found = {(session_id, text_of(line.get("operationId"))) for session_id, line in later}
    wanted: dict[tuple[str | None, str | None], None] = {}
    for each in told:
        if each.get("type") in _WITH_RECORDS:
            operation_id = text_of(each.get("operationId"))
            wanted[text_of(each.get("sessionId")), operation_id] = None
            if _PACKED not in each:  # a pack comes from another home
                wanted[text_of(each.get("sourceSessionId")), operation_id] = None
    for session_id, operation_id in wanted:
        if session_id in here and (session_id, operation_id) not in found:
            yield Fault("missing_record", operation_id, session_id)


@frozen
class Listed:
    """A restore and its two sessions, without titles where they are gone; details have the pack."""

    record: Restore
    branch_title: str | None
    branch_available: bool
    source_title: str | None
    source_available: bool
    pack: str | None = None


def restores(sessions: Sessions, session: str | None = None) -> tuple[Listed, ...]:
    """Return the restores of a session, as source or branch, or all; the oldest first.

    A session that is gone has still its id in records. Refuses `unknown_session`,
    `ambiguous_session`.
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
    return _listed(sessions, known[name], _pack(sessions, known[name]))


def audit(
    sessions: Sessions, session: str | None = None, operation: str | None = None
) -> tuple[Json, ...]:
    """Return the events of a session, as source or branch, or of an operation, or all.

    Those of a session are all of the operations that name it: the first events of a restore do
    not name its branch.  They are in the order of writing. Refuses `storage_error`.
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


def _listed(sessions: Sessions, record: Restore, pack: str | None = None) -> Listed:
    def side(session_id: str) -> tuple[str | None, bool]:
        row = sessions.catalogue.current().get(session_id)
        return (None, False) if row is None else (sessions.title(row), True)

    return Listed(record, *side(record.session_id), *side(record.source_session_id), pack)


def _pack(sessions: Sessions, record: Restore) -> str | None:
    """Read the pack from the branch; None where it is gone or another one."""
    row = sessions.catalogue.current().get(record.session_id)
    if row is None or record.pack is None:
        return None
    try:
        items = _replacement(sessions, row.path)
    except UnreadableSource:
        return None
    text = "".join(texts_of(items[0].get("content"))) if items else ""
    return text if digest_of(text.encode()) == record.pack.digest else None


def _sessions_of(event: Json) -> tuple[str | None, str | None]:
    return text_of(event.get("sessionId")), text_of(event.get("sourceSessionId"))
