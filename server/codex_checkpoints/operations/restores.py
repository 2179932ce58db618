"""Restores, the tree that they stand in, and what was written down of them."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.codex import resume
from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.restore import lineage as trees
from codex_checkpoints.core.restore import pack, records
from codex_checkpoints.core.restore.lineage import Window as LineageWindow
from codex_checkpoints.core.restore.pack import Deferred as DeferredItem
from codex_checkpoints.core.restore.pack import Item as PackItem
from codex_checkpoints.core.restore.pack import TurnSource
from codex_checkpoints.core.restore.summary import caution_text
from codex_checkpoints.core.restore.summary import summary_of as sentences_of
from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.service import lineages
from codex_checkpoints.service import lineages as branches
from codex_checkpoints.service.lineages import Branch
from codex_checkpoints.service.restore import restoring, verifying
from codex_checkpoints.service.restore.planning import restore_options
from codex_checkpoints.service.restore.restoring import Restoring
from codex_checkpoints.service.restore.verifying import Listed, RestoreHistory
from codex_checkpoints.service.restore.verifying import Verified as VerifyReport
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.values import frozen
from codex_checkpoints.wire import filled


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


@frozen
class LineageLink:
    """How a session came from its parent, with the exact cut as far as it is known.

    `kind` is `restore`, `compaction`, `revert`, `subagent`, `fork` or `import`.
    """

    parent: str
    kind: str
    at: str | None
    turn_id: str | None
    ordinal_exclusive: int | None
    byte_offset: int | None
    checkpoint_id: str | None
    operation_id: str | None


@frozen
class LineageNode:
    """A session, or a segment of one; `link` is null for the first.

    One that is not `available` is known only because another names it.
    """

    id: str
    depth: int
    link: LineageLink | None
    title: str | None
    available: bool
    archived: bool
    windows: tuple[LineageWindow, ...]


@frozen
class Lineage:
    """The tree that a session stands in, depth first.

    `circles` are links of this tree that were left out since they would lead in a circle, each with
    the child that claims it; `omitted` counts nodes beyond the bound, of which the session that was
    asked for and those above it are none.
    """

    session_id: str
    root: str
    nodes: tuple[LineageNode, ...]
    circles: tuple[dict[str, Any], ...]
    omitted: int


@frozen
class Branches:
    """The session that one came from, null for none, and those that came of it, oldest first."""

    session_id: str
    source: Branch | None
    items: tuple[Branch, ...]
    next_cursor: str | None


@frozen
class AuditParams:
    """Which events are wanted: those of a session, as source or branch, or of an operation."""

    session_id: str | None = None
    operation_id: str | None = None


@frozen
class EventList:
    """Events of the audit, the oldest first, as they were written."""

    items: tuple[dict[str, Any], ...]
    next_cursor: str | None


@frozen
class VerifyParams:
    """Nothing but where to report progress."""

    work_done_token: int | str | None = None


# --- one restore ---------------------------------------------------------------------------------


def restore_preview(services: Services, params: RestoreParams) -> Restored:
    """Return what would come of a restore."""
    options = restore_options(params.mode, params.budget, params.window, params.reason)
    return _restored(_restoring(services).preview(params.session_id, params.checkpoint_id, options))


def restore(services: Services, params: RestoreParams) -> Restored:
    """Open a branch at a marker."""
    options = restore_options(params.mode, params.budget, params.window, params.reason)
    done = _restoring(services).restore(params.session_id, params.checkpoint_id, options)
    services.changed((done.record.session_id, done.record.source_session_id), "rollout")
    return _restored(done)


def _restoring(services: Services) -> Restoring:
    return Restoring(services.sessions, stamps.now, stamps.new_id)


def _restored(done: restoring.Restored) -> Restored:
    """Return what came of a restore; a preview has no ids."""
    record = done.record
    told = sentences_of(record)
    return filled(
        Restored,
        record,
        operation_id=record.operation_id or None,
        session_id=record.session_id or None,
        restored_at=record.restored_at or None,
        warnings=_warnings(record),
        tokens_before=record.tokens.before,
        tokens_after=record.tokens.after,
        context_window=record.tokens.window,
        pack=done.pack,
        pack_tokens=None if record.pack is None else record.pack.tokens,
        budget=None if record.pack is None else record.pack.budget,
        lines=tuple(map(_pack_line, done.lines)),
        headline=told.headline,
        carried=told.carried,
        resume=done.resume,
        dry_run=done.dry_run,
    )


def _pack_line(line: pack.PackLine) -> PackLine:
    item = line.item
    part, name = (None, None) if item is None else (item.part, item.id)
    return filled(PackLine, line, part=part, id=name)


def _warnings(record: records.Restore) -> tuple[RestoreWarning, ...]:
    return tuple(
        RestoreWarning(each.code, each.count, caution_text(each)) for each in record.warnings
    )


# --- those of before -----------------------------------------------------------------------------


def restores(services: Services, params: RestoresParams) -> RestoreList:
    """Return the restores of a session, or all."""
    found = RestoreHistory(services.sessions).restores(params.session_id)
    return RestoreList(tuple(map(_entry, found)), None)


def _entry(listed: Listed) -> RestoreEntry:
    return filled(
        RestoreEntry,
        listed.record,
        branch_available=listed.branch.available,
        source_available=listed.source.available,
    )


def restore_details(services: Services, params: RestoreDetailsParams) -> RestoreDetails:
    """Return everything about a restore."""
    listed = RestoreHistory(services.sessions).details(params.operation_id)
    record = listed.record
    written, told = kept.write(record), sentences_of(record)
    return filled(
        RestoreDetails,
        record,
        chain=tuple(written["chain"]),
        modes=tuple(written["modes"]),
        references=written["references"],
        pinned=tuple(written["pinned"]),
        warnings=_warnings(record),
        tokens_before=record.tokens.before,
        tokens_after=record.tokens.after,
        context_window=record.tokens.window,
        caps=dict(record.caps),
        windows=written["windows"],
        drift=tuple(written["drift"]),
        missing=tuple(written["missing"]),
        fallbacks=tuple(written["fallbacks"]),
        state=written["seed"],
        pack=listed.pack,
        pack_tokens=None if record.pack is None else record.pack.tokens,
        budget=None if record.pack is None else record.pack.budget,
        headline=told.headline,
        carried=told.carried,
        resume=resume(record.session_id),
        branch_title=listed.branch.title,
        branch_available=listed.branch.available,
        source_title=listed.source.title,
        source_available=listed.source.available,
    )


# --- the tree ------------------------------------------------------------------------------------


def around(services: Services, params: SessionParams) -> Branches:
    """Return what a session came from and what came of it."""
    found = branches.around(services.sessions, params.session_id)
    return Branches(found.session_id, found.source, found.items, None)


def lineage(services: Services, params: SessionParams) -> Lineage:
    """Return the tree that a session stands in."""
    row = services.sessions.find(params.session_id)
    tree = lineages.lineage(services.sessions, params.session_id)
    circles = tuple(kept.write(link) for link in tree.circles)
    nodes = tuple(map(_node, tree.nodes))
    return Lineage(row.session_id, tree.root, nodes, circles, tree.omitted)


def _node(node: trees.Node) -> LineageNode:
    link = node.link
    cut = (
        None
        if link is None
        else filled(LineageLink, link.cut, parent=link.parent, kind=link.kind, at=link.at)
    )
    return filled(LineageNode, node, link=cut)


# --- what was written down -----------------------------------------------------------------------


def audit(services: Services, params: AuditParams) -> EventList:
    """Return events of the audit, as they were written."""
    found = RestoreHistory(services.sessions).audit(params.session_id, params.operation_id)
    return EventList(tuple(dict(event) for event in found), None)


def verify(services: Services, _params: VerifyParams) -> VerifyReport:
    """Return whether all is as it was written."""
    return verifying.verify(services.sessions)
