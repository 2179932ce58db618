"""The door for people and scripts: the command line.

Each command translates its arguments, asks the service and prints.  `--json` prints one JSON
document with the keys of `protocol`; without it the text is for people.  Diagnostics go to stderr.
Exit codes: 0 done, 1 refused, 2 wrong usage, 130 interrupted.  Commands that do not serve import
neither pygls nor asyncio: they would cost more than the answer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, cast

import orjson
from attrs import evolve

from codex_checkpoints import (
    __version__,
    answers,
    assembly,
    presentation,
    protocol,
    stamps,
    wire,
)
from codex_checkpoints.assembly import House, Places
from codex_checkpoints.core.checkpoint.claims import MAX_PAYLOAD_BYTES, schema
from codex_checkpoints.folder_options import folder_options
from codex_checkpoints.service import following
from codex_checkpoints.service.catalogue import Progress
from codex_checkpoints.service.diagnosis import diagnose
from codex_checkpoints.service.following import Changed, Follower
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.listing import Summary
from codex_checkpoints.service.notes import Notes
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.threads.contract import is_windows_path

if TYPE_CHECKING:
    from codex_checkpoints.watch import Watcher

DONE, REFUSED, USAGE, INTERRUPTED = 0, 1, 2, 130

Command = Callable[[argparse.Namespace, House], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    _open_streams()
    parser = _parser()
    options = parser.parse_args(arguments)
    problem = _problem(options)
    if problem is not None:
        parser.error(problem)
    try:
        where = assembly.places(
            os.environ, os.path.expanduser("~"), options.codex_home, options.state_dir
        )
    except ValueError as error:
        parser.error(str(error))
    try:
        return _run(options, where)
    except Refusal as refusal:
        return _refused(refusal, as_json=getattr(options, "json", False))
    except (KeyboardInterrupt, Cancelled):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away, as `| head` does.
        _discard_output()
        return DONE
    except OSError as error:
        # A full disk behind `>`, a port that is taken: nothing that an answer could help.
        _discard_output()
        _say(f"storage_error: {error.strerror or error}")
        return REFUSED


def _open_streams() -> None:
    """Give what was closed by whoever started us (`>&-`) an end where nothing arrives."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(presentation.LogLine("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _discard_output() -> None:
    """Let go of what could not be written; Python would complain once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace, where: Places) -> int:
    if options.command == "mcp":
        from codex_checkpoints import mcp

        return mcp.serve(options.codex_home, options.state_dir)
    if options.command == "hook":
        from codex_checkpoints import hook

        return hook.serve(options.codex_home, options.state_dir)
    if options.command == "serve":
        from codex_checkpoints import server

        server.serve(where, tcp=options.tcp)
        return DONE
    if options.command == "connect":
        return _connect(options, where)
    if options.command == "apply" and options.schema:
        _print_json(schema())
        return DONE
    house = assembly.assemble(where, environment=os.environ)
    for problem in house.problems:
        _say(f"config.toml: {problem}")
    commands: dict[str, Command] = {
        "sessions": _sessions,
        "show": _show,
        "view": _view,
        "apply": _apply,
        "notes": _notes,
        "history": _history,
        "windows": _windows,
        "rename": _rename,
        "archive": _archive,
        "unarchive": _unarchive,
        "delete": _delete,
        "watch": _watch,
        "doctor": _doctor,
    }
    try:
        return commands[options.command](options, house)
    finally:
        house.sessions.close()


# --- commands ------------------------------------------------------------------------------------


def _connect(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints import wiring

    home = os.path.expanduser("~")
    here = home
    with contextlib.suppress(OSError):  # the folder may be gone
        here = os.getcwd()
    connector = wiring.connector(where.codex_home, where.state_dir, dict(os.environ), home, here)
    wish = protocol.ConnectParams(options.dry_run, options.remove, options.status)
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    asks = asks and not (options.json or options.yes or options.dry_run or options.status)
    if asks:
        shown = answers.connect_report(wiring.asked(connector, evolve(wish, dry_run=True)))
        _print(presentation.change_lines(shown, colour=_colour()))
        if shown.changes and input("Write this? [y/N] ").strip().lower() not in {"y", "yes"}:
            raise Refusal("cancelled", "nothing was written")
    report = answers.connect_report(wiring.asked(connector, wish))
    if options.json:
        _print_json(wire.unstructure(report))
        return DONE
    if not (options.status or asks):
        _print(presentation.change_lines(report, colour=_colour()))
    _print(presentation.connect_lines(report))
    return DONE


def _sessions(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    page = house.sessions.page(
        cwd=_folder(options.cwd) if options.cwd else None,
        archived=options.archived,
        search=options.search,
        limit=options.limit,
    )
    if options.json:
        _print_json([wire.unstructure(item) for item in answers.session_list(page).items])
    else:
        now = time.time()
        _print(presentation.session_lines(page, now, width=_width(), colour=_colour()))
        if not page.items:
            _say(presentation.no_sessions(house.sessions.catalogue.place, options))
    return DONE


def _show(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    shown = house.sessions.show(options.session, options.at)
    _write(shown.data)
    return DONE


def _view(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    caps = None if options.caps is None else _caps(options.caps)
    _write(house.sessions.view(options.session, options.at, caps).text.encode())
    return DONE


def _apply(options: argparse.Namespace, house: House) -> int:
    payload = _payload(options.file)
    _refresh(house)
    notes = Notes(house.sessions, stamps.now, stamps.new_id)
    ask = notes.try_out if options.dry_run else notes.apply
    applied = wire.filled(protocol.Applied, ask(options.session, payload))
    if options.json:
        _print_json(wire.unstructure(applied))
    else:
        _print(presentation.applied_lines(applied))
    return DONE


def _payload(file: str | None) -> bytes:
    """Read one payload, and no more than tells that it is too large."""
    if file is not None and file != "-":
        try:
            with open(file, "rb") as source:
                return source.read(MAX_PAYLOAD_BYTES + 1)
        except OSError as error:
            problem = f"{file}: {error.strerror or error}"
            raise Refusal("invalid_payload", problem, {"problems": [problem]}) from error
    if sys.stdin.isatty():
        _say("waiting for one JSON payload; end it with Ctrl-D on a line of its own")
    return sys.stdin.buffer.read(MAX_PAYLOAD_BYTES + 1)


def _notes(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    notes = Notes(house.sessions, stamps.now, stamps.new_id)
    if options.what == "revoke":
        revoked = notes.revoke(options.session, options.id, options.kind)
        record = wire.filled(protocol.Revoked, revoked)
        lines = presentation.revoked_lines(record)
    elif options.what == "record":
        _write(notes.record(options.session, options.id).encode())
        return DONE
    elif options.what == "anchors":
        record = answers.anchor_list(notes.anchors(options.session, options.limit))
        lines = presentation.anchor_lines(record, width=_width(), colour=_colour())
    else:
        record = answers.note_list(notes.notes(options.session))
        lines = presentation.note_lines(record, width=_width(), colour=_colour())
    if options.json:
        told = wire.unstructure(record)
        _print_json(told.get("items", told))
    else:
        _print(lines)
    return DONE


def _history(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    record = answers.history(Histories(house.sessions).history(options.session))
    if options.json:
        _print_json(wire.unstructure(record))
    else:
        _print(presentation.history_lines(record, width=_width(), colour=_colour()))
    return DONE


def _windows(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    record = answers.window_list(Histories(house.sessions).windows(options.session))
    if options.json:
        _print_json(wire.unstructure(record)["items"])
    else:
        _print(presentation.window_lines(record))
    return DONE


def _rename(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    return _moved(options, house.sessions.rename(options.session, options.name))


def _archive(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    return _moved(options, house.sessions.archive(options.session))


def _unarchive(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    return _moved(options, house.sessions.unarchive(options.session))


def _moved(options: argparse.Namespace, summary: Summary) -> int:
    if options.json:
        _print_json(wire.unstructure(answers.session_summary(summary)))
    else:
        _print([presentation.moved_line(options.command, summary)])
    return DONE


def _delete(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    gone = house.sessions.delete(options.session)
    if options.json:
        _print_json(wire.unstructure(protocol.Deleted(gone.session_id, deleted=True)))
    else:
        _print([presentation.moved_line(options.command, gone)])
    return DONE


def _doctor(options: argparse.Namespace, house: House) -> int:
    _refresh(house)
    report = answers.doctor_report(diagnose(house.sessions, house.problems))
    if options.json:
        _print_json(wire.unstructure(report))
    else:
        _print(presentation.doctor_lines(report, colour=_colour()))
    return DONE


def _watch(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.watch import Watcher

    follower = Follower(house.sessions)
    if options.once:
        _refresh(house)
        _tell(follower.keep_all(), house, options)
        return DONE
    with _ending_on_signals():
        watcher = Watcher(follower.mark)
        try:
            for root in follower.trees():
                watcher.follow_tree(root)
            _refresh(house)
            count = len(house.sessions.catalogue.current())
            _say(f"following {count} sessions under {house.sessions.catalogue.place}")
            _tell(follower.begin(), house, options)
            _follow(follower, watcher, lambda change: _tell(change, house, options))
        finally:
            watcher.stop()
    return DONE


def _follow(follower: Follower, watcher: Watcher, tell: Callable[[Changed], None]) -> None:
    folders: frozenset[str] = frozenset()
    while True:
        if follower.folders() != folders:
            folders = follower.folders()
            watcher.follow_folders(set(folders))
            # A file may have changed before its folder was watched.
            changes = follower.reconcile()
        elif follower.marked.wait(following.RECONCILE_SECONDS):
            time.sleep(following.DEBOUNCE_SECONDS)
            changes = follower.drain()
        else:
            changes = follower.reconcile()
        for change in changes:
            tell(change)


def _tell(change: Changed, house: House, options: argparse.Namespace) -> None:
    current = house.sessions.catalogue.current()
    for session_id in change.session_ids:
        if options.json:
            _print_json({"sessionId": session_id, "reason": change.reason}, indent=False)
        else:
            row = current.get(session_id)
            _print([presentation.change_line(session_id, row, change.reason, colour=_colour())])


def _folder(path: str) -> str:
    """Return an absolute folder; one of another system is taken as it is written."""
    return path if is_windows_path(path) else os.path.abspath(path)


# --- index ---------------------------------------------------------------------------------------


def _refresh(house: House) -> None:
    """Bring the index up to date; show how far it is when a person waits for it."""
    bar = presentation.Bar(sys.stderr) if sys.stderr.isatty() else None

    def report(progress: Progress) -> bool:
        if bar is not None:
            bar.show(progress)
        return True

    try:
        house.sessions.refresh(report)
    finally:
        if bar is not None:
            bar.clear()


# --- printing ------------------------------------------------------------------------------------


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        _write(line.encode(errors="replace") + b"\n")


def _print_json(value: object, *, indent: bool = True) -> None:
    try:
        data = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError:
        # An argument may hold bytes that are no text.
        text = json.dumps(value, ensure_ascii=False, indent=2 if indent else None)
        data = text.encode(errors="replace")
    _write(data + b"\n")


def _write(data: bytes) -> None:
    """Write bytes as they are, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _say(sentence: str) -> None:
    print(presentation.plain(sentence), file=sys.stderr)


def _refused(refusal: Refusal, *, as_json: bool) -> int:
    if as_json:
        error = {
            "code": refusal.code,
            "message": refusal.message,
            "facts": dict(refusal.facts),
        }
        _print_json({"error": error}, indent=False)
    else:
        hint = refusal.facts.get("hint")
        _say(f"{refusal.code}: {refusal.message}" + (f". {hint}" if hint else ""))
    return REFUSED


def _colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _width() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return None


@contextlib.contextmanager
def _ending_on_signals() -> Generator[None]:
    """End cleanly when asked to: SIGTERM counts like Ctrl+C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# --- arguments -----------------------------------------------------------------------------------


def _caps(text: str) -> dict[str, object]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        message = f"--caps is not JSON: {error}"
        raise Refusal("invalid_payload", message, {"problems": [message]}) from error
    if not isinstance(value, dict):
        message = "--caps must be a JSON object of caps"
        raise Refusal("invalid_payload", message, {"problems": [message]})
    return cast("dict[str, object]", value)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        message = "must not be negative"
        raise argparse.ArgumentTypeError(message)
    return number


def _problem(options: argparse.Namespace) -> str | None:
    """Take the words of `notes` apart; say what is wrong with arguments that depend on others."""
    if options.command == "apply" and options.session is None and not options.schema:
        return "apply needs a SESSION, or --schema"
    if options.command != "notes":
        return None
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


def _port(text: str) -> int:
    number = int(text)
    if not 0 < number < 1 << 16:
        message = "must be a port: 1 to 65535"
        raise argparse.ArgumentTypeError(message)
    return number


def _connect_options(connect: argparse.ArgumentParser) -> None:
    connect.add_argument("--dry-run", action="store_true", help="show what would be written")
    connect.add_argument("--remove", action="store_true", help="take out what was put in")
    connect.add_argument("--status", action="store_true", help="say how things stand")
    connect.add_argument("--yes", action="store_true", help="write without asking")
    connect.add_argument("--json", action="store_true", help="print JSON, and never ask")


def _parser() -> argparse.ArgumentParser:
    folders = folder_options()
    parser = argparse.ArgumentParser(
        prog="codex-checkpoints",
        description="Keep what a Codex session knows, as state.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, help_text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help_text, description=help_text, parents=[folders])

    sessions = command("sessions", "list the sessions, newest first")
    sessions.add_argument("--cwd", metavar="DIR", help="only sessions of this folder or below it")
    sessions.add_argument("--archived", action="store_true", help="the archived ones instead")
    sessions.add_argument("--search", metavar="TEXT", help="in title, task, folder and id")
    sessions.add_argument("--limit", metavar="N", type=_count, help="at most so many")
    sessions.add_argument("--json", action="store_true", help="print JSON")

    show = command("show", "print the checkpoint of a session")
    show.add_argument("session", metavar="SESSION", help="an id, its beginning, or a file")
    show.add_argument("--at", metavar="TURN", help="at the end of this turn: an id or a number")
    show.add_argument("--json", action="store_true", help="errors as JSON, too")

    view = command("view", "print the view of a session, as a model reads it")
    view.add_argument("session", metavar="SESSION", help="an id, its beginning, or a file")
    view.add_argument("--at", metavar="TURN", help="at the end of this turn: an id or a number")
    view.add_argument("--caps", metavar="JSON", help='some caps, as {"maxDecisions": 3}')
    view.add_argument("--json", action="store_true", help="errors as JSON")

    apply = command("apply", "add a checked fact, decision or plan to a session")
    apply.add_argument("session", metavar="SESSION", nargs="?", help="an id, its beginning")
    apply.add_argument("file", metavar="FILE", nargs="?", help="the payload, else from stdin")
    apply.add_argument("--dry-run", action="store_true", help="judge it, and write nothing")
    apply.add_argument("--schema", action="store_true", help="print the JSON Schema of payloads")
    apply.add_argument("--json", action="store_true", help="print JSON")

    notes = command("notes", "list the facts and decisions of a session, or take one back")
    notes.usage = (
        "%(prog)s SESSION [--json]\n"
        "       %(prog)s revoke SESSION ID [--kind fact|decision] [--json]\n"
        "       %(prog)s anchors SESSION [--limit N] [--json]\n"
        "       %(prog)s record SESSION REF"
    )
    notes.add_argument("words", metavar="SESSION", nargs="+", help="an id, its beginning, a file")
    notes.add_argument(
        "--kind", choices=("fact", "decision"), help="which one, where both have this ID"
    )
    notes.add_argument("--limit", metavar="N", type=_count, help="so many anchors of each source")
    notes.add_argument("--json", action="store_true", help="print JSON")

    for name, help_text in (
        ("history", "print what Codex would send when the session is resumed"),
        ("windows", "list the context windows of a session"),
    ):
        told = command(name, help_text)
        told.add_argument("session", metavar="SESSION", help="an id, its beginning, or a file")
        told.add_argument("--json", action="store_true", help="print JSON")

    rename = command("rename", "give a session a name")
    rename.add_argument("session", metavar="SESSION", help="an id, or its beginning")
    rename.add_argument("name", metavar="NAME", help="what to call it; an empty one clears it")
    for name, help_text in (
        ("archive", "put a session among the archived ones"),
        ("unarchive", "put an archived session back"),
        ("delete", "remove a session that we made and that nothing refers to"),
    ):
        command(name, help_text).add_argument("session", metavar="SESSION", help="an id")
    for name in ("rename", "archive", "unarchive", "delete"):
        commands.choices[name].add_argument("--json", action="store_true", help="print JSON")

    watch = command("watch", "follow the sessions and keep their checkpoints current")
    watch.add_argument("--once", action="store_true", help="bring all up to date and end")
    watch.add_argument("--json", action="store_true", help="one JSON object a change")

    _connect_options(command("connect", "let Codex call us: hooks, and an MCP server"))

    doctor = command("doctor", "say what was found, what was skipped and why")
    doctor.add_argument("--json", action="store_true", help="print JSON")

    serve = command("serve", "be the language server of an editor, on stdin and stdout")
    serve.add_argument("--tcp", metavar="PORT", type=_port, help="on a loopback port, to debug")

    command("mcp", "be the MCP server of Codex, on stdin and stdout")
    command("hook", "answer one call of a hook of Codex's, on stdin and stdout")
    return parser
