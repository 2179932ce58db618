"""Accepted updates, replayed: the facts, decisions and plan that came through `memory.apply`.

An update was checked when it was accepted and is never checked again; replaying the same updates
over the same turns gives the same records (interfaces, "Updates").  One that belongs to a turn
that was rolled back does not count, as if it had never been there (DSC-78).

Checking a payload before it is accepted is not done here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import frozen

from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.records import (
    Decision,
    Dependency,
    Evidence,
    Fact,
    Plan,
    Step,
)
from codex_checkpoints.core.checkpoint.text import value

UNKNOWN_HASH = "unknown:"
"""The host could not see the file when the fact was accepted; equals nothing."""


@frozen
class Update:
    """One line of `updates.jsonl`: an accepted payload, or the revocation of earlier ones."""

    seq: int
    turn_id: str | None
    payload: Mapping[str, Any] | None
    hashes: Mapping[str, str]
    revokes: tuple[str, str] | None = None


@frozen
class Memory:
    """What the updates amount to; `plan_seq` is where the plan was accepted, if there is one."""

    facts: Mapping[str, Fact]
    decisions: tuple[Decision, ...]
    plan: Plan | None
    plan_seq: int


def update_of(line: object) -> Update | None:
    """Read one line of `updates.jsonl`; None for what is no update of a known form."""
    if not isinstance(line, dict) or type(line.get("seq")) is not int:
        return None
    turn_id = line.get("turnId")
    hashes = line.get("hashes")
    revoke = line.get("revoke")
    if isinstance(revoke, dict):
        revokes = (str(revoke.get("kind")), str(revoke.get("id")))
        return Update(line["seq"], turn_id, None, {}, revokes)
    payload = line.get("payload")
    if not isinstance(payload, dict):
        return None
    return Update(line["seq"], turn_id, payload, hashes if isinstance(hashes, dict) else {})


def replay(
    updates: Iterable[Update], counts: Callable[[str | None], bool], limits: Limits
) -> Memory:
    """Return what the counting updates amount to, each after the record with its `seq`."""
    facts: dict[str, Fact] = {}
    decisions: list[Decision] = []
    plan: Plan | None = None
    plan_seq = -1
    # Sorting is stable: several of one `seq` keep the order of the file.
    for update in sorted(updates, key=lambda update: update.seq):
        if update.revokes is not None:
            _revoke(update.revokes, facts, decisions)
            continue
        payload = update.payload
        if payload is None or not counts(update.turn_id):
            continue
        match payload.get("kind"):
            case "fact":
                facts[payload["key"]] = _fact(payload, update, limits)
                _evict_facts(facts, limits)
            case "decision":
                decisions.append(_decision(payload, update, limits))
                del decisions[: -limits.max_decisions_total]
            case "plan":
                plan, plan_seq = _plan(payload, update, limits), update.seq
            case _:
                pass
    return Memory(facts, tuple(decisions), plan, plan_seq)


def _revoke(
    revokes: tuple[str, str], facts: dict[str, Fact], decisions: list[Decision]
) -> None:
    kind, name = revokes
    if kind == "fact":
        facts.pop(name, None)
    elif kind == "decision":
        decisions[:] = [decision for decision in decisions if decision.decision_id != name]


def _evict_facts(facts: dict[str, Fact], limits: Limits) -> None:
    """Let go of the facts touched longest ago, ties by key (DSC-25)."""
    while len(facts) > limits.max_facts_total:
        del facts[min(facts, key=lambda key: (facts[key].last_touched_seq, key))]


def _evidence(record: Mapping[str, Any], update: Update) -> Evidence:
    seen = update.hashes.get(record["ref"])
    return Evidence(record["source"], record["ref"], None if seen == UNKNOWN_HASH else seen)


def _fact(payload: Mapping[str, Any], update: Update, limits: Limits) -> Fact:
    depends_on = tuple(
        Dependency(dependency["uri"], update.hashes.get(dependency["uri"]))
        for dependency in payload.get("dependsOn", ())
    )
    text = value(payload["value"], limits.max_value_chars)
    return Fact(text, _evidence(payload["evidence"], update), depends_on, update.seq)


def _decision(payload: Mapping[str, Any], update: Update, limits: Limits) -> Decision:
    topic = payload.get("topic")
    return Decision(
        payload["decisionId"],
        None if topic is None else value(topic, limits.max_value_chars),
        value(payload["decision"], limits.max_value_chars),
        value(payload["rationale"], limits.max_value_chars),
        payload.get("supersedes"),
        _evidence(payload["evidence"], update),
        update.seq,
    )


def _plan(payload: Mapping[str, Any], update: Update, limits: Limits) -> Plan:
    """Keep the first steps in plan order; `done` names those alone (DSC-76)."""
    steps = tuple(
        Step(step["id"], value(step["text"], limits.max_value_chars))
        for step in payload["steps"][: limits.max_plan_steps_total]
    )
    done = payload.get("done", {})
    return Plan(
        steps,
        {step.id: done.get(step.id, False) for step in steps},
        _evidence(payload["evidence"], update),
    )
