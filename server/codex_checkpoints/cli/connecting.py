"""`connect`: let Codex call us, or see how things stand; `doctor`: what was found and skipped."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from attrs import evolve

from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import Commands, Terminal, add_json, named, told
from codex_checkpoints.operations.services import carried_out
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.service.refusal import Refusal


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "let Codex call us: hooks, and an MCP server"
    connect = commands.add_alone("connect", about, _connect, _wrong)
    connect.add_argument("--dry-run", action="store_true", help="show what would be written")
    connect.add_argument("--remove", action="store_true", help="take out what was put in")
    connect.add_argument("--status", action="store_true", help="say how things stand")
    connect.add_argument("--yes", action="store_true", help="write without asking")
    add_json(connect, "print JSON, and never ask")
    add_json(commands.add("doctor", "say what was found, what was skipped and why", _doctor))


def _wrong(options: argparse.Namespace) -> str | None:
    others = options.remove or options.dry_run
    return "--status only looks: leave out what would write" if options.status and others else None


def _connect(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints.operations.connecting import ConnectParams, connect

    params = ConnectParams(options.dry_run, options.remove, options.status, _here())
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    asks = asks and not (options.json or options.yes or options.dry_run or options.status)
    if asks:
        shown = connect(where, evolve(params, dry_run=True))
        output.write_lines(texts.change_lines(shown, colour=output.colour()))
        if shown.changes and not _agreed():
            raise Refusal("cancelled", "nothing was written")
    report = connect(where, params)
    lines: list[str] = []
    if not (options.status or asks):
        lines += texts.change_lines(report, colour=output.colour())
    way_out = texts.next_step(report) if options.status else report.way_out
    return told(options, report, [*lines, *texts.connect_lines(report, way_out)])


def _here() -> str | None:
    with contextlib.suppress(OSError):  # the folder may be gone
        return os.getcwd()
    return None


def _agreed() -> bool:
    output.write(b"Write this? [y/N] ")  # Python itself would ask on stderr
    try:
        return input().strip().lower() in {"y", "yes"}
    except EOFError:  # Ctrl+D
        output.write_lines([""])
        return False


def _doctor(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.connecting import DoctorParams, doctor

    services.look_around()
    record = carried_out(doctor(services, DoctorParams(), _here()))
    lines = texts.doctor_lines(record, named(options), colour=output.colour())
    return told(options, record, lines)
