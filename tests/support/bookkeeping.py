"""Check the records of operations against the audit and the session files.

Every operation that is recorded has its events, in order and once; every operation of the audit
has its records, with its source and with its branch; session files begin with the recorded bytes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from codex_checkpoints.core.compaction.records import Installed, Undone
from codex_checkpoints.core.compaction.records import digest_of as digest_of_items
from codex_checkpoints.core.fields import Json, list_of, load, object_of, text_of
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.records import restores_in
from codex_checkpoints.service.reading.session_file import fingerprint, lines_of
from codex_checkpoints.service.records.operation_records import CompactionRecords
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.records import IMPORTS, PULLS, RESTORES

_SOFT = (
    "RestoreRequested",
    "RestoreValidated",
    "BranchCreated",
    "StateTransferred",
    "RestoreCompleted",
)
_HARD = (*_SOFT[:-1], "StatePackPrepared", "LLMChainReset", "RestoreCompleted")
ORDER: Mapping[RestoreMode, tuple[str, ...]] = {"soft": _SOFT, "hard": _HARD}
"""The events of a restore that succeeds (AGN-62); others may stand between them."""

_BETWEEN = frozenset({"DriftDetected", "ArtifactMissing", "FallbackUsed", "PackTruncated"})
_ENDS = ("RestoreCompleted", "RestoreFailed")
_DONE = ("RestoreCompleted", "PackImported", "SessionPulled")


def faults(sessions: Sessions) -> list[str]:
    """Return each contradiction between records, audit and session files, in words."""
    log = [object_of(event) for event in sessions.records.audit.events()]
    return [
        *_order_of_events(log),
        *_events_of_records(sessions, log),
        *_records_of_events(sessions, log),
        *_events_of_compactions(sessions, log),
        *_beginnings(sessions),
    ]


def _records(sessions: Sessions) -> list[tuple[str, Json]]:
    """Return the records of restores and imports, each with the session that holds it.

    Records of operations that a later start completes or removes are not among them.
    """
    unfinished = frozenset(sessions.records.operations_begun())
    found = [
        (session_id, object_of(line))
        for name in (RESTORES, IMPORTS, PULLS)
        for session_id in sorted(sessions.records.holding(name))
        for line in sessions.records.lines(session_id, name)
    ]
    return [each for each in found if each[1].get("sessionId") not in unfinished]


def _compactions(sessions: Sessions) -> list[Installed | Undone]:
    records = CompactionRecords(sessions.records)
    found = {
        (type(record), record.compaction_id): record
        for session_id in records.holders()
        for record in records.read(session_id)
        if isinstance(record, Installed | Undone)
    }
    return sorted(found.values(), key=lambda record: record.at)


def _order_of_events(log: Sequence[Json]) -> Iterator[str]:
    running: dict[str, list[Json]] = {}
    for event in log:
        operation = text_of(event.get("operationId"))
        if operation is not None and event.get("restoreMode") is not None:
            running.setdefault(operation, []).append(event)
    for operation, events in running.items():
        kinds = [str(event["type"]) for event in events]
        steps = [event.get("step") for event in events]
        expected = ORDER["hard" if events[0]["restoreMode"] == "hard" else "soft"]
        plain = tuple(kind for kind in kinds if kind not in _BETWEEN)
        failed = plain[-1:] == ("RestoreFailed",) and plain[:-1] == expected[: len(plain) - 1]
        if plain != expected and not failed:
            yield f"events of {operation}: {kinds}"
        if steps != list(range(len(steps))):
            yield f"steps of {operation}: {steps}"
        if sum(kind in _ENDS for kind in kinds) != 1:
            yield f"ends of {operation}: {kinds}"


def _events_of_records(sessions: Sessions, log: Sequence[Json]) -> Iterator[str]:
    done = [text_of(event.get("operationId")) for event in log if event.get("type") in _DONE]
    for operation in {text_of(record.get("operationId")) for _, record in _records(sessions)}:
        if done.count(operation) != 1:
            yield f"{operation} has {done.count(operation)} closing events"


def _records_of_events(sessions: Sessions, log: Sequence[Json]) -> Iterator[str]:
    here = {row.session_id for row in sessions.catalogue.rows().values()}
    records = _records(sessions)
    found = {(session_id, record.get("operationId")) for session_id, record in records}
    told: Iterable[Json] = (
        *(record for _, record in records),
        *(event for event in log if event.get("type") in ("BranchCreated", *_DONE)),
    )
    for each in told:
        # The source of a pack or a pull may be a session of another home.
        from_elsewhere = not {"packDigest", "generation"}.isdisjoint(each)
        keys = ("sessionId",) if from_elsewhere else ("sessionId", "sourceSessionId")
        for session_id in (text_of(each.get(key)) for key in keys):
            if session_id in here and (session_id, each.get("operationId")) not in found:
                yield f"{session_id} lacks the record of {each.get('operationId')}"


def _events_of_compactions(sessions: Sessions, log: Sequence[Json]) -> Iterator[str]:
    told = [(event.get("type"), event.get("operationId")) for event in log]
    for change in _compactions(sessions):
        count = told.count((f"Compaction{type(change).__name__}", change.compaction_id))
        if count != 1:
            yield f"{type(change).__name__} {change.compaction_id} has {count} events"


def _beginnings(sessions: Sessions) -> Iterator[str]:
    """Yield the sessions of which no file begins with the bytes that a record names."""
    named: list[tuple[str, str, int | None]] = []
    for session_id in sessions.records.holding(RESTORES):
        for each in restores_in(sessions.records.lines(session_id, RESTORES)):
            named.append((each.session_id, each.branch_digest, each.branch_bytes))
            named.append((each.source_session_id, each.source_digest, each.source_bytes))
    changes = [each for each in _compactions(sessions) if isinstance(each, Installed)]
    sources = {each.source.session_id: each.source for each in changes}.values()
    named += [(each.session_id, each.prefix, each.bytes_before) for each in sources]
    reader = sessions.catalogue.reader
    for session_id, digest, size in named:
        paths = [row.path for row in sessions.catalogue.files_of(session_id)]
        if size is not None and paths:
            digests = [fingerprint(reader, path, size)[0] for path in paths]
            if digest not in digests:
                yield f"{session_id} does not begin with the recorded {size} bytes"
    for each in changes:
        paths = [row.path for row in sessions.catalogue.files_of(each.session_id)]
        found = [_replacement(sessions, path) for path in paths]
        if each.into == "new" and found and each.replacement not in found:
            yield f"{each.session_id} does not begin with its replacement"


def _replacement(sessions: Sessions, path: str) -> str:
    line = next(islice(lines_of(sessions.catalogue.reader, path), 1, 2), b"")
    payload = object_of(object_of(load(line)).get("payload"))
    return digest_of_items([*map(object_of, list_of(payload.get("replacement_history")))])
