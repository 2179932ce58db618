"""`sessions`, `show`, `view`: what there is, and what a session knows."""

from __future__ import annotations

import argparse
import os
import time
from typing import cast

import orjson

from codex_checkpoints.answers import sessions as answers
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import add_json, add_session, add_turn, positive, wrong
from codex_checkpoints.cli.commands import DONE, Commands, refresh, refresh_for, told
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.threads.contract import is_windows_path


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    sessions = commands.add("sessions", "list the sessions, newest first", _sessions)
    sessions.add_argument("--cwd", metavar="DIR", help="only sessions of this folder or below it")
    sessions.add_argument("--archived", action="store_true", help="the archived ones instead")
    sessions.add_argument("--search", metavar="TEXT", help="in title, task, folder and id")
    sessions.add_argument("--limit", metavar="N", type=positive, help="at most so many")
    add_json(sessions)

    show = commands.add("show", "print the checkpoint of a session", _show)
    add_session(show)
    add_turn(show)
    add_json(show, "errors as JSON, too")

    view = commands.add("view", "print the view of a session, as a model reads it", _view)
    add_session(view)
    add_turn(view)
    view.add_argument("--caps", metavar="JSON", help='some caps, as {"maxDecisions": 3}')
    add_json(view, "errors as JSON")


def _sessions(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    page = house.sessions.summaries.page(
        cwd=_folder(options.cwd) if options.cwd else None,
        archived=options.archived,
        search=options.search,
        limit=options.limit,
    )
    record = answers.session_list(page)
    if not (record.items or options.json):
        is_filtered = options.search or options.cwd or options.archived
        none = texts.no_sessions(house.sessions.catalogue.place)
        output.say(texts.NO_SESSION_FITS if is_filtered else none)
    lines = texts.session_lines(record, time.time(), width=output.width(), colour=output.colour())
    return told(options, record, lines)


def _folder(path: str) -> str:
    """Return an absolute folder; one of another system is taken as it is written."""
    return path if is_windows_path(path) else os.path.abspath(path)


def _show(options: argparse.Namespace, house: House) -> int:
    refresh_for(house, options.session)
    output.write(house.sessions.show(options.session, options.at).data)
    return DONE


def _view(options: argparse.Namespace, house: House) -> int:
    refresh_for(house, options.session)
    caps = None if options.caps is None else _caps(options.caps)
    output.write(house.sessions.view(options.session, options.at, caps).text.encode())
    return DONE


def _caps(text: str) -> dict[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise wrong(f"--caps is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise wrong("--caps must be a JSON object of caps")
    return cast("dict[str, object]", value)
