"""`diff`: what a session learned between two turns."""

from __future__ import annotations

import argparse

from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import A_TURN, OF_OURS, add_json, add_session
from codex_checkpoints.cli.commands import Commands, refresh, told


def add(commands: Commands) -> None:
    """Add the command of this module."""
    diff = commands.add("diff", "say what changed between two turns", _diff)
    add_session(diff, OF_OURS)
    add_json(diff)
    diff.add_argument("--from", dest="from_turn", metavar="TURN", required=True, help=A_TURN)
    diff.add_argument("--to", dest="to_turn", metavar="TURN", required=True, help=A_TURN)


def _diff(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.differences import compare

    refresh(house)
    found = compare(house.sessions, options.session, options.from_turn, options.to_turn)
    record = restore_answers.diff(found)
    return told(options, record, restore_texts.diff_lines(record, colour=output.colour()))
