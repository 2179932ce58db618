"""What a session observed: the artifacts it met last, read no sooner than somebody asks.

A checkpoint shows the newest 256 artifacts, a session may run fifty thousand commands, and it takes
time to read what files a command names.  So a command waits in a queue and is read only when it is
among the newest.  The outcome is the same: an artifact is what its newest observation says, and of
all artifacts the ones observed last are kept, ties by uri (DSC-28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import Factory, evolve, field

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS, Limits
from codex_checkpoints.core.checkpoint.records import Artifact, ArtifactKind, Checkpoint
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.fields import is_list, object_of, text_of
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    FilesChanged,
    FileViewed,
    Seen,
    ToolCall,
    ToolRan,
)
from codex_checkpoints.values import define, frozen

Place = tuple[int, str | None, str | None]
"""Where something was observed: `seq`, the folder of the turn, the base of the session."""

_QUEUE = 4096
_QUEUE_CHARS = 1 << 22
_LONG = 1 << 16
"""A command of more code points than this is read at once."""
_LIMITS = Limits()
_EDITS = frozenset({"add", "update", "delete", "move"})
_ENCODED_CONTROL = "%(?:[01][0-9A-F]|7F|C2%[89][0-9A-F]|E2%80%A[89A-E]|E2%81%A[6-9])"


@frozen
class Observation:
    """One thing that happened: an item that says so, or a call with the texts of its answer."""

    place: Place
    item: ToolCall | CommandRun | FilesChanged | ToolRan | FileViewed
    texts: tuple[str, ...] = ()
    shortened: bool = False

    def seen(self) -> tuple[Seen, ...]:
        """Return what was met."""
        # To read a call takes many modules, and a short look at a session has none to read.
        from codex_checkpoints.core.rollout import tools  # noqa: PLC0415

        if isinstance(self.item, ToolCall):
            return tools.called(self.item, self.texts, shortened=self.shortened)
        return tools.seen_by(self.item, shortened=self.shortened)


@define
class FileObservation:
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


@define
class Observations:
    """The artifacts of a session, and the observations not read yet."""

    artifacts: dict[str, FileObservation] = Factory(dict[str, FileObservation])
    left_out: int = 0
    """Observed things without a name that could be kept, among those that were read."""
    _queue: list[Observation | tuple[Place, tuple[Seen, ...]]] = field(init=False, factory=list)
    _size: int = field(init=False, default=0)

    def begin(self, seed: Checkpoint) -> None:
        """Begin with the artifacts of a checkpoint."""
        self.artifacts = {uri: _from_seed(artifact) for uri, artifact in seed.artifacts.items()}

    def observe(self, observation: Observation) -> None:
        """Take an observation."""
        waiting, size = _slim(observation)
        if size > _LONG or not size:
            seen = observation.seen()
            if seen:
                self._queue.append((observation.place, seen))
        else:
            self._queue.append(waiting)
            self._size += size
        if self._size > _QUEUE_CHARS or len(self._queue) > _QUEUE:
            self.settle()

    def settle(self) -> None:
        """Read what is queued, newest first, until nothing older can be among the kept."""
        queue, self._queue, self._size = self._queue, [], 0
        newest: dict[str, FileObservation] = {}
        cut = -1
        for queued in reversed(queue):
            queued_seen = isinstance(queued, tuple)
            place, seen = queued if queued_seen else (queued.place, ())
            if place[0] < cut:
                break
            for uri, observed in self._named(place, seen if queued_seen else queued.seen()):
                kept = newest.setdefault(uri, observed)
                kept.edited = max(kept.edited, observed.edited)
            if len(newest) >= _LIMITS.max_artifacts_total and cut < 0:
                cut = place[0]
        for uri in newest.keys() & self.artifacts.keys():
            newest[uri].edited = max(newest[uri].edited, self.artifacts[uri].edited)
        if newest:
            self.artifacts = _newest(self.artifacts | newest, _LIMITS.max_artifacts_total)

    def kept(self, limits: Limits) -> Mapping[str, FileObservation]:
        """Return the artifacts a checkpoint holds."""
        self.settle()
        return _newest(self.artifacts, limits.max_artifacts_total)

    def _named(self, place: Place, seen: tuple[Seen, ...]) -> Iterator[tuple[str, FileObservation]]:
        """Yield what one observation names, the last of its parts first."""
        for each in reversed(seen):
            uri, opaque = name_of(each, place)
            if uri is None:
                self.left_out += 1
            else:
                edited = place[0] if each.action in _EDITS else -1
                yield uri, FileObservation(each.kind, place[0], each.hash, opaque, edited)


def name_of(seen: Seen, place: Place) -> tuple[str | None, bool]:
    """Return the uri of what was seen, and whether its name was changed on the way."""
    from codex_checkpoints.core.rollout.paths import encoded, uri_of  # noqa: PLC0415 - as above

    if seen.kind == "command":
        return value(seen.name, MAX_VALUE_CHARS) or None, False
    if seen.kind == "tool_output":
        name = encoded(seen.name)
        return (name if len(name) <= MAX_URI_CHARS else None), False
    _, folder, base = place
    found = uri_of(seen.name, folder=seen.folder, turn_folder=folder, base=base)
    return (None, False) if found is None else (found.uri, found.encoded)


def _slim(observation: Observation) -> tuple[Observation, int]:
    """Return a command without what it printed, and its length; 0 for anything else."""
    item = observation.item
    if isinstance(item, CommandRun):
        size = sum(map(len, item.argv))
        return evolve(observation, item=evolve(item, printed=None)), size
    if not isinstance(item, ToolCall) or not item.is_command:
        return observation, 0
    told = object_of(item.arguments)
    command = told.get("command", told.get("cmd"))
    words = command if is_list(command) else [command]
    size = sum(len(text_of(word) or "") for word in words)
    applied = any("Success." in text for text in observation.texts)
    return evolve(observation, texts=("Success.",) if applied else ()), size


def _newest(artifacts: dict[str, FileObservation], total: int) -> dict[str, FileObservation]:
    if len(artifacts) <= total:
        return artifacts
    order = sorted(artifacts, key=lambda uri: (artifacts[uri].seq, uri))
    return {uri: artifacts[uri] for uri in order[len(order) - total :]}


def _from_seed(artifact: Artifact) -> FileObservation:
    """Return an artifact as it is observed; the hash of a file is that of now, not of then."""
    import re  # noqa: PLC0415 - few sessions have a seed

    if artifact.kind != "file":
        return FileObservation(artifact.kind, artifact.last_observed_seq, artifact.hash)
    # A name that was changed on the way never had a hash, and no file has it.
    opaque = artifact.hash is None and re.search(_ENCODED_CONTROL, artifact.uri) is not None
    return FileObservation("file", artifact.last_observed_seq, None, opaque)
