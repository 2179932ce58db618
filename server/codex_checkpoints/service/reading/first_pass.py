"""The first pass of a compaction over a session, and the pace of long work.

One pass finds the history, the digest of the bytes, and the history in front of a cut.  Where an
index or a checkpoint reads the session anyway, the pass takes those bytes, and later reads on
behind them; it is dropped when the file has changed.  `history` does the second pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.rollout.reader import Place
from codex_checkpoints.service.reading.chains import ChainPart, parts_below, read_parts
from codex_checkpoints.service.reading.session_file import ByteSink, Fingerprint, Locate
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.storage.contract import (
    Feed,
    Identity,
    Look,
    Mark,
    Reading,
    Rollout,
    RolloutReader,
    Row,
    UnreadableSource,
)

if TYPE_CHECKING:
    from codex_checkpoints.storage.workspace import Workspace


class FirstPass:
    """A pass over one session, as far as its bytes have come.

    `cut` is an offset in the session's own file: what was found in front of it is kept. `digest` is
    given the bytes of that file.
    """

    def __init__(
        self,
        reader: RolloutReader,
        path: str,
        locate: Locate,
        cut: int | None = None,
        digest: Fingerprint | None = None,
    ) -> None:
        self.at = 0
        """How many bytes of the session's own file have come."""
        self._reader = reader
        self._path = path
        self._locate = locate
        self.cut = cut
        self._digest = digest
        self._begun: tuple[Survey, tuple[ChainPart, ...]] | None = None

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
        self.at += consumed
        return consumed

    def read_on(self, end: int | None) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Read the rest, up to an offset; return the survey and the chain, cut where it ended."""
        survey, below = self._chain()
        reached, rest = self._reader.read(self._path, self.at, self.feed, end)
        if self._digest is not None:
            self._digest.add(rest)
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


class Listening:
    """First passes over `wanted` rollouts, fed by other readers; `begin` makes one."""

    def __init__(
        self, wanted: Callable[[Rollout], bool], begin: Callable[[str], FirstPass]
    ) -> None:
        self._wanted = wanted
        self._begin = begin
        self._passes: dict[str, tuple[Look, FirstPass]] = {}

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


_ALMOST = 99
"""The highest percentage of unfinished work, since its size is known roughly."""


class Pace:
    """The progress of one piece of long work; any thread may cancel it, one thread does it."""

    def __init__(self) -> None:
        self._report: Callable[[int], None] | None = None
        self._reported = 0
        self._size = self._done = 0
        self._unwanted = threading.Event()
        self._committed = False

    @property
    def cancelled(self) -> bool:
        """Return whether it is cancelled and can still be stopped."""
        return self._unwanted.is_set() and not self._committed

    def report_to(self, report: Callable[[int], None]) -> None:
        """Report the percentage whenever it grows, on the thread that works."""
        self._report = report

    def cancel(self) -> None:
        """Cancel the work."""
        self._unwanted.set()

    def expect(self, size: int) -> None:
        """Add so many bytes, more or less, to what is to be read."""
        self._size += size

    def step(self, size: int = 0) -> None:
        """Add so many bytes to what is read; raises `Cancelled`."""
        if self.cancelled:
            raise Cancelled
        self._done += size
        percent = min(_ALMOST, self._done * 100 // self._size) if self._size > 0 else 0
        if percent > self._reported:
            self._reported = percent
            if self._report is not None:
                self._report(percent)

    def commit(self) -> None:
        """Allow no cancellation from now on, before something changes; raises `Cancelled`."""
        self.step()
        self._committed = True


def paced_hashes(
    pace: Pace, workspace: Workspace, base: str | None, uris: Iterable[str]
) -> dict[str, str]:
    """Hash what lies at each uri now, as `Workspace.hashes` does, in steps; raises `Cancelled`."""
    wanted = tuple(uris)
    sizes = workspace.sizes(base, wanted)
    pace.expect(sum(sizes.values()))

    def stepping() -> Iterator[str]:
        for uri in wanted:
            pace.step()
            yield uri
            pace.step(sizes.get(uri, 0))

    return workspace.hashes(base, stepping())


class PacedReader:
    """A reader of rollouts that takes a step for each piece it has read."""

    def __init__(self, reader: RolloutReader) -> None:
        self._reader = reader
        self.pace = Pace()

    def identify(self, path: str) -> Identity:
        """Return the ids in the name of a rollout."""
        return self._reader.identify(path)

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed what lies behind `old`, or everything; None where it is no longer the same."""
        return self._reader.follow(path, old, self._stepping(feed))

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        """Feed from `offset` to `limit` or the end; return where it stopped, and the rest."""
        return self._reader.read(path, offset, self._stepping(feed), limit)

    def mark_at(self, path: str, offset: int, inode: int) -> Mark:
        """Return the mark at an offset."""
        return self._reader.mark_at(path, offset, inode)

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        """Return what lies from `start` to the end; None when that is more than `longest`."""
        return self._reader.piece(path, start, longest)

    def first_line(self, path: str) -> bytes:
        """Return the first line that is not blank, or as much of it as is read for that."""
        return self._reader.first_line(path)

    def _stepping(self, feed: Feed) -> Feed:
        pace = self.pace

        def fed(data: bytes) -> int:
            consumed = feed(data)
            pace.step(consumed)
            return consumed

        return fed
