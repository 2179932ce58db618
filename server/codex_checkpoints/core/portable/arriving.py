"""Make the initial state of a session from a pack, on a machine with other files.

A hash is never copied.  A file gets the hash that this machine computes.  A fact stays valid while
that equals the hash in the pack; else it is SUSPECT until somebody verifies it: its dependency
becomes `unknown:`, which equals nothing.  A pack holds no tool outputs, so a fact that rests on one
is SUSPECT as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from codex_checkpoints.core.checkpoint.records import (
    UNKNOWN_HASH,
    Artifact,
    Checkpoint,
    Dependency,
    Evidence,
    Fact,
    status_of,
)
from codex_checkpoints.core.portable.pack import Pack
from codex_checkpoints.core.restore.lineage import Cut, Link
from codex_checkpoints.core.restore.markers import Marker, created, pinned
from codex_checkpoints.core.restore.references import WEAK
from codex_checkpoints.values import frozen


@frozen
class Arrived:
    """How much differs on this machine."""

    missing_files: int
    changed_files: int
    suspect_facts: int


def files_of(pack: Pack) -> tuple[str, ...]:
    """Return the files whose hashes on this machine are needed."""
    return tuple(uri for uri, each in pack.checkpoint.artifacts.items() if each.kind == "file")


def seed_of(pack: Pack, hashes: Mapping[str, str]) -> Checkpoint:
    """Return the initial state of the session; `hashes` are those of its files on this machine."""
    claimed = {uri: each.hash for uri, each in pack.checkpoint.artifacts.items()}
    checkpoint, here = pack.checkpoint, _Hashes(hashes)
    task, plan = checkpoint.task, checkpoint.plan
    return Checkpoint(
        checkpoint.seq,
        None if task is None else evolve(task, evidence=here.evidence(task.evidence)),
        evolve(plan, evidence=None if plan.evidence is None else here.evidence(plan.evidence)),
        tuple(evolve(each, evidence=here.evidence(each.evidence)) for each in checkpoint.decisions),
        {uri: here.artifact(each) for uri, each in checkpoint.artifacts.items()},
        {key: here.fact(each) for key, each in checkpoint.facts.items()},
        tuple(uri for uri in checkpoint.recent_artifacts if uri in claimed),
    )


def arrived(pack: Pack, seed: Checkpoint) -> Arrived:
    """Return how many files and facts of a pack are not here, or differ here."""
    pairs = [(each, seed.artifacts[uri]) for uri, each in pack.checkpoint.artifacts.items()]
    files = [(there, here) for there, here in pairs if there.kind == "file"]
    statuses = [status_of(fact, seed.artifacts) for fact in seed.facts.values()]
    return Arrived(
        sum(there.hash is not None and here.hash is None for there, here in files),
        sum(
            None not in {there.hash, here.hash} and there.hash != here.hash for there, here in files
        ),
        statuses.count("SUSPECT"),
    )


def marker_lines(pack: Pack, at: str) -> list[dict[str, Any]]:
    """Return the lines of the markers (they refer to the session of their turn) and of the pins."""
    markers = (
        Marker(
            each.checkpoint_id,
            each.session_id,
            each.turn_id,
            each.label,
            each.created_at,
            each.origin,
        )
        for each in pack.markers
    )
    return [*map(created, markers), *(pinned(pin, at) for pin in pack.pins)]


def links_of(pack: Pack, session_id: str, at: str, operation_id: str) -> tuple[Link, ...]:
    """Return the links above a session that was made from a pack, the nearest first."""
    own = Link(session_id, pack.origin.session_id, "import", Cut(operation_id=operation_id), at)
    above = (
        Link(
            each.child,
            each.parent,
            each.kind,
            Cut(turn_id=each.turn_id, checkpoint_id=each.checkpoint_id),
            each.at,
        )
        for each in pack.lineage
    )
    return (own, *above)


@frozen
class _Hashes:
    """The hashes that this machine computes."""

    hashes: Mapping[str, str]

    def artifact(self, artifact: Artifact) -> Artifact:
        found = self.hashes.get(artifact.uri) if artifact.kind == "file" else None
        return evolve(artifact, hash=found)

    def evidence(self, evidence: Evidence) -> Evidence:
        """Keep a hash that this machine computes too; any other belongs to another machine."""
        found = self.hashes.get(evidence.ref) if evidence.source == "file" else None
        return evolve(evidence, hash=found if found == evidence.hash else None)

    def fact(self, fact: Fact) -> Fact:
        resting = tuple(map(self._dependency, fact.depends_on))
        return evolve(fact, evidence=self.evidence(fact.evidence), depends_on=resting)

    def _dependency(self, dependency: Dependency) -> Dependency:
        found = self.hashes.get(dependency.uri)
        # Size and time of a file on another machine prove nothing here.
        same = found is not None and found == dependency.hash and not found.startswith(WEAK)
        return Dependency(dependency.uri, found if same else UNKNOWN_HASH)
