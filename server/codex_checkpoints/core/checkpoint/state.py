"""Keeps the state of a session after some of its lines, with the artifacts that it observed.

A session may run fifty thousand commands, a checkpoint keeps the newest 256 artifacts, and parsing
a command takes time.  So commands wait in a queue, and only the newest are parsed.  The result is
the same: the newest observation of an artifact decides, and the most recently observed artifacts
are kept, ties by uri (DSC-28).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Final

import orjson
from attrs import Factory, define, evolve, field, frozen

from codex_checkpoints.core.agents.codex import tools
from codex_checkpoints.core.agents.codex.items import (
    answered_whole,
    outcome_in,
    outcome_of,
    printed_whole,
)
from codex_checkpoints.core.checkpoint.records import (
    FOLDER,
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    Artifact,
    ArtifactKind,
    Checkpoint,
    Limits,
    evidence_in,
)
from codex_checkpoints.core.checkpoint.recovered import Recovered
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.effects import outcome_in_call, seen_in
from codex_checkpoints.core.events import (
    EDITS,
    CommandRun,
    Condition,
    FileViewed,
    Outcome,
    Seen,
    SessionMeta,
    Tokens,
    ToolCall,
    ToolResult,
)
from codex_checkpoints.core.fields import is_list, object_of, text_of
from codex_checkpoints.core.paths import encoded, uri_of
from codex_checkpoints.core.shell.commands import is_check, plainly_looks
from codex_checkpoints.core.turns import Ended, Planned, Turn, Turns

TurnPlace = tuple[int, str | None, str | None]
"""`seq`, the folder of the turn, and the base of the session at an observation."""

Hashes = Mapping[str, str | None]
"""The current hash by uri, `FOLDER` for a folder, None for a file that is gone.

A file that the host cannot see has no entry.
"""

SeenHashes = Mapping[tuple[str, int], str]
"""The hash that a host saw right after the observation of a uri in the record `seq`."""

_NOTHING: Hashes = MappingProxyType({})
NO_SEEN: SeenHashes = MappingProxyType({})

_QUEUE = 4096
_QUEUE_CHARS = 1 << 22
_LONG = 1 << 16
"""Longer commands, in code points, are parsed at once."""
_LIMITS = Limits()
_CHANGES: Final = re.compile(
    r">|\*\*\* Begin Patch|\b(?:tee|touch|truncate|rm|cp|mv|perl|(?i:set-content|out-file))\b"
    r"|\bsed\b[^\n]* -[^\s-]*i|--in-place|\bgit (?:mv|rm|restore|checkout)\b|\b(?:curl|wget)\b"
    r"|\b(?:black|isort|autopep8|yapf|rustfmt|stylua|swiftformat|docformatter|prettier|gofmt"
    r"|goimports|shfmt|clang-format|eslint|ruff|biome|dprint)\b"
)
"""Parts of a command that may change a file; the outcome of other commands does not matter."""
_ENCODED_CONTROL: Final = re.compile(
    "%(?:[01][0-9A-F]|7F|C2%[89][0-9A-F]|E2%80%A[89A-E]|E2%81%A[6-9])"
)
OUTSIDE: Final = re.compile(r"/|[A-Z]:/|\.\.(?:/|$)")
"""The beginning of the uri of a file outside the session's folder."""


_WORDS = (
    "> *** sed perl tee touch trunc rm cp mv -i ontent ONTENT ut- UT- git curl wget"
    " black isort autopep8 yapf fmt stylua format prettier goimports eslint ruff biome"
)
_HINTS: Final = tuple(_WORDS.split())
"""Each such command contains one of these."""

_CAT: Final = re.compile(r"\bcat\s[^|;&<>\n]*\Z")
"""The end of a script that prints one file."""


@frozen
class Observation:
    """An item with an outcome, or a call with the texts of its answer.

    `at` is the time stamp of the record. `printed` is the hash of a `cat`'s output, if it is
    recorded completely. `failed` describes the failure of its command, as `exit 2`.
    """

    place: TurnPlace
    item: ToolCall | ToolResult
    texts: tuple[str, ...] = ()
    shortened: bool = False
    at: str | None = None
    printed: str | None = None
    failed: str | None = None

    @property
    def key(self) -> object:
        """The key of the artifacts of a command, without their `seq`."""
        item: object = self.item
        if isinstance(item, ToolCall):
            item = item.name, orjson.dumps(item.arguments, option=orjson.OPT_NON_STR_KEYS)
        return item, self.texts, self.printed, self.place[1:]

    @property
    def outcome(self) -> Outcome:
        """The outcome of its command; unknown if a code-mode script made several calls."""
        return outcome_in_call(self.item, self.texts)

    @property
    def plainly_looks(self) -> bool:
        """Whether a command is evidently read-only, without parsing it."""
        argv = self.item.argv if isinstance(self.item, CommandRun) else ()
        return len(argv) == 3 and plainly_looks(argv[2])  # noqa: PLR2004 - `bash -lc SCRIPT`

    def seen(self) -> tuple[Seen, ...]:
        """Return the effects of the call."""
        seen = seen_in(self.item, self.texts, shortened=self.shortened)
        if self.printed is not None and tools.are_one_cat(seen):
            return (evolve(seen[0], hash=self.printed),)
        return seen


@define
class FileObservation:
    """The newest observation of an artifact.

    The `hash` of a file is the hash of its content at that time, if the record proves it. The host
    cannot hash a file with an `opaque` name, since the name was changed. `edited` is the `seq` of
    the newest edit, `acted` the `seq` of the newest observation that was neither read-only nor a
    chore; -1 without one. `at` is the time stamp of the record. `only_if` is a condition: the kind
    of entry that must exist at a uri now. `failed` describes the failure of a command, as `exit 2`.
    """

    kind: ArtifactKind
    seq: int
    hash: str | None = None
    opaque: bool = False
    edited: int = -1
    acted: int = -1
    at: str | None = None
    only_if: tuple[Condition, str] | None = None
    failed: str | None = None

    @property
    def minor(self) -> bool:
        """Whether it is a command that verifies nothing: read-only, or a chore."""
        return self.kind == "command" and self.acted < self.seq

    @property
    def rank(self) -> tuple[bool, int]:
        """The sort key for removal: read-only commands first, then the oldest observations."""
        return self.acted >= 0, self.seq if self.acted < 0 else self.acted

    def follows(self, older: FileObservation | None) -> None:
        """Take over from an older observation when it was last edited and last acted on."""
        if older is not None:
            self.edited = max(self.edited, older.edited)
            self.acted = max(self.acted, older.acted)

    def holds(self, now: Hashes, seen: SeenHashes) -> bool:
        """Return whether it counts, given the entries at the uris now, or as seen at that time."""
        if self.only_if is None:
            return True
        what, uri = self.only_if
        found = now.get(uri)
        if what == "file":
            return found not in {None, FOLDER} or (uri, self.seq) in seen
        return (found == FOLDER) == (what == "folder")

    @property
    def hashable(self) -> bool:
        """Whether the host can hash it."""
        return self.kind == "file" and not self.opaque


_READ: Final = FileViewed("", "")
"""The item of an observation whose effects are known."""


@define
class Observations:
    """The artifacts of a session, and the observations that are not parsed yet.

    `conditional` has those that count only if an entry exists at a path, or if no folder does.
    """

    artifacts: dict[str, FileObservation] = Factory(dict[str, FileObservation])
    conditional: dict[str, FileObservation] = Factory(dict[str, FileObservation])
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
        if size is None or size > _LONG:
            seen = observation.seen()
            if size is None:
                ran = any(each.kind == "command" for each in seen)
                failed = _failure(observation.outcome) if ran else waiting.failed
                # Its item, which may contain long texts, is no longer needed.
                waiting = Observation(waiting.place, _READ, at=waiting.at, failed=failed)
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
        conditional: dict[str, FileObservation] = {}
        parsed: dict[object, tuple[_Named, ...]] = {}
        most, lasting, cut = _LIMITS.max_artifacts_total, 0, -1
        for waiting, seen in reversed(queue):
            seq, at = waiting.place[0], waiting.at
            if seq < cut:
                break
            if len(newest) >= most and waiting.plainly_looks:
                continue
            for uri, named in self._named(waiting, seen, parsed):
                kept = newest if named.only_if is None else conditional
                known = kept.get(uri)
                if known is None:
                    kept[uri] = named.observed(seq, at, waiting.failed)
                    lasting += kept is newest and not named.minor
                    continue
                if known.acted < 0 and not named.minor:
                    known.acted = seq
                    lasting += kept is newest
                if known.edited < 0 and named.edits:
                    known.edited = seq
            if cut < 0 and lasting >= most:
                cut = seq
        self.artifacts = _joined(self.artifacts, newest, most)
        self.conditional = _joined(self.conditional, conditional, most)

    def kept(
        self, limits: Limits, now: Hashes = _NOTHING, seen: SeenHashes = NO_SEEN
    ) -> Mapping[str, FileObservation]:
        """Return the artifacts of a checkpoint by uri, given the current entries at the uris."""
        self.settle()
        kept = dict(self.artifacts)
        for uri, each in self.conditional.items():
            if each.holds(now, seen):
                _put(kept, uri, each)
        newest = _newest(kept, limits.max_artifacts_total)
        return _within(newest, limits.max_uri_bytes_total)

    def files(self) -> Mapping[str, FileObservation]:
        """Return the newest observation of each file, whether or not it counts."""
        self.settle()
        files = dict(self.artifacts)
        for uri, each in self.conditional.items():
            _put(files, uri, each)
        return {uri: each for uri, each in files.items() if each.hashable}

    def uris(self) -> tuple[str, ...]:
        """Return the uris that the host checks for a checkpoint: files and conditions."""
        files = self.files()
        conditions = (each.only_if for each in self.conditional.values())
        return tuple(dict.fromkeys((*files, *(each[1] for each in conditions if each))))

    def since(self, seq: int) -> tuple[bool, frozenset[str]]:
        """Return whether a file was edited after a record, and which commands ran after it."""
        self.settle()
        both = (*self.artifacts.values(), *self.conditional.values())
        ran = (each for each in self.artifacts.items() if each[1].kind == "command")
        return (
            any(each.edited > seq for each in both),
            frozenset(uri for uri, each in ran if each.seq > seq),
        )

    def _named(
        self,
        waiting: Observation,
        seen: tuple[Seen, ...] | None,
        parsed: dict[object, tuple[_Named, ...]],
    ) -> Iterator[tuple[str, _Named]]:
        """Yield the artifacts that one observation names, by uri, last one first.

        `parsed` is a cache of commands: sessions repeat the same ones.
        """
        if seen is not None:
            names = _names_of(waiting.place, seen)
        elif (names := parsed.get(key := waiting.key)) is None:
            names = parsed[key] = _names_of(waiting.place, waiting.seen())
        for each in names:
            if each.uri is None:
                self.left_out += 1
            else:
                yield each.uri, each


@frozen
class _Named:
    """An artifact that an observation names; the uri is None if it cannot be stored."""

    uri: str | None
    kind: ArtifactKind
    hash: str | None
    opaque: bool
    edits: bool
    minor: bool
    only_if: tuple[Condition, str] | None

    def observed(self, seq: int, at: str | None, failed: str | None) -> FileObservation:
        """Return it as the newest observation of an artifact."""
        edited, acted = seq if self.edits else -1, -1 if self.minor else seq
        known = None if self.opaque else self.hash
        how = failed if self.kind == "command" else None
        return FileObservation(
            self.kind, seq, known, self.opaque, edited, acted, at, self.only_if, how
        )


def _names_of(place: TurnPlace, seen: tuple[Seen, ...]) -> tuple[_Named, ...]:
    names: list[_Named] = []
    for each in reversed(seen):
        uri, opaque = name_of(each, place)
        only_if: tuple[Condition, str] | None = None
        if each.only_if is not None:
            what, where = each.only_if[0], name_of(each.condition, place)[0]
            if where is None or (what == "file" and OUTSIDE.match(where)):
                continue
            only_if = what, where
        edits = each.action in EDITS
        names.append(_Named(uri, each.kind, each.hash, opaque, edits, each.minor, only_if))
    return tuple(names)


def name_of(seen: Seen, place: TurnPlace) -> tuple[str | None, bool]:
    """Return the uri, None if it cannot be stored, and whether the name had to be changed."""
    if seen.kind == "command":
        return value(seen.name, MAX_VALUE_CHARS) or None, False
    if seen.kind == "tool_output":
        name = encoded(seen.name)
        return (name if len(name) <= MAX_URI_CHARS else None), False
    _, folder, base = place
    found = uri_of(seen.name, folder=seen.folder, turn_folder=folder, base=base)
    return (None, False) if found is None else (found.uri, found.encoded)


def _slim(observation: Observation) -> tuple[Observation, int | None]:
    """Return a command with only the relevant part of its outcome, and the length of that.

    The length is None for other observations.
    """
    item = observation.item
    if isinstance(item, CommandRun):
        script = " ".join(item.argv)
        changes = _changes(script)
        only_reads = not changes and item.parsed is not None and all(map(_is_read, item.parsed))
        hashed = _printed(observation, item.argv[-1] if item.argv else "")
        # If Codex lists the files and there is no other effect, the words are not needed.
        argv = () if only_reads and hashed is None else item.argv
        ran = item.status if changes or item.status in {"declined", "in_progress"} else None
        code = item.exit_code if changes else None
        printed = item.printed if changes else None
        printed = None if printed is None else _applied((printed,))
        slim = CommandRun("", argv, item.folder, item.parsed, ran, code, printed)
        failed = _failure(observation.outcome)
        place, at = observation.place, observation.at
        return Observation(place, slim, at=at, printed=hashed, failed=failed), len(script)
    if not isinstance(item, ToolCall) or not item.is_command:
        return observation, None
    arguments = object_of(item.arguments)
    command = arguments.get("command", arguments.get("cmd"))
    words = [text_of(word) or "" for word in (command if is_list(command) else [command])]
    script = " ".join(words)
    texts: tuple[str, ...] = ()
    outcome = outcome_in(observation.texts)
    if _changes(script):
        ended = "" if outcome.failed is None else f"Exit code: {int(outcome.failed)}"
        texts = (f"{ended}\nOutput:\n{_applied(observation.texts)}",)
    printed, failed = _printed(observation, script), _failure(outcome)
    return evolve(observation, texts=texts, printed=printed, failed=failed), len(script)


def _failure(outcome: Outcome) -> str | None:
    return outcome.ended if outcome.failed else None


def _printed(observation: Observation, script: str) -> str | None:
    """Return the hash of a `cat`'s output, if it is known."""
    if observation.shortened or _CAT.search(script) is None:
        return None
    if isinstance(observation.item, CommandRun):
        return printed_whole(outcome_of(observation.item))
    return answered_whole(observation.texts)


def _changes(script: str) -> bool:
    """Return whether a script may change a file, so that its outcome matters."""
    return any(map(script.__contains__, _HINTS)) and _CHANGES.search(script) is not None


def _is_read(part: tuple[str, str | None]) -> bool:
    kind, path = part
    return kind == "read" and path is not None and path[:1] not in {"", "~", "$"}


def _applied(texts: tuple[str, ...]) -> str:
    return "Success." if any("Success." in text for text in texts) else ""


def _put(kept: dict[str, FileObservation], uri: str, each: FileObservation) -> None:
    """Merge an observation into those of its uri; the newer one is kept."""
    other = kept.get(uri)
    newer, older = (other, each) if other is not None and other.seq > each.seq else (each, other)
    kept[uri] = evolve(newer)
    kept[uri].follows(older)


def _joined(
    older: dict[str, FileObservation], newer: dict[str, FileObservation], total: int
) -> dict[str, FileObservation]:
    for uri, each in newer.items():
        each.follows(older.get(uri))
    return _newest(older | newer, total) if newer else older


def _newest(artifacts: dict[str, FileObservation], total: int) -> dict[str, FileObservation]:
    if len(artifacts) <= total:
        return artifacts
    order = sorted(artifacts, key=lambda uri: (artifacts[uri].rank, uri))
    return {uri: artifacts[uri] for uri in order[len(order) - total :]}


def _within(artifacts: dict[str, FileObservation], size: int) -> dict[str, FileObservation]:
    """Return the newest artifacts whose uris have at most `size` bytes together (DSC-9)."""
    if sum(map(len, artifacts)) * 4 <= size:
        return artifacts
    order = sorted(artifacts, key=lambda uri: (artifacts[uri].rank, uri), reverse=True)
    sizes = accumulate(len(uri.encode()) for uri in order)
    return {uri: artifacts[uri] for uri, end in zip(order, sizes, strict=True) if end <= size}


def _from_seed(artifact: Artifact) -> FileObservation:
    """Return an artifact of a seed as an observation; a file's hash is computed again."""
    seq = artifact.last_observed_seq
    if artifact.kind != "file":
        acted = -1 if artifact.kind == "command" and not is_check(artifact.uri) else seq
        return FileObservation(artifact.kind, seq, artifact.hash, acted=acted)
    # A changed name has no hash, and no file has that name.
    opaque = artifact.hash is None and _ENCODED_CONTROL.search(artifact.uri) is not None
    return FileObservation("file", seq, artifact.seen_hash, opaque, acted=seq)


Seeds = Callable[[str], Checkpoint | None]
"""From a session id to the checkpoint that the session begins with, its seed (JUN-46).

A compaction into a new session and a hard restore replace all older records, so the new file lacks
the earlier facts.  Our record of the operation holds the seed.  The session's own records and
updates change it, and its `seq` continues the seed's, so that ages stay comparable.
"""


@define
class State:
    """The state of a session; `…_at` are positions of lines."""

    head: SessionMeta | None = None
    base: str | None = None
    """The folder of the session."""
    typed: bool = False
    """Whether the file marks typed messages, so that messages of the history do not count."""
    waits: bool = False
    """Whether a call waits for its outcome."""
    model: str | None = None
    name: str | None = None
    first_text: str | None = None
    """The first request, the title of the session."""
    first_in_history: bool = False
    """Whether only the model's history records that request."""
    first_of_source: bool = False
    """Whether that request belongs to the session that this one was forked from."""
    newest_folder: tuple[int, str] | None = None
    """The newest folder that the session was set to, with the number of the file that says so."""
    turns: Turns = Factory(Turns)
    planned: Planned | None = None
    """A plan recorded before the first turn."""
    observations: Observations = Factory(Observations)
    compactions: int = 0
    """Compactions that were not undone; `windows` counts all records that replaced the context."""
    windows: int = 0
    compacted_at: int = 0
    tokens: Tokens | None = None
    tokens_at: int = 0
    window: int | None = None
    seed: Checkpoint | None = None
    """The checkpoint that the session begins with, if we made the session."""
    recovered: Recovered | None = None
    """Task and plan of the previous session, from the text at the start, if there is no seed."""
    unread_calls: int = 0
    resets_at: int | None = None
    """The reset time of the newest limit that was reported as used up."""
    answered_at: int = 0
    worked_at: int = 0

    @property
    def tokens_stale(self) -> bool:
        """Whether the context was replaced since its size was reported."""
        return self.compacted_at > self.tokens_at

    @property
    def ends_with_answer(self) -> bool:
        """Whether a file ends with an answer: no work after it, and no waiting call."""
        return self.answered_at > self.worked_at and not self.waits

    def begin(self, head: SessionMeta) -> None:
        """Set the head."""
        self.head, self.base = head, head.cwd

    @property
    def is_between_turns(self) -> bool:
        """Whether the session waits for its next turn (JUN-16, JUN-17)."""
        turns = self.turns.turns
        return not self.turns.task_open and (not turns or self.has_ended(turns[-1]))

    def has_ended(self, turn: Turn) -> bool:
        """Return whether a turn has ended."""
        return self.turns.has_ended(turn, answered=self.ends_with_answer)

    def ended(self, turn: Turn) -> Ended:
        """Return how a turn ended."""
        return self.turns.ended(turn, answered=self.ends_with_answer)

    def ends(self) -> Iterator[tuple[str, Ended]]:
        """Yield the end of each turn that was not rolled back, by its id, in order."""
        return ((turn.turn_id, self.ended(turn)) for turn in self.turns.counting())


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
