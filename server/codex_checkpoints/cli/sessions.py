"""The commands about sessions and their memory.

`sessions`, `show`, `view`; `apply` and `notes`; `rename`, `archive`, `unarchive`, `delete`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import cast

import orjson

from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    A_TURN,
    DONE,
    OF_ANY,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_session,
    positive,
    refresh_for_session,
    report,
    whole,
    with_sessions,
    wrong,
)
from codex_checkpoints.operations import sessions as operations
from codex_checkpoints.operations.services import SessionParams, carried_out
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.storage.contract import is_windows_path


def add(commands: Commands) -> None:
    """Add the commands that read sessions."""
    sessions = commands.add("sessions", "list the sessions, newest first", _sessions)
    sessions.add_argument("--cwd", metavar="DIR", help="only sessions of this folder or below it")
    sessions.add_argument("--archived", action="store_true", help="the archived ones instead")
    sessions.add_argument("--search", metavar="TEXT", help="in title, task, folder and id")
    sessions.add_argument("--limit", metavar="N", type=positive, help="at most so many")
    add_json(sessions)

    about = "print the checkpoint of a session"
    show = commands.add("show", about, _show, before=refresh_for_session)
    about = "print the view of a session, as a model reads it"
    view = commands.add("view", about, _view, before=refresh_for_session)
    for added in (show, view):
        add_session(added)
        added.add_argument("--at", metavar="TURN", help=f"at the end of this turn: {A_TURN}")
    add_json(show, "print errors as JSON")
    view.add_argument("--caps", metavar="JSON", help='some caps, as {"maxDecisions": 3}')
    add_json(view, "print errors as JSON")


def add_memory(commands: Commands) -> None:
    """Add `apply` and `notes`."""
    about = "add a checked fact, decision or plan to a session"
    apply = commands.add_alone("apply", about, _apply_or_schema, _check_apply)
    apply.add_argument("session", metavar="SESSION", nargs="?", help=OF_OURS)
    apply.add_argument(
        "file", metavar="FILE", nargs="?", help="the payload as JSON, else from stdin"
    )
    apply.add_argument("--dry-run", action="store_true", help="only check it, and write nothing")
    apply.add_argument("--schema", action="store_true", help="print the JSON Schema of payloads")
    add_json(apply)

    about = "list the facts and decisions of a session, or take one back"
    notes = commands.add("notes", about, _notes, _check_notes, refresh_for_session)
    notes.usage = (
        "%(prog)s SESSION [--json]\n"
        "       %(prog)s revoke SESSION ID [--kind fact|decision] [--json]\n"
        "       %(prog)s anchors SESSION [--limit N] [--json]\n"
        "       %(prog)s record SESSION REF"
    )
    notes.add_argument("words", metavar="SESSION", nargs="+", help=OF_ANY)
    notes.add_argument(
        "--kind", choices=("fact", "decision"), help="which one, where both have this ID"
    )
    notes.add_argument(
        "--limit", metavar="N", type=whole, help="at most so many anchors of each source"
    )
    add_json(notes)


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
    cwd = options.cwd or None
    if cwd is not None and not is_windows_path(cwd):  # one of another system stays as written
        cwd = os.path.abspath(cwd)
    params = operations.SessionsParams(
        cwd=cwd, archived=options.archived, search=options.search, limit=options.limit
    )
    record = operations.listed(services, params)
    if not (record.items or options.json):
        is_filtered = options.search or options.cwd or options.archived
        none = texts.no_sessions(services.where.codex_home)
        output.say(texts.NO_SESSION_FITS if is_filtered else none)
    lines = texts.session_lines(record, time.time(), width=output.width(), colour=output.colour())
    return report(options, record, lines)


def _show(options: argparse.Namespace, services: Terminal) -> int:
    params = operations.ShowParams(options.session, options.at)
    output.write(operations.show(services, params).text.encode())
    return DONE


def _view(options: argparse.Namespace, services: Terminal) -> int:
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


# --- the memory ----------------------------------------------------------------------------------


def _check_apply(options: argparse.Namespace) -> str | None:
    lacks = options.session is None and not options.schema
    return "apply needs a SESSION, or --schema" if lacks else None


def _check_notes(options: argparse.Namespace) -> str | None:
    """Read the words of `notes` into options; return what is wrong with them."""
    first, *rest = options.words
    options.what = first if first in {"revoke", "anchors", "record"} else None
    names = [first, *rest] if options.what is None else rest
    named = {"revoke": "ID", "record": "REF"}.get(options.what or "")
    wanted = ("SESSION",) if named is None else ("SESSION", named)
    if len(names) != len(wanted):
        return f"notes {options.what or ''}".rstrip() + f" takes {' '.join(wanted)}"
    options.session = names[0]
    options.id = names[-1]
    if options.kind is not None and options.what != "revoke":
        return "--kind goes with notes revoke"
    if options.limit is not None and options.what != "anchors":
        return "--limit goes with notes anchors"
    return None


def _apply_or_schema(options: argparse.Namespace, where: Places) -> int:
    if options.schema:
        from codex_checkpoints.core.checkpoint.payloads import schema

        output.write_json(schema())
        return DONE
    return with_sessions(_apply, None, options, where)


def _apply(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.memory import apply_bytes

    payload = _payload(options.file)
    services.look_around()
    record = apply_bytes(services, options.session, payload, dry_run=options.dry_run)
    return report(options, record, texts.applied_lines(record))


def _payload(file: str | None) -> bytes:
    """Read one payload, at most one byte more than is allowed."""
    from codex_checkpoints.core.checkpoint.claims import MAX_PAYLOAD_BYTES

    if file is not None and file != "-":
        try:
            with open(file, "rb") as source:
                return source.read(MAX_PAYLOAD_BYTES + 1)
        except OSError as error:
            raise wrong(f"{file}: {error.strerror or error}") from error
    if sys.stdin.isatty():
        output.say("waiting for one JSON payload; end it with Ctrl-D on a line of its own")
    return sys.stdin.buffer.read(MAX_PAYLOAD_BYTES + 1)


def _notes(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations import memory

    session, width, colour = options.session, output.width(), output.colour()
    if options.what == "record":
        found = memory.record(services, memory.RecordParams(session, options.id))
        output.write(found.text.encode())
        return DONE
    if options.what == "revoke":
        params = memory.RevokeParams(session, options.id, options.kind)
        revoked = memory.revoke_note(services, params)
        return report(options, revoked, texts.revoked_lines(revoked))
    if options.what == "anchors":
        anchors = memory.anchors(services, memory.AnchorsParams(session, options.limit))
        return report(options, anchors, texts.anchor_lines(anchors, width=width, colour=colour))
    notes = memory.notes(services, SessionParams(session))
    return report(options, notes, texts.note_lines(notes, width=width, colour=colour))


# --- changes -------------------------------------------------------------------------------------


def _rename(options: argparse.Namespace, services: Terminal) -> int:
    record = operations.rename(services, operations.RenameParams(options.session, options.name))
    return report(options, record, [texts.renamed_line(record)])


def _move(options: argparse.Namespace, services: Terminal) -> int:
    move = operations.archive if options.command == "archive" else operations.unarchive
    record = carried_out(move(services, operations.MoveParams(options.session)))
    return report(options, record, [texts.moved_line(options.command, record)])


def _delete(options: argparse.Namespace, services: Terminal) -> int:
    gone = operations.removed(services, SessionParams(options.session))
    record = operations.Deleted(gone.session_id, deleted=True)
    return report(options, record, [texts.moved_line(options.command, gone)])
