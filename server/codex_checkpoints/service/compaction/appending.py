"""What is appended to a session so that its history is another one from then on (JUN-2, WIN-14).

Before anything is written it is proved, on what was read of the session already, that Codex will go
by it.  Who compacts needs it for the replacement, who takes that back for what was before.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from codex_checkpoints.core.compaction.effect import effective
from codex_checkpoints.core.compaction.installed import Line, Moment, in_place, in_task
from codex_checkpoints.core.history.tokens import of_items
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.service.compaction.source import Source
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.threads.contract import Item


def opened_after(chain: Chain, window_id: str) -> Chain:
    """Return a chain after one more window; where no window had a number, this one is the first."""
    return evolve(chain, number=chain.number or 0).opened(window_id)


def items_of(lines: tuple[Line, ...]) -> tuple[Item, ...]:
    """Return lines as a store takes them."""
    return tuple(Item(line.type, line.payload) for line in lines)


def behind(
    source: Source, items: Sequence[Json], chain: Chain, turn_id: str, at: Moment
) -> tuple[Item, ...]:
    """Return what is appended to a session so that its history is these items from then on.

    `turn_id` is a new one, for lines that need a task of their own.  Refuses `conflict` where
    nothing that is appended would do it.
    """
    traced = source.traced
    lines = in_place(items, chain, of_items(items) + traced.instructions, traced.last_report)
    forms = lines, in_task(lines, turn_id, source.window, at)
    form = effective(traced.outline, forms, items)
    if form is None:
        message = f"session {source.session_id}: Codex would not go by what is appended to it"
        hint = "Compact it into a new session, or restore one of its turns into a branch."
        facts = {"sessionId": source.session_id, "reason": "without_effect", "hint": hint}
        raise Refusal("conflict", message, facts)
    return items_of(form)


def check_behind(source: Source, items: Sequence[Json]) -> None:
    """Make sure that a session can get these items as its history; refuses as `behind`."""
    behind(source, items, opened_after(source.traced.history.chain, ""), "", Moment("", 0))
