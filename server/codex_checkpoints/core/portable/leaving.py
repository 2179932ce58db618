"""Make a pack of a session, without the places and the secrets of this machine.

Files outside the session's folder stay behind; a fact that rests on one gets a sign for it, so it
is SUSPECT on every machine.  Of every list the newest are packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import TypeVar

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    MAX_VALUE_CHARS,
    Artifact,
    Checkpoint,
    Decision,
    Evidence,
    Fact,
    Limits,
    Plan,
    Step,
    evidence_in,
)
from codex_checkpoints.core.checkpoint.text import value
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
from codex_checkpoints.core.restore.markers import Marker, MarkerSet, label_of
from codex_checkpoints.core.restore.references import ModeChange
from codex_checkpoints.core.rollout.fields import Json, is_list, is_object, list_of, object_of
from codex_checkpoints.values import evolve, frozen

T = TypeVar("T")

_TEXTS = frozenset({"value", "topic", "decision", "rationale", "text"})


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

    def origin(self, origin: Origin) -> Origin:
        """Return the session that a pack is made of."""
        name, model, version = origin.name, origin.model, origin.cli_version
        return evolve(
            origin,
            name=None if name is None else self.text(name) or None,
            cli_version=version if version is not None and is_version(version) else None,
            model=None if model is None else self.text(model) or None,
        )

    def checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a checkpoint, without the files outside."""
        task = checkpoint.task
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
        return Checkpoint(
            checkpoint.seq,
            None
            if task is None
            else evolve(task, text=self.text(task.text), evidence=self._evidence(task.evidence)),
            self._plan(checkpoint.plan),
            tuple(map(self._decision, checkpoint.decisions)),
            artifacts,
            {self.name(key): self._fact(fact) for key, fact in checkpoint.facts.items()},
            tuple(each.uri for each in recent[: Limits().max_recent_artifacts]),
        )

    def _evidence(self, evidence: Evidence) -> Evidence:
        named = self.uri if evidence.source == "file" else self.name
        return evolve(evidence, ref=named(evidence.ref))

    def _plan(self, plan: Plan) -> Plan:
        steps = tuple(Step(self.name(step.id), self.text(step.text)) for step in plan.steps)
        done = {self.name(name): is_done for name, is_done in plan.done.items()}
        evidence = None if plan.evidence is None else self._evidence(plan.evidence)
        return Plan(steps, done, evidence)

    def _decision(self, decision: Decision) -> Decision:
        topic, supersedes = decision.topic, decision.supersedes
        return evolve(
            decision,
            decision_id=self.name(decision.decision_id),
            topic=None if topic is None else self.text(topic),
            decision=self.text(decision.decision),
            rationale=self.text(decision.rationale),
            supersedes=None if supersedes is None else self.name(supersedes),
            evidence=self._evidence(decision.evidence),
        )

    def _fact(self, fact: Fact) -> Fact:
        return evolve(
            fact,
            value=self.text(fact.value),
            evidence=self._evidence(fact.evidence),
            depends_on=tuple(evolve(each, uri=self.uri(each.uri)) for each in fact.depends_on),
        )

    def turn(self, turn: PackedTurn) -> PackedTurn:
        """Return a turn."""
        return evolve(
            turn,
            session_id=self.name(turn.session_id),
            turn_id=self.name(turn.turn_id),
            started_at=_time(turn.started_at),
            ended_at=_time(turn.ended_at),
        )

    def mode(self, change: ModeChange) -> ModeChange:
        """Return a change of the mode."""
        return evolve(change, mode=self.text(change.mode), turn_id=self._id(change.turn_id))

    def note(self, event: NoteEvent) -> NoteEvent:
        """Return a step in the history of notes, without hashes."""
        revoked = event.revoked
        return evolve(
            event,
            at=_time(event.at),
            turn_id=self._id(event.turn_id),
            payload=None if event.payload is None else self._payload(event.payload),
            revoked=None if revoked is None else evolve(revoked, id=self.name(revoked.id)),
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

    def marker(self, marker: Marker) -> PackedMarker:
        """Return a marker, without the hashes of files."""
        return PackedMarker(
            self.name(marker.checkpoint_id),
            self.name(marker.session_id),
            self.name(marker.turn_id),
            self.text(marker.label),
            marker.created_at,
            marker.origin,
        )

    def link(self, link: Link) -> PackedLink:
        """Return a link to the session above."""
        return PackedLink(
            self.name(link.child),
            self.name(link.parent),
            link.kind,
            _time(link.at),
            self._id(link.cut.turn_id),
            self._id(link.cut.checkpoint_id),
        )

    def _id(self, text: str | None) -> str | None:
        name = "" if text is None else self.name(text)
        return name if is_id(name) else None


def _time(at: str | None) -> str | None:
    return at if at is not None and is_time(at) else None


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


def _turns(known: Iterable[PackedTurn]) -> list[PackedTurn]:
    """Return the turns that have plain names, each once."""
    found: dict[tuple[str, str], PackedTurn] = {}
    for turn in known:
        key = turn.session_id, turn.turn_id
        if all(map(is_id, key)):
            found.setdefault(key, turn)
    return list(found.values())


def _modes(known: Iterable[ModeChange], seq: int) -> tuple[ModeChange, ...]:
    """Return the changes of the mode up to the checkpoint at `seq`, in order."""
    found: list[ModeChange] = []
    for change in known:
        least = found[-1].seq if found else 0
        if change.mode and least <= change.seq <= seq:
            found.append(change)
    return tuple(found[-MAX_MODES:])


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
    names = Names(
        contents.checkpoint, contents.history, contents.base, places_of(contents.base, homes)
    )
    history = tuple(names.note(each) for each in contents.history)
    notes = history[max(0, len(history) - MAX_NOTES) :]
    dated = (each for each in contents.marker_set.markers if is_time(each.created_at))
    markers = [
        each
        for each in map(names.marker, dated)
        if all(map(is_id, (each.checkpoint_id, each.session_id, each.turn_id)))
        and label_of(each.label)
    ]
    markers = markers[max(0, len(markers) - MAX_MARKERS) :]
    named = _turns(map(names.turn, contents.turns))
    turns = tuple(named[-MAX_TURNS:])
    modes = _modes(map(names.mode, contents.modes), contents.checkpoint.seq)
    way = map(names.link, contents.lineage[:MAX_LINEAGE])
    pins = tuple(pin for pin in contents.marker_set.files if not names.stays(pin.uri))
    pack = Pack(
        names.origin(contents.origin),
        names.checkpoint(contents.checkpoint),
        turns,
        notes,
        modes,
        tuple(markers),
        pins,
        tuple(takewhile(lambda link: is_id(link.child) and is_id(link.parent), way)),
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
