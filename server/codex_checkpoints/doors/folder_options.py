"""Adds the two options that every command takes: the folders to use (rules, "Files")."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

NAMES = ("--codex-home", "--state-dir")


def folder_options(options: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options to a parser that serves as a parent of others; return it."""
    home, state = NAMES
    options.add_argument(home, metavar="DIR", help="Codex's folder (else $CODEX_HOME)")
    options.add_argument(
        state,
        metavar="DIR",
        help="our own folder (else codex-checkpoints in the Codex home)",
    )
    return options


def after_command(arguments: Sequence[str]) -> Sequence[str]:
    """Move these options, if they come before the command, to the place after it.

    Without a command nothing is left.
    """
    count = 0
    while count < len(arguments) and arguments[count].partition("=")[0] in NAMES:
        count += 1 if "=" in arguments[count] else 2
    command = arguments[count : count + 1]
    return [*command, *arguments[:count], *arguments[count + 1 :]] if command else []


def folders_in(command: str, about: str, arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the folders named to a command that has no other options."""
    name = f"codex-checkpoints {command}"
    folders = folder_options(argparse.ArgumentParser(add_help=False))
    parser = argparse.ArgumentParser(name, description=about, parents=[folders])
    options = parser.parse_args(arguments)
    return options.codex_home, options.state_dir
