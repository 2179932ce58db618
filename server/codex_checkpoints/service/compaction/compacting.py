"""Compaction as an operation: install a checkpoint in the place of a history (CKP-1).

The steps that wait for other programs may run on any thread; the others belong to the thread of the
service: `ask` reads and builds, `Asked.consult` waits for hooks and for Codex, `install` reads a
changed session again and installs, `Done.tell` waits for the hooks that run after, `finish` writes
the event. `compact` does all of them in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime

from attrs import evolve

from codex_checkpoints.codex.app_server import nobody
from codex_checkpoints.core.compaction.records import Installed, Windows
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.service.compaction.installing import Installer, Operation
from codex_checkpoints.service.compaction.plan import CompactionPlan, PendingSummary, Planner
from codex_checkpoints.service.compaction.request import (
    Compacted,
    HookCall,
    HookResult,
    HookRunner,
    Request,
    no_preview,
    summary_outdated,
)
from codex_checkpoints.service.compaction.source import (
    CompactionSource,
    Sources,
    nothing,
    opened_after,
)
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.values import frozen


@frozen
class Asked:
    """A compaction that is planned; nothing is written, and no other program was asked."""

    request: Request
    plan: CompactionPlan | PendingSummary
    at: datetime
    ids: tuple[str, ...]
    operation: Operation
    before: HookCall
    after: HookCall

    def consult(self, cancelled: Callable[[], bool] = nobody) -> Consulted:
        """Run the hooks that run before (CKP-11), then Codex; any thread may call this.

        `cancelled` is called while one of them runs.
        """
        words = _hook_input(self.request, self.plan.source, "PreCompact")
        try:
            results, stopped = self.before.ask(words, cancelled)
        except Cancelled as called_off:
            return Consulted(self, (), called_off)
        return Consulted(self, results, stopped or self._pending(cancelled))

    def _pending(
        self, cancelled: Callable[[], bool]
    ) -> CompactionPlan | Summarised | Refusal | Cancelled:
        if isinstance(self.plan, CompactionPlan):
            return self.plan
        try:
            return Summarised(self.plan, self.plan.job.run(cancelled))
        except (Refusal, Cancelled) as problem:
            return problem  # the thread that owns the sessions notes it


@frozen
class Summarised:
    """A session that Codex has compacted in a scratch fork."""

    pending: PendingSummary
    scratch_id: str


@frozen
class Consulted:
    """The results of the hooks that run before; `outcome` is what to install, or what stops it."""

    asked: Asked
    results: tuple[HookResult, ...]
    outcome: CompactionPlan | Summarised | HookResult | Refusal | Cancelled


@frozen
class Done:
    """A compaction that is installed."""

    consulted: Consulted
    plan: CompactionPlan
    record: Installed
    row: Row

    def notify(self) -> tuple[HookResult, ...]:
        """Run the hooks that run after, with ids, counts and digests; any thread may call this."""
        record, asked = self.record, self.consulted.asked
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
        words = _hook_input(asked.request, self.plan.source, "PostCompact") | {
            "compaction": compaction
        }
        return asked.after.notify(words)


class Compacting:
    """Compactions of the sessions of one home."""

    def __init__(
        self,
        sessions: Sessions,
        outside: HookRunner,
        look_around: Callable[[], object] = nothing,
    ) -> None:
        """Take `look_around`, which updates the index: its read of the session is shared."""
        self._sessions = sessions
        self._outside = outside
        self._sources = Sources(sessions, look_around)
        self._planner = Planner(sessions, outside, self._sources)
        self._installer = Installer(sessions, self._sources)

    def preview(self, request: Request) -> Compacted:
        """Return the report of a compaction; write nothing, run no hook. Refuses as `compact`."""
        plan = self._planner.plan(request, self._sources.read)
        if isinstance(plan, PendingSummary):
            raise no_preview(plan.source.session_id, plan.before, plan.job.seconds)
        before = plan.source.traced.history.chain
        if request.into == "in-place":
            windows = Windows(before, evolve(opened_after(before, ""), current=None))
            return _compacted(request, plan, None, plan.source.session_id, windows)
        return _compacted(request, plan, None, None, Windows(before, Chain(number=1)))

    def compact(self, request: Request) -> Compacted:
        """Install a replacement: durable, and what Codex sends next, on return.

        Refuses `unknown_session`, `unreadable_source`, `turn_not_complete`, `session_live`,
        `unsupported_placement`, `codex_not_found`, `missing_context`, `not_smaller`,
        `item_too_large`, `blocked_by_hook`, `timed_out`, `codex_failed`, `conflict`,
        `storage_error`.
        """
        done = self.install(self.ask(request).consult())
        return self.finish(done, done.notify())

    # --- the steps -------------------------------------------------------------------------------

    def ask(self, request: Request) -> Asked:
        """Plan what would be installed; refuses as `compact`."""
        plan = self._planner.plan(request, self._sources.sealed)
        at = self._outside.moment()
        ids = self._outside.new_ids(at, 6)
        source = plan.source
        operation = Operation(
            self._sessions, self._outside.moment, ids[0], source.session_id, source.last_turn
        )
        calls = self._hook_call("preCompact"), self._hook_call("postCompact")
        return Asked(request, plan, at, ids, operation, *calls)

    def install(self, consulted: Consulted) -> Done:
        """Install the outcome; refuses `blocked_by_hook`, and as `compact` (CKP-12).

        Raises `Cancelled` only before anything is written.
        """
        asked = consulted.asked
        if isinstance(consulted.outcome, HookResult):
            asked.operation.blocked(consulted.results)
            raise _blocked(asked, consulted.outcome)
        try:
            plan = self._settled(asked, consulted.outcome)
            record, row = self._installer.install(
                asked.request,
                plan,
                asked.at,
                asked.ids,
                lambda record: asked.operation.installed(record, consulted.results),
            )
        except Refusal as refusal:
            asked.operation.failed(refusal.code)
            raise
        return Done(consulted, plan, record, row)

    def finish(self, done: Done, after: tuple[HookResult, ...]) -> Compacted:
        """Write the results of the hooks that run after, and return the report."""
        consulted, record = done.consulted, done.record
        consulted.asked.operation.observed(after)
        with contextlib.suppress(Refusal):  # it can be derived again, whoever asks first
            self._sessions.projections.keep(done.row, self._sessions.catalogue.open(done.row))
        found = _compacted(
            consulted.asked.request,
            done.plan,
            record.compaction_id,
            record.session_id,
            record.windows,
        )
        return evolve(found, hooks=(*consulted.results, *after))

    # --- inside ----------------------------------------------------------------------------------

    def _settled(
        self, asked: Asked, outcome: CompactionPlan | Summarised | Refusal | Cancelled
    ) -> CompactionPlan:
        """Return the plan to install; plan again where the session changed in the meantime."""
        changed = self._sources.is_changed(asked.plan.source)
        match outcome:
            case Refusal() | Cancelled():
                raise outcome
            case Summarised() if changed:  # the summary knows nothing of what came since
                raise summary_outdated(asked.plan.source.session_id)
            case Summarised():
                return self._planner.adopted(outcome.pending, outcome.scratch_id)
            case CompactionPlan() if changed:
                return self._planner.built(asked.request, self._sources.sealed)
            case CompactionPlan():
                return outcome

    def _hook_call(self, event: str) -> HookCall:
        hooks = self._sessions.settings.hooks.get(event, ())
        return HookCall(hooks, self._outside.run, self._sessions.records.state_dir)


def _blocked(asked: Asked, stopped: HookResult) -> Refusal:
    if asked.before.hooks[stopped.number - 1].command:
        message = f"hook {stopped.number} of preCompact stopped it: {stopped.outcome}"
        message += f", {stopped.reason}" if stopped.reason else ""
    else:
        message = (
            "the settings cannot be read, and they may name hooks that would stop it; "
            "`doctor` says what is wrong"
        )
    facts = {
        "sessionId": asked.plan.source.session_id,
        "hook": stopped.number,
        "outcome": stopped.outcome,
        "reason": stopped.reason,
    }
    return Refusal("blocked_by_hook", message, facts)


def _compacted(
    request: Request,
    plan: CompactionPlan,
    compaction_id: str | None,
    session_id: str | None,
    windows: Windows,
) -> Compacted:
    return Compacted(
        compaction_id=compaction_id,
        session_id=session_id,
        source_session_id=plan.source.session_id,
        into=request.into,
        strategy=plan.strategy,
        determinism=plan.determinism,
        placement=plan.placement,
        built=plan.built,
        windows=windows,
    )


def _hook_input(request: Request, source: CompactionSource, event: str) -> dict[str, object]:
    """Return the input that Codex gives its own hooks for this event."""
    row, turn = source.row, source.last_turn
    return {
        "session_id": row.session_id,
        "turn_id": None if turn is None else turn.turn_id,
        "transcript_path": row.path,
        "cwd": row.cwd,
        "hook_event_name": event,
        "model": row.model,
        "trigger": "auto" if request.requested_by == "automatic" else "manual",
    }
