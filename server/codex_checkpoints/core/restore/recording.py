"""Make the record of a restore out of what was carried and what the service did.

Counts, warnings and figures are found here, so that the audit, the record and the notification say
the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.records import status_of
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.restore.carried import Carried
from codex_checkpoints.core.restore.drift import Drift, Fallback, Missing
from codex_checkpoints.core.restore.events import RestoreMode, StateTransferred
from codex_checkpoints.core.restore.pack import StatePack, items_of
from codex_checkpoints.core.restore.records import (
    SEMANTICS,
    Caution,
    PackFigures,
    PinnedReference,
    Placement,
    Restore,
    TokenFigures,
    WarningCode,
    Windows,
)
from codex_checkpoints.core.restore.sealing import digest_of
from codex_checkpoints.values import frozen


@frozen
class Outcome:
    """What the service found out and did around a restore."""

    operation_id: str
    session_id: str
    mode: RestoreMode
    restored_at: str
    tokens: TokenFigures
    caps: Mapping[str, int]
    windows: Windows
    branch_digest: str
    source_digest: str
    drift: tuple[Drift, ...] = ()
    missing: tuple[Missing, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    detached: bool = False
    problems: int = 0
    placement: Placement = "copy"
    source_bytes: int | None = None


def restore_of(carried: Carried, outcome: Outcome, pack: StatePack | None) -> Restore:
    """Return the record of a restore; a hard one has a pack and a seed, a soft one neither."""
    hard = outcome.mode == "hard"
    if hard != (pack is not None):
        message = "a hard restore has a pack, a soft one has none"
        raise ValueError(message)
    origin = carried.origin
    return Restore(
        semantics=SEMANTICS,
        operation_id=outcome.operation_id,
        session_id=outcome.session_id,
        source_session_id=origin.source_turn.session_id,
        checkpoint_id=origin.checkpoint_id,
        source_turn=origin.source_turn,
        label=value(origin.label, MAX_VALUE_CHARS),
        marked_at=origin.created_at,
        mode=outcome.mode,
        restored_at=outcome.restored_at,
        context_reset=hard,
        chain=origin.chain,
        reason=value(carried.reason, MAX_VALUE_CHARS),
        modes=carried.modes,
        references=carried.references,
        pinned=tuple(PinnedReference(p.uri, p.start, p.end, p.hash) for p in carried.pins),
        included=items_of(carried) if pack is None else pack.included,
        deferred=() if pack is None else pack.deferred,
        warnings=cautions_of(carried, outcome, pack),
        tokens=outcome.tokens,
        caps=outcome.caps,
        windows=outcome.windows,
        branch_digest=outcome.branch_digest,
        source_digest=outcome.source_digest,
        pack=None if pack is None else figures_of(pack),
        seed=carried.checkpoint if hard else None,
        drift=outcome.drift,
        missing=outcome.missing,
        fallbacks=outcome.fallbacks,
        placement="seed" if hard else outcome.placement,
        source_bytes=outcome.source_bytes,
    )


def figures_of(pack: StatePack) -> PackFigures:
    """Return the figures of a pack; the digest is that of the bytes in the branch."""
    return PackFigures(digest_of(pack.text.encode()), pack.tokens, pack.budget)


def transferred(carried: Carried, markers: int) -> StateTransferred:
    """Return how many of each category went over, for the audit and the summary."""
    checkpoint = carried.checkpoint
    notes = len(checkpoint.plan.steps) + len(checkpoint.decisions) + len(checkpoint.facts)
    return StateTransferred(
        notes=notes + (checkpoint.task is not None),
        files=len(carried.references.files),
        chunks=len(carried.references.chunks),
        system_artifacts=len(carried.references.system),
        pinned=len(carried.pins),
        markers=markers,
    )


def cautions_of(carried: Carried, outcome: Outcome, pack: StatePack | None) -> tuple[Caution, ...]:
    """Return what a person ought to know of a restore, the gravest first."""
    checkpoint = carried.checkpoint
    statuses = [status_of(fact, checkpoint.artifacts) for fact in checkpoint.facts.values()]
    counts: tuple[tuple[WarningCode, int], ...] = (
        ("problems_in_source", outcome.problems),
        ("rests_on_source", int(outcome.placement == "reference")),
        ("detached_marker", int(outcome.detached)),
        ("pack_empty", int(pack is not None and not pack.included)),
        ("pack_truncated", 0 if pack is None else pack.truncated),
        ("pin_shortened", 0 if pack is None else pack.count("bound")),
        ("pin_unread", 0 if pack is None else pack.count("no_lines", "unreadable")),
        ("missing_files", len(outcome.missing)),
        ("drift", len(outcome.drift)),
        ("suspect_facts", statuses.count("SUSPECT")),
        ("weak_hashes", sum(each.fallback == "weak_hash" for each in outcome.fallbacks)),
        ("earlier_unknown", sum(each.fallback == "earlier_unknown" for each in outcome.fallbacks)),
        ("copied_instead", sum(each.fallback.startswith("copied") for each in outcome.fallbacks)),
    )
    return tuple(Caution(code, count) for code, count in counts if count)
