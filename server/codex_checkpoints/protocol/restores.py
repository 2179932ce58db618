"""Restores: what is asked, what came of it, and what is known of it later."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.values import frozen


@frozen
class RestoreParams:
    """A marker and how to go on from it.

    `mode` is `soft` or `hard`; `budget` the tokens of a state pack, null for the setting; `window`
    how many of the user's last messages it may hold, 0 to 5; `reason` is said in it.
    """

    session_id: str
    checkpoint_id: str
    mode: str
    budget: int | None = None
    window: int = 0
    reason: str | None = None
    work_done_token: int | str | None = None


@frozen
class TurnSource:
    """A turn, with the session that it is of."""

    session_id: str
    turn_id: str


@frozen
class PackItem:
    """One thing that is carried; `part` is the part of a state pack that it belongs to."""

    part: str
    id: str


@frozen
class DeferredItem:
    """One thing that a pack leaves out.

    `reason` is `budget`, `filtered` (a step that is done, a decision that another supersedes),
    `missing` (a pinned file that is not there), `no_lines` (it has no such lines), `unreadable` or
    `bound` (a pin that is shown in part, or too large to be read).
    """

    part: str
    id: str
    reason: str


@frozen
class PackLine:
    """One line that a pack can have; `tokens` is the smallest budget of a pack that holds it.

    `part` and `id` are those of its item, null for a heading and the empty line before it.
    """

    text: str
    part: str | None
    id: str | None
    tokens: int


@frozen
class RestoreWarning:
    """What a person ought to know of a restore: a code, of how many things, and a sentence."""

    code: str
    count: int
    message: str


@frozen
class Restored:
    """What came of a restore, or would.

    A preview (`dryRun`) has no ids, no time and no `resume`.  `pack` is the text that a hard branch
    begins with, null for a soft one; `headline` and `carried` are for one quiet notification.
    `lines` of a hard preview are those that a pack of any budget could have, in their order: the
    pack of a budget is those whose `tokens` do not exceed it.
    """

    operation_id: str | None
    session_id: str | None
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    marked_at: str
    mode: str
    restored_at: str | None
    context_reset: bool
    included: tuple[PackItem, ...]
    deferred: tuple[DeferredItem, ...]
    warnings: tuple[RestoreWarning, ...]
    tokens_before: int | None
    tokens_after: int | None
    context_window: int | None
    pack: str | None
    pack_tokens: int | None
    budget: int | None
    lines: tuple[PackLine, ...]
    headline: str
    carried: str
    resume: str | None
    dry_run: bool


@frozen
class RestoresParams:
    """A session as source or branch; null is every restore."""

    session_id: str | None = None


@frozen
class RestoreEntry:
    """One restore in a list; the two flags say whether the session files are still there."""

    operation_id: str
    session_id: str
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    mode: str
    restored_at: str
    context_reset: bool
    branch_available: bool
    source_available: bool


@frozen
class RestoreList:
    """Restores, the oldest first."""

    items: tuple[RestoreEntry, ...]
    next_cursor: str | None


@frozen
class RestoreDetailsParams:
    """A restore by its operation."""

    operation_id: str


@frozen
class RestoreDetails:
    """Everything that is known of a restore, also where its source or its branch is gone.

    `chain` leads to the first session; `modes`, `references`, `pinned`, `drift`, `missing` and
    `fallbacks` are as they stand in the record, `state` is the checkpoint that a hard branch began
    with.  `pack` is null where the branch is gone or has none.
    """

    operation_id: str
    session_id: str
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    marked_at: str
    mode: str
    restored_at: str
    context_reset: bool
    reason: str
    semantics: int
    chain: tuple[dict[str, Any], ...]
    modes: tuple[dict[str, Any], ...]
    references: dict[str, Any]
    pinned: tuple[dict[str, Any], ...]
    included: tuple[PackItem, ...]
    deferred: tuple[DeferredItem, ...]
    warnings: tuple[RestoreWarning, ...]
    tokens_before: int | None
    tokens_after: int | None
    context_window: int | None
    caps: dict[str, int]
    windows: dict[str, Any]
    drift: tuple[dict[str, Any], ...]
    missing: tuple[dict[str, Any], ...]
    fallbacks: tuple[dict[str, Any], ...]
    state: dict[str, Any] | None
    pack: str | None
    pack_tokens: int | None
    budget: int | None
    headline: str
    carried: str
    resume: str
    branch_title: str | None
    branch_available: bool
    source_title: str | None
    source_available: bool
