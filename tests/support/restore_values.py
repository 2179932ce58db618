"""Parts of restores: plain values to begin with, and strategies for any."""

from typing import Any

from attrs import evolve
from hypothesis import strategies as st

from codex_checkpoints.core.agents.codex.own_messages import DIGEST_LINE
from codex_checkpoints.core.checkpoint.records import Caps, Checkpoint, Plan
from codex_checkpoints.core.digest.records import Check, DigestSource
from codex_checkpoints.core.events import Outcome
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.restore.pack import (
    HEADINGS,
    TITLE,
    Message,
    PackContents,
    Pinned,
    RestoreOrigin,
    StatePack,
)
from codex_checkpoints.core.restore.pack_items import Ancestor, Parent, TurnSource
from codex_checkpoints.core.restore.recording import restore_of
from codex_checkpoints.core.restore.records import Restore, TokenFigures, Windows
from codex_checkpoints.core.restore.references import (
    Drift,
    FileChunk,
    FileReference,
    Missing,
    ModeChange,
    References,
    SystemArtifact,
)
from generated_checkpoints import CHECKPOINTS, HASHES, LONG, URIS, WORDS

SOURCE = "01a1f865-0000-7000-8000-000000000001"
BRANCH = "01a1f865-0000-7000-8000-000000000002"
MADE = "2026-11-20T10:00:00.000Z"
RESTORED = "2026-11-21T08:30:00.000Z"

EMPTY = Checkpoint(-1, None, Plan(), (), {}, {}, ())
ORIGIN = RestoreOrigin(TurnSource(SOURCE, "t1"), "m1", "before the rewrite", MADE)


def carried(
    checkpoint: Checkpoint = EMPTY,
    *,
    origin: RestoreOrigin = ORIGIN,
    reason: str = "requested by the user",
    modes: tuple[ModeChange, ...] = (),
    references: References | None = None,
    pins: tuple[Pinned, ...] = (),
    window: tuple[Message, ...] = (),
    **more: Any,  # noqa: ANN401 - as `PackContents`
) -> PackContents:
    """Carry a checkpoint, and nothing more than is said."""
    known = References() if references is None else references
    return PackContents(origin, reason, modes, checkpoint, known, pins, window, **more)


def recorded(
    contents: PackContents,
    pack: StatePack | None,
    session_id: str = BRANCH,
    operation: str = "op1",
) -> Restore:
    """Return the record of a restore, without any trouble."""
    found = restore_of(
        contents,
        pack,
        tokens=TokenFigures(190_000, 190_000 if pack is None else 700, 258_400),
        caps=Caps().as_json(),
        source_digest="sha256:" + "a" * 64,
    )
    return evolve(
        found,
        operation_id=operation,
        session_id=session_id,
        restored_at=RESTORED,
        windows=Windows("w0", "w1", "w2"),
        branch_digest="sha256:" + "b" * 64,
    )


def sections_in(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Take a pack apart into headings and their lines; anything else in it is an error (AGN-52).

    A digest at its end is no part of it.
    """
    text = text.partition(f"\n{DIGEST_LINE}\n")[0]
    title, *lines = text.removesuffix("\n").split("\n")
    assert (title, text[-1]) == (TITLE, "\n")
    order = [heading for heading, _ in HEADINGS]
    sections: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("- "):
            sections[-1][1].append(line)
        elif line:
            order = order[order.index(line) + 1 :]
            sections.append((line, []))
    return tuple((heading, tuple(found)) for heading, found in sections)


TURNS = st.builds(TurnSource, WORDS, WORDS)
ORIGINS = st.builds(
    RestoreOrigin,
    TURNS,
    WORDS,
    LONG,
    WORDS,
    st.lists(st.builds(Ancestor, WORDS, st.builds(Parent, WORDS, WORDS), WORDS), max_size=20).map(
        tuple
    ),
)
MODES = st.lists(st.builds(ModeChange, st.integers(0, 99), WORDS, st.none() | WORDS), max_size=3)
SIZES = st.none() | st.integers(0, 2**40)
FILES = st.lists(
    st.builds(FileReference, URIS, HASHES, SIZES, st.booleans(), st.booleans()),
    max_size=4,
    unique_by=lambda file: file.uri,
)
LINES = st.integers(1, 50)


def _chunk(uri: str, start: int, more: int, found: str | None) -> FileChunk:
    end = start + more
    return FileChunk(f"{uri}#L{start}-L{end}", uri, start, end, found)


CHUNKS = st.lists(st.builds(_chunk, URIS, LINES, LINES, HASHES), max_size=6)
SYSTEM = st.lists(
    st.builds(SystemArtifact, st.sampled_from(["patch", "tool_output"]), WORDS, HASHES), max_size=3
)
REFERENCES = st.builds(References, FILES.map(tuple), CHUNKS.map(tuple), SYSTEM.map(tuple))
CONTENTS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.just("x" * 90 + "\n").map(lambda line: line * 60),
)
PINS = st.lists(
    st.builds(Pinned, URIS, st.none(), st.none(), HASHES, CONTENTS),
    max_size=3,
    unique_by=lambda pin: pin.uri,
)
MESSAGES = st.lists(
    st.builds(Message, WORDS, WORDS.map(lambda text: f"m{text}")),
    max_size=7,
    unique_by=lambda message: message.ref,
)
COMMANDS = st.builds(
    Check,
    st.integers(0, 999).map(lambda seq: RecordPlace(None, seq)),
    LONG,
    WORDS,
    st.builds(Outcome, st.booleans(), st.none() | st.integers(-1, 255)),
    st.integers(0, 3),
)
GATHERED = st.builds(
    DigestSource,
    ended=st.sampled_from([None, "answered", "aborted", "failed", "open"]),
    checks=st.lists(COMMANDS, max_size=20, unique_by=lambda check: check.where.seq).map(tuple),
    edits=st.integers(0, 3),
)
DRIFT = st.lists(st.builds(Drift, URIS, WORDS, WORDS), max_size=20, unique_by=lambda one: one.uri)
MISSING = st.lists(st.builds(Missing, URIS, WORDS), max_size=2, unique_by=lambda one: one.uri)
CARRIED = st.builds(
    PackContents,
    ORIGINS,
    LONG,
    MODES.map(tuple),
    CHECKPOINTS,
    REFERENCES,
    PINS.map(tuple),
    MESSAGES.map(tuple),
    st.none() | LONG,
    GATHERED,
    st.sampled_from(["", f"{DIGEST_LINE}\n\n[STATUS]\n- last turn: answered\n"]),
    st.just((Message("text:1", "x" * 2_001),)) | st.just(()),
    st.just(()),
    DRIFT.map(tuple),
    MISSING.map(tuple),
)
