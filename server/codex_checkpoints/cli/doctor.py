"""`doctor`: what was found, what was skipped, and a way out of each trouble."""

from __future__ import annotations

import argparse

from codex_checkpoints.answers import connecting as answers
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import add_json
from codex_checkpoints.cli.commands import Commands, named, refresh, told
from codex_checkpoints.cli.connecting import connector
from codex_checkpoints.presentation import connecting as texts
from codex_checkpoints.service.diagnosis import diagnose


def add(commands: Commands) -> None:
    """Add the command of this module."""
    add_json(commands.add("doctor", "say what was found, what was skipped and why", _doctor))


def _doctor(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    sessions = house.sessions
    connection = connector(sessions.catalogue.place, sessions.records.state_dir).examine()
    report = answers.doctor_report(diagnose(sessions, house.problems, connection))
    lines = texts.doctor_lines(report, named(options), colour=output.colour())
    return told(options, report, lines)
