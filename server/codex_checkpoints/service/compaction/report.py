"""Describes a compaction that was planned or done, as the answer to its request."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.codex import resume
from codex_checkpoints.core.compaction.contents import (
    CompactionContents,
)
from codex_checkpoints.core.compaction.records import (
    CompactionWindows,
    Determinism,
    Into,
    Placement,
    Strategy,
)
from codex_checkpoints.core.compaction.replacement import (
    STANDING_CONTEXT,
    Replacement,
    Terms,
)
from codex_checkpoints.core.context_text import beside_text
from codex_checkpoints.service.compaction.request import (
    Compacted,
    CompactionRequest,
    HookOutcome,
)
from codex_checkpoints.service.compaction.source import (
    CompactionSource,
)
from codex_checkpoints.service.compaction.warnings import GOAL_STAYS, leaves_goal
from codex_checkpoints.service.sessions.sessions import CUT_OFF


@frozen
class CompactionPlan:
    """A session, and the replacement of its history; `determinism` is its maker (CKP-24)."""

    source: CompactionSource
    terms: Terms
    built: Replacement
    determinism: Determinism = "deterministic"

    @property
    def strategy(self) -> Strategy:
        """Return the strategy for the record."""
        return "checkpoint" if self.determinism == "deterministic" else "codex"

    @property
    def placement(self) -> Placement:
        """Return the placement for the record."""
        return "pre_turn" if self.terms.placement == "pre_turn" else "manual"


def report_of(  # noqa: PLR0913 - request, result, and its record
    request: CompactionRequest,
    plan: CompactionPlan,
    windows: CompactionWindows,
    compaction_id: str | None,
    session_id: str | None,
    *,
    hooks: tuple[HookOutcome, ...] = (),
    contents: CompactionContents | None = None,
) -> Compacted:
    """Return the answer to a request; a preview has neither ids nor hooks, but `contents`."""
    built, report = plan.built, plan.built.report
    return Compacted(
        strategy=plan.strategy,
        determinism=plan.determinism,
        placement=plan.placement,
        bound=report.bound,
        size_text=_size_text(plan),
        headline=_headline(plan, request.into, is_done=contents is None),
        kinds_before=report.kinds_before,
        kinds_after=report.kinds_after,
        kept=report.kept,
        dropped=report.dropped,
        truncated=report.truncated,
        compaction_id=compaction_id,
        session_id=session_id,
        source_session_id=plan.source.session_id,
        into=request.into,
        standing_context=STANDING_CONTEXT[plan.placement],
        replacement=tuple(map(dict, built.items)),
        tokens_before=report.before.tokens,
        tokens_before_source=report.before.source,
        tokens_after=report.after,
        tokens_after_source="estimated",
        tokens_beside=report.calibration.overhead,
        tokens_scale=report.calibration.scale,
        tokens_added=built.added,
        tokens_sent_again=report.sent_again,
        digest_tokens=built.digest.tokens,
        context_window=plan.source.window,
        remark=CUT_OFF if plan.source.cut_off else report.remark,
        remark_text=_remark_text(plan, None if contents is not None else request.into),
        windows=windows,
        hooks=hooks,
        contents=contents,
        resume=None if session_id is None else resume(session_id),
    )


_UNSCALED = 1000
"""The scale of an estimate, in thousandths, where Codex did not count otherwise."""


def _size_text(plan: CompactionPlan) -> str:
    """Return the limit, the tokens besides the history, and why the parts may not add up."""
    report = plan.built.report
    overhead, scale = report.calibration.overhead, report.calibration.scale
    limit = f"At most {report.bound:,} tokens. {beside_text(overhead)}"
    if scale == _UNSCALED:
        return limit
    factor = f"{scale / _UNSCALED:.2f}"
    return f"{limit} The other parts count {factor} times in a total, as Codex counted here."


def _headline(plan: CompactionPlan, into: Into, *, is_done: bool) -> str:
    """Return a line for a notification: the place, both sizes, and what happens to the original."""
    report = plan.built.report
    before = f"{'~' * (report.before.source == 'estimated')}{report.before.tokens:,}"
    sizes = f"{before} → ~{report.after:,} tokens"
    if not is_done:
        where = "a new session" if into == "new" else "the same session"
        return f"Nothing was written. Work would continue in {where}: {sizes}."
    if into == "new":
        return f"Compacted into a new session: {sizes}. The original stays as it is."
    return f"Compacted in place: {sizes}. The old history stays in the file."


def _remark_text(plan: CompactionPlan, into: Into | None) -> str | None:
    """Return the remarks about a compaction as sentences; `into`: where a finished one went."""
    report = plan.built.report
    before, after = report.before.tokens, report.after
    sentences = {
        CUT_OFF: "The last turn was cut off: no process has the session open.",
        "saves_nothing": f"Not worth it: {before:,} tokens become {after:,}.",
        "saves_little": f"Not worth it: saves {before - after:,} tokens.",
    }
    found = (CUT_OFF if plan.source.cut_off else None, report.remark)
    remarks = [sentences[each] for each in found if each is not None]
    remarks += [GOAL_STAYS] if into is not None and leaves_goal(plan.source, into) else []
    return " ".join(remarks) or None
