"""`diff`: what a session learned between two turns, or what two sessions differ in."""

from __future__ import annotations

import argparse

from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import A_TURN, OF_OURS, add_json, add_session
from codex_checkpoints.cli.commands import Commands, refresh, told


def add(commands: Commands) -> None:
    """Add the command of this module."""
    diff = commands.add("diff", "say what changed between the ends of two turns", _diff, _wrong)
    add_session(diff, OF_OURS)
    add_json(diff)
    diff.add_argument("--from", dest="from_turn", metavar="TURN", help=f"the first: {A_TURN}")
    diff.add_argument("--to", dest="to_turn", metavar="TURN", help=f"the second: {A_TURN}")
    about = "the session that --to is a turn of; a turn that is not named is as it is now"
    diff.add_argument("--with", dest="other", metavar="SESSION", help=about)


def _wrong(options: argparse.Namespace) -> str | None:
    named = options.from_turn is not None and options.to_turn is not None
    return None if named or options.other is not None else "--from and --to are needed, or --with"


def _diff(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.differences import Place, compare

    refresh(house)
    before = Place(options.session, options.from_turn)
    after = Place(options.other or options.session, options.to_turn)
    found = compare(house.sessions, before, after)
    record = answers.diff(found)
    lines = texts.diff_lines(record, width=output.width(), colour=output.colour())
    return told(options, record, lines)
