"""The commands about sessions and their memory."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from functools import partial

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    A_TURN,
    ANY_SESSION,
    DONE,
    JSON,
    OF_ANY,
    OF_OURS,
    SESSION,
    Commands,
    Later,
    answer,
    ask,
    asks,
    count,
    flag,
    positive,
    refresh_for_session,
    report,
    screen,
    value,
    whole,
    with_sessions,
    wrong,
)

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from codex_checkpoints.assembly import Places
    from codex_checkpoints.cli.opening import Terminal
    from codex_checkpoints.presentation import sessions as texts
    from codex_checkpoints.service.searching import SearchHit
    from codex_checkpoints.service.summaries import SessionSummary
else:
    texts = Later("presentation.sessions")


def add(commands: Commands) -> None:
    """Add the commands that read sessions."""
    chosen = (
        value("--cwd", "DIR", "only sessions of this folder or below it", type=_folder),
        flag("--archived", "the archived ones instead"),
        value("--search", "TEXT", "in title, task, folder and id"),
        value("--limit", "N", "show at most N", type=positive),
        flag("--read", "read every session whole first, so that nothing is unknown"),
    )
    commands.add("sessions", "list the sessions, newest first", _sessions, *chosen, JSON)
    add = partial(commands.add, before=refresh_for_session)
    at = value("--at", "TURN", f"at the end of this turn: {A_TURN}", dest="turn_id")
    caps = value("--caps", "JSON", 'some caps, as {"maxDecisions": 3}')
    commands.add(
        "search",
        "print the lines of all sessions that hold a text, newest session first",
        _search,
        value("text", "TEXT", "a text of one line; case counts if it has a capital", nargs="+"),
        *chosen[:2],
        value("--limit", "N", "show at most N lines", type=positive),
        value("--kind", "KIND", KINDS_OF_HITS, choices=_KINDS),
        JSON,
    )
    json = flag("--json", "print errors as JSON")
    add("show", "print the checkpoint of a session", _show, ANY_SESSION, at, json)
    about = "print the view of a session, as a model reads it"
    add("view", about, _view, ANY_SESSION, at, caps, json)
    about = "print what was asked, answered, changed and run in a session, in quotes with anchors"
    add("digest", about, _digest, ANY_SESSION, at, TOKENS, JSON)
    about = "print a record of a session, or the lines that contain a text"
    ref = value("--ref", "REF", "an anchor: #12, t3, or the id of a message or a call")
    query = value("--query", "TEXT", "lines that contain this text, the newest first")
    limit = value("--limit", "N", "show at most N lines", type=positive, default=50)
    offset = value("--offset", "N", "where the text of the record begins", type=count, default=0)
    more = (ref, query, limit, offset, JSON)
    add("recall", about, _recall, ANY_SESSION, *more, check=_wrong_recall)


def add_memory(commands: Commands) -> None:
    """Add `apply` and `notes`."""
    commands.add_alone(
        "apply",
        "add a checked fact, decision or plan to a session",
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
        "list the facts and decisions of a session, or revoke one",
        _notes,
        value("words", "SESSION", OF_ANY, nargs="+"),
        value("--kind", None, "which one, where both have this ID", choices=("fact", "decision")),
        value("--limit", "N", "show at most N anchors of each source", type=whole),
        JSON,
        check=_check_notes,
        before=refresh_for_session,
        usage="%(prog)s SESSION [--json]\n"
        "       %(prog)s revoke SESSION ID [--kind fact|decision] [--json]\n"
        "       %(prog)s anchors SESSION [--limit N] [--json]",
    )


def add_changing(commands: Commands) -> None:
    """Add the commands that change a session."""
    add = commands.add
    name = value("name", "NAME", "what to call it; an empty one clears it")
    add("rename", "give a session a name", _rename, SESSION, name, JSON)
    add("archive", "move a session to the archive", _move, SESSION, JSON)
    add("unarchive", "move a session out of the archive", _move, SESSION, JSON)
    about = "remove a session that we made and that nothing refers to"
    force = flag("--force", "also where it has turns of your own")
    add("delete", about, _delete, SESSION, force, flag("--yes", "delete without asking"), JSON)


_KINDS = ("user", "assistant", "command", "output", "file")
KINDS_OF_HITS = (
    f"only hits of this kind: {', '.join(_KINDS)}; with `file` TEXT is a path, and the hits are "
    "the turns that read or changed that file"
)
TOKENS = value("--tokens", "N", "the most that it takes; 4 bytes are a token", type=whole)


def _wrong_recall(options: argparse.Namespace) -> str | None:
    return "--ref or --query, one of them" if bool(options.ref) == bool(options.query) else None


def _digest(options: argparse.Namespace, services: Terminal) -> int:
    record = ask(options, services, "histories.digest")
    if not (record.text or options.json):
        output.say(texts.no_digest(record.budget))
    return report(options, record, record.text.splitlines())


def _recall(options: argparse.Namespace, services: Terminal) -> int:
    found = ask(options, services, "histories.recall")
    if options.ref:
        return report(options, found.record, texts.recalled_lines(found.record))
    if options.json:
        from codex_checkpoints import wire

        output.write_json([wire.unstructure(each) for each in found.items])
    else:
        output.write_lines(texts.hit_lines(found.items, screen(options)))
        if not found.items:
            output.say(texts.nothing_found(options.query))
    return DONE


def _search(options: argparse.Namespace, services: Terminal) -> int:
    import orjson

    from codex_checkpoints import wire

    count, options.text = 0, " ".join(options.text)

    def show(hits: Sequence[SearchHit]) -> None:
        nonlocal count
        if options.json:
            for number, hit in enumerate(hits, count):
                line = orjson.dumps(wire.unstructure(hit))
                output.write((b",\n" if number else b"[\n") + line)
        else:
            output.write_lines(texts.found_lines(hits, screen(options)))
        count += len(hits)

    options.cwd = options.cwd or None
    services.show = show
    answer = ask(options, services, "searching.search")
    if options.json:
        output.write(b"\n]\n" if count else b"[]\n")
    elif not count:
        output.say(texts.nothing_found(options.text))
    if answer.more:
        output.say(texts.more_hits(count))
    return DONE


_rename = asks("sessions.rename", texts.renamed_lines)


def _folder(path: str) -> str:
    """Return an absolute path; one of another system stays as written."""
    from codex_checkpoints.storage.contract import is_windows_path

    return path if not path or is_windows_path(path) else os.path.abspath(path)


def _sessions(options: argparse.Namespace, services: Terminal) -> int:
    options.cwd = options.cwd or None
    record = ask(options, services, "sessions.listed")
    if not (record.items or options.json):
        filtered = bool(options.search or options.cwd or options.archived)
        home, rows = services.where.codex_home, services.sessions.catalogue.current().values()
        archived = sum(row.archived for row in rows)
        output.say(texts.no_sessions(home, filtered=filtered, archived=archived))
    lines = [] if options.json else texts.session_lines(record, screen(options), time.time())
    return report(options, record, lines)


def _show(options: argparse.Namespace, services: Terminal) -> int:
    output.write(ask(options, services, "views.show").text.encode())
    return DONE


def _view(options: argparse.Namespace, services: Terminal) -> int:
    options.caps = None if options.caps is None else _caps(options.caps)
    output.write(ask(options, services, "views.view").text.encode())
    return DONE


def _caps(text: str) -> dict[str, object]:
    import orjson

    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise wrong(f"--caps is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise wrong("--caps must be a JSON object of caps")
    from typing import cast

    return cast("dict[str, object]", value)


def _check_apply(options: argparse.Namespace) -> str | None:
    lacks = options.session_id is None and not options.schema
    return "apply needs a SESSION, or --schema" if lacks else None


def _check_notes(options: argparse.Namespace) -> str | None:
    """Read the words of `notes` into options; return what is wrong with them."""
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
        from codex_checkpoints.core.checkpoint.payloads import schema

        output.write_json(schema())
        return DONE
    return with_sessions(_apply, None, options, where)


def _apply(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.memory import apply_bytes

    payload = _payload(options.file)
    services.look_around()
    record = apply_bytes(services, options.session_id, payload, dry_run=options.dry_run)
    return report(options, record, texts.applied_lines(record, screen(options)))


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


_NOTES = {
    None: ("memory.notes", texts.note_lines),
    "anchors": ("memory.anchors", texts.anchor_lines),
    "revoke": ("memory.revoke_note", texts.revoked_lines),
}


def _notes(options: argparse.Namespace, services: Terminal) -> int:
    return answer(options, services, *_NOTES[options.what])


def _move(options: argparse.Namespace, services: Terminal) -> int:
    record = ask(options, services, f"sessions.{options.command}")
    return report(options, record, [texts.moved_line(options.command, record)])


def _delete(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.sessions import Deleted, DeleteParams, removed

    def agreed(session: SessionSummary) -> bool:
        if options.yes or options.json or not output.is_answered():
            return True
        return output.agreed(texts.asks_to_delete(session))

    gone = removed(services, DeleteParams(options.session_id, options.force), agreed)
    record = Deleted(gone.session_id, deleted=True)
    return report(options, record, [texts.moved_line(options.command, gone)])
