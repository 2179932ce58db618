"""Runs the commands `mcp` and `hook`, which Codex calls."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors import hook
from codex_checkpoints.doors.cli.commands import Commands
from codex_checkpoints.doors.mcp import server
from codex_checkpoints.places import Places


def add(commands: Commands) -> None:
    """Add the commands."""
    commands.add_alone("mcp", _mcp)
    commands.add_alone("hook", _hook)


def _mcp(options: argparse.Namespace, _where: Places) -> int:
    return server.serve(options.codex_home, options.state_dir)


def _hook(options: argparse.Namespace, _where: Places) -> int:
    return hook.serve(options.codex_home, options.state_dir)
