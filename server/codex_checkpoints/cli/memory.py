"""`apply` and `notes`: what is added to the memory of a session, listed and taken back."""

from __future__ import annotations

import argparse
import sys

from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    DONE,
    OF_ANY,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    told,
    whole,
    with_sessions,
    wrong,
)


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "add a checked fact, decision or plan to a session"
    apply = commands.add_alone("apply", about, _apply_or_schema, _check_apply)
    apply.add_argument("session", metavar="SESSION", nargs="?", help=OF_OURS)
    apply.add_argument(
        "file", metavar="FILE", nargs="?", help="the payload as JSON, else from stdin"
    )
    apply.add_argument("--dry-run", action="store_true", help="only judge it, and write nothing")
    apply.add_argument("--schema", action="store_true", help="print the JSON Schema of payloads")
    add_json(apply)

    about = "list the facts and decisions of a session, or take one back"
    notes = commands.add("notes", about, _notes, _check_notes)
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


def _check_apply(options: argparse.Namespace) -> str | None:
    lacks = options.session is None and not options.schema
    return "apply needs a SESSION, or --schema" if lacks else None


def _check_notes(options: argparse.Namespace) -> str | None:
    """Take the words of `notes` apart; say what is wrong with them."""
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
    return with_sessions(_apply, options, where)


def _apply(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.memory import apply_bytes
    from codex_checkpoints.presentation.sessions import applied_lines

    payload = _payload(options.file)
    services.look_around()
    record = apply_bytes(services, options.session, payload, dry_run=options.dry_run)
    return told(options, record, applied_lines(record))


def _payload(file: str | None) -> bytes:
    """Read one payload, and no more than tells that it is too large."""
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
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation import sessions as texts

    session, width, colour = options.session, output.width(), output.colour()
    services.look_around_for(session)
    if options.what == "record":
        found = memory.record(services, memory.RecordParams(session, options.id))
        output.write(found.text.encode())
        return DONE
    if options.what == "revoke":
        params = memory.RevokeParams(session, options.id, options.kind)
        revoked = memory.revoke_note(services, params)
        return told(options, revoked, texts.revoked_lines(revoked))
    if options.what == "anchors":
        anchors = memory.anchors(services, memory.AnchorsParams(session, options.limit))
        return told(options, anchors, texts.anchor_lines(anchors, width=width, colour=colour))
    notes = memory.notes(services, SessionParams(session))
    return told(options, notes, texts.note_lines(notes, width=width, colour=colour))
