"""The servers `serve`, `mcp` and `hook` for other programs."""

from __future__ import annotations

import argparse

from codex_checkpoints import hook, mcp
from codex_checkpoints.assembly import Places
from codex_checkpoints.cli.commands import (
    DONE,
    Commands,
    bounded,
    value,
)


def add(commands: Commands) -> None:
    """Add the commands."""
    port = bounded(1, "must be a port: 1 to 65535", (1 << 16) - 1)
    tcp = value(
        "--tcp", "PORT", "on a loopback port, to debug; prints the token to send first", type=port
    )
    commands.add_alone("serve", _serve, tcp)
    commands.add_alone("mcp", _mcp)
    commands.add_alone("hook", _hook)


def _serve(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints import server

    server.serve(where, tcp=options.tcp)
    return DONE


def _mcp(options: argparse.Namespace, _where: Places) -> int:

    return mcp.serve(options.codex_home, options.state_dir)


def _hook(options: argparse.Namespace, _where: Places) -> int:

    return hook.serve(options.codex_home, options.state_dir)
