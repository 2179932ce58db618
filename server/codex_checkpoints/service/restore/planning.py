"""Plan a restore without writing (AGN-84).

A marker leads to a session and a turn. The session is read again up to that turn, the files it
names are looked at, and the result is one `RestorePlan`.
"""

from __future__ import annotations

from attrs import evolve

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.compaction.records import Range
from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.markers import MarkerSet, Pin
from codex_checkpoints.core.restore.pack import (
    DEFAULT_REASON,
    MAX_WINDOW,
    Origin,
    PackContents,
    StatePack,
    TurnSource,
    state_pack,
)
from codex_checkpoints.core.restore.records import Restore, TokenFigures, restore_of
from codex_checkpoints.core.restore.references import (
    NOTHING,
    Fallback,
    References,
    also_missing,
    drift_of,
    missing_of,
    references_of,
    remembered,
    spans_of,
    weak_hashes,
)
from codex_checkpoints.core.restore.trace import ModeChange, Trace, Traces, in_order
from codex_checkpoints.core.rollout.fields import Json, load, object_of, text_of
from codex_checkpoints.service import refusal
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.kept import (
    ImportRecords,
    RestoreRecords,
    began_session,
    storing_compaction,
)
from codex_checkpoints.service.lineages import ancestors
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.reading.session_file import fingerprint
from codex_checkpoints.service.refusal import Refusal, misfit
from codex_checkpoints.service.restore.copying import (
    CHANGED,
    CopiedPart,
    Reference,
    last_of,
    part_of,
    parts_below,
    reference_to,
)
from codex_checkpoints.service.restore.source import (
    RestoreSource,
    chunks_now,
    ends_with_turn,
    hashes_now,
    pinned_now,
)
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Row, UnreadableSource
from codex_checkpoints.values import define, frozen

_LONGEST = 64
"""How many compactions one behind the other are followed: each costs reading a whole session."""

UNKNOWN = Fallback("earlier_unknown")


@frozen
class Earlier:
    """Files and modes before the own lines of a session; `gaps` tell what is not known."""

    references: References = NOTHING
    modes: tuple[ModeChange, ...] = ()
    gaps: tuple[Fallback, ...] = ()


def earlier_work(sessions: Sessions, row: Row, trace: Trace, most: int = _LONGEST) -> Earlier:
    """Return the work before the own lines of a session, which `trace` has read.

    Refuses `storage_error`; raises `UnreadableSource`.
    """
    found = _above(sessions, row, trace) if most else Earlier(gaps=(UNKNOWN,))
    if isinstance(found, Earlier):
        return found
    before, traces = earlier_work(sessions, *found, most - 1), found[1].traces()
    modes = in_order(before.modes, traces.modes)
    return Earlier(remembered(traces, before.references), modes, before.gaps)


def _above(sessions: Sessions, row: Row, trace: Trace) -> Earlier | tuple[Row, Trace]:
    """Return what a record of a restore or import holds, or the source of a compaction."""
    seed, restores = trace.replay.state.seed, RestoreRecords(sessions.records)
    made = restores.made(row.session_id)
    if made is not None:
        return _carried(made, None if seed is None else seed.seq)
    if seed is None:
        return Earlier()
    root = [row, *sessions.catalogue.chains.below(row)][-1].session_id
    made = restores.made(root)
    if made is not None:
        return _carried(made, seed.seq)
    with storing_compaction(root):
        began = began_session(sessions.compactions.of(root), root)
    if began is not None:
        return _compacted(sessions, began.source) or Earlier(gaps=(UNKNOWN,))
    arrived = ImportRecords(sessions.records).made(root)
    return Earlier(modes=() if arrived is None else arrived.pack.modes, gaps=(UNKNOWN,))


def _carried(made: Restore, seed: int | None) -> Earlier:
    """Return the contents of a restore; later modes stand in the lines of the branch."""
    modes = tuple(each for each in made.modes if seed is not None and each.seq <= seed)
    return Earlier(made.references, modes, tuple(gap for gap in made.fallbacks if gap == UNKNOWN))


def _compacted(sessions: Sessions, source: Range) -> tuple[Row, Trace] | None:
    """Read the source of a compaction up to its end; None where it is gone or changed."""
    catalogue = sessions.catalogue
    newest = catalogue.current().get(source.session_id)
    others = (
        row
        for row in catalogue.rows().values()
        if row.session_id == source.session_id and row.error is None and row != newest
    )
    for row in (*filter(None, [newest]), *others):
        try:
            found = fingerprint(catalogue.reader, row.path, source.bytes_before)
        except UnreadableSource:
            continue
        if found == (source.prefix, source.bytes_before):
            trace = Trace(last=source.to_seq)
            catalogue.read_with(trace.replay, row)
            return row, trace
    return None


_MOST_TOKENS = 1 << 48
"""More than any pack has; a larger number could stand in no record."""
_BROKEN = frozenset({"base_missing", "base_cycle"})


@frozen
class RestoreOptions:
    """How to restore a marker; `budget` None takes that of the settings."""

    mode: RestoreMode
    budget: int | None = None
    window: int = 0
    reason: str | None = None


def restore_options(
    mode: str, budget: int | None, window: int, reason: str | None
) -> RestoreOptions:
    """Return validated options; refuses `invalid_payload`.

    A budget of any size is accepted (AGN-73); it is cut to `_MOST_TOKENS`.
    """
    if mode not in {"soft", "hard"}:
        raise misfit("mode: must be soft or hard")
    if budget is not None and budget < 0:
        raise misfit("budget: must not be negative")
    if not 0 <= window <= MAX_WINDOW:
        raise misfit(f"window: must be 0 to {MAX_WINDOW}")
    bounded = None if budget is None else min(budget, _MOST_TOKENS)
    return RestoreOptions("hard" if mode == "hard" else "soft", bounded, window, reason)


@frozen
class RestorePlan:
    """A restore without its ids, its time and the windows of its branch.

    `parts` are the files that the branch rests on, that of the source last.
    """

    source: RestoreSource
    record: Restore
    contents: PackContents
    pack: StatePack | None
    marker_set: MarkerSet
    updates: tuple[Update, ...]
    turns: tuple[str, ...]
    head: Json
    cwd: str
    parts: tuple[CopiedPart, ...]
    reference: Reference | None


@define
class Planner:
    """Plans a restore."""

    sessions: Sessions
    markers: Markers
    source: RestoreSource
    options: RestoreOptions

    def plan(self) -> RestorePlan:
        """Read the source up to the turn; refuses `unreadable_source`, `storage_error`."""
        try:
            return self._planned()
        except UnreadableSource as error:
            raise unreadable(self.source.row, str(error)) from error

    def _planned(self) -> RestorePlan:
        sessions, row, marker = self.sessions, self.source.row, self.source.marker
        problems, hard = self.source.opened.problems, self.options.mode == "hard"
        if not hard and any(each.code in _BROKEN for each in problems):
            raise unreadable(row, "a file that its history begins with is missing")
        passes = 4 if hard else 6  # a soft branch is copied, and its own windows are looked at
        sessions.pace.expect(passes * sessions.catalogue.chains.weight(row))
        self._cut()
        # Before the source is read for the plan: then what is planned is told by these digests.
        own = part_of(sessions.catalogue.reader, row.path)
        parts = (own,) if hard else (*self._below(), own)
        trace = self._read()
        state, seq = trace.replay.state, trace.replay.seq
        updates = sessions.projections.updates_of(self.source.opened)
        updates = tuple(each for each in updates if each.seq <= seq)
        earlier = earlier_work(sessions, row, trace)
        marker_set = self.markers.marker_set(row.session_id)
        contents = self._contents(trace, updates, earlier, marker_set.pins)
        first = sessions.catalogue.reader.first_line(row.path)
        head = object_of(object_of(load(first)).get("payload"))
        pack = state_pack(contents, self._budget) if hard else None
        now = hashes_now(sessions.workspace, state.base, marker.hashes)
        reference, copied = self._referred(trace)
        gone = self._not_there(state.base, contents, trace.traces())
        record = restore_of(
            contents,
            pack,
            tokens=_figures(trace, pack, head),
            caps=sessions.settings.caps_for(state.model).as_json(),
            source_window=self._window(seq),
            source_digest=own.digest,
            source_bytes=own.size,
            drift=drift_of(marker.hashes, now),
            missing=also_missing(missing_of(marker.hashes, now), gone),
            fallbacks=(
                *weak_hashes(now, contents.hashes),
                *earlier.gaps,
                *copied,
                *self._without_index(),
            ),
            detached=self.source.detached,
            problems=len(problems),
            by_reference=reference is not None,
        )
        return RestorePlan(
            source=self.source,
            # The copied history of a session that began with a seed still rests on it.
            record=record if hard else evolve(record, seed=state.seed),
            contents=contents,
            pack=pack,
            marker_set=marker_set,
            updates=updates,
            turns=tuple(turn.turn_id for turn in state.turns.counting()),
            head=head,
            cwd=row.cwd or state.base or "",
            parts=parts,
            reference=reference,
        )

    def _below(self) -> tuple[CopiedPart, ...]:
        catalogue, path = self.sessions.catalogue, self.source.row.path
        return parts_below(catalogue.reader, path, catalogue.chains.locator(path))

    def _referred(self, trace: Trace) -> tuple[Reference | None, tuple[Fallback, ...]]:
        """Return the reference of a soft branch to its source, or why there is none."""
        if self.options.mode == "hard" or self.sessions.settings.soft_restore != "reference":
            return None, ()
        found = reference_to(self.sessions.catalogue.reader, self.source.row, trace)
        return (found, ()) if isinstance(found, Reference) else (None, (Fallback(found),))

    def _read(self) -> Trace:
        """Read up to the turn; raises `UnreadableSource` where it is no longer there."""
        trace = Trace()
        trace.replay.until = self.source.until
        self.sessions.catalogue.read_with(trace.replay, self.source.row)
        if not ends_with_turn(trace.replay, self.source):
            raise UnreadableSource(CHANGED)
        return trace

    def _cut(self) -> None:
        """Leave out the lines of the next turn, where no record ends the marked one."""
        source, turns = self.source, self.source.opened.now().state.turns.turns
        place = [each.turn_id for each in turns].index(source.marker.turn_id)
        turn, *following = turns[place : place + 2]
        if turn.ended is None and following:
            reader = self.sessions.catalogue.reader
            parts = (*self._below(), part_of(reader, source.row.path))
            until = last_of(reader, parts, turn, following[0], source.until)
            self.source = evolve(source, until=until)

    def _contents(
        self, trace: Trace, updates: tuple[Update, ...], before: Earlier, pins: tuple[Pin, ...]
    ) -> PackContents:
        replay, workspace, marker = trace.replay, self.sessions.workspace, self.source.marker
        base, session_id = replay.state.base, self.source.row.session_id
        checkpoint = replay.checkpoint(updates, workspace.hashes(base, replay.files()))
        traces = trace.traces()
        files = [uri for uri, each in checkpoint.artifacts.items() if each.kind == "file"]
        references = references_of(
            checkpoint,
            traces,
            workspace.sizes(base, files),
            chunks_now(workspace, base, spans_of(traces, before.references)),
            before.references,
        )
        origin = Origin(
            TurnSource(session_id, marker.turn_id),
            marker.checkpoint_id,
            marker.label,
            marker.created_at,
            ancestors(self.sessions, session_id),
        )
        count = min(max(self.options.window, 0), MAX_WINDOW) if self.options.mode == "hard" else 0
        return PackContents(
            origin,
            self.options.reason or DEFAULT_REASON,
            in_order(before.modes, traces.modes),
            checkpoint,
            references,
            tuple(pinned_now(workspace, base, pin) for pin in pins),
            trace.window(count, marker.turn_id) if count else (),
        )

    def _not_there(
        self, base: str | None, contents: PackContents, traces: Traces
    ) -> tuple[str, ...]:
        """Return the named or pinned files that are missing, and not deleted (AGN-65)."""
        unseen = (file.uri for file in contents.references.files if file.hash is None)
        wanted = [uri for uri in unseen if uri not in traces.deleted]
        pins = (pin.uri for pin in contents.pins if pin.missing)
        return (*self.sessions.workspace.missing(base, wanted), *pins)

    def _without_index(self) -> tuple[Fallback, ...]:
        """Return the fallback to files alone, where there is no index."""
        faults = self.sessions.catalogue.store.faults()
        missing = any(fault.code == "index_unavailable" for fault in faults)
        return (Fallback("file_only_store"),) if missing else ()

    @property
    def _budget(self) -> int:
        budget, default = self.options.budget, self.sessions.settings.restore_budget_tokens
        return min(default if budget is None else budget, _MOST_TOKENS)

    def _window(self, seq: int) -> str | None:
        """Return the window of the source at the turn, where its file names it."""
        windows = Histories(self.sessions).windows(self.source.row.path)
        opened = [each for each in windows if each.opened_seq <= seq]
        return opened[-1].window_id if opened else None


def _figures(trace: Trace, pack: StatePack | None, head: Json) -> TokenFigures:
    """Return the tokens in use at the turn, and at the beginning of the branch (AGN-15)."""
    state = trace.replay.state
    known = None if state.tokens is None or state.tokens_stale else state.tokens.total
    if pack is None:
        return TokenFigures(known, known, state.window)
    instructions = text_of(object_of(head.get("base_instructions")).get("text")) or ""
    return TokenFigures(known, pack.tokens + tokens.approximate_tokens(instructions), state.window)


def unreadable(row: Row, reason: str) -> Refusal:
    """Return the refusal of a source that cannot be read or has changed."""
    return refusal.unreadable(row.path, reason, row.session_id)
