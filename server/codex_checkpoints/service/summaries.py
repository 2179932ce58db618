"""What a list says of each session, put together from its row and from what we keep of it.

Which sessions fit, and in which order, is the store's to say.  What a list holds is told by
`listing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from codex_checkpoints.core.checkpoint.records import status_of
from codex_checkpoints.records import Records
from codex_checkpoints.service.listing import Page, Summary
from codex_checkpoints.service.reading.catalogue import Catalogue, title_of
from codex_checkpoints.service.reading.projections import Projections
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.service.tallies import Tallies
from codex_checkpoints.threads.contract import BadQuery, Row, ThreadQuery

if TYPE_CHECKING:
    from codex_checkpoints.core.compaction.offering import Between, Named, Offer
    from codex_checkpoints.service.compaction_records import CompactionRecords


class Summaries:
    """The sessions of one home as lists show them."""

    def __init__(  # noqa: PLR0913 - what a list tells comes from as many places
        self,
        catalogue: Catalogue,
        records: Records,
        settings: Settings,
        projections: Projections,
        *,
        compactions: Callable[[], CompactionRecords],
        named: Callable[[], Named],
    ) -> None:
        """Ask these; what is given as a function is loaded when it is needed."""
        self._catalogue = catalogue
        self._records = records
        self._settings = settings
        self._projections = projections
        self._compactions = compactions
        self._named = named
        self._tallies = Tallies(catalogue, records)

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
            found = self._catalogue.store.list_threads(query)
        except BadQuery as error:
            raise Refusal("invalid_payload", str(error), {"problems": [error.field]}) from error
        noted, branches = self._noted(), self._tallies.branches()
        items = tuple(
            self._summary(each.row, each.name, branches, live=each.live, noted=noted)
            for each in found.items
        )
        return Page(items, found.next_cursor)

    def of(self, row: Row) -> Summary:
        """Return one session as it stands in a list."""
        return self._summary(
            row,
            self._catalogue.store.name_of(row),
            self._tallies.branches(),
            live=row.session_id in self._catalogue.store.live_threads(),
            noted=self._noted(),
        )

    # --- inside ----------------------------------------------------------------------------------

    def _summary(
        self,
        row: Row,
        name: str | None,
        branches: Mapping[str, int],
        *,
        live: bool,
        noted: frozenset[str],
    ) -> Summary:
        continued_by = (
            self._compactions().continued_by(row.session_id) if row.session_id in noted else None
        )
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
            context_window=self._window(row),
            windows=row.windows,
            compactions=row.compactions,
            suspect_facts=self._suspect(row) if self._remembers(row, noted) else 0,
            live=live,
            archived=row.archived,
            forked_from=row.forked_from,
            parent_session=row.parent_session,
            continued_by=continued_by,
            turns=row.turns,
            seq=row.seq,
            named=bool(name),
            markers=self._tallies.markers(row.session_id),
            branches=branches.get(row.session_id, 0),
            made_by=self._tallies.made_by(row),
            nearly_full=self._is_nearly_full(row),
            offer=None if row.archived or continued_by else self._offer(row),
        )

    def _window(self, row: Row) -> int | None:
        """Return how much fits: what a setting or the environment names, else what is reported."""
        from codex_checkpoints.core.compaction import offering  # noqa: PLC0415 - as `named` has it

        return offering.window(row.context_window, self._named())

    def _is_nearly_full(self, row: Row) -> bool:
        from codex_checkpoints.core.compaction import offering  # noqa: PLC0415 - as `named` has it

        return offering.is_nearly_full(_between(row), self._named())

    def _offer(self, row: Row) -> Offer | None:
        """Return what speaks for a compaction, by what is reported alone (JUN-28)."""
        from codex_checkpoints.core.compaction import offering  # noqa: PLC0415 - as `named` has it

        return offering.offer(self._settings.compaction_offer, _between(row), self._named())

    def _remembers(self, row: Row, noted: frozenset[str]) -> bool:
        """Return whether there may be notes, here or where the session's history begins."""
        below = (base.session_id for base in self._catalogue.chains.below(row))
        return not noted.isdisjoint((row.session_id, *below))

    def _noted(self) -> frozenset[str]:
        """Return the sessions of which more is known than their files tell."""
        return self._records.has_updates() | self._compactions().holders()

    def _suspect(self, row: Row) -> int:
        try:
            opened = self._catalogue.open(row)
            checkpoint = self._projections.current(opened)
        except Refusal:
            return 0
        statuses = (status_of(fact, checkpoint.artifacts) for fact in checkpoint.facts.values())
        return sum(status == "SUSPECT" for status in statuses)


def _between(row: Row) -> Between:
    """Return how a session stands between two turns."""
    from codex_checkpoints.core.compaction.offering import Between  # noqa: PLC0415 - as `named` has it

    source = "reported" if row.context_source == "reported" else "estimated"
    return Between(not row.turn_open, row.context_tokens, source, row.context_window)
