"""The commands about what Codex sends: `history`, `windows`, `outline`, `losses`, `diff`.

`compact`, `uncompact` and `resume` change it.  On a terminal `resume` starts Codex in the place of
this program; elsewhere, and with `--print` or `--json`, it prints how to go on and changes nothing.
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
    A_TURN,
    DONE,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_session,
    named,
    opened,
    positive,
    refresh_for_session,
    report,
)
from codex_checkpoints.operations.services import SessionParams, carried_out
from codex_checkpoints.presentation import histories as texts
from codex_checkpoints.presentation.restores import diff_lines
from codex_checkpoints.presentation.terminal import plain
from codex_checkpoints.service.refusal import Refusal

if TYPE_CHECKING:
    from codex_checkpoints.operations.compactions import Resumed


def add(commands: Commands) -> None:
    """Add the commands that read a history."""
    about = "print what Codex would send when the session is resumed"
    history = commands.add("history", about, _history, before=refresh_for_session)
    about = "list the context windows of a session"
    windows = commands.add("windows", about, _windows, _one_form, refresh_for_session)
    windows.add_argument(
        "--fragment", action="store_true", help="print the ids in the form that a model gets"
    )
    about = "print an outline of a session, short however long the session is"
    outline = commands.add("outline", about, _outline, before=refresh_for_session)
    about = "list what each compaction of a session lost"
    losses = commands.add("losses", about, _losses, before=refresh_for_session)
    for added in (history, windows, outline, losses):
        add_session(added)
        add_json(added)


def add_diff(commands: Commands) -> None:
    """Add `diff`."""
    about = "list what changed between the ends of two turns"
    diff = commands.add("diff", about, _diff, _wrong_diff)
    add_session(diff, OF_OURS)
    add_json(diff)
    diff.add_argument("--from", dest="from_turn", metavar="TURN", help=f"the first: {A_TURN}")
    diff.add_argument("--to", dest="to_turn", metavar="TURN", help=f"the second: {A_TURN}")
    about = "the session of the turn in --to; without --to its current state"
    diff.add_argument("--with", dest="other", metavar="SESSION", help=about)


def add_compactions(commands: Commands) -> None:
    """Add `compact`, `uncompact` and `resume`."""
    about = "go on from a checkpoint instead of the whole history"
    compact = commands.add("compact", about, _compact, _wrong_compact, None)
    add_session(compact, OF_OURS)
    compact.add_argument(
        "--into",
        choices=("new", "in-place"),
        default="new",
        help="where the work goes on: in a new session, or in the same one",
    )
    about = "who compacts: this program, or Codex itself, which asks its model over the network"
    compact.add_argument(
        "--strategy", choices=("checkpoint", "codex"), default="checkpoint", help=about
    )
    compact.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive,
        help="how long Codex may take for its summary",
    )
    compact.add_argument(
        "--placement", metavar="MODE", default="manual", help="manual, or pre_turn; only recorded"
    )
    compact.add_argument("--dry-run", action="store_true", help="only show what it would do")
    compact.add_argument(
        "--force",
        action="store_true",
        help="compact even if it gets no smaller, or the last turn was cut off",
    )
    add_json(compact)

    uncompact = commands.add("uncompact", "take a compaction back", _uncompact)
    uncompact.add_argument(
        "compaction", metavar="COMPACTION", help="its id, as `compact` printed it"
    )
    add_json(uncompact)

    about = "go on with a session in Codex; compact it first if the settings ask for it"
    resume = commands.add_alone("resume", about, _resume)
    add_session(resume, OF_OURS)
    resume.add_argument(
        "--print", action="store_true", help="only print the command; change nothing"
    )
    add_json(resume, "only print how to go on, as JSON; change nothing")


def _history(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import history

    record = history(services, SessionParams(options.session))
    lines = texts.history_lines(record, width=output.width(), colour=output.colour())
    return report(options, record, lines)


def _one_form(options: argparse.Namespace) -> str | None:
    return "--fragment is no JSON" if options.fragment and options.json else None


def _windows(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.core.history.windows import render
    from codex_checkpoints.operations.histories import windows
    from codex_checkpoints.service.history import Histories

    histories = Histories(services.sessions)
    if options.fragment:
        fragment = render(histories.fragment(options.session))
        output.write_lines(plain(line) for line in fragment.split("\n"))
        return DONE
    record = windows(services, SessionParams(options.session))
    undone = histories.undone(options.session)
    return report(options, record, texts.window_lines(record, undone, width=output.width()))


def _outline(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import outline

    record = outline(services, SessionParams(options.session))
    return report(options, record, texts.outline_lines(record, width=output.width()))


def _losses(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import losses
    from codex_checkpoints.service.history import Histories

    record = losses(services, SessionParams(options.session))
    undone = Histories(services.sessions).undone(options.session)
    lines = texts.loss_lines(record, undone, width=output.width(), colour=output.colour())
    return report(options, record, lines)


def _wrong_diff(options: argparse.Namespace) -> str | None:
    named = options.from_turn is not None and options.to_turn is not None
    return None if named or options.other is not None else "--from and --to are needed, or --with"


def _diff(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import DiffParams, diff

    params = DiffParams(options.session, options.from_turn, options.to_turn, options.other)
    record = diff(services, params)
    return report(options, record, diff_lines(record, width=output.width(), colour=output.colour()))


# --- compactions ---------------------------------------------------------------------------------


def _wrong_compact(options: argparse.Namespace) -> str | None:
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
    return report(options, record, texts.compaction_lines(record, named(options)))


def _uncompact(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.compactions import UncompactParams, uncompact

    record = uncompact(services, UncompactParams(options.compaction))
    return report(options, record, texts.uncompacted_lines(record, named(options)))


def _resume(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints.operations.compactions import ResumeParams, resume, resume_preview

    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    program = _codex() if is_terminal and not (options.print or options.json) else None
    params = ResumeParams(options.session)
    with opened(where) as services:
        services.look_around()
        if options.print or options.json:
            record = resume_preview(services, params)
        else:
            record = carried_out(resume(services, params))
    if not options.json:
        for notice in texts.resume_notices(record, named(options)):
            output.say(notice)
    if program is None:
        return report(options, record, [plain(named(options).codex(record.resume))])
    return _run(program, record, where)


def _codex() -> str:
    from codex_checkpoints.codex import program

    found = program.find(os.environ.get("PATH", ""))
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
        if os.name == "nt":  # there a program in our place would lose the terminal
            code = subprocess.run(words, env=environment, check=False).returncode  # noqa: S603 - Codex
        else:
            os.execve(program, words, environment)  # noqa: S606 - Codex
    except OSError as error:
        message = f"{program} does not start: {error.strerror}"
        raise Refusal("codex_not_found", message) from error
    return code
