"""Runs the command `recall`."""

from __future__ import annotations

import argparse

from codex_checkpoints import wire
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    ANY_SESSION,
    DONE,
    JSON,
    Commands,
    ask,
    count,
    positive,
    refresh_for_session,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import search as texts
from codex_checkpoints.operations import digests, pages
from codex_checkpoints.sections.lines import page_lines


def add(commands: Commands) -> None:
    """Add the command."""
    ref = value("--ref", "REF", "an anchor: #12, t3, or the id of a message or a call")
    query = value("--query", "TEXT", "lines that contain this text, the newest first")
    limit = value("--limit", "N", "show at most N lines", type=positive, default=50)
    offset = value("--offset", "N", "where the text of the record begins", type=count, default=0)
    more = (ref, query, limit, offset, JSON)
    commands.add(
        "recall", _recall, ANY_SESSION, *more, check=_wrong_recall, before=refresh_for_session
    )


def _wrong_recall(options: argparse.Namespace) -> str | None:
    return "--ref or --query, one of them" if bool(options.ref) == bool(options.query) else None


def _recall(options: argparse.Namespace, services: Terminal) -> int:
    found = ask(options, services, digests.recall)
    if options.ref:
        page, end = pages.record(services, found.record), found.record.end
        if end < found.record.total and not options.json:
            output.say(f"--offset {end} goes on from there.")
        return report(options, found.record, page_lines(page, screen(options)))
    if options.json:
        output.write_json([wire.unstructure(each) for each in found.items])
    else:
        output.write_lines(texts.hit_lines(found.items, screen(options)))
        if not found.items:
            output.say(texts.nothing_found(options.query))
    return DONE
