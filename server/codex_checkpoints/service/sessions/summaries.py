"""Lists sessions: a row each, with the additions of its records and its checkpoint.

A module of its own, so that a hook, which lists nothing, does not load it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import orjson
from attrs import Factory, define, frozen

from codex_checkpoints.core.agents.codex.history.tokens import WindowBudget
from codex_checkpoints.core.checkpoint.records import Caps, status_of
from codex_checkpoints.core.compaction import token_budget
from codex_checkpoints.core.compaction.token_budget import Offer, WindowOverrides
from codex_checkpoints.core.fields import object_of
from codex_checkpoints.core.restore.markers import marker_set_of
from codex_checkpoints.service.reading.checkpoints import Checkpoints
from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.service.reading.session_row import skipped_of, title_of
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import OURS, BadQuery, Row, ThreadQuery, moment
from codex_checkpoints.storage.records import (
    COMPACTIONS,
    IMPORTS,
    MARKERS,
    PULLS,
    RESTORES,
    UPDATES,
    FileStamp,
    Records,
)

if TYPE_CHECKING:
    from codex_checkpoints.service.records.operation_records import CompactionRecords

logger = logging.getLogger(__name__)


@frozen
class Git:
    """The repository in which a session began, as Codex noted it."""

    commit: str | None
    branch: str | None
    repository_url: str | None


@frozen
class SessionSummary:
    """One session in a list; a null value is unknown before the session was read whole.

    `startFolder` is the folder in which it began, and `fileTime` the time of the last change of its
    file, UTC: clients show these where `cwd` or `updatedAt` is null.
    `contextTokensSource` is `reported` or `estimated`; `continuedBy` the session in which a
    compaction went on; `parentSession` the one whose subagent this is; `named`: the title was given
    by a person; `nearlyFull`: its tokens have reached the trigger of its window; `overWindow`: a
    service reported more tokens than the window has, so the report is ignored; `refused` says why
    Codex does not resume it, as far as it was read; `branches` counts sessions made from it;
    `madeBy` is `restore`, `compaction`, `import`, `pull`, or null for Codex; `undone`: the
    compaction that made it was undone; `source` is its origin, `cli`, `vscode`, `exec`, `mcp`,
    `subagent`, `review`, `compact`, `memory`, `guardian` or another name; `background`: nobody
    types in it, so lists fold it away.
    """

    session_id: str
    path: str
    cwd: str | None
    title: str | None
    task: str | None
    updated_at: str | None
    cli_version: str | None
    model: str | None
    context_tokens: int | None
    context_tokens_source: str | None
    context_window: int | None
    windows: int | None
    compactions: int | None
    suspect_facts: int | None
    live: bool
    archived: bool
    forked_from: str | None
    parent_session: str | None
    source: str | None
    background: bool
    continued_by: str | None
    turns: int | None
    seq: int | None
    named: bool
    markers: int
    branches: int
    made_by: str | None
    undone: bool
    nearly_full: bool | None
    over_window: bool | None
    refused: str | None
    git: Git | None
    offer: Offer | None
    start_folder: str | None
    file_time: str


@frozen
class SessionList:
    """A page of sessions, newest first; `nextCursor` is null on the last one.

    `left` is how many more there are.
    """

    items: tuple[SessionSummary, ...]
    next_cursor: str | None
    left: int


@frozen
class TurnEntry:
    """One turn that is not rolled back; `task` is the user's last message in it.

    `startedAt` is the time of its first message, UTC, null if no record gives it.
    """

    turn_id: str
    number: int
    task: str | None
    ended: bool
    aborted: bool
    started_at: str | None


@frozen
class Receipt:
    """A context that Codex was given; of the text only digest and size are kept.

    `door` is `hook` or `memory.read`; `event` and `source` are the occasion of a hook; `isCurrent`
    says whether it would get the very same text now.
    """

    at: str
    door: str
    event: str | None
    source: str | None
    window_id: str | None
    seq: int | None
    digest: str
    size: int
    is_current: bool = False


@frozen
class SessionDetail:
    """One session with its turns; `problems` and `skipped` are the unreadable parts.

    `received` is the last context that Codex was given of it; `outlineBudget` is the smaller
    model's.
    """

    summary: SessionSummary
    turns: tuple[TurnEntry, ...]
    caps: Caps
    problems: tuple[str, ...]
    skipped: dict[str, int]
    received: Receipt | None
    budget: WindowBudget
    outline_budget: WindowBudget


MadeBy = Literal["restore", "compaction", "import", "pull"]
"""The operations of ours that make sessions."""


def source_of(row: Row) -> str | None:
    """Return the source of a branch; subagents and scratch forks are not branches."""
    return None if row.scratch or row.parent_session is not None else row.forked_from


@frozen
class _Ours:
    """The sessions with a folder of ours, and those with updates or compactions in it."""

    kept: frozenset[str]
    noted: frozenset[str]


EVERYTHING = ThreadQuery()


@define
class Summaries:
    """Lists the sessions of one home.

    `compactions` returns the records of compactions, which few lists need; `named` the named
    windows, if any.
    """

    _catalogue: SessionIndex
    _records: Records
    _settings: Settings
    _compactions: Callable[[], CompactionRecords]
    _projections: Checkpoints
    _named: Callable[[], WindowOverrides]
    _markers: dict[str, tuple[FileStamp, int]] = Factory(dict[str, tuple[FileStamp, int]])
    _made: dict[str, MadeBy] = Factory(dict[str, MadeBy])

    def page(self, query: ThreadQuery = EVERYTHING) -> SessionList:
        """Return sessions of the store, newest first, then by id; refuses `invalid_payload`."""
        try:
            found = self._catalogue.store.list_threads(query)
        except BadQuery as error:
            raise Refusal("invalid_payload", str(error), {"problems": [error.field]}) from error
        ours, branches = self._ours(), self._branches()
        items = tuple(
            self._summary(each.row, each.name, branches, ours, live=each.live)
            for each in found.items
        )
        return SessionList(items, found.next_cursor, found.left)

    def of(self, row: Row) -> SessionSummary:
        """Return one session as a list shows it."""
        return self.describing()(row)

    def describing(self) -> Callable[[Row], SessionSummary]:
        """Return a function that describes sessions as a list shows them, all as of now."""
        store, branches, ours = self._catalogue.store, self._branches(), self._ours()
        live = store.live_threads()
        return lambda row: self._summary(
            row, store.name_of(row), branches, ours, live=row.session_id in live
        )

    def _summary(
        self,
        row: Row,
        name: str | None,
        branches: Mapping[str, int],
        ours: _Ours,
        *,
        live: bool,
    ) -> SessionSummary:
        session_id, named, made_by = row.session_id, self._named(), self._made_by(row)
        continued_by = None
        if session_id in ours.noted:
            continued_by = self._compactions().continued_by(session_id)
        source = "reported" if row.context_source == "reported" else "estimated"
        ended = row.turn_open is not None and not row.turn_open
        state = token_budget.Between(ended, row.context_tokens, source, row.context_window)
        # A session whose ends only were read may have used tokens, and a window.
        known = row.context_source is not None and not (
            row.is_glance and row.context_window is None
        )
        offer = None
        if known and not row.archived and not continued_by:  # only by reported tokens (JUN-28)
            offer = token_budget.offer(self._settings.compaction_offer, state, named)
        below = (base.session_id for base in self._catalogue.chains.below(row))
        is_noted = bool(ours.noted) and not ours.noted.isdisjoint((session_id, *below))
        return SessionSummary(
            session_id=row.session_id,
            path=row.path,
            cwd=row.cwd,
            task=row.task,
            updated_at=row.updated_at,
            cli_version=row.cli_version,
            model=row.model,
            context_tokens=row.context_tokens,
            windows=row.windows,
            compactions=row.compactions,
            archived=row.archived,
            forked_from=row.forked_from,
            parent_session=row.parent_session,
            source=row.source,
            background=row.background,
            turns=row.turns,
            seq=row.seq,
            title=title_of(row, name),
            context_tokens_source=row.context_source,
            context_window=token_budget.window(row.context_window, named),
            suspect_facts=self._suspect(row) if is_noted else 0,
            live=live,
            continued_by=continued_by,
            named=bool(name),
            markers=self._marker_count(session_id) if session_id in ours.kept else 0,
            branches=branches.get(session_id, 0),
            made_by=made_by,
            undone=made_by == "compaction" and self._compactions().began_undone(session_id),
            nearly_full=token_budget.is_nearly_full(state, named) if known else None,
            over_window=state.is_impossible if known else None,
            refused=self._refused(row),
            git=Git(*orjson.loads(row.git)) if row.git else None,
            offer=offer,
            start_folder=row.base,
            file_time=moment(row.rollout.modified_ns),
        )

    def _ours(self) -> _Ours:
        noted = self._records.holding(UPDATES) | self._records.holding(COMPACTIONS)
        return _Ours(self._records.known(), noted)

    def _branches(self) -> Mapping[str, int]:
        """Return the number of sessions of this home that came from each (AGN-17)."""
        sources = map(source_of, self._catalogue.current().values())
        return Counter(source for source in sources if source is not None)

    def _suspect(self, row: Row) -> int | None:
        if row.is_glance:
            return None
        try:
            opened = self._catalogue.open(row)
            checkpoint = self._projections.current(opened)
        except Refusal:
            return 0
        statuses = (status_of(fact, checkpoint.artifacts) for fact in checkpoint.facts.values())
        return sum(status == "SUSPECT" for status in statuses)

    def _refused(self, row: Row) -> str | None:
        """Return why Codex does not resume a session, for people; the rest of a glance is trusted.

        In a paginated file Codex reads on after a line that is not UTF-8.
        """
        if self._catalogue.chains.is_broken(row):
            return "Codex cannot resume it: the file with its earlier part is missing"
        if row.history_mode == "legacy" and "not_utf8" in skipped_of(row):
            return "Codex cannot resume it: a line of its file is not UTF-8"
        return None

    def _marker_count(self, session_id: str) -> int:
        """Return how many markers a session has; an unchanged file is read once."""
        stamp = self._records.stamp(session_id, MARKERS)
        if stamp is None:
            return 0
        known = self._markers.get(session_id)
        if known is None or known[0] != stamp:
            count = len(marker_set_of(self._lines(session_id, MARKERS)).markers)
            known = self._markers[session_id] = stamp, count
        return known[1]

    def _made_by(self, row: Row) -> MadeBy | None:
        """Return which operation of ours made a session, which never changes; None if none did."""
        if row.originator != OURS or row.scratch:
            return None
        session_id = row.session_id
        if session_id not in self._made:
            # A branch may be compacted later, so the record of its restore counts first.
            restores = map(object_of, self._lines(session_id, RESTORES))
            if any(restore.get("sessionId") == session_id for restore in restores):
                self._made[session_id] = "restore"
            elif (arrived := self._arrived(session_id)) is not None:
                self._made[session_id] = arrived
            else:
                # A session that a compaction made begins with one, and a restore counts as none;
                # the record may be lost.
                return "restore" if row.compactions == 0 else "compaction"
        return self._made[session_id]

    def _arrived(self, session_id: str) -> MadeBy | None:
        """Return how a session came from another machine; None for one that was made here."""
        if self._records.stamp(session_id, IMPORTS) is not None:
            return "import"
        return "pull" if self._records.stamp(session_id, PULLS) is not None else None

    def _lines(self, session_id: str, name: str) -> Iterator[object]:
        """Yield the lines of a file; an unreadable one is logged and does not break the list."""
        try:
            yield from self._records.lines(session_id, name)
        except StorageError as error:
            logger.warning("storage_error: %s of %s: %s", name, session_id, error)
