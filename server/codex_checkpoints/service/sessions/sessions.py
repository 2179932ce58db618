"""Finds sessions, lists them, and returns the checkpoint and view of one.

`Sessions` is the object shared by all doors.  One thread owns it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from codex_checkpoints.core.checkpoint.records import BadCaps
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.service.progress import Progress
from codex_checkpoints.service.reading.checkpoints import Checkpoints, StoredCheckpoint, View
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.session_index import IndexProgress, SessionIndex, unreadable
from codex_checkpoints.service.reading.session_row import title_of
from codex_checkpoints.service.refusal import SHORTEST_PREFIX, Cancelled, Refusal, misfit
from codex_checkpoints.service.settings import WINDOW_VARIABLES, Settings
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import Records
from codex_checkpoints.storage.workspace import Workspace

if TYPE_CHECKING:
    from codex_checkpoints.core.checkpoint.replay import Replay
    from codex_checkpoints.core.compaction.token_budget import WindowOverrides
    from codex_checkpoints.service.records.operation_records import CompactionRecords
    from codex_checkpoints.service.sessions.summaries import SessionSummary, Summaries
    from codex_checkpoints.service.sessions.threads import ThreadManager


LATEST = "latest"
"""Names the newest session that a person uses, unless a session has this name."""


def find_session(catalogue: SessionIndex, session: str) -> Row:
    """Return the row of a session by id, by a unique prefix of it, by path, or by its name."""
    if _is_path(session):
        named = None if os.path.exists(session) else _by_name(catalogue, session)
        return named or catalogue.row_at(session)
    current, wanted = catalogue.current(), session.lower()
    for name in (wanted, session):
        if name in current:
            return current[name]
    broken = _broken(catalogue)
    if wanted in broken:
        raise broken[wanted]
    if len(session) >= SHORTEST_PREFIX:
        fitting = sorted(each for each in {*current, *broken} if each.lower().startswith(wanted))
        if len(fitting) > 1:
            message = f"{len(fitting)} sessions begin with {session!r}"
            raise Refusal("ambiguous_session", message, {"candidates": fitting[:20]})
        for each in fitting:
            if each in current:
                return current[each]
            raise broken[each]
    named = _by_name(catalogue, session)
    if named is not None:
        return named
    place, facts = catalogue.store.place, {"session": session[:200]}
    if session == LATEST and current:
        newest = _newest(current.values())
        if newest is not None:
            return newest
        among = f"any of the {len(current)} sessions" if len(current) > 1 else "the only session"
        message = f"no person typed in {among} under {place}, so none is the latest"
        raise Refusal("unknown_session", message, facts)
    message = f"no session {session[:80]!r} under {place}"
    raise Refusal("unknown_session", message, facts)


def _newest(rows: Iterable[Row]) -> Row | None:
    """Return the row that changed last, among sessions that a person uses."""
    of_people = (row for row in rows if not row.background and row.parent_session is None)
    return max(of_people, key=lambda row: (row.updated_at or "", row.session_id), default=None)


def _by_name(catalogue: SessionIndex, session: str) -> Row | None:
    """Return the only session with this name, else the only one with this title, if any.

    Case is ignored.  Refuses `ambiguous_session` if there are several.
    """
    wanted, name_of = " ".join(session.split()).casefold(), catalogue.store.name_of
    given, titled = list[Row](), list[Row]()
    for row in catalogue.current().values():
        name = name_of(row)
        if (title_of(row, name) or "").casefold() == wanted:
            (given if name else titled).append(row)
    found = given or titled
    if len(found) > 1:
        message = f"{len(found)} sessions have the name {session[:80]!r}"
        candidates = sorted(row.session_id for row in found)
        raise Refusal("ambiguous_session", message, {"candidates": candidates[:20]})
    return found[0] if found else None


def session_of(catalogue: SessionIndex, thread: object) -> str:
    """Return the session of the calling thread; only the files of that thread are read.

    `thread` comes from the caller's host and must be a complete id.  Raises `missing_context` or
    `unknown_session`.
    """
    if not isinstance(thread, str) or not thread:
        message = "the call does not say which session it comes from"
        hint = "Call from within Codex, which names the session in _meta.threadId."
        raise Refusal("missing_context", message, {"rule": "session", "hint": hint})
    row = catalogue.refresh_thread(thread.lower())
    if row is None:
        message = "the session that calls has no file in this Codex home"
        hint = "Codex must store its sessions, in the folder that this server was given as home."
        raise Refusal("unknown_session", message, {"rule": "session", "hint": hint})
    return row.session_id


def not_current(catalogue: SessionIndex, row: Row) -> Refusal:
    """Return the refusal to write for a file outside this home or an older file of its session."""
    if row.path in catalogue.rows():
        reason, what = "older_file", "is an older file of its session"
        hint = "Name the session by its id."
    else:
        reason, what = "outside", "lies outside the Codex home"
        hint = "Name a session of this home."
    message = f"{row.path} {what}: nothing is stored for it"
    facts = {"path": row.path, "reason": reason, "rule": "session", "hint": hint}
    return Refusal("conflict", message, facts)


def _broken(catalogue: SessionIndex) -> dict[str, Refusal]:
    current = catalogue.current()
    return {
        row.session_id: unreadable(row.path, row.error)
        for row in catalogue.rows().values()
        if row.error is not None and row.session_id not in current
    }


def _is_path(session: str) -> bool:
    return os.sep in session or "/" in session or session.endswith((".jsonl", ".jsonl.zst"))


REST = timedelta(hours=1)
"""How long a session is idle before its open turn counts as cut off."""

CUT_OFF = "cut_off"
"""The remark about an operation on a session whose last turn was cut off."""


def was_cut_off(row: Row, live: Container[str], now: datetime) -> bool:
    """Return whether an open last turn was cut off (rules, "Turns").

    No process holds the session, and its last record is older than an hour.
    """
    return row.session_id not in live and datetime.fromisoformat(row.at) < now - REST


Report = Callable[[IndexProgress], bool]
"""Callback after each slice of an index; returns whether to continue."""


class Sessions:
    """The use cases around sessions and their checkpoints.

    With an `environment`, the Codex CLI on its PATH archives threads, and its variables set the
    windows of models.  A part that few commands need is imported lazily.
    """

    def __init__(
        self,
        catalogue: SessionIndex,
        records: Records,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.records = records
        self.settings = settings
        self.workspace = Workspace(settings.hash_limit_bytes, settings.hash_outside_folder)
        window, fast_window = ((environment or {}).get(name) for name in WINDOW_VARIABLES)
        self.window_variables = window, fast_window
        """The environment's values for the windows of the model and of the smaller one."""
        self.search_path = (environment or {}).get("PATH", "")
        """The folders in which programs are found, as in PATH."""
        self.projections = Checkpoints(catalogue, records, self.workspace)
        self._environment = environment
        self._unreported: set[str] = set()

    @cached_property
    def summaries(self) -> Summaries:
        """Return the lists of sessions."""
        from codex_checkpoints.service.sessions.summaries import Summaries

        return Summaries(
            self.catalogue,
            self.records,
            self.settings,
            lambda: self.compactions,
            self.projections,
            lambda: self.named,
        )

    @cached_property
    def threads(self) -> ThreadManager:
        """Return the manager that changes threads."""
        from codex_checkpoints.codex.program import CodexArchive
        from codex_checkpoints.service.sessions.threads import ThreadManager

        place, environment = self.catalogue.store.place, self._environment
        archive = None if environment is None else CodexArchive(place, environment)
        return ThreadManager(self.catalogue, self.records, archive)

    @cached_property
    def compactions(self) -> CompactionRecords:
        """Return the records of compactions."""
        from codex_checkpoints.service.records.operation_records import CompactionRecords

        return CompactionRecords(self.records)

    @cached_property
    def named(self) -> WindowOverrides:
        """Return the windows that settings and environment set for models (JUN-21)."""
        from codex_checkpoints.core.compaction.token_budget import WindowOverrides

        settings = self.settings
        return WindowOverrides(
            settings.context_window_tokens,
            settings.fast_context_window_tokens,
            *self.window_variables,
        )

    def ignored_variables(self) -> tuple[str, ...]:
        """Return the window variables whose value is not a positive number."""
        from codex_checkpoints.core.agents.codex.history.tokens import size_in

        values = zip(WINDOW_VARIABLES, self.window_variables, strict=True)
        return tuple(name for name, value in values if value is not None and not size_in(value))

    @property
    def progress(self) -> Progress:
        """Return the progress of the current work; reading takes its steps by itself."""
        return self.catalogue.reader.progress

    @contextlib.contextmanager
    def at(self, progress: Progress) -> Generator[None]:
        """Run a block at this progress."""
        reader = self.catalogue.reader
        before, reader.progress = reader.progress, progress
        try:
            yield
        finally:
            reader.progress = before

    def refresh(self, report: Report | None = None) -> frozenset[str]:
        """Bring the index up to date; raises `Cancelled` if `report` returns False."""
        changed: frozenset[str] = frozenset()
        for progress in self.catalogue.refresh():
            changed |= progress.changed
            self._unreported |= progress.changed
            if report is not None and not report(progress):
                raise Cancelled
        return changed

    def take_unreported(self) -> set[str]:
        """Return, once, the sessions that any refresh found changed or that were changed here."""
        unreported, self._unreported = self._unreported | self.threads.take_changed(), set()
        return unreported | self.catalogue.take_completed()

    def read_all(self, report: Report | None = None) -> None:
        """Read every session whole whose ends only were read; stops as `refresh` does."""
        for progress in self.catalogue.read_whole():
            if report is not None and not report(progress):
                raise Cancelled

    def title(self, row: Row) -> str | None:
        """Return the name of a session, or its first message."""
        return title_of(row, self.catalogue.store.name_of(row))

    def show(self, session: str, turn: str | int | None = None) -> StoredCheckpoint:
        """Return a checkpoint now, which is stored (DSC-80), or at the end of a turn."""
        return self._shown(*self.open(session), turn)

    def _shown(self, row: Row, opened: SessionFile, turn: str | int | None) -> StoredCheckpoint:
        if turn is not None:
            return self.projections.at(row, opened, turn)
        return self.projections.keep(row, opened)

    def view(
        self,
        session: str,
        turn: str | int | None = None,
        caps: Mapping[str, object] | None = None,
    ) -> View:
        """Return the view of a session; `caps` replaces some caps of its model."""
        row, opened = self.open(session)
        effective = self.settings.caps_for(opened.now().state.model)
        try:
            effective = effective if caps is None else effective.replaced(caps)
        except BadCaps as error:
            raise misfit(str(error)) from error
        shown = self._shown(row, opened, turn)
        return View(view_v1(shown.checkpoint, effective), effective, shown)

    def close(self) -> None:
        """Save the states of large sessions."""
        self.catalogue.close()

    def rename(self, session: str, name: str | None) -> SessionSummary:
        """Set or remove a session's name, durably; refuses `unknown_session`, `storage_error`."""
        row = self.own(session)
        self.threads.rename(row.session_id, name)
        return self.summaries.of(row)

    def own(self, session: str) -> Row:
        """Return a session of this home, which may be changed; refuses as `find`."""
        row = self.find(session)
        if not self.catalogue.is_current(row):
            why = not_current(self.catalogue, row)
            raise Refusal("unknown_session", why.message, {"session": session[:200], **why.facts})
        return row

    def find(self, session: str) -> Row:
        """Return the row of a session without reading the file; refuses as `find_session`."""
        if session == LATEST:
            self.refresh()
        try:
            return find_session(self.catalogue, session)
        except Refusal as refusal:
            if refusal.code != "unknown_session":
                raise
        # It may be newer than the index.
        self.refresh()
        return find_session(self.catalogue, session)

    def open_own(self, session: str) -> tuple[Row, SessionFile]:
        """Open a session of this home to write records for it; refuses as `find`, `conflict`."""
        row, opened = self.open(session)
        if not self.catalogue.is_current(row):
            raise not_current(self.catalogue, row)
        return row, opened

    def open(self, session: str) -> tuple[Row, SessionFile]:
        """Return the row and the file of a session, read to its end; refuses as `find`."""
        return self.open_row(self.find(session))

    def open_row(self, row: Row, replay: Replay | None = None) -> tuple[Row, SessionFile]:
        """Return the same for a row; a file that was not read before is read by `replay`."""
        if row.path in self.catalogue.rows():
            opened = self.catalogue.open(row, replay)
            return self.catalogue.now(row), opened
        return row, self.catalogue.read(row)
