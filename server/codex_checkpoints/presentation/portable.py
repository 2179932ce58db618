"""Portable packs at a terminal: what went into one, what came of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints.core.restore.summary import counted
from codex_checkpoints.presentation.next_commands import NOTHING_NAMED, Named
from codex_checkpoints.presentation.terminal import plain

if TYPE_CHECKING:
    from codex_checkpoints import protocol


def exported_lines(record: protocol.Exported) -> list[str]:
    """Return what a person wants to know of a pack."""
    verb = "would write" if record.dry_run else "wrote"
    return [
        plain(f"{verb} {record.file} ({record.bytes:,} bytes)"),
        *_lines(record.counts, record.left_behind),
    ]


def imported_lines(record: protocol.Imported, named: Named = NOTHING_NAMED) -> list[str]:
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


def _lines(counts: protocol.PackCounts, left: tuple[protocol.LeftBehind, ...]) -> list[str]:
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
