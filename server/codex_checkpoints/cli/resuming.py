"""`resume`: go on with a session in Codex, after the check between two turns.

On a terminal Codex takes the place of this program.  Elsewhere, and where it is asked for, the
command is printed instead, and run by whoever reads it.  Who asks for words only, the command or
JSON, changes nothing by it: a compaction that is due is told of, and not made.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from codex_checkpoints import protocol
from codex_checkpoints.answers import compactions as answers
from codex_checkpoints.assembly import House, Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_session
from codex_checkpoints.cli.commands import Commands, named, opened, refresh, told
from codex_checkpoints.presentation import compactions as texts
from codex_checkpoints.presentation.terminal import plain
from codex_checkpoints.service.refusal import Refusal


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "go on with a session in Codex, compacted before where the settings ask for it"
    resume = commands.add_alone("resume", about, _resume)
    add_session(resume, OF_OURS)
    resume.add_argument(
        "--print", action="store_true", help="print the command, and run and change nothing"
    )
    add_json(resume, "print how to go on as JSON, and run and change nothing")


def _resume(options: argparse.Namespace, where: Places) -> int:
    program = None if options.print or options.json or not _on_a_terminal() else _codex()
    with opened(where) as house:
        record = _prepared(options, house)
    if not options.json:
        output.say_lines(texts.resume_notices(record, named(options)))
    if program is None:
        return told(options, record, [plain(named(options).codex(record.resume))])
    return _run(program, record, where)


def _prepared(options: argparse.Namespace, house: House) -> protocol.Resumed:
    from codex_checkpoints.outside import outside
    from codex_checkpoints.service.compaction import resuming
    from codex_checkpoints.service.compaction.compacting import Compacting

    refresh(house)
    compacting = Compacting(house.sessions, outside(os.environ))
    only_told = options.print or options.json
    ready = resuming.preview if only_told else resuming.prepare
    return answers.resumed(ready(house.sessions, compacting, options.session))


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


def _run(program: str, record: protocol.Resumed, where: Places) -> int:
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
