"""Keeps markers and pins: saved points of a session, and references that its user keeps.

Lines are only added to `markers.jsonl`.  A marker names a turn and never moves (AGN-83).  It holds
a label, a time and the hashes of files, no text of the conversation (AGN-8); a pinned message is
kept by its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeGuard

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.fields import object_of, renew, text_of
from codex_checkpoints.core.turns import Turns

Origin = Literal["user", "compaction"]
"""Who made a marker: a person, or a compaction that was about to happen."""

MAX_PINS = 64
"""The most pins of a session; a further one replaces the oldest."""

MAX_PINNED_CHARS = 2000
"""Code points of a pinned text."""

_MESSAGE = re.compile(r"#[0-9]{1,15}")


@frozen
class Marker:
    """A saved point on one turn; `hashes` are the hashes of the active files at that time.

    `session_id` is the session of the turn.  A hard branch keeps the session id of its source:
    there the marker is a reference.
    """

    checkpoint_id: str
    session_id: str
    turn_id: str
    label: str
    created_at: str
    origin: Origin = "user"
    hashes: Mapping[str, str] = MappingProxyType({})


@frozen
class Pin:
    """A file, or lines of one, that every state pack of the session offers."""

    uri: str
    start: int | None = None
    end: int | None = None


@frozen
class PinnedWords:
    """Text that every digest of the session quotes.

    `value` is the anchor of a message (`#120`), the key or id of a note, or a text of the user.
    """

    kind: Literal["message", "note", "text"]
    value: str


AnyPin: TypeAlias = Pin | PinnedWords


@frozen
class MarkerSet:
    """The markers of a session, the oldest first, and its pins, the newest last."""

    markers: tuple[Marker, ...] = ()
    pins: tuple[AnyPin, ...] = ()

    @property
    def files(self) -> tuple[Pin, ...]:
        """Return the pins of files."""
        return tuple(pin for pin in self.pins if isinstance(pin, Pin))


def label_of(text: str) -> str:
    """Return a label as it is stored: a value (rules, "Text of values"); it may be empty."""
    return value(text, MAX_VALUE_CHARS)


def created(marker: Marker) -> dict[str, Any]:
    """Return the line that makes a marker."""
    return {"type": "created"} | stored.unstructure(evolve(marker, label=label_of(marker.label)))


def renamed(checkpoint_id: str, label: str, at: str) -> dict[str, Any]:
    """Return the line that gives a marker another label."""
    label = label_of(label)
    return {"type": "renamed", "checkpointId": checkpoint_id, "label": label, "at": at}


def removed(checkpoint_id: str, at: str) -> dict[str, Any]:
    """Return the line that removes a marker; notes and branches stay (AGN-3)."""
    return {"type": "removed", "checkpointId": checkpoint_id, "at": at}


def pinned(pin: AnyPin, at: str) -> dict[str, Any]:
    """Return the line that pins something."""
    return {"type": "pinned"} | stored.unstructure(pin) | {"at": at}


def unpinned(pin: AnyPin, at: str) -> dict[str, Any]:
    """Return the line that takes a pin away."""
    return {"type": "unpinned"} | stored.unstructure(pin) | {"at": at}


def marker_set_of(lines: Iterable[object]) -> MarkerSet:
    """Read the lines of `markers.jsonl`, each a JSON value; other values are ignored.

    The first line about an id makes the marker: another cannot move it.  The id of a removed marker
    is not used again.
    """
    markers: dict[str, Marker | None] = {}
    pins: dict[AnyPin, None] = {}
    for line in lines:
        fields = object_of(line)
        name = text_of(fields.get("checkpointId"))
        match fields.get("type"):
            case "created":
                marker = read_or_none(stored, fields, Marker)
                if marker is not None:
                    made = evolve(marker, label=label_of(marker.label))
                    markers.setdefault(marker.checkpoint_id, made)
            case "renamed":
                label = text_of(fields.get("label"))
                marker = None if name is None else markers.get(name)
                if marker is not None and label is not None:
                    markers[marker.checkpoint_id] = evolve(marker, label=label_of(label))
            case "removed":
                if name is not None and name in markers:
                    markers[name] = None
            case "pinned":
                pin = _pin_in(fields)
                if pin is not None:
                    renew(pins, pin, None, MAX_PINS)
            case "unpinned":
                pin = _pin_in(fields)
                if pin is not None:
                    pins.pop(pin, None)
            case _:
                pass
    return MarkerSet(tuple(marker for marker in markers.values() if marker), tuple(pins))


def _pin_in(fields: Mapping[str, Any]) -> AnyPin | None:
    """Return the pin of a line, None if the line is not one."""
    words = read_or_none(stored, fields, PinnedWords)
    if words is not None:
        fits = words.kind != "message" or _MESSAGE.fullmatch(words.value) is not None
        return words if fits and 0 < len(words.value) <= MAX_PINNED_CHARS else None
    pin = read_or_none(stored, fields, Pin)
    if pin is None or not 0 < len(pin.uri) <= MAX_URI_CHARS:
        return None
    if pin.start is None or pin.end is None:
        return pin if pin.start == pin.end else None
    return pin if 1 <= pin.start <= pin.end else None


def is_detached(marker: Marker, turns: Turns) -> bool:
    """Return whether the turn of a marker does not count any more in its session."""
    return all(turn.turn_id != marker.turn_id for turn in turns.counting())


def copied(  # noqa: PLR0913, PLR0917 - the two sessions, and where they part
    source: MarkerSet,
    source_id: str,
    branch_id: str,
    kept: Iterable[str] | None,
    until: int,
    shift: int = 0,
) -> MarkerSet:
    """Return the markers and pins of its source that a branch begins with.

    `kept` are the turns of a soft branch, which keep their ids (AGN-12): their markers become the
    branch's own, others are not copied.  None is a hard restore, which has no turn of its source:
    all markers stay references to their sessions.  Messages after the `seq` `until` are not copied;
    the branch counts the others `shift` higher.
    """
    pins = tuple(
        PinnedWords("message", f"#{int(pin.value[1:]) + shift}") if _is_message(pin) else pin
        for pin in source.pins
        if not _is_message(pin) or int(pin.value[1:]) <= until
    )
    if kept is None:
        return evolve(source, pins=pins)
    own = {(source_id, turn_id) for turn_id in kept}  # a turn id alone is never unique (AGN-11)
    markers = (
        evolve(marker, session_id=branch_id)
        for marker in source.markers
        if (marker.session_id, marker.turn_id) in own
    )
    return MarkerSet(tuple(markers), pins)


def _is_message(pin: AnyPin) -> TypeGuard[PinnedWords]:
    return isinstance(pin, PinnedWords) and pin.kind == "message"


def lines_of(source: MarkerSet, at: str) -> list[dict[str, Any]]:
    """Return the lines that make a set of markers; pins get the given time."""
    return [created(marker) for marker in source.markers] + [pinned(pin, at) for pin in source.pins]
