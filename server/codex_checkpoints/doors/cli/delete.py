"""Runs the command `delete`."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import JSON, SESSION, Commands, flag, report
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import sessions as texts
from codex_checkpoints.operations.delete import Deleted, DeleteParams, removed
from codex_checkpoints.service.sessions.summaries import SessionSummary


def add(commands: Commands) -> None:
    """Add the command."""
    force = flag("--force", "delete it even if you continued it with turns of your own")
    yes = flag("--yes", "delete without asking")
    commands.add("delete", _delete, SESSION, force, yes, JSON)


def _delete(options: argparse.Namespace, services: Terminal) -> int:

    def agreed(session: SessionSummary) -> bool:
        if options.yes or options.json or not output.is_answered():
            return True
        return output.agreed(texts.asks_to_delete(session))

    gone = removed(services, DeleteParams(options.session_id, options.force), agreed)
    record = Deleted(gone.session_id, deleted=True)
    return report(options, record, [texts.moved_line(options.command, gone)])
