"""Markers, restores, packs and the tree of sessions at a terminal, and suggested commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codex_checkpoints.core.restore.summary import counted
from codex_checkpoints.presentation.terminal import (
    AMBER,
    GREEN,
    PLAIN,
    RED,
    columns,
    cut,
    fit,
    folded,
    moment,
    plain,
    room_behind,
)
from codex_checkpoints.values import frozen

if TYPE_CHECKING:
    from codex_checkpoints.operations import histories, marking, portable, restores
    from codex_checkpoints.service.restore.verifying import Fault

_OF_OURS = re.compile(r"`codex-checkpoints ([^`]*)`")


@frozen
class Named:
    """The folders that the command line named, absolute; None for one that it did not name.

    What the environment names counts for the next command as well, and need not be said again.
    """

    codex_home: str | None = None
    state_dir: str | None = None

    def ours(self, command: str) -> str:
        """Return a command of ours with the same folders, each as one word of a shell."""
        from shlex import quote  # noqa: PLC0415 - few answers have commands in them

        options = (("--codex-home", self.codex_home), ("--state-dir", self.state_dir))
        named = "".join(f" {option} {quote(folder)}" for option, folder in options if folder)
        return f"codex-checkpoints {command}{named}"

    def codex(self, command: str) -> str:
        """Return a command of Codex's, which takes its home from the environment alone."""
        from shlex import quote  # noqa: PLC0415 - few answers have commands in them

        home = self.codex_home
        return f"CODEX_HOME={quote(home)} {command}" if home else command

    def within(self, sentence: str) -> str:
        """Return a sentence of ours whose commands, in backticks, have the same folders."""

        def whole(found: re.Match[str]) -> str:
            return found[0] if "--codex-home" in found[1] else f"`{self.ours(found[1])}`"

        return _OF_OURS.sub(whole, sentence)


NOTHING_NAMED = Named()


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_TINTS = {"added": GREEN, "removed": RED, "changed": AMBER}
_NAMES = ("stepId", "id", "decisionId", "key", "uri")
_TEXTS = ("text", "decision", "value", "hash")
_REFERENCES = (("files", "files"), ("chunks", "excerpts"), ("system", "calls"))
_FAULTS = {
    "changed_line": "a line of the audit is not as it was written",
    "missing_lines": "the audit lacks lines of an operation",
    "wrong_order": "the audit has the lines of an operation in another order",
    "changed_record": "a record of a restore or an import is not as it was written",
    "missing_record": "a session lacks the record of how it was made, or what was made of it",
    "changed_branch": "the file of a session that was made does not begin as it was made",
    "changed_source": "what a branch or a compaction was made of is not as it was then",
}
_ARROW = " → "
_TITLE = 20
"""So many columns of a title are worth more than the end of an id."""


def diff_lines(found: histories.Difference, *, width: int | None, colour: bool) -> list[str]:
    """Return what changed, a line each."""
    parts: tuple[tuple[str, Iterable[Mapping[str, Any]]], ...] = (
        ("task", () if found.task is None else (found.task,)),
        ("plan", found.plan),
        ("decision", found.decisions),
        ("fact", found.facts),
        ("artifact", found.artifacts),
    )
    lines = [
        _change(what, each, width=width, colour=colour)
        for what, changes in parts
        for each in changes
    ]
    if found.plan_reordered:
        lines.append("~ plan: steps changed places")
    return lines or ["Nothing changed."]


def _change(what: str, change: Mapping[str, Any], *, width: int | None, colour: bool) -> str:
    kind = str(change["change"])
    sides = [_words(side) for side in (change["before"], change["after"]) if side is not None]
    head = f"{_SIGNS[kind]} {what}: "
    sides = sides if width is None else _side_by_side(sides, room_behind(head, width))
    line = f"{head}{_ARROW.join(sides)}"
    return f"{_TINTS[kind]}{line}{PLAIN}" if colour else line


def _side_by_side(sides: Sequence[str], room: int) -> list[str]:
    """Return sides cut so that they stand in one line; what a short one leaves is for the other."""
    room -= columns(_ARROW) * (len(sides) - 1)
    whole = sum(map(columns, sides))
    rooms = (max(room // len(sides), room - (whole - columns(side))) for side in sides)
    return [fit(side, each).rstrip() for side, each in zip(sides, rooms, strict=True)]


def _words(record: Mapping[str, Any]) -> str:
    name = next((str(record[key]) for key in _NAMES if record.get(key)), "")
    text = next((str(record[key]) for key in _TEXTS if record.get(key)), "")
    more = [str(record["status"])] if record.get("status") else []
    more += ["done"] if record.get("done") else []
    return plain(" ".join(part for part in (name, text, *more) if part))


def marker_lines(markers: Iterable[marking.Marker], *, width: int | None) -> list[str]:
    """Return a line for each marker; where the terminal is narrow its label stands below."""
    lines: list[str] = []
    for each in markers:
        turn = "detached" if each.detached else f"turn {each.turn_number}"
        head = f"{plain(each.checkpoint_id)}  {moment(each.created_at, width)}  {turn}"
        lines += folded(head, plain(each.label), width)
    return lines or ["No markers."]


def pin_lines(pins: marking.PinList) -> list[str]:
    """Return a line for each pin."""
    lines = [
        plain(each.uri if each.start is None else f"{each.uri}#L{each.start}-L{each.end}")
        for each in pins.items
    ]
    return lines or ["Nothing is pinned."]


def restored_lines(done: restores.Restored, named: Named = NOTHING_NAMED) -> list[str]:
    """Return what happened, what to know, and how to go on; for a preview what would come."""
    lines = [
        plain(f"Would restore “{done.label}” ({done.mode})." if done.dry_run else done.headline),
        plain(done.carried),
        f"Context: {_size(done.tokens_before)} → {_size(done.tokens_after)} tokens",
        *(f"! {plain(each.message)}" for each in done.warnings),
    ]
    if done.dry_run and done.pack is not None:
        lines += ["", *map(plain, done.pack.splitlines())]
    return [*lines, *([] if done.resume is None else [plain(f"→ {named.codex(done.resume)}")])]


def restore_lines(restores: restores.RestoreList, *, width: int | None) -> list[str]:
    """Return a line for each restore; where the terminal is narrow, two."""
    lines: list[str] = []
    for each in restores.items:
        head = plain(f"{each.operation_id}  {moment(each.restored_at, width)}  {each.mode}")
        source = _name(_short(each.source_session_id, width), there=each.source_available)
        branch = _name(_short(each.session_id, width), there=each.branch_available)
        lines += folded(head, plain(f"{source} → {branch}  {each.label}"), width)
    return lines or ["No restores."]


def detail_lines(
    details: restores.RestoreDetails, named: Named = NOTHING_NAMED, *, width: int | None
) -> list[str]:
    """Return everything about a restore; ids, warnings and the command to go on are never cut."""
    references = details.references
    source = _name(details.source_session_id, there=details.source_available)
    lines = [
        *(cut(plain(each), width) for each in (details.headline, details.carried)),
        f"operation   {details.operation_id}",
        f"mode        {details.mode}",
        f"restored    {moment(details.restored_at, width)}",
        f"marker      {details.checkpoint_id}  made {moment(details.marked_at, width)}",
        f"source      {source}, turn {details.source_turn.turn_id}",
        f"branch      {_name(details.session_id, there=details.branch_available)}",
        *(f"above       {each.get('sessionId')}" for each in details.chain),
        cut(plain(f"reason      {details.reason}"), width),
        f"context     {_size(details.tokens_before)} → {_size(details.tokens_after)} tokens",
        *(f"! {each.message}" for each in details.warnings),
        *(f"{word:<12}{len(references.get(name) or ())}" for name, word in _REFERENCES),
        f"pinned      {len(details.pinned)}",
        f"included    {len(details.included)}",
        *(cut(plain(f"  {each.id}"), width) for each in details.included),
        f"deferred    {len(details.deferred)}",
        *(cut(plain(f"  {each.id} ({each.reason})"), width) for each in details.deferred),
        *([f"→ {named.codex(details.resume)}"] if details.branch_available else []),
    ]
    return [*map(plain, lines)]


def lineage_lines(tree: restores.Lineage, *, width: int | None) -> list[str]:
    """Return the tree, a line for each session; the one that was asked about has an arrow."""
    lines: list[str] = []
    for node in tree.nodes:
        kind = "" if node.link is None else f"{node.link.kind} "
        mark = "→ " if node.id == tree.session_id else "  "
        title = (node.title or "(no name)") if node.available else "(not available)"
        head = mark + "  " * node.depth + plain(kind)
        whole = f"{head}{plain(node.id)}  "
        if width is None or columns(whole) + _TITLE < width:
            head = whole
        else:
            head += f"{_short(plain(node.id), width)}  "
        room = None if width is None else room_behind(head, width)
        lines.append(head + (plain(title) if room is None else fit(plain(title), room).rstrip()))
    lines += [
        f"! a link of {plain(str(each.get('child')))} goes in a circle" for each in tree.circles
    ]
    return [*lines, *([f"… and {tree.omitted} more"] if tree.omitted else [])]


def event_lines(events: restores.EventList, *, width: int | None) -> list[str]:
    """Return a line for each event: when, of which operation, what, about which sessions."""
    lines: list[str] = []
    for each in events.items:
        at = each.get("at")
        when = moment(at if isinstance(at, str) else None, width)
        head = f"{when}  {_said(each, 'operationId'):<36}  {_said(each, 'type')}"
        ends = dict.fromkeys(each[key] for key in ("sourceSessionId", "sessionId") if each.get(key))
        about = [" → ".join(_short(str(end), width) for end in ends)] if ends else []
        about += [str(each["code"])] if each.get("code") else []
        lines += folded(head, plain("  ".join(about)), width) if about else [head]
    return lines or ["No events."]


def _said(event: Mapping[str, Any], key: str) -> str:
    return plain(str(event.get(key) or "-"))


def verify_lines(report: restores.VerifyReport) -> list[str]:
    """Return what was checked, and what is wrong with it."""
    told = (
        f"checked {_many(report.events, 'event')}, {_many(report.records, 'record')}, "
        f"{_many(report.files, 'file')}"
    )
    verb = "is" if report.unavailable == 1 else "are"
    missing = f"; {_many(report.unavailable, 'file')} {verb} not there"
    gone = missing if report.unavailable else ""
    found = [line for each in report.findings for line in _fault(each)]
    return [told + gone, *(found or ["All is as it was written."])]


def _fault(fault: Fault) -> list[str]:
    """Return what is wrong, and below it where."""
    places = (
        None if fault.operation_id is None else f"operation {fault.operation_id}",
        None if fault.session_id is None else f"session {fault.session_id}",
        None if fault.line is None else f"line {fault.line} of audit.jsonl",
    )
    where = ", ".join(place for place in places if place is not None)
    return [f"! {fault.code}: {_FAULTS[fault.code]}", f"    {plain(where)}"]


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _short(session_id: str, width: int | None) -> str:
    """Return so much of an id as `sessions` shows, which any command takes; whole in a file."""
    return session_id if width is None else session_id[:13]


def _name(session_id: str, *, there: bool) -> str:
    return session_id if there else f"{session_id} (not available)"


def _size(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def exported_lines(record: portable.Exported) -> list[str]:
    """Return what a person wants to know of a pack."""
    verb = "would write" if record.dry_run else "wrote"
    return [
        plain(f"{verb} {record.file} ({record.bytes:,} bytes)"),
        *_lines(record.counts, record.left_behind),
    ]


def imported_lines(record: portable.Imported, named: Named = NOTHING_NAMED) -> list[str]:
    """Return what a person wants to know of what came in."""
    verb = "would make" if record.dry_run else "made"
    what = "a session" if record.session_id is None else f"session {record.session_id}"
    lines = [
        plain(f"{verb} {what} in {record.cwd}: {record.name}"),
        plain(f"from session {record.source_session_id}"),
        *_lines(record.counts, record.left_behind),
    ]
    if record.resume is None:
        return [*lines, "", *map(plain, record.handoff.splitlines())]
    return [*lines, plain(f"→ {named.codex(record.resume)}")]


def _lines(counts: portable.PackCounts, left: tuple[portable.LeftBehind, ...]) -> list[str]:
    held = (
        (counts.turns, "turn"),
        (counts.notes, "note"),
        (counts.plan_steps, "plan step"),
        (counts.checkpoints, "checkpoint"),
        (counts.file_references, "file reference"),
        (counts.modes, "mode change"),
        (counts.artifacts, "artifact"),
        (counts.markers, "marker"),
        (counts.pins, "pin"),
    )
    holds = ", ".join(("session metadata", *(counted(many, what) for many, what in held)))
    return [holds, *(plain(f"! {each.message}") for each in left)]
