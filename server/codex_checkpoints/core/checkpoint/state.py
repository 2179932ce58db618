"""The state of a session after some of its lines, with the artifacts that it observed.

A session may run fifty thousand commands, a checkpoint keeps the newest 256 artifacts, and parsing
a command takes time.  So commands wait in a queue, and only the newest are parsed.  The result is
the same: the newest observation of an artifact decides, and the artifacts observed last are kept,
ties by uri (DSC-28).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from attrs import Factory, evolve, field

from codex_checkpoints.core.checkpoint.records import (
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    Artifact,
    ArtifactKind,
    Checkpoint,
    Limits,
    evidence_in,
)
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.fields import is_list, object_of, text_of
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    Seen,
    SessionMeta,
    Tokens,
    ToolCall,
    ToolResult,
)
from codex_checkpoints.core.rollout.turns import Planned, Turns
from codex_checkpoints.values import define

Place = tuple[int, str | None, str | None]
"""`seq`, the folder of the turn, and the base of the session at an observation."""

_QUEUE = 4096
_QUEUE_CHARS = 1 << 22
_LONG = 1 << 16
"""A command of more code points is parsed at once."""
_LIMITS = Limits()
_EDITS = frozenset({"add", "update", "delete", "move"})
_ENCODED_CONTROL = "%(?:[01][0-9A-F]|7F|C2%[89][0-9A-F]|E2%80%A[89A-E]|E2%81%A[6-9])"


class Observation(NamedTuple):
    """An item with an outcome, or a call with the texts of its answer.

    `at` is the time stamp of the record.  `printed` is the hash of what a `cat` printed, if all of
    it is recorded.
    """

    place: Place
    item: ToolCall | ToolResult
    texts: tuple[str, ...] = ()
    shortened: bool = False
    at: str | None = None
    printed: str | None = None

    def seen(self) -> tuple[Seen, ...]:
        """Return what the call touched."""
        # `tools` loads many modules, and a short look at a session parses no call.
        from codex_checkpoints.core.rollout import tools  # noqa: PLC0415

        if isinstance(self.item, ToolCall):
            seen = tools.called(self.item, self.texts, shortened=self.shortened)
        else:
            seen = tools.seen_by(self.item, shortened=self.shortened)
        if self.printed is not None and tools.are_one_cat(seen):
            return (evolve(seen[0], hash=self.printed),)
        return tuple(evolve(each, hash=None) for each in seen) if self.shortened else seen


@define
class FileObservation:
    """The newest observation of an artifact.

    The `hash` of a file is that of its content then, where the record proves it.  The host cannot
    hash a file with an `opaque` name, since the name was changed.  `edited` is the `seq` of the
    newest edit, -1 if there is none; `at` is the time stamp of the record.
    """

    kind: ArtifactKind
    seq: int
    hash: str | None = None
    opaque: bool = False
    edited: int = -1
    at: str | None = None

    @property
    def hashable(self) -> bool:
        """Whether the host can hash it."""
        return self.kind == "file" and not self.opaque


@define
class Observations:
    """The artifacts of a session, and the observations that were not parsed yet."""

    artifacts: dict[str, FileObservation] = Factory(dict[str, FileObservation])
    left_out: int = 0
    """The number of parsed observations whose name could not be kept."""
    _queue: list[tuple[Observation, tuple[Seen, ...] | None]] = field(init=False, factory=list)
    _size: int = field(init=False, default=0)

    def begin(self, seed: Checkpoint) -> None:
        """Set the artifacts of the checkpoint that the session begins with."""
        self.artifacts = {uri: _from_seed(artifact) for uri, artifact in seed.artifacts.items()}

    def observe(self, observation: Observation) -> None:
        """Add an observation."""
        waiting, size = _slim(observation)
        if size > _LONG or not size:
            seen = observation.seen()
            if seen:
                self._queue.append((waiting, seen))
        else:
            self._queue.append((waiting, None))
            self._size += size
        if self._size > _QUEUE_CHARS or len(self._queue) > _QUEUE:
            self.settle()

    def settle(self) -> None:
        """Parse the queue, newest first, until no older observation can be kept."""
        queue, self._queue, self._size = self._queue, [], 0
        newest: dict[str, FileObservation] = {}
        cut = -1
        for waiting, seen in reversed(queue):
            seq = waiting.place[0]
            if seq < cut:
                break
            for uri, observed in self._named(waiting, waiting.seen() if seen is None else seen):
                kept = newest.setdefault(uri, observed)
                kept.edited = max(kept.edited, observed.edited)
            if len(newest) >= _LIMITS.max_artifacts_total and cut < 0:
                cut = seq
        for uri in newest.keys() & self.artifacts.keys():
            newest[uri].edited = max(newest[uri].edited, self.artifacts[uri].edited)
        if newest:
            self.artifacts = _newest(self.artifacts | newest, _LIMITS.max_artifacts_total)

    def kept(self, limits: Limits) -> Mapping[str, FileObservation]:
        """Return the artifacts of a checkpoint by uri."""
        self.settle()
        return _newest(self.artifacts, limits.max_artifacts_total)

    def _named(
        self, observation: Observation, seen: tuple[Seen, ...]
    ) -> Iterator[tuple[str, FileObservation]]:
        """Yield the artifacts of one observation by uri, the last one first."""
        place, at = observation.place, observation.at
        for each in reversed(seen):
            uri, opaque = name_of(each, place)
            if uri is None:
                self.left_out += 1
            else:
                edited = place[0] if each.action in _EDITS else -1
                known = None if opaque else each.hash
                yield uri, FileObservation(each.kind, place[0], known, opaque, edited, at)


def name_of(seen: Seen, place: Place) -> tuple[str | None, bool]:
    """Return the uri, None if it cannot be kept, and whether the name had to be changed."""
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
    """Return a command without its output, and its length; 0 for anything else."""
    item = observation.item
    if isinstance(item, CommandRun):
        size = sum(map(len, item.argv))
        item = CommandRun(
            item.call_id, item.argv, item.folder, item.parsed, item.status, item.exit_code
        )
        return observation._replace(item=item, printed=_printed(observation)), size
    if not isinstance(item, ToolCall) or not item.is_command:
        return observation, 0
    arguments = object_of(item.arguments)
    command = arguments.get("command", arguments.get("cmd"))
    words = command if is_list(command) else [command]
    size = sum(len(text_of(word) or "") for word in words)
    applied = any("Success." in text for text in observation.texts)
    texts, printed = ("Success.",) if applied else (), _printed(observation)
    return observation._replace(texts=texts, printed=printed), size


def _printed(observation: Observation) -> str | None:
    from codex_checkpoints.core.rollout import outcome  # noqa: PLC0415 - as `tools` above

    if observation.shortened:
        return None
    if isinstance(observation.item, ToolCall):
        return outcome.answered_whole(observation.texts)
    if isinstance(observation.item, CommandRun):
        return outcome.printed_whole(outcome.outcome_of(observation.item))
    return None


def _newest(artifacts: dict[str, FileObservation], total: int) -> dict[str, FileObservation]:
    if len(artifacts) <= total:
        return artifacts
    order = sorted(artifacts, key=lambda uri: (artifacts[uri].seq, uri))
    return {uri: artifacts[uri] for uri in order[len(order) - total :]}


def _from_seed(artifact: Artifact) -> FileObservation:
    """Return an artifact of a seed as an observation; the hash of a file is taken anew."""
    import re  # noqa: PLC0415 - few sessions have a seed

    if artifact.kind != "file":
        return FileObservation(artifact.kind, artifact.last_observed_seq, artifact.hash)
    # A name that had to be changed has no hash, and no file has that name.
    opaque = artifact.hash is None and re.search(_ENCODED_CONTROL, artifact.uri) is not None
    return FileObservation("file", artifact.last_observed_seq, artifact.seen_hash, opaque)


NAMED = frozenset({None, "due", "done"})
"""The values of `State.naming` outside the naming task."""

Seeds = Callable[[str], Checkpoint | None]
"""From a session id to the checkpoint that the session begins with, its seed (JUN-46).

A compaction into a new session and a hard restore replace all older records, so the new file does
not hold what was known.  Our record of the operation holds the seed.  The session's own records and
updates change it, and its `seq` continues that of the seed, so that ages stay comparable.
"""

_WAITING = 1024  # calls
_WAITING_BYTES = 1 << 22  # the newest call may always wait
_DECIDED = 4096
"""At least so many decided calls are remembered, at most twice as many."""


@define
class Calls:
    """The calls of an older file that wait for their outcome, and those whose outcome is known.

    `waiting` has each call with the length of its line.  Later records about a decided call change
    nothing.  If there are too many calls, the oldest are forgotten.
    """

    waiting: dict[str, tuple[ToolCall, int]] = Factory(dict[str, tuple[ToolCall, int]])
    decided: dict[str, None] = Factory(dict[str, None])
    _size: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._size = sum(size for _, size in self.waiting.values())

    def wait(self, call: ToolCall, size: int) -> None:
        """Add a waiting call; `size` is the length of its line."""
        if call.call_id in self.decided:
            return
        self.end(call.call_id)
        self.waiting[call.call_id] = call, size
        self._size += size
        while len(self.waiting) > _WAITING or (
            self._size > _WAITING_BYTES and len(self.waiting) > 1
        ):
            self.end(next(iter(self.waiting)))

    def end(self, call_id: str) -> None:
        """Remove a waiting call."""
        ended = self.waiting.pop(call_id, None)
        if ended is not None:
            self._size -= ended[1]

    def decide(self, call_id: str) -> None:
        """Record that the outcome of a call is known."""
        self.end(call_id)
        self.decided[call_id] = None
        if len(self.decided) > 2 * _DECIDED:
            for oldest in list(islice(self.decided, _DECIDED)):
                del self.decided[oldest]


@define
class State:
    """The state of a session; `…_at` are positions of lines."""

    head: SessionMeta | None = None
    base: str | None = None
    paginated: bool = False
    own_from: int = -1
    """The first `seq` of a subagent's own lines."""
    typed: bool = False
    """Whether events mark typed messages, so that messages of the history do not count."""
    model: str | None = None
    name: str | None = None
    first_text: str | None = None
    """The first message of a person, the title of the session."""
    turn_folder: str | None = None
    turns: Turns = Factory(Turns)
    planned: Planned | None = None
    """A plan recorded before the first turn."""
    observations: Observations = Factory(Observations)
    calls: Calls = Factory(Calls)
    compactions: int = 0
    compacted_at: int = 0
    tokens: Tokens | None = None
    tokens_at: int = 0
    window: int | None = None
    naming: str | None = None
    """`due` until the naming task of a file of ours begins, then its id, then `done`."""
    seed: Checkpoint | None = None
    """The checkpoint that the session begins with, if we made the session."""
    order: int = 0
    unread_calls: int = 0
    answered_at: int = 0
    worked_at: int = 0
    observers: list[Callable[[Observation], None]] = field(init=False, factory=list)
    """Called with each observation at once."""

    @property
    def tokens_stale(self) -> bool:
        """Whether the context was replaced since its size was reported."""
        return self.compacted_at > self.tokens_at

    @property
    def ends_with_answer(self) -> bool:
        """Whether an older file ends with an answer: no work after it, no call waiting."""
        answered = self.answered_at > self.worked_at and not self.calls.waiting
        return answered and not self.paginated

    def begin(self, head: SessionMeta) -> None:
        """Set the head."""
        self.head = head
        self.base = head.cwd
        self.own_from = -1 if head.inherited_below is None else head.inherited_below

    def observe(self, observation: Observation) -> None:
        """Add an observation."""
        for observer in self.observers:
            observer(observation)
        self.observations.observe(observation)

    def next_order(self) -> int:
        """Return the next number in the order of tasks and plans."""
        self.order += 1
        return self.order


def no_seed(_session_id: str) -> Checkpoint | None:
    """Return None: the session begins with an empty checkpoint."""
    return None


def user_refs(seed: Checkpoint) -> frozenset[str]:
    """Return the messages that a seed names: they can still be cited."""
    return frozenset(each.ref for each in evidence_in(seed) if each.source == "user")


def call_ids(seed: Checkpoint) -> frozenset[str]:
    """Return the calls that a seed names: they can still be cited."""
    outputs = (uri for uri, each in seed.artifacts.items() if each.kind == "tool_output")
    cited = (each.ref for each in evidence_in(seed) if each.source == "tool_output")
    return frozenset({*cited, *(uri.partition("/")[2] for uri in outputs)})
