"""Requests about markers and pins; whoever changes one tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from codex_checkpoints import protocol, stamps
from codex_checkpoints.answers import restores as answers
from codex_checkpoints.core.restore.feedback import Hint
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.hinting import Hints
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.wire import filled

T = TypeVar("T")


async def mark(desk: Desk, params: protocol.MarkParams) -> protocol.Marker:
    """Put a marker on a turn."""
    markers = await _markers(desk)
    placed = await _marked(
        desk, params.session_id, markers.mark, params.session_id, params.label, params.turn_id
    )
    return answers.marker(placed)


async def marks(desk: Desk, params: protocol.SessionParams) -> protocol.MarkerList:
    """Answer with the markers of a session."""
    markers = await _markers(desk)
    return answers.marker_list(await desk.work(markers.marks, params.session_id))


async def unmark(desk: Desk, params: protocol.UnmarkParams) -> protocol.Unmarked:
    """Take a marker away."""
    markers = await _markers(desk)
    gone = await _marked(
        desk, params.session_id, markers.unmark, params.session_id, params.checkpoint_id
    )
    return protocol.Unmarked(gone.session_id, gone.checkpoint_id, removed=True)


async def relabel(desk: Desk, params: protocol.RelabelParams) -> protocol.Marker:
    """Call a marker something else."""
    markers = await _markers(desk)
    marker = params.checkpoint_id
    placed = await _marked(
        desk, params.session_id, markers.relabel, params.session_id, marker, params.label
    )
    return answers.marker(placed)


async def pin(desk: Desk, params: protocol.PinParams) -> protocol.PinList:
    """Pin a file."""
    markers = await _markers(desk)
    pins = await _marked(desk, params.session_id, markers.pin, params.session_id, params.path)
    return answers.pin_list(pins)


async def unpin(desk: Desk, params: protocol.PinParams) -> protocol.PinList:
    """Take a pin away."""
    markers = await _markers(desk)
    pins = await _marked(desk, params.session_id, markers.unpin, params.session_id, params.path)
    return answers.pin_list(pins)


async def pins(desk: Desk, params: protocol.SessionParams) -> protocol.PinList:
    """Answer with the pins of a session."""
    markers = await _markers(desk)
    return answers.pin_list(await desk.work(markers.pins, params.session_id))


async def _markers(desk: Desk) -> Markers:
    return Markers(await desk.ready(), stamps.now, stamps.new_id)


async def _marked(desk: Desk, session: str, change: Callable[..., T], *arguments: Any) -> T:
    """Change the markers or pins of a session, and tell it."""
    changed = await desk.work(change, *arguments)
    row = await desk.work((await desk.ready()).find, session)
    desk.tell((row.session_id,), "markers")
    return changed


async def hints(desk: Desk, params: protocol.HintsParams) -> protocol.HintList:
    """Answer with the hints about artifacts, after keeping those that came."""
    kept = Hints(await desk.ready(), stamps.now)
    if params.items is None:
        found = await desk.work(kept.given, params.session_id)
    else:
        items = [filled(Hint, each) for each in params.items]
        found = await desk.work(kept.give, params.session_id, items)
    return protocol.HintList(tuple(filled(protocol.Hint, each) for each in found), None)


HANDLERS: Handlers = {
    "checkpoints/mark": mark,
    "checkpoints/marks": marks,
    "checkpoints/unmark": unmark,
    "checkpoints/relabel": relabel,
    "checkpoints/pin": pin,
    "checkpoints/unpin": unpin,
    "checkpoints/pins": pins,
    "checkpoints/hints": hints,
}
