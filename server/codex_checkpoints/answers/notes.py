"""What a session remembers and what may be cited, as wire records."""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints import protocol
from codex_checkpoints.core.checkpoint.anchors import Anchor
from codex_checkpoints.core.checkpoint.notes import Note
from codex_checkpoints.wire import filled


def note_list(notes: Iterable[Note]) -> protocol.NoteList:
    """Return the notes of a session."""
    return protocol.NoteList(tuple(map(_note, notes)), None)


def _note(note: Note) -> protocol.Note:
    return filled(
        protocol.Note,
        note,
        evidence=filled(protocol.NoteEvidence, note.evidence),
        depends_on=tuple(filled(protocol.NoteDependency, each) for each in note.depends_on),
    )


def anchor_list(anchors: Iterable[Anchor]) -> protocol.AnchorList:
    """Return what may be cited as evidence."""
    return protocol.AnchorList(tuple(filled(protocol.Anchor, each) for each in anchors), None)
