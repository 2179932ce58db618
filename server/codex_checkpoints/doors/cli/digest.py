"""Runs the command `digest`."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    ANY_SESSION,
    AT_TURN,
    JSON,
    Commands,
    ask,
    refresh_for_session,
    report,
    value,
    whole,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.operations import digests
from codex_checkpoints.sections.digest import no_digest


def add(commands: Commands) -> None:
    """Add the command."""
    tokens = value("--tokens", "N", "size limit in tokens of 4 bytes", type=whole)
    commands.add("digest", _digest, ANY_SESSION, AT_TURN, tokens, JSON, before=refresh_for_session)


def _digest(options: argparse.Namespace, services: Terminal) -> int:
    record = ask(options, services, digests.digest)
    if not (record.text or options.json):
        output.say(no_digest(record.budget))
    return report(options, record, record.text.splitlines())
