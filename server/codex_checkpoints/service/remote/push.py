"""Sends sessions to a remote, exactly the bytes that were shown.

Bytes go first, the row last: an interrupted push leaves a session that lists do not show, or show
in its earlier state.  A later push continues from the size in the remote.  The size
in the remote is read before the session file is checked again, so a shorter file was reverted.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.service.operation import operation_of
from codex_checkpoints.service.refusal import Cancelled, Refusal, keeping, reading_file
from codex_checkpoints.service.remote.outgoing import Outgoing
from codex_checkpoints.service.remote.refusals import remote_refusals
from codex_checkpoints.service.remote.unchanged import remember
from codex_checkpoints.service.restore.branch_copy import part_of
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import (
    NO_PREFIX,
    SEGMENT,
    AppendResult,
    Elsewhere,
    Head,
    HistoryStore,
    SessionRow,
    StoredRow,
    TeamStore,
)
from codex_checkpoints.storage.remote.packing import SegmentStream

PUSHED = "SessionPushed"
"""The event of a push; it contains counts and no text."""

_ATTEMPTS = 20
"""The most restarts of a push: each time another pusher opened or deleted a generation."""

State = Literal["pushed", "unchanged", "ahead"]
"""Whether something was sent; `ahead`: the remote has all lines from here, and more."""


Outcome = Literal["done", "elsewhere", "differs"]
"""The result of adding segments: all are stored, the remote has another size, or other bytes."""


@frozen
class Pushed:
    """A session in the remote; `sent` counts the bytes of its history sent by this push."""

    session_id: str
    state: State
    generation: int
    sent: int


@frozen
class Pusher:
    """Pushes sessions of one home to one remote, readable for a `team` or only for their owner.

    `segment` is the most bytes of a segment.  It uses only files of the sessions, so it may run on
    any thread.
    """

    sessions: Sessions
    store: HistoryStore
    chosen: ChosenRemote
    now: Callable[[], str] = stamps.now
    segment: int = SEGMENT
    team: str | None = None
    is_cancelled: Callable[[], bool] = bool

    def push(self, going: Outgoing) -> Pushed:
        """Send a session; durable on return.

        Refuses `remote_…`, `conflict` if other pushers were faster each time, `unreadable_source`,
        `storage_error`.  Raises `Cancelled`; then the next push continues.
        """
        with keeping("audit", going.session_id):
            self.sessions.records.audit.check()
        with (
            remote_refusals(self.store.place),
            reading_file(going.row),
            keeping("redacted lines", going.session_id),
        ):
            self._withdraw(going)
            pushed = self._send(going)
            if pushed.state != "ahead":
                if isinstance(self.store, TeamStore) and going.said is not None:
                    self.store.index(going.session_id, pushed.generation, going.said)
                pushed = self._put(going, pushed)
            if pushed.state != "ahead" and not going.is_cut:
                remember(self.sessions.records, self.store, going.session_id, going.inputs)
        if pushed.state == "pushed":
            self._record(going, pushed)
        return pushed

    def _withdraw(self, going: Outgoing) -> None:
        """Take a session from its team before lines are added that this team may not read."""
        known = self.store.row(going.session_id)
        if known is None or known.row.owner != self.chosen.owner or known.row.size >= going.size:
            return
        if known.row.team not in {None, self.team}:
            records = self.store.records(going.session_id, known.version)
            private = evolve(known.row, team=None, revision=known.row.revision + 1)
            self.store.put(private, records)

    def _send(self, going: Outgoing) -> Pushed:
        """Send the bytes of a history that the remote lacks; its row is not written."""
        sent, found = 0, self.store.head(going.session_id)
        for _ in range(_ATTEMPTS):
            head = found or Head(1, 0, NO_PREFIX)
            if head.size > going.size and self._begins_with_ours(going, head):
                if not self._is_reverted(going):
                    return Pushed(going.session_id, "ahead", head.generation, sent)
                head = _next(head)
            elif head.size >= going.size and head.prefix != going.prefix:
                head = _next(head)
            added, outcome = self._append(going, head)
            sent += added
            if outcome == "done":
                state: State = "pushed" if sent else "unchanged"
                return Pushed(going.session_id, state, head.generation, sent)
            found = _next(head) if outcome == "differs" else self.store.head(going.session_id)
        message = f"session {going.session_id} is being pushed by others at the same time"
        facts = {"sessionId": going.session_id, "reason": "pushed_elsewhere", "hint": "Try again."}
        raise Refusal("conflict", message, facts)

    def _append(self, going: Outgoing, head: Head) -> tuple[int, Outcome]:
        """Add the bytes after a head; return how many were stored, and the outcome."""
        stream = SegmentStream(going.history.portions(), self.segment)
        added, end = 0, (head.size, head.prefix)
        while end[0] < going.size:
            if not stream.seek(end[0]):
                return added, "elsewhere"
            if stream.prefix != end[1]:
                return added, "differs"
            segment = stream.peek()
            if segment is None:
                return added, "elsewhere"
            if self.is_cancelled():
                raise Cancelled
            answer = self.store.append(going.session_id, head.generation, segment)
            if answer is AppendResult.TAKEN:
                end = segment.end, segment.after
                added += segment.end - segment.start
            elif isinstance(answer, Elsewhere) and answer.size > segment.start:
                end = answer.size, answer.prefix  # another pusher is faster
            else:
                return added, "elsewhere"  # it was deleted
        return added, "done" if end == (going.size, going.prefix) else "elsewhere"

    def _begins_with_ours(self, going: Outgoing, head: Head) -> bool:
        """Return whether a longer history in the remote begins with the history here."""
        found, left = sha256(), going.size
        for data in self.store.read(going.session_id, head):
            found.update(data[:left])
            left -= min(left, len(data))
            if not left:
                break
        return found.hexdigest() == going.prefix

    def _is_reverted(self, going: Outgoing) -> bool:
        """Return whether this machine pushed more of the session before, and it is shorter now.

        Otherwise the remote has the rest from a machine on which the session continued.
        """
        if going.is_cut:
            return False
        known = self.store.row(going.session_id)
        if known is not None and known.row.machine_id != self.chosen.machine_id:
            return False
        return part_of(self.sessions.catalogue.store.reader, going.row.path) == going.own

    def _put(self, going: Outgoing, pushed: Pushed) -> Pushed:
        """Write the row, unless the remote has it already."""
        row = SessionRow(
            going.session_id,
            pushed.generation,
            going.size,
            going.prefix,
            going.lines,
            self.chosen.owner,
            self.chosen.machine,
            self.chosen.machine_id,
            title=going.title,
            task=going.task,
            cwd=going.cwd,
            branch=going.branch,
            repository=going.repository,
            updated_at=going.row.updated_at,
            pushed_at=self.now(),
            model=going.row.model,
            cli_version=going.row.cli_version,
            history_mode=going.row.history_mode or "legacy",
            seq_shift=going.seq_shift,
            secrets=going.secrets,
            left_out=going.left_out,
            lost_summary=going.lost_summary,
            team=self.team,
            forked_from=going.row.forked_from,
            parent_session=going.row.parent_session,
        )
        known = self.store.row(going.session_id)
        if known is not None and known.row.head == row.head:
            is_other = known.row.machine_id != row.machine_id
            # Lines that were sent again had been removed by retention.
            if not pushed.sent and (is_other or self._is_same(known, row, going.records)):
                return pushed
            row = evolve(row, revision=known.row.revision + 1)
        self.store.put(row, going.records)
        return evolve(pushed, state="pushed")

    def _is_same(self, known: StoredRow, row: SessionRow, records: bytes) -> bool:
        now = evolve(row, revision=known.row.revision, pushed_at=known.row.pushed_at)
        if known.row != now:
            return False
        return self.store.records(row.session_id, known.version) == records

    def _record(self, going: Outgoing, pushed: Pushed) -> None:
        sessions, session_id = self.sessions, going.session_id
        operation = operation_of(sessions.settings, stamps.new_id(), session_id, session_id)
        more = {
            "generation": pushed.generation,
            "bytes": pushed.sent,
            "lines": going.lines,
            "secrets": sum(going.secrets.values()),
        }
        with keeping("audit", session_id):
            sessions.records.audit.add(event_of(PUSHED, self.now(), operation, more))


def _next(head: Head) -> Head:
    return Head(head.generation + 1, 0, NO_PREFIX)
