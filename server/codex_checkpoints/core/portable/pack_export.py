"""Makes a pack of a session, without the places and the secrets of this machine.

Files outside the session's folder are left out; a fact that depends on one gets a sign for it, so
it is SUSPECT on every machine.  Of every list the newest entries are packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    IMPORTED,
    MAX_VALUE_CHARS,
    Artifact,
    Checkpoint,
    Fact,
    evidence_in,
)
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.fields import is_list, is_object, list_of, object_of
from codex_checkpoints.core.portable.pack import (
    LISTS,
    MAX_BYTES,
    NoteEvent,
    Pack,
    PackedLink,
    PackedMarker,
    PackedTurn,
    PackOrigin,
    PlacePatterns,
    RevokedNote,
    is_id,
    is_time,
    is_version,
    packs,
    places_of,
    stays,
    to_bytes,
)
from codex_checkpoints.core.portable.pack_import import is_order, policies
from codex_checkpoints.core.restore.lineage import Link
from codex_checkpoints.core.restore.markers import MarkerSet, label_of
from codex_checkpoints.core.restore.references import ModeChange

T = TypeVar("T")

_TEXTS = ("value", "topic", "decision", "rationale", "text", "name", "model", "mode", "label")
_NAMES = (
    *("id", "key", "decisionId", "supersedes", "sessionId", "turnId", "checkpointId"),
    *("child", "parent"),
)
_TIMES = ("startedAt", "endedAt", "at")
_BY_NAME = frozenset({"done", "facts"})
"""Objects whose keys are names."""


class Names:
    """Renames the things of one session; `outside` maps the omitted files to signs."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        history: Iterable[NoteEvent],
        base: str | None,
        places: PlacePatterns,
    ) -> None:
        self._places = places
        self._base = base
        files = {uri for uri, each in checkpoint.artifacts.items() if each.kind == "file"}
        self._others = checkpoint.artifacts.keys() - files
        resting = {each.uri for fact in checkpoint.facts.values() for each in fact.depends_on}
        evidence = {each.ref for each in evidence_in(checkpoint) if each.source == "file"}
        noted = {uri for event in history for uri in _uris_in(event.payload)}
        self._files = files | evidence
        # Other names in notes may be files or commands; check them as texts, too.
        others = (resting | noted) - self._files - self._others
        outside = sorted(
            {uri for uri in self._files if self.stays(uri)}
            | {uri for uri in checkpoint.artifacts if is_order(uri)}  # which no `import` takes
            | {uri for uri in others if self.stays(uri) or places.shows_in(uri)}
        )
        self.outside = {uri: f"outside:{number}" for number, uri in enumerate(outside, 1)}
        self._rules = {
            **dict.fromkeys(_TEXTS, self.text),
            **dict.fromkeys(_NAMES, self.name),
            **dict.fromkeys(_TIMES, _time),
            "uri": self.uri,
        }

    def stays(self, uri: str) -> bool:
        """Return whether the name of a file must not leave this machine."""
        return stays(uri, self._base, self._places)

    def text(self, text: str) -> str:
        """Return a text as a value without places."""
        return value(self._places.without(text), MAX_VALUE_CHARS)

    def name(self, text: str) -> str:
        """Return an id or a key; the word `home` replaces a place."""
        return self._places.without(text).replace("~", "home") if text else text

    def uri(self, uri: str) -> str:
        """Return the name of an artifact; a file outside has its sign, one inside its name."""
        if uri in self._files:
            return self.outside.get(uri, uri)
        return self.outside.get(uri) or self._places.without(uri)

    def of(self, record: T) -> T:
        """Return a record as it may leave, except the artifacts of a checkpoint."""
        return packs.structure(self._leaving(packs.unstructure(record)), type(record))

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a checkpoint without the files outside."""
        artifacts: dict[str, Artifact] = {}
        for artifact in sorted(checkpoint.artifacts.values(), key=lambda each: each.uri):
            if artifact.uri in self.outside:
                continue
            named = evolve(artifact, uri=self.uri(artifact.uri), seen_hash=None)
            known = artifacts.get(named.uri)
            # Two commands may differ only in places: the newest counts.
            if known is None or known.last_observed_seq < named.last_observed_seq:
                artifacts[named.uri] = named
        recent = (uri for uri in checkpoint.recent_artifacts if uri not in self.outside)
        return evolve(
            self.of(evolve(checkpoint, artifacts={}, recent_artifacts=())),
            artifacts=artifacts,
            recent_artifacts=tuple(dict.fromkeys(map(self.uri, recent))),
        )

    def _leaving(self, part: object, key: str = "", *, noted: bool = False) -> object:
        """Return a JSON value with each of its texts by the rule of its key.

        A payload, which is `noted`, has no hashes; an unknown text in it is taken for a name.
        """
        if isinstance(part, str):
            rule = self._rules.get(key, self.name if noted else None)
            return part if rule is None else rule(part)
        if is_list(part):
            return [self._leaving(each, key, noted=noted) for each in part]
        if not is_object(part):
            return part
        if key in _BY_NAME:
            return {self.name(name): self._leaving(part[name], noted=noted) for name in part}
        left: dict[str, object] = {}
        for name, found in part.items():
            if isinstance(found, str) and name == "ref":
                left[name] = (self.uri if part.get("source") == "file" else self.name)(found)
            elif not (noted and name == "hash"):
                known = self.name(name) if noted else name
                left[known] = self._leaving(found, name, noted=noted or name == "payload")
        return left


def _time(at: str) -> str | None:
    return at if is_time(at) else None


def _plain(name: str | None) -> str | None:
    return name if name is not None and is_id(name) else None


def _uris_in(payload: Mapping[str, object] | None) -> Iterable[str]:
    fields = object_of(payload)
    evidence = object_of(fields.get("evidence"))
    uris = [object_of(each).get("uri") for each in list_of(fields.get("dependsOn"))]
    uris += [evidence.get("ref")] if evidence.get("source") == "file" else []
    return (uri for uri in uris if isinstance(uri, str))


@frozen
class SessionContents:
    """The contents of a session for a pack, with the names of this machine."""

    origin: PackOrigin
    base: str | None
    checkpoint: Checkpoint
    history: tuple[NoteEvent, ...]
    marker_set: MarkerSet
    lineage: tuple[Link, ...]
    turns: tuple[PackedTurn, ...] = ()
    modes: tuple[ModeChange, ...] = ()


@frozen
class Omitted:
    """The numbers of omitted things."""

    outside_folder: int = 0
    older_turns: int = 0
    older_notes: int = 0
    older_markers: int = 0
    standing_orders: int = 0
    pinned_words: int = 0


def note_events(updates: Iterable[Update]) -> tuple[NoteEvent, ...]:
    """Return accepted updates as the history of notes, in their order."""
    found: list[NoteEvent] = []
    for update in updates:
        revoked = None
        match update.revokes:
            case None:
                pass
            case ("fact" | "decision") as kind, str(name):
                revoked = RevokedNote(kind, name)
            case _:
                continue
        found.append(NoteEvent(update.seq, update.turn_id, update.at, update.payload, revoked))
    return tuple(found)


def _modes(known: Iterable[ModeChange], seq: int) -> tuple[ModeChange, ...]:
    """Return the changes of the mode up to the checkpoint at `seq`, in order."""
    found: list[ModeChange] = []
    for change in known:
        least = found[-1].seq if found else 0
        if change.mode and least <= change.seq <= seq:
            found.append(evolve(change, turn_id=_plain(change.turn_id)))
    return tuple(found[-LISTS["modes"] :])


def _own(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint whose facts do not say that they were imported: the next import does."""

    def own(fact: Fact) -> Fact:
        resting = tuple(each for each in fact.depends_on if each.uri != IMPORTED)
        return evolve(fact, depends_on=resting)

    return evolve(checkpoint, facts={key: own(fact) for key, fact in checkpoint.facts.items()})


def _without_orders(pack: Pack) -> tuple[Pack, int]:
    """Return a pack without the parts that no `import` would take, and their number (TRU-7)."""
    orders = {_item_at(problem.partition(": ")[0]) for problem in policies(pack)}
    origin, checkpoint, plan = pack.origin, pack.checkpoint, pack.checkpoint.plan

    def kept(what: str, found: Iterable[T]) -> tuple[T, ...]:
        return tuple(each for n, each in enumerate(found) if f"{what}[{n}]" not in orders)

    def unless(what: str, found: T) -> T | None:
        return None if what in orders else found

    steps = kept("checkpoint.plan.steps", plan.steps)
    known = {step.id for step in steps}
    done = {name: is_done for name, is_done in plan.done.items() if name in known}
    evidence = unless("checkpoint.plan.evidence", plan.evidence)
    clean = evolve(
        checkpoint,
        task=unless("checkpoint.task", checkpoint.task),
        plan=evolve(plan, steps=steps, done=done, evidence=evidence),
        decisions=kept("checkpoint.decisions", checkpoint.decisions),
        facts=dict(kept("checkpoint.facts", checkpoint.facts.items())),
    )
    left = evolve(
        pack,
        origin=evolve(
            origin,
            name=unless("origin.name", origin.name),
            model=unless("origin.model", origin.model),
        ),
        checkpoint=clean,
        turns=kept("turns", pack.turns),
        notes=kept("notes", pack.notes),
        modes=kept("modes", pack.modes),
        markers=kept("markers", pack.markers),
        pins=kept("pins", pack.pins),
    )
    return left, len(orders)


def _item_at(place: str) -> str:
    """Return the part of a pack that goes as a whole if a text in it must go."""
    if "[" in place:
        return place[: place.index("]") + 1]
    wholes = ("checkpoint.task", "checkpoint.plan.evidence")
    return next((whole for whole in wholes if place.startswith(whole)), place)


def packed(contents: SessionContents, homes: Iterable[str]) -> tuple[Pack, Omitted]:
    """Return the pack of a session, and the omitted parts; `homes` are home folders here."""
    checkpoint = _own(contents.checkpoint)
    names = Names(checkpoint, contents.history, contents.base, places_of(contents.base, homes))
    history = [
        evolve(each, turn_id=_plain(each.turn_id)) for each in map(names.of, contents.history)
    ]
    notes = history[-LISTS["notes"] :]
    markers: list[PackedMarker] = []
    for each in contents.marker_set.markers:
        ids = each.checkpoint_id, each.session_id, each.turn_id
        marker = names.of(PackedMarker(*ids, each.label, each.created_at, each.origin))
        ids = marker.checkpoint_id, marker.session_id, marker.turn_id
        if is_time(each.created_at) and all(map(is_id, ids)) and label_of(marker.label):
            markers.append(marker)
    markers = markers[-LISTS["markers"] :]
    turns: dict[tuple[str, str], PackedTurn] = {}
    for turn in map(names.of, contents.turns):
        if is_id(turn.session_id) and is_id(turn.turn_id):
            turns.setdefault((turn.session_id, turn.turn_id), turn)
    way: list[PackedLink] = []
    for link in contents.lineage[: LISTS["lineage"]]:
        left = link.cut.turn_id, link.cut.checkpoint_id
        each = names.of(PackedLink(link.child, link.parent, link.kind, link.at, *left))
        if not (is_id(each.child) and is_id(each.parent)):
            break
        plain = {"turn_id": _plain(each.turn_id), "checkpoint_id": _plain(each.checkpoint_id)}
        way.append(evolve(each, **plain))
    pins = tuple(pin for pin in contents.marker_set.files if not names.stays(pin.uri))
    origin = names.of(contents.origin)
    version = origin.cli_version if is_version(origin.cli_version or "") else None
    pack = Pack(
        evolve(origin, name=origin.name or None, cli_version=version, model=origin.model or None),
        names.checkpoint(checkpoint),
        tuple(turns.values())[-LISTS["turns"] :],
        tuple(notes),
        _modes(map(names.of, contents.modes), checkpoint.seq),
        tuple(markers),
        pins,
        tuple(way),
    )
    pack, orders = _without_orders(pack)
    kept = len(pack.notes)
    while pack.notes and len(to_bytes(pack)) > MAX_BYTES:
        pack = evolve(pack, notes=pack.notes[len(pack.notes) // 2 + 1 :])
    while pack.turns and len(to_bytes(pack)) > MAX_BYTES:
        pack = evolve(pack, turns=pack.turns[len(pack.turns) // 2 + 1 :])
    left = Omitted(
        len(names.outside) + len(contents.marker_set.files) - len(pins),
        len(contents.turns) - len(pack.turns),
        len(history) - len(notes) + kept - len(pack.notes),
        len(contents.marker_set.markers) - len(markers),
        orders,
        len(contents.marker_set.pins) - len(contents.marker_set.files),
    )
    return pack, left
