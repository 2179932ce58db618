"""The first pass of a compaction: the history, the digest of the bytes, the history before a cut.

Where an index or a checkpoint reads the session anyway, the pass takes those bytes, and later reads
on behind them; it is dropped when the file has changed.  `history` does the second pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.rollout.items import HistoryBase
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.core.rollout.reader import Place, Reader
from codex_checkpoints.service.reading.session_file import (
    ByteSink,
    Fingerprint,
    Locate,
    bases_below,
)
from codex_checkpoints.storage.contract import (
    Look,
    Rollout,
    RolloutReader,
    Row,
    UnreadableSource,
)
from codex_checkpoints.values import Factory, define, frozen


@frozen
class ChainPart:
    """One rollout of a chain, and where it is cut: at an ordinal, or at a byte."""

    path: str
    ordinal: int | None = None
    end: int | None = None


class Taker(Protocol):
    """A pass over the lines of a chain."""

    reader: Reader


class Follower(Protocol):
    """Takes the same bytes as a pass; `close` is given what stands behind the last LF."""

    def feed(self, data: bytes, /) -> int:
        """Take the next bytes; return how many were consumed."""
        ...

    def close(self, tail: bytes, /) -> None:
        """Take the last line, if it is whole."""
        ...


def parts_below(reader: RolloutReader, path: str, locate: Locate) -> tuple[ChainPart, ...]:
    """Return the rollouts that one builds on, the oldest first; raises `UnreadableSource`."""
    below, _ = bases_below(reader, path, locate)
    return tuple(_base(reader, base, cut) for base, cut in reversed(below))


def read_parts(
    reader: RolloutReader, taker: Taker, parts: tuple[ChainPart, ...], start: Place, own: str
) -> tuple[ChainPart, ...]:
    """Read a chain from a place on; return it cut where it ends now.

    Raises `UnreadableSource` for the session's own file; an unreadable base is skipped.
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
            continue  # the diagnosis reports it
        if not lines.stopped:
            lines.close(rest)
        read.append(ChainPart(part.path, part.ordinal, reached + len(rest)))
    return tuple(read)


def _base(reader: RolloutReader, path: str, cut: HistoryBase) -> ChainPart:
    """Return a base, cut at its ordinal, or at a byte where it has no ordinals."""
    head = head_of(reader.first_line(path))
    numbered = head is not None and head.paginated and cut.end_ordinal is not None
    return ChainPart(path, cut.end_ordinal) if numbered else ChainPart(path, None, cut.end_offset)


@define
class FirstPass:
    """A pass over one session, as far as its bytes have come.

    `cut` is an offset in the session's own file: what was found in front of it is kept. `digest` is
    given the bytes of that file, and so is `follower`; `at` is how many of them have come.
    """

    _reader: RolloutReader
    _path: str
    _locate: Locate
    cut: int | None = None
    _digest: Fingerprint | None = None
    follower: Follower | None = None
    at: int = 0
    _begun: tuple[Survey, tuple[ChainPart, ...]] | None = None

    @property
    def seal(self) -> str | None:
        """Return the digest of the bytes that have come, if any is kept."""
        return None if self._digest is None else self._digest.digest

    def begin(self) -> None:
        """Read what the session builds on; raises `UnreadableSource`."""
        self._chain()

    def feed(self, data: bytes) -> int:
        """Take the next bytes of the file; return how many a checkpoint's reader consumes, too."""
        survey, _ = self._chain()
        consumed = survey.reader.feed(data)
        if self._digest is not None:
            self._digest.add(data if consumed == len(data) else data[:consumed])
        if self.follower is not None:
            self.follower.feed(data)
        self.at += consumed
        return consumed

    def read_on(self, end: int | None) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Read the rest, up to an offset; return the survey and the chain, cut where it ended."""
        survey, below = self._chain()
        reached, rest = self._reader.read(self._path, self.at, self.feed, end)
        if self._digest is not None:
            self._digest.add(rest)
        if self.follower is not None:
            self.follower.close(rest)
        survey.reader.close(rest)
        return survey, (*below, ChainPart(self._path, None, reached + len(rest)))

    def _chain(self) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Return the survey and the bases, which are read before the file itself."""
        if self._begun is None:
            below = parts_below(self._reader, self._path, self._locate)
            survey = Survey(cut=None if self.cut is None else Place(len(below), self.cut))
            below = read_parts(self._reader, survey, below, Place(0, 0), self._path)
            if below:
                survey.reader.next_file()
            self._begun = survey, below
        return self._begun


@frozen
class Listening:
    """First passes over `wanted` rollouts, fed by other readers; `begin` makes one."""

    _wanted: Callable[[Rollout], bool]
    _begin: Callable[[str], FirstPass]
    _passes: dict[str, tuple[Look, FirstPass]] = Factory(dict[str, "tuple[Look, FirstPass]"])

    def __call__(self, rollout: Rollout) -> ByteSink | None:
        """Return who takes the bytes of a rollout that is about to be read from its beginning."""
        if not self._wanted(rollout):
            return None
        begun = self._begin(rollout.path)
        try:
            begun.begin()
        except UnreadableSource:
            return None  # its own reader reports that
        self._passes[rollout.path] = rollout.look, begun
        return begun.feed

    def pass_over(self, row: Row, end: int) -> FirstPass:
        """Return the pass over a rollout up to `end` at most, or a new one."""
        look, begun = self._passes.pop(row.path, (None, None))
        if begun is None or look != row.rollout.look or begun.at > end:
            return self._begin(row.path)
        return begun
