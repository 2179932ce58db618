"""Renders markers, restores, packs and the tree of sessions for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from codex_checkpoints.operations import history, packs, restore
from codex_checkpoints.operations import markers as marking
from codex_checkpoints.sections.lines import page_lines
from codex_checkpoints.sections.packs import import_page
from codex_checkpoints.sections.previews import FILE_NOTES, NOT_AS_THEN
from codex_checkpoints.sections.terminal import (
    AMBER,
    GREEN,
    RED,
    Screen,
    columns,
    fit,
    moment,
    plain,
)

_CHANGES = {"added": ("+", GREEN), "removed": ("-", RED), "changed": ("~", AMBER)}
_KINDS = {"command": "command", "file": "file", "tool_output": "output"}
_NAMES = ("stepId", "id", "decisionId", "key", "uri")
_TEXTS = ("text", "decision", "value", "hash")
_CUT_OFF = "! This turn was cut off: no process has the session open."
_ARROW = " → "
_TITLE = 20
"""Columns of a title that are worth more than the end of an id."""


def diff_lines(found: history.Difference, screen: Screen) -> list[str]:
    """Return the changes, a line each."""
    parts: dict[str, Iterable[Mapping[str, Any]]] = {
        "task": () if found.task is None else (found.task,),
        "plan": found.plan,
        "decision": found.decisions,
        "fact": found.facts,
        "artifact": found.artifacts,
    }
    lines: list[str] = []
    for what, changes in parts.items():
        for each in changes:
            sign, tint = _CHANGES[str(each["change"])]
            kind = (each["after"] or each["before"]).get("kind")
            head = f"{sign} {_KINDS.get(kind, what)}: "
            sides = [_words(side) for side in (each["before"], each["after"]) if side is not None]
            room = screen.room_after(head)
            sides = sides if room is None else _side_by_side(sides, room)
            lines.append(screen.tinted(tint, f"{head}{_ARROW.join(sides)}"))
    if found.plan_reordered:
        lines.append("~ plan: steps changed places")
    return lines or ["Nothing changed."]


def _side_by_side(sides: Sequence[str], room: int) -> list[str]:
    """Return sides cut to fit in one line; room that a short one leaves is for the other."""
    room -= columns(_ARROW) * (len(sides) - 1)
    whole = sum(map(columns, sides))
    rooms = (max(room // len(sides), room - (whole - columns(side))) for side in sides)
    return [fit(side, each).rstrip() for side, each in zip(sides, rooms, strict=True)]


def _words(record: Mapping[str, Any]) -> str:
    name = next((str(record[key]) for key in _NAMES if record.get(key)), "")
    text = next((str(record[key]) for key in _TEXTS if record.get(key)), "")
    status = str(record.get("status") or "")
    return plain(" ".join(filter(None, (name, text, status, record.get("done") and "done"))))


def markers_lines(markers: marking.MarkerList, screen: Screen) -> list[str]:
    """Return the lines of each marker."""
    lines = [line for each in markers.items for line in marker_lines(each, screen)]
    return lines or ["No markers yet; `mark` puts one on a turn."]


def marker_lines(marker: marking.Marker, screen: Screen) -> list[str]:
    """Return one line; if it does not fit, the label comes below."""
    turn = "detached" if marker.detached else f"turn {marker.turn_number}"
    head = f"{plain(marker.checkpoint_id)}  {moment(marker.created_at, screen)}  {turn}"
    lines = screen.folded(head, plain(marker.label))
    return [*lines, _CUT_OFF] if marker.remark is not None else lines


def pin_lines(pins: marking.PinList, _screen: Screen) -> list[str]:
    """Return a line for each pin."""
    return [plain(_pin(each)) for each in pins.items] or ["Nothing is pinned."]


def _pin(pin: marking.Pin) -> str:
    if pin.uri is not None:
        return pin.uri if pin.start is None else f"{pin.uri}#L{pin.start}-L{pin.end}"
    if pin.message is not None:
        return f"message {pin.message}"
    return f"text: {pin.text}" if pin.note is None else f"note {pin.note}"


def restored_lines(done: restore.Restored, screen: Screen) -> list[str]:
    """Return the result, the warnings, and how to resume; for a preview the expected result."""
    would = f"Would restore “{done.label}” ({done.mode}); nothing was written."
    lines = [
        plain(would if done.dry_run else done.headline),
        plain(done.carried),
        _context_line(done),
        *(f"! {plain(each.message)}" for each in done.warnings),
    ]
    if done.dry_run:
        lines += ["", *map(plain, _kept(done) if done.pack is None else done.pack.splitlines())]
    if done.resume is None or done.operation_id is None:
        return lines
    details = screen.ours(f"restore-details {done.operation_id}")
    return [*lines, f"Details: {plain(details)}", plain(f"→ {screen.codex(done.resume)}")]


def _context_line(done: restore.Restored) -> str:
    """Return the tokens in use before and after, and the part missing from the second figure."""
    sizes = f"Context: {_size(done.tokens_before)} → {_size(done.tokens_after)} tokens"
    return sizes if done.beside_text is None else f"{sizes}. {plain(done.beside_text)}"


_NOT_AS_THEY_WERE = ("drift", "missing_files")


def _kept(done: restore.Restored) -> Iterator[str]:
    """Yield the notes and files that a soft branch keeps, and the files that differ now."""
    kept = {each.id for each in done.included}
    notes = (
        f"{name.partition(':')[0]}: {text}" for name, text in done.notes.items() if name in kept
    )
    yield from _listed("Notes:", notes)
    files = dict.fromkeys(
        each.id.removeprefix("reread:") for each in done.included if each.part == "files"
    )
    yield from _listed("Files that it refers to:", files)
    others = (
        f"{file}  {FILE_NOTES[each.code]}"
        for each in done.warnings
        if each.code in _NOT_AS_THEY_WERE
        for file in each.files
    )
    yield from _listed(NOT_AS_THEN, others)
    unknown = (file for each in done.warnings if each.code == "not_compared" for file in each.files)
    yield from _listed("Not known whether they are as they were then:", unknown)


def _listed(heading: str, rows: Iterable[str]) -> list[str]:
    """Return rows below a heading, nothing without rows."""
    found = [f"  {row}" for row in rows]
    return [heading, *found] if found else []


def restore_lines(restores: restore.RestoreList, screen: Screen) -> list[str]:
    """Return a line for each restore, two if one does not fit."""
    lines: list[str] = []
    for each in restores.items:
        head = plain(f"{each.operation_id}  {moment(each.restored_at, screen)}  {each.mode}")
        source = _name(_short(each.source_session_id, screen), there=each.source_available)
        branch = _name(_short(each.session_id, screen), there=each.branch_available)
        lines += screen.folded(head, plain(f"{source} → {branch}  {each.label}"))
    return lines or ["No restores."]


_MADE = {
    "restore": "restored",
    "compaction": "compacted",
    "import": "imported",
    "pull": "pulled",
    "revert": "rolled back",
    "subagent": "subagent",
}


def _made_words(link: restore.LineageLink) -> str:
    """Return how a session was made, and after which turn of its parent it begins."""
    made, turn = _MADE.get(link.kind, "forked"), link.after_turn
    if turn is None:
        return made
    return f"{made} after turn {turn}" if turn else f"{made} before turn 1"


def lineage_lines(tree: restore.Lineage, screen: Screen) -> list[str]:
    """Return the tree, a line for each session; the requested one has an arrow."""
    lines: list[str] = []
    for node in tree.nodes:
        made = "" if node.link is None else f"{_made_words(node.link)}  "
        made += "compaction undone  " if node.undone else ""
        mark = "→ " if node.id == tree.session_id else "  "
        title = (node.title or "(no name)") if node.available else "(not available)"
        head = mark + "  " * node.depth
        whole = f"{head}{plain(node.id)}  "
        if screen.width is None or columns(whole) + _TITLE < screen.width:
            head = whole
        else:
            head += f"{_short(plain(node.id), screen)}  "
        lines.append(head + screen.cut_after(head, plain(made + title)))
    lines += [
        f"! a link of {plain(str(each.get('child')))} goes in a circle" for each in tree.circles
    ]
    return [*lines, f"… and {tree.omitted} more"] if tree.omitted else lines


def event_lines(events: restore.EventList, screen: Screen) -> list[str]:
    """Return a line for each event: time, operation, type, sessions."""
    lines: list[str] = []
    for each in events.items:
        at = each.get("at")
        operation, kind = (plain(str(each.get(key) or "-")) for key in ("operationId", "type"))
        head = f"{moment(at if isinstance(at, str) else None, screen)}  {operation:<36}  {kind}"
        ends = dict.fromkeys(each[key] for key in ("sourceSessionId", "sessionId") if each.get(key))
        about = [" → ".join(_short(str(end), screen) for end in ends)] if ends else []
        about += [str(each["code"])] if each.get("code") else []
        lines += screen.folded(head, plain("  ".join(about))) if about else [head]
    return lines or ["No events."]


def _short(session_id: str, screen: Screen) -> str:
    """Return as much of an id as `sessions` shows, which any command takes; whole in a file."""
    return session_id if screen.width is None else session_id[:13]


def _name(session_id: str, *, there: bool) -> str:
    return session_id if there else f"{session_id} (not available)"


def _size(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def exported_lines(record: packs.Exported, _screen: Screen) -> list[str]:
    """Return the contents of a pack, and its omissions."""
    verb = "would write" if record.dry_run else "wrote"
    return [plain(f"{verb} {record.file} ({record.bytes:,} bytes)"), *_held(record)]


def imported_lines(record: packs.Imported, screen: Screen) -> list[str]:
    """Return the imported contents, and how to resume; before that, the page of the pack."""
    if record.resume is None:
        return page_lines(import_page(packs.arriving(record)), screen)
    return [
        plain(f"made session {record.session_id} in {record.cwd}: {record.name}"),
        plain(f"from session {record.source_session_id}"),
        *_held(record),
        plain(f"→ {screen.codex(record.resume)}"),
    ]


def _held(record: packs.Exported | packs.Imported) -> list[str]:
    notices = (plain(f"! {each.message}") for each in record.left_behind)
    done = packs.contents(record.counts) if record.dry_run else plain(record.headline)
    return [done, *notices]
