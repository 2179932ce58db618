"""Sessions as the doors show them: in lists, and one with its turns.

Which sessions fit, and in which order, is the store's to say; nothing is read for a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codex_checkpoints.core.checkpoint.caps import Caps
from codex_checkpoints.values import frozen

if TYPE_CHECKING:
    from codex_checkpoints.core.compaction.offering import Budget, Offer


@frozen
class Summary:
    """One session in a list; `None` where nothing is known."""

    session_id: str
    path: str
    cwd: str | None
    title: str | None
    task: str | None
    updated_at: str
    cli_version: str | None
    model: str | None
    context_tokens: int | None
    context_tokens_source: str
    context_window: int | None
    windows: int
    compactions: int
    suspect_facts: int
    live: bool
    archived: bool
    forked_from: str | None
    parent_session: str | None
    continued_by: str | None
    turns: int
    seq: int
    named: bool
    markers: int
    branches: int
    made_by: str | None
    nearly_full: bool
    offer: Offer | None


@frozen
class Page:
    """A part of the list, and where the next part begins."""

    items: tuple[Summary, ...]
    next_cursor: str | None


@frozen
class TurnSummary:
    """One turn that is not rolled back; `task` is what the user said last in it.

    `startedAt` is the time of its first message, UTC, null where no record tells.
    """

    turn_id: str
    number: int
    task: str | None
    ended: bool
    aborted: bool
    started_at: str | None


@frozen
class Detail:
    """One session with its turns, the caps in force for its view, and the budgets of its surfaces.

    `budget` is that of what its model is sent, `outline_budget` that of what people see (JUN-20).
    """

    summary: Summary
    turns: tuple[TurnSummary, ...]
    caps: Caps
    problems: tuple[str, ...]
    skipped: Mapping[str, int]
    budget: Budget
    outline_budget: Budget
