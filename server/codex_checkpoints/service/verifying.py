"""Whether what was written of restores and packs is still that: digests computed again (AGN-62).

Codex and its user may go on with both sessions, so of a file only the bytes of then are looked at.
A file that is gone is counted, and is no fault.

An operation is told in three places: in the audit, in the record with its source and in the one
with its branch.  What one of them knows and another lacks is a fault, as long as the session is
here that ought to have it.  An operation that ended before there was a branch stands in the audit
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.restore.auditing import verify as verify_events
from codex_checkpoints.core.restore.records import Restore, restore_in
from codex_checkpoints.core.restore.sealing import is_intact
from codex_checkpoints.core.rollout.fields import Json, object_of, text_of
from codex_checkpoints.journal import StorageError
from codex_checkpoints.records import IMPORTS, RESTORES
from codex_checkpoints.service.fingerprints import fingerprint
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import UnreadableSource

Code = Literal[
    "changed_line",
    "missing_lines",
    "wrong_order",
    "changed_record",
    "missing_record",
    "changed_branch",
    "changed_source",
]


_OF_PACKS = ("PackExported", "PackImported")
_DONE = ("RestoreCompleted", "PackImported")
"""The events that end an operation which left records."""
_WITH_RECORDS = (None, "BranchCreated", *_DONE)
"""The events that come behind the records of an operation, and a record, which has no type."""
_PACKED = "packDigest"
"""What the record and the event of an import have, and those of a restore have not."""


@frozen
class Fault:
    """Something that is not as it was written; `line` is one of the audit, from 1."""

    code: Code
    operation_id: str | None
    session_id: str | None = None
    line: int | None = None


@frozen
class Verified:
    """How much was checked, and what is wrong; files that are gone are `unavailable`."""

    events: int
    records: int
    files: int
    unavailable: int
    findings: tuple[Fault, ...]


def verify(sessions: Sessions) -> Verified:
    """Check audit, records and files of restores, and those of packs; refuses `storage_error`."""
    try:
        # In this order: what is recorded, and not under way any more, has its events in the audit
        # and both its records; what has its events there has had its records before.
        lines = _lines(sessions)
        under_way = frozenset(sessions.records.undertakings())
        log = tuple(map(object_of, sessions.records.events()))
        later = _lines(sessions)
    except StorageError as error:
        message = f"the records cannot be read: {error}"
        raise Refusal("storage_error", message, {"reason": str(error)}) from error
    findings = [Fault(each.code, each.operation_id, line=each.line) for each in verify_events(log)]
    findings += [
        Fault("changed_line", text_of(event.get("operationId")), line=number)
        for number, event in enumerate(log, 1)
        if event.get("type") in _OF_PACKS and not is_intact(event)
    ]
    findings += [
        Fault("changed_record", text_of(line.get("operationId")), session_id)
        for session_id, line in lines
        if not is_intact(line)
    ]
    ended = [
        line for _, line in lines if is_intact(line) and line.get("sessionId") not in under_way
    ]
    findings += _lacking_events(ended, log)
    findings += _lacking_records(sessions, (*ended, *log), later)
    records = {
        record.operation_id: record
        for _, line in lines
        if is_intact(line) and (record := restore_in(line)) is not None
    }
    sessions.pace.expect(sum(map(_size_of, log)))
    looks = [look for record in records.values() for look in _files(sessions, record, log)]
    findings += [look for look in looks if isinstance(look, Fault)]
    unavailable = sum(look is None for look in looks)
    return Verified(len(log), len(lines), len(looks) - unavailable, unavailable, tuple(findings))


_Lines = list[tuple[str, Json]]
"""Records of restores and of imports, each with the session that it lies with."""


def _lines(sessions: Sessions) -> _Lines:
    return [
        (session_id, object_of(line))
        for name in (RESTORES, IMPORTS)
        for session_id in sorted(sessions.records.holding(name))
        for line in sessions.records.lines(session_id, name)
    ]


def _lacking_events(ended: Iterable[Json], log: Iterable[Json]) -> Iterator[Fault]:
    """Yield the operations that have a record, and no end in the audit."""
    told = {text_of(event.get("operationId")) for event in log if event.get("type") in _DONE}
    made = dict.fromkeys(text_of(line.get("operationId")) for line in ended)
    yield from (Fault("missing_lines", each) for each in made if each and each not in told)


def _lacking_records(sessions: Sessions, told: Iterable[Json], lines: _Lines) -> Iterator[Fault]:
    """Yield the sessions that are here and lack a record which another place tells of."""
    here = {row.session_id for row in sessions.catalogue.rows().values()}
    found = {(session_id, text_of(line.get("operationId"))) for session_id, line in lines}
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


def _size_of(event: Json) -> int:
    """Return how many bytes of a file an event tells of: so many are read again."""
    told = event.get("branchBytes"), event.get("sourceBytes")
    return sum(size for size in told if type(size) is int and size > 0)


def _files(
    sessions: Sessions, record: Restore, log: tuple[Json, ...]
) -> tuple[Fault | Literal["same"] | None, ...]:
    """Look at branch and source as far as they went then.

    The record tells how far that was; for one of an earlier version the events do.
    """
    own = [event for event in log if event.get("operationId") == record.operation_id]
    sizes = {str(event.get("type")): event for event in own}
    branch, source = record.branch_bytes, record.source_bytes
    branch = branch or sizes.get("BranchCreated", {}).get("branchBytes")
    source = source or sizes.get("RestoreValidated", {}).get("sourceBytes")
    return (
        _look(sessions, record, record.session_id, branch, "changed_branch"),
        _look(sessions, record, record.source_session_id, source, "changed_source"),
    )


def _look(
    sessions: Sessions,
    record: Restore,
    session_id: str,
    size: object,
    code: Literal["changed_branch", "changed_source"],
) -> Fault | Literal["same"] | None:
    """Compare the first bytes of a session's files; the one of then may be an older segment."""
    rows = sessions.catalogue.rows().values()
    paths = [row.path for row in rows if row.session_id == session_id and row.error is None]
    if type(size) is not int or not paths:
        return None
    wanted = record.branch_digest if code == "changed_branch" else record.source_digest
    try:
        reader = sessions.catalogue.reader
        same = any(fingerprint(reader, path, size)[0] == wanted for path in paths)
    except UnreadableSource:
        return None
    return "same" if same else Fault(code, record.operation_id, session_id)
