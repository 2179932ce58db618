"""Runs the commands that restore files."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    A_TURN,
    DONE,
    JSON,
    REFUSED,
    SESSION,
    Commands,
    ask,
    flag,
    one_of,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import files as texts
from codex_checkpoints.operations import files
from codex_checkpoints.service.files.restores import RestoredFiles


def add(commands: Commands) -> None:
    """Add the commands."""
    turn = value("--to", "TURN", f"the turn: {A_TURN}", dest="turn_id")
    marker = value("--marker", "CHECKPOINT", "the turn of this marker", dest="checkpoint_id")
    only = "only this file; may be repeated"
    named = value("--file", "PATH", only, dest="files", action="append")
    merged = "also this file, whose other lines somebody changed; may be repeated"
    merge = value("--merge", "PATH", merged, action="append", default=[])
    dry_run = flag("--dry-run", "only show the plan, with the differences")
    where = one_of(turn, marker, required=True)
    commands.add("restore-files", _restore, SESSION, where, named, merge, dry_run, JSON)
    operation = value("operation_id", "OPERATION", "the id that `restore-files` printed")
    commands.add("undo-restore-files", _undo, operation, JSON)


def _restore(options: argparse.Namespace, services: Terminal) -> int:
    if options.dry_run:
        options.texts = not options.json
        plan = ask(options, services, files.restore_files_preview)
        return report(options, plan, texts.plan_lines(plan, screen(options)))
    if not options.json and output.is_answered():
        plan = ask(options, services, files.restore_files_preview)
        output.write_lines(texts.plan_lines(plan, screen(options)))
        count = sum(_is_asked(options, row.path, on=row.on) for row in plan.rows)
        if not count or not output.agreed(texts.asks_to_restore(count)):
            return DONE
    done: RestoredFiles = ask(options, services, files.restore_files)
    report(options, done, texts.done_lines(done, screen(options)))
    left = (
        row
        for row in done.rows
        if _is_asked(options, row.path, on=row.on) and not row.written and row.state != "same"
    )
    return REFUSED if any(left) else DONE


def _is_asked(options: argparse.Namespace, path: str, *, on: bool) -> bool:
    """Return whether a file is to be restored, by its name or as one of all that are on."""
    named = {*(options.files or ()), *options.merge}
    return path in named or (on and options.files is None)


def _undo(options: argparse.Namespace, services: Terminal) -> int:
    done: RestoredFiles = ask(options, services, files.undo_restore_files)
    report(options, done, texts.done_lines(done, screen(options)))
    return DONE if all(row.written for row in done.rows) else REFUSED
