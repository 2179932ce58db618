"""`restores.jsonl`: one record a restore, with all that its details need (AGN-68, AGN-87).

Branch and source both keep it, so either can be deleted.  It holds no text of the conversation, of
a file or of the pack (AGN-25), and the version of its semantics (AGN-82).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from codex_checkpoints.core.audit import digest_of, sealed
from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, Checkpoint, status_of
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.restore.events import RestoreMode, StateTransferred
from codex_checkpoints.core.restore.pack import (
    Ancestor,
    Deferred,
    Item,
    PackContents,
    StatePack,
    TurnSource,
    items_of,
)
from codex_checkpoints.core.restore.references import Drift, Fallback, Missing, References
from codex_checkpoints.core.restore.trace import ModeChange
from codex_checkpoints.values import frozen

SEMANTICS = 1
"""The version of the semantics; a record has the one it was made with."""

WarningCode = Literal[
    "pack_truncated",
    "pack_empty",
    "pin_shortened",
    "pin_unread",
    "suspect_facts",
    "drift",
    "missing_files",
    "weak_hashes",
    "detached_marker",
    "problems_in_source",
    "rests_on_source",
    "copied_instead",
    "earlier_unknown",
]

Placement = Literal["copy", "reference", "seed"]
"""How a branch gets its state: lines of its source, references to them, or a checkpoint."""


@frozen
class Caution:
    """One warning of a restore, by its code, and how many things it is about."""

    code: WarningCode
    count: int


@frozen
class PinnedReference:
    """A pin in the branch, with its hash at that moment."""

    uri: str
    start: int | None
    end: int | None
    hash: str | None


@frozen
class PackFigures:
    """The figures of a pack, without its text."""

    digest: str
    tokens: int
    budget: int


@frozen
class TokenFigures:
    """The tokens in use at the turn, and in the branch (AGN-15)."""

    before: int | None
    after: int | None
    window: int | None = None


@frozen
class Windows:
    """The window of the source, and the first and the current one of the branch (WIN-13)."""

    source: str | None
    first: str | None
    current: str | None


@frozen
class Restore:
    """One restore, as it is recorded."""

    semantics: int
    operation_id: str
    session_id: str
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    marked_at: str
    mode: RestoreMode
    restored_at: str
    context_reset: bool
    chain: tuple[Ancestor, ...]
    reason: str
    modes: tuple[ModeChange, ...]
    references: References
    pinned: tuple[PinnedReference, ...]
    included: tuple[Item, ...]
    deferred: tuple[Deferred, ...]
    warnings: tuple[Caution, ...]
    tokens: TokenFigures
    caps: Mapping[str, int]
    windows: Windows
    branch_digest: str
    source_digest: str
    pack: PackFigures | None = None
    seed: Checkpoint | None = None
    drift: tuple[Drift, ...] = ()
    missing: tuple[Missing, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    placement: Placement | None = None
    branch_bytes: int | None = None
    """The bytes of the branch in its digest; None in records of earlier versions."""
    source_bytes: int | None = None


def line_of(restore: Restore) -> dict[str, Any]:
    """Return the line of a record, with its digest."""
    return sealed(kept.write(restore))


def restore_in(line: object) -> Restore | None:
    """Read a line of `restores.jsonl`, of any semantics; None for what is no record."""
    return kept.read_or_none(line, Restore)


def restores_in(lines: Iterable[object]) -> tuple[Restore, ...]:
    """Return the records in a file; one that stands there twice counts once."""
    found: dict[str, Restore] = {}
    for line in lines:
        restore = restore_in(line)
        if restore is not None:
            found.setdefault(restore.operation_id, restore)
    return tuple(found.values())


def seed_of(restores: Iterable[Restore], session_id: str) -> Checkpoint | None:
    """Return the checkpoint that a session began with, None where it was not restored hard."""
    seeds = (each.seed for each in restores if each.session_id == session_id)
    return next((seed for seed in seeds if seed is not None), None)


def restore_of(  # noqa: PLR0913 - what a service found, each a field of its own
    contents: PackContents,
    pack: StatePack | None,
    *,
    tokens: TokenFigures,
    caps: Mapping[str, int],
    source_window: str | None = None,
    source_digest: str,
    source_bytes: int | None = None,
    fallbacks: tuple[Fallback, ...] = (),
    detached: bool = False,
    problems: int = 0,
    by_reference: bool = False,
) -> Restore:
    """Return the record of a restore that is planned: without ids, a time, and its own windows.

    A hard one has a pack and a seed, a soft one neither.
    """
    origin, hard = contents.origin, pack is not None
    soft: Placement = "reference" if by_reference else "copy"
    checkpoint = contents.checkpoint
    statuses = [status_of(fact, checkpoint.artifacts) for fact in checkpoint.facts.values()]
    weaker = [each.fallback for each in fallbacks]
    # The gravest first.
    counts: tuple[tuple[WarningCode, int], ...] = (
        ("problems_in_source", problems),
        ("rests_on_source", int(by_reference)),
        ("detached_marker", int(detached)),
        ("pack_empty", int(pack is not None and not pack.included)),
        ("pack_truncated", 0 if pack is None else pack.count("budget")),
        ("pin_shortened", 0 if pack is None else pack.count("bound", part="pinned")),
        ("pin_unread", 0 if pack is None else pack.count("no_lines", "unreadable")),
        ("missing_files", len(contents.missing)),
        ("drift", len(contents.drift)),
        ("suspect_facts", statuses.count("SUSPECT")),
        ("weak_hashes", weaker.count("weak_hash")),
        ("earlier_unknown", weaker.count("earlier_unknown")),
        ("copied_instead", sum(each.startswith("copied") for each in weaker)),
    )
    return Restore(
        semantics=SEMANTICS,
        operation_id="",
        session_id="",
        source_session_id=origin.source_turn.session_id,
        checkpoint_id=origin.checkpoint_id,
        source_turn=origin.source_turn,
        label=value(origin.label, MAX_VALUE_CHARS),
        marked_at=origin.created_at,
        mode="hard" if hard else "soft",
        restored_at="",
        context_reset=hard,
        chain=origin.chain,
        reason=value(contents.reason, MAX_VALUE_CHARS),
        modes=contents.modes,
        references=contents.references,
        pinned=tuple(PinnedReference(p.uri, p.start, p.end, p.hash) for p in contents.pins),
        included=items_of(contents) if pack is None else pack.included,
        deferred=() if pack is None else pack.deferred,
        warnings=tuple(Caution(code, count) for code, count in counts if count),
        tokens=tokens,
        caps=caps,
        windows=Windows(source_window, None, None),
        branch_digest="",
        source_digest=source_digest,
        pack=None if pack is None else figures_of(pack),
        seed=checkpoint if hard else None,
        drift=contents.drift,
        missing=contents.missing,
        fallbacks=fallbacks,
        placement="seed" if hard else soft,
        source_bytes=source_bytes,
    )


def figures_of(pack: StatePack) -> PackFigures:
    """Return the figures of a pack; the digest is that of its bytes in the branch."""
    return PackFigures(digest_of(pack.text.encode()), pack.tokens, pack.budget)


def transferred(contents: PackContents, markers: int) -> StateTransferred:
    """Return how many of each category the branch has, for the audit and the summary."""
    checkpoint = contents.checkpoint
    notes = len(checkpoint.plan.steps) + len(checkpoint.decisions) + len(checkpoint.facts)
    return StateTransferred(
        notes=notes + (checkpoint.task is not None),
        files=len(contents.references.files),
        chunks=len(contents.references.chunks),
        system_artifacts=len(contents.references.system),
        pinned=len(contents.pins),
        markers=markers,
    )
