"""What a restore names without its content: files, parts of files, patches and tool outputs.

Contents never travel (AGN-47 to AGN-49).  Hashes and sizes are the present ones, passed as
arguments; `trace` finds what a session changed and read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
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
    """A file of the session; `touched` and `sent_to_model` report its use (AGN-35)."""

    uri: str
    hash: str | None
    size: int | None
    touched: bool
    sent_to_model: bool


@frozen
class Chunk:
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
    """All that is referred to, the newest of each kind first."""

    files: tuple[FileReference, ...] = ()
    chunks: tuple[Chunk, ...] = ()
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

    `earlier` is what the session itself was restored with, if it is a branch.
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
    """Return the references of a restore; sizes are in bytes by uri, hashes of chunks by their id.

    The files are those of the checkpoint, with its hashes.  Unknown values are absent.
    """
    files = _newest(checkpoint.artifacts, "file")
    outputs = _newest(checkpoint.artifacts, "tool_output")
    hashes = {file.uri: file.hash for file in files}
    return _references(
        traces,
        earlier,
        hashes,
        sizes=sizes,
        chunk_hashes=chunk_hashes,
        outputs=(SystemArtifact("tool_output", each.uri, each.hash) for each in outputs),
    )


def remembered(traces: Traces, earlier: References = NOTHING) -> References:
    """Return the references to a session whose lines a later session does not have.

    They have no hashes and sizes: those depend on when somebody asks.
    """
    before = {file.uri for file in earlier.files if file.touched or file.sent_to_model}
    uris = sorted(traces.touched | traces.sent | before)
    return _references(traces, earlier, dict.fromkeys(uris))


def _references(  # noqa: PLR0913 - the parts of a reference
    traces: Traces,
    earlier: References,
    hashes: Mapping[str, str | None],
    *,
    sizes: Mapping[str, int] = MappingProxyType({}),
    chunk_hashes: Mapping[str, str] = MappingProxyType({}),
    outputs: Iterable[SystemArtifact] = (),
) -> References:
    touched = traces.touched | {file.uri for file in earlier.files if file.touched}
    sent = traces.sent | {file.uri for file in earlier.files if file.sent_to_model}
    files = tuple(
        FileReference(uri, found, sizes.get(uri), uri in touched, uri in sent)
        for uri, found in hashes.items()
    )
    chunks = tuple(
        Chunk(chunk_id(span), span.uri, span.start, span.end, chunk_hashes.get(chunk_id(span)))
        for span in spans_of(traces, earlier)
    )
    patches = (SystemArtifact("patch", encoded(call_id)) for call_id in traces.patches)
    system = dict.fromkeys((*patches, *outputs, *earlier.system))
    return References(files, chunks, tuple(system)[:MAX_SYSTEM])


def regions_of(references: References) -> tuple[Region, ...]:
    """Return what to read again in one batch, in the order of the files (AGN-74).

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
"""The prefix of a hash that stands for size and time, not for the content."""


@frozen
class Drift:
    """A file that changed since the marker's turn.

    The hashes are those when the marker was made and now, or `unknown:` for one that nobody saw.
    """

    uri: str
    then: str
    now: str


@frozen
class Missing:
    """A file that cannot be seen now; `then` is its hash when the marker was made.

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
"""`copied_…`: a soft branch has copies of lines instead of references to its source's.

`earlier_unknown`: what was read and changed before the source began is not known.
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

    Those that the session `edited` behind the marker's turn are among them: the marker may have
    been made later still, and then its hash tells nothing.
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
