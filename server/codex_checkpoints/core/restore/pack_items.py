"""Names a turn, the sessions above one, and the items of a pack."""

from __future__ import annotations

from typing import Literal

from attrs import frozen


@frozen
class TurnSource:
    """A turn and its session."""

    session_id: str
    turn_id: str


LinkKind = Literal["restore", "compaction", "revert", "subagent", "pull", "fork", "import"]
"""How a child came from its parent."""


@frozen
class Parent:
    """A session above, and the turn where the lower one left it; only a restore always has one."""

    session_id: str
    turn_id: str | None


@frozen
class Ancestor:
    """One step up: a session, its parent and how it came from it; only a restore has a marker."""

    session_id: str
    source_turn: Parent
    checkpoint_id: str | None
    kind: LinkKind = "restore"


Part = Literal["notice", "mode", "notes", "files", "pinned", "commands", "window", "digest"]
"""The parts of a pack in their order (AGN-52)."""


@frozen
class Item:
    """One thing in the contents, with the part of a pack that it belongs to."""

    part: Part
    id: str


Reason = Literal["budget", "filtered", "evicted", "missing", "no_lines", "unreadable", "bound"]


@frozen
class Deferred:
    """One thing that a pack leaves out or shortens.

    `reason` is `budget`, `filtered` (a finished step, a superseded decision), `evicted` (newer ones
    took its place), `missing` (a pinned file that does not exist), `no_lines` (it has no such
    lines), `unreadable`, or `bound` (longer than it may be: it is shortened).
    """

    part: Part
    id: str
    reason: Reason


def pin_id(uri: str, start: int | None, end: int | None) -> str:
    """Return the id of a pinned file: its name, with the lines if the pin has some."""
    return uri if start is None else f"{uri}#L{start}-L{end}"
