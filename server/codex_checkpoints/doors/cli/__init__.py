"""The command line, for people and scripts.

Each command reads its arguments, calls an operation and prints the answer.  `--json` prints one
JSON document with the keys of `protocol`.  Diagnostics go to stderr.  Exit codes: 0 done, 1 refused
or failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from attrs import frozen

from codex_checkpoints import __version__
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    DONE,
    INTERRUPTED,
    REFUSED,
    Commands,
    Parser,
    screen,
)
from codex_checkpoints.doors.folder_options import after_command
from codex_checkpoints.places import Places, places_of
from codex_checkpoints.service.refusal import Cancelled, Refusal


@frozen
class Command:
    """The module of a command, and its line in the help."""

    module: str
    about: str


COMMANDS = {
    "sessions": Command(
        "sessions",
        "list the sessions, newest first; those of `codex exec` and of subagents come last",
    ),
    "search": Command(
        "search", "print the lines of all sessions that contain a text, newest session first"
    ),
    "show": Command("checkpoint", "print the checkpoint of a session, as one line of JSON"),
    "view": Command("checkpoint", "print the view of a session, as a model reads it"),
    "digest": Command(
        "digest",
        "quote the requests, answers, changes and commands of a session, with anchors",
    ),
    "recall": Command("recall", "print a record of a session, or the lines that contain a text"),
    "apply": Command("notes", "add a checked fact, decision or plan to a session"),
    "notes": Command("notes", "list the facts and decisions of a session, or revoke one"),
    "history": Command("history", "print the history that Codex would send on resume"),
    "windows": Command("history", "list the context windows of a session"),
    "outline": Command("history", "print a short outline of a session"),
    "timeline": Command(
        "history", "show how a session went, turn by turn: context, calls, files, failed checks"
    ),
    "changes": Command(
        "history", "list the files that a session changed, and which have changed since"
    ),
    "losses": Command("history", "list the losses of each compaction of a session"),
    "compact": Command("compaction", "continue from a checkpoint instead of the whole history"),
    "uncompact": Command("compaction", "undo a compaction"),
    "resume": Command(
        "compaction", "continue a session in Codex; compact it first if the settings ask for it"
    ),
    "diff": Command("history", "list the changes between the ends of two turns"),
    "mark": Command("markers", "put a marker on a turn, to come back to"),
    "marks": Command("markers", "list the markers of a session"),
    "unmark": Command("markers", "remove a marker"),
    "relabel": Command("markers", "give a marker another label"),
    "pin": Command("markers", "pin something for digests and state packs, or list the pins"),
    "unpin": Command("markers", "remove a pin"),
    "restore": Command("restore", "open a branch at a marker; the session itself does not change"),
    "restores": Command("restore", "list the restores of a session, or all"),
    "restore-files": Command("files", "restore files to the end of a turn"),
    "undo-restore-files": Command("files", "put back the files that `restore-files` replaced"),
    "restore-details": Command("restore", "print everything about a restore"),
    "lineage": Command("restore", "show the tree of sessions to which a session belongs"),
    "audit": Command("restore", "list the events of the audit log"),
    "export": Command("packs", "write the state of a session to a portable file"),
    "import": Command("packs", "make a session from a portable file, for a folder of this machine"),
    "remote": Command("remote", "choose and manage the store that several machines share"),
    "push": Command("remote", "copy sessions to the remote, redacted, after a preview"),
    "pull": Command("remote", "make a branch here of a session in the remote"),
    "rename": Command("sessions", "give a session a name"),
    "archive": Command("sessions", "move a session to the archive"),
    "unarchive": Command("sessions", "move a session out of the archive"),
    "delete": Command("delete", "remove a session that we made and that nothing refers to"),
    "watch": Command("watch", "follow the sessions and keep their checkpoints current"),
    "connect": Command("connect", "connect Codex with this program: hooks, and an MCP server"),
    "doctor": Command(
        "connect",
        "report findings, and skipped lines with the reason; exits 0 even with findings",
    ),
    "serve": Command("serve", "run the language server of an editor, on stdin and stdout"),
    "mcp": Command("for_codex", "run the MCP server for Codex, on stdin and stdout"),
    "hook": Command("for_codex", "answer one call of a Codex hook, on stdin and stdout"),
}
"""The commands in the order in which help lists them.

A module is imported when its command runs: each starts sooner without the others, and so does help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    output.open_streams()
    given = after_command(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    options = _parser(given).read(given)
    problem = None if options.check is None else options.check(options)
    if problem is not None:
        options.wrong(problem)
    where = _places(options)
    try:
        return options.run(options, where)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader ended, as `| head` does.
        output.discard()
        return DONE
    except OSError as error:
        # A full disk at a redirection, or a port in use.
        output.discard()
        output.say(f"{error.strerror or error} [storage_error]")
        return REFUSED
    except Exception as error:  # noqa: BLE001 - a traceback could end with a prompt
        return _failed(error, options)


def _failed(error: Exception, options: argparse.Namespace) -> int:

    if isinstance(error, Cancelled):
        return INTERRUPTED
    as_json = getattr(options, "json", False)
    if isinstance(error, Refusal):
        output.refused(error, screen(options), as_json=as_json)
    else:
        output.failed(error, as_json=as_json)
    return REFUSED


def _places(options: argparse.Namespace) -> Places:

    wrong: Callable[[str], NoReturn] = options.wrong
    try:
        return places_of(os.environ, os.path.expanduser("~"), options.codex_home, options.state_dir)
    except ValueError as error:
        wrong(str(error))


def _parser(given: Sequence[str]) -> Parser:
    """Return the parser of the command that the first argument names, else the one of all.

    Only the command that argparse will find in the arguments has its own.
    """
    named = next((each for each in given if not each.startswith("-")), "")
    parser = Parser(
        prog="codex-checkpoints",
        description="Keep what a Codex session knows, as state.",
        epilog="COMMAND --help describes one. Options come after the command. "
        "Begin with `sessions`, then `view` one of them.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    names = [named] if named in COMMANDS and given[0] == named else COMMANDS
    commands = Commands(parser, {name: COMMANDS[name].about for name in names})
    if named in COMMANDS:
        import_module(f"{__name__}.{COMMANDS[named].module}").add(commands)
    return parser
