"""What a session remembers, at a terminal: its notes, what became of one, what may be cited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints.presentation.terminal import (
    AMBER,
    DIM,
    PLAIN,
    columns,
    cut,
    fit,
    plain,
    room_behind,
)

if TYPE_CHECKING:
    from codex_checkpoints import protocol

_NAMES = 32
_REFS = 40


def applied_lines(applied: protocol.Applied) -> list[str]:
    """Return what came of a payload that was accepted, and what of it is kept in part."""
    name = "" if applied.id is None else f" {applied.id}"
    what = "would be accepted" if applied.dry_run else "accepted"
    lines = [f"{what}: {applied.kind}{name} (seq {applied.seq})"]
    lines += [f"    cut: {place}" for place in applied.shortened]
    return [*map(plain, lines)]


def revoked_lines(revoked: protocol.Revoked) -> list[str]:
    """Return which note was taken back."""
    return [plain(f"revoked: {revoked.kind} {revoked.id} (seq {revoked.seq})")]


def note_lines(notes: protocol.NoteList, *, width: int | None, colour: bool) -> list[str]:
    """Return facts that stand, facts that do not with what failed them, and decisions."""
    facts = [note for note in notes.items if note.kind == "fact"]
    standing = [note for note in notes.items if note.kind == "decision" and not note.superseded_by]
    replaced = [note for note in notes.items if note.superseded_by is not None]
    groups = (
        ("facts", PLAIN, [note for note in facts if note.status == "VALID"]),
        ("SUSPECT", AMBER, [note for note in facts if note.status != "VALID"]),
        ("decisions", PLAIN, standing),
        ("superseded", DIM, replaced),
    )
    names = max((columns(plain(note.id)) for note in notes.items), default=0)
    lines: list[str] = []
    for title, tint, members in groups:
        if members:
            lines += [""] if lines else []
            lines.append(f"{tint}{title}{PLAIN}" if colour else title)
        for note in members:
            lines += _note(note, min(names, _NAMES), width)
    return lines or ["No facts and no decisions yet."]


def _note(note: protocol.Note, names: int, width: int | None) -> list[str]:
    """Return a note and what there is to know about it, each on a line of its own."""
    said = note.value if note.kind == "fact" else f"{note.decision} — {note.rationale}"
    head = f"  {fit(plain(note.id), names)}  {plain(said or '')}"
    about = [plain(f"from {note.evidence.source} {note.evidence.ref}")]
    if note.why is not None:
        about = [f"because of {plain(note.why)}", *about]
    if note.superseded_by is not None:
        about = [f"replaced by {plain(note.superseded_by)}", *about]
    weak = [plain(each.uri) for each in note.depends_on if (each.hash or "").startswith("stat:")]
    if weak:
        about.append(f"by size and time only: {' '.join(weak)}")
    tail = f"  {' ' * names}  {', '.join(about)}"
    return [cut(head, width), cut(tail, width)]


def anchor_lines(anchors: protocol.AnchorList, *, width: int | None, colour: bool) -> list[str]:
    """Return what evidence may name: source, ref, first words."""
    names = min(max((columns(plain(each.ref)) for each in anchors.items), default=0), _REFS)
    lines: list[str] = []
    for each in anchors.items:
        ref = plain(each.ref)
        # A ref is there to be copied, so it is never cut.
        ref = ref if columns(ref) > names else fit(ref, names)
        head = plain(f"{each.source:<11}  {ref}  ")
        text = "" if each.source == "file" else plain(each.text)
        if width is not None:
            text = fit(text, room_behind(head, width)).rstrip()
        lines.append(f"{head}{DIM}{text}{PLAIN}" if colour else f"{head}{text}".rstrip())
    return lines or ["Nothing to cite yet."]
