"""The first pass over a session that is compacted: one reading, for all who need its bytes.

The history, the digest of the bytes, and where a compaction is taken back the history in front of
that, are found in one pass.  It needs no reading of its own where somebody else reads the session
from its beginning, for the index or for a checkpoint: then it listens, and goes on by itself behind
the last byte that it heard.  What was heard of a file that has changed since is forgotten.

The second pass, over the current window alone, is known to `history`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.rollout.reader import Place
from codex_checkpoints.service.reading.chains import ChainPart, parts_below, read_parts
from codex_checkpoints.service.reading.session_file import Hear, Locate
from codex_checkpoints.storage.contract import Look, Rollout, RolloutReader, Row, UnreadableSource


class Digest(Protocol):
    """A digest, as `hashlib` makes them."""

    def update(self, data: bytes, /) -> object:
        """Take more bytes."""
        ...

    def hexdigest(self) -> str:
        """Return it for the bytes up to now, in hexadecimal digits."""
        ...


class FirstPass:
    """A pass over one session, as far as its bytes have come."""

    def __init__(
        self,
        reader: RolloutReader,
        path: str,
        locate: Locate,
        cut: int | None = None,
        digest: Digest | None = None,
    ) -> None:
        """Begin before the first byte; nothing is read yet.

        `cut` is an offset in the session's own file: what was found in front of it is kept.
        `digest` is given the bytes of that file.
        """
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
        """Return the digest of the bytes that have come, None where nobody asked for it."""
        return None if self._digest is None else f"sha256:{self._digest.hexdigest()}"

    def begin(self) -> None:
        """Read what the session builds on; raises `UnreadableSource`."""
        self._chain()

    def feed(self, data: bytes) -> int:
        """Take the next bytes of the file; return how many were consumed.

        That is as many as a checkpoint's reader consumes, so it can be given what that one took.
        """
        survey, _ = self._chain()
        consumed = survey.reader.feed(data)
        if self._digest is not None:
            self._digest.update(data if consumed == len(data) else data[:consumed])
        self.at += consumed
        return consumed

    def read_on(self, end: int | None) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Read what has not come yet, up to an offset; return what is known of the whole chain.

        The chain is cut where it ended.  Raises `UnreadableSource`.
        """
        survey, below = self._chain()
        reached, rest = self._reader.read(self._path, self.at, self.feed, end)
        if self._digest is not None:
            self._digest.update(rest)
        survey.reader.close(rest)
        return survey, (*below, ChainPart(self._path, None, reached + len(rest)))

    def _chain(self) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Return the pass and the bases, which are read before the first byte of the file."""
        if self._begun is None:
            below = parts_below(self._reader, self._path, self._locate)
            survey = Survey(cut=None if self.cut is None else Place(len(below), self.cut))
            below = read_parts(self._reader, survey, below, Place(0, 0), self._path)
            if below:
                survey.reader.next_file()
            self._begun = survey, below
        return self._begun


class Listening:
    """Passes over rollouts of which somebody else is reading all."""

    def __init__(
        self, wanted: Callable[[Rollout], bool], begin: Callable[[str], FirstPass]
    ) -> None:
        """Listen to what is `wanted`; `begin` begins a pass over the rollout at a path."""
        self._wanted = wanted
        self._begin = begin
        self._heard: dict[str, tuple[Look, FirstPass]] = {}

    def __call__(self, rollout: Rollout) -> Hear | None:
        """Return who listens to a rollout that is about to be read from its beginning."""
        if not self._wanted(rollout):
            return None
        heard = self._begin(rollout.path)
        try:
            heard.begin()
        except UnreadableSource:
            return None  # whoever comes to need it is told
        self._heard[rollout.path] = rollout.look, heard
        return heard.feed

    def heard(self, row: Row, end: int) -> FirstPass:
        """Return the pass over a rollout up to `end` at most, a new one where it was not heard."""
        look, heard = self._heard.pop(row.path, (None, None))
        if heard is None or look != row.rollout.look or heard.at > end:
            return self._begin(row.path)
        return heard
