"""Runs the command `serve`, which alone imports the language server."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors import lsp
from codex_checkpoints.doors.cli.commands import DONE, Commands, bounded, value
from codex_checkpoints.places import Places


def add(commands: Commands) -> None:
    """Add the command."""
    port = bounded(1, "must be a port: 1 to 65535", (1 << 16) - 1)
    tcp = value(
        "--tcp", "PORT", "on a loopback port, to debug; prints the token to send first", type=port
    )
    commands.add_alone("serve", _serve, tcp)


def _serve(options: argparse.Namespace, where: Places) -> int:
    lsp.serve(where, tcp=options.tcp)
    return DONE
