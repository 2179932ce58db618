"""Makes the record of a restore, and the counts of its events, from its contents."""

from __future__ import annotations

from collections.abc import Mapping

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, status_of
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.core.restore.pack import PackContents, StatePack, items_of
from codex_checkpoints.core.restore.records import (
    SEMANTICS,
    Caution,
    PackFigures,
    PinnedReference,
    Restore,
    TokenFigures,
    WarningCode,
    Windows,
)
from codex_checkpoints.core.restore.references import Fallback


def restore_of(  # noqa: PLR0913 - the findings of a service, a field each
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
) -> Restore:
    """Return the record of a restore that is planned: without ids, a time, and its own windows.

    A hard one has a pack and a seed, a soft one neither.
    """
    origin, hard = contents.origin, pack is not None
    checkpoint = contents.checkpoint
    statuses = [status_of(fact, checkpoint.artifacts) for fact in checkpoint.facts.values()]
    weaker = [each.fallback for each in fallbacks]
    # The most severe first.
    counts: tuple[tuple[WarningCode, int], ...] = (
        ("problems_in_source", problems),
        ("detached_marker", int(detached)),
        ("pack_empty", int(pack is not None and not pack.included)),
        ("pack_truncated", 0 if pack is None else pack.count("budget")),
        ("pin_shortened", 0 if pack is None else pack.count("bound", part="pinned")),
        ("pin_unread", 0 if pack is None else pack.count("no_lines", "unreadable")),
        ("missing_files", len(contents.missing)),
        ("drift", len(contents.drift)),
        ("not_compared", len(contents.not_compared)),
        ("suspect_facts", statuses.count("SUSPECT")),
        ("weak_hashes", weaker.count("weak_hash")),
        ("earlier_unknown", weaker.count("earlier_unknown")),
    )
    return Restore(
        checkpoint_id=origin.checkpoint_id,
        source_turn=origin.source_turn,
        chain=origin.chain,
        modes=contents.modes,
        references=contents.references,
        drift=contents.drift,
        missing=contents.missing,
        not_compared=contents.not_compared,
        semantics=SEMANTICS,
        operation_id="",
        session_id="",
        source_session_id=origin.source_turn.session_id,
        label=value(origin.label, MAX_VALUE_CHARS),
        marked_at=origin.created_at,
        mode="hard" if hard else "soft",
        restored_at="",
        context_reset=hard,
        reason=value(contents.reason, MAX_VALUE_CHARS),
        pinned=tuple(
            PinnedReference(uri=each.uri, start=each.start, end=each.end, hash=each.hash)
            for each in contents.pins
        ),
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
        fallbacks=fallbacks,
        placement="seed" if hard else "copy",
        source_bytes=source_bytes,
    )


def figures_of(pack: StatePack) -> PackFigures:
    """Return the figures of a pack; the digest is the hash of its bytes in the branch."""
    return PackFigures(digest_of(pack.text.encode()), pack.tokens, pack.budget)


def transferred(contents: PackContents, markers: int) -> dict[str, int]:
    """Return how many of each category the branch has, as the fields of `StateTransferred`."""
    checkpoint, references = contents.checkpoint, contents.references
    notes = len(checkpoint.plan.steps) + len(checkpoint.decisions) + len(checkpoint.facts)
    return {
        "notes": notes + (checkpoint.task is not None),
        "files": len(references.files),
        "chunks": len(references.chunks),
        "systemArtifacts": len(references.system),
        "pinned": len(contents.pins),
        "markers": markers,
    }
