"""The outline for people: recent turns line by line, older ones in few chunks (JUN-27).

It is never sent to a model.  Beyond the bound the oldest chunks merge; where the texts reach the
trigger of its budget, they merge until they are within its target (JUN-20).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import cut, one_line
from codex_checkpoints.core.compaction.offering import WindowBudget
from codex_checkpoints.core.history.tokens import approximate_tokens
from codex_checkpoints.values import evolve, frozen

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
    """What people see of a session, bounded: at most 16 chunks, then the recent turns."""

    chunks: tuple[Chunk, ...] = ()
    recent: tuple[OutlineTurn, ...] = ()

    @property
    def tokens(self) -> int:
        """Return what its texts cost, as a history is counted."""
        return sum(approximate_tokens(each.text) for each in (*self.chunks, *self.recent))


def outline_of(turns: Iterable[OutlineTurn], budget: WindowBudget) -> Outline:
    """Return the outline of a session within a budget; the newest turn always stands."""
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
    """Merge the two oldest where there are more than `most`."""
    if len(chunks) <= most:
        return chunks
    first, second = chunks[:2]
    merged = evolve(first, last=second.last, last_window=second.last_window)
    return (merged, *chunks[2:])
