"""Markers and pins: the saved points of a session, and the files kept at hand for a restore.

`markers.jsonl` only grows; `shelf_of` folds its lines.  A marker names a turn and never moves: when
its turn is rolled back it is detached, and still says what the session was like then (AGN-83).
It holds a label, a time and the hashes of files, no text of the conversation (AGN-8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from attrs import evolve

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.fields import Json, object_of
from codex_checkpoints.core.rollout.paths import encoded
from codex_checkpoints.core.rollout.turns import Turns
from codex_checkpoints.values import frozen

Origin = Literal["user", "compaction"]
"""Who wanted a marker: a person, or a compaction that was about to happen."""

MAX_PINS = 64
"""How many pins a session has at most; a further one takes the place of the oldest."""

_NONE: Mapping[str, str] = MappingProxyType({})


@frozen
class Marker:
    """A saved point on one turn; `hashes` are those of the active files as seen when it was made.

    `session_id` is the session of the turn.  In the file of a hard branch that is the source: the
    marker is a reference to it.
    """

    checkpoint_id: str
    session_id: str
    turn_id: str
    label: str
    created_at: str
    origin: Origin = "user"
    hashes: Mapping[str, str] = _NONE


@frozen
class Pin:
    """A file, or lines of one, that every state pack of the session offers."""

    uri: str
    start: int | None = None
    end: int | None = None


@frozen
class MarkerSet:
    """The markers of a session in the order of their making, and its pins, the newest last."""

    markers: tuple[Marker, ...] = ()
    pins: tuple[Pin, ...] = ()

    def find(self, checkpoint_id: str) -> Marker | None:
        """Return a marker, None where there is none of this id."""
        return next((each for each in self.markers if each.checkpoint_id == checkpoint_id), None)


# --- lines -----------------------------------------------------------------------------------


def label_of(text: str) -> str:
    """Return a label as it is stored: a value (rules, "Text of values"); it may be empty."""
    return value(text, MAX_VALUE_CHARS)


def created(marker: Marker) -> dict[str, Any]:
    """Return the line that makes a marker."""
    return {"type": "created"} | kept.write(evolve(marker, label=label_of(marker.label)))


def renamed(checkpoint_id: str, label: str, at: str) -> dict[str, Any]:
    """Return the line that gives a marker another label."""
    label = label_of(label)
    return {"type": "renamed", "checkpointId": checkpoint_id, "label": label, "at": at}


def removed(checkpoint_id: str, at: str) -> dict[str, Any]:
    """Return the line that takes a marker away; notes and branches stay (AGN-3)."""
    return {"type": "removed", "checkpointId": checkpoint_id, "at": at}


def pinned(pin: Pin, at: str) -> dict[str, Any]:
    """Return the line that pins a file or lines of one."""
    return {"type": "pinned"} | kept.write(pin) | {"at": at}


def unpinned(pin: Pin, at: str) -> dict[str, Any]:
    """Return the line that takes a pin away."""
    return {"type": "unpinned"} | kept.write(pin) | {"at": at}


def shelf_of(lines: Iterable[object]) -> MarkerSet:
    """Fold the lines of `markers.jsonl`, each a JSON value; what is no such line is passed over.

    The first line about an id makes the marker: another cannot move it.  An id that was taken away
    is not used again.
    """
    markers: dict[str, Marker | None] = {}
    pins: dict[Pin, None] = {}
    for line in lines:
        told = object_of(line)
        match told.get("type"):
            case "created":
                marker = kept.read_or_none(told, Marker)
                if marker is not None:
                    made = evolve(marker, label=label_of(marker.label))
                    markers.setdefault(marker.checkpoint_id, made)
            case "renamed":
                _rename(markers, told)
            case "removed":
                name = told.get("checkpointId")
                if isinstance(name, str) and name in markers:
                    markers[name] = None
            case "pinned":
                _pin(pins, told)
            case "unpinned":
                pin = kept.read_or_none(told, Pin)
                if pin is not None:
                    pins.pop(pin, None)
            case _:
                pass
    return MarkerSet(tuple(marker for marker in markers.values() if marker), tuple(pins))


def _rename(markers: dict[str, Marker | None], told: Json) -> None:
    name, label = told.get("checkpointId"), told.get("label")
    marker = markers.get(name) if isinstance(name, str) else None
    if marker is not None and isinstance(label, str):
        markers[marker.checkpoint_id] = evolve(marker, label=label_of(label))


def _pin(pins: dict[Pin, None], told: Json) -> None:
    pin = kept.read_or_none(told, Pin)
    if pin is None or not _is_sound(pin):
        return
    pins.pop(pin, None)
    pins[pin] = None
    if len(pins) > MAX_PINS:
        del pins[next(iter(pins))]


def _is_sound(pin: Pin) -> bool:
    if pin.start is None or pin.end is None:
        return pin.start is None and pin.end is None and 0 < len(pin.uri) <= MAX_URI_CHARS
    return 1 <= pin.start <= pin.end and 0 < len(pin.uri) <= MAX_URI_CHARS


# --- what becomes of them ----------------------------------------------------------------------


def is_detached(marker: Marker, turns: Turns) -> bool:
    """Return whether the turn of a marker no longer counts in the turns of its session."""
    return all(turn.turn_id != marker.turn_id for turn in turns.counting())


def copied(
    shelf: MarkerSet, source_id: str, branch_id: str, kept: Iterable[str] | None
) -> MarkerSet:
    """Return the markers and pins of its source that a branch begins with.

    `kept` are the turns that are part of the branch: all up to the cut in a soft restore, where a
    turn keeps its id (AGN-12).  Their markers become the branch's own, and no other goes along.
    None is a hard restore, which has no turn of its source: all markers stay references to the
    sessions that they belong to.
    """
    if kept is None:
        return shelf
    own = {(source_id, turn_id) for turn_id in kept}  # a turn id alone is never unique (AGN-11)
    markers = (
        evolve(marker, session_id=branch_id)
        for marker in shelf.markers
        if (marker.session_id, marker.turn_id) in own
    )
    return MarkerSet(tuple(markers), shelf.pins)


def lines_of(shelf: MarkerSet, at: str) -> list[dict[str, Any]]:
    """Return the lines that make a shelf; pins are made at the given time."""
    return [created(marker) for marker in shelf.markers] + [pinned(pin, at) for pin in shelf.pins]


Verdict = Literal["authoritative", "helpful", "noise"]

MAX_ITEMS = 64
"""How many artifacts are judged at once."""


@frozen
class Hint:
    """What was found of one artifact, by its uri."""

    uri: str
    verdict: Verdict
    suppress_on_hard_restore: bool = False
    pin_for_restore: bool = False


def problems_in(hints: Iterable[Hint]) -> tuple[str, ...]:
    """Return what keeps hints from being stored, each with its place."""
    found: list[str] = []
    seen: set[str] = set()
    for place, hint in enumerate(hints):
        at = f"items[{place}]"
        if place >= MAX_ITEMS:
            return (*found, f"items: more than {MAX_ITEMS}")
        if not 0 < len(hint.uri) <= MAX_URI_CHARS or encoded(hint.uri) != hint.uri:
            found.append(f"{at}.uri: must be 1 to {MAX_URI_CHARS} plain characters")
        if hint.verdict not in get_args(Verdict):
            found.append(f"{at}.verdict: must be one of {', '.join(get_args(Verdict))}")
        if hint.uri in seen:
            found.append(f"{at}.uri: stands twice")
        if hint.suppress_on_hard_restore and hint.pin_for_restore:
            found.append(f"{at}: cannot be suppressed and pinned")
        seen.add(hint.uri)
    return tuple(found) if seen else ("items: must not be empty",)


def line_of(hint: Hint, at: str) -> dict[str, Any]:
    """Return the line that keeps a hint."""
    return {"type": "hint"} | kept.write(hint) | {"at": at}


def hints_in(lines: Iterable[object]) -> tuple[Hint, ...]:
    """Return the newest hint of each artifact, in the order in which they came."""
    found: dict[str, Hint] = {}
    for line in lines:
        told: Mapping[str, object] = object_of(line)
        hint = kept.read_or_none(told, Hint) if told.get("type") == "hint" else None
        if hint is not None:
            found.pop(hint.uri, None)
            found[hint.uri] = hint
    return tuple(found.values())
