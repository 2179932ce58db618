"""What a restore carries by name alone: files, parts of files, patches and tool outputs.

Contents never travel (AGN-47 to AGN-49).  Hashes and sizes are those of now and come in as
arguments; what a session changed and read is told by `trace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from codex_checkpoints.core.checkpoint.records import (
    UNKNOWN_HASH,
    Artifact,
    ArtifactKind,
    Checkpoint,
)
from codex_checkpoints.core.restore.trace import MAX_SPANS, Span, Traces
from codex_checkpoints.core.rollout.paths import encoded
from codex_checkpoints.values import frozen

MAX_SYSTEM = 256
"""How many patches and tool outputs are named, the newest of each kind first."""


@frozen
class FileReference:
    """A file of the session; `touched` and `sent_to_model` say what happened to it (AGN-35)."""

    uri: str
    hash: str | None
    size: int | None
    touched: bool
    sent_to_model: bool


@frozen
class Chunk:
    """Lines that were read by their numbers, with their hash as they are now (AGN-36)."""

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
    """Everything that is referred to, the newest of each kind first."""

    files: tuple[FileReference, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    system: tuple[SystemArtifact, ...] = ()


@frozen
class Region:
    """The lines of a file to read again: ranges in order that neither meet nor overlap."""

    uri: str
    ranges: tuple[tuple[int, int], ...]


NOTHING = References()


def chunk_id(span: Span) -> str:
    """Name lines of a file (rules, "View, handoff, pack")."""
    return f"{span.uri}#L{span.start}-L{span.end}"


def spans_of(traces: Traces, earlier: References = NOTHING) -> tuple[Span, ...]:
    """Return the partial reads to be named, the newest first; their lines are to be hashed.

    `earlier` is what the session itself was restored with, should it be a branch.
    """
    before = (Span(chunk.uri, chunk.start, chunk.end) for chunk in earlier.chunks)
    return tuple(dict.fromkeys((*traces.spans, *before)))[:MAX_SPANS]


def references_of(
    checkpoint: Checkpoint,
    traces: Traces,
    sizes: Mapping[str, int],
    chunk_hashes: Mapping[str, str],
    earlier: References = NOTHING,
) -> References:
    """Return what is carried by name; sizes are in bytes by uri, hashes of chunks by their id.

    The files are those of the checkpoint, with the hashes it holds.  What is not known is absent.
    """
    touched = traces.touched | {file.uri for file in earlier.files if file.touched}
    sent = traces.sent | {file.uri for file in earlier.files if file.sent_to_model}
    files = tuple(
        FileReference(
            file.uri, file.hash, sizes.get(file.uri), file.uri in touched, file.uri in sent
        )
        for file in _newest(checkpoint.artifacts, "file")
    )
    chunks = tuple(
        Chunk(name, span.uri, span.start, span.end, chunk_hashes.get(name))
        for span in spans_of(traces, earlier)
        for name in [chunk_id(span)]
    )
    patches = (SystemArtifact("patch", encoded(call_id)) for call_id in traces.patches)
    outputs = (
        SystemArtifact("tool_output", output.uri, output.hash)
        for output in _newest(checkpoint.artifacts, "tool_output")
    )
    system = dict.fromkeys((*patches, *outputs, *earlier.system))
    return References(files, chunks, tuple(system)[:MAX_SYSTEM])


def remembered(traces: Traces, earlier: References = NOTHING) -> References:
    """Return what a later session knows by name of one whose lines it does not have.

    Hashes and sizes are those of whenever somebody asks; here there are none.
    """
    touched = traces.touched | {file.uri for file in earlier.files if file.touched}
    sent = traces.sent | {file.uri for file in earlier.files if file.sent_to_model}
    files = (
        FileReference(uri, None, None, uri in touched, uri in sent)
        for uri in sorted(touched | sent)
    )
    spans = spans_of(traces, earlier)
    chunks = (Chunk(chunk_id(span), span.uri, span.start, span.end, None) for span in spans)
    patches = (SystemArtifact("patch", encoded(call_id)) for call_id in traces.patches)
    system = dict.fromkeys((*patches, *earlier.system))
    return References(tuple(files), tuple(chunks), tuple(system)[:MAX_SYSTEM])


def regions_of(references: References) -> tuple[Region, ...]:
    """Return what to read again in one batch, in the order of the files (AGN-74).

    A file that cannot be seen now is left out: there is nothing to read.
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
"""How a hash begins that stands for size and time alone, not for the content."""


@frozen
class Drift:
    """A file whose content is another than when the marker was made."""

    uri: str
    then: str
    now: str


@frozen
class Missing:
    """A file that cannot be seen now; `then` is its hash when the marker was made.

    That is `unknown:` where it was not seen then either.
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
"""What was made do with; `copied_…`: a soft branch that was to name its source's lines has them.

`earlier_unknown`: nothing here tells what was read and changed before the source began.
"""


@frozen
class Fallback:
    """Something weaker was used than one would wish; `uri` is the file that it is about."""

    fallback: FallbackKind
    uri: str | None = None


def drift_of(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[Drift, ...]:
    """Return the files with another hash, by uri; hashes of different kinds are never equal."""
    return tuple(
        Drift(uri, then[uri], now[uri])
        for uri in sorted(then)
        if uri in now and now[uri] != UNKNOWN_HASH and now[uri] != then[uri]
    )


def missing_of(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[Missing, ...]:
    """Return the files that have no hash now, by uri; `now` covers every file of `then`."""
    return tuple(
        Missing(uri, then[uri])
        for uri in sorted(then)
        if now.get(uri, UNKNOWN_HASH) == UNKNOWN_HASH
    )


def also_missing(told: Iterable[Missing], uris: Iterable[str]) -> tuple[Missing, ...]:
    """Add files that are not there to those that are missing since the marker, by uri."""
    found = {uri: Missing(uri, UNKNOWN_HASH) for uri in uris} | {each.uri: each for each in told}
    return tuple(found[uri] for uri in sorted(found))


def weak_hashes(*known: Mapping[str, str | None]) -> tuple[Fallback, ...]:
    """Return the files of which only size and time are known, each once, by uri (DSC-71)."""
    weak = {
        uri
        for hashes in known
        for uri, found in hashes.items()
        if found is not None and found.startswith(WEAK)
    }
    return tuple(Fallback("weak_hash", uri) for uri in sorted(weak))
