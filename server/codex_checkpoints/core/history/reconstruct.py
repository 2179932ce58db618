"""What came of a session: the history that Codex would send, its windows, and how full it is.

The two passes are driven by whoever has the bytes:

    survey = Survey()                        # all bytes of the session, its bases first
    choice = choose(survey.outline())
    rebuild = Rebuild(choice, outline.start)   # the bytes from `rebuild.start` on
    history = history_of(outline, choice, rebuild.result())
"""

from __future__ import annotations

from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.history.choice import Choice
from codex_checkpoints.core.history.compacted import Compaction, Strategy
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.marks import Outline
from codex_checkpoints.core.history.openings import Trigger
from codex_checkpoints.core.history.rebuild import Rebuilt
from codex_checkpoints.core.history.tokens import Context
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.values import frozen


@frozen
class History:
    """The history of a session, and what belongs to it.

    `items` are as Codex would send them, without base instructions and without what the next turn
    adds; `baseline` is explained at `Choice`.
    """

    items: tuple[Item, ...]
    reconstructed: bool
    chain: Chain
    context: Context
    baseline: int | None


@frozen
class Window:
    """One window; number 0 is the first.  None stands for what no record tells (WIN-9, WIN-12)."""

    number: int
    window_id: str | None
    previous_id: str | None
    opened_seq: int
    opened_at: str | None
    trigger: Trigger | None = None
    strategy: Strategy | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None


def history_of(outline: Outline, choice: Choice, rebuilt: Rebuilt) -> History:
    """Put together what both passes found."""
    estimate = tokens.of_items(rebuilt.items) + outline.instructions
    return History(
        items=rebuilt.items,
        reconstructed=rebuilt.reconstructed,
        chain=choice.chain,
        context=tokens.context(outline.usage, estimate, stale=outline.stale),
        baseline=choice.baseline,
    )


def windows_of(outline: Outline, choice: Choice) -> tuple[Window, ...]:
    """Return the windows of a session that count, the first one first (WIN-12)."""
    first = outline.window_id or _told_first(choice)
    windows = [Window(0, first, None, outline.opened_seq, outline.opened_at)]
    for compaction in choice.windows:
        before, opening = windows[-1], outline.openings[compaction.index]
        number = before.number + 1 if compaction.number is None else compaction.number
        after = None if compaction.size is None else compaction.size + outline.instructions
        windows.append(
            Window(
                number=number,
                window_id=compaction.window_id,
                previous_id=compaction.previous_id or before.window_id,
                opened_seq=compaction.seq,
                opened_at=compaction.stamp,
                trigger=opening.trigger,
                strategy=compaction.strategy,
                tokens_before=opening.before,
                tokens_after=after if opening.after is None else opening.after,
            )
        )
    return tuple(windows)


def _told_first(choice: Choice) -> str | None:
    """Return the id of the first window as the records of later ones tell it."""
    told: list[Compaction] = [each for each in choice.windows if each.first_id is not None]
    return told[0].first_id if told else None
