"""`hints`: what an agent found of the artifacts that it was handed."""

from __future__ import annotations

import argparse

from codex_checkpoints import protocol, stamps, wire
from codex_checkpoints.assembly import House
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_session, wrong
from codex_checkpoints.cli.commands import Commands, refresh, told
from codex_checkpoints.presentation.terminal import plain


def add(commands: Commands) -> None:
    """Add the command of this module."""
    about = "keep or list what an agent found of the artifacts it was handed"
    hints = commands.add("hints", about, _hints)
    add_session(hints, OF_OURS)
    hints.add_argument("items", metavar="JSON", nargs="?", help='[{"uri": …, "verdict": …}, …]')
    add_json(hints)


def _hints(options: argparse.Namespace, house: House) -> int:
    import orjson

    from codex_checkpoints.core.restore.feedback import Hint
    from codex_checkpoints.service.hinting import Hints

    refresh(house)
    hints = Hints(house.sessions, stamps.now)
    if options.items is None:
        found = hints.given(options.session)
    else:
        try:
            items = {"sessionId": options.session, "items": orjson.loads(options.items)}
            asked = wire.structure(items, protocol.HintsParams).items or ()
        except ValueError as error:
            problems = (
                error.problems if isinstance(error, wire.BadParams) else ["the hints are not JSON"]
            )
            raise wrong("; ".join(problems)) from None
        found = hints.give(options.session, [wire.filled(Hint, each) for each in asked])
    record = protocol.HintList(tuple(wire.filled(protocol.Hint, each) for each in found), None)
    lines = [plain(f"{each.verdict}  {each.uri}") for each in found]
    return told(options, record, lines or ["No hints."])
