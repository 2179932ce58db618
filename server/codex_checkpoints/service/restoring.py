"""Restores: a branch opened at a marker, soft or hard (AGN-9, AGN-31, AGN-84, AGN-85).

Everything is validated before anything is written.  Then, in this order: what the branch will be
is written down as an undertaking, its updates, markers and pins are put beside it, the session file
is published whole, and both sessions get the record.  Whoever is killed before the publication has
left no branch, whoever is killed after it a complete one; the next start takes back or finishes
what the undertaking tells.  The source is read and never written.

What goes over is found by `restore_plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.compaction.installed import (
    Moment,
    Naming,
    new_session,
    session_meta,
    source_of,
)
from codex_checkpoints.core.restore import markers
from codex_checkpoints.core.restore.carried import TurnSource
from codex_checkpoints.core.restore.chains import closes_a_circle, link_of
from codex_checkpoints.core.restore.events import (
    BranchCreated,
    Operation,
    RestoreCompleted,
    RestoreRequested,
    RestoreValidated,
)
from codex_checkpoints.core.restore.pack import PackLine, pack_lines
from codex_checkpoints.core.restore.recording import Outcome, restore_of, transferred
from codex_checkpoints.core.restore.records import Restore, Windows
from codex_checkpoints.core.rollout.fields import Json, whole_of
from codex_checkpoints.records import MARKERS, UPDATES, Records, StorageError
from codex_checkpoints.service.copied_history import (
    WindowNames,
    begins_with_head,
    copied_history,
)
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.pace import Pace
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.restore_log import RestoreLog, hard_events
from codex_checkpoints.service.restore_plan import Plan, Planner, Wish, fingerprint
from codex_checkpoints.service.restore_records import (
    RestoreRecords,
    Undertaking,
    is_import,
    line_of,
    storing,
)
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Copied, Item, NewThread, Row, UnreadableSource

logger = logging.getLogger(__name__)

_UNKNOWN = 160


@frozen
class Restored:
    """What came of a restore, or would: a preview has neither ids nor a time.

    `lines` are those that a pack of any budget could have; only a preview knows them.
    """

    record: Restore
    pack: str | None
    dry_run: bool
    lines: tuple[PackLine, ...] = ()

    @property
    def resume(self) -> str | None:
        """Return the shell command that goes on with the branch."""
        return None if self.dry_run else f"codex resume {self.record.session_id}"


class Restoring:
    """Opens branches; the time and new ids come from outside."""

    def __init__(
        self, sessions: Sessions, now: Callable[[], str], new_id: Callable[[], str]
    ) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._now = now
        self._new_id = new_id
        self._restores = RestoreRecords(sessions.records)
        self._planner = Planner(sessions, Markers(sessions, now, new_id), self._restores)

    def preview(self, session: str, checkpoint: str, wish: Wish) -> Restored:
        """Say what would come of a restore; nothing is written, not even an event."""
        plan = self._planner.plan(self._planner.source(session, checkpoint), wish)
        nowhere = Windows(plan.window_id, None, None)
        record = self._record(plan, "", "", "", nowhere)
        lines = () if plan.pack is None else pack_lines(plan.goods)
        return Restored(record, _pack_of(plan), dry_run=True, lines=lines)

    def restore(self, session: str, checkpoint: str, wish: Wish) -> Restored:
        """Open a branch at a marker; it is durable and ready for Codex on return.

        Refuses what the planner refuses, `conflict`, `storage_error`; then there is no branch, and
        the audit ends in `RestoreFailed`; likewise where it is cancelled before it is published.
        It never fails for lack of tokens (AGN-73).
        """
        settings = self._sessions.settings
        operation = Operation(
            self._new_id(),
            None,
            session[:_UNKNOWN],
            checkpoint[:_UNKNOWN],
            None,
            wish.mode,
            settings.user_id,
            settings.org_id,
        )
        log = RestoreLog(self._sessions.records, operation, self._now)
        try:
            source = self._planner.source(session, checkpoint)
        except Refusal as refusal:
            log.add(RestoreRequested(None, wish.budget, wish.window))
            log.fail(refusal.code)
            raise
        turn = TurnSource(source.row.session_id, source.marker.turn_id)
        log.operation = evolve(
            operation,
            source_session_id=turn.session_id,
            checkpoint_id=source.marker.checkpoint_id,
            source_turn=turn,
        )
        log.add(RestoreRequested(source.marker.label, wish.budget, wish.window))
        try:
            plan = self._planner.plan(source, wish)
            branch_id = self._free_id(turn.session_id)
            log.add(RestoreValidated(plan.source_bytes, plan.source_digest, plan.turns))
            log.add_all((*plan.drift, *plan.missing, *plan.fallbacks))
            return self._made(plan, branch_id, log)
        except Refusal as refusal:
            log.fail(refusal.code)
            raise
        except Cancelled:
            log.fail("cancelled")
            raise

    def recover(self) -> int:
        """Finish or take back what killed processes left; return how many restores that were.

        One that another process is at stays, and so does what cannot be written now.
        """
        settled = 0
        for branch_id in self._records.undertakings():
            try:
                if is_import(self._records, branch_id):
                    continue
                with self._records.undertaking(branch_id, patience=0.0) as journal:
                    self._settle(branch_id)
                    journal.clear()
                    settled += 1
            except (StorageError, Refusal) as error:
                logger.warning("restore of %s is not settled: %s", branch_id, error)
        return settled

    # --- inside ----------------------------------------------------------------------------------

    def _free_id(self, source_id: str) -> str:
        """Return the id of the branch; refuses `conflict` where it is taken (AGN-84, AGN-86)."""
        branch_id = self._new_id()
        links = tuple(map(link_of, self._restores.above(source_id)))
        taken = branch_id in self._sessions.catalogue.current()
        if taken or closes_a_circle(branch_id, source_id, links):
            message = f"session {branch_id} exists already"
            raise Refusal("conflict", message, {"sessionId": branch_id, "reason": "exists"})
        return branch_id

    def _made(self, plan: Plan, branch_id: str, log: RestoreLog) -> Restored:
        """Write the branch: all of it, or nothing."""
        at = self._now()
        log.operation = evolve(log.operation, session_id=branch_id)
        new, windows = self._thread(plan, branch_id, at)
        record = self._record(plan, log.operation.operation_id, branch_id, at, windows)
        source_id = plan.source.row.session_id
        shelf = markers.copied(plan.shelf, source_id, branch_id, plan.kept, at)
        undertaking = Undertaking(
            log.operation, record, transferred(plan.goods, len(plan.shelf.markers))
        )
        with storing(branch_id), self._records.undertaking(branch_id) as journal:
            journal.append(line_of(undertaking))
            try:
                self._write(branch_id, MARKERS, shelf)
                self._write(branch_id, UPDATES, self._updates(plan))
                new = evolve(new, items=_all_of(new.items, self._sessions.pace))
                row = self._sessions.threads.create(new, datetime.fromisoformat(at))
            except (StorageError, Refusal, Cancelled):
                self._take_back(branch_id)
                journal.clear()
                raise
            try:
                record = self._finished(row, undertaking, log)
                journal.clear()
            except (StorageError, Refusal) as error:
                # The branch is there, whole; what is left is told by the next start.
                logger.warning("restore of %s is told later: %s", branch_id, error)
        return Restored(record, _pack_of(plan), dry_run=False)

    def _thread(self, plan: Plan, branch_id: str, at: str) -> tuple[NewThread, Windows]:
        """Return the session file to be made, and its windows as far as they are known (WIN-13)."""
        row, first = plan.source.row, self._new_id()
        source = source_of(row.session_id, plan.cwd, plan.head, plan.tokens.window)
        moment = Moment(at, int(datetime.fromisoformat(at).timestamp() * 1000))
        if plan.pack is None:
            catalogue = self._sessions.catalogue
            meta = {**session_meta(branch_id, first, source, moment), **_inherited(plan.head)}
            windows = Windows(plan.window_id, first, first)
            if plan.reference is not None:
                return NewThread({**meta, **plan.reference.as_head()}), windows
            names = WindowNames(first, self._new_id)
            locate = catalogue.locator(row.path)
            lines = copied_history(catalogue.reader, row.path, locate, plan.until, names)
            return NewThread(meta, lines), windows
        naming = Naming(self._name(plan), self._new_id(), self._new_id())
        ids = (branch_id, first, self._new_id())
        made = new_session(_message(plan.pack.text), source, naming, moment, ids)
        items = tuple(Item(line.type, line.payload) for line in made.lines)
        windows = Windows(plan.window_id, made.chain.first, made.chain.current)
        return NewThread(made.meta, items), windows

    def _name(self, plan: Plan) -> str:
        """Return how a hard branch is called in lists.

        A title that is only the first message of the conversation stays behind (AGN-39).
        """
        marker = plan.source.marker
        given = self._sessions.catalogue.store.name_of(plan.source.row)
        name = marker.label or value(given or "", MAX_VALUE_CHARS)
        return name or f"Restored from checkpoint {marker.checkpoint_id}"

    def _record(
        self, plan: Plan, operation_id: str, branch_id: str, at: str, windows: Windows
    ) -> Restore:
        outcome = Outcome(
            operation_id=operation_id,
            session_id=branch_id,
            mode=plan.wish.mode,
            restored_at=at,
            tokens=plan.tokens,
            caps=plan.caps,
            windows=windows,
            branch_digest="",
            source_digest=plan.source_digest,
            drift=plan.drift,
            missing=plan.missing,
            fallbacks=plan.fallbacks,
            detached=plan.source.detached,
            problems=len(plan.source.opened.problems),
            placement=plan.placement,
        )
        record = restore_of(plan.goods, outcome, plan.pack)
        # The copied history of a session that began with a seed still rests on it.
        return record if plan.pack is not None else evolve(record, seed=plan.seed)

    def _updates(self, plan: Plan) -> Iterable[dict[str, object]]:
        """Yield what a soft branch remembers; a hard one has it in its seed (AGN-46)."""
        if plan.pack is not None:
            return
        row, catalogue = plan.source.row, self._sessions.catalogue
        reader, locate = catalogue.reader, catalogue.locator(row.path)
        # Without a head of its own the source counts one line less than its branch.
        moved = not plan.paginated and not begins_with_head(reader, row.path, locate)
        for update in plan.updates:
            yield self._update(evolve(update, seq=update.seq + moved))

    def _update(self, update: Update) -> dict[str, object]:
        where: dict[str, object] = {"seq": update.seq, "turnId": update.turn_id, "at": update.at}
        if update.revokes is not None:
            kind, name = update.revokes
            return {"revoke": {"kind": kind, "id": name}} | where
        payload: dict[str, object] = {"payload": update.payload, "hashes": dict(update.hashes)}
        return {"updateId": self._new_id()} | where | payload

    def _write(self, branch_id: str, name: str, lines: Iterable[Mapping[str, object]]) -> None:
        lines = tuple(lines)
        if lines:
            with self._records.journal(branch_id, name) as journal:
                for line in lines:
                    journal.append(line)

    def _finished(self, row: Row, undertaking: Undertaking, log: RestoreLog) -> Restore:
        """Complete the record of a branch that is published, and tell it; done twice is as once."""
        reader = self._sessions.catalogue.reader
        try:
            digest, size = fingerprint(reader, row.path)
        except UnreadableSource as error:
            raise StorageError(str(error)) from error
        record = evolve(undertaking.record, branch_digest=digest)
        hard = record.mode == "hard"
        if not hard:
            windows = Histories(self._sessions).windows(row.path)
            first, current = windows[0].window_id, windows[-1].window_id
            record = evolve(record, windows=Windows(record.windows.source, first, current))
        self._restores.give(record.session_id, record)
        self._restores.give(record.source_session_id, record)
        log.add(BranchCreated(record.placement or ("seed" if hard else "copy"), size, digest))
        log.add(undertaking.transferred)
        if hard:
            log.add_all(hard_events(record))
        log.add(
            RestoreCompleted(
                record.context_reset,
                record.tokens.before,
                record.tokens.after,
                tuple(caution.code for caution in record.warnings),
            )
        )
        return record

    def _settle(self, branch_id: str) -> None:
        undertaking = self._restores.undertaken(branch_id)
        if undertaking is None:
            return  # killed before anything but its name was written
        log = RestoreLog.resumed(self._records, undertaking.operation, self._now)
        row = self._sessions.catalogue.look_for(branch_id)
        if row is None:
            self._take_back(branch_id)
            log.fail("interrupted")
        else:
            self._finished(row, undertaking, log)

    def _take_back(self, branch_id: str) -> None:
        """Remove what was put beside a branch that never came to be."""
        for name in (MARKERS, UPDATES):
            try:
                self._records.remove(branch_id, name)
            except StorageError as error:
                logger.warning("storage_error: %s of %s stays: %s", name, branch_id, error)

    @property
    def _records(self) -> Records:
        return self._sessions.records


def _all_of(items: Iterable[Item | Copied], pace: Pace) -> Iterator[Item | Copied]:
    """Yield what a branch is made of; behind the last of it nobody can stop its publication."""
    for item in items:
        pace.step()
        yield item
    pace.commit()


def _inherited(head: Json) -> Json:
    """Return up to where a subagent's lines are those of its parent: they are so in a copy, too."""
    start = whole_of(head.get("subagent_history_start_ordinal"))
    return {} if start is None else {"subagent_history_start_ordinal": start}


def _message(pack: str) -> tuple[Json, ...]:
    """Return the replacement that a hard branch begins with: the pack, or nothing."""
    if not pack:
        return ()
    part = {"type": "input_text", "text": pack}
    return ({"type": "message", "role": "user", "content": [part]},)


def _pack_of(plan: Plan) -> str | None:
    return None if plan.pack is None else plan.pack.text
