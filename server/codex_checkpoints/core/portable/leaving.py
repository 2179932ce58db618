"""Make a pack of a session: what it knows, without the places and the secrets of this machine.

Files outside the session's folder stay behind; a fact that rests on one keeps a sign for it, so
that it is SUSPECT wherever it arrives.  Texts are values as in a checkpoint, cut again after places
were taken out.  Markers lose the hashes of files, notes those that they were accepted with.  Of
every list the newest go.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from attrs import evolve

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.portable.naming import Names
from codex_checkpoints.core.portable.pack import (
    MAX_BYTES,
    MAX_LINEAGE,
    MAX_MARKERS,
    MAX_MODES,
    MAX_NOTES,
    MAX_TURNS,
    NoteEvent,
    Origin,
    Pack,
    PackedMarker,
    PackedTurn,
    Revoked,
    is_id,
    is_time,
    to_bytes,
)
from codex_checkpoints.core.portable.places import places_of
from codex_checkpoints.core.restore.chains import Link
from codex_checkpoints.core.restore.markers import Shelf, label_of
from codex_checkpoints.core.restore.trace import ModeChange
from codex_checkpoints.values import frozen


@frozen
class Luggage:
    """What there is of a session, in the terms of this machine."""

    origin: Origin
    base: str | None
    checkpoint: Checkpoint
    history: tuple[NoteEvent, ...]
    shelf: Shelf
    lineage: tuple[Link, ...]
    turns: tuple[PackedTurn, ...] = ()
    modes: tuple[ModeChange, ...] = ()


@frozen
class Left:
    """How much stayed behind."""

    outside_folder: int = 0
    older_notes: int = 0
    older_markers: int = 0
    older_turns: int = 0


def note_events(updates: Iterable[Update]) -> tuple[NoteEvent, ...]:
    """Return accepted updates as the history of notes, in their order."""
    return tuple(filter(None, map(_event, updates)))


def _event(update: Update) -> NoteEvent | None:
    revoked = None
    if update.revokes is not None:
        match update.revokes:
            case ("fact" | "decision") as kind, str(name):
                revoked = Revoked(kind, name)
            case _:
                return None
    return NoteEvent(update.seq, update.turn_id, update.at, update.payload, revoked)


def _is_plain(marker: PackedMarker) -> bool:
    ids = marker.checkpoint_id, marker.session_id, marker.turn_id
    return all(map(is_id, ids)) and label_of(marker.label) != ""


def _turns(told: Iterable[PackedTurn]) -> list[PackedTurn]:
    """Return the turns that have plain names, each once."""
    found: dict[tuple[str, str], PackedTurn] = {}
    for turn in told:
        if is_id(turn.session_id) and is_id(turn.turn_id):
            found.setdefault((turn.session_id, turn.turn_id), turn)
    return list(found.values())


def _modes(told: Iterable[ModeChange], seq: int) -> tuple[ModeChange, ...]:
    """Return the changes of the mode up to the checkpoint at `seq`, in order."""
    found: list[ModeChange] = []
    for change in told:
        least = found[-1].seq if found else 0
        if change.mode and least <= change.seq <= seq:
            found.append(change)
    return tuple(found[-MAX_MODES:])


def packed(luggage: Luggage, homes: Iterable[str]) -> tuple[Pack, Left]:
    """Return the pack of a session and what it lacks; `homes` are folders of persons here."""
    names = Names(luggage.checkpoint, luggage.history, luggage.base, places_of(luggage.base, homes))
    history = tuple(names.note(each) for each in luggage.history)
    notes = history[max(0, len(history) - MAX_NOTES) :]
    dated = (each for each in luggage.shelf.markers if is_time(each.created_at))
    markers = [each for each in map(names.marker, dated) if _is_plain(each)]
    markers = markers[max(0, len(markers) - MAX_MARKERS) :]
    named = _turns(map(names.turn, luggage.turns))
    turns = tuple(named[-MAX_TURNS:])
    modes = _modes(map(names.mode, luggage.modes), luggage.checkpoint.seq)
    way = map(names.link, luggage.lineage[:MAX_LINEAGE])
    pins = tuple(pin for pin in luggage.shelf.pins if not names.stays(pin.uri))
    pack = Pack(
        names.origin(luggage.origin),
        names.checkpoint(luggage.checkpoint),
        turns,
        notes,
        modes,
        tuple(markers),
        pins,
        tuple(takewhile(lambda link: is_id(link.child) and is_id(link.parent), way)),
    )
    while pack.notes and len(to_bytes(pack)) > MAX_BYTES:
        pack = evolve(pack, notes=pack.notes[len(pack.notes) // 2 + 1 :])
    while pack.turns and len(to_bytes(pack)) > MAX_BYTES:
        pack = evolve(pack, turns=pack.turns[len(pack.turns) // 2 + 1 :])
    left = Left(
        len(names.outside) + len(luggage.shelf.pins) - len(pins),
        len(history) - len(pack.notes),
        len(luggage.shelf.markers) - len(markers),
        len(luggage.turns) - len(pack.turns),
    )
    return pack, left
