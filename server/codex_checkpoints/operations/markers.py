"""Sets and lists markers and pins."""

from __future__ import annotations

from typing import TypeVar

from attrs import frozen

from codex_checkpoints.core.restore import markers
from codex_checkpoints.core.restore.markers import AnyPin
from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.service.markers import Markers, PinKind, PlacedMarker
from codex_checkpoints.service.refusal import misfit

T = TypeVar("T")


@frozen
class MarkParams:
    """A session, a label, and the turn to mark; null is the last one that has ended."""

    session_id: str
    label: str
    turn_id: str | None = None


@frozen
class Marker:
    """A saved point on a turn; `origin` is `user` or `compaction`.

    `turnNumber` is null for a turn that was rolled back (`detached`) or of another session.
    `remark` is `cut_off` if the turn of a new marker was cut off.
    """

    checkpoint_id: str
    session_id: str
    turn_id: str
    label: str
    created_at: str
    origin: str
    turn_number: int | None
    detached: bool
    remark: str | None = None


@frozen
class MarkerList:
    """The markers of a session in the order of their making."""

    items: tuple[Marker, ...]
    next_cursor: str | None


@frozen
class UnmarkParams:
    """A session, and a marker by its id or a unique beginning of it."""

    session_id: str
    checkpoint_id: str


@frozen
class Unmarked:
    """A marker that was removed."""

    session_id: str
    checkpoint_id: str
    removed: bool


@frozen
class RelabelParams:
    """A session, a marker of it, and its new label."""

    session_id: str
    checkpoint_id: str
    label: str


@frozen
class PinParams:
    """A session, and one of four: a file, a message, a note, or a text of the user's own.

    `path` is a file in the folder of the session, or lines of it (`src/a.py#L3-L9`); `message` a
    reference as for `checkpoints/recall`; `note` the key of a fact or the id of a decision.
    """

    session_id: str
    path: str | None = None
    message: str | None = None
    note: str | None = None
    text: str | None = None


@frozen
class Pin:
    """A file, or lines of it, or else a message by its anchor, a note, or a text."""

    uri: str | None = None
    start: int | None = None
    end: int | None = None
    message: str | None = None
    note: str | None = None
    text: str | None = None


@frozen
class PinList:
    """The pins of a session, the newest last."""

    items: tuple[Pin, ...]
    next_cursor: str | None


def mark(services: Services, params: MarkParams) -> Marker:
    """Put a marker on a turn."""
    placed = Markers(services.sessions).mark(params.session_id, params.label, params.turn_id)
    return _marker(_changed(services, params, placed))


def marks(services: Services, params: SessionParams) -> MarkerList:
    """Return the markers of a session."""
    placed = Markers(services.sessions).marks(params.session_id)
    return MarkerList(tuple(map(_marker, placed)), None)


def unmark(services: Services, params: UnmarkParams) -> Unmarked:
    """Remove a marker."""
    gone = taken_away(services, params)
    return Unmarked(gone.session_id, gone.checkpoint_id, removed=True)


def taken_away(services: Services, params: UnmarkParams) -> markers.Marker:
    """Remove a marker; return its last state."""
    gone = Markers(services.sessions).unmark(params.session_id, params.checkpoint_id)
    return _changed(services, params, gone)


def relabel(services: Services, params: RelabelParams) -> Marker:
    """Rename a marker."""
    placed = Markers(services.sessions).relabel(
        params.session_id, params.checkpoint_id, params.label
    )
    return _marker(_changed(services, params, placed))


def pin(services: Services, params: PinParams) -> PinList:
    """Pin a file, a message, a note or a text."""
    found = Markers(services.sessions).pin(params.session_id, *_named(params))
    return _pins(_changed(services, params, found))


def unpin(services: Services, params: PinParams) -> PinList:
    """Remove a pin."""
    found = Markers(services.sessions).unpin(params.session_id, *_named(params))
    return _pins(_changed(services, params, found))


def pins(services: Services, params: SessionParams) -> PinList:
    """Return the pins of a session."""
    return _pins(Markers(services.sessions).pins(params.session_id))


def _named(params: PinParams) -> tuple[PinKind, str]:
    """Return the kind and the name of a pin; refuses `invalid_payload`."""
    named: tuple[tuple[PinKind, str | None], ...] = (
        ("path", params.path),
        ("message", params.message),
        ("note", params.note),
        ("text", params.text),
    )
    given: list[tuple[PinKind, str]] = [(kind, name) for kind, name in named if name is not None]
    if len(given) != 1:
        raise misfit("one of path, message, note and text must be there, and no other")
    return given[0]


def _pins(found: tuple[AnyPin, ...]) -> PinList:
    return PinList(tuple(map(_pin, found)), None)


def _pin(found: AnyPin) -> Pin:
    if isinstance(found, markers.Pin):
        return Pin(
            uri=found.uri, start=found.start, end=found.end, message=None, note=None, text=None
        )
    message, note, text = (
        found.value if found.kind == kind else None for kind in ("message", "note", "text")
    )
    return Pin(message=message, note=note, text=text)


def _marker(placed: PlacedMarker) -> Marker:
    marker = placed.marker
    return Marker(
        checkpoint_id=marker.checkpoint_id,
        session_id=marker.session_id,
        turn_id=marker.turn_id,
        label=marker.label,
        created_at=marker.created_at,
        origin=marker.origin,
        detached=placed.detached,
        remark=placed.remark,
        turn_number=placed.turn,
    )


def _changed(
    services: Services, params: MarkParams | UnmarkParams | RelabelParams | PinParams, found: T
) -> T:
    """Report the change of a session, and return the result."""
    services.changed((services.sessions.find(params.session_id).session_id,), "markers")
    return found
