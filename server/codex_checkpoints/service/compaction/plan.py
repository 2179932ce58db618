"""Plan a compaction without writing (CKP-14): read the session, check it, build the replacement.

For the strategy `codex` the plan holds a job instead: Codex makes the replacement later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from codex_checkpoints.core.compaction.building import (
    Declined,
    Figure,
    Placement,
    Reason,
    Replacement,
    Terms,
    TooLarge,
    build,
    not_now,
)
from codex_checkpoints.core.compaction.foreign import adopt
from codex_checkpoints.core.compaction.offering import budget
from codex_checkpoints.core.compaction.records import Determinism, Strategy
from codex_checkpoints.core.history.tokens import of_items
from codex_checkpoints.service.compaction.request import (
    HookRunner,
    Job,
    Request,
    declined_by,
    determinism_of,
    excerpt_of,
    material,
    session_live,
)
from codex_checkpoints.service.compaction.source import CompactionSource, Sources, check_behind
from codex_checkpoints.service.refusal import Refusal, misfit
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.settings import left_aside
from codex_checkpoints.values import frozen

logger = logging.getLogger(__name__)


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
        estimated = of_items(self.source.traced.history.items)
        return self.terms.before or Figure(estimated, "estimated")


class Planner:
    """Plans compactions."""

    def __init__(self, sessions: Sessions, outside: HookRunner, sources: Sources) -> None:
        self._sessions = sessions
        self._outside = outside
        self._sources = sources

    def plan(
        self, request: Request, read: Callable[[str], CompactionSource]
    ) -> CompactionPlan | PendingSummary:
        """Build the replacement of a session, or a job; refuses as `Compacting.compact`."""
        codex = self._codex_for(request.strategy)
        if codex is None:
            return self.built(request, read)
        source, terms = self._ground(request, read)
        limits = budget(source.window, self._sessions.named)
        excerpt = excerpt_of(self._sessions, source, limits.window - limits.reserve)
        if isinstance(excerpt, TooLarge):
            facts = {"tokens": excerpt.tokens, "target": excerpt.limit}
            raise declined_by(Declined("item_too_large", facts), source.session_id)
        job = Job(
            self._outside.summarise,
            codex,
            self._sessions.catalogue.place,
            source.session_id,
            float(request.seconds or self._sessions.settings.codex_timeout_seconds),
            excerpt,
        )
        pending = _pending(source, terms, job)
        self._check_form(request, source)
        return pending

    def adopted(self, pending: PendingSummary, scratch_id: str) -> CompactionPlan:
        """Make a replacement of the history in a scratch fork (CKP-20, CKP-21).

        Refuses `codex_failed`, `missing_context`, `not_smaller`, `item_too_large`.
        """
        source, terms = pending.source, pending.terms
        items = material(self._sessions, source, scratch_id)
        match adopt(self._sources.past(source), items, terms):
            case Declined() as declined:
                raise declined_by(declined, source.session_id)
            case Replacement() as built:
                return CompactionPlan(source, terms, built, "codex", determinism_of(built.items))

    def built(self, request: Request, read: Callable[[str], CompactionSource]) -> CompactionPlan:
        """Build the replacement of a session from its checkpoint; refuses as `plan`."""
        source, terms = self._ground(request, read)
        caps = self._sessions.settings.caps_for(source.replay.state.model)
        past, checkpoint = self._sources.past(source), self._sources.checkpoint(source)
        match build(past, checkpoint, caps, terms):
            case Declined() as declined:
                raise declined_by(declined, source.session_id)
            case Replacement() as built:
                self._check_form(request, source)
                if request.into == "in-place":
                    check_behind(source, built.items)
                return CompactionPlan(source, terms, built)

    def _ground(
        self, request: Request, read: Callable[[str], CompactionSource]
    ) -> tuple[CompactionSource, Terms]:
        source = read(request.session)
        _check_target(request, source)
        return source, self._terms(request, source)

    def _check_form(self, request: Request, source: CompactionSource) -> None:
        """Refuse to append to a session that Codex would not continue as it is."""
        if request.into != "in-place":
            return
        try:
            self._sessions.threads.check_append(source.session_id)
        except Refusal as refusal:
            facts = {**refusal.facts, "hint": "Compact into a new session."}
            raise Refusal(refusal.code, refusal.message, facts) from refusal

    def _codex_for(self, strategy: str) -> str | None:
        """Return the Codex CLI where a strategy needs it, else None."""
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
        usable = context.tokens is not None and not context.flagged
        waived: set[Reason] = {"not_smaller"} if request.force else set()
        if request.force and not source.live:
            waived.add("turn_not_complete")  # nobody goes on with it: it was cut off
        if request.requested_by != "automatic":  # else whoever looked before has told it
            for name in self._sessions.ignored_variables():
                logger.warning("%s", left_aside(name))
        return Terms(
            placement=request.placement,
            turn_ended=source.ended,
            budget=settings.retained_tokens,
            before=Figure(context.tokens or 0, context.source) if usable else None,
            target=budget(source.window, self._sessions.named).target,
            waived=frozenset(waived),
        )


def _pending(source: CompactionSource, terms: Terms, job: Job) -> PendingSummary:
    """Refuse before Codex is called what would be refused after it."""
    pending = PendingSummary(source, terms, job)
    declined = not_now(terms, pending.before)
    if declined is None and not source.traced.history.items:
        declined = Declined("missing_context", {"items": 0})
    if declined is not None:
        raise declined_by(declined, source.session_id)
    return pending


def _check_target(request: Request, source: CompactionSource) -> None:
    """Refuse to append to a session that is loaded or archived."""
    if request.into != "in-place":
        return
    if source.live:
        raise session_live(source.session_id)
    if source.row.archived:
        message = f"session {source.session_id} is archived: it is not continued as it is"
        hint = "Unarchive it first, or compact into a new session."
        facts = {"sessionId": source.session_id, "reason": "archived", "hint": hint}
        raise Refusal("conflict", message, facts)
