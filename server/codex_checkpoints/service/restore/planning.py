"""Plan a restore without writing (AGN-84).

A marker leads to a session and a turn. The session is read again up to that turn, the files it
names are looked at, and the result is one `RestorePlan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.records import Installed, Range
from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.markers import MarkerSet
from codex_checkpoints.core.restore.pack import (
    DEFAULT_REASON,
    MAX_WINDOW,
    Origin,
    PackContents,
    StatePack,
    TurnSource,
    state_pack,
)
from codex_checkpoints.core.restore.records import Placement, Restore, TokenFigures
from codex_checkpoints.core.restore.references import (
    NOTHING,
    Drift,
    Fallback,
    Missing,
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
    CompactionRecords,
    ImportRecords,
    RestoreRecords,
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
from codex_checkpoints.values import frozen

_LONGEST = 64
"""How many compactions one behind the other are followed: each costs reading a whole session."""

UNKNOWN = Fallback("earlier_unknown")


@frozen
class Earlier:
    """Files and modes before the own lines of a session; `gaps` tell what is not known."""

    references: References = NOTHING
    modes: tuple[ModeChange, ...] = ()
    gaps: tuple[Fallback, ...] = ()


def earlier_work(sessions: Sessions, row: Row, trace: Trace) -> Earlier:
    """Return the work before the own lines of a session, which `trace` has read.

    Refuses `storage_error`; raises `UnreadableSource`.
    """
    found: list[Trace] = []
    at: Row = row
    told = trace
    while len(found) < _LONGEST:
        step = _step(sessions, at, told)
        if isinstance(step, Earlier):
            return _behind(step, found)
        at, told = step
        found.append(told)
    return _behind(Earlier(gaps=(UNKNOWN,)), found)


def _behind(before: Earlier, found: list[Trace]) -> Earlier:
    """Add the traces of compacted sources, the oldest first."""
    references, modes = before.references, before.modes
    for trace in reversed(found):
        traces = trace.traces()
        references, modes = remembered(traces, references), in_order(modes, traces.modes)
    return Earlier(references, modes, before.gaps)


def _step(sessions: Sessions, row: Row, trace: Trace) -> Earlier | tuple[Row, Trace]:
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
        records = CompactionRecords(sessions.records).of(root)
    for record in records:
        if isinstance(record, Installed) and (record.into, record.session_id) == ("new", root):
            return _compacted(sessions, record.source) or Earlier(gaps=(UNKNOWN,))
    arrived = ImportRecords(sessions.records).made(root)
    modes = () if arrived is None else arrived.pack.modes
    return Earlier(modes=modes, gaps=(UNKNOWN,))


def _carried(made: Restore, seed: int | None) -> Earlier:
    """Return the contents of a restore; later modes stand in the lines of the branch."""
    modes = tuple(each for each in made.modes if seed is not None and each.seq <= seed)
    return Earlier(made.references, modes, tuple(gap for gap in made.fallbacks if gap == UNKNOWN))


def _compacted(sessions: Sessions, source: Range) -> tuple[Row, Trace] | None:
    """Read the source of a compaction up to its end; None where it is gone or changed."""
    for row in _rollouts(sessions, source.session_id):
        try:
            found = fingerprint(sessions.catalogue.reader, row.path, source.bytes_before)
        except UnreadableSource:
            continue
        if found == (source.prefix, source.bytes_before):
            trace = Trace(last=source.to_seq)
            sessions.catalogue.read_with(trace.replay, row)
            return row, trace
    return None


def _rollouts(sessions: Sessions, session_id: str) -> Iterator[Row]:
    """Yield the files of a session, the newest first."""
    newest = sessions.catalogue.current().get(session_id)
    if newest is not None:
        yield newest
    for row in sessions.catalogue.rows().values():
        if row.session_id == session_id and row.error is None and row != newest:
            yield row


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
    """A restore without its ids and its time.

    `parts` are the files that the branch rests on, that of the source last; `until` is the position
    of the last line that was read.
    """

    source: RestoreSource
    options: RestoreOptions
    marker_set: MarkerSet
    contents: PackContents
    pack: StatePack | None
    updates: tuple[Update, ...]
    kept: tuple[str, ...] | None
    turns: int
    until: int
    seed: Checkpoint | None
    tokens: TokenFigures
    caps: Mapping[str, int]
    window_id: str | None
    head: Json
    cwd: str
    paginated: bool
    parts: tuple[CopiedPart, ...]
    source_digest: str
    source_bytes: int
    drift: tuple[Drift, ...]
    missing: tuple[Missing, ...]
    fallbacks: tuple[Fallback, ...]
    reference: Reference | None

    @property
    def placement(self) -> Placement:
        """Return how the branch gets its state."""
        if self.pack is not None:
            return "seed"
        return "copy" if self.reference is None else "reference"


class Planner:
    """Plans restores."""

    def __init__(self, sessions: Sessions, markers: Markers) -> None:
        self._sessions = sessions
        self._markers = markers
        self._reader = sessions.catalogue.reader

    def plan(self, source: RestoreSource, options: RestoreOptions) -> RestorePlan:
        """Read the source up to the turn; refuses `unreadable_source`, `storage_error`."""
        try:
            return self._planned(source, options)
        except UnreadableSource as error:
            raise unreadable(source.row, str(error)) from error

    # --- inside ----------------------------------------------------------------------------------

    def _planned(self, source: RestoreSource, options: RestoreOptions) -> RestorePlan:
        row, marker, hard = source.row, source.marker, options.mode == "hard"
        if not hard and any(each.code in _BROKEN for each in source.opened.problems):
            raise unreadable(row, "a file that its history begins with is missing")
        passes = 4 if hard else 6  # a soft branch is copied, and its own windows are looked at
        self._sessions.pace.expect(passes * self._sessions.catalogue.chains.weight(row))
        source = self._cut(source)
        # Before the source is read for the plan: then what is planned is told by these digests.
        locate = self._sessions.catalogue.chains.locator(row.path)
        own = part_of(self._reader, row.path)
        parts = (own,) if hard else (*parts_below(self._reader, row.path, locate), own)
        trace = self._read(source)
        updates = self._updates(source, trace)
        earlier = earlier_work(self._sessions, row, trace)
        contents = self._contents(source, options, trace, updates, earlier)
        head = object_of(object_of(load(self._reader.first_line(row.path))).get("payload"))
        pack = state_pack(contents, self._budget(options)) if hard else None
        state = trace.replay.state
        now = hashes_now(self._sessions.workspace, state.base, marker.hashes)
        reference, copied = self._referred(row, trace, options)
        turns = tuple(turn.turn_id for turn in state.turns.counting())
        return RestorePlan(
            source=source,
            options=options,
            marker_set=self._markers.marker_set(row.session_id),
            contents=contents,
            pack=pack,
            updates=updates,
            kept=None if hard else turns,
            turns=len(turns),
            until=source.until,
            seed=state.seed,
            tokens=_figures(trace, pack, head),
            caps=self._sessions.settings.caps_for(state.model).as_json(),
            window_id=self._window(row, trace.replay.seq),
            head=head,
            cwd=row.cwd or state.base or "",
            paginated=head.get("history_mode") == "paginated",
            parts=parts,
            source_digest=own.digest,
            source_bytes=own.size,
            drift=drift_of(marker.hashes, now),
            missing=also_missing(
                missing_of(marker.hashes, now),
                self._not_there(state.base, contents, trace.traces()),
            ),
            fallbacks=(
                *weak_hashes(now, contents.hashes),
                *earlier.gaps,
                *copied,
                *self._without_index(),
            ),
            reference=reference,
        )

    def _origin(self, source: RestoreSource) -> Origin:
        session_id, marker = source.row.session_id, source.marker
        return Origin(
            TurnSource(session_id, marker.turn_id),
            marker.checkpoint_id,
            marker.label,
            marker.created_at,
            ancestors(self._sessions, session_id),
        )

    def _referred(
        self, row: Row, trace: Trace, options: RestoreOptions
    ) -> tuple[Reference | None, tuple[Fallback, ...]]:
        """Return the reference of a soft branch to its source, or why there is none."""
        if options.mode == "hard" or self._sessions.settings.soft_restore != "reference":
            return None, ()
        found = reference_to(self._reader, row, trace)
        return (found, ()) if isinstance(found, Reference) else (None, (Fallback(found),))

    def _read(self, source: RestoreSource) -> Trace:
        """Read up to the turn; raises `UnreadableSource` where it is no longer there."""
        trace = Trace()
        trace.replay.until = source.until
        self._sessions.catalogue.read_with(trace.replay, source.row)
        if not ends_with_turn(trace.replay, source):
            raise UnreadableSource(CHANGED)
        return trace

    def _cut(self, source: RestoreSource) -> RestoreSource:
        """Leave out the lines of the next turn, where no record ends the marked one."""
        turns = source.opened.now().state.turns.turns
        names = [each.turn_id for each in turns]
        place = names.index(source.marker.turn_id)
        turn, *following = turns[place : place + 2]
        if turn.ended is not None or not following:
            return source
        path = source.row.path
        locate = self._sessions.catalogue.chains.locator(path)
        parts = (*parts_below(self._reader, path, locate), part_of(self._reader, path))
        return evolve(source, until=last_of(self._reader, parts, turn, following[0], source.until))

    def _updates(self, source: RestoreSource, trace: Trace) -> tuple[Update, ...]:
        """Return the updates up to the end of the turn."""
        found = self._sessions.projections.updates_of(source.opened)
        return tuple(each for each in found if each.seq <= trace.replay.seq)

    def _contents(
        self,
        source: RestoreSource,
        options: RestoreOptions,
        trace: Trace,
        updates: tuple[Update, ...],
        before: Earlier,
    ) -> PackContents:
        replay, workspace = trace.replay, self._sessions.workspace
        base = replay.state.base
        hashes = workspace.hashes(base, replay.files())
        checkpoint = replay.checkpoint(updates, hashes)
        traces = trace.traces()
        files = [uri for uri, each in checkpoint.artifacts.items() if each.kind == "file"]
        references: References = references_of(
            checkpoint,
            traces,
            workspace.sizes(base, files),
            chunks_now(workspace, base, spans_of(traces, before.references)),
            before.references,
        )
        pins = self._markers.marker_set(source.row.session_id).pins
        count = min(max(options.window, 0), MAX_WINDOW) if options.mode == "hard" else 0
        return PackContents(
            self._origin(source),
            options.reason or DEFAULT_REASON,
            in_order(before.modes, traces.modes),
            checkpoint,
            references,
            tuple(pinned_now(workspace, base, pin) for pin in pins),
            trace.window(count, source.marker.turn_id) if count else (),
        )

    def _not_there(
        self, base: str | None, contents: PackContents, traces: Traces
    ) -> tuple[str, ...]:
        """Return the named or pinned files that are missing, and not deleted (AGN-65)."""
        unseen = (file.uri for file in contents.references.files if file.hash is None)
        wanted = [uri for uri in unseen if uri not in traces.deleted]
        pins = (pin.uri for pin in contents.pins if pin.missing)
        return (*self._sessions.workspace.missing(base, wanted), *pins)

    def _without_index(self) -> tuple[Fallback, ...]:
        """Return the fallback to files alone, where there is no index."""
        faults = self._sessions.catalogue.store.faults()
        missing = any(fault.code == "index_unavailable" for fault in faults)
        return (Fallback("file_only_store"),) if missing else ()

    def _budget(self, options: RestoreOptions) -> int:
        default = self._sessions.settings.restore_budget_tokens
        return min(default if options.budget is None else options.budget, _MOST_TOKENS)

    def _window(self, row: Row, seq: int) -> str | None:
        """Return the window of the source at the turn, where its file names it."""
        windows = Histories(self._sessions).windows(row.path)
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
