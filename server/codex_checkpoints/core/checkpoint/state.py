"""Everything that is known of a session after some of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from attrs import Factory, field

from codex_checkpoints.core.checkpoint.observations import Observation, Observations
from codex_checkpoints.core.checkpoint.records import Checkpoint, Evidence
from codex_checkpoints.core.rollout.items import SessionMeta, Tokens, ToolCall
from codex_checkpoints.core.rollout.turns import Planned, Turns
from codex_checkpoints.values import define, frozen

NAMED = frozenset({None, "due", "done"})
"""The values of `State.naming` with which a message is no part of the naming task."""

Seeds = Callable[[str], Checkpoint | None]
"""From the id of a session that we made to the checkpoint that it began with (JUN-46)."""

_WAITING = 1024
"""How many calls may wait for their outcome."""

_WAITING_BYTES = 1 << 22
"""How many bytes of calls may wait, though the newest always may."""

_DECIDED = 4096
"""How many decided calls are remembered at least; up to twice as many before a clearance."""


@frozen
class WaitingCall:
    """A call of an older file, and how long the line was that asks."""

    call: ToolCall
    size: int


@define
class Calls:
    """The calls of an older file: those that wait for their outcome, and those that are decided.

    Later records about a decided call change nothing.  Of too many calls the oldest are forgotten.
    """

    waiting: dict[str, WaitingCall] = Factory(dict[str, WaitingCall])
    decided: dict[str, None] = Factory(dict[str, None])
    _size: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._size = sum(each.size for each in self.waiting.values())

    def wait(self, call: ToolCall, size: int) -> None:
        """Let a call wait for its outcome."""
        if call.call_id in self.decided:
            return
        self.end(call.call_id)
        self.waiting[call.call_id] = WaitingCall(call, size)
        self._size += size
        while len(self.waiting) > _WAITING or (
            self._size > _WAITING_BYTES and len(self.waiting) > 1
        ):
            self.end(next(iter(self.waiting)))

    def end(self, call_id: str) -> None:
        """Let a call wait no longer."""
        ended = self.waiting.pop(call_id, None)
        if ended is not None:
            self._size -= ended.size

    def decide(self, call_id: str) -> None:
        """Remember that the outcome of a call is known."""
        self.end(call_id)
        self.decided[call_id] = None
        if len(self.decided) > 2 * _DECIDED:
            for oldest in list(islice(self.decided, _DECIDED)):
                del self.decided[oldest]


@define
class State:
    """A session so far; `…_at` are positions of lines."""

    head: SessionMeta | None = None
    base: str | None = None
    paginated: bool = False
    own_from: int = -1
    """The first `seq` of a subagent's own lines."""
    typed: bool = False
    """Whether typed messages were found, so that the model's history is no longer asked."""
    model: str | None = None
    name: str | None = None
    first_text: str | None = None
    """The first message of a person, which names the session for people."""
    turn_folder: str | None = None
    turns: Turns = Factory(Turns)
    planned: Planned | None = None
    """A plan recorded before the first turn."""
    observations: Observations = Factory(Observations)
    calls: Calls = Factory(Calls)
    compactions: int = 0
    compacted_at: int = 0
    tokens: Tokens | None = None
    tokens_at: int = 0
    window: int | None = None
    naming: str | None = None
    """`due` until the naming task of a file of ours begins, then its id, then `done`."""
    seed: Checkpoint | None = None
    """What the session began with, where an operation of ours made it."""
    order: int = 0
    unread_calls: int = 0
    answered_at: int = 0
    worked_at: int = 0
    observers: list[Callable[[Observation], None]] = field(init=False, factory=list)
    """Who else is given what the session observed, at once."""

    @property
    def tokens_stale(self) -> bool:
        """Return whether the window was replaced since its size was reported."""
        return self.compacted_at > self.tokens_at

    @property
    def ends_with_answer(self) -> bool:
        """Return whether an older file ends with an answer: no work after it, no call waiting."""
        answered = self.answered_at > self.worked_at and not self.calls.waiting
        return answered and not self.paginated

    def begin(self, head: SessionMeta) -> None:
        """Take a head: who the session is and where its paths begin."""
        self.head = head
        self.base = head.cwd
        self.own_from = -1 if head.inherited_below is None else head.inherited_below

    def observe(self, observation: Observation) -> None:
        """Take what happened."""
        for observer in self.observers:
            observer(observation)
        self.observations.observe(observation)

    def next_order(self) -> int:
        """Return the next place in the order in which tasks and plans were set."""
        self.order += 1
        return self.order


# --- what a session goes on from -----------------------------------------------------------------
#
# A compaction into a new session and a hard restore put a replacement in the place of all older
# records, so nothing in the new file says what was known.  The record of the operation does: it
# holds the checkpoint that the session began with, its seed.  The session's own records and updates
# change it, and its `seq` goes on behind the seed's, so that ages stay comparable (JUN-46).


def unsown(_session_id: str) -> Checkpoint | None:
    """Return that a session began with nothing."""
    return None


def user_refs(seed: Checkpoint) -> frozenset[str]:
    """Return the messages that a seed names: they stay citable."""
    return frozenset(each.ref for each in _named(seed) if each.source == "user")


def call_ids(seed: Checkpoint) -> frozenset[str]:
    """Return the calls that a seed names: they stay citable."""
    outputs = (uri for uri, each in seed.artifacts.items() if each.kind == "tool_output")
    cited = (each.ref for each in _named(seed) if each.source == "tool_output")
    return frozenset({*cited, *(uri.partition("/")[2] for uri in outputs)})


def _named(seed: Checkpoint) -> Iterator[Evidence]:
    if seed.task is not None:
        yield seed.task.evidence
    if seed.plan.evidence is not None:
        yield seed.plan.evidence
    yield from (each.evidence for each in seed.decisions)
    yield from (each.evidence for each in seed.facts.values())
