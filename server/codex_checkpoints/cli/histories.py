"""`history` and `windows`: what Codex itself would send, and how it came to that."""

from __future__ import annotations

import argparse

from codex_checkpoints import answers, presentation
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import add_json, add_session
from codex_checkpoints.cli.commands import Commands, refresh, told
from codex_checkpoints.service.history import Histories


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    for added in (
        commands.add(
            "history", "print what Codex would send when the session is resumed", _history
        ),
        commands.add("windows", "list the context windows of a session", _windows),
    ):
        add_session(added)
        add_json(added)


def _history(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    record = answers.history(Histories(house.sessions).history(options.session))
    return told(
        options,
        record,
        presentation.history_lines(record, width=output.width(), colour=output.colour()),
    )


def _windows(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    record = answers.window_list(Histories(house.sessions).windows(options.session))
    return told(options, record, presentation.window_lines(record))
