"""The files of a session's chain, brought to a pass over its history, the oldest first (ROL-5).

What a pass makes of the lines is known to `core.history`; where a chain leads, to `session_file`.
"""

from __future__ import annotations

from typing import Protocol

from codex_checkpoints.core.rollout.items import HistoryBase
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.core.rollout.reader import Place, Reader
from codex_checkpoints.service.reading.session_file import Locate, bases_below
from codex_checkpoints.threads.contract import RolloutReader, UnreadableSource
from codex_checkpoints.values import frozen


@frozen
class Part:
    """One rollout of a chain, and where it is cut: at an ordinal, or at a byte."""

    path: str
    ordinal: int | None = None
    end: int | None = None


class Taker(Protocol):
    """A pass over the lines of a chain."""

    reader: Reader


def parts_below(reader: RolloutReader, path: str, locate: Locate) -> tuple[Part, ...]:
    """Return the rollouts that one builds on, the oldest first; raises `UnreadableSource`."""
    below, _ = bases_below(reader, path, locate)
    return tuple(_base(reader, base, cut) for base, cut in reversed(below))


def read_parts(
    reader: RolloutReader, taker: Taker, parts: tuple[Part, ...], start: Place, own: str
) -> tuple[Part, ...]:
    """Read a chain from a place on; return it cut where it ends now.

    Raises `UnreadableSource` for the session's own file; of the others what can be read is read.
    """
    lines, read = taker.reader, list(parts[: start.file])
    for number, part in enumerate(parts[start.file :], start.file):
        if number > start.file:
            lines.next_file(part.ordinal)
        else:
            lines.begin_file(part.ordinal)
        offset = start.offset if number == start.file else 0
        try:
            reached, rest = reader.read(part.path, offset, lines.feed, part.end)
        except UnreadableSource:
            if part.path == own:
                raise
            read.append(part)
            continue  # the diagnosis tells of it
        if not lines.stopped:
            lines.close(rest)
        read.append(Part(part.path, part.ordinal, reached + len(rest)))
    return tuple(read)


def _base(reader: RolloutReader, path: str, cut: HistoryBase) -> Part:
    """Return a base: ordinals say where it is cut; one without ordinals is cut by its bytes."""
    head = head_of(reader.first_line(path))
    numbered = head is not None and head.paginated and cut.end_ordinal is not None
    return Part(path, cut.end_ordinal) if numbered else Part(path, None, cut.end_offset)
