"""What a restore would carry, found out without writing anything (AGN-84).

A marker leads to a session and a turn; the session is read once more up to that turn, the files it
names are looked at as they are now, and all of it becomes one value.  A preview ends here; what is
done with it is known to `restoring`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import UNKNOWN_HASH, Checkpoint
from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.restore.carried import (
    DEFAULT_REASON,
    MAX_WINDOW,
    Carried,
    Origin,
    Pinned,
    TurnSource,
)
from codex_checkpoints.core.restore.chains import branches_above
from codex_checkpoints.core.restore.drift import (
    Drift,
    Fallback,
    Missing,
    drift_of,
    missing_of,
    weak_hashes,
)
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.gathering import Span
from codex_checkpoints.core.restore.markers import Marker, Pin, Shelf, is_detached
from codex_checkpoints.core.restore.pack import StatePack, state_pack
from codex_checkpoints.core.restore.records import Placement, TokenFigures
from codex_checkpoints.core.restore.references import (
    NOTHING,
    References,
    chunk_id,
    references_of,
    spans_of,
)
from codex_checkpoints.core.restore.sealing import digest_of
from codex_checkpoints.core.restore.trace import Trace
from codex_checkpoints.core.rollout.fields import Json, load, object_of, text_of
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.referring import Reference, reference_to
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.service.session_file import SessionFile
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.turn_names import end_of, find_turn, has_ended
from codex_checkpoints.threads.contract import RolloutReader, Row, UnreadableSource

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_MOST_TOKENS = 1 << 48
"""More than any pack has; a larger number could stand in no record."""
_BROKEN = frozenset({"base_missing", "base_cycle"})


@frozen
class Wish:
    """How somebody wants to go on from a marker; `budget` None is that of the settings."""

    mode: RestoreMode
    budget: int | None = None
    window: int = 0
    reason: str | None = None


def wish_of(mode: str, budget: int | None, window: int, reason: str | None) -> Wish:
    """Return a wish as it came through a door; refuses `invalid_payload`.

    A budget of any size is a wish that can be met (AGN-73); beyond `_MOST_TOKENS` all are alike.
    """
    if mode not in {"soft", "hard"}:
        raise _bad("mode: must be soft or hard")
    if budget is not None and budget < 0:
        raise _bad("budget: must not be negative")
    if not 0 <= window <= MAX_WINDOW:
        raise _bad(f"window: must be 0 to {MAX_WINDOW}")
    bounded = None if budget is None else min(budget, _MOST_TOKENS)
    return Wish("hard" if mode == "hard" else "soft", bounded, window, reason)


@frozen
class Source:
    """The file that holds the turn of a marker, and up to which line it is read."""

    row: Row
    opened: SessionFile
    marker: Marker
    until: int | None
    detached: bool


@frozen
class Plan:
    """A restore that could be done: everything but its ids and its time."""

    source: Source
    wish: Wish
    shelf: Shelf
    goods: Carried
    pack: StatePack | None
    updates: tuple[Update, ...]
    kept: tuple[str, ...]
    turns: int
    until: int
    seed: Checkpoint | None
    tokens: TokenFigures
    caps: Mapping[str, int]
    window_id: str | None
    head: Json
    cwd: str
    paginated: bool
    source_digest: str
    source_bytes: int
    drift: tuple[Drift, ...]
    missing: tuple[Missing, ...]
    fallbacks: tuple[Fallback, ...]
    reference: Reference | None

    @property
    def placement(self) -> Placement:
        """Return how the branch comes by its state."""
        if self.pack is not None:
            return "seed"
        return "copy" if self.reference is None else "reference"


class Planner:
    """Finds out what restores would carry."""

    def __init__(self, sessions: Sessions, markers: Markers, restores: RestoreRecords) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._markers = markers
        self._restores = restores
        self._reader = sessions.catalogue.reader

    def source(self, session: str, checkpoint: str) -> Source:
        """Find a marker and its turn.

        Refuses `unknown_session`, `unknown_checkpoint`, `unreadable_source` where the session of
        the turn is gone, `unknown_turn`, `turn_not_complete`, `conflict`.
        """
        row, opened = self._sessions.open(session)
        if not self._sessions.catalogue.is_current(row):
            message = f"{row.path} is not the newest file of a session here"
            raise Refusal("conflict", message, {"path": row.path, "reason": "not_current"})
        marker = self._markers.find(row.session_id, checkpoint)
        if marker.session_id != row.session_id:  # a hard branch refers to its source
            row, opened = self._elsewhere(marker)
        return self._at_turn(row, opened, marker)

    def plan(self, source: Source, wish: Wish) -> Plan:
        """Read the source up to the turn and gather what goes over; nothing is written.

        Refuses `unreadable_source`, `storage_error`.
        """
        try:
            return self._planned(source, wish)
        except UnreadableSource as error:
            raise _unreadable(source.row, str(error)) from error

    # --- inside ----------------------------------------------------------------------------------

    def _elsewhere(self, marker: Marker) -> tuple[Row, SessionFile]:
        try:
            return self._sessions.open(marker.session_id)
        except Refusal as refusal:
            if refusal.code != "unknown_session":
                raise
            message = f"session {marker.session_id}, which the marker refers to, is gone"
            facts = {"sessionId": marker.session_id, "reason": "gone"}
            raise Refusal("unreadable_source", message, facts) from refusal

    def _at_turn(self, row: Row, opened: SessionFile, marker: Marker) -> Source:
        """Find the file with the turn: the newest one, or an older segment that still has it."""
        detached = is_detached(marker, opened.now().state.turns)
        for candidate, its in self._segments(row, opened):
            turns = its.now().state.turns.turns
            found = next((turn for turn in turns if turn.turn_id == marker.turn_id), None)
            if found is not None:
                if not has_ended(found, its.now().state):
                    message = f"turn {found.turn_id[:80]!r} of {row.session_id} has not ended"
                    facts = {"sessionId": row.session_id, "turnId": found.turn_id}
                    raise Refusal("turn_not_complete", message, facts)
                return Source(candidate, its, marker, end_of(found, turns), detached)
        find_turn(opened.now(), marker.turn_id, row.session_id)
        raise AssertionError("a turn that was not found was found")

    def _segments(self, row: Row, opened: SessionFile) -> Iterator[tuple[Row, SessionFile]]:
        yield row, opened
        catalogue = self._sessions.catalogue
        older = [
            each
            for each in catalogue.rows().values()
            if each.session_id == row.session_id and each.path != row.path and each.error is None
        ]
        for each in sorted(older, key=lambda each: each.rollout_id, reverse=True):
            yield each, catalogue.open(each)

    def _planned(self, source: Source, wish: Wish) -> Plan:
        row, marker = source.row, source.marker
        hard = wish.mode == "hard"
        if not hard and any(each.code in _BROKEN for each in source.opened.problems):
            raise _unreadable(row, "a file that its history begins with is missing")
        passes = 4 if hard else 6  # a soft branch is copied, and its own windows are looked at
        self._sessions.pace.expect(passes * self._sessions.catalogue.weight(row))
        digest, size = fingerprint(self._reader, row.path)
        trace = self._read(source)
        updates = self._updates(source, trace)
        above = self._restores.above(row.session_id)
        goods = self._goods(
            source,
            wish,
            trace,
            updates,
            Origin(
                TurnSource(row.session_id, marker.turn_id),
                marker.checkpoint_id,
                marker.label,
                marker.created_at,
                branches_above(above, row.session_id),
            ),
        )
        head = object_of(object_of(load(self._reader.first_line(row.path))).get("payload"))
        budget = self._budget(wish)
        pack = state_pack(goods, budget) if hard else None
        now = self._hashes(trace, marker.hashes)
        wanted = not hard and self._sessions.settings.soft_restore == "reference"
        found = reference_to(self._reader, row, trace) if wanted else None
        reference = found if isinstance(found, Reference) else None
        copied = (Fallback(found),) if isinstance(found, str) else ()
        state = trace.state
        turns = tuple(turn.turn_id for turn in state.turns.counting())
        return Plan(
            source=source,
            wish=wish,
            shelf=self._markers.shelf(row.session_id),
            goods=goods,
            pack=pack,
            updates=updates,
            kept=() if hard else turns,
            turns=len(turns),
            until=trace.scale.lines,
            seed=state.seed,
            tokens=_figures(trace, pack, head),
            caps=self._sessions.settings.caps_for(state.model).as_json(),
            window_id=self._window(row, trace.seq),
            head=head,
            cwd=row.cwd or state.base or "",
            paginated=head.get("history_mode") == "paginated",
            source_digest=digest,
            source_bytes=size,
            drift=drift_of(marker.hashes, now),
            missing=missing_of(marker.hashes, now),
            fallbacks=(*weak_hashes(now), *copied, *self._without_index()),
            reference=reference,
        )

    def _read(self, source: Source) -> Trace:
        trace = Trace()
        if source.until is not None:
            trace.stop_after(source.until)
        return self._sessions.catalogue.read_with(trace, source.row)

    def _updates(self, source: Source, trace: Trace) -> tuple[Update, ...]:
        """Return what had been accepted by the end of the turn."""
        found = self._sessions.projections.updates_of(source.opened)
        return tuple(each for each in found if source.until is None or each.seq <= trace.seq)

    def _goods(
        self,
        source: Source,
        wish: Wish,
        trace: Trace,
        updates: tuple[Update, ...],
        origin: Origin,
    ) -> Carried:
        base, workspace = trace.state.base, self._sessions.workspace
        checkpoint = trace.checkpoint(updates, workspace.hashes(base, trace.files()))
        traces = trace.traces()
        made = self._restores.made(source.row.session_id)
        earlier = NOTHING if made is None else made.references
        files = [uri for uri, each in checkpoint.artifacts.items() if each.kind == "file"]
        references: References = references_of(
            checkpoint,
            traces,
            workspace.sizes(base, files),
            self._chunks(base, spans_of(traces, earlier)),
            earlier,
        )
        pins = self._markers.shelf(source.row.session_id).pins
        count = min(max(wish.window, 0), MAX_WINDOW) if wish.mode == "hard" else 0
        return Carried(
            origin,
            wish.reason or DEFAULT_REASON,
            traces.modes,
            checkpoint,
            references,
            tuple(self._pinned(base, pin) for pin in pins),
            trace.window(count, origin.source_turn.turn_id) if count else (),
        )

    def _without_index(self) -> tuple[Fallback, ...]:
        """Tell where there is no index to remember what was read: the files alone have to do."""
        faults = self._sessions.catalogue.store.faults()
        missing = any(fault.code == "index_unavailable" for fault in faults)
        return (Fallback("file_only_store"),) if missing else ()

    def _hashes(self, trace: Trace, then: Mapping[str, str]) -> dict[str, str]:
        """Return the hashes of now of the files that a marker knew."""
        now = self._sessions.workspace.hashes(trace.state.base, then)
        return {uri: now.get(uri, UNKNOWN_HASH) for uri in then}

    def _chunks(self, base: str | None, spans: tuple[Span, ...]) -> dict[str, str]:
        """Return the hashes of lines as they are now, by the id of their chunk (AGN-36)."""
        found: dict[str, str] = {}
        contents: dict[str, bytes | None] = {}
        for span in spans:
            if span.uri not in contents:
                contents[span.uri] = self._sessions.workspace.content(base, span.uri)
            part = _lines(contents[span.uri], span.start, span.end)
            if part is not None:
                found[chunk_id(span)] = digest_of(part)
        return found

    def _pinned(self, base: str | None, pin: Pin) -> Pinned:
        content = self._sessions.workspace.content(base, pin.uri)
        if pin.start is not None and pin.end is not None:
            part = _lines(content, pin.start, pin.end)
            found = None if part is None else digest_of(part)
        else:
            part, found = content, self._sessions.workspace.hashes(base, [pin.uri]).get(pin.uri)
        text = None if part is None else part.decode(errors="replace")
        return Pinned(pin.uri, pin.start, pin.end, found, text)

    def _budget(self, wish: Wish) -> int:
        default = self._sessions.settings.restore_budget_tokens
        return min(default if wish.budget is None else wish.budget, _MOST_TOKENS)

    def _window(self, row: Row, seq: int) -> str | None:
        """Return the window that the source was in at the turn, where its file tells."""
        windows = Histories(self._sessions).windows(row.path)
        opened = [each for each in windows if each.opened_seq <= seq]
        return opened[-1].window_id if opened else None


def fingerprint(reader: RolloutReader, path: str, limit: int | None = None) -> tuple[str, int]:
    """Return the digest of the bytes of a file, or of the first `limit`, and how many they are.

    Raises `UnreadableSource`.
    """
    found = hashlib.sha256()
    size = 0

    def feed(data: bytes) -> int:
        nonlocal size
        found.update(data)
        size += len(data)
        return len(data)

    reader.read(path, 0, feed, limit)
    return f"sha256:{found.hexdigest()}", size


def _figures(trace: Trace, pack: StatePack | None, head: Json) -> TokenFigures:
    """Return how full the context was at the turn, and how full the branch begins (AGN-15)."""
    state = trace.state
    known = None if state.tokens is None or state.tokens_stale else state.tokens.total
    if pack is None:
        return TokenFigures(known, known, state.window)
    instructions = text_of(object_of(head.get("base_instructions")).get("text")) or ""
    return TokenFigures(known, pack.tokens + tokens.of_text(instructions), state.window)


def _lines(content: bytes | None, start: int, end: int) -> bytes | None:
    """Return some lines of a file, from 1; None where it has none of them."""
    if content is None:
        return None
    found = _LINE.findall(content)[start - 1 : end]
    return b"".join(found) if found else None


def _unreadable(row: Row, reason: str) -> Refusal:
    facts = {"sessionId": row.session_id, "path": row.path, "reason": reason}
    return Refusal("unreadable_source", f"{row.path}: {reason}", facts)


def _bad(problem: str) -> Refusal:
    return Refusal("invalid_payload", problem, {"problems": [problem]})
