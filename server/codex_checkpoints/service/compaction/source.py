"""Reads a session for a compaction, up to one byte, while others may append to it.

The checkpoint, the history, the state of the last turn and the digests cover the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.history.item_kinds import Past
from codex_checkpoints.core.agents.codex.history.scan import Compaction, HistoryScan
from codex_checkpoints.core.agents.codex.history.windows import Chain
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.compaction.records import (
    Installed,
    Range,
    digest_of,
    recalled,
    remembered,
)
from codex_checkpoints.core.compaction.replacement_lines import (
    RecordLine,
    TurnTime,
    effective,
    in_place,
    in_task,
)
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.core.fields import Json
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.history.resumed_history import (
    ChainPart,
    Histories,
    ScannedHistory,
    Traced,
    survey_of,
)
from codex_checkpoints.service.reading.session_file import (
    Fingerprint,
    SessionFile,
    fingerprint,
)
from codex_checkpoints.service.records.operation_records import WindowOrigin
from codex_checkpoints.service.refusal import Refusal, reading_file
from codex_checkpoints.service.sessions.sessions import Sessions, was_cut_off
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.contract import HistoryItem, Row


def nothing() -> None:
    """Do nothing: the caller updates the index."""


@frozen
class CompactionSource:
    """A session up to the byte `end` of its file; `live` while a process has it loaded.

    `cut_off`: no process continues its last turn, if that is open.  `prefix` is the digest of these
    bytes, or None; `gathered` is the quotable part of it; `known` are the ids of the compactions in
    its records before it was read.
    """

    row: Row
    opened: SessionFile
    replay: Replay
    end: int
    traced: Traced
    prefix: str | None = None
    gathered: DigestSource | None = None
    live: bool = False
    cut_off: bool = False
    known: frozenset[str] = frozenset()

    @property
    def session_id(self) -> str:
        """Return the id of the session."""
        return self.row.session_id

    @property
    def version(self) -> str:
        """Return the version of the file, which is equal while the session is unchanged."""
        return self.row.rollout.version

    @property
    def window(self) -> int | None:
        """Return the size of its model's window, if it is known."""
        return self.traced.history.context.window or self.row.context_window

    @property
    def last_turn(self) -> Turn | None:
        """Return the newest turn that was not rolled back."""
        return next(reversed([*self.replay.state.turns.counting()]), None)

    @property
    def ended(self) -> bool:
        """Return whether no turn is open (JUN-17)."""
        return self.replay.state.is_between_turns


class Sources:
    """Reads sessions for compactions."""

    def __init__(self, sessions: Sessions, update_index: Callable[[], object] = nothing) -> None:
        self._sessions = sessions
        self._update_index = update_index
        self._histories = Histories(sessions)

    def read(
        self, session: str, *, seal: bool = False, cut: int | None = None, quoted: bool = False
    ) -> CompactionSource:
        """Read a session of this home; refuses as `Sessions.find`, `unreadable_source`.

        The same pass gives the digest of its bytes with `seal` (CKP-33), the history before the
        byte `cut`, and with `quoted` the quotable part.
        """
        catalogue = self._sessions.catalogue
        self._update_index()
        row = self._sessions.own(session)
        records = self._sessions.compactions.of(row.session_id)
        catalogue.refresh_paths([row.path])
        row = catalogue.current().get(row.session_id, row)
        self._sessions.progress.expect(2 * catalogue.chains.weight(row))
        found = self._together(row, seal=seal, cut=cut, quoted=quoted)
        if found is None:
            found = self._apart(row, cut, quoted=quoted)
        known = frozenset(each.compaction_id for each in records if isinstance(each, Installed))
        return evolve(self._as_of_now(found), known=known)

    def _together(
        self, row: Row, *, seal: bool, cut: int | None, quoted: bool
    ) -> CompactionSource | None:
        """Read a session in one pass, which the catalogue takes over.

        None if it has long lines of which one fold alone would get less, or nothing.
        """
        catalogue, histories = self._sessions.catalogue, self._histories
        with reading_file(row):
            below = histories.parts_below(row.path)
        replay, prefix = Replay(), Fingerprint() if seal else None
        survey_of(replay, below, cut)
        if quoted:
            DigestExtract(replay, row.session_id)
        opened = catalogue.read(row, replay=replay, also=None if prefix is None else prefix.add)
        _check_whole(row, opened)
        if not replay.exact:
            return None
        now, end = _state_of(opened)
        (survey,) = (fold for fold in now.folds if isinstance(fold, HistoryScan))
        quotes = [fold.gathered() for fold in now.followers if isinstance(fold, DigestExtract)]
        replay.read_alone()
        now.read_alone()
        catalogue.keep(row, opened)
        row = catalogue.now(row)
        traced = histories.trace(row, survey, (*below, ChainPart(row.path, None, end)), cut)
        gathered = None
        if quoted:
            gathered = Digests(self._sessions).gathered(row, own=(now, quotes[0]))
        sealed = None if prefix is None else _sealed(prefix, opened, end)
        return CompactionSource(row, opened, now, end, traced, sealed, gathered)

    def _apart(self, row: Row, cut: int | None, *, quoted: bool) -> CompactionSource:
        """Read a session once for each fold."""
        catalogue = self._sessions.catalogue
        opened = catalogue.open(row)
        _check_whole(row, opened)
        row = catalogue.now(row)
        now, end = _state_of(opened)
        traced = self._histories.traced(row, end, cut, now.scale.seed)
        digests = Digests(self._sessions)
        gathered = digests.gathered(row, now.scale.lines) if quoted else None
        return CompactionSource(row, opened, now, end, traced, gathered=gathered)

    def read_for_preview(self, session: str) -> CompactionSource:
        """Read a session for a preview; refuses as `read`.

        An unchanged session comes from the cache, whichever part is needed.
        """
        cache = self._sessions.catalogue.cache
        kept = cache.latest_of(CompactionSource)
        if kept is None or kept.session_id != session or self.is_changed(kept):
            cache.latest = kept = self.read(session, quoted=True)
        gathered = kept.gathered
        if gathered is not None:
            digests = Digests(self._sessions)
            gathered = digests.as_of_now(kept.row, kept.opened, kept.replay, gathered)
        return evolve(self._as_of_now(kept), gathered=gathered)

    def _as_of_now(self, source: CompactionSource) -> CompactionSource:
        """Return a source with `live` and `cut_off` as of now."""
        live = self._sessions.catalogue.store.live_threads()
        cut_off = not source.ended and was_cut_off(source.row, live, stamps.moment())
        return evolve(source, live=source.session_id in live, cut_off=cut_off)

    def is_changed(self, source: CompactionSource) -> bool:
        """Return whether the file of a session changed since it was read."""
        path = source.row.path
        seen = self._sessions.catalogue.store.stat([path]).get(path)
        return seen is None or seen.version != source.version

    def items_in_front(self, source: CompactionSource) -> tuple[Json, ...]:
        """Return the history before the `cut`."""
        in_front = source.traced.in_front
        return () if in_front is None else self._histories.surveyed(source.row, in_front).items

    def checkpoint(self, source: CompactionSource) -> Checkpoint:
        """Return the checkpoint of a session, with the present hashes; nothing is stored."""
        projections, opened = self._sessions.projections, source.opened
        return projections.project(opened, source.replay, projections.updates_of(opened))

    def past(self, source: CompactionSource) -> tuple[Past, ...]:
        """Return the history with the first time and place of each item (JUN-43).

        Refuses `storage_error`, `unreadable_source`.
        """
        opened: dict[str | None, WindowOrigin] = {}
        for each in (*self._sessions.catalogue.chains.below(source.row), source.row):
            opened.update(self._sessions.compactions.by_window(each.session_id))
        traced = source.traced
        return self._first(traced.surveyed, traced.history.past, opened)

    def _first(
        self,
        surveyed: ScannedHistory,
        past: tuple[Past, ...],
        opened: Mapping[str | None, WindowOrigin],
    ) -> tuple[Past, ...]:
        base = surveyed.choice.base
        if base is None:
            return past
        match opened.get(base.window_id):
            case WindowOrigin(by=Installed() as record):
                return remembered(past, record)
            case WindowOrigin(undone=Installed() as record):
                # No window is opened twice: so this ends, whatever the records say.
                others = {key: each for key, each in opened.items() if key != base.window_id}
                return recalled(past, self._before(surveyed, base, record, others))
            case _:
                return past

    def _before(
        self,
        surveyed: ScannedHistory,
        base: Compaction,
        record: Installed,
        opened: Mapping[str | None, WindowOrigin],
    ) -> tuple[Past, ...]:
        """Return the history that the line `base` reopened, with the items added before it."""
        catalogue = self._sessions.catalogue
        row = catalogue.store.rows().get(surveyed.parts[base.place.file].path)
        if row is None:
            return ()
        self._sessions.progress.expect(catalogue.chains.weight(row))
        cut, seed = record.source.bytes_before, surveyed.outline.seed
        then = self._histories.traced(row, base.place.offset, cut, seed)
        if then.in_front is None:
            return ()
        past = self._histories.surveyed(row, then.in_front).past
        before = self._first(then.in_front, past, opened)
        return (*before, *then.history.past[len(record.items) :])

    def range_of(self, source: CompactionSource) -> Range:
        """Return the range that a compaction replaces, with its digests (CKP-33)."""
        row, traced, prefix = source.row, source.traced, source.prefix
        with reading_file(row):
            prefix = prefix or fingerprint(self._sessions.catalogue.reader, row.path, source.end)[0]
        return Range(
            source.session_id,
            traced.from_seq,
            traced.outline.seq,
            digest_of(traced.history.items),
            source.end,
            prefix,
        )


def _check_whole(row: Row, opened: SessionFile) -> None:
    """Check that the bases of a session are complete; refuses `unreadable_source`."""
    broken = [each for each in opened.problems if each.code != "base_short"]
    if broken:
        message = f"session {row.session_id} builds on a rollout that is missing"
        facts = {"path": row.path, "reason": broken[0].code}
        raise Refusal("unreadable_source", message, facts)


def _sealed(prefix: Fingerprint, opened: SessionFile, end: int) -> str | None:
    """Return the digest of a file up to `end`, None if more of it was read."""
    if prefix.size < end:
        prefix.add(opened.tail[prefix.size - opened.mark.offset :])  # the last line has no end
    return prefix.digest if prefix.size == end else None


def _state_of(opened: SessionFile) -> tuple[Replay, int]:
    """Return the state of a session, and how many bytes of its file it covers."""
    now = opened.now()
    return now, opened.mark.offset + (0 if now is opened.replay else len(opened.tail))


def opened_after(chain: Chain, window_id: str) -> Chain:
    """Return a chain with one more window; it gets the number 1 if no window had one."""
    return evolve(chain, number=chain.number or 0).opened(window_id)


def items_of(lines: tuple[RecordLine, ...]) -> tuple[HistoryItem, ...]:
    """Return lines in the form that a store takes."""
    return tuple(HistoryItem(line.type, line.payload) for line in lines)


def appended_lines(  # noqa: PLR0913, PLR0917 - the history, its size, its window, and its task
    source: CompactionSource,
    items: Sequence[Json],
    size: int,
    chain: Chain,
    turn_id: str,
    at: TurnTime,
    *,
    undo: bool = False,
) -> tuple[HistoryItem, ...]:
    """Return the lines that, appended to a session, make these items its history.

    `size` are the tokens in use from then on, `turn_id` a new one for lines that need a task;
    `undo`: they undo a compaction.  Refuses `conflict` if no such lines work.
    """
    traced = source.traced
    lines = in_place(items, chain, size, traced.last_report, undo=undo)
    forms = lines, in_task(lines, turn_id, source.window, at)
    form = effective(traced.outline, forms, items)
    if form is None:
        message = f"session {source.session_id}: Codex would ignore the lines appended to it"
        hint = "Compact it into a new session, or restore one of its turns into a branch."
        facts = {"sessionId": source.session_id, "reason": "without_effect", "hint": hint}
        raise Refusal("conflict", message, facts)
    return items_of(form)


def check_appendable(source: CompactionSource, items: Sequence[Json]) -> None:
    """Check that a session can get these items as its history; refuses as `appended_lines`."""
    appended_lines(
        source, items, 0, opened_after(source.traced.history.chain, ""), "", TurnTime("", 0)
    )
