"""Sessions as wire records: a list, one of them, what speaks for compacting it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codex_checkpoints import protocol
from codex_checkpoints.core.checkpoint.caps import Caps
from codex_checkpoints.service.connect.receipts import Receipt
from codex_checkpoints.service.listing import Detail, Page, Summary
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Compacting is rare, and what it loads would slow down every command.
    from codex_checkpoints.core.compaction.offering import Budget, Offer


def session_list(page: Page) -> protocol.SessionList:
    """Return a page of sessions."""
    items = tuple(session_summary(summary) for summary in page.items)
    return protocol.SessionList(items, page.next_cursor)


def session_summary(summary: Summary) -> protocol.SessionSummary:
    """Return one session as it stands in a list."""
    told = None if summary.offer is None else offer(summary.offer)
    return filled(protocol.SessionSummary, summary, offer=told)


def session_detail(detail: Detail, receipts: Sequence[Receipt] = ()) -> protocol.SessionDetail:
    """Return one session with its turns, and what Codex was given of it last."""
    return protocol.SessionDetail(
        session_summary(detail.summary),
        tuple(filled(protocol.TurnEntry, turn) for turn in detail.turns),
        caps(detail.caps),
        detail.problems,
        dict(detail.skipped),
        filled(protocol.Receipt, receipts[-1]) if receipts else None,
        _budget(detail.budget),
        _budget(detail.outline_budget),
    )


def caps(effective: Caps) -> protocol.EffectiveCaps:
    """Return the caps in force."""
    return filled(protocol.EffectiveCaps, effective)


def offer(offer: Offer) -> protocol.Offer:
    """Return what speaks for a compaction."""
    limits, budget = offer.budget.limits, offer.budget
    return protocol.Offer(
        offer.tokens, offer.source, limits.trigger, limits.target, limits.window, budget.source
    )


def _budget(budget: Budget) -> protocol.WindowBudget:
    limits = budget.limits
    return protocol.WindowBudget(
        limits.window, budget.source, limits.reserve, limits.trigger, limits.target
    )
