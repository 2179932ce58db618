"""Makes a branch of a fetched session, with its notes, markers and lineage.

The branch is a new session file: the source need not be here.  The fetched data is untrusted: its
records were checked like a pack's, and a note is SUSPECT until it is accepted here (TRU-7).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from functools import partial

import orjson
from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.memory import line_of as noted
from codex_checkpoints.core.checkpoint.records import IMPORTED, UNKNOWN_HASH
from codex_checkpoints.core.compaction.replacement_lines import (
    SourceSession,
    moment_of,
    session_meta,
)
from codex_checkpoints.core.converters import stored
from codex_checkpoints.core.fields import (
    Json,
    is_object,
    list_of,
    load,
    object_of,
    text_of,
    whole_of,
)
from codex_checkpoints.core.portable.pack import NoteEvent, Pack
from codex_checkpoints.core.restore import markers
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.core.restore.markers import Marker, MarkerSet
from codex_checkpoints.service.operation import (
    SingleStep,
    added,
    atomic_operation,
    operation_of,
    removed,
)
from codex_checkpoints.service.records.operation_records import storing_restore
from codex_checkpoints.service.records.pull_records import Pull, PullRecords
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.remote.fetch import Fetched
from codex_checkpoints.service.remote.refusals import remote_refusals
from codex_checkpoints.service.restore.branch_copy import QUIET, WindowNames
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.atomic_files import own, storage_errors
from codex_checkpoints.storage.contract import Copied, HistoryItem, NewThread, is_windows_path
from codex_checkpoints.storage.records import MARKERS, PULLS, UPDATES
from codex_checkpoints.storage.remote.contract import SessionRow, damaged, is_within

logger = logging.getLogger(__name__)

PULLED = "SessionPulled"
"""The event of a completed pull."""


@frozen
class Pulled:
    """A pulled branch, and the row of its source."""

    session_id: str
    operation_id: str
    source: SessionRow
    cwd: str
    notes: int
    markers: int


def pull(sessions: Sessions, fetched: Fetched, folder: str) -> Pulled:
    """Make a branch of a fetched session for an existing folder; Codex can resume it on return.

    Refuses `remote_damaged`, `storage_error`; then nothing was written.  Raises `Cancelled`.
    """
    row, pack, records = fetched.row, fetched.pack, sessions.records
    operation_id, branch_id, at = stamps.new_id(), stamps.new_id(), stamps.now()
    ends = row.owner, row.machine, row.generation, row.size, row.prefix
    made = Pull(operation_id, branch_id, row.session_id, at, *ends, pack.lineage, row.title)
    updates = [*_updates(pack.notes, row.seq_shift, at)]
    marker_set = _markers(pack, row.session_id, branch_id)
    sessions.progress.expect(row.size)
    work = _work(sessions, branch_id, made)
    with (
        storing_restore(branch_id),
        atomic_operation(records, branch_id, work) as prepare,
        remote_refusals(fetched.place),
        closing(_lines(sessions, fetched)) as lines,
    ):
        prepare({"pull": {"operationId": operation_id}})
        added(records, branch_id, PULLS, [stored.unstructure(made)])
        added(records, branch_id, UPDATES, updates)
        added(records, branch_id, MARKERS, markers.lines_of(marker_set, at))
        new = _thread(row, next(lines), lines, folder, branch_id, at)
        sessions.threads.create(new, datetime.fromisoformat(at))
        work.published = True
    _name(sessions, branch_id, row)
    counts = len(updates), len(marker_set.markers)
    return Pulled(branch_id, operation_id, row, folder, *counts)


def reopened_pull(sessions: Sessions, branch_id: str) -> SingleStep:
    """Return the pull that a process recorded."""
    return _work(sessions, branch_id, PullRecords(sessions.records).made(branch_id))


def _work(sessions: Sessions, branch_id: str, made: Pull | None) -> SingleStep:
    """Return the work of a pull; its records are stored before the branch is published."""

    def is_published() -> bool:
        return made is not None and sessions.catalogue.refresh_thread(branch_id) is not None

    event: Mapping[str, object] = {}
    if made is not None:
        ids = made.operation_id, made.session_id, made.source_session_id
        operation = operation_of(sessions.settings, *ids)
        more = {"generation": made.generation, "bytes": made.size, "owner": made.owner}
        event = event_of(PULLED, made.pulled_at, operation, more)
    undo = partial(removed, sessions.records, branch_id, (PULLS, UPDATES, MARKERS))
    return SingleStep(sessions.records, event, is_published, undo)


def _updates(notes: Iterable[NoteEvent], shift: int, at: str) -> Iterator[Mapping[str, object]]:
    """Yield the lines of notes, numbered as the branch's lines, without hashes.

    A fact is also based on its import, so it is SUSPECT until it is accepted here.
    """
    for note in notes:
        seq = max(1, note.seq - shift)
        turn_id = note.turn_id if note.seq > shift else None
        stamp = note.at or at
        if note.revoked is not None:
            revokes = note.revoked.kind, note.revoked.id
            yield noted(Update(seq, turn_id, None, {}, revokes, stamp), "")
            continue
        payload, hashes = dict(object_of(note.payload)), dict[str, str]()
        if payload.get("kind") == "fact":
            resting = [
                each
                for each in list_of(payload.get("dependsOn"))
                if object_of(each).get("uri") != IMPORTED
            ]
            payload["dependsOn"] = [{"uri": IMPORTED}, *resting]
            hashes = {IMPORTED: UNKNOWN_HASH}
        yield noted(Update(seq, turn_id, payload, hashes, at=stamp), stamps.new_id())


def _markers(pack: Pack, source_id: str, branch_id: str) -> MarkerSet:
    """Return the markers and pins of a branch, which has the turns of its source."""
    known = tuple(
        Marker(each.checkpoint_id, each.session_id, each.turn_id, each.label, each.created_at)
        for each in pack.markers
    )
    kept = [turn.turn_id for turn in pack.turns if turn.session_id == source_id]
    return markers.copied(MarkerSet(known, pack.pins), source_id, branch_id, kept, 0)


def _lines(sessions: Sessions, fetched: Fetched) -> Generator[bytes]:
    """Yield the lines of a fetched history without their LF; raises `Cancelled`, `OSError`."""
    with storage_errors(), open(fetched.path, "rb", opener=own) as file:
        for line in file:
            sessions.progress.step(len(line))
            yield line.removesuffix(b"\n")
    sessions.progress.commit()


def _thread(  # noqa: PLR0913, PLR0917 - the source, the branch, and the time
    row: SessionRow, first: bytes, lines: Iterator[bytes], folder: str, branch_id: str, at: str
) -> NewThread:
    """Return the session file to create."""
    head = object_of(object_of(load(first)).get("payload"))
    if object_of(load(first)).get("type") != "session_meta":
        raise damaged("its first line is not the head of a session")
    before, window = text_of(head.get("cwd")), stamps.new_id()
    source = SourceSession(row.session_id, folder, head, None)
    # The model provider is the other machine's; Codex uses its own setting (WIN-13).
    meta = dict(session_meta(branch_id, window, source, moment_of(at)))
    meta.pop("model_provider", None)
    start = whole_of(head.get("subagent_history_start_ordinal"))
    if start is not None:
        meta["subagent_history_start_ordinal"] = start
    names = WindowNames(window, stamps.new_id)
    return NewThread(meta, (_arrived(line, names, before, folder) for line in lines))


def _arrived(
    line: bytes, names: WindowNames, before: str | None, folder: str
) -> HistoryItem | Copied:
    """Return a line of the remote as a line of the branch; raises `RemoteDamaged`."""
    record = load(line)
    if not is_object(record):
        raise damaged("one of its lines is not a record")
    payload = object_of(record.get("payload"))
    match record.get("type"), payload.get("type"):
        case ("session_meta", _) | ("event_msg", "thread_settings_applied"):
            # Codex ignores everything before a second head, and would take over the permissions
            # and the folders of the other machine.
            return evolve(QUIET, timestamp=text_of(record.get("timestamp")))
        case "compacted", _:
            return Copied(names.renamed(line))
        case "turn_context", _:
            return Copied(_settled(record, payload, before, folder))
        case _:
            return Copied(line)


_PERMISSIONS = frozenset(
    {"approval_policy", "approvals_reviewer", "permission_profile", "sandbox_policy"}
)
_CAREFUL: Json = {"approval_policy": "on-request", "sandbox_policy": {"type": "read-only"}}
"""Codex ignores the settings of a turn without these two; its own sandbox setting wins."""


def _settled(record: Json, payload: Json, before: str | None, folder: str) -> bytes:
    """Return the settings of a turn with the folder of the branch and careful permissions.

    Codex takes the approvals of a resumed session from these settings: a machine that never asks
    must not make this one do so.
    """
    kept = {key: each for key, each in payload.items() if key not in _PERMISSIONS}
    cwd = text_of(payload.get("cwd"))
    if cwd is not None:
        kept["cwd"] = _moved(cwd, before, folder)
    return orjson.dumps({**record, "payload": {**kept, **_CAREFUL}})


def is_plain_folder(path: str) -> bool:
    """Return whether a path of another machine is absolute, there or here, and without `..`."""
    is_absolute = path.startswith("/") or is_windows_path(path)
    return is_absolute and path.isprintable() and not {".", ".."} & {*re.split(r"[/\\]", path)}


def _moved(cwd: str, before: str | None, folder: str) -> str:
    """Return a folder of the other machine mapped to the branch, if it is in the session's.

    A path with `..`, or a relative one, could lead out of it: it is the folder of the branch then.
    """
    if not is_plain_folder(cwd):
        return folder
    if before is None or not is_within(cwd, before):
        return cwd
    below = cwd[len(before) :]
    inside = os.path.join(folder, *filter(None, below.replace("\\", "/").split("/")))
    return inside if os.path.isdir(inside) else folder


def _name(sessions: Sessions, branch_id: str, row: SessionRow) -> None:
    """Give a branch the title of its source, only in Codex's list."""
    if row.title is None:
        return
    try:
        sessions.threads.rename(branch_id, row.title, listed=True)
    except Refusal as refusal:
        logger.warning("%s: the branch has no name: %s", refusal.code, refusal.message)
