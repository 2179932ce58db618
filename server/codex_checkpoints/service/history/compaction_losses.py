"""Reports the losses of each compaction in a session, including Codex's own.

`core.losses` computes them.  A session that a compaction of ours began lacks the replaced records;
they are read from the source session, up to the byte where the compaction ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.compaction.records import Installed, Range, began_session
from codex_checkpoints.core.converters import stored
from codex_checkpoints.core.losses.file_activity import Loss
from codex_checkpoints.core.losses.loss_report import LossReport
from codex_checkpoints.service.history.windows import opened_by_us
from codex_checkpoints.service.progress import ProgressReader
from codex_checkpoints.service.reading.derived_cache import CachedKind
from codex_checkpoints.service.reading.session_file import (
    Fingerprint,
    bases_below,
    open_session,
)
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import (
    OURS,
    Feed,
    Mark,
    Reading,
    RolloutReader,
    Row,
    UnreadableSource,
)

LOSSES = CachedKind("losses", 10, tuple[Loss, ...], most=108 << 10)
"""The losses of a session; the version changes with the rules."""


def losses_of(sessions: Sessions, session: str) -> tuple[Loss, ...]:
    """Return a loss for each compaction in a session, oldest first (DSC-57, DSC-73).

    If the source of the first one has changed, only the seed shows the earlier facts.  Refuses as
    `Sessions.find`, `unreadable_source` and `storage_error`.
    """
    row, opened = sessions.open(session)

    def inputs(_losses: object) -> object:
        return [stored.unstructure(each) for each in sessions.projections.updates_of(opened)]

    def make() -> tuple[Loss, ...]:
        source = _source_of(sessions, row.path)
        account = LossReport(sessions.projections.updates_of(opened), source=source)
        sessions.catalogue.read_with(account.replay, row)
        return account.losses()

    cache = sessions.catalogue.cache
    if not cache.may_quote(sessions.settings):
        return _as_recorded(sessions, row, make())
    return _as_recorded(sessions, row, cache.get_or_make(opened, LOSSES, inputs, make))


def _source_of(sessions: Sessions, path: str) -> LossReport | None:
    account: LossReport | None = None
    for place, source in reversed([*_sources(sessions, path)]):
        account = _as_it_was(sessions, place, source, account)
    return account


def _sources(sessions: Sessions, path: str) -> Iterator[tuple[str, Range]]:
    """Yield path and range of the sources of our compactions below a session, nearest first."""
    seen: set[str] = set()
    place: str | None = path
    while place is not None:
        try:
            began = _beginning(sessions, place)
        except (StorageError, UnreadableSource):
            return  # the session file still counts
        if began is None or began.compaction_id in seen:
            return
        seen.add(began.compaction_id)
        place = _place_of(sessions, began.source.session_id)
        if place is not None:
            yield place, began.source


def _beginning(sessions: Sessions, path: str) -> Installed | None:
    """Return the compaction of ours that began a session or its oldest base."""
    catalogue = sessions.catalogue
    reader = catalogue.reader
    own = head_of(reader.first_line(path))
    if own is None or own.inherited_below is not None:
        return None
    below, _ = bases_below(reader, path, catalogue.chains.locator(path))
    root = head_of(reader.first_line(below[-1][0])) if below else own
    if root is None or root.originator != OURS or not root.session_id:
        return None
    return began_session(sessions.compactions.read(root.session_id), root.session_id)


def _place_of(sessions: Sessions, session_id: str) -> str | None:
    """Return the path of a session by file names, which also finds one just archived."""
    catalogue = sessions.catalogue
    identify = catalogue.reader.identify
    places = catalogue.store.places().values()
    own = [path for path in places if identify(path).thread_id == session_id]
    row = catalogue.current().get(session_id)
    return row.path if row is not None and row.path in own else max(own, default=None)


def _as_it_was(
    sessions: Sessions, path: str, source: Range, before: LossReport | None
) -> LossReport | None:
    """Read a session up to the end of a compaction; None if it has changed since."""
    catalogue, account = sessions.catalogue, LossReport(source=before)
    reader = _UpTo(catalogue.reader, path, source.bytes_before)
    try:
        locate = catalogue.chains.locator(path)
        opened = open_session(reader, path, locate, replay=account.replay, seeds=catalogue.seeds)
    except UnreadableSource:
        return None
    if reader.read_bytes.digest != source.prefix:
        return None
    account.replay.close(opened.tail)
    return account


class _UpTo(ProgressReader):
    """A reader for which one rollout ends at a given byte; it keeps the digest up to there."""

    def __init__(self, reader: RolloutReader, path: str, end: int) -> None:
        super().__init__(reader)
        self._path = path
        self._end = end
        self.read_bytes = Fingerprint()

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed the rollout up to its given end, and any other as usual."""
        if path != self._path:
            return super().follow(path, old, feed)

        def fed(data: bytes) -> int:
            consumed = feed(data)
            self.read_bytes.add(data[:consumed])
            return consumed

        reached, rest = self.read(path, 0, fed)
        self.read_bytes.add(rest)
        return Reading(Mark(reached, "", "", ""), rest)

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        """Feed from `offset` to `limit` or the end; return the final offset and the rest."""
        limit = self._end if path == self._path and limit is None else limit
        return super().read(path, offset, feed, limit)


def _as_recorded(sessions: Sessions, row: Row, losses: tuple[Loss, ...]) -> tuple[Loss, ...]:
    """Return the losses, with strategy and trigger from our own records if available."""
    made = opened_by_us(sessions, row)
    return tuple(
        each
        if (opened := made.get(each.window_id)) is None
        else evolve(each, strategy=opened.strategy, trigger=opened.trigger)
        for each in losses
    )
