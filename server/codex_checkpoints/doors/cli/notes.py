"""Runs the commands `apply` and `notes`."""

from __future__ import annotations

import argparse
import sys

from codex_checkpoints.core.checkpoint.note_rules import MAX_PAYLOAD_BYTES
from codex_checkpoints.core.checkpoint.note_schema import schema
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    DONE,
    JSON,
    OF_ANY,
    OF_OURS,
    Commands,
    answer,
    flag,
    refresh_for_session,
    report,
    screen,
    value,
    whole,
    with_sessions,
    wrong,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import notes as texts
from codex_checkpoints.operations import notes
from codex_checkpoints.places import Places


def add(commands: Commands) -> None:
    """Add `apply` and `notes`."""
    commands.add_alone(
        "apply",
        _apply_or_schema,
        value("session_id", "SESSION", OF_OURS, nargs="?"),
        value("file", "FILE", "the payload as JSON, else from stdin", nargs="?"),
        flag("--dry-run", "only check it, and write nothing"),
        flag("--schema", "print the JSON Schema of payloads"),
        JSON,
        check=_check_apply,
    )
    commands.add(
        "notes",
        _notes,
        value("words", "SESSION", OF_ANY, nargs="+"),
        value(
            "--kind",
            None,
            "the kind, if a fact and a decision have this ID",
            choices=("fact", "decision"),
        ),
        value("--limit", "N", "show at most N anchors of each source", type=whole),
        JSON,
        check=_check_notes,
        before=refresh_for_session,
        usage="%(prog)s SESSION [--json]\n"
        "       %(prog)s revoke SESSION ID [--kind fact|decision] [--json]\n"
        "       %(prog)s anchors SESSION [--limit N] [--json]",
    )


def _check_apply(options: argparse.Namespace) -> str | None:
    lacks = options.session_id is None and not options.schema
    return "apply needs a SESSION, or --schema" if lacks else None


def _check_notes(options: argparse.Namespace) -> str | None:
    """Read the words of `notes` into options; return the problem with them."""
    first, *rest = options.words
    options.what = first if first in {"revoke", "anchors"} else None
    names = [first, *rest] if options.what is None else rest
    wanted = ("SESSION", "ID") if options.what == "revoke" else ("SESSION",)
    if len(names) != len(wanted):
        return f"notes {options.what or ''}".rstrip() + f" takes {' '.join(wanted)}"
    options.session_id = names[0]
    options.id = names[-1]
    if options.kind is not None and options.what != "revoke":
        return "--kind goes with notes revoke"
    if options.limit is not None and options.what != "anchors":
        return "--limit goes with notes anchors"
    return None


def _apply_or_schema(options: argparse.Namespace, where: Places) -> int:
    if options.schema:
        output.write_json(schema())
        return DONE
    return with_sessions(_apply, None, options, where)


def _apply(options: argparse.Namespace, services: Terminal) -> int:

    payload = _payload(options.file)
    services.update_index()
    record = notes.apply_bytes(services, options.session_id, payload, dry_run=options.dry_run)
    return report(options, record, texts.applied_lines(record, screen(options)))


def _payload(file: str | None) -> bytes:
    """Read one payload, at most one byte more than is allowed."""
    if file is not None and file != "-":
        try:
            with open(file, "rb") as source:
                return source.read(MAX_PAYLOAD_BYTES + 1)
        except OSError as error:
            raise wrong(f"{file}: {error.strerror or error}") from error
    if sys.stdin.isatty():
        output.say("waiting for one JSON payload; end it with Ctrl-D on a line of its own")
    return sys.stdin.buffer.read(MAX_PAYLOAD_BYTES + 1)


_NOTES = {
    None: (notes.notes, texts.note_lines),
    "anchors": (notes.anchors, texts.anchor_lines),
    "revoke": (notes.revoke_note, texts.revoked_lines),
}


def _notes(options: argparse.Namespace, services: Terminal) -> int:
    return answer(options, services, *_NOTES[options.what])
