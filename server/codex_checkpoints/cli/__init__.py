"""The door for people and scripts: the command line.

Each command translates its arguments, asks the service and prints.  `--json` prints one JSON
document with the keys of `protocol`; without it the text is for people.  Diagnostics go to stderr.
Exit codes: 0 done, 1 refused, 2 wrong usage, 130 interrupted.  Commands that do not serve import
neither pygls nor asyncio: they would cost more than the answer.

Each module of `SUBJECTS` has some commands: a function `add` that says their arguments, and one
function each that takes these and the house, prints, and returns the exit code.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from codex_checkpoints import __version__, assembly
from codex_checkpoints.cli import (
    compactions,
    comparing,
    connecting,
    doctor,
    doors,
    following,
    histories,
    markers,
    moving,
    notes,
    output,
    restores,
    sessions,
)
from codex_checkpoints.cli.commands import DONE, INTERRUPTED, REFUSED, Commands
from codex_checkpoints.service.refusal import Cancelled, Refusal

SUBJECTS = (
    sessions,
    notes,
    histories,
    compactions,
    comparing,
    markers,
    restores,
    moving,
    following,
    connecting,
    doctor,
    doors,
)
"""Every module with commands, in the order in which help lists them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    output.open_streams()
    parser = _parser()
    options = parser.parse_args(arguments)
    problem = None if options.check is None else options.check(options)
    if problem is not None:
        parser.error(problem)
    try:
        where = assembly.places(
            os.environ, os.path.expanduser("~"), options.codex_home, options.state_dir
        )
    except ValueError as error:
        parser.error(str(error))
    try:
        return options.run(options, where)
    except Refusal as refusal:
        output.refused(refusal, as_json=getattr(options, "json", False))
        return REFUSED
    except (KeyboardInterrupt, Cancelled):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away, as `| head` does.
        output.discard()
        return DONE
    except OSError as error:
        # A full disk behind `>`, a port that is taken: nothing that an answer could help.
        output.discard()
        output.say(f"storage_error: {error.strerror or error}")
        return REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="codex-checkpoints",
        description="Keep what a Codex session knows, as state.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = Commands(parser)
    for subject in SUBJECTS:
        subject.add(commands)
    return parser
