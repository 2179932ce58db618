"""`compact` and `uncompact`: a checkpoint in the place of a history, and back; and `resume`.

`resume` goes on with a session in Codex, after the check between two turns.  On a terminal Codex
takes the place of this program.  Elsewhere, and where it is asked for, the command is printed
instead, and run by whoever reads it.  Who asks for words only, the command or JSON, changes nothing
by it: a compaction that is due is told of, and not made.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_session,
    named,
    opened,
    positive,
    told,
)
from codex_checkpoints.operations.services import carried_out
from codex_checkpoints.presentation import histories as texts
from codex_checkpoints.presentation.terminal import plain
from codex_checkpoints.service.refusal import Refusal

if TYPE_CHECKING:
    from codex_checkpoints.operations.compactions import Resumed

STRATEGY = "who compacts: we, or Codex itself, which asks its model over the network"


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "go on from a checkpoint instead of the whole history"
    compact = commands.add("compact", about, _compact, _wrong)
    add_session(compact, OF_OURS)
    compact.add_argument(
        "--into",
        choices=("new", "in-place"),
        default="new",
        help="where the work goes on: in a new session, or in the same one",
    )
    compact.add_argument(
        "--strategy", choices=("checkpoint", "codex"), default="checkpoint", help=STRATEGY
    )
    compact.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive,
        help="how long Codex may take for its summary",
    )
    compact.add_argument(
        "--placement", metavar="MODE", default="manual", help="for the record: manual, or pre_turn"
    )
    compact.add_argument("--dry-run", action="store_true", help="only say what would come of it")
    compact.add_argument(
        "--force",
        action="store_true",
        help="also where it gets no smaller, or the last turn was cut off",
    )
    add_json(compact)

    uncompact = commands.add("uncompact", "take a compaction back", _uncompact)
    uncompact.add_argument(
        "compaction", metavar="COMPACTION", help="its id, as `compact` printed it"
    )
    add_json(uncompact)

    about = "go on with a session in Codex, compacted before where the settings ask for it"
    resume = commands.add_alone("resume", about, _resume)
    add_session(resume, OF_OURS)
    resume.add_argument(
        "--print", action="store_true", help="print the command, and run and change nothing"
    )
    add_json(resume, "print how to go on as JSON, and run and change nothing")


def _wrong(options: argparse.Namespace) -> str | None:
    waits = options.strategy == "codex" or options.timeout is None
    return None if waits else "--timeout goes with --strategy codex"


def _compact(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.compactions import CompactParams, compact, compact_preview

    params = CompactParams(
        options.session, options.into, options.strategy, options.placement, options.force
    )
    if options.dry_run:
        record = compact_preview(services, params, options.timeout)
    else:
        record = carried_out(compact(services, params, options.timeout))
    return told(options, record, texts.compaction_lines(record, named(options)))


def _uncompact(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.compactions import UncompactParams, uncompact

    services.look_around()
    record = uncompact(services, UncompactParams(options.compaction))
    return told(options, record, texts.uncompacted_lines(record, named(options)))


def _resume(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints.operations.compactions import ResumeParams, resume, resume_preview

    program = None if options.print or options.json or not _on_a_terminal() else _codex()
    params = ResumeParams(options.session)
    with opened(where) as services:
        services.look_around()
        if options.print or options.json:
            record = resume_preview(services, params)
        else:
            record = carried_out(resume(services, params))
    if not options.json:
        output.say_lines(texts.resume_notices(record, named(options)))
    if program is None:
        return told(options, record, [plain(named(options).codex(record.resume))])
    return _run(program, record, where)


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _codex() -> str:
    from codex_checkpoints.codex import program

    found = program.find(os.environ.get("PATH", ""))
    if found is None:
        message = "the Codex CLI is not on the PATH"
        hint = "With --print the command is printed, to be run where Codex is."
        raise Refusal("codex_not_found", message, {"hint": hint})
    return found


def _run(program: str, record: Resumed, where: Places) -> int:
    """Become Codex, in the folder of the session; where that is gone, in this one."""
    if record.cwd is not None:
        try:
            os.chdir(record.cwd)
        except OSError as error:
            output.say(f"{record.cwd}: {error.strerror}; Codex starts in this folder")
    words = [program, "resume", record.session_id]
    environment = {**os.environ, "CODEX_HOME": where.codex_home}
    try:
        if os.name == "nt":  # what took our place there would lose the terminal
            code = subprocess.run(words, env=environment, check=False).returncode  # noqa: S603 - Codex
        else:
            os.execve(program, words, environment)  # noqa: S606 - Codex
    except OSError as error:
        message = f"{program} does not start: {error.strerror}"
        raise Refusal("codex_not_found", message) from error
    return code
