"""A stream of bytes -> a checkpoint: a reader, and the fold that keeps what a checkpoint needs.

`Replay` is what a follower keeps of a session: feed it bytes in any portions, in any number of
sittings, and it stands where one pass over the whole would stand (DSC-75).  It can be saved and
taken up again.  Other folds may take the same lines in the same pass.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Self

import orjson

from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.canonical import loaded, saved
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Evidence,
    Limits,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.reducer import Reducer
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.text import find_secret
from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.reader import Fold, Reader, Scale, is_whole
from codex_checkpoints.values import define


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


LONGEST_TAIL = 1 << 23
"""An unfinished last line beyond this many bytes is not looked at before its LF is there."""

SAVED = 4
"""The number of the rules of `Replay.save`; what was saved by others is read anew."""


@define
class _Saved:
    version: int
    scale: Scale
    state: State


class Replay:
    """The state of a session after the bytes so far."""

    def __init__(self, state: State | None = None, reader: Reader | None = None) -> None:
        """Begin before the first byte of a session, behind the folds of a reader."""
        self.state = State() if state is None else state
        self.reader = Reader() if reader is None else reader
        self.reader.folds.append(Reducer(self.state, self.scale))

    @property
    def scale(self) -> Scale:
        """Return the counts of lines, and of those that gave nothing."""
        return self.reader.scale

    @property
    def stopped(self) -> bool:
        """Whether a limit was reached, so that no more bytes are wanted from this file."""
        return self.reader.stopped

    @property
    def seq(self) -> int:
        """Return `seq` after the last whole line."""
        return self.scale.seq

    @property
    def pending(self) -> int:
        """How many of the bytes fed so far belong to a last line that has not ended."""
        return self.reader.pending

    def beside(self, fold: Fold) -> None:
        """Have another fold take each line as well."""
        self.reader.folds.append(fold)

    def begin(self, head: SessionMeta) -> None:
        """Take the head before the first line, for a session whose history begins elsewhere."""
        self.state.begin(head)
        self.scale.paginated = self.scale.ordinals = head.paginated

    def sow(self, seed: Checkpoint) -> None:
        """Take what the session goes on from, before its first line (JUN-46)."""
        self.state.seed = seed
        self.state.observations.begin(seed)
        self.scale.seed = seed.seq

    def next_file(self, limit: int | None = None) -> None:
        """Go on with the first byte of the next file of a chain, up to the ordinal `limit`."""
        self.reader.next_file(limit)

    def feed(self, data: bytes) -> int:
        """Apply the whole lines in `data`; return how many bytes were consumed.

        Offer the rest again, with what follows it.  `stopped` says that no more is wanted.
        """
        return self.reader.feed(data)

    def close(self, tail: bytes) -> None:
        """Say that a file of the chain has ended, with a last line that may lack its LF."""
        self.reader.close(tail)

    def drop_unfinished(self) -> None:
        """Forget a long last line that has not ended; its bytes will be offered again."""
        self.reader.drop_unfinished()

    def with_tail(self, tail: bytes) -> Self:
        """Return the replay after an unfinished last line, if it is a whole object already.

        The replay itself is left as it is: more may come.
        """
        if self.stopped or not is_whole(tail):
            return self
        ahead = copy.deepcopy(self)
        ahead.drop_unfinished()
        ahead.close(tail)
        return ahead

    def task(self) -> Task | None:
        """Return the task alone, without a look at what else a checkpoint holds."""
        return task_of(self.state)

    def checkpoint(
        self,
        updates: Iterable[Update],
        hashes: Mapping[str, str],
        limits: Limits | None = None,
    ) -> Checkpoint:
        """Return the checkpoint after the last whole line (DSC-1)."""
        limits = Limits() if limits is None else limits
        return checkpoint_of(self.state, self.seq, updates, hashes, limits)

    def files(self) -> tuple[str, ...]:
        """Return the uris of the files whose hashes a checkpoint holds."""
        kept = self.state.observations.kept(Limits())
        return tuple(uri for uri, observed in kept.items() if observed.hashable)

    def save(self) -> object | None:
        """Return everything as JSON values; only between lines.

        None while a call waits that holds a secret: what is kept on disk holds none (DSC-81), and
        without its words the call could not be read when its outcome comes.
        """
        waiting = (saved(call) for call, _ in self.state.calls.waiting.values())
        if any(find_secret(orjson.dumps(call).decode()) for call in waiting):
            return None
        self.state.observations.settle()
        return saved(_Saved(SAVED, self.scale, self.state))

    @classmethod
    def load(cls, value: object) -> Replay | None:
        """Take up what `save` gave; None where it is of another version or damaged."""
        try:
            kept = loaded(_Saved, value)
        except Exception:  # noqa: BLE001 - a cache that cannot be read is no cache
            return None
        return cls(kept.state, Reader(scale=kept.scale)) if kept.version == SAVED else None
