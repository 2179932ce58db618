"""Whether session files still begin with the bytes that records of operations tell of.

Codex and its user may go on with every session, so of a file only the bytes of then are looked at.
The records themselves are checked in `verifying`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.core.compaction.records import digest_of as digest_of_items
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.rollout.fields import Json, is_list, load, object_of
from codex_checkpoints.service.reading.fingerprints import fingerprint
from codex_checkpoints.service.reading.lines import lines_of
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import UnreadableSource
from codex_checkpoints.values import frozen

Code = Literal[
    "changed_line",
    "missing_lines",
    "wrong_order",
    "changed_record",
    "missing_record",
    "changed_branch",
    "changed_source",
]


@frozen
class Fault:
    """Something that is not as it was written.

    `code` is `changed_line`, `missing_lines` or `wrong_order` for the audit (`line` counts from 1;
    null where a whole end is gone), `changed_record` for the record of a restore or an import,
    `missing_record` for one that a session lacks and another place tells of, `changed_branch` for
    what a session began with that a restore or a compaction made, `changed_source` for the bytes
    that its source had then.
    """

    code: Code
    operation_id: str | None
    session_id: str | None = None
    line: int | None = None


Look = Fault | Literal["same"] | None
"""What came of a look at a file: None where it is gone."""


def looks(
    sessions: Sessions,
    restores: Sequence[Restore],
    compactions: Sequence[Installed],
    log: Sequence[Json],
) -> list[Look]:
    """Look at the files of restores and compactions, the newest of these last.

    Of a session only the newest compaction is asked what was in front of it: that is all of it.
    """
    sources = {each.source.session_id: each for each in compactions}
    sessions.pace.expect(sum(map(_size_of, log)))
    sessions.pace.expect(sum(each.source.bytes_before for each in sources.values()))
    return [
        *(look for record in restores for look in _restored(sessions, record, log)),
        *(_compacted(sessions, each) for each in sources.values()),
        *(_continued(sessions, each) for each in compactions if each.into == "new"),
    ]


def _size_of(event: Json) -> int:
    """Return how many bytes of a file an event tells of: so many are read again."""
    told = event.get("branchBytes"), event.get("sourceBytes")
    return sum(size for size in told if type(size) is int and size > 0)


def _restored(sessions: Sessions, record: Restore, log: Sequence[Json]) -> Iterator[Look]:
    """Look at branch and source as far as they went then; yield None for one that is gone.

    The record tells how far that was; for one of an earlier version the events do.
    """
    own = [event for event in log if event.get("operationId") == record.operation_id]
    sizes = {str(event.get("type")): event for event in own}
    branch = record.branch_bytes or sizes.get("BranchCreated", {}).get("branchBytes")
    source = record.source_bytes or sizes.get("RestoreValidated", {}).get("sourceBytes")
    sides: tuple[tuple[Code, str, str, object], ...] = (
        ("changed_branch", record.session_id, record.branch_digest, branch),
        ("changed_source", record.source_session_id, record.source_digest, source),
    )
    for code, session_id, digest, size in sides:
        same = _begins_as(sessions, session_id, digest, size)
        found = "same" if same else Fault(code, record.operation_id, session_id)
        yield None if same is None else found


def _begins_as(sessions: Sessions, session_id: str, digest: str, size: object) -> bool | None:
    """Return whether the first bytes of a session have a digest, None where there are none."""
    paths = _paths(sessions, session_id)
    if type(size) is not int or not paths:
        return None
    reader = sessions.catalogue.reader
    try:
        return any(fingerprint(reader, path, size)[0] == digest for path in paths)
    except UnreadableSource:
        return None


def _compacted(sessions: Sessions, record: Installed) -> Look:
    """Look at what was compacted, as far as it went then."""
    source = record.source
    same = _begins_as(sessions, source.session_id, source.prefix, source.bytes_before)
    if same is None:
        return None
    return "same" if same else Fault("changed_source", record.compaction_id, source.session_id)


def _continued(sessions: Sessions, record: Installed) -> Look:
    """Look at the replacement that a session begins with which a compaction made."""
    reader = sessions.catalogue.reader
    try:
        found = [
            digest_of_items(_replacement(islice(lines_of(reader, path), 1, 2)))
            for path in _paths(sessions, record.session_id)
        ]
    except UnreadableSource:
        return None
    if not found:
        return None
    same = record.replacement in found
    return "same" if same else Fault("changed_branch", record.compaction_id, record.session_id)


def _replacement(lines: Iterable[bytes]) -> list[Json]:
    """Return the items in the first of some lines."""
    payload = object_of(object_of(load(next(iter(lines), b""))).get("payload"))
    items = payload.get("replacement_history")
    return list(map(object_of, items)) if is_list(items) else []


def _paths(sessions: Sessions, session_id: str) -> list[str]:
    """Return where the files of a session lie; there may be older segments among them."""
    rows = sessions.catalogue.rows().values()
    return [row.path for row in rows if row.session_id == session_id and row.error is None]
