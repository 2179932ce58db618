"""A stream of bytes -> a checkpoint: scanner and reducer, moved along together.

`Replay` is what a follower keeps of a session: feed it bytes in any portions, in any number of
sittings, and it stands where one pass over the whole would stand (DSC-75).  It can be saved and
taken up again.  Which bytes belong to a session, and from which files, is known to `threads`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Self

from codex_checkpoints.core.checkpoint import projection, reducer
from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Checkpoint, Task
from codex_checkpoints.core.checkpoint.redaction import find_secret
from codex_checkpoints.core.checkpoint.saving import loaded, saved
from codex_checkpoints.core.checkpoint.seed import shift_of, sow
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.rollout.items import SessionMeta, Unreadable
from codex_checkpoints.core.rollout.lines import Line, Scale, Scanner
from codex_checkpoints.core.rollout.parsing import BOM, item_of
from codex_checkpoints.values import define

LONGEST_TAIL = 1 << 23
"""An unfinished last line beyond this many bytes is not looked at before its LF is there."""

SAVED = 3
"""The version of `Replay.save`; what another version saved is read anew."""


@define
class _Saved:
    version: int
    scale: Scale
    state: State


class Replay:
    """The state of a session after the bytes so far.

    `hot=False` is the plain reader: every line goes through the full parser.  It gives the same
    answer, which a test holds against the quick one.
    """

    def __init__(self, *, hot: bool = True) -> None:
        """Begin before the first byte of a session."""
        self._state = State()
        self._hot = hot
        self._scanner = Scanner(Scale(), hot=hot)

    @property
    def state(self) -> State:
        """Return what is known after the last whole line."""
        self._state.catch_up()
        return self._state

    @property
    def stopped(self) -> bool:
        """Whether a limit was reached, so that no more bytes are wanted from this file."""
        return self._scanner.stopped

    @property
    def seq(self) -> int:
        """Return `seq` after the last whole line."""
        return self._scanner.scale.seq + self._shift

    @property
    def scale(self) -> Scale:
        """Return the counts of lines, and of those that gave nothing."""
        return self._scanner.scale

    @property
    def pending(self) -> int:
        """How many of the bytes fed so far belong to a last line that has not ended."""
        return self._scanner.pending

    def begin(self, head: SessionMeta) -> None:
        """Take the head before the first line, for a session whose history begins elsewhere."""
        reducer.begin(self._state, head)
        self._scanner.settle_mode(paginated=head.paginated, ordinals=head.paginated)

    def sow(self, seed: Checkpoint) -> None:
        """Take what the session goes on from, before its first line (JUN-46)."""
        sow(self._state, seed)

    def next_file(self, limit: int | None = None) -> None:
        """Go on with the first byte of the next file of a chain, up to the ordinal `limit`."""
        before = self._scanner
        self._scanner = Scanner(before.scale, before.judging, hot=self._hot)
        self._scanner.until = before.until
        if limit is not None:
            self._scanner.limit = limit

    def stop_after(self, position: int) -> None:
        """Stop behind the line at this position, to see the state at the end of a turn."""
        self._scanner.until = position

    def feed(self, data: bytes) -> int:
        """Apply the whole lines in `data`; return how many bytes were consumed.

        Offer the rest again, with what follows it.  `stopped` says that no more is wanted.
        """
        lines, consumed = self._lines(data)
        self._state.paginated = self._scanner.scale.paginated
        reducer.reduce(self._state, lines)
        return consumed

    def rest(self) -> None:
        """Say that no more bytes are there for now."""
        self._scanner.settle()

    def close(self, tail: bytes) -> None:
        """Say that a file of the chain has ended, with a last line that may lack its LF."""
        whole = tail.rstrip().endswith(b"}") and not isinstance(item_of(tail), Unreadable)
        if whole and not self.stopped and not self.pending:
            self.feed(tail + b"\n")
        self.rest()

    def drop_unfinished(self) -> None:
        """Forget a long last line that has not ended; its bytes will be offered again."""
        before = self._scanner
        self._scanner = Scanner(before.scale, before.judging, hot=self._hot)
        self._scanner.limit, self._scanner.until = before.limit, before.until

    def with_tail(self, tail: bytes) -> Self:
        """Return the replay after an unfinished last line, if it is a whole object already.

        A proper prefix of a JSON object never parses, so a line that parses is complete, but for
        its LF.  The replay itself is left as it is: more may come.
        """
        ends = tail.rstrip().endswith(b"}") and not self.stopped
        if not ends or isinstance(item_of(tail.removeprefix(BOM)), Unreadable):
            return self
        ahead = copy.deepcopy(self)
        ahead._hot = False  # noqa: SLF001 - a copy of oneself
        ahead.drop_unfinished()
        ahead.feed(tail + b"\n")
        return ahead

    def task(self) -> Task | None:
        """Return the task alone, without a look at what else a checkpoint holds."""
        return projection.task_of(self._state)

    def checkpoint(
        self,
        updates: Iterable[Update],
        hashes: Mapping[str, str],
        limits: Limits | None = None,
    ) -> Checkpoint:
        """Return the checkpoint after the last whole line (DSC-1)."""
        limits = Limits() if limits is None else limits
        return projection.checkpoint_of(self._state, self.seq, updates, hashes, limits)

    def files(self) -> tuple[str, ...]:
        """Return the uris of the files whose hashes a checkpoint holds."""
        kept = self._state.observations.kept(Limits())
        return tuple(uri for uri, met in kept.items() if met.hashable)

    @property
    def _shift(self) -> int:
        return shift_of(self._state, ordinals=bool(self._scanner.scale.ordinals))

    def _lines(self, data: bytes) -> tuple[list[Line], int]:
        """Return the lines of interest in `data`, numbered behind the seed if there is one."""
        lines, consumed = self._scanner.feed(data)
        if self._state.seed is None:
            return lines, consumed
        shift = self._shift
        return [line._replace(seq=line.seq + shift) for line in lines], consumed

    def save(self) -> object | None:
        """Return everything as JSON values; only between lines.

        None while a call waits whose line holds a secret: what is kept on disk holds none
        (DSC-81), and without that line the call could not be read when its outcome comes.
        """
        if any(find_secret(line.decode(errors="replace")) for line in self._state.calls.lines()):
            return None
        self._state.settle()
        return saved(_Saved(SAVED, self.scale, self.state))

    @classmethod
    def load(cls, value: object) -> Replay | None:
        """Take up what `save` gave; None where it is of another version or damaged."""
        try:
            kept = loaded(_Saved, value)
        except Exception:  # noqa: BLE001 - a cache that cannot be read is no cache
            return None
        if kept.version != SAVED:
            return None
        replay = cls()
        replay._state = kept.state
        replay._scanner = scanner = Scanner(kept.scale)
        if kept.scale.ordinals is not None:
            scanner.settle_mode(
                paginated=kept.scale.paginated,
                ordinals=kept.scale.ordinals,
                typed=kept.state.typed,
            )
        return replay
