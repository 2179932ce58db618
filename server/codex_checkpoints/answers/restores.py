"""Markers, restores and their tree as wire records, and what differs between two turns."""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints import protocol
from codex_checkpoints.core.restore import difference
from codex_checkpoints.core.restore.lineage import Node, Tree
from codex_checkpoints.core.restore.markers import Pin
from codex_checkpoints.core.restore.pack import PackLine
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.restore.summary import caution_text, summary_of
from codex_checkpoints.core.restore.written import to_json
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.service.branches import Around
from codex_checkpoints.service.differences import Compared
from codex_checkpoints.service.marking import Placed
from codex_checkpoints.service.restore_history import Listed
from codex_checkpoints.service.restoring import Restored
from codex_checkpoints.service.verifying import Verified
from codex_checkpoints.wire import filled


def diff(compared: Compared) -> protocol.Difference:
    """Return what changed between two turns."""
    found = difference.json_of(compared.found)
    return protocol.Difference(
        compared.session_id,
        compared.from_turn,
        compared.to_session,
        compared.to_turn,
        found["task"],
        tuple(found["plan"]),
        found["planReordered"],
        tuple(found["decisions"]),
        tuple(found["facts"]),
        tuple(found["artifacts"]),
    )


def marker(placed: Placed) -> protocol.Marker:
    """Return a marker as it stands now."""
    made = placed.marker
    return protocol.Marker(
        made.checkpoint_id,
        made.session_id,
        made.turn_id,
        made.label,
        made.created_at,
        made.origin,
        placed.turn,
        placed.detached,
    )


def marker_list(placed: Iterable[Placed]) -> protocol.MarkerList:
    """Return the markers of a session."""
    return protocol.MarkerList(tuple(map(marker, placed)), None)


def pin_list(pins: Iterable[Pin]) -> protocol.PinList:
    """Return the pins of a session."""
    return protocol.PinList(tuple(filled(protocol.Pin, pin) for pin in pins), None)


def restored(done: Restored) -> protocol.Restored:
    """Return what came of a restore; a preview has no ids."""
    record = done.record
    told = summary_of(record)
    return protocol.Restored(
        record.operation_id or None,
        record.session_id or None,
        record.source_session_id,
        record.checkpoint_id,
        filled(protocol.TurnSource, record.source_turn),
        record.label,
        record.marked_at,
        record.mode,
        record.restored_at or None,
        record.context_reset,
        _included(record),
        _deferred(record),
        _warnings(record),
        record.tokens.before,
        record.tokens.after,
        record.tokens.window,
        done.pack,
        None if record.pack is None else record.pack.tokens,
        None if record.pack is None else record.pack.budget,
        tuple(map(_pack_line, done.lines)),
        told.headline,
        told.carried,
        done.resume,
        done.dry_run,
    )


def _pack_line(line: PackLine) -> protocol.PackLine:
    item = line.item
    part, name = (None, None) if item is None else (item.part, item.id)
    return protocol.PackLine(line.text, part, name, line.tokens)


def restore_list(listed: Iterable[Listed]) -> protocol.RestoreList:
    """Return restores as they stand in a list."""
    return protocol.RestoreList(tuple(map(_restore_entry, listed)), None)


def _restore_entry(listed: Listed) -> protocol.RestoreEntry:
    record = listed.record
    return protocol.RestoreEntry(
        record.operation_id,
        record.session_id,
        record.source_session_id,
        record.checkpoint_id,
        filled(protocol.TurnSource, record.source_turn),
        record.label,
        record.mode,
        record.restored_at,
        record.context_reset,
        listed.branch.available,
        listed.source.available,
    )


def restore_details(listed: Listed) -> protocol.RestoreDetails:
    """Return everything about a restore."""
    record = listed.record
    written, told = to_json(record), summary_of(record)
    return protocol.RestoreDetails(
        operation_id=record.operation_id,
        session_id=record.session_id,
        source_session_id=record.source_session_id,
        checkpoint_id=record.checkpoint_id,
        source_turn=filled(protocol.TurnSource, record.source_turn),
        label=record.label,
        marked_at=record.marked_at,
        mode=record.mode,
        restored_at=record.restored_at,
        context_reset=record.context_reset,
        reason=record.reason,
        semantics=record.semantics,
        chain=tuple(written["chain"]),
        modes=tuple(written["modes"]),
        references=written["references"],
        pinned=tuple(written["pinned"]),
        included=_included(record),
        deferred=_deferred(record),
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
        resume=f"codex resume {record.session_id}",
        branch_title=listed.branch.title,
        branch_available=listed.branch.available,
        source_title=listed.source.title,
        source_available=listed.source.available,
    )


def _included(record: Restore) -> tuple[protocol.PackItem, ...]:
    return tuple(filled(protocol.PackItem, each) for each in record.included)


def _deferred(record: Restore) -> tuple[protocol.DeferredItem, ...]:
    return tuple(filled(protocol.DeferredItem, each) for each in record.deferred)


def _warnings(record: Restore) -> tuple[protocol.RestoreWarning, ...]:
    return tuple(
        protocol.RestoreWarning(each.code, each.count, caution_text(each))
        for each in record.warnings
    )


def branches(around: Around) -> protocol.Branches:
    """Return what a session came from and what came of it."""
    source = None if around.source is None else filled(protocol.Branch, around.source)
    items = tuple(filled(protocol.Branch, branch) for branch in around.items)
    return protocol.Branches(around.session_id, source, items, None)


def lineage(tree: Tree, session_id: str) -> protocol.Lineage:
    """Return the tree that a session stands in."""
    circles = tuple(to_json(link) for link in tree.circles)
    nodes = tuple(map(_node, tree.nodes))
    return protocol.Lineage(session_id, tree.root, nodes, circles, tree.omitted)


def _node(node: Node) -> protocol.LineageNode:
    link = node.link
    return protocol.LineageNode(
        node.id,
        node.depth,
        None
        if link is None
        else protocol.LineageLink(
            link.parent,
            link.kind,
            link.at,
            link.cut.turn_id,
            link.cut.ordinal_exclusive,
            link.cut.byte_offset,
            link.cut.checkpoint_id,
            link.cut.operation_id,
        ),
        node.title,
        node.available,
        node.archived,
        tuple(filled(protocol.LineageWindow, each) for each in node.windows),
    )


def event_list(events: Iterable[Json]) -> protocol.EventList:
    """Return events of the audit, as they were written."""
    return protocol.EventList(tuple(dict(event) for event in events), None)


def verify_report(verified: Verified) -> protocol.VerifyReport:
    """Return what was checked, and what is wrong with it."""
    return protocol.VerifyReport(
        verified.events,
        verified.records,
        verified.files,
        verified.unavailable,
        tuple(filled(protocol.VerifyFinding, each) for each in verified.findings),
    )
