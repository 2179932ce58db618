"""Replays accepted updates: the facts, decisions and plan that came through `memory.apply`.

Updates were validated when they were accepted, and are not validated again (rules, "Updates").  An
update of a turn that was rolled back does not count (DSC-78).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.records import (
    UNKNOWN_HASH,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Limits,
    Plan,
    Step,
    resting_on_evidence,
)
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.converters import MISFITS, stored
from codex_checkpoints.core.fields import Json, is_object, object_of, renew, text_of


@frozen
class Update:
    """One line of `updates.jsonl`: an accepted payload, or the revocation of earlier ones.

    `revokes` is a kind and a name.  `at` is only shown to people.
    """

    seq: int
    turn_id: str | None
    payload: Mapping[str, object] | None
    hashes: Mapping[str, str]
    revokes: tuple[str, str] | None = None
    at: str | None = None


NONE_EVICTED: Mapping[tuple[str, str], Fact | Decision] = MappingProxyType({})
_MOST_EVICTED = 256


@frozen
class Memory:
    """The result of the updates; `plan_seq` is the plan's `seq`, -1 if there is none.

    `origins` has the newest counting update of each fact key and each decision id, by kind and
    name, including those that were evicted or revoked since.  Notes of a seed have none.  `evicted`
    has the newest of those for which newer ones left no room, the newest last.
    """

    facts: Mapping[str, Fact]
    decisions: tuple[Decision, ...]
    plan: Plan | None
    plan_seq: int
    origins: Mapping[tuple[str, str], Update]
    evicted: Mapping[tuple[str, str], Fact | Decision] = NONE_EVICTED


def update_of(line: object) -> Update | None:
    """Read one line of `updates.jsonl`; None if it is not an update."""
    known = object_of(line)
    seq, turn_id, revoke = known.get("seq"), known.get("turnId"), known.get("revoke")
    if type(seq) is not int or not isinstance(turn_id, str | None):
        return None
    at = text_of(known.get("at"))
    if is_object(revoke):
        revokes = str(revoke.get("kind")), str(revoke.get("id"))
        return Update(seq, turn_id, None, {}, revokes, at)
    hashes = {
        uri: seen for uri, seen in object_of(known.get("hashes")).items() if isinstance(seen, str)
    }
    payload = known.get("payload")
    return Update(seq, turn_id, payload, hashes, at=at) if is_object(payload) else None


def line_of(update: Update, update_id: str) -> dict[str, object]:
    """Return the line of an update; a revocation has no id."""
    where = {"seq": update.seq, "turnId": update.turn_id, "at": update.at}
    if update.revokes is not None:
        kind, name = update.revokes
        return {"revoke": {"kind": kind, "id": name}, **where}
    hashes = dict(update.hashes)
    return {"updateId": update_id, **where, "payload": update.payload, "hashes": hashes}


def replay(
    updates: Iterable[Update],
    counts: Callable[[str | None], bool],
    limits: Limits,
    seed: Checkpoint | None = None,
) -> Memory:
    """Apply the updates that count, in the order of their `seq`, to the notes of a seed.

    The plan of the seed is not included.  An update of an unknown form is skipped.
    """
    known: Mapping[str, Fact] = {} if seed is None else seed.facts
    facts = {key: resting_on_evidence(fact) for key, fact in known.items()}
    decisions: list[Decision] = [] if seed is None else [*seed.decisions]
    evicted: dict[tuple[str, str], Fact | Decision] = {}
    plan: Plan | None = None
    plan_seq = -1
    origins: dict[tuple[str, str], Update] = {}
    # Sorting is stable: several of one `seq` keep the order of the file.
    for update in sorted(updates, key=lambda update: update.seq):
        if not counts(update.turn_id):
            continue
        if update.revokes is not None:
            _revoke(update.revokes, facts, decisions)
            evicted.pop(update.revokes, None)
            continue
        try:
            record = _record(update, limits)
        except MISFITS:
            continue
        match record:
            case (str(key), Fact() as fact):
                facts[key] = fact
                origins["fact", key] = update
                evicted.pop(("fact", key), None)
                for gone in _longest_ago(facts, limits):
                    renew(evicted, ("fact", gone), facts.pop(gone), _MOST_EVICTED)
            case Decision() as decision:
                decisions.append(decision)
                origins["decision", decision.decision_id] = update
                beyond = max(0, len(decisions) - limits.max_decisions_total)
                for left in decisions[:beyond]:
                    renew(evicted, ("decision", left.decision_id), left, _MOST_EVICTED)
                del decisions[:beyond]
            case Plan() as newest:
                plan, plan_seq = newest, update.seq
    return Memory(facts, tuple(decisions), plan, plan_seq, origins, evicted)


def _revoke(revokes: tuple[str, str], facts: dict[str, Fact], decisions: list[Decision]) -> None:
    kind, name = revokes
    if kind == "fact":
        facts.pop(name, None)
    elif kind == "decision":
        decisions[:] = [decision for decision in decisions if decision.decision_id != name]


def _longest_ago(facts: dict[str, Fact], limits: Limits) -> list[str]:
    """Return the facts beyond the limit, the least recently touched ones, ties by key (DSC-25)."""
    beyond = len(facts) - limits.max_facts_total
    if beyond <= 0:
        return []
    return sorted(facts, key=lambda key: (facts[key].last_touched_seq, key))[:beyond]


def _record(update: Update, limits: Limits) -> tuple[str, Fact] | Decision | Plan:
    payload = object_of(update.payload)
    match payload.get("kind"):
        case "fact":
            return _fact({"dependsOn": [], **payload, "lastTouchedSeq": update.seq}, update, limits)
        case "decision":
            unset = {"topic": None, "supersedes": None}
            read = stored.structure({**unset, **payload, "seq": update.seq}, Decision)
            return evolve(
                read,
                topic=None if read.topic is None else _cut(read.topic, limits),
                decision=_cut(read.decision, limits),
                rationale=_cut(read.rationale, limits),
                evidence=_hashed(read.evidence, update),
            )
        case "plan" if "steps" in payload:
            return _plan(stored.structure(payload, Plan), update, limits)
        case _:
            raise ValueError("no kind of note")


def _cut(text: str, limits: Limits) -> str:
    return value(text, limits.max_value_chars)


def _fact(payload: Json, update: Update, limits: Limits) -> tuple[str, Fact]:
    read = stored.structure(payload, Fact)
    uris = [each.uri for each in read.depends_on]
    fact = evolve(
        read,
        value=_cut(read.value, limits),
        evidence=_hashed(read.evidence, update, uris),
        depends_on=tuple(Dependency(uri, update.hashes.get(uri)) for uri in uris),
    )
    return stored.structure(payload.get("key"), str), resting_on_evidence(fact)


def _plan(read: Plan, update: Update, limits: Limits) -> Plan:
    """Keep the first steps; `done` has an entry for each of them (DSC-76)."""
    steps = read.steps[: limits.max_plan_steps_total]
    return Plan(
        tuple(Step(step.id, _cut(step.text, limits)) for step in steps),
        {step.id: read.done.get(step.id, False) for step in steps},
        None if read.evidence is None else _hashed(read.evidence, update),
    )


def _hashed(evidence: Evidence, update: Update, uris: Container[str] = ()) -> Evidence:
    """Return the evidence of a record with the dependencies `uris`, with the host's hash.

    A message has no hash.  A call with the name of a dependency has none either: the hash stored
    under that name belongs to the dependency.
    """
    source, ref = evidence.source, evidence.ref
    hashed = source == "file" or (source == "tool_output" and ref not in uris)
    seen = update.hashes.get(ref) if hashed else None
    return Evidence(source, ref, None if seen == UNKNOWN_HASH else seen)
