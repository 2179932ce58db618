"""Compaction as an operation: a checkpoint is installed in the place of a history (CKP-1).

In this order, each step durable before the next:

1. refuse, with nothing written; ask the hooks that run before, and read again if they took long;
2. store the checkpoint (DSC-53);
3. prepare the record with the source (`compaction_settling`), and put the record of a new session,
   which holds what that goes on from, into the new session's folder;
4. install: publish the new session whole, or append two lines to the source;
5. add the record: from here on the pointer is the new one (JUN-24);
6. note the event, tell the hooks that run after, and let what is stored of the session follow.

How a replacement is built is the business of `core.compaction`, taking one back that of `undoing`.
"""

from __future__ import annotations

import contextlib
import logging
from datetime import datetime

from attrs import evolve, frozen

from codex_checkpoints.core.compaction.building import Replacement, Terms, build
from codex_checkpoints.core.compaction.installed import (
    Line,
    Moment,
    Naming,
    in_place,
    new_session,
    source_of,
    token_count,
)
from codex_checkpoints.core.compaction.placement import Placement
from codex_checkpoints.core.compaction.records import (
    Installed,
    Sizes,
    Windows,
    counts_of,
    digest_of,
    remaining,
)
from codex_checkpoints.core.compaction.report import Declined, Figure, Reason
from codex_checkpoints.core.history.tokens import WINDOW_SETTING, thresholds, window_size
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.service.compaction_audit import Operation
from codex_checkpoints.service.compaction_hooks import Heard, Ring
from codex_checkpoints.service.compaction_records import storing
from codex_checkpoints.service.compaction_request import (
    Compacted,
    Outside,
    Request,
    declined_by,
    session_live,
)
from codex_checkpoints.service.compaction_settling import Settling
from codex_checkpoints.service.compaction_source import Source, Sources
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.stamps import in_text
from codex_checkpoints.threads.contract import Item, NewThread, Row

logger = logging.getLogger(__name__)


@frozen
class _Plan:
    """A replacement and the session that it is for; nothing is written."""

    source: Source
    built: Replacement
    placement: Placement


@frozen
class _Change:
    """What an install writes, and the windows that come of it."""

    session_id: str
    chain: Chain
    what: NewThread | tuple[Item, ...]


class Compacting:
    """Compactions of the sessions of one home."""

    def __init__(self, sessions: Sessions, outside: Outside) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._outside = outside
        self._sources = Sources(sessions)
        self._settling = Settling(sessions)

    def preview(self, request: Request) -> Compacted:
        """Return what a compaction would report; nothing is written.

        Refuses as `compact`, but for what hooks say: they are not asked.
        """
        plan = self._plan(request)
        before = plan.source.traced.history.chain
        if request.into == "in-place":
            windows = Windows(before, evolve(opened_after(before, ""), current=None))
            return _compacted(request, plan, None, plan.source.session_id, windows)
        return _compacted(request, plan, None, None, Windows(before, Chain(number=1)))

    def compact(self, request: Request) -> Compacted:
        """Install a replacement: durable, and what Codex sends next, on return.

        Refuses `unknown_session`, `unreadable_source`, `turn_not_complete`, `session_live`,
        `unsupported_placement`, `unsupported_strategy`, `codex_not_found`, `missing_context`,
        `not_smaller`, `item_too_large`, `blocked_by_hook`, `conflict`, `storage_error`.
        """
        plan = self._plan(request)
        at = self._outside.moment()
        ids = self._outside.new_ids(at, 6)
        source = plan.source
        operation = Operation(
            self._sessions,
            self._outside.moment,
            ids[0],
            source.session_id,
            source.last_turn,
        )
        heard = self._asked(request, plan, operation)
        if self._sources.is_changed(source):
            plan = self._plan(request)
        try:
            record, row = self._installed(request, plan, at, ids)
        except Refusal as refusal:
            operation.failed(refusal.code)
            raise
        operation.installed(record, heard)
        after = self._told(request, plan, record)
        operation.observed(after)
        with contextlib.suppress(Refusal):  # it can be derived again, whoever asks first
            self._sessions.keep(row, self._sessions.catalogue.open(row))
        done = _compacted(request, plan, ids[0], record.session_id, record.windows)
        return evolve(done, hooks=(*heard, *after))

    # --- inside ----------------------------------------------------------------------------------

    def _plan(self, request: Request) -> _Plan:
        self._check_strategy(request.strategy)
        source = self._sources.read(request.session)
        if request.into == "in-place" and source.live:
            raise session_live(source.session_id)
        if request.into == "in-place" and source.row.archived:
            message = f"session {source.session_id} is archived: it is not continued as it is"
            hint = "Unarchive it first, or compact into a new session."
            facts = {"sessionId": source.session_id, "reason": "archived", "hint": hint}
            raise Refusal("conflict", message, facts)
        caps = self._sessions.settings.caps_for(source.replay.state.model)
        terms = self._terms(request, source)
        past, checkpoint = self._sources.past(source), self._sources.checkpoint(source)
        match build(past, checkpoint, caps, terms):
            case Declined() as declined:
                raise declined_by(declined, source.session_id)
            case Replacement() as built:
                placement: Placement = "pre_turn" if terms.placement == "pre_turn" else "manual"
                return _Plan(source, built, placement)

    def _check_strategy(self, strategy: str) -> None:
        if strategy == "checkpoint":
            return
        if strategy != "codex":
            problem = f"strategy: {strategy[:80]!r} is not one of checkpoint, codex"
            raise Refusal("invalid_payload", problem, {"problems": [problem]})
        if self._outside.find_codex() is None:
            message = "the strategy `codex` needs the Codex CLI, and there is none on the PATH"
            raise Refusal("codex_not_found", message, {"strategy": strategy})
        message = "the strategy `codex` is not offered by this version"
        hint = "Choose the strategy `checkpoint`: it needs no model."
        raise Refusal("unsupported_strategy", message, {"strategy": strategy, "hint": hint})

    def _terms(self, request: Request, source: Source) -> Terms:
        settings, context = self._sessions.settings, source.traced.history.context
        usable = context.tokens is not None and not context.flagged
        waived: set[Reason] = {"not_smaller"} if request.force else set()
        if request.force and not source.live:
            waived.add("turn_not_complete")  # nobody goes on with it: it was cut off
        setting = settings.context_window_tokens or None
        window = window_size(source.window, self._outside.window, setting)
        if window.ignored:
            logger.warning("%s is no positive number and is left aside", WINDOW_SETTING)
        return Terms(
            placement=request.placement,
            turn_ended=source.ended,
            budget=settings.retained_tokens,
            before=Figure(context.tokens or 0, context.source) if usable else None,
            target=thresholds(window.tokens).target,
            waived=frozenset(waived),
        )

    def _installed(
        self, request: Request, plan: _Plan, at: datetime, ids: tuple[str, ...]
    ) -> tuple[Installed, Row]:
        source, threads = plan.source, self._sessions.threads
        kept = self._sessions.keep(source.row, source.opened)
        if kept.storage_problem is not None:
            facts = {"sessionId": source.session_id, "reason": kept.storage_problem}
            message = f"the checkpoint cannot be stored: {kept.storage_problem}"
            raise Refusal("storage_error", message, facts)
        change = self._new(plan, at, ids) if request.into == "new" else _in_place(plan, ids[1])
        report = plan.built.report
        record = Installed(
            compaction_id=ids[0],
            at=in_text(at),
            requested_by=request.requested_by,
            why=request.why,
            placement=plan.placement,
            strategy="checkpoint",
            determinism="deterministic",
            into=request.into,
            session_id=change.session_id,
            source=self._sources.range_of(source),
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
                row = threads.create(change.what, at)
            else:
                threads.unload(source.session_id)
                threads.append(source.session_id, change.what, at, expected=source.look)
                row = self._sessions.own(source.session_id)
        return record, row

    def _new(self, plan: _Plan, at: datetime, ids: tuple[str, ...]) -> _Change:
        _, session_id, first, second, turn_id, item_id = ids
        source = plan.source
        made = new_session(
            plan.built.items,
            source_of(source.session_id, source.row.cwd or "", source.traced.head, source.window),
            Naming(self._sessions.title(source.row) or "", turn_id, item_id),
            Moment(in_text(at), int(at.timestamp() * 1000)),
            (session_id, first, second),
        )
        # By this a list knows how full the session is before Codex has ever sent it (CKP-28).
        weight = plan.built.report.after + source.traced.instructions
        told = token_count(weight, {"info": {"model_context_window": source.window}})
        return _Change(session_id, made.chain, NewThread(made.meta, items_of((*made.lines, told))))

    # --- hooks -----------------------------------------------------------------------------------

    def _asked(self, request: Request, plan: _Plan, operation: Operation) -> tuple[Heard, ...]:
        """Ask the hooks that run before; refuses `blocked_by_hook` (CKP-11, CKP-12)."""
        heard, stopped = self._ring("preCompact").ask(_words(request, plan, "PreCompact"))
        if stopped is None:
            return heard
        operation.blocked(heard)
        message = f"hook {stopped.number} of preCompact stopped it: {stopped.outcome}"
        message += f", {stopped.reason}" if stopped.reason else ""
        facts = {
            "sessionId": plan.source.session_id,
            "hook": stopped.number,
            "outcome": stopped.outcome,
            "reason": stopped.reason,
        }
        raise Refusal("blocked_by_hook", message, facts)

    def _told(self, request: Request, plan: _Plan, record: Installed) -> tuple[Heard, ...]:
        """Tell the hooks that run after: ids, counts and digests, beside what Codex would say."""
        compaction = {
            "compaction_id": record.compaction_id,
            "session_id": record.session_id,
            "replaced": record.source.history,
            "replacement": record.replacement,
            "kept": record.counts.kept,
            "truncated": record.counts.truncated,
            "dropped": record.counts.dropped,
            "tokens_before": record.sizes.before.tokens,
            "tokens_after": record.sizes.after.tokens,
        }
        words = _words(request, plan, "PostCompact") | {"compaction": compaction}
        return self._ring("postCompact").tell(words)

    def _ring(self, event: str) -> Ring:
        hooks = self._sessions.settings.hooks.get(event, ())
        return Ring(hooks, self._outside.run, self._sessions.records.state_dir)


def opened_after(chain: Chain, window_id: str) -> Chain:
    """Return a chain after one more window; where no window had a number, this one is the first."""
    return evolve(chain, number=chain.number or 0).opened(window_id)


def items_of(lines: tuple[Line, ...]) -> tuple[Item, ...]:
    """Return lines as a store takes them."""
    return tuple(Item(line.type, line.payload) for line in lines)


def _in_place(plan: _Plan, window_id: str) -> _Change:
    source = plan.source
    chain = opened_after(source.traced.history.chain, window_id)
    weight = plan.built.report.after + source.traced.instructions
    lines = in_place(plan.built.items, chain, weight, source.traced.last_report)
    return _Change(source.session_id, chain, items_of(lines))


def _compacted(
    request: Request,
    plan: _Plan,
    compaction_id: str | None,
    session_id: str | None,
    windows: Windows,
) -> Compacted:
    return Compacted(
        compaction_id=compaction_id,
        session_id=session_id,
        source_session_id=plan.source.session_id,
        into=request.into,
        strategy="checkpoint",
        determinism="deterministic",
        placement=plan.placement,
        built=plan.built,
        windows=windows,
    )


def _words(request: Request, plan: _Plan, event: str) -> dict[str, object]:
    """Return what Codex tells its own hooks of this event."""
    row, turn = plan.source.row, plan.source.last_turn
    return {
        "session_id": row.session_id,
        "turn_id": None if turn is None else turn.turn_id,
        "transcript_path": row.path,
        "cwd": row.cwd,
        "hook_event_name": event,
        "model": row.model,
        "trigger": "auto" if request.requested_by == "automatic" else "manual",
    }
