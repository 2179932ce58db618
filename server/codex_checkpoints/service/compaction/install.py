"""The step that installs a replacement, with what is written before and behind it (CKP-14).

In this order, each step durable before the next:

1. store the checkpoint (DSC-53);
2. prepare the record with the source (`settling`), and put the record of a new session,
   which holds what that goes on from, into the new session's folder;
3. install: publish the new session whole, or append to the source what `appending` found;
4. add the record: from here on the pointer is the new one (JUN-24).

Nobody can stop it once it has begun.  Before all of it, where lines are to be appended, stands the
proof that Codex will go by them (`appending`).  What is installed is known to `plan`.
"""

from __future__ import annotations

from datetime import datetime

from codex_checkpoints.core.compaction.installed import (
    Moment,
    Naming,
    new_session,
    source_of,
    token_count,
)
from codex_checkpoints.core.compaction.records import (
    Installed,
    Sizes,
    Windows,
    counts_of,
    digest_of,
    remaining,
)
from codex_checkpoints.core.compaction.report import Figure
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.service.compaction.appending import behind, items_of, opened_after
from codex_checkpoints.service.compaction.plan import Plan
from codex_checkpoints.service.compaction.request import Request
from codex_checkpoints.service.compaction.settling import CompactionSettling
from codex_checkpoints.service.compaction.source import Sources
from codex_checkpoints.service.compaction_records import storing
from codex_checkpoints.service.reading.projections import Projection
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.stamps import in_text
from codex_checkpoints.threads.contract import Item, NewThread, Row
from codex_checkpoints.values import frozen


@frozen
class _Change:
    """What an install writes, and the windows that come of it."""

    session_id: str
    chain: Chain
    what: NewThread | tuple[Item, ...]


class Installer:
    """Installs replacements."""

    def __init__(self, sessions: Sessions, sources: Sources) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._sources = sources
        self._settling = CompactionSettling(sessions)

    def install(
        self, request: Request, plan: Plan, at: datetime, ids: tuple[str, ...]
    ) -> tuple[Installed, Row]:
        """Install a replacement, durable on return; `ids` are six new ones, the compaction's first.

        Refuses `conflict`, `session_live`, `unreadable_source`, `storage_error`; raises `Cancelled`
        before anything is written, and never later.
        """
        source = plan.source
        replaced = self._sources.range_of(source)
        made = self._new if request.into == "new" else _in_place
        change = made(plan, at, ids)
        self._sessions.pace.commit()
        kept = self._kept(plan)
        report = plan.built.report
        record = Installed(
            compaction_id=ids[0],
            at=in_text(at),
            requested_by=request.requested_by,
            why=request.why,
            placement=plan.placement,
            strategy=plan.strategy,
            determinism=plan.determinism,
            into=request.into,
            session_id=change.session_id,
            source=replaced,
            replacement=digest_of(plan.built.items),
            items=remaining(plan.built),
            counts=counts_of(report),
            sizes=Sizes(report.before, Figure(report.after, "estimated"), report.bound),
            windows=Windows(source.traced.history.chain, change.chain),
            seed=kept.checkpoint if request.into == "new" else None,
        )
        records = self._sessions.compactions
        with (
            storing(source.session_id),
            records.shelf(source.session_id) as shelf,
            self._settling.installing(shelf, record),
        ):
            if isinstance(change.what, NewThread):
                records.give(change.session_id, record)
            row = self._written(plan, change, at)
        return record, row

    def _kept(self, plan: Plan) -> Projection:
        """Store the checkpoint of the source; refuses `storage_error`."""
        source = plan.source
        kept = self._sessions.projections.keep(source.row, source.opened)
        if kept.storage_problem is not None:
            facts = {"sessionId": source.session_id, "reason": kept.storage_problem}
            message = f"the checkpoint cannot be stored: {kept.storage_problem}"
            raise Refusal("storage_error", message, facts)
        return kept

    def _written(self, plan: Plan, change: _Change, at: datetime) -> Row:
        threads, source = self._sessions.threads, plan.source
        if isinstance(change.what, NewThread):
            return threads.create(change.what, at)
        threads.unload(source.session_id)
        threads.append(source.session_id, change.what, at, expected=source.look)
        return self._sessions.own(source.session_id)

    def _new(self, plan: Plan, at: datetime, ids: tuple[str, ...]) -> _Change:
        _, session_id, first, second, turn_id, item_id = ids
        source = plan.source
        made = new_session(
            plan.built.items,
            source_of(source.session_id, source.row.cwd or "", source.traced.head, source.window),
            Naming(self._sessions.title(source.row) or "", turn_id, item_id),
            moment(at),
            (session_id, first, second),
        )
        # By this a list knows how full the session is before Codex has ever sent it (CKP-28).
        weight = plan.built.report.after + source.traced.instructions
        told = token_count(weight, {"info": {"model_context_window": source.window}})
        return _Change(session_id, made.chain, NewThread(made.meta, items_of((*made.lines, told))))


def _in_place(plan: Plan, at: datetime, ids: tuple[str, ...]) -> _Change:
    _, window_id, _, _, turn_id, _ = ids
    source = plan.source
    chain = opened_after(source.traced.history.chain, window_id)
    lines = behind(source, plan.built.items, chain, turn_id, moment(at))
    return _Change(source.session_id, chain, lines)


def moment(at: datetime) -> Moment:
    """Return a time as lines hold it."""
    return Moment(in_text(at), int(at.timestamp() * 1000))
