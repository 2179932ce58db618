"""`sessions`, `show`, `view`: what there is, and what a session knows; what it is called.

`rename`, `archive`, `unarchive` and `delete` change the session itself.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import cast

import orjson

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    DONE,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_session,
    add_turn,
    positive,
    told,
    wrong,
)
from codex_checkpoints.operations import sessions as operations
from codex_checkpoints.operations.services import SessionParams, carried_out
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.storage.contract import is_windows_path


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


def add_changing(commands: Commands) -> None:
    """Add the commands that change a session."""
    rename = commands.add("rename", "give a session a name", _rename)
    add_session(rename, OF_OURS)
    rename.add_argument("name", metavar="NAME", help="what to call it; an empty one clears it")
    add_json(rename)
    about = "remove a session that we made and that nothing refers to"
    for added in (
        commands.add("archive", "put a session among the archived ones", _move),
        commands.add("unarchive", "put an archived session back", _move),
        commands.add("delete", about, _delete),
    ):
        add_session(added, OF_OURS)
        add_json(added)


def _sessions(options: argparse.Namespace, services: Terminal) -> int:
    services.look_around()
    params = operations.SessionsParams(
        cwd=_folder(options.cwd) if options.cwd else None,
        archived=options.archived,
        search=options.search,
        limit=options.limit,
    )
    record = operations.listed(services, params)
    if not (record.items or options.json):
        is_filtered = options.search or options.cwd or options.archived
        none = texts.no_sessions(services.where.codex_home)
        output.say(texts.NO_SESSION_FITS if is_filtered else none)
    lines = texts.session_lines(record, time.time(), width=output.width(), colour=output.colour())
    return told(options, record, lines)


def _folder(path: str) -> str:
    """Return an absolute folder; one of another system is taken as it is written."""
    return path if is_windows_path(path) else os.path.abspath(path)


def _show(options: argparse.Namespace, services: Terminal) -> int:
    services.look_around_for(options.session)
    params = operations.ShowParams(options.session, options.at)
    output.write(operations.show(services, params).text.encode())
    return DONE


def _view(options: argparse.Namespace, services: Terminal) -> int:
    services.look_around_for(options.session)
    caps = None if options.caps is None else _caps(options.caps)
    params = operations.ViewParams(options.session, options.at, caps)
    output.write(operations.view(services, params).text.encode())
    return DONE


def _caps(text: str) -> dict[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise wrong(f"--caps is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise wrong("--caps must be a JSON object of caps")
    return cast("dict[str, object]", value)


def _rename(options: argparse.Namespace, services: Terminal) -> int:
    services.look_around()
    params = operations.RenameParams(options.session, options.name)
    record = operations.rename(services, params)
    return told(options, record, [texts.renamed_line(record)])


def _move(options: argparse.Namespace, services: Terminal) -> int:
    services.look_around()
    move = operations.archive if options.command == "archive" else operations.unarchive
    record = carried_out(move(services, operations.MoveParams(options.session)))
    return told(options, record, [texts.moved_line(options.command, record)])


def _delete(options: argparse.Namespace, services: Terminal) -> int:
    services.look_around()
    gone = operations.removed(services, SessionParams(options.session))
    record = operations.Deleted(gone.session_id, deleted=True)
    return told(options, record, [texts.moved_line(options.command, gone)])
