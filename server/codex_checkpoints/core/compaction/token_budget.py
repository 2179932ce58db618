"""Offers a compaction between two turns once the window is too full; makes the outline.

Both surfaces have the same rule (JUN-20): the model's context by the window of that model, and the
outline for people by the window of the smaller one.  No text of a session and no tool can cause an
offer (JUN-22).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.history.tokens import (
    Source,
    WindowBudget,
    approximate_tokens,
    budget_of,
    window_size,
)
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import cut, one_line

OfferMode = Literal["off", "offer", "automatic"]
"""Never, as a hint, or before the work continues (JUN-36)."""


@frozen
class WindowOverrides:
    """The sizes of windows in the settings, 0 for none, and in the environment."""

    setting: int = 0
    fast_setting: int = 0
    environment: str | None = None
    fast_environment: str | None = None


def window(advertised: int | None, named: WindowOverrides) -> int | None:
    """Return the window size of a session, None if it is unknown (JUN-21)."""
    return window_size(advertised, named.environment, named.setting)[0]


def budget(advertised: int | None, named: WindowOverrides) -> WindowBudget:
    """Return the budget of the model's context."""
    return budget_of(advertised, named.environment, named.setting)


def outline_budget(named: WindowOverrides) -> WindowBudget:
    """Return the budget of the outline; no session names the smaller model (JUN-20)."""
    return budget_of(None, named.fast_environment, named.fast_setting)


@frozen
class Between:
    """The state of a session: whether its last turn ended, and how full its window is.

    `tokens` were in use at the last call, never the sum over calls (JUN-29); None if there is no
    report, or if the window was replaced since.  `window` is the advertised size.
    """

    ended: bool
    tokens: int | None
    source: Source
    window: int | None

    @property
    def is_impossible(self) -> bool:
        """Return whether a service reported more tokens than the window has (ROL-9).

        An estimate from the bytes may be higher: the window is then more than full (DSC-55).
        """
        if self.source != "reported" or self.tokens is None or self.window is None:
            return False
        return self.tokens > self.window


@frozen
class Offer:
    """A proposal to compact before the next turn: `tokens` have reached `trigger`.

    A compaction stays below `target`.  `tokensSource` is `reported` or `estimated`;
    `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
    """

    tokens: int
    tokens_source: str
    trigger: int
    target: int
    window: int
    window_source: str


def is_nearly_full(session: Between, named: WindowOverrides) -> bool:
    """Return whether the tokens in use have reached the trigger, even in a turn (JUN-18)."""
    if session.tokens is None or session.is_impossible:
        return False
    return session.tokens >= budget(session.window, named).trigger


def offer(mode: OfferMode, session: Between, named: WindowOverrides) -> Offer | None:
    """Return the reason for a compaction now, None if there is none (JUN-16, JUN-18)."""
    is_due = mode != "off" and session.ended and is_nearly_full(session, named)
    if not is_due or session.tokens is None:
        return None
    its = budget(session.window, named)
    return Offer(
        trigger=its.trigger,
        target=its.target,
        window=its.window,
        window_source=its.window_source,
        tokens=session.tokens,
        tokens_source=session.source,
    )


MAX_CHUNKS = 16
RECENT_TURNS = 32
CHUNK_TURNS = 32


@frozen
class OutlineTurn:
    """A recent turn: its number from 1, its id, the window it began in, its first words."""

    number: int
    turn_id: str
    window: int
    text: str


@frozen
class Chunk:
    """A stretch of older turns, and of the windows they began in; `text` is of its first turn."""

    first: int
    last: int
    first_window: int
    last_window: int
    text: str


@frozen
class Outline:
    """The visible form of a session, bounded: at most 16 chunks, then the recent turns."""

    chunks: tuple[Chunk, ...] = ()
    recent: tuple[OutlineTurn, ...] = ()

    @property
    def tokens(self) -> int:
        """Return the cost of its texts, counted like a history."""
        return sum(approximate_tokens(each.text) for each in (*self.chunks, *self.recent))


def outline_of(turns: Iterable[OutlineTurn], budget: WindowBudget) -> Outline:
    """Return the outline of a session within a budget; the newest turn is always in it (JUN-27).

    It is never sent to a model.  Beyond the bound the oldest chunks merge; where the texts reach
    the trigger of its budget, they merge until they are within its target (JUN-20).
    """
    outline = Outline()
    for turn in turns:
        short = cut(one_line(turn.text), MAX_VALUE_CHARS)
        recent = (*outline.recent, evolve(turn, text=short))
        if len(recent) <= RECENT_TURNS + CHUNK_TURNS:
            outline = evolve(outline, recent=recent)
            continue
        old, new = recent[:CHUNK_TURNS], recent[CHUNK_TURNS:]
        outline = Outline(_bounded((*outline.chunks, _chunk(old)), MAX_CHUNKS), new)
    if outline.tokens < budget.trigger:
        return outline
    while outline.tokens > budget.target and len(outline.chunks) > 1:
        outline = evolve(outline, chunks=_bounded(outline.chunks, len(outline.chunks) - 1))
    while outline.tokens > budget.target and len(outline.recent) > 1:
        old, new = outline.recent[:1], outline.recent[1:]
        outline = Outline(_bounded((*outline.chunks, _chunk(old)), 1), new)
    return outline


def _chunk(old: Sequence[OutlineTurn]) -> Chunk:
    return Chunk(old[0].number, old[-1].number, old[0].window, old[-1].window, old[0].text)


def _bounded(chunks: tuple[Chunk, ...], most: int) -> tuple[Chunk, ...]:
    """Merge the two oldest if there are more than `most`."""
    if len(chunks) <= most:
        return chunks
    first, second = chunks[:2]
    merged = evolve(first, last=second.last, last_window=second.last_window)
    return (merged, *chunks[2:])
