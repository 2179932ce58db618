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

from codex_checkpoints import __version__, assembly
from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import DONE, INTERRUPTED, REFUSED, Commands, Parser, screen
from codex_checkpoints.service.refusal import Cancelled, Refusal

COMMANDS = {
    "sessions": "sessions",
    "search": "searching",
    "show": "views",
    "view": "views",
    "digest": "digests",
    "recall": "digests",
    "apply": "memory",
    "notes": "memory",
    "history": "histories",
    "windows": "histories",
    "outline": "histories",
    "timeline": "histories",
    "changes": "histories",
    "losses": "histories",
    "compact": "compactions",
    "uncompact": "compactions",
    "resume": "compactions",
    "diff": "histories",
    "mark": "marking",
    "marks": "marking",
    "unmark": "marking",
    "relabel": "marking",
    "pin": "marking",
    "unpin": "marking",
    "restore": "restores",
    "restores": "restores",
    "restore-details": "restores",
    "lineage": "restores",
    "audit": "restores",
    "export": "portable",
    "import": "portable",
    "rename": "sessions",
    "archive": "sessions",
    "unarchive": "sessions",
    "delete": "deleting",
    "watch": "watching",
    "connect": "connecting",
    "doctor": "connecting",
    "serve": "servers",
    "mcp": "servers",
    "hook": "servers",
}
"""The commands in the order in which help lists them, each with its module.

The module is imported when its command runs: each command starts sooner without the others.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    output.open_streams()
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(given[0] if given else None).read(given)
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
        # A full disk behind `>`, a port that is taken.
        output.discard()
        output.say(f"{error.strerror or error} [storage_error]")
        return REFUSED
    except Exception as error:  # noqa: BLE001 - a traceback would end with what may be a prompt
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
        return assembly.places(
            os.environ, os.path.expanduser("~"), options.codex_home, options.state_dir
        )
    except ValueError as error:
        wrong(str(error))


def _parser(first: str | None) -> Parser:
    """Return the parser of the command that the first argument names, else that of all."""
    parser = Parser(
        prog="codex-checkpoints",
        description="Keep what a Codex session knows, as state.",
        epilog="COMMAND --help describes one. Options come after the command. "
        "Begin with `sessions`, then `view` one of them.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = Commands(parser)
    for name in [first] if first in COMMANDS else COMMANDS:
        commands.wanted = name
        import_module(f"{__name__}.{COMMANDS[name]}").add(commands)
    return parser
