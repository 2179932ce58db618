"""Runs the command `search`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import orjson

from codex_checkpoints import wire
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    CHOSEN,
    DONE,
    JSON,
    Commands,
    ask,
    flag,
    positive,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import search as texts
from codex_checkpoints.operations import search
from codex_checkpoints.service.search import KINDS, SessionHits

_KINDS_OF_HITS = (
    f"only hits of this kind: {', '.join(KINDS)}; can be repeated; with `file` TEXT is a path, and "
    "the hits are the turns that read or changed that file"
)


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add(
        "search",
        _search,
        value("text", "TEXT", "a text of one line; case counts if it has a capital", nargs="+"),
        *CHOSEN,
        flag("--remote", "prompts, answers, commands and paths of the sessions in the remote"),
        value("--user", "NAME", "with --remote: only sessions of this person"),
        value("--limit", "N", "show at most N lines", type=positive),
        value("--per-session", "N", "show at most N lines of each session", type=positive),
        value(
            "--kind",
            "KIND",
            _KINDS_OF_HITS,
            dest="kinds",
            action="append",
            default=[],
            choices=KINDS,
        ),
        JSON,
        check=_wrong_choice,
    )


def _wrong_choice(options: argparse.Namespace) -> str | None:
    if options.user and not options.remote:
        return "--user goes with --remote"
    if options.remote and (options.archived or options.per_session):
        return "--archived and --per-session do not go with --remote"
    return None


def _search_remote(options: argparse.Namespace, services: Terminal) -> int:
    # A search of the sessions here does without all that a remote needs.
    from codex_checkpoints.doors.pages.remote import found_lines
    from codex_checkpoints.operations.remote_search import lines_of, search_remote

    found = ask(options, services, search_remote)
    lines = lines_of(found)
    report(
        options, lines, () if options.json else found_lines(found, options.text, screen(options))
    )
    if not (lines.items or options.json):
        output.say(texts.nothing_found(options.text))
    if found.more:
        output.say(texts.more_hits(len(lines.items)))
    return DONE


def _search(options: argparse.Namespace, services: Terminal) -> int:
    options.cwd = options.cwd or None
    if options.remote:
        options.text, options.kinds = " ".join(options.text), tuple(options.kinds)
        return _search_remote(options, services)
    count, options.text, options.kinds = 0, " ".join(options.text), tuple(options.kinds)

    def show(found: Sequence[SessionHits]) -> None:
        nonlocal count
        for each in found:
            if not options.json:
                output.write_lines(texts.found_lines(each, options.text, screen(options)))
                count += len(each.hits)
                continue
            for line in search.lines_of(each):
                output.write((b",\n" if count else b"[\n") + orjson.dumps(wire.unstructure(line)))
                count += 1

    services.show = show
    answer = ask(options, services, search.search_sessions)
    if options.json:
        output.write(b"\n]\n" if count else b"[]\n")
    elif not count:
        output.say(texts.nothing_found(options.text))
    if answer.more:
        output.say(texts.more_hits(count))
    return DONE
