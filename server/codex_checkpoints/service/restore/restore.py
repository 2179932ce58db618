"""Restores a marker into a branch, soft or hard (AGN-9, AGN-31, AGN-84, AGN-85).

The plan is validated first, then the branch is made as one operation, with its events (AGN-61,
AGN-69).  The source is never written.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from attrs import define, evolve, frozen

from codex_checkpoints.codex import resume
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.checkpoint.memory import line_of as noted
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.compaction.replacement_lines import (
    Naming,
    moment_of,
    new_session,
    session_meta,
    token_count,
)
from codex_checkpoints.core.converters import stored
from codex_checkpoints.core.fields import Json, object_of, whole_of
from codex_checkpoints.core.restore import events, markers
from codex_checkpoints.core.restore.pack import PackLine, note_texts, pack_lines
from codex_checkpoints.core.restore.pack_items import TurnSource
from codex_checkpoints.core.restore.recording import transferred
from codex_checkpoints.core.restore.records import Restore, Windows
from codex_checkpoints.service.history.windows import windows_in
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.operation import added, atomic_operation, operation_of, removed
from codex_checkpoints.service.progress import Progress
from codex_checkpoints.service.reading.session_file import fingerprint
from codex_checkpoints.service.records.operation_records import (
    BegunRestore,
    RestoreRecords,
    storing_restore,
)
from codex_checkpoints.service.refusal import Refusal, reading_file
from codex_checkpoints.service.restore.branch_copy import WindowNames, copied_history
from codex_checkpoints.service.restore.plan import (
    Planner,
    RestoreParams,
    RestorePlan,
    RestoreSource,
    asked_of,
    checked,
    find_source,
)
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.atomic_files import Append, StorageError
from codex_checkpoints.storage.contract import Copied, HistoryItem, NewThread, Row, UnreadableSource
from codex_checkpoints.storage.records import MARKERS, OBSERVED, UPDATES

logger = logging.getLogger(__name__)


@frozen
class RestoreResult:
    """The result of a restore; a preview has neither ids nor a time.

    `lines` are the lines for a pack of any budget; only a preview has them.  `notes` are the texts
    of its notes by the ids of their items.
    """

    record: Restore
    pack: str | None
    dry_run: bool
    notes: Mapping[str, str]
    lines: tuple[PackLine, ...] = ()

    @property
    def resume(self) -> str | None:
        """Return the shell command that resumes the branch."""
        return None if self.dry_run else resume(self.record.session_id)


@define
class Restoring:
    """Restores markers."""

    _sessions: Sessions
    _now: Callable[[], str] = stamps.now
    _new_id: Callable[[], str] = stamps.new_id

    def preview(self, params: RestoreParams) -> RestoreResult:
        """Return the result of a restore; write nothing, not even an event."""
        params = checked(params)
        source = find_source(self._sessions, params.session_id, params.checkpoint_id)
        plan = Planner(self._sessions, source, params).plan()
        lines = () if plan.pack is None else pack_lines(plan.contents)
        notes = note_texts(plan.contents.checkpoint)
        return RestoreResult(plan.record, _pack_of(plan), dry_run=True, notes=notes, lines=lines)

    def restore(self, params: RestoreParams) -> RestoreResult:
        """Open a branch at a marker; it is durable and ready for Codex on return.

        Refuses as the planner, and `conflict`, `storage_error`.  A refused or cancelled restore
        leaves no branch, and the audit ends in `RestoreFailed`.  Nothing is stored of a file
        outside the home.  It never fails for lack of tokens (AGN-73).
        """
        sessions, params = self._sessions, checked(params)
        operation = self._operation(params)
        work = RestoreWork(sessions, self._new_id(), operation, self._now)
        branch_id = work.branch_id
        requested = "RestoreRequested", None, params.budget, params.window
        try:
            # The operation is written before its first event, so that every event gets its end.
            with (
                storing_restore(branch_id),
                atomic_operation(sessions.records, branch_id, work) as prepare,
            ):
                try:
                    source = find_source(sessions, params.session_id, params.checkpoint_id)
                except Refusal:
                    prepare({"operation": stored.unstructure(work.operation)})
                    work.add(requested)
                    raise
                work.found(source)
                prepare({"operation": stored.unstructure(work.operation)})
                work.add(("RestoreRequested", source.marker.label, params.budget, params.window))
                # Nothing of the branch is written before it is validated (AGN-84).
                plan = Planner(sessions, source, params).plan()
                self._refuse_taken(branch_id, plan)
                record = plan.record
                source_bytes, turns = record.source_bytes or 0, len(plan.turns)
                work.add(("RestoreValidated", source_bytes, record.source_digest, turns))
                self._publish(plan, work, prepare)
        except Refusal as refusal:
            work.end(requested, refusal.code)
            raise
        notes = note_texts(plan.contents.checkpoint)
        return RestoreResult(work.restore, _pack_of(plan), dry_run=False, notes=notes)

    def _operation(self, params: RestoreParams) -> events.Operation:
        """Return the known ids of a restore before its source is read."""
        session_id, checkpoint_id = asked_of(self._sessions, params.session_id), None
        if session_id is not None:
            with contextlib.suppress(Refusal):  # `find_source` meets it again, and reports it
                found = Markers(self._sessions).find(session_id, params.checkpoint_id)
                checkpoint_id = found.checkpoint_id
        begun = operation_of(self._sessions.settings, self._new_id(), None, session_id)
        return evolve(begun, checkpoint_id=checkpoint_id, restore_mode=params.mode)

    def _refuse_taken(self, branch_id: str, plan: RestorePlan) -> None:
        """Refuse `conflict` if the id of the branch is taken (AGN-84, AGN-86)."""
        above = {each.source_turn.session_id for each in plan.record.chain}
        above.add(plan.record.source_session_id)
        if branch_id in above or branch_id in self._sessions.catalogue.current():
            message = f"session {branch_id} exists already"
            raise Refusal("conflict", message, {"sessionId": branch_id, "reason": "exists"})

    def _publish(self, plan: RestorePlan, work: RestoreWork, prepare: Append) -> None:
        at, branch_id, records = self._now(), work.branch_id, self._sessions.records
        work.operation = evolve(work.operation, session_id=branch_id)
        work.add(
            *(("DriftDetected", each.uri, each.then, each.now) for each in plan.record.drift),
            *(("ArtifactMissing", each.uri, each.then) for each in plan.record.missing),
            *(("FallbackUsed", each.fallback, each.uri) for each in plan.record.fallbacks),
        )
        new, windows = self._thread(plan, branch_id, at)
        record = evolve(
            plan.record,
            operation_id=work.operation.operation_id,
            session_id=branch_id,
            restored_at=at,
            windows=windows,
        )
        soft, until = plan.pack is None, plan.contents.checkpoint.seq
        shift = self._shift(plan) if soft else 0
        # A soft branch keeps its turns; a hard one has no turn of its source.
        ids = record.source_session_id, branch_id, plan.turns if soft else None
        marker_set = markers.copied(plan.marker_set, *ids, until, shift)
        count = transferred(plan.contents, len(marker_set.markers))
        work.prepared = BegunRestore(work.operation, record, count)
        prepare(stored.unstructure(work.prepared))
        added(records, branch_id, MARKERS, markers.lines_of(marker_set, at))
        if soft:  # a hard one has its notes in its seed (AGN-46)
            added(records, branch_id, UPDATES, self._updates(plan, shift))
            added(records, branch_id, OBSERVED, _observed(plan, shift, at))
        new = evolve(new, items=_all_of(new.items, self._sessions.progress))
        work.row = self._sessions.threads.create(new, datetime.fromisoformat(at))

    def _thread(self, plan: RestorePlan, branch_id: str, at: str) -> tuple[NewThread, Windows]:
        """Return the session file to create, and its windows as far as they are known (WIN-13)."""
        first, before = self._new_id(), plan.record.windows.source
        source, moment = plan.session, moment_of(at)
        if plan.pack is None:
            reader = self._sessions.catalogue.reader
            meta = {**session_meta(branch_id, first, source, moment), **_inherited(source.head)}
            names = WindowNames(first, self._new_id)
            lines = copied_history(reader, plan.parts, plan.until, names)
            return NewThread(meta, _of(plan, lines)), Windows(before, first, first)
        naming = Naming(self._name(plan), self._new_id(), self._new_id())
        ids = (branch_id, first, self._new_id())
        begins_with = [user_message([plan.pack.text])] if plan.pack.text else []
        made = new_session(begins_with, source, naming, moment, ids)
        figures = plan.record.tokens
        # From this a list shows how full the branch is before Codex has ever sent it, as CKP-28.
        info = {"info": {"model_context_window": source.window}}
        size = () if figures.after is None else (token_count(figures.after, info),)
        items = tuple(HistoryItem(line.type, line.payload) for line in (*made.lines, *size))
        return NewThread(made.meta, items), Windows(before, made.chain.first, made.chain.current)

    def _updates(self, plan: RestorePlan, shift: int) -> Iterator[dict[str, object]]:
        for update in plan.updates:
            update_id = self._new_id() if update.revokes is None else ""
            yield noted(evolve(update, seq=update.seq + shift), update_id)

    def _shift(self, plan: RestorePlan) -> int:
        """Return how much higher a soft branch counts: a source without a head has a line less."""
        if plan.session.paginated:
            return 0
        with reading_file(plan.row):
            return head_of(self._sessions.catalogue.reader.first_line(plan.parts[0].path)) is None

    def _name(self, plan: RestorePlan) -> str:
        """Return the name of a hard branch: the label, then the title of the source.

        A title that is only the first message is left out, unless it is the task (AGN-39).
        """
        origin, task = plan.contents.origin, plan.contents.checkpoint.task
        title = self._sessions.catalogue.store.name_of(plan.row) or ""
        if not title and task is not None:
            first = self._sessions.title(plan.row)
            title = task.text if first == task.text else ""
        title = value(title, MAX_VALUE_CHARS)
        parts = dict.fromkeys(part for part in (origin.label, title) if part)
        name = value(": ".join(parts), MAX_VALUE_CHARS)
        return name or f"Restored from checkpoint {origin.checkpoint_id}"


def _of(plan: RestorePlan, lines: Iterator[HistoryItem | Copied]) -> Iterator[HistoryItem | Copied]:
    """Yield lines of the source; name the source if they cannot be read."""
    with reading_file(plan.row):
        yield from lines


def _observed(plan: RestorePlan, shift: int, at: str) -> Iterator[dict[str, object]]:
    """Yield the observations of the files in the lines that a branch copies (TRU-2)."""
    for (uri, seq), seen in plan.seen.items():
        if seq <= plan.contents.checkpoint.seq:
            yield {"uri": uri, "seq": seq + shift, "hash": seen, "at": at}


def _inherited(head: Json) -> Json:
    """Return the field where a subagent's own lines begin: a copy has the same one."""
    start = whole_of(head.get("subagent_history_start_ordinal"))
    return {} if start is None else {"subagent_history_start_ordinal": start}


def _all_of(
    items: Iterable[HistoryItem | Copied], progress: Progress
) -> Iterator[HistoryItem | Copied]:
    """Yield the lines of a branch; after the last one its publication cannot be cancelled."""
    for item in items:
        progress.step()
        yield item
    progress.commit()


def _pack_of(plan: RestorePlan) -> str | None:
    return None if plan.pack is None else plan.pack.text


@define
class RestoreWork:
    """A restore from its first event to its last, each numbered; `operation.PendingOperation`."""

    _sessions: Sessions
    branch_id: str
    operation: events.Operation
    _now: Callable[[], str] = stamps.now
    prepared: BegunRestore | None = None
    row: Row | None = None
    _step: int = 0
    _written: frozenset[str] = frozenset()
    """The types of the events that an earlier process wrote."""
    _ended: bool = False

    @property
    def restore(self) -> Restore:
        """Return the record of the branch, as far as it is known."""
        if self.prepared is None or self.prepared.record is None:
            raise ValueError("nothing is prepared")
        return self.prepared.record

    def found(self, source: RestoreSource) -> None:
        """Name the source in all further events."""
        turn = TurnSource(source.row.session_id, source.marker.turn_id)
        self.operation = evolve(
            self.operation,
            source_session_id=turn.session_id,
            checkpoint_id=source.marker.checkpoint_id,
            source_turn=turn,
        )

    def is_published(self) -> bool:
        """Return whether the branch exists."""
        if self.prepared is not None and self.row is None:
            self.row = self._sessions.catalogue.refresh_thread(self.branch_id)
        return self.row is not None

    def record(self) -> None:
        """Complete the record of the branch, and write it with the events."""
        if self.row is None or self.prepared is None:
            raise ValueError("nothing is published")
        try:
            digest, size = fingerprint(self._sessions.catalogue.reader, self.row.path)
        except UnreadableSource as error:
            raise StorageError(str(error)) from error
        record = evolve(self.restore, branch_digest=digest, branch_bytes=size)
        if record.mode == "soft":
            windows = windows_in(self._sessions, self.row.path)
            first, current = windows[0].window_id, windows[-1].window_id
            record = evolve(record, windows=Windows(record.windows.source, first, current))
        restores = RestoreRecords(self._sessions.records)
        restores.give(record.session_id, record)
        restores.give(record.source_session_id, record)
        self._ended = True
        placement = record.placement or ("seed" if record.mode == "hard" else "copy")
        before, after = record.tokens.before, record.tokens.after
        cautions = tuple(caution.code for caution in record.warnings)
        self.add(
            ("BranchCreated", placement, size, digest),
            ("StateTransferred", *self.prepared.transferred.values()),
            *_hard_events(record),
            ("RestoreCompleted", record.context_reset, before, after, cautions),
        )
        self.prepared = evolve(self.prepared, record=record)
        if record.mode == "soft" and record.label:
            self._name(self.row)

    def _name(self, row: Row) -> None:
        """Name a soft branch by its label and the title of its source: it has the same history.

        The name is only in Codex's list, since the title may quote the user (AGN-39).
        """
        sessions = self._sessions
        source = sessions.catalogue.current().get(self.restore.source_session_id)
        title = None if source is None else sessions.title(source)
        name = value(": ".join(filter(None, (self.restore.label, title))), MAX_VALUE_CHARS)
        try:
            sessions.threads.rename(row.session_id, name, listed=True)
        except Refusal as refusal:
            logger.warning("%s: the branch has no name: %s", refusal.code, refusal.message)

    def roll_back(self, code: str) -> bool:
        """Remove the files beside a branch that was not published, and write its end.

        Only a prepared restore has such files: a refused id may belong to another session.
        """
        names = () if self.prepared is None else (MARKERS, UPDATES, OBSERVED)
        gone = removed(self._sessions.records, self.branch_id, names)
        return self._fail(code) and gone

    def add(self, *several: events.Event) -> None:
        """Write events; refuses `storage_error`."""
        for event in several:
            if event[0] in self._written:
                continue
            line = events.line_of(self.operation, event, step=self._step, at=self._now())
            with storing_restore(self.operation.source_session_id):
                self._sessions.records.audit.add(line)
            self._step += 1

    def end(self, requested: events.Event, code: str) -> None:
        """Write the request and the end of a restore that did not begin, unless it has an end."""
        if self._ended:
            return
        try:
            self.add(requested)
        except Refusal as refusal:
            logger.warning("storage_error: %s", refusal.message)
        self._fail(code)

    def _fail(self, code: str) -> bool:
        """Write the end of a failed restore; return whether nothing is left to write."""
        self._ended = True
        if self._step == 0:
            return True
        try:
            self.add(("RestoreFailed", code))
        except Refusal as refusal:
            logger.warning("storage_error: %s", refusal.message)
            return False
        return True


def reopened(sessions: Sessions, branch_id: str) -> RestoreWork | None:
    """Return the restore that a process wrote down; None if it had no event yet.

    None of its events is written again.
    """
    begun = RestoreRecords(sessions.records).begun(branch_id)
    if begun is None:
        return None
    operation = begun.operation
    own = [
        str(event.get("type"))
        for event in map(object_of, sessions.records.audit.events())
        if event.get("operationId") == operation.operation_id
    ]
    prepared = None if begun.record is None else begun
    work = RestoreWork(sessions, branch_id, operation, prepared=prepared)
    return evolve(work, step=len(own), written=frozenset(own))


def _hard_events(record: Restore) -> tuple[events.Event, ...]:
    """Return the events that only a hard restore has, in order (AGN-61)."""
    figures, windows = record.pack, record.windows
    if figures is None:
        return ()
    left = sum(item.reason == "budget" for item in record.deferred)
    included, deferred = len(record.included), len(record.deferred)
    pack = figures.digest, figures.tokens, figures.budget, included, deferred
    cut = (("PackTruncated", figures.budget, included, left),) if left else ()
    reset = windows.current or "", windows.first or "", windows.source
    return (("StatePackPrepared", *pack), *cut, ("LLMChainReset", *reset))
