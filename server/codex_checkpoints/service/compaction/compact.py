"""Compacts a session as one operation: installs a checkpoint in place of a history (CKP-1).

The replacement is built without writing (CKP-14).  Then it waits for hooks, and for Codex if Codex
makes the summary; a session that changed meanwhile is read again.  Hooks then get the result.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from attrs import evolve

from codex_checkpoints.codex.app_server import never
from codex_checkpoints.core.agents.codex.history.tokens import Figure
from codex_checkpoints.core.agents.codex.history.windows import Chain
from codex_checkpoints.core.compaction.adoption import adopt
from codex_checkpoints.core.compaction.contents import (
    contents_of,
    counts_of,
    remaining,
)
from codex_checkpoints.core.compaction.records import (
    CompactionWindows,
    Installed,
    Prepared,
    Sizes,
    digest_of,
)
from codex_checkpoints.core.compaction.replacement import (
    Declined,
    Reason,
    Terms,
    build,
    not_now,
)
from codex_checkpoints.core.compaction.replacement_lines import (
    Naming,
    SourceSession,
    moment_of,
    new_session,
    token_count,
)
from codex_checkpoints.core.compaction.request_messages import asked_messages
from codex_checkpoints.core.compaction.token_budget import budget
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.core.digest.render import Digest, digest_v1
from codex_checkpoints.core.restore.markers import MarkerSet, lines_of, marker_set_of
from codex_checkpoints.service.compaction.codex_summary import (
    Job,
    determinism_of,
    excerpt_of,
    material,
    no_preview,
)
from codex_checkpoints.service.compaction.install import Events, changing, fields_of
from codex_checkpoints.service.compaction.refusals import (
    blocked_by_hook,
    refuse_repeated,
    refuse_second,
)
from codex_checkpoints.service.compaction.report import CompactionPlan, report_of
from codex_checkpoints.service.compaction.request import (
    Compacted,
    CompactionRequest,
    HookEvent,
    HookOutcome,
    HookRunner,
    declined_by,
    session_live,
    without_reasons,
)
from codex_checkpoints.service.compaction.source import (
    CompactionSource,
    Sources,
    appended_lines,
    check_appendable,
    items_of,
    nothing,
    opened_after,
)
from codex_checkpoints.service.compaction.warnings import cautions
from codex_checkpoints.service.history.digests import Digests, checked_budget, default_budget
from codex_checkpoints.service.operation import added
from codex_checkpoints.service.progress import Steps, on_another_thread, run_steps
from codex_checkpoints.service.refusal import Refusal, misfit, not_stored
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.settings import ignored_variable
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import HistoryItem, NewThread, Row, in_text
from codex_checkpoints.storage.records import MARKERS

logger = logging.getLogger(__name__)


class Compacting:
    """Compacts sessions of one home."""

    def __init__(
        self,
        sessions: Sessions,
        outside: HookRunner,
        update_index: Callable[[], object] = nothing,
    ) -> None:
        """Take the callback that updates the index: a compaction shares its read of the session."""
        self._sessions = sessions
        self._outside = outside
        self._sources = Sources(sessions, update_index)

    def preview(self, request: CompactionRequest) -> Compacted:
        """Return the report of a compaction; write nothing, run no hook. Refuses as `compact`."""
        source, plan = self._plan(request, seal=False)
        if isinstance(plan, Job):
            raise no_preview(source, plan.seconds)
        before = source.traced.history.chain
        windows, made = CompactionWindows(before, Chain(number=1)), None
        if request.into == "in-place":
            after = evolve(opened_after(before, ""), current=None)
            windows, made = CompactionWindows(before, after), source.session_id
        more = cautions(self._sessions, source, request.into)
        contents = contents_of(plan.built, live=source.live, more=more)
        return report_of(request, plan, windows, None, made, contents=contents)

    def compact(self, request: CompactionRequest) -> Compacted:
        """Run all steps on this thread."""
        return run_steps(self.in_steps(request))

    def in_steps(
        self,
        request: CompactionRequest,
        cancelled: Callable[[], bool] = never,
        asks_codex: Callable[[], object] = nothing,
    ) -> Steps[Compacted]:
        """Install a replacement: durable on return, and the next history that Codex sends (CKP-12).

        `cancelled` is a callback while a program runs, `asks_codex` one before Codex is asked.
        Refuses `unknown_session`, `unreadable_source`, `turn_not_complete`, `session_live`,
        `unsupported_placement`, `codex_not_found`, `missing_context`, `not_smaller`,
        `item_too_large`, `blocked_by_hook`, `timed_out`, `codex_failed`, `conflict`,
        `storage_error`; raises `Cancelled` only before anything is written.
        """
        source, plan = self._first_plan(request)
        at = self._outside.moment()
        ids = self._outside.new_ids(at, 6)
        events = Events.of(
            self._sessions, self._outside.moment, ids[0], source.session_id, source.last_turn
        )
        before, after = self._hook_call("preCompact"), self._hook_call("postCompact")
        job = plan if isinstance(plan, Job) else None

        def consult() -> tuple[tuple[HookOutcome, ...], HookOutcome | None, str | None]:
            results, stopped = before.ask(_hook_input(request, source, "PreCompact"), cancelled)
            fork = None if job is None or stopped is not None else job.run(cancelled)
            return results, stopped, fork

        if job is not None:
            asks_codex()
        with events.failing():
            results, stopped, fork = yield from on_another_thread(consult)
        if stopped is not None:
            raise blocked_by_hook(source, before, results, stopped, events)
        with events.failing():
            done = self._settled(request, source, plan, fork)
            record, row = self._installed(request, done, at, ids, events, results)
        words = _hook_input(request, done.source, "PostCompact") | {
            "compaction": _hook_facts(record)
        }
        observed = yield from on_another_thread(lambda: after.notify(words))
        if observed:
            events.note("CompactionObserved", {"hooks": without_reasons(observed)}, step=1)
        with contextlib.suppress(Refusal):  # the next request derives it again
            self._sessions.projections.keep(row, self._sessions.catalogue.open(row))
        made = record.compaction_id, record.session_id
        return report_of(request, done, record.windows, *made, hooks=(*results, *observed))

    # --- the plan --------------------------------------------------------------------------------

    def _first_plan(
        self, request: CompactionRequest
    ) -> tuple[CompactionSource, CompactionPlan | Job]:
        """Build as `_plan`; wait for a compaction of ours that is writing to the session."""
        try:
            return self._plan(request, seal=True)
        except Refusal as refusal:
            if refusal.code != "session_live":
                raise
            self._sessions.compactions.wait(str(refusal.facts["sessionId"]))
        return self._plan(request, seal=True)

    def _plan(
        self, request: CompactionRequest, *, seal: bool
    ) -> tuple[CompactionSource, CompactionPlan | Job]:
        """Build the replacement of a session, or a job for Codex; refuses as `compact`."""
        codex = self._codex_for(request.strategy)
        if codex is None:
            plan = self._built(request, seal=seal)
            return plan.source, plan
        source = self._source(request, seal=seal)
        # A request that Codex's answer could not save is refused before Codex is called.
        limits = budget(source.window, self._sessions.named)
        excerpt = excerpt_of(self._sessions, source, limits.window - limits.reserve)
        declined = not_now(self._terms(request, source), source.traced.history.context.usable)
        if declined is None and not source.traced.history.past:
            declined = Declined("missing_context", {"items": 0})
        if declined is not None:
            raise declined_by(declined, source)
        self._check_form(request, source)
        job = Job(
            self._outside.summarise,
            codex,
            self._sessions.catalogue.store.place,
            source.session_id,
            float(request.seconds or self._sessions.settings.codex_timeout_seconds),
            excerpt,
        )
        return source, job

    def _built(self, request: CompactionRequest, *, seal: bool) -> CompactionPlan:
        settings = self._sessions.settings
        quoted = bool(checked_budget(request.digest_tokens, settings.digest_tokens))
        source = self._source(request, seal=seal, quoted=quoted)
        terms, caps = self._terms(request, source), settings.caps_for(source.replay.state.model)
        past, checkpoint = self._sources.past(source), self._sources.checkpoint(source)
        if quoted and source.gathered is not None:
            terms = evolve(terms, digest=self._digest(request, source, source.gathered))
        built = build(past, checkpoint, caps, terms)
        if isinstance(built, Declined):
            raise declined_by(built, source)
        self._check_form(request, source)
        if request.into == "in-place":
            check_appendable(source, built.items)
        return CompactionPlan(source, terms, built)

    def _digest(
        self, request: CompactionRequest, source: CompactionSource, gathered: DigestSource
    ) -> Callable[[Sequence[str], int], Digest]:
        """Return the function that makes a source's digest, beside messages and for a context."""
        setting = self._sessions.settings.digest_tokens
        digests = Digests(self._sessions)

        def digest(beside: Sequence[str], before: int) -> Digest:
            default = default_budget(setting, source.window, before)
            budget = checked_budget(request.digest_tokens, default)
            return digest_v1(gathered, digests.terms(budget, beside))

        return digest

    def _source(
        self, request: CompactionRequest, *, seal: bool, quoted: bool = False
    ) -> CompactionSource:
        if seal:
            self._sessions.catalogue.cache.latest = None
            source = self._sources.read(request.session, seal=True, quoted=quoted)
        else:
            source = self._sources.read_for_preview(request.session)
        if request.into == "in-place" and source.live:
            raise session_live(source.session_id)
        if request.into == "in-place" and source.row.archived:
            message = f"session {source.session_id} is archived: it must leave the archive first"
            hint = "Unarchive it first, or compact into a new session."
            facts = {"sessionId": source.session_id, "reason": "archived", "hint": hint}
            raise Refusal("conflict", message, facts)
        if not request.force:
            refuse_repeated(self._sessions.compactions.of(source.session_id), source)
        if request.requested_by != "automatic":  # otherwise the earlier check has reported it
            for name in self._sessions.ignored_variables():
                logger.warning("%s", ignored_variable(name))
        return source

    def _check_form(self, request: CompactionRequest, source: CompactionSource) -> None:
        if request.into != "in-place":
            return
        try:
            self._sessions.threads.check_append(source.session_id)
        except Refusal as refusal:
            facts = {**refusal.facts, "hint": "Compact into a new session."}
            raise Refusal(refusal.code, refusal.message, facts) from refusal

    def _codex_for(self, strategy: str) -> str | None:
        if strategy == "checkpoint":
            return None
        if strategy != "codex":
            problem = f"strategy: {strategy[:80]!r} is not one of checkpoint, codex"
            raise misfit(problem)
        codex = self._outside.find_codex()
        if codex is None:
            message = "the strategy `codex` needs the Codex CLI, and there is none on the PATH"
            raise Refusal("codex_not_found", message, {"strategy": strategy})
        return codex

    def _terms(self, request: CompactionRequest, source: CompactionSource) -> Terms:
        settings, context = self._sessions.settings, source.traced.history.context
        turns = source.replay.state.turns
        waived: set[Reason] = {"not_smaller"} if request.force else set()
        if source.cut_off or (request.force and not source.live):
            waived.add("turn_not_complete")  # no process continues it
        return Terms(
            placement=request.placement,
            turn_ended=source.ended,
            budget=settings.retained_tokens,
            before=context.usable,
            calibration=context.calibration,
            target=budget(source.window, self._sessions.named).target,
            asked=asked_messages(turns),
            has_turns=any(True for _ in turns.counting()),
            waived=frozenset(waived),
        )

    def _settled(
        self,
        request: CompactionRequest,
        source: CompactionSource,
        plan: CompactionPlan | Job,
        fork: str | None,
    ) -> CompactionPlan:
        """Return the plan to install, rebuilt if the session changed in the meantime.

        `fork` is the scratch fork with a summary by Codex, which knows nothing of later records.
        """
        changed = self._sources.is_changed(source)
        if isinstance(plan, CompactionPlan):
            if changed:
                plan = self._built(request, seal=True)
                # A compaction that was written in the meantime must still be refused.
                plan = evolve(plan, source=evolve(plan.source, known=source.known))
            return plan
        if changed:
            message = (
                f"session {source.session_id} went on while Codex made its summary, so nothing is"
                " installed"
            )
            facts = {"sessionId": source.session_id, "reason": "gone_on"}
            raise Refusal("conflict", message, facts)
        terms = self._terms(request, source)
        items = material(self._sessions, source, fork or "")
        built = adopt(self._sources.past(source), items, terms)
        if isinstance(built, Declined):
            raise declined_by(built, source)
        return CompactionPlan(source, terms, built, determinism_of(built.items))

    # --- the install -----------------------------------------------------------------------------

    def _installed(  # noqa: PLR0913, PLR0917 - plan, time, ids, and hook results
        self,
        request: CompactionRequest,
        plan: CompactionPlan,
        at: datetime,
        ids: Sequence[str],
        events: Events,
        results: Sequence[HookOutcome],
    ) -> tuple[Installed, Row]:
        """Install a replacement, durable on return; the id of the compaction is the first.

        Refuses `conflict`, `session_live`, `unreadable_source`, `storage_error`; raises `Cancelled`
        only before anything is written.
        """
        sessions, source, built = self._sessions, plan.source, plan.built
        source_id, stamp = source.session_id, in_text(at)
        replaced = self._sources.range_of(source)
        made: NewThread | tuple[HistoryItem, ...]
        if request.into == "new":
            session_id, (made, chain) = ids[1], self._new(plan, stamp, ids[1:])
        else:
            session_id, chain = source_id, opened_after(source.traced.history.chain, ids[1])
            size, moment = built.report.after, moment_of(stamp)
            made = appended_lines(source, built.items, size, chain, ids[4], moment)
        sessions.progress.commit()
        kept = sessions.projections.keep(source.row, source.opened)
        if kept.storage_problem is not None:
            error = StorageError(kept.storage_problem, sessions.records.state_dir)
            raise not_stored("the checkpoint cannot be stored", error, {"sessionId": source_id})
        report = built.report
        record = Installed(
            compaction_id=ids[0],
            at=stamp,
            requested_by=request.requested_by,
            why=request.why,
            placement=plan.placement,
            strategy=plan.strategy,
            determinism=plan.determinism,
            into=request.into,
            session_id=session_id,
            source=replaced,
            replacement=digest_of(built.items),
            items=remaining(built),
            counts=counts_of(report),
            sizes=Sizes(report.before, Figure(report.after, "estimated"), report.bound),
            windows=CompactionWindows(source.traced.history.chain, chain),
            seed=kept.checkpoint if request.into == "new" else None,
        )
        more = fields_of(record) | {"hooks": without_reasons(results)}
        event = events.event("CompactionInstalled", more, session_id)
        with changing(sessions, source_id, record, event) as log:
            refuse_second(log.records, source)
            log.add(Prepared(record))
            if isinstance(made, NewThread):
                with sessions.compactions.locked(session_id) as new_log:
                    new_log.add(record)
                pins = marker_set_of(sessions.records.lines(source_id, MARKERS)).pins
                # Its markers stay with its turns.
                added(sessions.records, session_id, MARKERS, lines_of(MarkerSet(pins=pins), stamp))
                row = sessions.threads.create(made, at)
            else:
                sessions.threads.append(source_id, made, at, expected=source.version)
                row = sessions.own(source_id)
        return record, row

    def _new(self, plan: CompactionPlan, stamp: str, ids: Sequence[str]) -> tuple[NewThread, Chain]:
        session_id, first, second, turn_id, item_id = ids
        source, traced = plan.source, plan.source.traced
        row, window = source.row, source.window
        made = new_session(
            plan.built.items,
            SourceSession(
                source.session_id,
                row.base or "",
                traced.head,
                window,
                traced.last_settings,
                row.cwd,
                traced.thread_settings,
            ),
            Naming(self._sessions.title(row) or "", turn_id, item_id),
            moment_of(stamp),
            (session_id, first, second),
        )
        # Lists read the fill of the session from this before Codex has sent it (CKP-28).
        info = {"info": {"model_context_window": window}}
        size = token_count(plan.built.report.after, info)
        return NewThread(made.meta, items_of((*made.lines, size))), made.chain

    def _hook_call(self, event: str) -> HookEvent:
        hooks = self._sessions.settings.hooks.get(event, ())
        return HookEvent(hooks, self._outside.run, self._sessions.records.state_dir)


def _hook_facts(record: Installed) -> dict[str, object]:
    """Return the facts of a compaction for hooks: ids, counts and digests."""
    return {
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


def _hook_input(
    request: CompactionRequest, source: CompactionSource, event: str
) -> dict[str, object]:
    """Return the input that Codex gives its own hooks for this event."""
    row, turn = source.row, source.last_turn
    return {
        "session_id": row.session_id,
        "turn_id": None if turn is None else turn.turn_id,
        "transcript_path": row.path,
        "cwd": row.folder,
        "hook_event_name": event,
        "model": row.model,
        "trigger": "auto" if request.requested_by == "automatic" else "manual",
    }
