"""The outline that people see: recent turns line by line, older ones in few chunks (JUN-27).

The secondary surface: it is never sent to a model.  However long a session, there are at most
`MAX_CHUNKS` chunks, and so the outline stays small; the oldest merge first.
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
    """Return the outline of a session."""
    outline = Outline()
    for turn in turns:
        outline = with_turn(outline, turn)
    return outline


def with_turn(outline: Outline, turn: OutlineTurn) -> Outline:
    """Return the outline with one turn more; work and size do not depend on how many there were."""
    short = cut(one_line(turn.text), MAX_VALUE_CHARS)
    recent = (*outline.recent, attrs.evolve(turn, text=short))
    if len(recent) <= RECENT_TURNS + CHUNK_TURNS:
        return attrs.evolve(outline, recent=recent)
    old, new = recent[:CHUNK_TURNS], recent[CHUNK_TURNS:]
    chunk = Chunk(old[0].number, old[-1].number, old[0].window, old[-1].window, old[0].text)
    chunks = (*outline.chunks, chunk)
    if len(chunks) > MAX_CHUNKS:
        first, second = chunks[:2]
        merged = attrs.evolve(first, last=second.last, last_window=second.last_window)
        chunks = (merged, *chunks[2:])
    return Outline(chunks, new)
