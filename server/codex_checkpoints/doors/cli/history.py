"""Runs the commands about the history of one session."""

from __future__ import annotations

import argparse
from functools import partial

from codex_checkpoints.core.agents.codex.history.windows import render
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    A_TURN,
    ANY_SESSION,
    DONE,
    JSON,
    SESSION,
    Commands,
    answer,
    ask,
    asks,
    flag,
    refresh_for_session,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import history as texts
from codex_checkpoints.doors.pages.restore import diff_lines
from codex_checkpoints.doors.pages.timeline import timeline_lines
from codex_checkpoints.operations import history, markers, pages, restore
from codex_checkpoints.sections.lines import page_lines
from codex_checkpoints.sections.terminal import Screen, plain
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.history.windows import undone_in
from codex_checkpoints.service.sessions.details import detail_of


def add(commands: Commands) -> None:
    """Add the commands that read a history."""
    add = partial(commands.add, before=refresh_for_session)
    add("history", _history, ANY_SESSION, JSON)
    fragment = flag("--fragment", "print the ids as a model gets them")
    add("windows", _windows, fragment, ANY_SESSION, JSON, check=_one_form)
    add("outline", _outline, ANY_SESSION, JSON)
    add("timeline", _timeline, ANY_SESSION, JSON)
    path = value("uri", "PATH", "show the patches of this file", nargs="?")
    only = value("--turn", "TURN", f"only this turn: {A_TURN}", dest="turn_id")
    after = value("--after", "TURN", "only the turns after this one", dest="after_turn_id")
    add("changes", _changes, ANY_SESSION, path, only, after, JSON)
    add("losses", _losses, ANY_SESSION, JSON)
    turns = (
        value(
            "--from",
            "TURN",
            f"the earlier turn: {A_TURN}",
            dest="from_turn_id",
            required=True,
        ),
        value("--to", "TURN", f"the later turn: {A_TURN}", dest="to_turn_id", required=True),
    )
    commands.add("diff", _diff, SESSION, JSON, *turns)


_history = asks(history.history, texts.history_lines)


_outline = asks(history.outline, texts.outline_lines)


_diff = asks(history.diff, diff_lines)


def _one_form(options: argparse.Namespace) -> str | None:
    return "--fragment is not JSON" if options.fragment and options.json else None


def _windows(options: argparse.Namespace, services: Terminal) -> int:
    if options.fragment:
        fragment = render(Histories(services.sessions).fragment(options.session_id))
        output.write_lines(plain(line) for line in fragment.split("\n"))
        return DONE
    row = services.sessions.find(options.session_id)
    lines = partial(
        texts.window_lines,
        undone=undone_in(services.sessions, options.session_id),
        elsewhere=services.sessions.compactions.into_new(row.session_id),
    )
    return answer(options, services, history.windows, lines)


def _losses(options: argparse.Namespace, services: Terminal) -> int:
    def lines(found: history.LossList, screen: Screen) -> list[str]:
        return page_lines(pages.losses(services, options.session_id, found.items), screen)

    return answer(options, services, history.losses, lines)


def _changes(options: argparse.Namespace, services: Terminal) -> int:
    options.texts = options.uri is not None
    lines = partial(texts.change_lines, uri=options.uri)
    return answer(options, services, history.changes, lines)


def _timeline(options: argparse.Namespace, services: Terminal) -> int:

    record = ask(options, services, history.timeline)
    sessions = services.sessions
    detail = detail_of(sessions, options.session_id)
    window = detail.summary.context_window
    if options.json:
        return report(options, record, ())
    marks = ask(options, services, markers.marks).items
    branches = ask(options, services, restore.around).items
    named = {turn.turn_id: turn.task for turn in detail.turns}
    named |= {each.checkpoint_id: each.label for each in marks}
    named |= {each.session_id: each.title or each.session_id for each in branches}
    names = {each: redact(words or "") for each, words in named.items()}
    return report(options, record, timeline_lines(record, screen(options), window, names))
