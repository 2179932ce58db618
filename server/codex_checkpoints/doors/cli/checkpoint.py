"""Runs the commands `show` and `view`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import cast

import orjson

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    ANY_SESSION,
    AT_TURN,
    DONE,
    Commands,
    ask,
    flag,
    refresh_for_session,
    value,
    wrong,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.operations import checkpoint


def add(commands: Commands) -> None:
    """Add the commands."""
    add = partial(commands.add, before=refresh_for_session)
    caps = value("--caps", "JSON", 'some caps, as {"maxDecisions": 3}')
    json = flag("--json", "print errors as JSON")
    add("show", _show, ANY_SESSION, AT_TURN, json)
    add("view", _view, ANY_SESSION, AT_TURN, caps, json)


def _show(options: argparse.Namespace, services: Terminal) -> int:
    output.write(ask(options, services, checkpoint.show).text.encode())
    return DONE


def _view(options: argparse.Namespace, services: Terminal) -> int:
    options.caps = None if options.caps is None else _caps(options.caps)
    output.write(ask(options, services, checkpoint.view).text.encode())
    return DONE


def _caps(text: str) -> dict[str, object]:

    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise wrong(f"--caps is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise wrong("--caps must be a JSON object of caps")

    return cast("dict[str, object]", value)
