"""Runs the commands `connect` and `doctor`."""

from __future__ import annotations

import argparse

from attrs import evolve

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import JSON, Commands, answer, flag, report, screen
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.operations import connect
from codex_checkpoints.places import Places
from codex_checkpoints.sections import connect as connect_pages
from codex_checkpoints.sections.doctor import doctor_page
from codex_checkpoints.sections.lines import page_lines
from codex_checkpoints.sections.terminal import Screen
from codex_checkpoints.service.doctor import Diagnosis, delete_copies
from codex_checkpoints.service.refusal import Refusal


def add(commands: Commands) -> None:
    """Add the commands."""
    flags = (
        flag("--dry-run", "only show the planned changes"),
        flag("--remove", "remove our entries"),
        flag("--status", "only report how they are connected"),
        flag("--yes", "write without asking"),
        flag("--json", "print JSON, and never ask"),
    )
    commands.add_alone("connect", _connect, *flags, check=_wrong)
    about = "first delete the copies of files that restores or Codex replaced"
    commands.add("doctor", _doctor, flag("--delete-copies", about), JSON)


def _wrong(options: argparse.Namespace) -> str | None:
    others = options.remove or options.dry_run
    return "--status only looks: leave out what would write" if options.status and others else None


def _connect(options: argparse.Namespace, where: Places) -> int:

    params = connect.ConnectParams(options.dry_run, options.remove, options.status)
    shown = None
    if not (options.json or options.status):
        shown = connect.connect(where, evolve(params, dry_run=True))
        try:
            page = connect_pages.changes_page(shown, removes=options.remove)
            output.write_lines([*page_lines(page, screen(options)), ""])
        except BrokenPipeError:
            output.discard()
            raise Refusal("cancelled", "nothing was written: it could not be shown") from None
        asks = not (options.yes or options.dry_run) and output.is_answered()
        if shown.changes and asks and not output.agreed("Write this?"):
            raise Refusal("cancelled", "nothing was written")
    done = shown if shown is not None and options.dry_run else connect.connect(where, params)
    way_out = connect_pages.next_step(done) if options.status else done.way_out
    page = connect_pages.connection_page(done, way_out)
    return report(options, done, page_lines(page, screen(options)))


def _doctor(options: argparse.Namespace, services: Terminal) -> int:
    if options.delete_copies:
        delete_copies(services.sessions.records)

    def lines(found: Diagnosis, screen: Screen) -> list[str]:
        return page_lines(doctor_page(found), screen)

    return answer(options, services, connect.doctor, lines)
