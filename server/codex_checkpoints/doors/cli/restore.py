"""Runs the commands about restores."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors.cli.commands import (
    JSON,
    MARKER,
    OF_OURS,
    SESSION,
    Commands,
    answer,
    asks,
    count,
    flag,
    value,
    whole,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import restore as texts
from codex_checkpoints.operations import pages, restore
from codex_checkpoints.sections.lines import page_lines
from codex_checkpoints.sections.terminal import Screen, plain


def add(commands: Commands) -> None:
    """Add the commands."""
    add = commands.add
    about = "soft continues with context, hard resets the context for performance"
    mode = value("--mode", None, about, choices=("soft", "hard"), required=True)
    about = "how large the state pack of a hard restore may be"
    budget = value("--budget", "TOKENS", about, type=count)
    about = "include your last N messages in a hard restore, 0 to 5 (default 3)"
    window = value("--window", "N", about, type=whole, default=3)
    about = "add a digest of N tokens to a hard restore"
    digest = value("--digest-tokens", "N", about, type=whole, default=0)
    reason = value("--reason", "TEXT", "why, for the state pack and the record")
    dry_run = flag("--dry-run", "only preview the result")
    choices = (mode, budget, window, digest, reason, dry_run)
    add("restore", _restore, SESSION, MARKER, JSON, *choices)
    session = value("session_id", "SESSION", OF_OURS, nargs="?")
    add("restores", _restores, session, JSON)
    operation = value("operation_id", "OPERATION", "its id; `restores` lists them")
    add("restore-details", _details, operation, JSON)
    add("lineage", _lineage, SESSION, JSON)
    about = "of this session, as source or branch"
    session = value("--session", "SESSION", about, dest="session_id")
    about = "of this operation, by its whole id"
    operation = value("--operation", "OPERATION", about, dest="operation_id")
    add("audit", _audit, session, operation, JSON)


_restores = asks(restore.restores, texts.restore_lines)


def _details(options: argparse.Namespace, services: Terminal) -> int:
    def lines(found: restore.RestoreDetails, screen: Screen) -> list[str]:
        page, _ = pages.restore(services, found.operation_id)
        resume = plain(f"→ {screen.codex(found.resume)}")
        return [*page_lines(page, screen), *(["", resume] if found.branch_available else [])]

    return answer(options, services, restore.restore_details, lines)


_lineage = asks(restore.lineage, texts.lineage_lines)


_audit = asks(restore.audit, texts.event_lines)


def _restore(options: argparse.Namespace, services: Terminal) -> int:
    operation = restore.restore_preview if options.dry_run else restore.restore
    return answer(options, services, operation, texts.restored_lines)
