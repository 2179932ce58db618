"""Make a pack of a session, without the places and the secrets of this machine.

Files outside the session's folder stay behind; a fact that rests on one gets a sign for it, so it
is SUSPECT on every machine.  Of every list the newest are packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    MAX_VALUE_CHARS,
    Artifact,
    Checkpoint,
    Evidence,
    Limits,
    evidence_in,
)
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.portable.pack import (
    LISTS,
    MAX_BYTES,
    NoteEvent,
    Origin,
    Pack,
    PackedLink,
    PackedMarker,
    PackedTurn,
    Places,
    Revoked,
    is_id,
    is_time,
    is_version,
    places_of,
    stays,
    to_bytes,
)
from codex_checkpoints.core.portable.reading import policies
from codex_checkpoints.core.restore.lineage import Link
from codex_checkpoints.core.restore.markers import MarkerSet, label_of
from codex_checkpoints.core.restore.references import ModeChange
from codex_checkpoints.core.rollout.fields import Json, is_list, is_object, list_of, object_of
from codex_checkpoints.values import evolve, fields, frozen, has

T = TypeVar("T")

_TEXTS = frozenset({"value", "topic", "decision", "rationale", "text"})
_NAMES = (
    *("id", "decision_id", "supersedes", "session_id", "turn_id", "checkpoint_id"),
    *("child", "parent"),
)
_TIMES = ("started_at", "ended_at", "at")


class Names:
    """Rename the things of one session; `outside` maps the files that stay behind to signs."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        history: Iterable[NoteEvent],
        base: str | None,
        places: Places,
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
            | {uri for uri in others if self.stays(uri) or places.shows_in(uri)}
        )
        self.outside = {uri: f"outside:{number}" for number, uri in enumerate(outside, 1)}
        texts = dict.fromkeys(_TEXTS | {"name", "model", "mode", "label"}, self.text)
        names = dict.fromkeys(_NAMES, self.name)
        self._rules = texts | names | {"uri": self.uri} | dict.fromkeys(_TIMES, _time)

    def stays(self, uri: str) -> bool:
        """Return whether the name of a file must stay behind."""
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

    def of(self, part: Any, field: str = "") -> Any:  # noqa: ANN401 - a record, or a part of one
        """Return a record as it may leave: each of its texts by the name of the field."""
        kind = cast("type[Any]", type(part))
        match part:
            case str():
                rule = self._rules.get(field)
                return part if rule is None else rule(part)
            case Evidence():
                named = self.uri if part.source == "file" else self.name
                return evolve(part, ref=named(part.ref))
            case Checkpoint():
                return self._checkpoint(part)
            case tuple():
                return tuple(self.of(each, field) for each in cast("tuple[Any, ...]", part))
            case Mapping():
                by_name = cast("Mapping[str, Any]", part)
                if field == "payload":
                    return self._payload(by_name)
                return {self.name(name): self.of(each) for name, each in by_name.items()}
            case _ if has(kind):
                names = [each.name for each in fields(kind)]
                return evolve(part, **{name: self.of(getattr(part, name), name) for name in names})
            case _:
                return part

    def _checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
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
        recent = sorted(artifacts.values(), key=lambda each: (-each.last_observed_seq, each.uri))
        return evolve(
            checkpoint,
            task=self.of(checkpoint.task),
            plan=self.of(checkpoint.plan),
            decisions=self.of(checkpoint.decisions),
            artifacts=artifacts,
            facts=self.of(checkpoint.facts),
            recent_artifacts=tuple(each.uri for each in recent[: Limits().max_recent_artifacts]),
        )

    def _payload(self, payload: Json) -> dict[str, object]:
        """Return a payload with its texts as they are stored, and without hashes."""
        values: dict[str, object] = {}
        for key, found in payload.items():
            if key == "hash":
                continue
            match found:
                case str() if key in _TEXTS:
                    values[key] = self.text(found)
                case str():
                    values[key] = self.uri(found) if key in {"uri", "ref"} else self.name(found)
                case _ if is_list(found):
                    values[key] = [self._payload(object_of(part)) for part in found]
                case _ if is_object(found) and key == "done":
                    values[key] = {self.name(step): is_done for step, is_done in found.items()}
                case _ if is_object(found):
                    values[key] = self._payload(found)
                case _:
                    values[key] = found
        return values


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
    """What there is to pack of a session, with the names of this machine."""

    origin: Origin
    base: str | None
    checkpoint: Checkpoint
    history: tuple[NoteEvent, ...]
    marker_set: MarkerSet
    lineage: tuple[Link, ...]
    turns: tuple[PackedTurn, ...] = ()
    modes: tuple[ModeChange, ...] = ()


@frozen
class Left:
    """How much stayed behind."""

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
                revoked = Revoked(kind, name)
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


def _without_orders(pack: Pack) -> tuple[Pack, int]:
    """Return a pack without what no `import` would take, and how much that is (TRU-7)."""
    orders = {problem.partition(": ")[0] for problem in policies(pack)}
    checkpoint, plan = pack.checkpoint, pack.checkpoint.plan

    def kept(what: str, found: Iterable[T]) -> tuple[T, ...]:
        return tuple(each for n, each in enumerate(found) if f"{what}[{n}]" not in orders)

    steps = kept("checkpoint.plan.steps", plan.steps)
    known = {step.id for step in steps}
    done = {name: is_done for name, is_done in plan.done.items() if name in known}
    clean = evolve(
        checkpoint,
        plan=evolve(plan, steps=steps, done=done),
        decisions=kept("checkpoint.decisions", checkpoint.decisions),
        facts=dict(kept("checkpoint.facts", checkpoint.facts.items())),
    )
    return evolve(pack, checkpoint=clean, notes=kept("notes", pack.notes)), len(orders)


def packed(contents: SessionContents, homes: Iterable[str]) -> tuple[Pack, Left]:
    """Return the pack of a session, and what was left out; `homes` are home folders here."""
    checkpoint, origin = contents.checkpoint, contents.origin
    names = Names(checkpoint, contents.history, contents.base, places_of(contents.base, homes))
    version = origin.cli_version
    history: list[NoteEvent] = [
        evolve(each, turn_id=_plain(each.turn_id)) for each in names.of(contents.history)
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
    for turn in names.of(contents.turns):
        if is_id(turn.session_id) and is_id(turn.turn_id):
            turns.setdefault((turn.session_id, turn.turn_id), turn)
    way: list[PackedLink] = []
    for each in contents.lineage[: LISTS["lineage"]]:
        ends, cut = (names.name(each.child), names.name(each.parent)), each.cut
        if not all(map(is_id, ends)):
            break
        left = cut.turn_id, cut.checkpoint_id
        named = (name if name is None else _plain(names.name(name)) for name in left)
        way.append(
            PackedLink(*ends, each.kind, None if each.at is None else _time(each.at), *named)
        )
    pins = tuple(pin for pin in contents.marker_set.files if not names.stays(pin.uri))
    pack = Pack(
        evolve(
            origin,
            name=names.of(origin.name, "name") or None,
            cli_version=version if version is not None and is_version(version) else None,
            model=names.of(origin.model, "model") or None,
        ),
        names.of(checkpoint),
        tuple(turns.values())[-LISTS["turns"] :],
        tuple(notes),
        _modes(names.of(contents.modes), checkpoint.seq),
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
    left = Left(
        len(names.outside) + len(contents.marker_set.files) - len(pins),
        len(contents.turns) - len(pack.turns),
        len(history) - len(notes) + kept - len(pack.notes),
        len(contents.marker_set.markers) - len(markers),
        orders,
        len(contents.marker_set.pins) - len(contents.marker_set.files),
    )
    return pack, left
