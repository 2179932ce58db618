"""Markers and pins."""

from __future__ import annotations

from codex_checkpoints.values import frozen


@frozen
class MarkParams:
    """A session, what to call the marker, and its turn; null is the last one that has ended."""

    session_id: str
    label: str
    turn_id: str | None = None


@frozen
class Marker:
    """A saved point on a turn.

    `turnNumber` is the number of the turn now, null for a turn that was rolled back since
    (`detached`) or that is another session's.  `origin` is `user` or `compaction`.
    """

    checkpoint_id: str
    session_id: str
    turn_id: str
    label: str
    created_at: str
    origin: str
    turn_number: int | None
    detached: bool


@frozen
class MarkerList:
    """The markers of a session in the order of their making."""

    items: tuple[Marker, ...]
    next_cursor: str | None


@frozen
class UnmarkParams:
    """A session and a marker of it, by its id or a unique beginning of it."""

    session_id: str
    checkpoint_id: str


@frozen
class Unmarked:
    """A marker that is there no longer."""

    session_id: str
    checkpoint_id: str
    removed: bool


@frozen
class RelabelParams:
    """A session, a marker of it, and what to call it from now on."""

    session_id: str
    checkpoint_id: str
    label: str


@frozen
class PinParams:
    """A session and a file, or lines of it (`src/a.py#L3-L9`), by a path in its folder."""

    session_id: str
    path: str


@frozen
class Pin:
    """A file, or lines of one, that every state pack of the session offers."""

    uri: str
    start: int | None
    end: int | None


@frozen
class PinList:
    """The pins of a session, the newest last."""

    items: tuple[Pin, ...]
    next_cursor: str | None
