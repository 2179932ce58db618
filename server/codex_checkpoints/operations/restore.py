"""Restores markers, and returns restores, the tree of sessions, and the audit log."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from codex_checkpoints.codex import resume
from codex_checkpoints.core.context_text import beside_text
from codex_checkpoints.core.converters import stored
from codex_checkpoints.core.restore import lineage as trees
from codex_checkpoints.core.restore import pack, records
from codex_checkpoints.core.restore.lineage import LineageWindow
from codex_checkpoints.core.restore.pack_items import Deferred as DeferredItem
from codex_checkpoints.core.restore.pack_items import Item as PackItem
from codex_checkpoints.core.restore.pack_items import TurnSource
from codex_checkpoints.core.restore.records import carried_in, caution_text, files_of, headline_of
from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.service.history import lineages
from codex_checkpoints.service.history.lineages import Branches
from codex_checkpoints.service.records.operation_records import CompactionRecords
from codex_checkpoints.service.restore import listing
from codex_checkpoints.service.restore import restore as restoring
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import Restoring


@frozen
class PackLine:
    """One possible line of a pack; `tokens` is the smallest budget of a pack that holds it.

    `part` and `id` belong to its item, null for a heading.
    """

    text: str
    part: str | None
    id: str | None
    tokens: int


@frozen
class RestoreWarning:
    """A warning about a restore: a code, how many things it concerns, a sentence, and the files."""

    code: str
    count: int
    message: str
    files: tuple[str, ...] = ()


@frozen
class RestoreOrigin:
    """A restore without its branch: how it was made, and from where."""

    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    mode: str
    context_reset: bool


@frozen
class RestoreContents(RestoreOrigin):
    """The state that a branch begins with.

    `pack` is the text that a hard branch begins with; `headline` and `carried` are for a
    notification.  `besideText` says what the tokens of a hard branch do not count, null for a soft
    one.
    """

    marked_at: str
    included: tuple[PackItem, ...]
    deferred: tuple[DeferredItem, ...]
    warnings: tuple[RestoreWarning, ...]
    tokens_before: int | None
    tokens_after: int | None
    context_window: int | None
    beside_text: str | None
    pack: str | None
    pack_tokens: int | None
    budget: int | None
    headline: str
    carried: str


@frozen
class Restored(RestoreContents):
    """A restore; a preview (`dryRun`) has no ids, no time and no `resume`.

    `pack` is the text that a hard branch begins with; `headline` and `carried` are for a
    notification.  `lines` of a hard preview are all possible lines in order: the pack of a budget
    has those whose `tokens` do not exceed it.  `notes` are the texts of the notes by their `id`.
    """

    operation_id: str | None
    session_id: str | None
    restored_at: str | None
    lines: tuple[PackLine, ...]
    notes: dict[str, str]
    resume: str | None
    dry_run: bool


@frozen
class RestoreEntry(RestoreOrigin):
    """One restore in a list; the last two fields report whether the session files exist."""

    operation_id: str
    session_id: str
    restored_at: str
    branch_available: bool
    source_available: bool


@frozen
class RestoreDetails(RestoreContents):
    """Everything about a restore, also if its source or its branch is gone.

    `chain` leads to the first session; `state` is the checkpoint that a hard branch began with;
    `pack` is null if the branch is gone or has none.  `sourceUnchanged` says whether the source
    still begins with the bytes that were restored; null if that cannot be read.
    """

    operation_id: str
    session_id: str
    restored_at: str
    reason: str
    semantics: int
    chain: tuple[dict[str, Any], ...]
    modes: tuple[dict[str, Any], ...]
    references: dict[str, Any]
    pinned: tuple[dict[str, Any], ...]
    caps: dict[str, int]
    windows: dict[str, Any]
    drift: tuple[dict[str, Any], ...]
    missing: tuple[dict[str, Any], ...]
    fallbacks: tuple[dict[str, Any], ...]
    state: dict[str, Any] | None
    resume: str
    branch_title: str | None
    branch_available: bool
    source_title: str | None
    source_available: bool
    source_unchanged: bool | None


@frozen
class RestoresParams:
    """A session as source or branch; null lists all restores."""

    session_id: str | None = None


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
class LineageLink:
    """How a session was made from its parent, with the exact cut if it is known.

    `kind` is `restore`, `compaction`, `revert`, `subagent`, `pull`, `fork` or `import`.
    `afterTurn` is the number of the parent's last turn before the cut, 0 for none.
    """

    parent: str
    kind: str
    at: str | None
    after_turn: int | None
    turn_id: str | None
    ordinal_exclusive: int | None
    byte_offset: int | None
    checkpoint_id: str | None
    operation_id: str | None


@frozen
class LineageNode:
    """A session or a segment of one; one that is not `available` is only named by another.

    `undone`: the compaction that made it was undone.
    """

    id: str
    depth: int
    link: LineageLink | None
    title: str | None
    available: bool
    archived: bool
    windows: tuple[LineageWindow, ...]
    updated_at: str | None
    undone: bool


@frozen
class Lineage:
    """The tree of sessions around one, depth first.

    `circles` are links that were left out since they lead in a circle; `omitted` counts nodes
    beyond the bound, which spares the session and its ancestors.
    """

    session_id: str
    root: str
    nodes: tuple[LineageNode, ...]
    circles: tuple[dict[str, Any], ...]
    omitted: int


@frozen
class AuditParams:
    """Events of a session, as source or branch, or of an operation."""

    session_id: str | None = None
    operation_id: str | None = None


@frozen
class EventList:
    """Events of the audit log as they were written, the oldest first."""

    items: tuple[dict[str, Any], ...]
    next_cursor: str | None


def restore_preview(services: Services, params: RestoreParams) -> Restored:
    """Return the expected result of a restore."""
    return _restored(Restoring(services.sessions).preview(params))


def restore(services: Services, params: RestoreParams) -> Restored:
    """Open a branch at a marker."""
    done = Restoring(services.sessions).restore(params)
    services.changed((done.record.session_id, done.record.source_session_id), "rollout")
    return _restored(done)


def _restored(done: restoring.RestoreResult) -> Restored:
    """Return a restore as a record; a preview has no ids."""
    record = done.record
    return Restored(
        **_contents(record, done.pack),
        operation_id=record.operation_id or None,
        session_id=record.session_id or None,
        restored_at=record.restored_at or None,
        lines=tuple(map(_pack_line, done.lines)),
        notes=dict(done.notes),
        resume=done.resume,
        dry_run=done.dry_run,
    )


def _origin(record: records.Restore) -> dict[str, Any]:
    """Return the fields of a `RestoreOrigin`."""
    return {
        "source_session_id": record.source_session_id,
        "checkpoint_id": record.checkpoint_id,
        "source_turn": record.source_turn,
        "label": record.label,
        "mode": record.mode,
        "context_reset": record.context_reset,
    }


def _contents(record: records.Restore, pack: str | None) -> dict[str, Any]:
    """Return the fields of a `RestoreContents`."""
    warnings = tuple(
        RestoreWarning(each.code, each.count, caution_text(each, record), files_of(each, record))
        for each in record.warnings
    )
    return {
        **_origin(record),
        "marked_at": record.marked_at,
        "included": record.included,
        "deferred": record.deferred,
        "warnings": warnings,
        "tokens_before": record.tokens.before,
        "tokens_after": record.tokens.after,
        "context_window": record.tokens.window,
        "beside_text": beside_text(None) if record.context_reset else None,
        "pack": pack,
        "pack_tokens": None if record.pack is None else record.pack.tokens,
        "budget": None if record.pack is None else record.pack.budget,
        "headline": headline_of(record),
        "carried": carried_in(record),
    }


def _pack_line(line: pack.PackLine) -> PackLine:
    item = line.item
    part, name = (None, None) if item is None else (item.part, item.id)
    return PackLine(text=line.text, tokens=line.tokens, part=part, id=name)


def restores(services: Services, params: RestoresParams) -> RestoreList:
    """Return the restores of a session, or all."""
    found = listing.restores(services.sessions, params.session_id)
    return RestoreList(tuple(map(_entry, found)), None)


def _entry(listed: listing.Listed) -> RestoreEntry:
    record = listed.record
    return RestoreEntry(
        **_origin(record),
        operation_id=record.operation_id,
        session_id=record.session_id,
        restored_at=record.restored_at,
        branch_available=listed.branch_available,
        source_available=listed.source_available,
    )


def restore_details(services: Services, params: RestoreDetailsParams) -> RestoreDetails:
    """Return everything about a restore."""
    listed = listing.details(services.sessions, params.operation_id)
    record = listed.record
    written = stored.unstructure(record)
    return RestoreDetails(
        **_contents(record, listed.pack),
        operation_id=record.operation_id,
        session_id=record.session_id,
        restored_at=record.restored_at,
        reason=record.reason,
        semantics=record.semantics,
        chain=tuple(written["chain"]),
        modes=tuple(written["modes"]),
        references=written["references"],
        pinned=tuple(written["pinned"]),
        caps=dict(record.caps),
        windows=written["windows"],
        drift=tuple(written["drift"]),
        missing=tuple(written["missing"]),
        fallbacks=tuple(written["fallbacks"]),
        state=written["seed"],
        resume=resume(record.session_id),
        branch_title=listed.branch_title,
        branch_available=listed.branch_available,
        source_title=listed.source_title,
        source_available=listed.source_available,
        source_unchanged=listed.source_unchanged,
    )


def around(services: Services, params: SessionParams) -> Branches:
    """Return the sessions that one was made from, and those made from it."""
    return lineages.around(services.sessions, params.session_id)


def lineage(services: Services, params: SessionParams) -> Lineage:
    """Return the tree of sessions around one."""
    row = services.sessions.find(params.session_id)
    tree = lineages.lineage(services.sessions, params.session_id)
    circles = tuple(stored.unstructure(link) for link in tree.circles)
    nodes = tuple(_node(each, services.sessions.compactions) for each in tree.nodes)
    return Lineage(row.session_id, tree.root, nodes, circles, tree.omitted)


def _node(node: trees.Node, compactions: CompactionRecords) -> LineageNode:
    link = node.link
    undone = link is not None and link.kind == "compaction" and compactions.began_undone(node.id)
    return LineageNode(
        id=node.id,
        depth=node.depth,
        title=node.title,
        available=node.available,
        archived=node.archived,
        windows=node.windows,
        updated_at=node.updated_at,
        link=None if link is None else _edge(link),
        undone=undone,
    )


def _edge(link: trees.Link) -> LineageLink:
    cut = link.cut
    return LineageLink(
        parent=link.parent,
        kind=link.kind,
        at=link.at,
        after_turn=cut.after_turn,
        turn_id=cut.turn_id,
        ordinal_exclusive=cut.ordinal_exclusive,
        byte_offset=cut.byte_offset,
        checkpoint_id=cut.checkpoint_id,
        operation_id=cut.operation_id,
    )


def audit(services: Services, params: AuditParams) -> EventList:
    """Return events of the audit log."""
    found = listing.audit(services.sessions, params.session_id, params.operation_id)
    return EventList(tuple(dict(event) for event in found), None)
