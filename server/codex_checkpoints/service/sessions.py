"""What can be asked of sessions: which there are, and the checkpoint and view of one.

`Sessions` is the one object behind every door.  It is owned by one thread.  It returns values and
says in them what happened; it prints nothing, sends nothing and asks for no clock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from codex_checkpoints.core.checkpoint.caps import BadCaps
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.records import Records
from codex_checkpoints.service.reading.catalogue import Catalogue, Progress
from codex_checkpoints.service.reading.pace import Pace
from codex_checkpoints.service.reading.projections import Projection, Projections, View
from codex_checkpoints.service.reading.rows import problems_of, skipped_of, utc
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.turn_names import has_ended
from codex_checkpoints.service.refusal import Cancelled, Refusal, misfit
from codex_checkpoints.service.session_names import find_session, not_current
from codex_checkpoints.service.settings import WINDOW_VARIABLES, Settings
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.workspace import Workspace

if TYPE_CHECKING:
    from codex_checkpoints.codex.program import CodexArchive
    from codex_checkpoints.core.compaction.offering import Named
    from codex_checkpoints.service.compaction_records import CompactionRecords
    from codex_checkpoints.service.listing import Detail, Summary
    from codex_checkpoints.service.moving import Asked, Move
    from codex_checkpoints.service.summaries import Summaries
    from codex_checkpoints.service.thread_manager import IsReferredTo, ThreadManager

Report = Callable[[Progress], bool]
"""Told after each slice of an index; answers whether to go on."""


class Sessions:
    """The use cases around sessions and their checkpoints."""

    def __init__(
        self,
        catalogue: Catalogue,
        records: Records,
        settings: Settings,
        is_referred_to: IsReferredTo | None = None,
        codex: CodexArchive | None = None,
    ) -> None:
        """Put the parts together; nothing is read yet.

        `is_referred_to` says of a session whether records of operations forbid to remove it.
        """
        self.catalogue = catalogue
        self.records = records
        self.settings = settings
        self.workspace = Workspace(settings.hash_limit_bytes, settings.hash_outside_folder)
        self.told_windows: tuple[str | None, str | None] = (None, None)
        """What the environment says of the windows of the model and of the smaller one."""
        self.projections = Projections(catalogue, records, self.workspace)
        self._is_referred_to = is_referred_to
        self._codex = codex
        self._unheard: set[str] = set()

    # --- loaded when asked for: Codex waits for a view, and that needs none of it ----------------

    @cached_property
    def summaries(self) -> Summaries:
        """Return what lists say of sessions."""
        from codex_checkpoints.service.summaries import Summaries  # noqa: PLC0415

        return Summaries(
            self.catalogue,
            self.records,
            self.settings,
            self.projections,
            compactions=lambda: self.compactions,
            named=lambda: self.named,
        )

    @cached_property
    def threads(self) -> ThreadManager:
        """Return the one entry point for changes to threads."""
        from codex_checkpoints.service.thread_manager import ThreadManager, nobody  # noqa: PLC0415

        return ThreadManager(self.catalogue, self._is_referred_to or nobody, self._codex)

    @cached_property
    def compactions(self) -> CompactionRecords:
        """Return the records of compactions."""
        from codex_checkpoints.service.compaction_records import CompactionRecords  # noqa: PLC0415

        return CompactionRecords(self.records)

    @cached_property
    def named(self) -> Named:
        """Return what settings and environment say of the windows of models (JUN-21)."""
        from codex_checkpoints.core.compaction.offering import Named  # noqa: PLC0415

        settings = self.settings
        return Named(
            settings.context_window_tokens,
            settings.fast_context_window_tokens,
            *self.told_windows,
        )

    def ignored_variables(self) -> tuple[str, ...]:
        """Return the variables that say something of a window which is no positive number."""
        from codex_checkpoints.core.history.tokens import window_size  # noqa: PLC0415

        told = zip(WINDOW_VARIABLES, self.told_windows, strict=True)
        return tuple(name for name, value in told if window_size(None, value).ignored)

    # --- how long work goes ----------------------------------------------------------------------

    @property
    def pace(self) -> Pace:
        """Return the pace of what runs now; it takes steps by itself where it reads sessions."""
        return self.catalogue.reader.pace

    @contextlib.contextmanager
    def at(self, pace: Pace) -> Generator[None]:
        """Have a block take its steps at this pace."""
        reader = self.catalogue.reader
        before, reader.pace = reader.pace, pace
        try:
            yield
        finally:
            reader.pace = before

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

    def detail(self, session: str) -> Detail:
        """Return one session with its turns."""
        from codex_checkpoints.core.compaction import offering  # noqa: PLC0415 - as `named` has it
        from codex_checkpoints.service.listing import Detail, TurnSummary  # noqa: PLC0415

        row, opened = self.open(session)
        state = opened.now().state
        return Detail(
            self.summaries.of(row),
            tuple(
                TurnSummary(
                    turn.turn_id,
                    number,
                    None if turn.said is None else turn.said.text,
                    has_ended(turn, state),
                    turn.aborted,
                    None if turn.stamp is None else utc(turn.stamp),
                )
                for number, turn in enumerate(state.turns.counting(), 1)
            ),
            self.settings.caps_for(state.model),
            problems_of(row),
            skipped_of(row),
            offering.budget(row.context_window, self.named),
            offering.outline_budget(self.named),
        )

    def summary(self, session: str) -> Summary:
        """Return one session of this home as it stands in a list; refuses as `find`."""
        return self.summaries.of(self.own(session))

    def title(self, row: Row) -> str | None:
        """Return what a session is called: its given name, else its first message."""
        return self.catalogue.title_of(row)

    # --- checkpoints -----------------------------------------------------------------------------

    def show(self, session: str, turn: str | int | None = None) -> Projection:
        """Return the checkpoint of a session as it is now, or at the end of a turn.

        The one of now is stored when its bytes changed (DSC-80); one at a turn never is, nor one
        of a file outside the Codex home.
        """
        row, opened = self.open(session)
        if turn is not None:
            return self.projections.at(row, opened, turn)
        return self.projections.keep(row, opened)

    def view(
        self,
        session: str,
        turn: str | int | None = None,
        caps: Mapping[str, object] | None = None,
    ) -> View:
        """Return the view of a session, within the caps of its model but for those named."""
        row, opened = self.open(session)
        effective = self.settings.caps_for(opened.now().state.model)
        try:
            effective = effective if caps is None else effective.replaced(caps)
        except BadCaps as error:
            raise misfit(str(error)) from error
        shown = (
            self.projections.keep(row, opened)
            if turn is None
            else self.projections.at(row, opened, turn)
        )
        return View(view_v1(shown.checkpoint, effective), effective, shown)

    def close(self) -> None:
        """Save what would be slow to read again."""
        self.catalogue.close()

    # --- names and places ------------------------------------------------------------------------

    def rename(self, session: str, name: str | None) -> Summary:
        """Give a session a name, or take it back with None or an empty one; durable on return.

        Refuses `unknown_session`, `storage_error`.
        """
        row = self.own(session)
        self.threads.rename(row.session_id, name)
        return self.summaries.of(row)

    def archive(self, session: str) -> Summary:
        """Put a session among the archived ones.

        Refuses `session_live`, `conflict` where it is archived already, `storage_error`.
        """
        return self.summaries.of(self.threads.archive(self.own(session).session_id))

    def unarchive(self, session: str) -> Summary:
        """Put an archived session back; refuses as `archive`."""
        return self.summaries.of(self.threads.unarchive(self.own(session).session_id))

    def to_move(self, session: str, *, archive: bool) -> Move:
        """Do the first step of `archive` or `unarchive`: Codex is asked next, on any thread."""
        return self.threads.to_move(self.own(session).session_id, archive=archive)

    def moved(self, asked: Asked) -> Summary:
        """Do the last step of `archive` or `unarchive`; refuses as they do."""
        return self.summaries.of(self.threads.moved(asked))

    def delete(self, session: str) -> Summary:
        """Remove a session that we made and that nothing refers to; return what it was.

        Only the session file goes: our own records of it stay.  Refuses `session_live`, `conflict`
        for any other session, `storage_error`.
        """
        row = self.own(session)
        was = self.summaries.of(row)
        self.threads.delete(row.session_id)
        return was

    # --- for those who build on it ---------------------------------------------------------------

    def own(self, session: str) -> Row:
        """Return a session of this home, which may be changed; refuses as `find`."""
        row = self.find(session)
        if not self.catalogue.is_current(row):
            why = not_current(self.catalogue, row)
            raise Refusal("unknown_session", why.message, {"session": session[:200], **why.facts})
        return row

    def find(self, session: str) -> Row:
        """Return which rollout is meant, without reading it.

        Refuses `unknown_session`, `ambiguous_session`, `unreadable_source`.
        """
        try:
            return find_session(self.catalogue, session)
        except Refusal as refusal:
            if refusal.code != "unknown_session":
                raise
        # It may be so new that nobody has told yet.
        self.refresh()
        return find_session(self.catalogue, session)

    def open(self, session: str) -> tuple[Row, SessionFile]:
        """Return the row and the file of a session, read to its end; refuses as `find`."""
        row = self.find(session)
        if row.path in self.catalogue.rows():
            return row, self.catalogue.open(row)
        return row, self.catalogue.read(row)
