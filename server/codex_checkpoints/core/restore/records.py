"""`restores.jsonl`: one record a restore, with all that its details ever need (AGN-68, AGN-87).

Kept with the branch and with the source, so that either can go.  It names what went over and holds
the state that a hard branch began with; no text of the conversation, of a file or of the pack
(AGN-25): the pack stands in the branch, and here its digest.  Semantics carry a version (AGN-82).
How a record comes to be is told in `recording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.restore.carried import Ancestor, TurnSource
from codex_checkpoints.core.restore.drift import Drift, Fallback, Missing
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.pack import Deferred, Item
from codex_checkpoints.core.restore.references import References
from codex_checkpoints.core.restore.sealing import sealed
from codex_checkpoints.core.restore.trace import ModeChange
from codex_checkpoints.values import frozen

SEMANTICS = 1
"""The version of what a restore means; a record says by which it was made."""

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
"""How a branch comes by its state: with its source's lines, by naming them, or by a checkpoint."""


@frozen
class Caution:
    """One warning of a restore, by its code, and how many things it is about."""

    code: WarningCode
    count: int


@frozen
class PinnedReference:
    """A pin that went over, with its hash at that moment."""

    uri: str
    start: int | None
    end: int | None
    hash: str | None


@frozen
class PackFigures:
    """What there is to say of a pack without its text."""

    digest: str
    tokens: int
    budget: int


@frozen
class TokenFigures:
    """How full the context was at the turn, and how full it is in the branch (AGN-15)."""

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
    """One restore, as it is written down."""

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
    """How much of the branch its digest is of; None in records of earlier versions."""
    source_bytes: int | None = None


def line_of(restore: Restore) -> dict[str, Any]:
    """Return the line of a record, sealed."""
    return sealed(kept.write(restore))


def restore_in(line: object) -> Restore | None:
    """Read a line of `restores.jsonl`, of whatever semantics; None for what is no record."""
    return kept.read_or_none(line, Restore)


def restores_in(lines: Iterable[object]) -> tuple[Restore, ...]:
    """Return the records in a file that only grows; one that stands there twice counts once."""
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
