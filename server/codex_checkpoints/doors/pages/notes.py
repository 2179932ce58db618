"""Renders the notes of a session for a terminal."""

from __future__ import annotations

from codex_checkpoints.core.checkpoint.anchors import Note
from codex_checkpoints.core.checkpoint.records import IMPORTED
from codex_checkpoints.operations import notes as memory
from codex_checkpoints.sections.terminal import AMBER, DIM, PLAIN, Screen, columns, fit, plain
from codex_checkpoints.service import notes

_NAMES = 32
_REFS = 40


def applied_lines(applied: notes.Applied, _screen: Screen) -> list[str]:
    """Return the result of an accepted payload: its cut parts, and the evicted notes."""
    name = "" if applied.id is None else f" {applied.id}"
    what = "would be accepted" if applied.dry_run else "accepted"
    lines = [f"{what}: {applied.kind}{name} (seq {applied.seq})"]
    lines += [f"    cut: {place}" for place in applied.shortened]
    lines += [f"    no longer kept: {gone.kind} {gone.id}" for gone in applied.evicted]
    return [*map(plain, lines)]


def revoked_lines(revoked: notes.Revoked, _screen: Screen) -> list[str]:
    """Return the note that was revoked."""
    return [plain(f"revoked: {revoked.kind} {revoked.id} (seq {revoked.seq})")]


def note_lines(notes: memory.NoteList, screen: Screen) -> list[str]:
    """Return valid facts, suspect facts with the failing dependency, and decisions."""
    kept = [note for note in notes.items if not note.evicted]
    facts = [note for note in kept if note.kind == "fact"]
    standing = [note for note in kept if note.kind == "decision" and not note.superseded_by]
    groups = (
        ("facts", PLAIN, [note for note in facts if note.status == "VALID"]),
        ("SUSPECT", AMBER, [note for note in facts if note.status != "VALID"]),
        ("decisions", PLAIN, standing),
        ("superseded", DIM, [note for note in kept if note.superseded_by is not None]),
        ("no longer kept", DIM, [note for note in notes.items if note.evicted]),
    )
    names = max((columns(plain(note.id)) for note in notes.items), default=0)
    lines: list[str] = []
    for title, tint, members in groups:
        if members:
            lines += [""] if lines else []
            lines.append(screen.tinted(tint, title))
        for note in members:
            lines += _note(note, min(names, _NAMES), screen)
    return lines or ["No facts and no decisions yet."]


def _note(note: Note, names: int, screen: Screen) -> list[str]:
    """Return a note and the facts about it, each on a line of its own."""
    text = note.value if note.kind == "fact" else f"{note.decision} — {note.rationale}"
    head = f"  {fit(plain(note.id), names)}  {plain(text or '')}"
    about = [plain(f"from {note.evidence.source} {note.evidence.ref}")]
    if note.why == IMPORTED:
        about = ["imported, and not accepted here yet", *about]
    elif note.why is not None:
        about = [f"because of {plain(note.why)}", *about]
    if note.superseded_by is not None:
        about = [f"replaced by {plain(note.superseded_by)}", *about]
    weak = [plain(each.uri) for each in note.depends_on if (each.hash or "").startswith("stat:")]
    if weak:
        about.append(f"by size and time only: {' '.join(weak)}")
    tail = f"  {' ' * names}  {', '.join(about)}"
    return [screen.cut(head), screen.cut(tail)]


def anchor_lines(anchors: memory.AnchorList, screen: Screen) -> list[str]:
    """Return the possible evidence: source, ref, first words."""
    names = min(max((columns(plain(each.ref)) for each in anchors.items), default=0), _REFS)
    lines: list[str] = []
    for each in anchors.items:
        ref = plain(each.ref)
        # A ref is meant to be copied, so it is never cut.
        ref = ref if columns(ref) > names else fit(ref, names)
        head = plain(f"{each.source:<11}  {ref}  ")
        text = "" if each.source == "file" else plain(each.text)
        lines.append(f"{head}{screen.tinted(DIM, screen.cut_after(head, text))}".rstrip())
    return lines or ["Nothing to cite yet."]
