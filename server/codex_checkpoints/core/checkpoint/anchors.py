"""Collects the messages and calls that evidence can cite (DSC-34, DSC-82).

A checkpoint forgets old calls and the text of old messages, so the folds here read the session
again.  `CallSearch` checks whether one call has an outcome, `Newest` collects the messages and
calls of the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import orjson
from attrs import evolve, frozen

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import injected_text, items, tools
from codex_checkpoints.core.agents.codex.reader import WORDS, Fold, Line
from codex_checkpoints.core.checkpoint.memory import Memory, Update
from codex_checkpoints.core.checkpoint.records import (
    Checkpoint,
    Decision,
    Evidence,
    EvidenceSource,
    Fact,
    FactStatus,
    failing_dependency,
    holds,
    status_of,
)
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.requests import ref_of, words_of
from codex_checkpoints.core.checkpoint.state import name_of
from codex_checkpoints.core.effects import Effects
from codex_checkpoints.core.turns import Turns

FIRST_WORDS = 80
"""Code points of a message or a command in an anchor."""

_APPLIED = ("Success.",)


@frozen
class Anchor:
    """A message or a call that evidence can name; `text` is its beginning."""

    source: EvidenceSource
    ref: str
    text: str
    seq: int


class CallSearch(Fold):
    """Searches for the outcome of one call; only lines that contain its id's bytes are read."""

    def __init__(self, call_id: str) -> None:
        self.replay = Replay()
        self.replay.folds.append(self)
        self.replay.needle = orjson.dumps(call_id)
        self.found = False
        self._call_id = call_id

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Request all lines with the id."""
        return WORDS

    def take(self, line: Line) -> None:
        """Check a line; stop when the outcome is found."""
        if line.seq >= self.replay.derivation.own_from and _outcome_of(line.item) == self._call_id:
            self.found = self.replay.stopped = True


def _outcome_of(item: items.Item) -> str | None:
    """Return the id of the call whose outcome an item has."""
    if isinstance(item, events.CommandRun) and item.status == "in_progress":
        return None
    ended = isinstance(item, items.ToolOutput | events.ToolResult)
    return item.call_id if ended else None


class FilesOfCall(events.Fold):
    """Collects the files that a call read or may have read, by uri; True if it certainly did."""

    def __init__(self, call_id: str) -> None:
        self.replay = Replay()
        self.replay.follow(self)
        self.uris: dict[str, bool] = {}
        self._call_id = call_id

    def take(self, record: events.Record) -> None:
        """Take the calls that ended with a record."""
        for event in record.events:
            if isinstance(event, events.CallEnded) and event.call.call_id == self._call_id:
                for each, uri in Effects(event).named:
                    if each.action == "read":
                        self.uris[uri] = each.only_if is None


class Newest(Fold):
    """Collects the newest messages and calls that can be cited."""

    def __init__(
        self, limit: int, replay: Replay | None = None, turns: Turns | None = None
    ) -> None:
        """Keep at most `limit` of each; `turns` are set if only the end of the session is read."""
        self.replay = Replay() if replay is None else replay
        self.replay.folds.append(self)
        # An older file has several lines for a call, and some lines have no outcome.
        self._calls: deque[tuple[int, items.Item]] = deque(maxlen=4 * limit)
        self._messages: deque[tuple[str, str, int]] = deque(maxlen=limit)
        self._limit = limit
        self._turns = turns

    @classmethod
    def near_the_end(cls, whole: Replay, lines: bytes, turns: Turns, limit: int) -> Newest:
        """Read only the last `lines` of the session `whole`, which ends with them.

        `turns` are the current ones, including those of an unfinished last line.  If `is_enough`,
        the anchors are the same as for the whole session.
        """
        newest = cls(limit, whole.near_the_end(lines), turns)
        newest.replay.feed(lines)
        return newest

    @property
    def is_enough(self) -> bool:
        """Whether earlier lines would change no anchor."""
        return len(self._called()) >= self._limit and all(each.text for each in self._messaged())

    def take(self, line: Line) -> None:
        """Keep a line that can be cited."""
        if line.seq < self.replay.derivation.own_from:
            return
        item = self.replay.deriver.item
        match item:
            case events.UserMessage(in_history=False) if injected_text.is_by_person(item):
                self._messages.append(
                    (ref_of(item, line.seq), words_of(item, FIRST_WORDS), line.seq)
                )
            case events.CommandRun():
                self._calls.append((line.seq, evolve(item, printed=None)))
            case events.ToolRan():
                self._calls.append((line.seq, evolve(item, texts=())))
            case events.ToolCall() if self.replay.scale.paginated:
                pass
            case events.ToolCall() | events.FilesChanged() | events.FileViewed():
                self._calls.append((line.seq, item))
            case _:
                pass

    def anchors(self) -> list[Anchor]:
        """Return messages of turns that count, then calls with an outcome, each newest first."""
        return [*self._messaged(), *self._called()]

    def _messaged(self) -> list[Anchor]:
        texts = {ref: (text, seq) for ref, text, seq in self._messages}
        anchors: list[Anchor] = []
        turns = self.replay.state.turns if self._turns is None else self._turns
        for turn in reversed([*turns.counting()]):
            last = turn.request
            if last is not None and last.ref not in texts:
                texts[last.ref] = value(last.texts[-1], FIRST_WORDS), last.seq
            for ref in reversed(turn.messages):
                if len(anchors) >= self._limit:
                    return anchors
                text, seq = texts.get(ref, ("", turn.opened_seq))
                anchors.append(Anchor("user", ref, text, seq))
        return anchors

    def _called(self) -> list[Anchor]:
        anchors: dict[str, Anchor] = {}
        for seq, item in reversed(self._calls):
            if len(anchors) >= self._limit:
                break
            for call_id, words in self._call(item):
                anchors.setdefault(call_id, Anchor("tool_output", call_id, words, seq))
        return list(anchors.values())

    def _call(self, item: items.Item) -> Iterator[tuple[str, str]]:
        match item:
            case events.ToolCall(call_id=call_id, name=name):
                if call_id in self.replay.derivation.calls.decided:
                    yield call_id, self._words(tools.called(item, _APPLIED), call_id) or name
            case (
                events.CommandRun() | events.FilesChanged() | events.ToolRan() | events.FileViewed()
            ):
                if _outcome_of(item):
                    yield item.call_id, self._words(tools.seen_by(item), item.call_id)
            case _:
                pass

    def _words(self, seen: Iterable[events.Seen], call_id: str) -> str:
        """Describe the effects of a call in a few words: files by their uris, never by its id."""
        place = 0, None, self.replay.state.base
        names = (name_of(each, place)[0] or each.name for each in seen)
        once = dict.fromkeys(name.removesuffix(f"/{call_id}") for name in names)
        return value(", ".join(once), FIRST_WORDS)


NoteKind = Literal["fact", "decision"]


@frozen
class Rest:
    """A dependency of a fact: its hash when the fact was accepted, and its current hash."""

    uri: str
    hash: str | None
    current: str | None
    holds: bool


@frozen(kw_only=True)
class Note:
    """A fact or a decision that counts; the fields of the other kind are null or empty.

    `kind` is `fact` or `decision`, `status` is `VALID` or `SUSPECT`; `why` is the first dependency
    that does not hold.  `evicted`: it does not count any more, since newer ones left no room for
    it.
    """

    kind: NoteKind
    id: str
    value: str | None = None
    topic: str | None = None
    decision: str | None = None
    rationale: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    status: FactStatus | None = None
    why: str | None = None
    evidence: Evidence
    depends_on: tuple[Rest, ...] = ()
    seq: int
    turn_id: str | None
    accepted_at: str | None
    evicted: bool = False


_UNKNOWN = Update(-1, None, None, {})
"""The origin of a note of a seed."""


def notes_of(checkpoint: Checkpoint, memory: Memory) -> tuple[Note, ...]:
    """Return the facts by key, then the decisions in the order of their acceptance.

    The evicted ones follow in the same order.
    """
    of_facts = {key: fact for (_, key), fact in memory.evicted.items() if isinstance(fact, Fact)}
    of_decisions = (each for each in memory.evicted.values() if isinstance(each, Decision))
    gone = evolve(checkpoint, facts=of_facts, decisions=tuple(of_decisions))
    unkept = _listed(gone, memory.origins)
    evicted = (evolve(each, evicted=True, status=None, why=None) for each in unkept)
    return (*_listed(checkpoint, memory.origins), *evicted)


def _listed(checkpoint: Checkpoint, origins: Mapping[tuple[str, str], Update]) -> tuple[Note, ...]:
    """Return the notes of a checkpoint; notes of a seed have no origin."""
    replaced_by = {each.supersedes: each.decision_id for each in checkpoint.decisions}
    facts = (_fact(key, checkpoint, origins) for key in sorted(checkpoint.facts))
    decisions = (
        Note(
            kind="decision",
            id=each.decision_id,
            evidence=each.evidence,
            seq=each.seq,
            topic=each.topic,
            decision=each.decision,
            rationale=each.rationale,
            supersedes=each.supersedes,
            superseded_by=replaced_by.get(each.decision_id),
            turn_id=origins.get(("decision", each.decision_id), _UNKNOWN).turn_id,
            accepted_at=origins.get(("decision", each.decision_id), _UNKNOWN).at,
        )
        for each in checkpoint.decisions
    )
    return (*facts, *decisions)


def _fact(key: str, checkpoint: Checkpoint, origins: Mapping[tuple[str, str], Update]) -> Note:
    fact, artifacts = checkpoint.facts[key], checkpoint.artifacts
    failing = failing_dependency(fact, artifacts)
    current = {uri: artifact.hash for uri, artifact in artifacts.items()}
    return Note(
        kind="fact",
        id=key,
        evidence=fact.evidence,
        seq=fact.last_touched_seq,
        value=fact.value,
        status=status_of(fact, artifacts),
        why=None if failing is None else failing.uri,
        depends_on=tuple(
            Rest(each.uri, each.hash, current.get(each.uri), holds(each, artifacts))
            for each in fact.depends_on
        ),
        turn_id=origins.get(("fact", key), _UNKNOWN).turn_id,
        accepted_at=origins.get(("fact", key), _UNKNOWN).at,
    )
