"""`mark`, `marks`, `unmark`, `relabel`, `pin`, `unpin`: where to come back to, and with what.

`hints` keeps what an agent found of the artifacts that it was handed.
"""

from __future__ import annotations

import argparse

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    A_TURN,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_marker,
    add_session,
    told,
    wrong,
)
from codex_checkpoints.presentation.terminal import plain


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

    about = "keep or list what an agent found of the artifacts it was handed"
    hints = commands.add("hints", about, _hints)
    add_session(hints, OF_OURS)
    hints.add_argument("items", metavar="JSON", nargs="?", help='[{"uri": …, "verdict": …}, …]')
    add_json(hints)


def _mark(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import MarkParams, mark
    from codex_checkpoints.presentation.restores import marker_lines

    services.look_around()
    record = mark(services, MarkParams(options.session, options.label, options.turn))
    return told(options, record, marker_lines([record], width=output.width()))


def _marks(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import marks
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.restores import marker_lines

    services.look_around()
    record = marks(services, SessionParams(options.session))
    return told(options, record, marker_lines(record.items, width=output.width()))


def _unmark(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import Unmarked, UnmarkParams, taken_away

    services.look_around()
    gone = taken_away(services, UnmarkParams(options.session, options.checkpoint))
    record = Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return told(options, record, [plain(f"removed: {gone.label}")])


def _relabel(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import RelabelParams, relabel
    from codex_checkpoints.presentation.restores import marker_lines

    services.look_around()
    params = RelabelParams(options.session, options.checkpoint, options.label)
    record = relabel(services, params)
    return told(options, record, marker_lines([record], width=output.width()))


def _pin(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import PinParams, pin, pins, unpin
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.restores import pin_lines

    services.look_around()
    if options.path is None:
        record = pins(services, SessionParams(options.session))
    else:
        change = pin if options.command == "pin" else unpin
        record = change(services, PinParams(options.session, options.path))
    return told(options, record, pin_lines(record))


def _hints(options: argparse.Namespace, services: Terminal) -> int:
    import orjson

    from codex_checkpoints import wire
    from codex_checkpoints.operations.marking import HintsParams, hints

    services.look_around()
    params = HintsParams(options.session)
    if options.items is not None:
        try:
            items = {"sessionId": options.session, "items": orjson.loads(options.items)}
            params = wire.structure(items, HintsParams)
        except ValueError as error:
            problems = (
                error.problems if isinstance(error, wire.BadParams) else ["the hints are not JSON"]
            )
            raise wrong("; ".join(problems)) from None
    record = hints(services, params)
    lines = [plain(f"{each.verdict}  {each.uri}") for each in record.items]
    return told(options, record, lines or ["No hints."])
