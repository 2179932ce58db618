"""`history`, `windows`, `outline`, `losses`: what Codex would send, and what became of the rest.

`diff` says what a session learned between two turns, or what two sessions differ in.
"""

from __future__ import annotations

import argparse

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    A_TURN,
    DONE,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_session,
    told,
)
from codex_checkpoints.presentation.terminal import plain


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "print what Codex would send when the session is resumed"
    history = commands.add("history", about, _history)
    windows = commands.add("windows", "list the context windows of a session", _windows, _one_form)
    windows.add_argument(
        "--fragment", action="store_true", help="print the ids as Codex tells a model of them"
    )
    for added in (
        history,
        windows,
        commands.add("outline", "tell a session in few lines, however long it is", _outline),
        commands.add("losses", "say what each compaction of a session lost", _losses),
    ):
        add_session(added)
        add_json(added)


def add_diff(commands: Commands) -> None:
    """Add `diff`."""
    diff = commands.add(
        "diff", "say what changed between the ends of two turns", _diff, _wrong_diff
    )
    add_session(diff, OF_OURS)
    add_json(diff)
    diff.add_argument("--from", dest="from_turn", metavar="TURN", help=f"the first: {A_TURN}")
    diff.add_argument("--to", dest="to_turn", metavar="TURN", help=f"the second: {A_TURN}")
    about = "the session that --to is a turn of; a turn that is not named is as it is now"
    diff.add_argument("--with", dest="other", metavar="SESSION", help=about)


def _history(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import history
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.histories import history_lines

    services.look_around_for(options.session)
    record = history(services, SessionParams(options.session))
    lines = history_lines(record, width=output.width(), colour=output.colour())
    return told(options, record, lines)


def _one_form(options: argparse.Namespace) -> str | None:
    return "--fragment is no JSON" if options.fragment and options.json else None


def _windows(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.core.history.windows import render
    from codex_checkpoints.operations.histories import windows
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.histories import window_lines
    from codex_checkpoints.service.history import Histories

    services.look_around_for(options.session)
    histories = Histories(services.sessions)
    if options.fragment:
        fragment = render(histories.fragment(options.session))
        output.write_lines(plain(line) for line in fragment.split("\n"))
        return DONE
    record = windows(services, SessionParams(options.session))
    undone = histories.undone(options.session)
    return told(options, record, window_lines(record, undone, width=output.width()))


def _outline(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import outline
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.histories import outline_lines

    services.look_around_for(options.session)
    record = outline(services, SessionParams(options.session))
    return told(options, record, outline_lines(record, width=output.width()))


def _losses(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import losses
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.histories import loss_lines
    from codex_checkpoints.service.history import Histories

    services.look_around_for(options.session)
    record = losses(services, SessionParams(options.session))
    undone = Histories(services.sessions).undone(options.session)
    lines = loss_lines(record, undone, width=output.width(), colour=output.colour())
    return told(options, record, lines)


def _wrong_diff(options: argparse.Namespace) -> str | None:
    named = options.from_turn is not None and options.to_turn is not None
    return None if named or options.other is not None else "--from and --to are needed, or --with"


def _diff(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.histories import DiffParams, diff
    from codex_checkpoints.presentation.restores import diff_lines

    services.look_around()
    params = DiffParams(options.session, options.from_turn, options.to_turn, options.other)
    record = diff(services, params)
    return told(options, record, diff_lines(record, width=output.width(), colour=output.colour()))
