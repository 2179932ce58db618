"""Portable packs as wire records: what went into one, what came of one, what stayed behind."""

from __future__ import annotations

from codex_checkpoints import protocol
from codex_checkpoints.core.portable.arriving import files_of
from codex_checkpoints.core.portable.pack import Pack
from codex_checkpoints.service.portable.importing import Imported
from codex_checkpoints.service.portable.packing import Packed

_SENTENCES = {
    "outside_folder": (
        "1 file outside the session's folder is not named",
        "{n} files outside the session's folder are not named",
    ),
    "older_turns": ("1 older turn is left out", "{n} older turns are left out"),
    "older_notes": (
        "1 older step in the history of notes is left out",
        "{n} older steps in the history of notes are left out",
    ),
    "older_markers": ("1 older marker is left out", "{n} older markers are left out"),
    "missing_files": ("1 file is not in this folder", "{n} files are not in this folder"),
    "changed_files": (
        "1 file is another one in this folder",
        "{n} files are others in this folder",
    ),
    "suspect_facts": (
        "1 fact is SUSPECT here until it is verified",
        "{n} facts are SUSPECT here until they are verified",
    ),
}


def exported(packed: Packed) -> protocol.Exported:
    """Return what was written, or would be."""
    left = packed.left
    counts = {
        "outside_folder": left.outside_folder,
        "older_turns": left.older_turns,
        "older_notes": left.older_notes,
        "older_markers": left.older_markers,
    }
    return protocol.Exported(
        packed.session_id,
        packed.file,
        packed.size,
        packed.digest,
        _counts(packed.pack),
        _left_behind(counts),
        packed.dry_run,
    )


def imported(made: Imported) -> protocol.Imported:
    """Return what came of a pack, or would."""
    arrived = made.arrived
    counts = {
        "missing_files": arrived.missing_files,
        "changed_files": arrived.changed_files,
        "suspect_facts": arrived.suspect_facts,
    }
    return protocol.Imported(
        made.operation_id or None,
        made.session_id or None,
        made.pack.origin.session_id,
        made.name,
        made.cwd,
        made.imported_at or None,
        made.digest,
        _counts(made.pack),
        _left_behind(counts),
        made.handoff,
        made.handoff_tokens,
        made.resume,
        made.dry_run,
    )


def _counts(pack: Pack) -> protocol.PackCounts:
    checkpoint = pack.checkpoint
    return protocol.PackCounts(
        1,
        len(pack.turns),
        len(checkpoint.facts) + len(checkpoint.decisions),
        len(pack.notes),
        len(checkpoint.plan.steps),
        1,
        len(files_of(pack)),
        len(pack.modes),
        len(checkpoint.artifacts),
        len(pack.markers),
        len(pack.pins),
        len(pack.lineage),
    )


def _left_behind(counts: dict[str, int]) -> tuple[protocol.LeftBehind, ...]:
    found = ((reason, count, _SENTENCES[reason]) for reason, count in counts.items() if count)
    return tuple(
        protocol.LeftBehind(reason, count, one if count == 1 else several.format(n=count))
        for reason, count, (one, several) in found
    )
