"""Restores: a branch opened at a marker, soft or hard (AGN-9, AGN-31, AGN-84, AGN-85).

Everything is validated before anything of a branch is written.  Then, in this order: what the
branch will be is added to the undertaking, its updates, markers and pins are put beside it, the
session file is published whole, and both sessions get the record.  Whoever is killed before the
publication has left no branch, whoever is killed after it a complete one (`settling`).  The
source is read and never written.

What goes over is found by `plan`; what it looks like as a session, by `branch_making`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from attrs import evolve

from codex_checkpoints.codex import resume
from codex_checkpoints.core.restore import markers
from codex_checkpoints.core.restore.carried import TurnSource
from codex_checkpoints.core.restore.chains import closes_a_circle, link_of
from codex_checkpoints.core.restore.events import Operation, RestoreRequested, RestoreValidated
from codex_checkpoints.core.restore.pack import PackLine, pack_lines
from codex_checkpoints.core.restore.recording import Outcome, restore_of, transferred
from codex_checkpoints.core.restore.records import Restore, Windows
from codex_checkpoints.journal import Journal, StorageError
from codex_checkpoints.records import MARKERS, UPDATES, Records
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.reading.pace import Pace
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.restore.branch_making import BranchMaker
from codex_checkpoints.service.restore.log import RestoreLog
from codex_checkpoints.service.restore.plan import Plan, Planner, Wish
from codex_checkpoints.service.restore.settling import RestoreSettling
from codex_checkpoints.service.restore.source import Source, asked_of, find_source
from codex_checkpoints.service.restore_records import (
    RestoreRecords,
    Undertaking,
    begun_line,
    line_of,
    storing,
)
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Copied, Item
from codex_checkpoints.values import frozen

logger = logging.getLogger(__name__)


@frozen
class _Begun:
    """A restore under way: its branch to be, its events, and what the next start goes by."""

    branch_id: str
    log: RestoreLog
    journal: Journal


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
        return None if self.dry_run else resume(self.record.session_id)


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
        self._markers = Markers(sessions, now, new_id)
        self._planner = Planner(sessions, self._markers, self._restores)
        self._branches = BranchMaker(sessions, new_id)
        self._settling = RestoreSettling(sessions, self._restores, now)

    def preview(self, session: str, checkpoint: str, wish: Wish) -> Restored:
        """Say what would come of a restore; nothing is written, not even an event."""
        source = find_source(self._sessions, self._markers, session, checkpoint)
        plan = self._planner.plan(source, wish)
        nowhere = Windows(plan.window_id, None, None)
        record = _record(plan, "", "", "", nowhere)
        lines = () if plan.pack is None else pack_lines(plan.goods)
        return Restored(record, _pack_of(plan), dry_run=True, lines=lines)

    def restore(self, session: str, checkpoint: str, wish: Wish) -> Restored:
        """Open a branch at a marker; it is durable and ready for Codex on return.

        Refuses what the planner refuses, `conflict`, `storage_error`; then there is no branch, and
        the audit ends in `RestoreFailed`; likewise where it is cancelled before it is published.
        Of a file outside the home nothing is stored.  It never fails for lack of tokens (AGN-73).
        """
        operation = self._operation(asked_of(self._sessions, session), checkpoint, wish)
        branch_id = self._new_id()
        log = RestoreLog(self._sessions.records, operation, self._now)
        asked = RestoreRequested(None, wish.budget, wish.window)
        try:
            with storing(branch_id), self._records.undertaking(branch_id) as journal:
                begun = _Begun(branch_id, log, journal)
                try:
                    source = self._asked(session, checkpoint, asked, begun)
                    return self._made(self._validated(source, wish, begun), begun)
                except (StorageError, Refusal, Cancelled) as error:
                    # What cannot be taken back or told now is left to the next start.
                    if self._settling.fail(branch_id, log, _code_of(error)):
                        journal.clear()
                    raise
        except Refusal as refusal:
            log.end(asked, refusal.code)
            raise

    def recover(self) -> int:
        """Finish or take back what killed processes left; return how many restores that were.

        One that another process is at stays, and so does what cannot be written now.
        """
        return self._settling.recover()

    # --- inside ----------------------------------------------------------------------------------

    def _operation(self, session_id: str | None, checkpoint: str, wish: Wish) -> Operation:
        """Return what is known of a restore before it is looked at: ids that are here, or None."""
        checkpoint_id = None
        if session_id is not None:
            with contextlib.suppress(Refusal):  # `find_source` meets it again, and is heard
                checkpoint_id = self._markers.find(session_id, checkpoint).checkpoint_id
        return Operation(
            self._new_id(),
            None,
            session_id,
            checkpoint_id,
            None,
            wish.mode,
            self._sessions.settings.user_id,
            self._sessions.settings.org_id,
        )

    def _asked(
        self, session: str, checkpoint: str, asked: RestoreRequested, begun: _Begun
    ) -> Source:
        """Find the marker, and tell what was asked for; refuses as `find_source`.

        Before its first event an operation is written down, so that it never lacks an end.
        """
        log = begun.log
        try:
            source = find_source(self._sessions, self._markers, session, checkpoint)
        except Refusal:
            begun.journal.append(begun_line(log.operation))
            log.add(asked)
            raise
        turn = TurnSource(source.row.session_id, source.marker.turn_id)
        log.operation = evolve(
            log.operation,
            source_session_id=turn.session_id,
            checkpoint_id=source.marker.checkpoint_id,
            source_turn=turn,
        )
        begun.journal.append(begun_line(log.operation))
        log.add(evolve(asked, label=source.marker.label))
        return source

    def _validated(self, source: Source, wish: Wish, begun: _Begun) -> Plan:
        """Find everything in order, and tell it; nothing of the branch is written (AGN-84)."""
        plan = self._planner.plan(source, wish)
        self._refuse_taken(begun.branch_id, source.row.session_id)
        begun.log.add(RestoreValidated(plan.source_bytes, plan.source_digest, plan.turns))
        begun.log.add_all((*plan.drift, *plan.missing, *plan.fallbacks))
        return plan

    def _refuse_taken(self, branch_id: str, source_id: str) -> None:
        """Refuse `conflict` where the id of the branch is taken (AGN-84, AGN-86)."""
        links = tuple(map(link_of, self._restores.above(source_id)))
        taken = branch_id in self._sessions.catalogue.current()
        if taken or closes_a_circle(branch_id, source_id, links):
            message = f"session {branch_id} exists already"
            raise Refusal("conflict", message, {"sessionId": branch_id, "reason": "exists"})

    def _made(self, plan: Plan, begun: _Begun) -> Restored:
        """Write the branch: all of it, or nothing."""
        at, branch_id, log = self._now(), begun.branch_id, begun.log
        log.operation = evolve(log.operation, session_id=branch_id)
        new, windows = self._branches.thread(plan, branch_id, at)
        record = _record(plan, log.operation.operation_id, branch_id, at, windows)
        source_id = plan.source.row.session_id
        shelf = markers.copied(plan.shelf, source_id, branch_id, plan.kept)
        undertaking = Undertaking(
            log.operation, record, transferred(plan.goods, len(shelf.markers))
        )
        begun.journal.append(line_of(undertaking))
        self._write(branch_id, MARKERS, markers.lines_of(shelf, at))
        self._write(branch_id, UPDATES, self._branches.updates(plan))
        new = evolve(new, items=_all_of(new.items, self._sessions.pace))
        row = self._sessions.threads.create(new, datetime.fromisoformat(at))
        try:
            record = self._settling.finish(row, undertaking, log)
            begun.journal.clear()
        except (StorageError, Refusal) as error:
            # The branch is there, whole; what is left is told by the next start.
            logger.warning("restore of %s is told later: %s", branch_id, error)
        return Restored(record, _pack_of(plan), dry_run=False)

    def _write(self, branch_id: str, name: str, lines: Iterable[Mapping[str, object]]) -> None:
        lines = tuple(lines)
        if lines:
            with self._records.journal(branch_id, name) as journal:
                for line in lines:
                    journal.append(line)

    @property
    def _records(self) -> Records:
        return self._sessions.records


def _code_of(error: StorageError | Refusal | Cancelled) -> str:
    match error:
        case Refusal(code=code):
            return code
        case StorageError():
            return "storage_error"
        case Cancelled():
            return "cancelled"


def _all_of(items: Iterable[Item | Copied], pace: Pace) -> Iterator[Item | Copied]:
    """Yield what a branch is made of; behind the last of it nobody can stop its publication."""
    for item in items:
        pace.step()
        yield item
    pace.commit()


def _record(plan: Plan, operation_id: str, branch_id: str, at: str, windows: Windows) -> Restore:
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
        source_bytes=plan.source_bytes,
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


def _pack_of(plan: Plan) -> str | None:
    return None if plan.pack is None else plan.pack.text
