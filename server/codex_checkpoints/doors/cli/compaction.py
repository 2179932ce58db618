"""Runs the commands `compact`, `uncompact` and `resume`.

On a terminal `resume` replaces this program by Codex; elsewhere, and with `--print` or `--json`, it
prints how to go on and changes nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess

from codex_checkpoints.codex import program as codex_program
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    DIGEST_TOKENS,
    JSON,
    SESSION,
    Commands,
    answer,
    ask,
    asks,
    flag,
    positive,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal, opened
from codex_checkpoints.doors.pages import history as texts
from codex_checkpoints.operations import compaction as compactions
from codex_checkpoints.places import Places
from codex_checkpoints.service.compaction.resume import Resumed
from codex_checkpoints.service.refusal import Refusal


def add(commands: Commands) -> None:
    """Add the commands."""
    into = "where the work continues: in a new session, or in the same one"
    who = "who compacts: this program, or Codex itself, which asks its model over the network"
    commands.add(
        "compact",
        _compact,
        SESSION,
        value("--into", None, into, choices=("new", "in-place"), default="new"),
        value("--strategy", None, who, choices=("checkpoint", "codex"), default="checkpoint"),
        value("--timeout", "SECONDS", "how long Codex may take for its summary", type=positive),
        value("--placement", "MODE", "the trigger to record: manual or pre_turn", default="manual"),
        DIGEST_TOKENS,
        flag("--dry-run", "only preview the result"),
        flag("--force", "compact even if nothing is saved, or the last turn was cut off"),
        JSON,
        check=_wrong_compact,
        before=None,
    )
    about = "its id, the id of the session that it made, or a prefix of one"
    compaction = value("compaction_id", "COMPACTION", about)
    commands.add("uncompact", _uncompact, compaction, JSON)
    only_print = flag("--print", "only print the command; change nothing")
    json = flag("--json", "only print how to continue, as JSON; change nothing")
    commands.add_alone("resume", _resume, SESSION, only_print, json)


_uncompact = asks(compactions.uncompact, texts.uncompacted_lines)


def _wrong_compact(options: argparse.Namespace) -> str | None:
    waits = options.strategy == "codex" or options.timeout is None
    return None if waits else "--timeout goes with --strategy codex"


def _compact(options: argparse.Namespace, services: Terminal) -> int:
    operation = compactions.compact_preview if options.dry_run else compactions.compact
    return answer(options, services, operation, texts.compaction_lines, options.timeout)


def _resume(options: argparse.Namespace, where: Places) -> int:

    only_prints = options.print or options.json
    program = None if only_prints or not output.is_answered() else _codex()
    with opened(where) as services:
        services.update_index()
        operation = compactions.resume_preview if only_prints else compactions.resume
        record: Resumed = ask(options, services, operation)
    if not options.json:
        notices = texts.resume_notices(record, screen(options))
        for notice in (*(texts.gone_folder(record) if program is None else ()), *notices):
            output.say(notice)
    if program is None:
        return report(options, record, [texts.resume_line(record, screen(options))])
    return _run(program, record, where)


def _codex() -> str:

    found = codex_program.find(os.environ.get("PATH", ""))
    if found is None:
        message = "the Codex CLI is not on the PATH"
        hint = "With --print the command is printed, to be run where Codex is."
        raise Refusal("codex_not_found", message, {"hint": hint})
    return found


def _run(program: str, record: Resumed, where: Places) -> int:
    """Replace this process by Codex, in the folder of the session, or here if that is gone."""
    if record.cwd is not None:
        try:
            os.chdir(record.cwd)
        except OSError as error:
            output.say(f"{record.cwd}: {error.strerror}; Codex starts in this folder")
    words = [program, "resume", record.session_id]
    environment = {**os.environ, "CODEX_HOME": where.codex_home}
    try:
        if os.name == "nt":  # there a program that replaces ours would lose the terminal
            code = subprocess.run(words, env=environment, check=False).returncode  # noqa: S603 - Codex
        else:
            os.execve(program, words, environment)  # noqa: S606 - Codex
    except OSError as error:
        message = f"{program} does not start: {error.strerror}"
        raise Refusal("codex_not_found", message) from error
    return code
