"""What can be asked of sessions: which there are, and the checkpoint and view of one.

`Sessions` is the one object behind every door.  It is owned by one thread.  It returns values and
says in them what happened; it prints nothing, sends nothing and asks for no clock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import frozen

from codex_checkpoints.codex.archive import CodexArchive
from codex_checkpoints.core.checkpoint import canonical
from codex_checkpoints.core.checkpoint.caps import BadCaps, Caps
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Checkpoint, status_of
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.records import Records, StorageError
from codex_checkpoints.service.catalogue import Catalogue, Progress, title_of
from codex_checkpoints.service.inheritance import inherited
from codex_checkpoints.service.listing import Page, Summary
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.rows import problems_of, skipped_of
from codex_checkpoints.service.session_file import SessionFile
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.service.thread_manager import IsReferredTo, ThreadManager, nobody
from codex_checkpoints.service.turn_names import end_of, find_turn, has_ended
from codex_checkpoints.threads.contract import BadQuery, Row, ThreadQuery
from codex_checkpoints.workspace import Workspace

if TYPE_CHECKING:
    from codex_checkpoints.service.compaction_records import CompactionRecords

logger = logging.getLogger(__name__)

Report = Callable[[Progress], bool]
"""Told after each slice of an index; answers whether to go on."""


@frozen
class TurnSummary:
    """One turn that is not rolled back; `number` counts them from 1."""

    turn_id: str
    number: int
    task: str | None
    ended: bool
    aborted: bool


@frozen
class Detail:
    """One session with its turns, and the caps in force for its view."""

    summary: Summary
    turns: tuple[TurnSummary, ...]
    caps: Caps
    problems: tuple[str, ...]
    skipped: Mapping[str, int]


@frozen
class Projection:
    """A checkpoint, its bytes, and what became of its file.

    `stored` is where it lies, `None` where it was not to be stored; `changed` says whether its
    bytes had to be written; `storage_problem` is the system's reason when they could not be.
    """

    session_id: str
    checkpoint: Checkpoint
    data: bytes
    stored: str | None = None
    changed: bool = False
    storage_problem: str | None = None


@frozen
class View:
    """The view of a session, the caps it was made with, and the checkpoint it shows."""

    text: str
    caps: Caps
    of: Projection


class Sessions:
    """The use cases around sessions and their checkpoints."""

    def __init__(
        self,
        catalogue: Catalogue,
        records: Records,
        settings: Settings,
        is_referred_to: IsReferredTo = nobody,
        codex: CodexArchive | None = None,
    ) -> None:
        """Put the parts together; nothing is read yet.

        `is_referred_to` says of a session whether records of operations forbid to remove it.
        """
        self.catalogue = catalogue
        self.threads = ThreadManager(catalogue, is_referred_to, codex)
        self.records = records
        self.settings = settings
        self.workspace = Workspace(settings.hash_limit_bytes, settings.hash_outside_folder)
        self.storage_problem: str | None = None
        """Why the last checkpoint that was to be stored could not be."""
        self._unheard: set[str] = set()

    @cached_property
    def compactions(self) -> CompactionRecords:
        """Return the records of compactions.

        Loaded when asked for: Codex waits for a view, and that needs none of it.
        """
        from codex_checkpoints.service.compaction_records import CompactionRecords  # noqa: PLC0415

        return CompactionRecords(self.records)

    # --- lists -----------------------------------------------------------------------------------

    def refresh(self, report: Report | None = None) -> frozenset[str]:
        """Bring the index up to date; return the sessions whose rows changed.

        Raises `Cancelled` when `report` says not to go on; what was read until then is kept.
        """
        changed: frozenset[str] = frozenset()
        for progress in self.catalogue.refresh():
            changed |= progress.changed
            self._unheard |= progress.changed
            if report is not None and not report(progress):
                raise Cancelled
        return changed

    def take_unheard(self) -> set[str]:
        """Return, once, the sessions that some refresh found changed, or that were changed here.

        Who asked for that refresh wanted a list; their checkpoints are still to be looked at.
        """
        unheard, self._unheard = self._unheard | self.threads.take_changed(), set()
        return unheard

    def page(  # noqa: PLR0913 - each is a wish of its own, as clients have them
        self,
        *,
        cwd: str | None = None,
        outside: tuple[str, ...] = (),
        archived: bool = False,
        search: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page:
        """Return sessions of the store, newest first, then by id; `cursor` is a page's own.

        `cwd` takes a folder and all below it, `outside` leaves some out.
        """
        query = ThreadQuery(cwd, outside, archived, search, limit, cursor)
        try:
            found = self.catalogue.store.list_threads(query)
        except BadQuery as error:
            raise Refusal("invalid_payload", str(error), {"problems": [error.field]}) from error
        noted = self._noted()
        items = tuple(
            self._summary(each.row, each.name, live=each.live, noted=noted) for each in found.items
        )
        return Page(items, found.next_cursor)

    def detail(self, session: str) -> Detail:
        """Return one session with its turns."""
        row, opened = self._open(session)
        state = opened.now().state
        return Detail(
            self._summary_of(row),
            tuple(
                TurnSummary(
                    turn.turn_id,
                    number,
                    None if turn.said is None else turn.said.text,
                    has_ended(turn, state),
                    turn.aborted,
                )
                for number, turn in enumerate(state.turns.counting(), 1)
            ),
            self.settings.caps_for(state.model),
            problems_of(row),
            skipped_of(row),
        )

    def title(self, row: Row) -> str | None:
        """Return what a session is called: its given name, else its first message."""
        return self.catalogue.title_of(row)

    # --- checkpoints -----------------------------------------------------------------------------

    def show(self, session: str, turn: str | int | None = None) -> Projection:
        """Return the checkpoint of a session as it is now, or at the end of a turn.

        The one of now is stored when its bytes changed (DSC-80); one at a turn never is, nor one
        of a file outside the Codex home.
        """
        row, opened = self._open(session)
        if turn is not None:
            return self._at(row, opened, turn)
        return self.keep(row, opened)

    def view(
        self,
        session: str,
        turn: str | int | None = None,
        caps: Mapping[str, object] | None = None,
    ) -> View:
        """Return the view of a session, within the caps of its model but for those named."""
        row, opened = self._open(session)
        effective = self.settings.caps_for(opened.now().state.model)
        try:
            effective = effective if caps is None else effective.replaced(caps)
        except BadCaps as error:
            raise Refusal("invalid_payload", str(error), {"problems": [str(error)]}) from error
        shown = self.keep(row, opened) if turn is None else self._at(row, opened, turn)
        return View(view_v1(shown.checkpoint, effective), effective, shown)

    def keep(self, row: Row, opened: SessionFile) -> Projection:
        """Project a session and store the checkpoint if its bytes changed."""
        checkpoint = self._project(opened, opened.now())
        data = canonical.to_bytes(checkpoint)
        if not self.catalogue.is_current(row):
            # A file from elsewhere, or an older segment: the session's checkpoint is another's.
            return Projection(row.session_id, checkpoint, data)
        path = self.records.checkpoint_path(row.session_id, row.path)
        try:
            changed = self.records.write_checkpoint(row.session_id, row.path, data)
        except StorageError as error:
            if self.storage_problem != str(error):  # once, not for every session
                logger.warning("storage_error: %s cannot be stored: %s", path, error)
            self.storage_problem = str(error)
            return Projection(row.session_id, checkpoint, data, storage_problem=str(error))
        if changed:
            self.storage_problem = None
        return Projection(row.session_id, checkpoint, data, path, changed)

    def close(self) -> None:
        """Save what would be slow to read again."""
        self.catalogue.close()

    # --- names and places ------------------------------------------------------------------------

    def rename(self, session: str, name: str | None) -> Summary:
        """Give a session a name, or take it back with None or an empty one; durable on return.

        Refuses `unknown_session`, `storage_error`.
        """
        row = self._own(session)
        self.threads.rename(row.session_id, name)
        return self._summary_of(row)

    def archive(self, session: str) -> Summary:
        """Put a session among the archived ones.

        Refuses `session_live`, `conflict` where it is archived already, `storage_error`.
        """
        return self._summary_of(self.threads.archive(self._own(session).session_id))

    def unarchive(self, session: str) -> Summary:
        """Put an archived session back; refuses as `archive`."""
        return self._summary_of(self.threads.unarchive(self._own(session).session_id))

    def delete(self, session: str) -> Summary:
        """Remove a session that we made and that nothing refers to; return what it was.

        Only the session file goes: our own records of it stay.  Refuses `session_live`, `conflict`
        for any other session, `storage_error`.
        """
        row = self._own(session)
        was = self._summary_of(row)
        self.threads.delete(row.session_id)
        return was

    # --- for those who build on it ---------------------------------------------------------------

    def own(self, session: str) -> Row:
        """Return a session of this home, which may be changed; refuses as `find`."""
        return self._own(session)

    def find(self, session: str) -> Row:
        """Return which rollout is meant, without reading it; raises as `open`."""
        return self._find(session)

    def open(self, session: str) -> tuple[Row, SessionFile]:
        """Return the row and the file of a session, read to its end."""
        return self._open(session)

    def updates(self, session_id: str) -> tuple[Update, ...]:
        """Return what was accepted in a session itself; raise `storage_error` when that fails."""
        try:
            return self.records.updates(session_id)
        except StorageError as error:
            message = f"the accepted updates of {session_id} cannot be read: {error}"
            facts = {"sessionId": session_id, "reason": str(error)}
            raise Refusal("storage_error", message, facts) from error

    def updates_of(self, opened: SessionFile) -> tuple[Update, ...]:
        """Return what a session remembers: what it inherits, then its own; raises as `updates`."""
        locate = self.catalogue.locator(opened.path)
        return (*inherited(opened, locate, self.updates), *self.updates(opened.session_id))

    def project(self, replay: Replay, updates: Iterable[Update]) -> Checkpoint:
        """Return a checkpoint with the hashes of now; nothing is stored."""
        hashes = self.workspace.hashes(replay.state.base, replay.files())
        return replay.checkpoint(updates, hashes)

    # --- inside ----------------------------------------------------------------------------------

    def _own(self, session: str) -> Row:
        """Find a session of this store: what lies elsewhere is read and never changed."""
        row = self._find(session)
        if not self.catalogue.is_current(row):
            message = f"{row.path} is not the newest file of a session here"
            raise Refusal("unknown_session", message, {"session": session[:200]})
        return row

    def _summary_of(self, row: Row) -> Summary:
        return self._summary(
            row,
            self.catalogue.store.name_of(row),
            live=row.session_id in self.catalogue.store.live_threads(),
            noted=self._noted(),
        )

    def _open(self, session: str) -> tuple[Row, SessionFile]:
        row = self._find(session)
        if row.path in self.catalogue.rows():
            return row, self.catalogue.open(row)
        return row, self.catalogue.read(row)

    def _find(self, session: str) -> Row:
        try:
            return self.catalogue.find(session)
        except Refusal as refusal:
            if refusal.code != "unknown_session":
                raise
        # It may be so new that nobody has told yet.
        self.refresh()
        return self.catalogue.find(session)

    def _project(self, opened: SessionFile, replay: Replay, seq: int | None = None) -> Checkpoint:
        """Project with the updates accepted up to `seq`, or all; the hashes are those of now."""
        updates = self.updates_of(opened)
        if seq is not None:
            updates = tuple(update for update in updates if update.seq <= seq)
        return self.project(replay, updates)

    def _at(self, row: Row, opened: SessionFile, turn: str | int) -> Projection:
        replay = opened.now()
        found = find_turn(replay, turn, row.session_id)
        until = end_of(found, replay.state.turns.turns)
        if until is None:
            at, seq = replay, None
        else:
            at = self.catalogue.read(row, until).now()
            seq = at.seq
        checkpoint = self._project(opened, at, seq)
        return Projection(row.session_id, checkpoint, canonical.to_bytes(checkpoint))

    def _summary(self, row: Row, name: str | None, *, live: bool, noted: frozenset[str]) -> Summary:
        return Summary(
            session_id=row.session_id,
            path=row.path,
            cwd=row.cwd,
            title=title_of(row, name),
            task=row.task,
            updated_at=row.updated_at or "",
            cli_version=row.cli_version,
            model=row.model,
            context_tokens=row.context_tokens,
            context_tokens_source=row.context_source or "estimated",
            context_window=row.context_window,
            windows=row.windows,
            compactions=row.compactions,
            suspect_facts=self._suspect(row) if self._remembers(row, noted) else 0,
            live=live,
            archived=row.archived,
            forked_from=row.forked_from,
            parent_session=row.parent_session,
            continued_by=self.compactions.continued_by(row.session_id)
            if row.session_id in noted
            else None,
            turns=row.turns,
            seq=row.seq,
            named=bool(name),
        )

    def _remembers(self, row: Row, noted: frozenset[str]) -> bool:
        """Return whether there may be notes, here or where the session's history begins."""
        return not noted.isdisjoint((row.session_id, *self.catalogue.below(row)))

    def _noted(self) -> frozenset[str]:
        """Return the sessions of which more is known than their files tell."""
        return self.records.has_updates() | self.compactions.holders()

    def _suspect(self, row: Row) -> int:
        try:
            opened = self.catalogue.open(row)
            checkpoint = self._project(opened, opened.now())
        except Refusal:
            return 0
        statuses = (status_of(fact, checkpoint.artifacts) for fact in checkpoint.facts.values())
        return sum(status == "SUSPECT" for status in statuses)
