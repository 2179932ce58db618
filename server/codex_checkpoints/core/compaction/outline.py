"""The outline for people: recent turns line by line, older ones in few chunks (JUN-27).

It is never sent to a model.  Beyond the bound the oldest chunks merge.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import cut, one_line
from codex_checkpoints.values import frozen

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


def outline_of(turns: Iterable[OutlineTurn]) -> Outline:
    """Return the outline of a session; each turn takes the same work."""
    outline = Outline()
    for turn in turns:
        short = cut(one_line(turn.text), MAX_VALUE_CHARS)
        recent = (*outline.recent, attrs.evolve(turn, text=short))
        if len(recent) <= RECENT_TURNS + CHUNK_TURNS:
            outline = attrs.evolve(outline, recent=recent)
            continue
        old, new = recent[:CHUNK_TURNS], recent[CHUNK_TURNS:]
        chunk = Chunk(old[0].number, old[-1].number, old[0].window, old[-1].window, old[0].text)
        chunks = (*outline.chunks, chunk)
        if len(chunks) > MAX_CHUNKS:
            first, second = chunks[:2]
            merged = attrs.evolve(first, last=second.last, last_window=second.last_window)
            chunks = (merged, *chunks[2:])
        outline = Outline(chunks, new)
    return outline
