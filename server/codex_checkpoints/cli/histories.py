"""`history`, `windows`, `outline`, `losses`: what Codex would send, and what became of the rest."""

from __future__ import annotations

import argparse

from codex_checkpoints.answers import histories as answers
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import add_json, add_session
from codex_checkpoints.cli.commands import DONE, Commands, refresh_for, told
from codex_checkpoints.core.history.windows import render
from codex_checkpoints.presentation import histories as texts
from codex_checkpoints.presentation.terminal import plain
from codex_checkpoints.service.connect.receipts import received
from codex_checkpoints.service.history import Histories


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


def _history(options: argparse.Namespace, house: House) -> int:
    refresh_for(house, options.session)
    record = answers.history(Histories(house.sessions).history(options.session))
    return told(
        options,
        record,
        texts.history_lines(record, width=output.width(), colour=output.colour()),
    )


def _one_form(options: argparse.Namespace) -> str | None:
    return "--fragment is no JSON" if options.fragment and options.json else None


def _windows(options: argparse.Namespace, house: House) -> int:
    refresh_for(house, options.session)
    sessions = house.sessions
    if options.fragment:
        fragment = render(Histories(sessions).fragment(options.session))
        output.write_lines([plain(line) for line in fragment.split("\n")])
        return DONE
    histories = Histories(sessions)
    windows = histories.windows(options.session)
    opened = sessions.compactions.opened(sessions.find(options.session).session_id)
    record = answers.window_list(windows, received(sessions, options.session), opened)
    undone = histories.undone(options.session)
    return told(options, record, texts.window_lines(record, undone, width=output.width()))


def _outline(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.service.outlines import outline

    refresh_for(house, options.session)
    record = answers.outline(outline(house.sessions, options.session))
    return told(options, record, texts.outline_lines(record, width=output.width()))


def _losses(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.presentation.losses import loss_lines
    from codex_checkpoints.service.losing import losses_of

    refresh_for(house, options.session)
    record = answers.loss_list(losses_of(house.sessions, options.session))
    undone = Histories(house.sessions).undone(options.session)
    lines = loss_lines(record, undone, width=output.width(), colour=output.colour())
    return told(options, record, lines)
