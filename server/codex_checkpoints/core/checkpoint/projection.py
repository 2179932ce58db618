"""State -> checkpoint: what a session shows of itself, with its memory and the files of now.

A checkpoint is a function of the records, the accepted updates and the current hashes of observed
files; nothing else comes in (DSC-1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Evidence,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.state import State


def checkpoint_of(
    state: State,
    seq: int,
    updates: Iterable[Update],
    hashes: Mapping[str, str],
    limits: Limits,
) -> Checkpoint:
    """Return the checkpoint at `seq`, where the state stands."""
    remembered = memory.replay(updates, state.turns.counts, limits, state.seed)
    artifacts = {
        uri: Artifact(uri, each.kind, hashes.get(uri) if each.hashable else each.hash, each.seq)
        for uri, each in state.observations.kept(limits).items()
    }
    recent = sorted(artifacts, key=lambda uri: (-artifacts[uri].last_observed_seq, uri))
    return Checkpoint(
        seq,
        task_of(state),
        plan_of(state, remembered, limits),
        remembered.decisions,
        artifacts,
        remembered.facts,
        tuple(recent[: limits.max_recent_artifacts]),
    )


def task_of(state: State) -> Task | None:
    """Return what a person asked for last, in a turn that still counts, else before them all."""
    said = [turn.said for turn in state.turns.counting() if turn.said is not None]
    last = max(said, key=lambda one: one.order, default=None)
    if last is None:
        return None if state.seed is None else state.seed.task
    return Task(last.text, Evidence("user", last.ref))


def plan_of(state: State, remembered: memory.Memory, limits: Limits) -> Plan:
    """Return the plan: the newer one of the last recorded and the last accepted."""
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    if state.planned is not None:
        plans.append(state.planned)
    last = max(plans, key=lambda one: one.order, default=None)
    # An update is applied after the record with its `seq`, so it wins a tie (DSC-79).
    if remembered.plan is not None and (last is None or remembered.plan_seq >= last.seq):
        return remembered.plan
    if last is None:
        return Plan() if state.seed is None else state.seed.plan
    kept = last.steps[: limits.max_plan_steps_total]
    return Plan(
        tuple(Step(f"s{place}", text) for place, (text, _) in enumerate(kept, 1)),
        {f"s{place}": done for place, (_, done) in enumerate(kept, 1)},
        Evidence("tool_output", last.call_id),
    )
