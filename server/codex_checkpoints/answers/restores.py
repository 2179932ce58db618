"""Markers, restores and their tree as wire records, and what differs between two turns."""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints import protocol
from codex_checkpoints.codex import resume
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
from codex_checkpoints.service.restore.history import Listed
from codex_checkpoints.service.restore.restoring import Restored
from codex_checkpoints.service.restore.verifying import Verified
from codex_checkpoints.wire import filled


def diff(compared: Compared) -> protocol.Difference:
    """Return what changed between two turns."""
    found = difference.json_of(compared.found)
    return protocol.Difference(
        session_id=compared.session_id,
        from_turn_id=compared.from_turn,
        to_session_id=compared.to_session,
        to_turn_id=compared.to_turn,
        task=found["task"],
        plan=tuple(found["plan"]),
        plan_reordered=found["planReordered"],
        decisions=tuple(found["decisions"]),
        facts=tuple(found["facts"]),
        artifacts=tuple(found["artifacts"]),
    )


def marker(placed: Placed) -> protocol.Marker:
    """Return a marker as it stands now."""
    return filled(protocol.Marker, placed.marker, turn_number=placed.turn, detached=placed.detached)


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
    return filled(
        protocol.Restored,
        record,
        operation_id=record.operation_id or None,
        session_id=record.session_id or None,
        source_turn=filled(protocol.TurnSource, record.source_turn),
        restored_at=record.restored_at or None,
        included=_included(record),
        deferred=_deferred(record),
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


def _pack_line(line: PackLine) -> protocol.PackLine:
    item = line.item
    part, name = (None, None) if item is None else (item.part, item.id)
    return filled(protocol.PackLine, line, part=part, id=name)


def restore_list(listed: Iterable[Listed]) -> protocol.RestoreList:
    """Return restores as they stand in a list."""
    return protocol.RestoreList(tuple(map(_restore_entry, listed)), None)


def _restore_entry(listed: Listed) -> protocol.RestoreEntry:
    return filled(
        protocol.RestoreEntry,
        listed.record,
        source_turn=filled(protocol.TurnSource, listed.record.source_turn),
        branch_available=listed.branch.available,
        source_available=listed.source.available,
    )


def restore_details(listed: Listed) -> protocol.RestoreDetails:
    """Return everything about a restore."""
    record = listed.record
    written, told = to_json(record), summary_of(record)
    return filled(
        protocol.RestoreDetails,
        record,
        source_turn=filled(protocol.TurnSource, record.source_turn),
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
        resume=resume(record.session_id),
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
        else filled(protocol.LineageLink, link.cut, parent=link.parent, kind=link.kind, at=link.at),
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
    findings = tuple(filled(protocol.VerifyFinding, each) for each in verified.findings)
    return filled(protocol.VerifyReport, verified, findings=findings)
