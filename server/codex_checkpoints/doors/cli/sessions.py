"""Runs the commands about the list of sessions."""

from __future__ import annotations

import argparse
import time

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    CHOSEN,
    JSON,
    SESSION,
    Commands,
    answer,
    ask,
    flag,
    positive,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import sessions as texts
from codex_checkpoints.operations import sessions


def add(commands: Commands) -> None:
    """Add the commands."""
    commands.add(
        "sessions",
        _sessions,
        *CHOSEN,
        value("--search", "TEXT", "in title, task, folder and id"),
        value("--limit", "N", "show at most N", type=positive),
        flag("--remote", "the sessions in the remote instead"),
        value("--user", "NAME", "with --remote: only those of this person"),
        flag("--read", "read every session whole first, so that nothing is unknown"),
        JSON,
        check=_only_of_a_remote,
    )
    name = value("name", "NAME", "the new name, quoted if it has spaces; an empty one clears it")
    commands.add("rename", _rename, SESSION, name, JSON)
    commands.add("archive", _move, SESSION, JSON)
    commands.add("unarchive", _move, SESSION, JSON)


def _only_of_a_remote(options: argparse.Namespace) -> str | None:
    return "--user goes with --remote" if options.user and not options.remote else None


def _sessions(options: argparse.Namespace, services: Terminal) -> int:
    options.cwd = options.cwd or None
    if options.remote:
        # A list of the sessions here does without all that a remote needs.
        from codex_checkpoints.doors.pages.remote import remote_session_lines
        from codex_checkpoints.operations.remote import remote_sessions

        return answer(options, services, remote_sessions, remote_session_lines)
    limit = options.limit
    if not options.json:
        options.limit = None  # these lines have an order of their own
    record = ask(options, services, sessions.listed)
    if not (record.items or options.json):
        filtered = bool(options.search or options.cwd or options.archived)
        home, rows = services.where.codex_home, services.sessions.catalogue.current().values()
        archived = sum(row.archived for row in rows)
        output.say(texts.no_sessions(home, filtered=filtered, archived=archived))
    if options.json:
        return report(options, record, ())
    return report(options, record, texts.session_lines(record, screen(options), time.time(), limit))


def _rename(options: argparse.Namespace, services: Terminal) -> int:
    record = ask(options, services, sessions.rename)
    is_paginated = services.sessions.find(record.session_id).history_mode == "paginated"
    if record.named and is_paginated:
        output.say(texts.named_here_alone())
    return report(options, record, texts.renamed_lines(record, screen(options)))


_MOVES = {"archive": sessions.archive, "unarchive": sessions.unarchive}


def _move(options: argparse.Namespace, services: Terminal) -> int:
    record = ask(options, services, _MOVES[options.command])
    return report(options, record, [texts.moved_line(options.command, record)])
