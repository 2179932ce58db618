"""What a session observed last: artifacts, read no sooner than somebody asks.

A checkpoint shows the newest 256 artifacts, a session may run fifty thousand commands.  So an
observation is queued as it came, and read only when it is among the newest.  The outcome is the
same as reading each one at once: an artifact is what its newest observation says, and of all
artifacts the ones observed last are kept, ties by uri (DSC-28).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import Factory, define, field

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS, Limits
from codex_checkpoints.core.checkpoint.records import ArtifactKind
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    FilesChanged,
    FileViewed,
    ItemCompleted,
    ToolCall,
    ToolRan,
    parse,
)
from codex_checkpoints.core.rollout.paths import encoded, uri_of
from codex_checkpoints.core.rollout.tools import Seen

_QUEUE = 2048
_QUEUE_BYTES = 1 << 22
_LIMITS = Limits()


@define
class Met:
    """What is kept of an artifact; an `opaque` name cannot be hashed."""

    kind: ArtifactKind
    seq: int
    hash: str | None = None
    opaque: bool = False

    @property
    def hashable(self) -> bool:
        """Whether the host can look at it now."""
        return self.kind == "file" and not self.opaque


@define
class _Queued:
    """One observation as it came: where paths begin, and what was seen, read or still a line."""

    seq: int
    folder: str | None
    base: str | None
    what: bytes | tuple[Seen, ...]


@define
class Observations:
    """The artifacts of a session, and the observations not read yet."""

    artifacts: dict[str, Met] = Factory(dict)
    left_out: int = 0
    """Observed things without a name that could be kept, among those that were read."""
    _queue: list[_Queued] = field(init=False, factory=list)
    _queued: int = field(init=False, default=0)

    def add(
        self, seq: int, folder: str | None, base: str | None, what: bytes | tuple[Seen, ...]
    ) -> None:
        """Queue one observation; `what` may be the line that tells it."""
        self._queue.append(_Queued(seq, folder, base, what))
        self._queued += len(what)
        if len(self._queue) > _QUEUE or self._queued > _QUEUE_BYTES:
            self.settle()

    def settle(self) -> None:
        """Read what is queued, newest first, until nothing older can be among the kept."""
        queue, self._queue, self._queued = self._queue, [], 0
        if not queue:
            return
        newest: dict[str, Met] = {}
        cut = -1
        for queued in reversed(queue):
            if queued.seq < cut:
                break
            for uri, met in self._read(queued):
                newest.setdefault(uri, met)
            if len(newest) >= _LIMITS.max_artifacts_total and cut < 0:
                cut = queued.seq
        merged = {**self.artifacts, **newest}
        self.artifacts = _newest(merged, _LIMITS.max_artifacts_total)

    def kept(self, limits: Limits) -> Mapping[str, Met]:
        """Return the artifacts a checkpoint holds."""
        self.settle()
        return _newest(self.artifacts, limits.max_artifacts_total)

    def _read(self, queued: _Queued) -> list[tuple[str, Met]]:
        """Return what one observation names, the last of its parts first."""
        found: list[tuple[str, Met]] = []
        for seen in reversed(_seen(queued.what)):
            uri, opaque = _uri(seen, queued)
            if uri is None:
                self.left_out += 1
            else:
                found.append((uri, Met(seen.kind, queued.seq, seen.hash, opaque)))
        return found


def _newest(artifacts: dict[str, Met], total: int) -> dict[str, Met]:
    if len(artifacts) <= total:
        return artifacts
    order = sorted(artifacts, key=lambda uri: (artifacts[uri].seq, uri))
    return {uri: artifacts[uri] for uri in order[-total:]}


def _seen(what: bytes | tuple[Seen, ...]) -> tuple[Seen, ...]:
    if isinstance(what, tuple):
        return what
    item = parse(what).item
    if isinstance(item, ItemCompleted):
        item = item.item
    match item:
        case ToolCall():
            return tools.called(item, ())
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            return tools.seen_by(item)
        case _:
            return ()


def _uri(seen: Seen, queued: _Queued) -> tuple[str | None, bool]:
    """Return the uri of what was seen, and whether its name was changed on the way."""
    if seen.kind == "command":
        return value(seen.name, MAX_VALUE_CHARS) or None, False
    if seen.kind == "tool_output":
        name = encoded(seen.name)
        return (name if len(name) <= MAX_URI_CHARS else None), False
    found = uri_of(
        seen.name, folder=seen.folder, turn_folder=queued.folder, base=queued.base
    )
    return (None, False) if found is None else (found.uri, found.encoded)
