"""Adds notes to the memory of a session, revokes them, and lists them with their evidence.

A note is a fact or a decision that passed `note_rules.check`.  It is durable and in the stored
checkpoint before the caller gets an answer; a refusal writes nothing (DSC-36).  The check runs
under the right to append, so two processes never use the same decision id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import define, frozen

from codex_checkpoints.core.checkpoint import memory
from codex_checkpoints.core.checkpoint.anchors import (
    Anchor,
    CallSearch,
    FilesOfCall,
    Newest,
    Note,
    NoteKind,
    notes_of,
)
from codex_checkpoints.core.checkpoint.memory import Memory, Update, line_of
from codex_checkpoints.core.checkpoint.note_rules import Accepted, Rejected, SessionFacts, check
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, Checkpoint, Limits
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import call_ids, user_refs
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.refusal import Refusal, misfit, not_stored
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.atomic_files import Append, StorageError
from codex_checkpoints.storage.contract import Row, UnreadableSource
from codex_checkpoints.storage.records import UPDATES

T = TypeVar("T")

ANCHORS = 12
"""Number of messages, calls and files that are listed by default."""

MOST_ANCHORS = 256

_ENDS = (1 << 21, 1 << 24)
"""Bytes at the end of a long session to search before reading all of it."""

_NAMES = {"fact": "key", "decision": "decisionId"}
_SHOWN = 80


@frozen
class Evicted:
    """A `fact` or a `decision` that newer ones replaced for lack of space."""

    kind: str
    id: str


@frozen
class Applied:
    """An update that was accepted, or would be.

    `updateId` is null for a dry run, `id` for a plan; `shortened` names the texts and lists that
    were cut, `evicted` the notes that were removed to make space.
    """

    accepted: bool
    dry_run: bool
    session_id: str
    update_id: str | None
    seq: int
    turn_id: str | None
    kind: str
    id: str | None
    shortened: tuple[str, ...]
    evicted: tuple[Evicted, ...] = ()


@frozen
class Revoked:
    """A note that was revoked."""

    session_id: str
    kind: NoteKind
    id: str
    seq: int


@define
class Notes:
    """The memory of sessions."""

    _sessions: Sessions
    _now: Callable[[], str] = stamps.now
    _new_id: Callable[[], str] = stamps.new_id

    def try_out(self, session: str, payload: bytes) -> Applied:
        """Check a payload; nothing is written."""
        row, opened = self._sessions.open_own(session)
        place = self._place(row, opened)
        accepted = _judged(place, payload)
        return place.applied(accepted, place.update(accepted, None), None)

    def apply(self, session: str, payload: bytes) -> Applied:
        """Accept a payload; on return it is durable and in the stored checkpoint (DSC-33).

        Raises the refusal of the broken rule (`note_rules`), `storage_error`, or `conflict` for a
        file that is not the current one of a session of this home.
        """
        row, opened = self._sessions.open_own(session)
        place = self._place(row, opened)
        # Checked first without the right to append: a refusal makes no file.
        _judged(place, payload)
        update_id = self._new_id()

        def write(append: Append) -> Applied:
            now = self._place(row, opened, place.calls)
            accepted = _judged(now, payload)
            update = now.update(accepted, self._now())
            append(line_of(update, update_id))
            return now.applied(accepted, update, update_id)

        return self._written(row, opened, write)

    def revoke(self, session: str, name: str, kind: str | None = None) -> Revoked:
        """Revoke a fact or a decision; refuses `unknown_note`, `invalid_payload` (both match)."""
        row, opened = self._sessions.open_own(session)
        _standing(self._place(row, opened), name, kind)

        def write(append: Append) -> Revoked:
            now = self._place(row, opened)
            found = _standing(now, name, kind)
            update = Update(now.seq, now.turn_id, None, {}, (found, name), self._now())
            append(line_of(update, ""))
            return Revoked(row.session_id, found, name, now.seq)

        return self._written(row, opened, write)

    def notes(self, session: str) -> tuple[Note, ...]:
        """Return the facts by key, then the decisions as they were accepted, then evicted ones."""
        row, opened = self._sessions.open(session)
        place = self._place(row, opened)
        return notes_of(place.checkpoint, place.memory)

    def anchors(self, session: str, limit: int | None = None) -> tuple[Anchor, ...]:
        """Return the newest messages, calls and files, `limit` of each, as evidence (DSC-82)."""
        limit = ANCHORS if limit is None else limit
        if not 1 <= limit <= MOST_ANCHORS:
            raise misfit(f"limit: must be 1 to {MOST_ANCHORS}")
        row, opened = self._sessions.open(session)
        newest = self._newest(row, opened, limit)
        artifacts = self._place(row, opened).checkpoint.artifacts.values()
        files = sorted(
            (each for each in artifacts if each.kind == "file"),
            key=lambda each: (-each.last_observed_seq, each.uri),
        )
        return (
            *newest.anchors(),
            *(
                Anchor("file", each.uri, value(each.uri, MAX_VALUE_CHARS), each.last_observed_seq)
                for each in files[:limit]
            ),
        )

    def _newest(self, row: Row, opened: SessionFile, limit: int) -> Newest:
        """Find the newest messages and calls, mostly without reading a long file again."""
        with contextlib.suppress(UnreadableSource):
            for size in _ENDS:
                lines = opened.last(size)
                if lines is None:
                    break
                turns = opened.now().state.turns
                newest = Newest.near_the_end(opened.replay, lines, turns, limit)
                newest.replay.close(opened.tail)
                if newest.is_enough:
                    return newest
        newest = Newest(limit)
        self._sessions.catalogue.read_with(newest.replay, row)
        return newest

    def _place(self, row: Row, opened: SessionFile, calls: _Calls | None = None) -> _Place:
        replay = opened.now()
        counts = replay.state.turns.counts
        updates = self._sessions.projections.updates_of(opened)
        seed = replay.state.seed
        return _Place(
            row.session_id,
            replay,
            updates,
            memory.replay(updates, counts, Limits(), seed),
            self._sessions.projections.project(opened, replay, updates),
            _Calls(self._sessions, row, seed) if calls is None else calls,
            # The file may have become shorter; later updates still come later.
            max([replay.seq, *(each.seq for each in updates if counts(each.turn_id))]),
        )

    def _written(self, row: Row, opened: SessionFile, write: Callable[[Append], T]) -> T:
        try:
            with self._sessions.records.journal(row.session_id, UPDATES) as journal:
                written = write(journal.append)
        except StorageError as error:
            hint = "Make room or give the right to write, and try again."
            facts = {"sessionId": row.session_id, "rule": "storage", "hint": hint}
            raise not_stored("the note cannot be stored", error, facts) from error
        self._sessions.projections.keep(row, opened)
        return written


class _Calls:
    """The finished calls of a session; each is searched for lazily."""

    def __init__(self, sessions: Sessions, row: Row, seed: Checkpoint | None) -> None:
        self._sessions = sessions
        self._row = row
        self._known = {} if seed is None else dict.fromkeys(call_ids(seed), True)
        self._files: dict[str, dict[str, bool]] = {}

    def __contains__(self, call_id: object) -> bool:
        if not isinstance(call_id, str):
            return False
        if call_id not in self._known:
            search = CallSearch(call_id)
            self._sessions.catalogue.read_with(search.replay, self._row)
            self._known[call_id] = search.found
        return self._known[call_id]

    def files_read(self, call_id: str) -> Mapping[str, bool]:
        """Return the files that a call read or may have read; the session is searched once."""
        if call_id not in self._files:
            search = FilesOfCall(call_id)
            self._sessions.catalogue.read_with(search.replay, self._row)
            self._files[call_id] = search.uris
        return self._files[call_id]


@frozen
class _Place:
    session_id: str
    replay: Replay
    updates: tuple[Update, ...]
    memory: Memory
    checkpoint: Checkpoint
    calls: _Calls
    seq: int

    @property
    def turn_id(self) -> str | None:
        """Return the current turn for an update, None before the first.

        A turn that was rolled back before it ended may still be the task of the file; no new update
        belongs to it.
        """
        turns = self.replay.state.turns
        turn = turns.at(None)
        if turn is not None and turn.rolled_back:
            turn = next(reversed([*turns.counting()]), None)
        return None if turn is None else turn.turn_id

    def known(self) -> SessionFacts:
        """Return the facts to check a claim against; a rolled back decision id is free."""
        task = self.replay.task()
        turns = self.replay.state.turns.counting()
        seed = self.replay.state.seed
        began_with = () if seed is None else seed.decisions
        used = {name for kind, name in self.memory.origins if kind == "decision"}
        messages = frozenset(ref for turn in turns for ref in turn.messages)
        return SessionFacts(
            task_ref=None if task is None else task.evidence.ref,
            user_refs=messages if seed is None else messages | user_refs(seed),
            call_ids=self.calls,
            artifacts=self.checkpoint.artifacts,
            decisions=frozenset(each.decision_id for each in self.memory.decisions),
            used_decision_ids=frozenset(used | {each.decision_id for each in began_with}),
            files_read=self._files_read,
        )

    def _files_read(self, call_id: str) -> tuple[str, ...]:
        # A bare name in a call counts if it is a file, and therefore an artifact.
        read = self.calls.files_read(call_id)
        return tuple(uri for uri, sure in read.items() if sure or uri in self.checkpoint.artifacts)

    def update(self, accepted: Accepted, at: str | None) -> Update:
        """Return the stored form of an accepted payload."""
        return Update(self.seq, self.turn_id, accepted.payload, accepted.hashes, at=at)

    def _evicted_by(self, update: Update) -> tuple[Evicted, ...]:
        state = self.replay.state
        updates = (*self.updates, update)
        after = memory.replay(updates, state.turns.counts, Limits(), state.seed)
        before = self.memory.evicted
        return tuple(Evicted(*each) for each in after.evicted if each not in before)

    def applied(self, accepted: Accepted, update: Update, update_id: str | None) -> Applied:
        kind = str(accepted.payload["kind"])
        name = accepted.payload.get(_NAMES.get(kind, ""))
        return Applied(
            accepted=True,
            dry_run=update_id is None,
            session_id=self.session_id,
            update_id=update_id,
            seq=self.seq,
            turn_id=self.turn_id,
            kind=kind,
            id=None if name is None else str(name),
            shortened=accepted.shortened,
            evicted=self._evicted_by(update),
        )


def _judged(place: _Place, payload: bytes) -> Accepted:
    verdict = check(payload, place.known())
    if isinstance(verdict, Rejected):
        facts = {**verdict.facts, "rule": verdict.rule, "hint": verdict.hint}
        raise Refusal(verdict.code, verdict.message, facts)
    return verdict


def _standing(place: _Place, name: str, kind: str | None) -> NoteKind:
    if kind not in {None, *_NAMES}:
        problem = f"kind: must be one of {', '.join(_NAMES)}"
        raise _misnamed(problem)
    found: list[NoteKind] = []
    if name in place.memory.facts:
        found.append("fact")
    if any(name == each.decision_id for each in place.memory.decisions):
        found.append("decision")
    if kind is not None:
        found = [each for each in found if each == kind]
    shown = value(name, _SHOWN)
    if not found:
        message = f"session {place.session_id} has no {kind or 'note'} {shown!r}"
        facts = {
            "sessionId": place.session_id,
            "id": value(name, MAX_VALUE_CHARS),
            "kind": kind,
            "rule": "standing",
            "hint": "Name a fact or a decision that `notes` lists.",
        }
        raise Refusal("unknown_note", message, facts)
    if len(found) > 1:
        raise _misnamed(f"kind: {shown!r} is a fact and a decision")
    return found[0]


def _misnamed(problem: str) -> Refusal:
    hint = f"Say which kind is meant: {' or '.join(_NAMES)}."
    facts = {"problems": [problem], "rule": "kind", "hint": hint}
    return Refusal("invalid_payload", problem, facts)
