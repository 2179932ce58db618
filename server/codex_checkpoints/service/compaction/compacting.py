"""Compaction as an operation: install a checkpoint in the place of a history (CKP-1).

`ask` reads and builds, without writing (CKP-14), `Asked.consult` waits for hooks and for Codex,
`install` reads a changed session again, `Done.notify` waits for the hooks that run after, `finish`
writes the event.  What waits for other programs may run on any thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime

from codex_checkpoints import logs
from codex_checkpoints.codex.app_server import nobody
from codex_checkpoints.core.compaction.building import (
    Declined,
    Placement,
    Reason,
    Replacement,
    Terms,
    TooLarge,
    adopt,
    build,
    not_now,
)
from codex_checkpoints.core.compaction.installed import (
    Naming,
    SourceSession,
    moment_of,
    new_session,
    token_count,
)
from codex_checkpoints.core.compaction.offering import budget
from codex_checkpoints.core.compaction.records import (
    Determinism,
    Installed,
    Prepared,
    Record,
    Sizes,
    Strategy,
    Windows,
    contents_of,
    counts_of,
    digest_of,
    remaining,
    standing,
)
from codex_checkpoints.core.digest.composing import Digest, digest_v1
from codex_checkpoints.core.digest.records import Gathered
from codex_checkpoints.core.history.tokens import Figure
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.restore.markers import MarkerSet, lines_of, marker_set_of
from codex_checkpoints.service.compaction.installing import (
    Operation,
    changing,
    fields_of,
    without_reasons,
)
from codex_checkpoints.service.compaction.request import (
    Compacted,
    HookCall,
    HookResult,
    HookRunner,
    Job,
    Request,
    cautions,
    declined_by,
    determinism_of,
    excerpt_of,
    material,
    no_preview,
    session_live,
    summary_outdated,
)
from codex_checkpoints.service.compaction.source import (
    CompactionSource,
    Sources,
    behind,
    check_behind,
    items_of,
    nothing,
    opened_after,
)
from codex_checkpoints.service.digests import Digests, checked_budget, default_budget
from codex_checkpoints.service.refusal import Cancelled, Refusal, misfit
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.settings import left_aside
from codex_checkpoints.service.undertaking import added
from codex_checkpoints.storage.contract import HistoryItem, NewThread, Row, in_text
from codex_checkpoints.storage.records import MARKERS
from codex_checkpoints.values import define, evolve, frozen


@frozen
class CompactionPlan:
    """A session, and the replacement for it: its strategy, and how it was made (CKP-24)."""

    source: CompactionSource
    terms: Terms
    built: Replacement
    strategy: Strategy = "checkpoint"
    determinism: Determinism = "deterministic"

    @property
    def placement(self) -> Placement:
        """Return the placement for the record."""
        return "pre_turn" if self.terms.placement == "pre_turn" else "manual"


@frozen
class PendingSummary:
    """A session that may be compacted, and the job for Codex that makes its summary."""

    source: CompactionSource
    terms: Terms
    job: Job

    @property
    def before(self) -> Figure:
        """Return the tokens in its window."""
        return self.terms.size_of(self.source.traced.history.items)


@define
class Asked:
    """A compaction that is planned; nothing is written.

    `results` are those of the hooks that run before; `outcome` is what to install, the id of the
    fork with a summary by Codex, or what stops it.
    """

    request: Request
    plan: CompactionPlan | PendingSummary
    at: datetime
    ids: tuple[str, ...]
    events: Operation
    before: HookCall
    after: HookCall
    results: tuple[HookResult, ...] = ()
    outcome: CompactionPlan | str | HookResult | Refusal | Cancelled | None = None

    def consult(self, cancelled: Callable[[], bool] = nobody) -> Asked:
        """Run the hooks that run before (CKP-11), then Codex; any thread may call this.

        `cancelled` is called while one of them runs.
        """
        words = _hook_input(self.request, self.plan.source, "PreCompact")
        try:
            self.results, self.outcome = self.before.ask(words, cancelled)
            if self.outcome is None:
                plan = self.plan
                self.outcome = plan if isinstance(plan, CompactionPlan) else plan.job.run(cancelled)
        except (Refusal, Cancelled) as problem:
            self.outcome = problem  # the thread that owns the sessions notes it
        return self


@frozen
class Done:
    """A compaction that is installed."""

    asked: Asked
    plan: CompactionPlan
    record: Installed
    row: Row

    def notify(self) -> tuple[HookResult, ...]:
        """Run the hooks that run after, with ids, counts and digests; any thread may call this."""
        record = self.record
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
        words = _hook_input(self.asked.request, self.plan.source, "PostCompact")
        return self.asked.after.notify(words | {"compaction": compaction})


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

    def preview(self, request: Request) -> Compacted:
        """Return the report of a compaction; write nothing, run no hook. Refuses as `compact`."""
        plan = self._plan(request, seal=False)
        source_id, before = plan.source.session_id, plan.source.traced.history.chain
        if isinstance(plan, PendingSummary):
            raise no_preview(source_id, plan.before, plan.job.seconds)
        in_place = request.into == "in-place"
        after = evolve(opened_after(before, ""), current=None) if in_place else Chain(number=1)
        made = source_id if in_place else None
        found = _compacted(request, plan, None, made, Windows(before, after))
        more = cautions(self._sessions, plan.source, request.into)
        return evolve(found, contents=contents_of(plan.built, live=plan.source.live, more=more))

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
        plan = self._plan(request, seal=True)
        at, source = self._outside.moment(), plan.source
        ids = self._outside.new_ids(at, 6)
        events = Operation(
            self._sessions, self._outside.moment, ids[0], source.session_id, source.last_turn
        )
        calls = self._hook_call("preCompact"), self._hook_call("postCompact")
        return Asked(request, plan, at, ids, events, *calls)

    def install(self, asked: Asked) -> Done:
        """Install the outcome; refuses `blocked_by_hook`, and as `compact` (CKP-12).

        Raises `Cancelled` only before anything is written.
        """
        outcome = asked.outcome
        if isinstance(outcome, HookResult):
            more: dict[str, object] = {"hooks": without_reasons(asked.results)}
            if not _is_hook(asked, outcome):
                more = {"hooks": [], **_UNREAD}
            asked.events.note("CompactionBlocked", more)
            raise _blocked(asked, outcome)
        try:
            return self._installed(asked, self._settled(asked, outcome))
        except Refusal as refusal:
            asked.events.note("CompactionFailed", {"code": refusal.code})
            raise

    def finish(self, done: Done, after: tuple[HookResult, ...]) -> Compacted:
        """Write the results of the hooks that run after, and return the report."""
        asked, record = done.asked, done.record
        if after:
            hooks = {"hooks": without_reasons(after)}
            asked.events.note("CompactionObserved", hooks, step=1)
        with contextlib.suppress(Refusal):  # it can be derived again, whoever asks first
            self._sessions.projections.keep(done.row, self._sessions.catalogue.open(done.row))
        found = _compacted(
            asked.request, done.plan, record.compaction_id, record.session_id, record.windows
        )
        return evolve(found, hooks=(*asked.results, *after))

    # --- the plan --------------------------------------------------------------------------------

    def _plan(self, request: Request, *, seal: bool) -> CompactionPlan | PendingSummary:
        """Build the replacement of a session, or a job for Codex; refuses as `compact`."""
        codex = self._codex_for(request.strategy)
        if codex is None:
            return self._built(request, seal=seal)
        source, terms = self._ground(request, seal=seal)
        limits = budget(source.window, self._sessions.named)
        excerpt = excerpt_of(self._sessions, source, limits.window - limits.reserve)
        if isinstance(excerpt, TooLarge):
            facts = {"tokens": excerpt.tokens, "target": excerpt.limit}
            raise declined_by(Declined("item_too_large", facts), source)
        job = Job(
            self._outside.summarise,
            codex,
            self._sessions.catalogue.store.place,
            source.session_id,
            float(request.seconds or self._sessions.settings.codex_timeout_seconds),
            excerpt,
        )
        pending = PendingSummary(source, terms, job)
        # What would be refused after Codex was called is refused before.
        declined = not_now(terms, pending.before)
        if declined is None and not source.traced.history.items:
            declined = Declined("missing_context", {"items": 0})
        if declined is not None:
            raise declined_by(declined, source)
        self._check_form(request, source)
        return pending

    def _built(self, request: Request, *, seal: bool) -> CompactionPlan:
        settings = self._sessions.settings
        default = settings.digest_tokens or len(settings.folders)
        quoted = bool(checked_budget(request.digest_tokens, default))
        source, terms = self._ground(request, seal=seal, quoted=quoted)
        caps = self._sessions.settings.caps_for(source.replay.state.model)
        past, checkpoint = self._sources.past(source), self._sources.checkpoint(source)
        if quoted and source.gathered is not None:
            terms = evolve(terms, digest=self._digest(request, source, source.gathered))
        match build(past, checkpoint, caps, terms):
            case Declined() as declined:
                raise declined_by(declined, source)
            case Replacement() as built:
                self._check_form(request, source)
                if request.into == "in-place":
                    check_behind(source, built.items)
                return CompactionPlan(source, terms, built)

    def _digest(
        self, request: Request, source: CompactionSource, gathered: Gathered
    ) -> Callable[[Sequence[str], int], Digest]:
        """Return what makes the digest of a source, beside messages and for a context."""
        setting = self._sessions.settings.at(source.row.cwd).digest_tokens
        digests = Digests(self._sessions)

        def digest(beside: Sequence[str], before: int) -> Digest:
            default = default_budget(setting, source.window, before)
            budget = checked_budget(request.digest_tokens, default)
            return digest_v1(gathered, digests.terms(source.row, budget, beside))

        return digest

    def _adopted(self, source: CompactionSource, terms: Terms, scratch_id: str) -> CompactionPlan:
        """Make a replacement of the history in a scratch fork (CKP-20, CKP-21).

        Refuses `codex_failed`, `missing_context`, `not_smaller`, `item_too_large`.
        """
        items = material(self._sessions, source, scratch_id)
        match adopt(self._sources.past(source), items, terms):
            case Declined() as declined:
                raise declined_by(declined, source)
            case Replacement() as built:
                return CompactionPlan(source, terms, built, "codex", determinism_of(built.items))

    def _ground(
        self, request: Request, *, seal: bool, quoted: bool = False
    ) -> tuple[CompactionSource, Terms]:
        if seal:
            self._sessions.previewed = None
            source = self._sources.read(request.session, seal=True, quoted=quoted)
        else:
            source = self._sources.look_at(request.session)
        _check_target(request, source)
        return source, self._terms(request, source)

    def _check_form(self, request: Request, source: CompactionSource) -> None:
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

    def _terms(self, request: Request, source: CompactionSource) -> Terms:
        settings, context = self._sessions.settings, source.traced.history.context
        waived: set[Reason] = {"not_smaller"} if request.force else set()
        if request.force and not source.live:
            waived.add("turn_not_complete")  # nobody goes on with it: it was cut off
        if request.requested_by != "automatic":  # else whoever looked before has told it
            for name in self._sessions.ignored_variables():
                logs.warn(__name__, "%s", left_aside(name))
        return Terms(
            placement=request.placement,
            turn_ended=source.ended,
            budget=settings.retained_tokens,
            before=context.usable,
            beside=context.beside,
            target=budget(source.window, self._sessions.named).target,
            waived=frozenset(waived),
        )

    def _settled(
        self, asked: Asked, outcome: CompactionPlan | str | Refusal | Cancelled | None
    ) -> CompactionPlan:
        """Return the plan to install; plan again where the session changed in the meantime."""
        source, terms = asked.plan.source, asked.plan.terms
        changed = self._sources.is_changed(source)
        match outcome:
            case Refusal() | Cancelled():
                raise outcome
            case str() if changed:  # the summary knows nothing of what came since
                raise summary_outdated(source.session_id)
            case str():
                return self._adopted(source, terms, outcome)
            case CompactionPlan() if not changed:
                return outcome
            case _:
                return self._built(asked.request, seal=True)

    # --- the install -----------------------------------------------------------------------------

    def _installed(self, asked: Asked, plan: CompactionPlan) -> Done:
        """Install a replacement, durable on return; the id of the compaction is the first.

        Refuses `conflict`, `session_live`, `unreadable_source`, `storage_error`; raises `Cancelled`
        only before anything is written.
        """
        sessions, request, source = self._sessions, asked.request, plan.source
        source_id = source.session_id
        replaced = self._sources.range_of(source)
        made = self._new(plan, asked) if request.into == "new" else _in_place(plan, asked)
        session_id, chain, what = made
        sessions.pace.commit()
        kept = sessions.projections.keep(source.row, source.opened)
        if kept.storage_problem is not None:
            facts = {"sessionId": source_id, "reason": kept.storage_problem}
            message = f"the checkpoint cannot be stored: {kept.storage_problem}"
            raise Refusal("storage_error", message, facts)
        report = plan.built.report
        record = Installed(
            compaction_id=asked.ids[0],
            at=in_text(asked.at),
            requested_by=request.requested_by,
            why=request.why,
            placement=plan.placement,
            strategy=plan.strategy,
            determinism=plan.determinism,
            into=request.into,
            session_id=session_id,
            source=replaced,
            replacement=digest_of(plan.built.items),
            items=remaining(plan.built),
            counts=counts_of(report),
            sizes=Sizes(report.before, Figure(report.after, "estimated"), report.bound),
            windows=Windows(source.traced.history.chain, chain),
            seed=kept.checkpoint if request.into == "new" else None,
        )
        more = fields_of(record) | {"hooks": without_reasons(asked.results)}
        event = asked.events.event("CompactionInstalled", more, session_id)
        with changing(sessions, source_id, record, event) as held:
            _refuse_second(held.records, asked.plan.source)
            held.add(Prepared(record))
            if isinstance(what, NewThread):
                with sessions.compactions.held(session_id) as given:
                    given.add(record)
                added(sessions.records, session_id, MARKERS, self._pins(source_id, record.at))
                row = sessions.threads.create(what, asked.at)
            else:
                sessions.threads.append(source_id, what, asked.at, expected=source.look)
                row = sessions.own(source_id)
        return Done(asked, plan, record, row)

    def _pins(self, source_id: str, at: str) -> list[dict[str, object]]:
        """Return the lines of the pins of a source; its markers stay with its turns."""
        pins = marker_set_of(self._sessions.records.lines(source_id, MARKERS)).pins
        return lines_of(MarkerSet(pins=pins), at)

    def _new(self, plan: CompactionPlan, asked: Asked) -> _Change:
        _, session_id, first, second, turn_id, item_id = asked.ids
        source = plan.source
        cwd, head = source.row.cwd or "", source.traced.head
        made = new_session(
            plan.built.items,
            SourceSession(source.session_id, cwd, head, source.window, source.traced.last_settings),
            Naming(self._sessions.title(source.row) or "", turn_id, item_id),
            moment_of(in_text(asked.at)),
            (session_id, first, second),
        )
        # By this a list knows how full the session is before Codex has ever sent it (CKP-28).
        fields = token_count(
            plan.built.report.after, {"info": {"model_context_window": source.window}}
        )
        return session_id, made.chain, NewThread(made.meta, items_of((*made.lines, fields)))

    def _hook_call(self, event: str) -> HookCall:
        hooks = self._sessions.settings.hooks.get(event, ())
        return HookCall(hooks, self._outside.run, self._sessions.records.state_dir)


_Change = tuple[str, Chain, NewThread | tuple[HistoryItem, ...]]
"""The session where the work continues, its windows, and what an install writes."""


def _in_place(plan: CompactionPlan, asked: Asked) -> _Change:
    _, window_id, _, _, turn_id, _ = asked.ids
    source = plan.source
    chain = opened_after(source.traced.history.chain, window_id)
    built, at = plan.built, moment_of(in_text(asked.at))
    lines = behind(source, built.items, built.report.after, chain, turn_id, at)
    return source.session_id, chain, lines


def _refuse_second(records: Sequence[Record], source: CompactionSource) -> None:
    """Refuse `conflict` where another process compacted a session since it was read."""
    newest = standing(records, source.session_id)
    if newest is not None and newest.compaction_id not in source.known:
        message = f"session {source.session_id} was compacted meanwhile: {newest.session_id}"
        facts = {"sessionId": source.session_id, "reason": "compacted", "into": newest.session_id}
        raise Refusal("conflict", message, facts)


def _check_target(request: Request, source: CompactionSource) -> None:
    if request.into != "in-place":
        return
    if source.live:
        raise session_live(source.session_id)
    if source.row.archived:
        message = f"session {source.session_id} is archived: it has to leave the archive first"
        hint = "Unarchive it first, or compact into a new session."
        facts = {"sessionId": source.session_id, "reason": "archived", "hint": hint}
        raise Refusal("conflict", message, facts)


_UNREAD = {"reason": "settings"}
"""What stands for a hook where the settings cannot be read, which may name one."""


def _is_hook(asked: Asked, stopped: HookResult) -> bool:
    """Return whether a hook stopped it; settings that cannot be read stand as one without words."""
    return bool(asked.before.hooks[stopped.number - 1].command)


def _blocked(asked: Asked, stopped: HookResult) -> Refusal:
    facts: dict[str, object] = {
        "sessionId": asked.plan.source.session_id,
        "hook": stopped.number,
        "outcome": stopped.outcome,
        "reason": stopped.reason,
    }
    if not _is_hook(asked, stopped):
        message = "the settings cannot be read, and they may name hooks that would stop it"
        hint = "`codex-checkpoints doctor` says what is wrong with config.toml."
        unread = {**_UNREAD, "hook": None, "hint": hint}
        return Refusal("blocked_by_hook", message, facts | unread)
    message = f"preCompact hook {stopped.number} stopped it: {stopped.outcome}"
    message += f", {stopped.reason}" if stopped.reason else ""
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
        window=plan.source.window,
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
