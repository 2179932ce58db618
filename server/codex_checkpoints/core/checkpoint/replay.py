"""From the bytes of a session to its checkpoint.

`Replay` takes bytes in pieces of any size; the result is that of one pass over the whole (DSC-75).
It can be saved and loaded.  Other folds can take the same lines in the same pass.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Self

import orjson

from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.canonical import state_codec
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    FOLDER,
    Artifact,
    Checkpoint,
    Evidence,
    Limits,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.reducer import Reducer
from codex_checkpoints.core.checkpoint.state import (
    NO_SEEN,
    FileObservation,
    Hashes,
    SeenHashes,
    State,
)
from codex_checkpoints.core.checkpoint.text import find_secret
from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.reader import Reader, Scale, is_whole
from codex_checkpoints.values import define


def task_of(state: State) -> Task | None:
    """Return the last text of a person in a turn that counts, else the task of the seed."""
    said = [turn.said for turn in state.turns.counting() if turn.said is not None]
    last = max(said, key=lambda one: one.order, default=None)
    if last is None:
        return None if state.seed is None else state.seed.task
    return Task(last.text, Evidence("user", last.ref))


def plan_of(state: State, remembered: memory.Memory, limits: Limits) -> Plan:
    """Return the newer of the last recorded and the last accepted plan, else that of the seed."""
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


def _artifact(uri: str, observed: FileObservation, hashes: Hashes, seen: SeenHashes) -> Artifact:
    if not observed.hashable or hashes.get(uri) == FOLDER:
        known = None if observed.hashable else observed.hash
        return Artifact(uri, observed.kind, known, observed.seq)
    now, then = hashes.get(uri), observed.hash or seen.get((uri, observed.seq))
    comparable = now is None or then is None or now.partition(":")[0] == then.partition(":")[0]
    shown = then if uri in hashes and comparable else None
    return Artifact(uri, observed.kind, now, observed.seq, seen_hash=shown)


LONGEST_TAIL = 1 << 23
"""A longer last line is not read before its LF is there, in bytes."""

SAVED = 7
"""The version of what `Replay.save` returns."""


@define
class _Saved:
    version: int
    scale: Scale
    state: State


class Replay(Reader):
    """A reader whose fold keeps the state of a session after the bytes so far."""

    def __init__(self, state: State | None = None, scale: Scale | None = None) -> None:
        """Begin before the first byte of a session, or where a saved state ends."""
        super().__init__(scale=scale)
        self.state = State() if state is None else state
        self.reducer = Reducer(self.state, self.scale)
        self.folds.append(self.reducer)

    @property
    def seq(self) -> int:
        """Return `seq` after the last whole line."""
        return self.scale.seq

    def begin(self, head: SessionMeta) -> None:
        """Take the head before the first line, for a session whose history begins elsewhere."""
        self.state.begin(head)
        self.scale.paginated = self.scale.ordinals = head.paginated

    def begin_from(self, seed: Checkpoint) -> None:
        """Take the checkpoint that the session begins with, before its first line (JUN-46)."""
        self.state.seed = seed
        self.state.observations.begin(seed)
        self.scale.seed = seed.seq

    def with_tail(self, tail: bytes) -> Self:
        """Return a copy that has read an unfinished last line; itself if the line is not whole."""
        if self.stopped or not is_whole(tail):
            return self
        ahead = copy.deepcopy(self)
        ahead.drop_unfinished()
        ahead.close(tail)
        return ahead

    def near_the_end(self, lines: bytes) -> Replay:
        """Return a replay that stands before the last `lines` of what this one has read."""
        scale, state = self.scale, self.state
        count = sum(1 for line in lines.split(b"\n") if line.strip())
        seed = None if state.seed is None else state.seed.seq
        at = Scale(scale.lines - count, -1, scale.ordinals, scale.paginated, seed=seed)
        end = State(head=state.head, own_from=state.own_from, typed=state.typed, seed=state.seed)
        return Replay(end, at)

    def task(self) -> Task | None:
        """Return the task of the checkpoint."""
        return task_of(self.state)

    def checkpoint(
        self,
        updates: Iterable[Update],
        hashes: Hashes,
        limits: Limits | None = None,
        seen: SeenHashes = NO_SEEN,
    ) -> Checkpoint:
        """Return the checkpoint after the last whole line (DSC-1)."""
        limits = Limits() if limits is None else limits
        state = self.state
        remembered = memory.replay(updates, state.turns.counts, limits, state.seed)
        kept = state.observations.kept(limits, hashes, seen)
        artifacts = {uri: _artifact(uri, each, hashes, seen) for uri, each in kept.items()}
        recent = [uri for uri, each in kept.items() if not each.looks]
        recent.sort(key=lambda uri: (-artifacts[uri].last_observed_seq, uri))
        return Checkpoint(
            self.seq,
            task_of(state),
            plan_of(state, remembered, limits),
            remembered.decisions,
            artifacts,
            remembered.facts,
            tuple(recent[: limits.max_recent_artifacts]),
        )

    def files(self) -> tuple[str, ...]:
        """Return the uris on whose files or folders a checkpoint depends."""
        return self.state.observations.uris()

    def save(self) -> object | None:
        """Return everything as JSON values; call it only between lines.

        Returns None while a waiting call holds a secret: no secret is stored on disk (DSC-81), and
        the call cannot be read without it when its outcome comes.
        """
        waiting = (state_codec.write(call) for call, _ in self.state.calls.waiting.values())
        if any(find_secret(orjson.dumps(call).decode()) for call in waiting):
            return None
        self.state.observations.settle()
        return state_codec.write(_Saved(SAVED, self.scale, self.state))

    @classmethod
    def load(cls, value: object) -> Replay | None:
        """Return the replay that `save` stored; None if it is damaged or of another version."""
        try:
            kept = state_codec.read(value, _Saved)
        except Exception:  # noqa: BLE001 - a cache that cannot be read is no cache
            return None
        return cls(kept.state, kept.scale) if kept.version == SAVED else None
