"""Strategies for checkpoints: records, caps and limits."""

from collections.abc import Mapping
from typing import Any, cast

from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    ArtifactKind,
    Caps,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    EvidenceSource,
    Fact,
    Limits,
    Plan,
    Step,
    Task,
)
from updates import UNKNOWN, V1, V2

CAPS = st.builds(Caps, *[st.integers(0, 4)] * 6, max_value_chars=st.integers(1, 200))
LIMITS = st.builds(
    Limits,
    max_facts_total=st.integers(0, 4),
    max_decisions_total=st.integers(0, 4),
    max_plan_steps_total=st.integers(0, 4),
    max_recent_artifacts=st.integers(0, 4),
    max_artifacts_total=st.integers(0, 6),
    max_value_chars=st.integers(1, 20),
)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LONG = st.one_of(WORDS, st.integers(150, 170).map(lambda length: "ß" * length))
HASHES = st.sampled_from([None, V1, V2, UNKNOWN, "stat:1-1"])
URIS = st.sampled_from(["a.py", "é", "ls", "docs.find/c1", "gone", "x\ny"])
SOURCES = st.sampled_from(list[EvidenceSource](["user", "file", "tool_output"]))
KINDS = st.sampled_from(list[ArtifactKind](["file", "tool_output", "command"]))
EVIDENCE = st.builds(Evidence, SOURCES, WORDS, HASHES)


def _by_uri(found: list[Artifact]) -> Mapping[str, Artifact]:
    return {artifact.uri: artifact for artifact in found}


def _plan(steps: list[Step], done: set[int], evidence: Evidence | None) -> Plan:
    marked = {step.id: place in done for place, step in enumerate(steps)}
    return Plan(tuple(steps), marked, evidence)


ARTIFACTS = st.lists(st.builds(Artifact, URIS, KINDS, HASHES, st.integers(0, 9))).map(_by_uri)
STEPS = st.lists(st.builds(Step, WORDS, LONG), max_size=5, unique_by=lambda step: step.id)
PLANS = st.builds(_plan, STEPS, st.sets(st.integers(0, 4)), st.none() | EVIDENCE)
TOPICS = st.none() | LONG
DECISIONS = st.lists(
    st.builds(Decision, WORDS, TOPICS, LONG, LONG, st.none() | WORDS, EVIDENCE, st.integers(0, 9)),
    max_size=4,
    unique_by=lambda decision: decision.decision_id,
)
DEPENDENCIES = st.lists(st.builds(Dependency, URIS, HASHES), max_size=3)
FACTS = st.builds(Fact, LONG, EVIDENCE, DEPENDENCIES.map(tuple), st.integers(0, 9))
CHECKPOINTS = st.builds(
    Checkpoint,
    seq=st.integers(-1, 2**53),
    task=st.none() | st.builds(Task, LONG, EVIDENCE),
    plan=PLANS,
    decisions=DECISIONS.map(tuple),
    artifacts=ARTIFACTS,
    facts=st.dictionaries(WORDS, FACTS, max_size=5),
    recent_artifacts=st.lists(URIS, unique=True).map(tuple),
)

Place = tuple[Any, str | int]


def places_in(value: object) -> list[Place]:
    """List every place inside a JSON value: what holds it, and under which key."""
    places: list[Place] = []
    if isinstance(value, dict):
        known = cast("dict[str, object]", value)
        places = [(known, key) for key in known]
    elif isinstance(value, list):
        places = [(value, number) for number in range(len(cast("list[object]", value)))]
    return places + [deeper for parent, key in places for deeper in places_in(parent[key])]
