"""Collects a restore's references: files, parts of files, patches and tool outputs.

Contents never travel (AGN-47 to AGN-49).  Hashes and sizes are the present ones, passed as
arguments.  `Trace` reads a session again for facts that a checkpoint does not keep: its changes and
reads, and its modes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import (
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    UNKNOWN_HASH,
    Artifact,
    ArtifactKind,
    Checkpoint,
)
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.effects import Effects
from codex_checkpoints.core.events import CallEnded, Fold, ModeSet, Record, Seen, TaskEnded
from codex_checkpoints.core.fields import renew
from codex_checkpoints.core.paths import encoded
from codex_checkpoints.core.shell import script
from codex_checkpoints.core.turns import Turn

MAX_SPANS = 64
"""The most partial reads that are kept, the newest."""

_FILES = 1 << 16
_PATCHES = 256


@frozen
class Span:
    """The lines `start` to `end`, from 1, of a file."""

    uri: str
    start: int
    end: int


def _spans(uri: str, seen: Seen, effects: Effects) -> Iterator[Span]:
    """Yield the lines that a command read of a file, if its text has the first and the last.

    The text is read even where Codex itself lists the files: its list has no lines.
    """
    if seen.script is None:
        return
    reading = script.read_script(seen.script)
    for read in reading.reads:
        if read.start is None or read.end is None:
            continue
        # The folder that a script changes to precedes the name, or is in the call.
        names = {read.path, f"{reading.folder}/{read.path}" if reading.folder else read.path}
        if any(effects.uri_of(name, seen.folder) == uri for name in names):
            yield Span(uri, read.start, read.end)


_MODES = 64


@frozen
class ModeChange:
    """The collaboration mode from the record `seq` on, and the turn that it began with."""

    seq: int
    mode: str
    turn_id: str | None


@frozen
class Traces:
    """The result; `spans` and `patches` newest first, `modes` in order, the last in force.

    `deleted` are the files that the session itself deleted or moved, and did not restore.
    """

    touched: frozenset[str] = frozenset()
    sent: frozenset[str] = frozenset()
    spans: tuple[Span, ...] = ()
    patches: tuple[str, ...] = ()
    modes: tuple[ModeChange, ...] = ()
    deleted: frozenset[str] = frozenset()


def in_order(
    earlier: tuple[ModeChange, ...], own: tuple[ModeChange, ...]
) -> tuple[ModeChange, ...]:
    """Join the modes before and in a session; the mode it began with is not a change."""
    if earlier and own and own[0].mode == earlier[-1].mode:
        own = own[1:]
    return (*earlier, *own)[-_MODES:]


class Trace(Fold):
    """The fold that collects a restore's references, together with a replay of the session."""

    def __init__(self, *, last: int | None = None) -> None:
        """Ignore records with a `seq` above `last`."""
        self.replay = Replay()
        self.replay.follow(self)
        if last is not None:
            self.replay.last = last
        # The newest of each kind is last.
        self._touched: dict[str, None] = {}
        self._sent: dict[str, None] = {}
        self._spans: dict[Span, None] = {}
        self._patches: dict[str, None] = {}
        self._deleted: dict[str, None] = {}
        self._modes: deque[ModeChange] = deque(maxlen=_MODES)
        self._ends: dict[int, str] = {}

    def traces(self) -> Traces:
        """Return the traces found so far."""
        return Traces(
            frozenset(self._touched),
            frozenset(self._sent),
            tuple(reversed(self._spans)),
            tuple(reversed(self._patches)),
            tuple(self._modes),
            frozenset(self._deleted),
        )

    def _ended(self, effects: Effects) -> None:
        moves = False
        for each in effects.seen:
            moves = each.action == "move" and not moves  # a move has two files: from and to
            uri = effects.uri_of(each.name, each.folder) if each.is_file else None
            if uri is None:
                continue
            renew(self._sent if each.action == "read" else self._touched, uri, None, _FILES)
            if each.call_id:
                renew(self._patches, each.call_id[:MAX_URI_CHARS], None, _PATCHES)
            for span in _spans(uri, each, effects):
                renew(self._spans, span, None, MAX_SPANS)
            self._deleted.pop(uri, None)
            if moves or each.action == "delete":
                renew(self._deleted, uri, None, _FILES)

    def ended_at(self, turn: Turn) -> str | None:
        """Return the time when a turn ended, by the record that ended it; None if none does."""
        return None if turn.ended is None else self._ends.get(turn.ended)

    def take(self, record: Record) -> None:
        """Note observations, modes, and ends of turns."""
        for event in record.events:
            match event:
                case CallEnded():
                    self._ended(Effects(event))
                case TaskEnded() if record.at is not None:
                    self._ends[record.position] = record.at
                case ModeSet() if record.counts:
                    self._mode(event, record)
                case _:
                    pass

    def _mode(self, event: ModeSet, record: Record) -> None:
        mode = value(event.mode, MAX_VALUE_CHARS)
        if mode and (not self._modes or self._modes[-1].mode != mode):
            self._modes.append(ModeChange(record.seq, mode, event.turn_id))


MAX_SYSTEM = 256
"""Number of patches and tool outputs that are named, the newest of each kind first."""


@frozen
class FileReference:
    """A file of the session; `touched` and `sent_to_model` report its use (AGN-35)."""

    uri: str
    hash: str | None
    size: int | None
    touched: bool
    sent_to_model: bool


@frozen
class FileChunk:
    """Lines that were read by their numbers, with their present hash (AGN-36)."""

    chunk_id: str
    uri: str
    start: int
    end: int
    hash: str | None


@frozen
class SystemArtifact:
    """A patch that was applied, by its call, or a tool output, by its uri (AGN-37)."""

    kind: Literal["patch", "tool_output"]
    id: str
    hash: str | None = None


@frozen
class References:
    """All references, the newest of each kind first."""

    files: tuple[FileReference, ...] = ()
    chunks: tuple[FileChunk, ...] = ()
    system: tuple[SystemArtifact, ...] = ()


@frozen
class Region:
    """The lines of a file to read again: ordered ranges with gaps between."""

    uri: str
    ranges: tuple[tuple[int, int], ...]


NOTHING = References()


def chunk_id(span: Span) -> str:
    """Name lines of a file (rules, "View, handoff, pack")."""
    return f"{span.uri}#L{span.start}-L{span.end}"


def spans_of(traces: Traces, earlier: References = NOTHING) -> tuple[Span, ...]:
    """Return the partial reads to name, the newest first; the caller hashes their lines.

    `earlier` are the references that the session itself was restored with, if it is a branch.
    """
    before = (Span(chunk.uri, chunk.start, chunk.end) for chunk in earlier.chunks)
    return tuple(dict.fromkeys((*traces.spans, *before)))[:MAX_SPANS]


def references_of(
    checkpoint: Checkpoint | None,
    traces: Traces,
    sizes: Mapping[str, int],
    chunk_hashes: Mapping[str, str],
    earlier: References = NOTHING,
) -> References:
    """Return the references of a restore; sizes are in bytes by uri, hashes of chunks by their id.

    The files are the checkpoint's, with its hashes.  Without a checkpoint they are all files that
    the session touched or sent to the model.  That is so for an earlier session, whose lines the
    new one does not have.  Unknown values are absent.
    """
    touched = traces.touched | {file.uri for file in earlier.files if file.touched}
    sent = traces.sent | {file.uri for file in earlier.files if file.sent_to_model}
    hashes: Mapping[str, str | None] = dict.fromkeys(sorted(touched | sent))
    outputs: list[Artifact] = []
    if checkpoint is not None:
        hashes = {file.uri: file.hash for file in _newest(checkpoint.artifacts, "file")}
        outputs = _newest(checkpoint.artifacts, "tool_output")
    files = tuple(
        FileReference(uri, found, sizes.get(uri), uri in touched, uri in sent)
        for uri, found in hashes.items()
    )
    chunks = tuple(
        FileChunk(chunk_id(span), span.uri, span.start, span.end, chunk_hashes.get(chunk_id(span)))
        for span in spans_of(traces, earlier)
    )
    system = dict.fromkeys(
        (
            *(SystemArtifact("patch", encoded(call_id)) for call_id in traces.patches),
            *(SystemArtifact("tool_output", each.uri, each.hash) for each in outputs),
            *earlier.system,
        )
    )
    return References(files, chunks, tuple(system)[:MAX_SYSTEM])


def regions_of(references: References) -> tuple[Region, ...]:
    """Return the regions to read again in one batch, in the order of the files (AGN-74).

    A file without a hash is left out: it cannot be read.
    """
    ranges: dict[str, list[tuple[int, int]]] = {}
    for chunk in references.chunks:
        ranges.setdefault(chunk.uri, []).append((chunk.start, chunk.end))
    return tuple(
        Region(file.uri, _merged(ranges[file.uri]))
        for file in references.files
        if file.hash is not None and file.uri in ranges
    )


def _newest(artifacts: Mapping[str, Artifact], kind: ArtifactKind) -> list[Artifact]:
    wanted = (artifact for artifact in artifacts.values() if artifact.kind == kind)
    return sorted(wanted, key=lambda artifact: (-artifact.last_observed_seq, artifact.uri))


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return tuple(merged)


WEAK = "stat:"
"""The prefix of a hash that is made of size and time, not of the content."""


@frozen
class Drift:
    """A file that changed since the marker's turn.

    The hashes are from the marker's creation and from now, `unknown:` if not recorded.
    """

    uri: str
    then: str
    now: str


@frozen
class Missing:
    """A file that is missing or unreadable now; `then` is its hash when the marker was made.

    `then` is `unknown:` where the file was not seen at that time either.
    """

    uri: str
    then: str


FallbackKind = Literal[
    "weak_hash",
    "file_only_store",
    "copied_legacy",
    "copied_compressed",
    "copied_windows",
    "copied_in_base",
    "copied_damaged",
    "earlier_unknown",
]
"""`copied_…`, of earlier builds: a branch has copies of lines, not references to its source's.

`earlier_unknown`: the reads and changes before the source began are not known.
"""


@frozen
class Fallback:
    """A weaker method that was used; `uri` is its file."""

    fallback: FallbackKind
    uri: str | None = None


def drift_of(
    then: Mapping[str, str], now: Mapping[str, str], edited: Iterable[str] = ()
) -> tuple[Drift, ...]:
    """Return the files with another hash, by uri; hashes of different kinds are never equal.

    Files that the session `edited` after the marker's turn are among them: the marker may have been
    made later still, and then its hash says nothing.
    """
    found = dict.fromkeys(edited, UNKNOWN_HASH)
    found |= {
        uri: hashed
        for uri, hashed in then.items()
        if uri in now and now[uri] != UNKNOWN_HASH and now[uri] != hashed
    }
    return tuple(Drift(uri, found[uri], now.get(uri, UNKNOWN_HASH)) for uri in sorted(found))


def missing_of(
    then: Mapping[str, str], now: Mapping[str, str], others: Iterable[str] = ()
) -> tuple[Missing, ...]:
    """Return the files of the marker that have no hash now, and others that are missing, by uri."""
    gone = {uri: then[uri] for uri in then if now.get(uri, UNKNOWN_HASH) == UNKNOWN_HASH}
    found = dict.fromkeys(others, UNKNOWN_HASH) | gone
    return tuple(Missing(uri, found[uri]) for uri in sorted(found))


def weak_hashes(*known: Mapping[str, str | None]) -> tuple[Fallback, ...]:
    """Return the files known only by size and time, each once, by uri (DSC-71)."""
    weak = {
        uri
        for hashes in known
        for uri, found in hashes.items()
        if found is not None and found.startswith(WEAK)
    }
    return tuple(Fallback("weak_hash", uri) for uri in sorted(weak))
