"""Markers, pins and hints: saved points of a session, and the files that a restore offers.

Lines are only added to `markers.jsonl`.  A marker names a turn and never moves (AGN-83).  It holds
a label, a time and the hashes of files, no text of the conversation (AGN-8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from attrs import evolve

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout.fields import object_of, renew, text_of
from codex_checkpoints.core.rollout.paths import encoded
from codex_checkpoints.core.rollout.turns import Turns
from codex_checkpoints.values import frozen

Origin = Literal["user", "compaction"]
"""Who made a marker: a person, or a compaction that was about to happen."""

MAX_PINS = 64
"""The most pins of a session; a further one replaces the oldest."""


@frozen
class Marker:
    """A saved point on one turn; `hashes` are those of the active files at that time.

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
class MarkerSet:
    """The markers of a session, the oldest first, and its pins, the newest last."""

    markers: tuple[Marker, ...] = ()
    pins: tuple[Pin, ...] = ()

    def find(self, checkpoint_id: str) -> Marker | None:
        """Return the marker with this id, or None."""
        return next((each for each in self.markers if each.checkpoint_id == checkpoint_id), None)


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
    """Return the line that removes a marker; notes and branches stay (AGN-3)."""
    return {"type": "removed", "checkpointId": checkpoint_id, "at": at}


def pinned(pin: Pin, at: str) -> dict[str, Any]:
    """Return the line that pins a file or lines of one."""
    return {"type": "pinned"} | kept.write(pin) | {"at": at}


def unpinned(pin: Pin, at: str) -> dict[str, Any]:
    """Return the line that takes a pin away."""
    return {"type": "unpinned"} | kept.write(pin) | {"at": at}


def marker_set_of(lines: Iterable[object]) -> MarkerSet:
    """Read the lines of `markers.jsonl`, each a JSON value; other values are ignored.

    The first line about an id makes the marker: another cannot move it.  The id of a removed marker
    is not used again.
    """
    markers: dict[str, Marker | None] = {}
    pins: dict[Pin, None] = {}
    for line in lines:
        fields = object_of(line)
        name = text_of(fields.get("checkpointId"))
        match fields.get("type"):
            case "created":
                marker = kept.read_or_none(fields, Marker)
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
                _pin(pins, kept.read_or_none(fields, Pin))
            case "unpinned":
                pin = kept.read_or_none(fields, Pin)
                if pin is not None:
                    pins.pop(pin, None)
            case _:
                pass
    return MarkerSet(tuple(marker for marker in markers.values() if marker), tuple(pins))


def _pin(pins: dict[Pin, None], pin: Pin | None) -> None:
    if pin is None or not 0 < len(pin.uri) <= MAX_URI_CHARS:
        return
    if pin.start is None or pin.end is None:
        if pin.start != pin.end:
            return
    elif not 1 <= pin.start <= pin.end:
        return
    renew(pins, pin, None, MAX_PINS)


def is_detached(marker: Marker, turns: Turns) -> bool:
    """Return whether the turn of a marker no longer counts in the turns of its session."""
    return all(turn.turn_id != marker.turn_id for turn in turns.counting())


def copied(
    source: MarkerSet, source_id: str, branch_id: str, kept: Iterable[str] | None
) -> MarkerSet:
    """Return the markers and pins of its source that a branch begins with.

    `kept` are the turns of a soft branch, which keep their ids (AGN-12): their markers become the
    branch's own, others stay behind.  None is a hard restore, which has no turn of its source: all
    markers stay references to their sessions.
    """
    if kept is None:
        return source
    own = {(source_id, turn_id) for turn_id in kept}  # a turn id alone is never unique (AGN-11)
    markers = (
        evolve(marker, session_id=branch_id)
        for marker in source.markers
        if (marker.session_id, marker.turn_id) in own
    )
    return MarkerSet(tuple(markers), source.pins)


def lines_of(source: MarkerSet, at: str) -> list[dict[str, Any]]:
    """Return the lines that make a set of markers; pins get the given time."""
    return [created(marker) for marker in source.markers] + [pinned(pin, at) for pin in source.pins]


Verdict = Literal["authoritative", "helpful", "noise"]

MAX_ITEMS = 64
"""The most artifacts that are judged at once."""


@frozen
class Hint:
    """The verdict on one artifact, by its uri."""

    uri: str
    verdict: Verdict
    suppress_on_hard_restore: bool = False
    pin_for_restore: bool = False


def problems_in(hints: Iterable[Hint]) -> tuple[str, ...]:
    """Return why hints cannot be stored, each problem with its place."""
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
    """Return the newest hint of each artifact, in the order of the lines."""
    found: dict[str, Hint] = {}
    for line in lines:
        fields = object_of(line)
        hint = kept.read_or_none(fields, Hint) if fields.get("type") == "hint" else None
        if hint is not None:
            found.pop(hint.uri, None)
            found[hint.uri] = hint
    return tuple(found.values())
