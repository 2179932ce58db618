"""Whether what was written of operations is still that: digests computed again (AGN-62).

Every line of the audit that has a digest is held against it, whichever operation it is of.  A line
that no one can read any more is a changed one; one that only lacks its end was left by a crash.

Session files are looked at in `file_checks`; one that is gone is counted, and is no fault.

An operation is told in three places: in the audit, in the record with its source and in the one
with its branch.  What one of them knows and another lacks is a fault, as long as the session is
here that ought to have it.  An operation that ended before there was a branch stands in the audit
alone; there at least it has its end, unless it is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.core.restore.events import unended
from codex_checkpoints.core.restore.events import verify as verify_events
from codex_checkpoints.core.restore.records import restore_in
from codex_checkpoints.core.restore.sealing import DIGEST, is_intact
from codex_checkpoints.core.rollout.fields import Json, is_object, object_of, text_of
from codex_checkpoints.durable import StorageError, Unreadable
from codex_checkpoints.records import IMPORTS, RESTORES
from codex_checkpoints.service.compaction_records import CompactionRecords
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore.file_checks import Fault, looks
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.values import frozen

_SEALED = (
    "PackExported",
    "PackImported",
    "CompactionBlocked",
    "CompactionFailed",
    "CompactionInstalled",
    "CompactionObserved",
    "CompactionUndone",
)
"""The events that have a digest, beside those of restores."""
_DONE = ("RestoreCompleted", "PackImported")
"""The events that end an operation which left records."""
_WITH_RECORDS = (None, "BranchCreated", *_DONE)
"""The events that come behind the records of an operation, and a record, which has no type."""
_PACKED = "packDigest"
"""What the record and the event of an import have, and those of a restore have not."""


@frozen
class Verified:
    """How much was checked, and what is wrong with it; `unavailable` files were not checked."""

    events: int
    records: int
    files: int
    unavailable: int
    findings: tuple[Fault, ...]


def verify(sessions: Sessions) -> Verified:
    """Check the audit, and records and files of operations; refuses `storage_error`."""
    try:
        told = _read(sessions)
    except StorageError as error:
        message = f"the records cannot be read: {error}"
        raise Refusal("storage_error", message, {"reason": str(error)}) from error
    restores = map(restore_in, (line for _, line in told.lines if is_intact(line)))
    records = {each.operation_id: each for each in restores if each is not None}
    found = looks(sessions, tuple(records.values()), told.compactions, told.log)
    unavailable = sum(look is None for look in found)
    findings = (
        *_changed(told),
        *_lacking_events(told),
        *_lacking_records(sessions, told),
        *(look for look in found if isinstance(look, Fault)),
    )
    events = sum(map(bool, told.log))
    return Verified(events, len(told.lines), len(found) - unavailable, unavailable, findings)


_Lines = list[tuple[str, Json]]
"""Records of restores and of imports, each with the session that it lies with."""


@frozen
class _Told:
    """What is written down: records and events, and the operations that are under way.

    `open_before` are the operations that had no end when the reading began, `later` the records
    when it was over.  `log` has an event for each line of the audit, an empty one for what is none;
    of these the `damaged` ones, by their numbers, were not merely torn.  The newest of the
    `compactions` is the last.
    """

    open_before: frozenset[str]
    lines: _Lines
    under_way: frozenset[str]
    operations: frozenset[str]
    log: tuple[Json, ...]
    damaged: tuple[int, ...]
    later: _Lines
    compactions: tuple[Installed, ...]

    @property
    def ended(self) -> list[Json]:
        """Return the records of sessions that nobody is making any more."""
        return [
            line
            for _, line in self.lines
            if is_intact(line) and line.get("sessionId") not in self.under_way
        ]


def _read(sessions: Sessions) -> _Told:
    """Read what is written down, while others may go on; raises `StorageError`.

    In this order: what is recorded, and not under way any more, has its events in the audit and
    both its records; what has its events there has had its records before.  What was in the audit,
    and is not under way any more, has its end there by now.
    """
    open_before = frozenset(unended(sessions.records.events()))
    lines = _lines(sessions)
    under_way = frozenset(sessions.records.undertakings())
    operations = _operations(sessions, under_way)
    audit = tuple(sessions.records.audit_lines())
    log, damaged = tuple(map(object_of, audit)), tuple(_damaged(audit))
    later, compactions = _lines(sessions), _compactions(sessions)
    return _Told(open_before, lines, under_way, operations, log, damaged, later, compactions)


def _damaged(audit: Iterable[object]) -> Iterator[int]:
    """Yield the numbers of the lines that are no event, and were not left half-written."""
    for number, line in enumerate(audit, 1):
        torn = isinstance(line, Unreadable) and line.torn
        if not is_object(line) and not torn:
            yield number


def _lines(sessions: Sessions) -> _Lines:
    return [
        (session_id, object_of(line))
        for name in (RESTORES, IMPORTS)
        for session_id in sorted(sessions.records.holding(name))
        for line in sessions.records.lines(session_id, name)
    ]


def _compactions(sessions: Sessions) -> tuple[Installed, ...]:
    """Return the compactions that are recorded, each once, the newest last."""
    records = CompactionRecords(sessions.records)
    found = {
        record.compaction_id: record
        for session_id in sorted(records.holders())
        for record in records.of(session_id)
        if isinstance(record, Installed)
    }
    return tuple(sorted(found.values(), key=lambda record: record.at))


def _operations(sessions: Sessions, under_way: Iterable[str]) -> frozenset[str]:
    """Return the restores that are making these branches, or were when they were killed."""
    restores = RestoreRecords(sessions.records)
    return frozenset(each.operation_id for each in map(restores.begun, under_way) if each)


def _changed(told: _Told) -> Iterator[Fault]:
    """Yield the lines of the audit and the records that are not as they were written."""
    found = [
        Fault(each.code, each.operation_id, line=each.line) for each in verify_events(told.log)
    ]
    known = {each.line for each in found if each.code == "changed_line"}
    for number, event in enumerate(told.log, 1):
        seals = DIGEST in event or event.get("type") in _SEALED
        changed = number in told.damaged or (seals and not is_intact(event))
        if changed and number not in known:
            found.append(Fault("changed_line", text_of(event.get("operationId")), line=number))
    yield from sorted(found, key=lambda fault: fault.line or 0)
    for session_id, line in told.lines:
        if not is_intact(line):
            yield Fault("changed_record", text_of(line.get("operationId")), session_id)


def _lacking_events(told: _Told) -> Iterator[Fault]:
    """Yield the operations that have no end in the audit: those with a record, and those cut."""
    done = {text_of(event.get("operationId")) for event in told.log if event.get("type") in _DONE}
    recorded = (text_of(line.get("operationId")) for line in told.ended)
    open_still = (each for each in unended(told.log) if each in told.open_before)
    cut = (each for each in open_still if each not in told.operations)
    for each in dict.fromkeys((*recorded, *cut)):
        if each and each not in done:
            yield Fault("missing_lines", each)


def _lacking_records(sessions: Sessions, told: _Told) -> Iterator[Fault]:
    """Yield the sessions that are here and lack a record which another place tells of."""
    here = {row.session_id for row in sessions.catalogue.rows().values()}
    found = {(session_id, text_of(line.get("operationId"))) for session_id, line in told.later}
    wanted: dict[tuple[str | None, str | None], None] = {}
    for each in (*told.ended, *told.log):
        if each.get("type") in _WITH_RECORDS:
            operation_id = text_of(each.get("operationId"))
            wanted[text_of(each.get("sessionId")), operation_id] = None
            if _PACKED not in each:  # a pack comes from another home
                wanted[text_of(each.get("sourceSessionId")), operation_id] = None
    for session_id, operation_id in wanted:
        if session_id in here and (session_id, operation_id) not in found:
            yield Fault("missing_record", operation_id, session_id)
