"""`serve`, `mcp`, `hook`: the doors for programs, each loaded only when it is opened."""

from __future__ import annotations

import argparse

from codex_checkpoints.assembly import Places
from codex_checkpoints.cli.arguments import port
from codex_checkpoints.cli.commands import DONE, Commands


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "be the language server of an editor, on stdin and stdout"
    serve = commands.add_alone("serve", about, _serve)
    serve.add_argument("--tcp", metavar="PORT", type=port, help="on a loopback port, to debug")
    commands.add_alone("mcp", "be the MCP server of Codex, on stdin and stdout", _mcp)
    commands.add_alone("hook", "answer one call of a hook of Codex's, on stdin and stdout", _hook)


def _serve(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints import server

    server.serve(where, tcp=options.tcp)
    return DONE


def _mcp(options: argparse.Namespace, _where: Places) -> int:
    from codex_checkpoints import mcp

    return mcp.serve(options.codex_home, options.state_dir)


def _hook(options: argparse.Namespace, _where: Places) -> int:
    from codex_checkpoints import hook

    return hook.serve(options.codex_home, options.state_dir)
