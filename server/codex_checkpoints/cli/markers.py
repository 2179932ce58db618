"""`mark`, `marks`, `unmark`, `relabel`, `pin`, `unpin`: where to come back to, and with what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from codex_checkpoints import protocol, stamps
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import (
    A_TURN,
    OF_OURS,
    add_json,
    add_marker,
    add_session,
)
from codex_checkpoints.cli.commands import Commands, refresh, told
from codex_checkpoints.presentation.terminal import plain

if TYPE_CHECKING:
    from codex_checkpoints.service.marking import Markers


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    mark = commands.add("mark", "put a marker on a turn, to come back to", _mark)
    marks = commands.add("marks", "list the markers of a session", _marks)
    unmark = commands.add("unmark", "take a marker away", _unmark)
    relabel = commands.add("relabel", "give a marker another label", _relabel)
    pin = commands.add("pin", "pin a file for state packs, or list what is pinned", _pin)
    unpin = commands.add("unpin", "take a pin away", _pin)
    for added in (mark, marks, unmark, relabel, pin, unpin):
        add_session(added, OF_OURS)
        add_json(added)
    for added in (unmark, relabel):
        add_marker(added)
    mark.add_argument("--label", metavar="LABEL", required=True, help="what to call it")
    mark.add_argument("--turn", metavar="TURN", help=f"{A_TURN}; else the last one that ended")
    relabel.add_argument("label", metavar="LABEL", help="what to call it from now on")
    path = "a file in the session's folder, or lines of it: src/a.py#L3-L9"
    pin.add_argument("path", metavar="PATH", nargs="?", help=path)
    unpin.add_argument("path", metavar="PATH", help=path)


def _mark(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts

    refresh(house)
    placed = _markers(house).mark(options.session, options.label, options.turn)
    record = answers.marker(placed)
    return told(options, record, texts.marker_lines([record], width=output.width()))


def _marks(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts

    refresh(house)
    record = answers.marker_list(_markers(house).marks(options.session))
    return told(options, record, texts.marker_lines(record.items, width=output.width()))


def _unmark(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    gone = _markers(house).unmark(options.session, options.checkpoint)
    record = protocol.Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return told(options, record, [plain(f"removed: {gone.label}")])


def _relabel(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts

    refresh(house)
    placed = _markers(house).relabel(options.session, options.checkpoint, options.label)
    record = answers.marker(placed)
    return told(options, record, texts.marker_lines([record], width=output.width()))


def _pin(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts

    refresh(house)
    markers = _markers(house)
    if options.path is None:
        pins = markers.pins(options.session)
    else:
        change = markers.pin if options.command == "pin" else markers.unpin
        pins = change(options.session, options.path)
    record = answers.pin_list(pins)
    return told(options, record, texts.pin_lines(record))


def _markers(house: House) -> Markers:
    from codex_checkpoints.service.marking import Markers

    return Markers(house.sessions, stamps.now, stamps.new_id)
