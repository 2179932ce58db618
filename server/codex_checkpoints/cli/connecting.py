"""`connect`: let Codex call us, or see how things stand."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from attrs import evolve

from codex_checkpoints import assembly, protocol, wire
from codex_checkpoints.answers import connecting as answers
from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import add_json
from codex_checkpoints.cli.commands import DONE, Commands
from codex_checkpoints.presentation import connecting as texts
from codex_checkpoints.service.refusal import Refusal

if TYPE_CHECKING:
    from codex_checkpoints.service.connect.connecting import Connector


def add(commands: Commands) -> None:
    """Add the command of this module."""
    about = "let Codex call us: hooks, and an MCP server"
    connect = commands.add_alone("connect", about, _connect, _wrong)
    connect.add_argument("--dry-run", action="store_true", help="show what would be written")
    connect.add_argument("--remove", action="store_true", help="take out what was put in")
    connect.add_argument("--status", action="store_true", help="say how things stand")
    connect.add_argument("--yes", action="store_true", help="write without asking")
    add_json(connect, "print JSON, and never ask")


def _wrong(options: argparse.Namespace) -> str | None:
    others = options.remove or options.dry_run
    return "--status only looks: leave out what would write" if options.status and others else None


def connector(codex_home: str, state_dir: str) -> Connector:
    """Return what connects a Codex home with this program, as seen from this terminal."""
    from codex_checkpoints import wiring

    home = os.path.expanduser("~")
    here = home
    with contextlib.suppress(OSError):  # the folder may be gone
        here = os.getcwd()
    settings, _ = assembly.settings_of(state_dir)
    return wiring.connector(codex_home, state_dir, dict(os.environ), home, here, settings)


def _connect(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints import wiring

    ours = connector(where.codex_home, where.state_dir)
    wish = protocol.ConnectParams(options.dry_run, options.remove, options.status)
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    asks = asks and not (options.json or options.yes or options.dry_run or options.status)
    if asks:
        shown = answers.connect_report(wiring.asked(ours, evolve(wish, dry_run=True)))
        output.write_lines(texts.change_lines(shown, colour=output.colour()))
        if shown.changes and not _agreed():
            raise Refusal("cancelled", "nothing was written")
    report = answers.connect_report(wiring.asked(ours, wish))
    if options.json:
        output.write_json(wire.unstructure(report))
        return DONE
    if not (options.status or asks):
        output.write_lines(texts.change_lines(report, colour=output.colour()))
    way_out = texts.next_step(report) if options.status else report.way_out
    output.write_lines(texts.connect_lines(report, way_out))
    return DONE


def _agreed() -> bool:
    output.write(b"Write this? [y/N] ")  # Python itself would ask on stderr
    try:
        return input().strip().lower() in {"y", "yes"}
    except EOFError:  # Ctrl+D
        output.write_lines([""])
        return False
