"""Markers, restores and their tree, as lines for a terminal.

What comes out of a session is untrusted text, and goes through `plain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codex_checkpoints import protocol
from codex_checkpoints.presentation import plain

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_TINTS = {"added": "\x1b[32m", "removed": "\x1b[31m", "changed": "\x1b[33m"}
_NAMES = ("stepId", "id", "decisionId", "key", "uri")
_TEXTS = ("text", "decision", "value", "hash")


def diff_lines(found: protocol.Difference, *, colour: bool) -> list[str]:
    """Return what changed, a line each."""
    parts: tuple[tuple[str, Iterable[Mapping[str, Any]]], ...] = (
        ("task", () if found.task is None else (found.task,)),
        ("plan", found.plan),
        ("decision", found.decisions),
        ("fact", found.facts),
        ("artifact", found.artifacts),
    )
    lines = [_change(what, each, colour=colour) for what, changes in parts for each in changes]
    if found.plan_reordered:
        lines.append("~ plan: steps changed places")
    return lines or ["Nothing changed."]


def _change(what: str, change: Mapping[str, Any], *, colour: bool) -> str:
    kind = str(change["change"])
    sides = [_words(side) for side in (change["before"], change["after"]) if side is not None]
    line = f"{_SIGNS[kind]} {what}: {' → '.join(sides)}"
    return f"{_TINTS[kind]}{line}\x1b[0m" if colour else line


def _words(record: Mapping[str, Any]) -> str:
    name = next((str(record[key]) for key in _NAMES if record.get(key)), "")
    text = next((str(record[key]) for key in _TEXTS if record.get(key)), "")
    more = [str(record["status"])] if record.get("status") else []
    more += ["done"] if record.get("done") else []
    return plain(" ".join(part for part in (name, text, *more) if part))


def marker_lines(markers: Iterable[protocol.Marker]) -> list[str]:
    """Return a line for each marker."""
    lines: list[str] = []
    for each in markers:
        turn = "detached" if each.detached else f"turn {each.turn_number}"
        lines.append(plain(f"{each.checkpoint_id}  {each.created_at}  {turn}  {each.label}"))
    return lines or ["No markers."]


def pin_lines(pins: protocol.PinList) -> list[str]:
    """Return a line for each pin."""
    lines = [
        plain(each.uri if each.start is None else f"{each.uri}#L{each.start}-L{each.end}")
        for each in pins.items
    ]
    return lines or ["Nothing is pinned."]


def restored_lines(done: protocol.Restored) -> list[str]:
    """Return what happened, what to know, and how to go on; for a preview what would come."""
    lines = [
        plain(f"Would restore “{done.label}” ({done.mode})." if done.dry_run else done.headline),
        plain(done.carried),
        f"Context: {_size(done.tokens_before)} → {_size(done.tokens_after)} tokens",
        *(f"! {plain(each.message)}" for each in done.warnings),
    ]
    if done.deferred:
        lines.append(f"Left out of the pack: {len(done.deferred)}")
    if done.dry_run and done.pack is not None:
        lines += ["", *map(plain, done.pack.splitlines())]
    return [*lines, *([] if done.resume is None else [f"→ {done.resume}"])]


def restore_lines(restores: protocol.RestoreList) -> list[str]:
    """Return a line for each restore."""
    lines = [
        plain(
            f"{each.operation_id}  {each.restored_at}  {each.mode}  "
            f"{_name(each.source_session_id, there=each.source_available)} → "
            f"{_name(each.session_id, there=each.branch_available)}  {each.label}"
        )
        for each in restores.items
    ]
    return lines or ["No restores."]


def detail_lines(details: protocol.RestoreDetails) -> list[str]:
    """Return everything about a restore."""
    references = details.references
    source = _name(details.source_session_id, there=details.source_available)
    return [
        plain(details.headline),
        plain(details.carried),
        f"operation   {plain(details.operation_id)}",
        f"mode        {details.mode}",
        f"restored    {details.restored_at}",
        f"marker      {plain(details.checkpoint_id)}  made {plain(details.marked_at)}",
        f"source      {plain(source)}, turn {plain(details.source_turn.turn_id)}",
        f"branch      {plain(_name(details.session_id, there=details.branch_available))}",
        *(f"above       {plain(str(each.get('sessionId')))}" for each in details.chain),
        f"reason      {plain(details.reason)}",
        f"context     {_size(details.tokens_before)} → {_size(details.tokens_after)} tokens",
        *(f"! {plain(each.message)}" for each in details.warnings),
        *(f"{name:<12}{len(references.get(name) or ())}" for name in ("files", "chunks", "system")),
        f"pinned      {len(details.pinned)}",
        f"included    {len(details.included)}",
        *(f"  {plain(each.id)}" for each in details.included),
        f"deferred    {len(details.deferred)}",
        *(f"  {plain(each.id)} ({each.reason})" for each in details.deferred),
        f"→ {details.resume}",
    ]


def lineage_lines(tree: protocol.Lineage) -> list[str]:
    """Return the tree, a line for each session; the one that was asked about has an arrow."""
    lines: list[str] = []
    for node in tree.nodes:
        kind = "" if node.link is None else f"{node.link.kind} "
        mark = "→ " if node.id == tree.session_id else "  "
        title = (node.title or "(no name)") if node.available else "(not available)"
        lines.append(mark + "  " * node.depth + plain(f"{kind}{node.id}  {title}"))
    lines += [
        f"! a link of {plain(str(each.get('child')))} goes in a circle" for each in tree.circles
    ]
    return [*lines, *([f"… and {tree.omitted} more"] if tree.omitted else [])]


def event_lines(events: protocol.EventList) -> list[str]:
    """Return a line for each event."""
    lines = [
        plain(f"{each.get('at')}  {each.get('operationId')}  {each.get('type')}")
        for each in events.items
    ]
    return lines or ["No events."]


def verify_lines(report: protocol.VerifyReport) -> list[str]:
    """Return what was checked, and what is wrong with it."""
    told = f"checked {report.events} events, {report.records} records, {report.files} files"
    gone = f"; {report.unavailable} files are not there" if report.unavailable else ""
    found = [
        plain(
            f"! {each.code}  {each.operation_id or ''}  {each.session_id or ''}"
            + (f"  line {each.line}" if each.line is not None else "")
        )
        for each in report.findings
    ]
    return [told + gone, *(found or ["All is as it was written."])]


def _name(session_id: str, *, there: bool) -> str:
    return session_id if there else f"{session_id} (not available)"


def _size(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
