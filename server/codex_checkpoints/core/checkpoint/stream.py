"""Keeps the state of a session from its events, and makes its checkpoint.

The state and all folds that follow it take the same records, the state first. It knows neither
files nor agents: a deriver gives it the records.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints.core import events
from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    FOLDER,
    MAX_URI_CHARS,
    MAX_VALUE_CHARS,
    Artifact,
    Checkpoint,
    Evidence,
    Limits,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.recovered import in_our_text
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.requests import (
    asked_by,
    take_goal,
    take_letter,
    take_message,
    take_plan,
    take_replaced,
    task_of,
    trust_events,
)
from codex_checkpoints.core.checkpoint.state import (
    NO_SEEN,
    FileObservation,
    Hashes,
    Observation,
    SeenHashes,
    State,
)
from codex_checkpoints.core.events import Event, Record
from codex_checkpoints.core.fields import time_of
from codex_checkpoints.core.turns import Planned


class Reducer:
    """The fold that keeps the state of a session.

    1. The task is the newest request that counts, as `Turns` decides; without any, the messages of
       the newest replacement count (DSC-29, DSC-30).
    2. The plan is the last one of a turn that counts.
    3. An artifact comes from a call that ended.  It stays when its turn is rolled back, since the
       operation did happen (DSC-78).  The latest observation decides its kind.
    """

    def __init__(self, state: State) -> None:
        """Change this state."""
        self._state = state

    def take(self, record: Record) -> None:
        """Take the next record."""
        self._state.waits = record.waits
        for event in record.events:
            self._take(event, record)

    def _take(self, event: Event, record: Record) -> None:  # noqa: C901, PLR0912, PLR0915 - a case for each kind
        state = self._state
        match event:
            case events.Called():
                state.worked_at = record.position
                state.turns.called()
            case events.InputGiven():
                state.worked_at = record.position
            case events.Thought():
                state.worked_at = record.position
                state.turns.thought()
            case events.Answered():
                state.answered_at = record.position
                if record.counts:
                    state.turns.spoke(event.turn_id, event.text, final=event.final)
            case events.CallEnded():
                _observe(state, event, record)
            case events.Tokens():
                state.tokens, state.tokens_at = event, record.position
                state.window = state.window if event.window is None else event.window
                state.resets_at = state.resets_at if event.resets_at is None else event.resets_at
            case events.Limits(resets_at=resets_at):
                state.resets_at = resets_at
            case events.UserMessage():
                state.worked_at = record.position
                take_message(state, event, record)
            case events.HistoryRetracted():
                trust_events(state)
            case events.TurnContext():
                if event.folder is not None:
                    state.newest_folder = record.file, event.folder
                state.model = state.model if event.model is None else event.model
            case events.TaskStarted():
                _task_started(state, event, record)
            case events.TaskEnded():
                _task_ended(state, event, record)
            case events.Trouble():
                state.turns.failed(_reason(state, event))
            case events.GoalSet():
                take_goal(state, event, record)
            case events.GoalContinued():
                state.turns.goal_continues()
            case events.PlanSet():
                _set_plan(state, event, record)
            case events.PlanMessage(text=text):
                take_plan(state, asked_by(state, "plan", text, record), approved=event.approved)
            case events.AgentWrote():
                take_letter(state, event, record)
            case events.ReviewMessage(text=text):
                if not event.ended:
                    state.turns.ask(asked_by(state, "review", text, record), event.turn_id)
            case events.WindowOpened():
                _window_opened(state, event, record)
            case events.RolledBack(turns=turns):
                state.turns.roll_back(turns)
            case events.ThreadNamed(name=name):
                state.name = None if name is None else value(name, MAX_VALUE_CHARS)
            case events.NotUnderstood(reason="unread_call"):
                state.unread_calls += event.count
            case events.NotUnderstood():
                pass
            case (
                events.ModeSet()
                | events.CallText()
                | events.OutputText()
                | events.AnswerRepeated()
                | events.AgentCalled()
                | events.AgentsAnswered()
                | events.Chosen()
            ):
                pass  # a checkpoint has none of them
            case events.SessionMeta():
                state.begin(event)
            case events.FolderFound():
                state.base = event.folder


def _task_started(state: State, event: events.TaskStarted, record: Record) -> None:
    state.window = state.window if event.window is None else event.window
    if not event.names_session:
        state.turns.task_started(
            event.turn_id,
            record.position,
            record.seq,
            record.at,
            parent=event.parent,
            for_goal=event.for_goal,
        )


def _task_ended(state: State, event: events.TaskEnded, record: Record) -> None:
    state.turns.task_ended(
        event.turn_id,
        record.position,
        record.seq,
        aborted=event.aborted,
        answered=event.answered,
        reason=None if event.error is None else _reason(state, event.error),
    )


def _reason(state: State, trouble: events.Trouble) -> str:
    """Return the message of an error, with the reset time of a used-up limit."""
    text = value(trouble.text, MAX_VALUE_CHARS)
    resets_at = time_of(state.resets_at) if trouble.is_limit else None
    return text if resets_at is None else f"{text} (resets {resets_at})"


def _window_opened(state: State, event: events.WindowOpened, record: Record) -> None:
    """Count a window."""
    take_replaced(state, event.requests, record)
    state.windows += 1
    state.compacted_at = record.position
    state.turns.compacted()
    change = {"compaction": 1, "undo": -1, "restore": 0}[event.by]
    state.compactions = max(0, state.compactions + change)
    if event.begins_file and event.own_text and state.seed is None:
        state.recovered = in_our_text(event.own_text, f"seq:{record.seq}")


def _set_plan(state: State, event: events.PlanSet, record: Record) -> None:
    kept = tuple((value(text, MAX_VALUE_CHARS), done) for text, done in event.steps)
    planned = Planned(kept, event.call_id[:MAX_URI_CHARS], record.seq, state.turns.next_order())
    turn = state.turns.at(event.turn_id)
    if turn is None:
        state.planned = planned
    else:
        turn.planned = planned


def _observe(state: State, event: events.CallEnded, record: Record) -> None:
    place = record.seq, event.folder, event.base
    state.observations.observe(
        Observation(place, event.call, event.texts, event.shortened, record.at)
    )


def plan_of(state: State, remembered: memory.Memory, limits: Limits) -> Plan:
    """Return the newer of the last recorded and the last accepted plan, else the seed's plan."""
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    if state.planned is not None:
        plans.append(state.planned)
    last = max(plans, key=lambda one: one.order, default=None)
    # An update is applied after the record with its `seq`, so it wins a tie (DSC-79).
    if remembered.plan is not None and (last is None or remembered.plan_seq >= last.seq):
        return remembered.plan
    if last is None:
        before = state.seed or state.recovered
        return Plan() if before is None else before.plan
    kept = last.steps[: limits.max_plan_steps_total]
    return Plan(
        tuple(Step(f"s{place}", text) for place, (text, _) in enumerate(kept, 1)),
        {f"s{place}": done for place, (_, done) in enumerate(kept, 1)},
        Evidence("user" if last.approved else "tool_output", last.call_id),
    )


def _artifact(uri: str, observed: FileObservation, hashes: Hashes, seen: SeenHashes) -> Artifact:
    if not observed.hashable or hashes.get(uri) == FOLDER:
        known = None if observed.hashable else observed.hash
        return Artifact(uri, observed.kind, known, observed.seq)
    now, then = hashes.get(uri), observed.hash or seen.get((uri, observed.seq))
    comparable = now is None or then is None or now.partition(":")[0] == then.partition(":")[0]
    shown = then if uri in hashes and comparable else None
    return Artifact(uri, observed.kind, now, observed.seq, seen_hash=shown)


class Stream:
    """The records of a session on their way to its state and to the folds that follow."""

    def __init__(self, state: State | None = None) -> None:
        """Begin before the first record of a session, or after a saved state."""
        self.state = State() if state is None else state
        self.followers: list[events.Fold] = []
        self._reducer = Reducer(self.state)
        self._seq = 0

    @property
    def seq(self) -> int:
        """Return the number of the newest record."""
        return self._seq

    def follow(self, fold: events.Fold, *, texts: bool = False) -> None:  # noqa: ARG002
        """Give the records to another fold as well, after the state has taken them.

        `texts`: it needs the `TextEvent`s, which this stream gives if its deriver does.
        """
        self.followers.append(fold)

    def give(self, record: Record) -> None:
        """Give the next record to the state, then to the folds."""
        self._seq = record.seq
        self._reducer.take(record)
        for fold in self.followers:
            fold.take(record)

    def begin_from(self, seed: Checkpoint) -> None:
        """Take the checkpoint that the session begins with, before its first record (JUN-46)."""
        self.state.seed = seed
        self.state.observations.begin(seed)

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
        """Return the checkpoint after the newest record (DSC-1)."""
        limits = Limits() if limits is None else limits
        state = self.state
        remembered = memory.replay(updates, state.turns.counts, limits, state.seed)
        kept = state.observations.kept(limits, hashes, seen)
        artifacts = {uri: _artifact(uri, each, hashes, seen) for uri, each in kept.items()}
        recent = [uri for uri, each in kept.items() if not each.minor]
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
        """Return the uris of the files and folders on which a checkpoint depends."""
        return self.state.observations.uris()
