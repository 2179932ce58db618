"""What a session observed last: artifacts, read no sooner than somebody asks.

A checkpoint shows the newest 256 artifacts, a session may run fifty thousand commands.  So an
observation is queued as it came, and read only when it is among the newest.  The outcome is the
same as reading each one at once: an artifact is what its newest observation says, and of all
artifacts the ones observed last are kept, ties by uri (DSC-28).  How one is read is known to
`sightings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from attrs import Factory, field

from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.place import Place
from codex_checkpoints.core.checkpoint.records import ArtifactKind
from codex_checkpoints.core.rollout.glimpse import is_whole, without_output
from codex_checkpoints.values import define

if TYPE_CHECKING:
    from codex_checkpoints.core.rollout.tools import Seen

_QUEUE = 4096
_QUEUE_BYTES = 1 << 22
_LONG = 1 << 16
"""An observation that is told in more bytes than this is read at once."""
_LIMITS = Limits()
_EDITS = frozenset({"add", "update", "delete", "move"})


@define
class Met:
    """What is kept of an artifact; an `opaque` name cannot be hashed.

    `edited` is the `seq` of its newest change, -1 where it was only met otherwise.
    """

    kind: ArtifactKind
    seq: int
    hash: str | None = None
    opaque: bool = False
    edited: int = -1

    @property
    def hashable(self) -> bool:
        """Whether the host can look at it now."""
        return self.kind == "file" and not self.opaque


class _Queued(NamedTuple):
    """One observation: what was `seen`, or else the line that tells it.

    That is the line of an item, or of a call with the line of its answer; the answer to a `plain`
    call need only be whole.
    """

    place: Place
    line: bytes
    answer: bytes | None = None
    plain: bool = False
    seen: tuple[Seen, ...] | None = None


@define
class Observations:
    """The artifacts of a session, and the observations not read yet."""

    artifacts: dict[str, Met] = Factory(dict[str, Met])
    left_out: int = 0
    """Observed things without a name that could be kept, among those that were read."""
    _queue: list[_Queued] = field(init=False, factory=list[_Queued])
    _size: int = field(init=False, default=0)
    _thin: int = field(init=False, default=0)

    def tell(
        self, place: Place, line: bytes, answer: bytes | None = None, *, plain: bool = False
    ) -> None:
        """Queue an observation by the line that tells it."""
        size = len(line) if answer is None else len(line) + len(answer)
        queued = _Queued(place, line, answer, plain)
        if size > _LONG:
            queued = _thinned(queued)
            size = len(queued.line) + len(queued.answer or b"")
        if size > _LONG:
            self.add(place, _read(queued))
            return
        self._queue.append(queued)
        self._size += size
        if self._size > _QUEUE_BYTES or len(self._queue) > _QUEUE:
            self._relieve()

    def add(self, place: Place, seen: tuple[Seen, ...]) -> None:
        """Queue what was seen."""
        if seen:
            self._queue.append(_Queued(place, b"", seen=seen))
        if len(self._queue) > _QUEUE:
            self._relieve()

    def settle(self) -> None:
        """Read what is queued, newest first, until nothing older can be among the kept."""
        queue, self._queue, self._size, self._thin = self._queue, [], 0, 0
        newest: dict[str, Met] = {}
        cut = -1
        for queued in reversed(queue):
            seq = queued.place[0]
            if seq < cut:
                break
            for uri, met in self._named(queued):
                kept = newest.setdefault(uri, met)
                kept.edited = max(kept.edited, met.edited)
            if len(newest) >= _LIMITS.max_artifacts_total and cut < 0:
                cut = seq
        for uri in newest.keys() & self.artifacts.keys():
            newest[uri].edited = max(newest[uri].edited, self.artifacts[uri].edited)
        if newest:
            self.artifacts = _newest(self.artifacts | newest, _LIMITS.max_artifacts_total)

    def _relieve(self) -> None:
        """Let go of what commands printed; if that is not enough, read what is queued."""
        queue = self._queue
        queue[self._thin :] = [_thinned(queued) for queued in queue[self._thin :]]
        self._thin = len(queue)
        self._size = sum(len(queued.line) + len(queued.answer or b"") for queued in queue)
        if self._size > _QUEUE_BYTES * 3 // 4 or len(queue) > _QUEUE:
            self.settle()

    def kept(self, limits: Limits) -> Mapping[str, Met]:
        """Return the artifacts a checkpoint holds."""
        self.settle()
        return _newest(self.artifacts, limits.max_artifacts_total)

    def _named(self, queued: _Queued) -> list[tuple[str, Met]]:
        """Return what one observation names, the last of its parts first."""
        from codex_checkpoints.core.checkpoint.sightings import name_of  # noqa: PLC0415 - as below

        found: list[tuple[str, Met]] = []
        for seen in reversed(_read(queued)):
            uri, opaque = name_of(seen, queued.place)
            if uri is None:
                self.left_out += 1
            else:
                seq = queued.place[0]
                edited = seq if seen.action in _EDITS else -1
                found.append((uri, Met(seen.kind, seq, seen.hash, opaque, edited)))
        return found


def _newest(artifacts: dict[str, Met], total: int) -> dict[str, Met]:
    if len(artifacts) <= total:
        return artifacts
    order = sorted(artifacts, key=lambda uri: (artifacts[uri].seq, uri))
    return {uri: artifacts[uri] for uri in order[len(order) - total :]}


def _thinned(queued: _Queued) -> _Queued:
    if queued.answer is None:
        return queued._replace(line=without_output(queued.line))
    if queued.plain and is_whole(queued.answer):
        return queued._replace(answer=None)
    return queued


def _read(queued: _Queued) -> tuple[Seen, ...]:
    if queued.seen is not None:
        return queued.seen
    # To read a call takes many modules, and a short look at a session has none to read.
    from codex_checkpoints.core.checkpoint.sightings import seen_in  # noqa: PLC0415

    return seen_in(queued.line, queued.answer)
