"""Plans a restore without writing (AGN-84).

A marker leads to a session and a turn.  The session is read again up to that turn, the files it
names are examined, and the result is one `RestorePlan`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import define, evolve, field, frozen

from codex_checkpoints.core.agents.codex.history import tokens
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.agents.codex.newest_settings import NewestSettings
from codex_checkpoints.core.changes.edits import Edits
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.memory import replay as replayed
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, UNKNOWN_HASH, Limits
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import SeenHashes
from codex_checkpoints.core.compaction.replacement_lines import SourceSession
from codex_checkpoints.core.compaction.request_messages import asked_messages
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.core.fields import load, object_of
from codex_checkpoints.core.restore.markers import (
    AnyPin,
    Marker,
    MarkerSet,
    Pin,
    PinnedWords,
    is_detached,
)
from codex_checkpoints.core.restore.pack import (
    DEFAULT_REASON,
    DEFAULT_WINDOW,
    MAX_WINDOW,
    Message,
    PackContents,
    RestoreOrigin,
    StatePack,
    command_id,
    state_pack,
    window_of,
)
from codex_checkpoints.core.restore.pack_items import Deferred, TurnSource
from codex_checkpoints.core.restore.recording import restore_of
from codex_checkpoints.core.restore.records import Restore, TokenFigures
from codex_checkpoints.core.restore.references import (
    Fallback,
    Trace,
    Traces,
    drift_of,
    in_order,
    missing_of,
    references_of,
    spans_of,
    weak_hashes,
)
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.history.digests import Digests, checked_budget
from codex_checkpoints.service.history.lineages import ancestors
from codex_checkpoints.service.history.windows import windows_in
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.reading.session_file import (
    SessionFile,
    end_of,
    unknown_turn,
)
from codex_checkpoints.service.refusal import Refusal, misfit, reading_file, unreadable
from codex_checkpoints.service.restore.branch_copy import (
    CHANGED,
    CopiedPart,
    Earlier,
    chunks_now,
    earlier_work,
    last_of,
    part_of,
    parts_below,
    pinned_now,
)
from codex_checkpoints.service.sessions.sessions import Sessions, not_current, was_cut_off
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.contract import Row, UnreadableSource


@frozen
class RestoreSource:
    """The file that holds the turn of a marker, and the position of the last line to read.

    `following` is the turn after a turn that no record ends, whose last lines may belong to the
    following one.  `cut_off`: a task with a beginning, and without an end.
    """

    row: Row
    opened: SessionFile
    marker: Marker
    turn: Turn
    following: Turn | None
    until: int
    detached: bool
    cut_off: bool = False


def find_source(sessions: Sessions, session: str, checkpoint: str) -> RestoreSource:
    """Find a marker and its turn.

    Refuses `unknown_session`, `unknown_checkpoint`, `unreadable_source` if the session of the turn
    is gone, `unknown_turn`, `turn_not_complete`, `conflict`.
    """
    row, opened = sessions.open_own(session)
    marker = Markers(sessions).find(row.session_id, checkpoint)
    if marker.session_id != row.session_id:  # a hard branch refers to its source
        row, opened = _elsewhere(sessions, marker)
    return _at_turn(sessions, row, opened, marker)


def asked_of(sessions: Sessions, session: str) -> str | None:
    """Return the whole id of the session to restore, None if it names no session.

    Refuses `conflict` and `unreadable_source` for a path outside this home: nothing of it is
    stored.
    """
    rows = sessions.catalogue.rows
    try:
        row = sessions.find(session)
    except Refusal as refusal:
        path = refusal.facts.get("path")
        if not isinstance(path, str):
            return None
        if path not in rows():
            raise
        return rows()[path].session_id
    if row.path not in rows():
        raise not_current(sessions.catalogue, row)
    return row.session_id


def ends_with_turn(replay: Replay, turn_id: str, until: int) -> bool:
    """Return whether a source that was read again still has a turn that ends in its place."""
    turns = replay.state.turns.turns
    for turn in turns:
        if turn.turn_id == turn_id:
            end = end_of(turn, turns)
            return end in {until, None} and replay.scale.lines == until
    return False


def _elsewhere(sessions: Sessions, marker: Marker) -> tuple[Row, SessionFile]:
    try:
        return sessions.open(marker.session_id)
    except Refusal as refusal:
        if refusal.code != "unknown_session":
            raise
        message = f"session {marker.session_id}, which the marker refers to, is gone"
        facts = {"sessionId": marker.session_id, "reason": "gone"}
        raise Refusal("unreadable_source", message, facts) from refusal


def _at_turn(sessions: Sessions, row: Row, opened: SessionFile, marker: Marker) -> RestoreSource:
    detached = is_detached(marker, opened.now().state.turns)
    for candidate, its in _segments(sessions, row, opened):
        now = its.now()
        turns = now.state.turns.turns
        place = next((n for n, turn in enumerate(turns) if turn.turn_id == marker.turn_id), None)
        if place is not None:
            found, behind = turns[place], turns[place + 1 : place + 2]
            live = sessions.catalogue.store.live_threads()
            cut_off = bool(behind) or was_cut_off(candidate, live, stamps.moment())
            if not (now.state.has_ended(found) or cut_off):
                message = f"turn {found.turn_id[:80]!r} of {row.session_id} has not ended"
                facts = {"sessionId": row.session_id, "turnId": found.turn_id}
                raise Refusal("turn_not_complete", message, facts)
            until = end_of(found, turns)
            # No line ends the last turn: later messages do not belong to it any more.
            until = now.scale.lines if until is None else until
            following = behind[0] if behind and found.ended is None else None
            is_open = found.in_task and found.ended is None
            return RestoreSource(
                candidate, its, marker, found, following, until, detached, cut_off=is_open
            )
    raise unknown_turn(opened.now(), marker.turn_id, row.session_id)


def _segments(
    sessions: Sessions, row: Row, opened: SessionFile
) -> Iterator[tuple[Row, SessionFile]]:
    yield row, opened
    catalogue = sessions.catalogue
    older = [each for each in catalogue.files_of(row.session_id) if each.path != row.path]
    for each in sorted(older, key=lambda each: each.rollout_id, reverse=True):
        yield each, catalogue.open(each)


_MOST_TOKENS = 1 << 48
"""More than any pack has; a larger number does not fit into a record."""
_BROKEN = frozenset({"base_missing", "base_cycle"})


@frozen
class RestoreParams:
    """A marker to continue from; `mode` is `soft` or `hard`.

    `budget` is the tokens of a state pack, null for the setting; `window` the number of the user's
    last messages in it, 0 to 5; `reason` is quoted in it; `digestTokens` limits the digest up to
    the marker.
    """

    session_id: str
    checkpoint_id: str
    mode: str
    budget: int | None = None
    window: int = DEFAULT_WINDOW
    reason: str | None = None
    digest_tokens: int = 0
    work_done_token: int | str | None = None


def checked(params: RestoreParams) -> RestoreParams:
    """Return the params in the form of a restore; refuses `invalid_payload`, `limit_exceeded`.

    A budget of any size is accepted (AGN-73); it is cut to `_MOST_TOKENS`.
    """
    if params.mode not in {"soft", "hard"}:
        raise misfit("mode: must be soft or hard")
    if params.budget is not None and params.budget < 0:
        raise misfit("budget: must not be negative")
    if not 0 <= params.window <= MAX_WINDOW:
        raise misfit(f"window: must be 0 to {MAX_WINDOW}")
    checked_budget(params.digest_tokens, 0)
    budget = None if params.budget is None else min(params.budget, _MOST_TOKENS)
    return evolve(params, budget=budget)


@frozen
class RestorePlan:
    """A restore without its ids, its time and the windows of its branch.

    `until` is the position of the last line that a branch may hold, `parts` are the files with
    these lines, the source's last, `seen` are the observations of the source's files.
    """

    row: Row
    until: int
    session: SourceSession
    record: Restore
    contents: PackContents
    pack: StatePack | None
    marker_set: MarkerSet
    updates: tuple[Update, ...]
    turns: tuple[str, ...]
    parts: tuple[CopiedPart, ...]
    seen: SeenHashes


@define
class Planner:
    """Plans a restore."""

    sessions: Sessions
    source: RestoreSource
    options: RestoreParams
    gathering: DigestExtract = field(init=False)
    settings: NewestSettings = field(init=False)

    def plan(self) -> RestorePlan:
        """Read the source up to the turn; refuses `unreadable_source`, `storage_error`."""
        with reading_file(self.source.row):
            return self._planned()

    def _planned(self) -> RestorePlan:
        sessions, row, marker = self.sessions, self.source.row, self.source.marker
        problems, hard = self.source.opened.problems, self.options.mode == "hard"
        if not hard and any(each.code in _BROKEN for each in problems):
            reason = "a file that its history begins with is missing"
            raise unreadable(row.path, reason, row.session_id)
        passes = 4 if hard else 6  # a soft branch is copied, and its own windows are read
        sessions.progress.expect(passes * sessions.catalogue.chains.weight(row))
        reader, following = sessions.catalogue.reader, self.source.following
        # Before the source is read for the plan: so these digests belong to the planned bytes.
        own = part_of(reader, row.path)
        parts, until = (own,), self.source.until
        if following is not None or not hard:
            locate = sessions.catalogue.chains.locator(row.path)
            parts = (*parts_below(reader, row.path, locate), own)
        if following is not None:
            until = last_of(reader, parts, self.source.turn, following, until)
        trace = self._read(until)
        state, seq = trace.replay.state, trace.replay.seq
        updates = sessions.projections.updates_of(self.source.opened)
        updates = tuple(each for each in updates if each.seq <= seq)
        earlier = earlier_work(sessions, row, trace)
        marker_set = Markers(sessions).marker_set(row.session_id)
        contents = self._contents(trace, updates, earlier, marker_set.files)
        now = dict.fromkeys(marker.hashes, UNKNOWN_HASH)
        now |= sessions.workspace.hashes(state.base, marker.hashes)
        contents = self._compared(contents, trace, now)
        if hard:
            contents = self._with_quotes(contents, trace, marker_set.pins)
        head = object_of(object_of(load(reader.first_line(row.path))).get("payload"))
        pack = state_pack(contents, self._budget) if hard else None
        record = restore_of(
            contents,
            pack,
            tokens=_figures(trace, pack),
            caps=sessions.settings.caps_for(state.model).as_json(),
            source_window=self._window(seq),
            source_digest=own.digest,
            source_bytes=own.size,
            fallbacks=(
                *weak_hashes(now, contents.hashes),
                *earlier.gaps,
                *self._without_index(),
            ),
            detached=self.source.detached,
            problems=len(problems),
        )
        return RestorePlan(
            row=row,
            until=until,
            session=SourceSession(
                row.session_id,
                row.base or state.base or "",
                head,
                state.window,
                self.settings.of_turn,
                thread_settings=self.settings.of_thread,
            ),
            # The copied history of a session that began with a seed still depends on it.
            record=record if hard else evolve(record, seed=state.seed),
            contents=contents,
            pack=pack,
            marker_set=marker_set,
            updates=updates,
            turns=tuple(turn.turn_id for turn in state.turns.counting()),
            parts=parts,
            seen=sessions.projections.seen_of(self.source.opened),
        )

    def _read(self, until: int) -> Trace:
        """Read up to the turn; raises `UnreadableSource` if it is gone."""
        trace = Trace()
        self.settings = NewestSettings(trace.replay, trace.replay.deriver)
        if self.options.mode == "hard":
            self.gathering = DigestExtract(trace.replay, self.source.row.session_id)
        trace.replay.until = until
        self.sessions.catalogue.read_with(trace.replay, self.source.row)
        if not ends_with_turn(trace.replay, self.source.marker.turn_id, until):
            raise UnreadableSource(CHANGED)
        return trace

    def _contents(
        self, trace: Trace, updates: tuple[Update, ...], before: Earlier, pins: tuple[Pin, ...]
    ) -> PackContents:
        replay, workspace, marker = trace.replay, self.sessions.workspace, self.source.marker
        base, session_id = replay.state.base, self.source.row.session_id
        opened = self.source.opened
        checkpoint = self.sessions.projections.project(opened, replay, updates)
        memory = replayed(updates, replay.state.turns.counts, Limits(), replay.state.seed)
        evicted = (Deferred("notes", f"{kind}:{name}", "evicted") for kind, name in memory.evicted)
        traces = trace.traces()
        files = [uri for uri, each in checkpoint.artifacts.items() if each.kind == "file"]
        references = references_of(
            checkpoint,
            traces,
            workspace.sizes(base, files),
            chunks_now(workspace, base, spans_of(traces, before.references)),
            before.references,
        )
        origin = RestoreOrigin(
            TurnSource(session_id, marker.turn_id),
            marker.checkpoint_id,
            marker.label,
            marker.created_at,
            ancestors(self.sessions, session_id),
        )
        return PackContents(
            origin,
            self.options.reason or DEFAULT_REASON,
            in_order(before.modes, traces.modes),
            checkpoint,
            references,
            tuple(pinned_now(workspace, base, pin) for pin in pins),
            left_out=tuple(evicted),
        )

    def _compared(
        self, contents: PackContents, trace: Trace, now: Mapping[str, str]
    ) -> PackContents:
        """Return the contents with the files that differ from the turn (AGN-63)."""
        replay, workspace = trace.replay, self.sessions.workspace
        base, then = replay.state.base, self.source.marker.hashes
        observed = self.source.opened.now().state.observations.kept(Limits())
        known = contents.checkpoint.artifacts
        later = {
            uri
            for uri, each in observed.items()
            if each.kind == "file" and each.seq > replay.seq and uri not in known
        }
        gone = (
            *self._not_there(base, contents, trace.traces()),
            *self._existed_then(workspace.missing(base, later), replay.seq),
        )
        missing = missing_of(then, now, gone)
        edited = {uri for uri, each in observed.items() if each.edited > replay.seq}
        now = {**workspace.hashes(base, edited), **now}
        # The session's observations up to the turn count more than a marker that was made later.
        seen: dict[str, str] = {}
        for uri, file in contents.checkpoint.artifacts.items():
            if file.seen_hash is not None and file.hash is not None:
                seen[uri], now[uri] = file.seen_hash, file.hash
        edited -= {uri for uri in seen if seen[uri] == now[uri]}
        edited -= set(workspace.missing(base, edited))
        other = {uri: hashed for uri, hashed in then.items() if hashed != now.get(uri)}
        drift = drift_of(seen | other, now, edited)
        # A marker may be made long after its turn, so an unchanged file since then proves nothing.
        known = {*seen, *(each.uri for each in (*drift, *missing)), *trace.traces().deleted}
        unknown = tuple(sorted({file.uri for file in contents.references.files} - known))
        return evolve(contents, drift=drift, missing=missing, not_compared=unknown)

    def _with_quotes(
        self, contents: PackContents, trace: Trace, pins: tuple[AnyPin, ...]
    ) -> PackContents:
        """Return the contents of a hard restore, which has no conversation, with quoted texts."""
        digests, options, task = Digests(self.sessions), self.options, contents.checkpoint.task
        own = trace.replay, self.gathering.gathered()
        gathered = digests.gathered(self.source.row, own=own)
        # In older files nothing records how a finished turn ended.
        is_over = gathered.ended == "open" and not self.source.cut_off
        ended = "answered" if is_over else gathered.ended
        asked = asked_messages(trace.replay.state.turns).messages
        included = {each.asked for each in asked}  # the request of a goal's turn is the goal
        window = (
            *(Message(each.kind, each.text) for each in asked if each.followed_by),
            *(each for each in window_of(gathered, options.window) if each.text not in included),
            *(Message(each.kind, each.text) for each in asked if not each.followed_by),
        )
        last = "".join(message.text for message in window_of(gathered, 1))
        is_task = task is not None and value(last, MAX_VALUE_CHARS) == task.text
        whole = last if is_task else None
        beside = [message.text for message in window] + ([] if whole is None else [whole])
        quoted = evolve(gathered, pinned=())  # they are in the pack itself
        digest = digest_v1(quoted, digests.terms(options.digest_tokens, beside)).text
        words = [
            Message(f"{pin.kind}:{place if pin.kind == 'text' else pin.value}", text)
            for place, (pin, text) in enumerate(zip(pins, gathered.pinned, strict=False), 1)
            if isinstance(pin, PinnedWords)
        ]
        ignored = Ignoring(self.sessions.settings.digest_ignore)
        hidden = {each for each in gathered.checks if ignored.script(each.command)}
        checks = tuple(each for each in gathered.checks if each not in hidden)
        left = [Deferred("commands", command_id(each), "filtered") for each in hidden]
        left += [Deferred("pinned", word.ref, "missing") for word in words if not word.text]
        if options.digest_tokens and not digest:
            left.append(Deferred("digest", "digest", "budget"))
        return evolve(
            contents,
            window=window,
            task=whole,
            gathered=DigestSource(ended=ended, checks=checks, edits=gathered.edits),
            digest=digest,
            words=tuple(word for word in words if word.text),
            left_out=(*contents.left_out, *left),
        )

    def _not_there(
        self, base: str | None, contents: PackContents, traces: Traces
    ) -> tuple[str, ...]:
        """Return the named or pinned files that are missing, and not deleted (AGN-65)."""
        unseen = (file.uri for file in contents.references.files if file.hash is None)
        wanted = [uri for uri in unseen if uri not in traces.deleted]
        pins = (pin.uri for pin in contents.pins if pin.missing)
        return (*self.sessions.workspace.missing(base, wanted), *pins)

    def _existed_then(self, gone: Collection[str], seq: int) -> Iterator[str]:
        """Yield the files among the missing ones that later turns found, and did not make."""
        if not gone:
            return
        replay = Replay()
        edits = Edits(replay)
        self.sessions.catalogue.read_with(replay, self.source.row)
        for uri in gone:
            first = next((each for each in edits.files.get(uri, ()) if each.seq > seq), None)
            if first is not None and first.found_it:
                yield uri

    def _without_index(self) -> tuple[Fallback, ...]:
        faults = self.sessions.catalogue.store.faults()
        missing = any(fault.code == "index_unavailable" for fault in faults)
        return (Fallback("file_only_store"),) if missing else ()

    @property
    def _budget(self) -> int:
        budget, default = self.options.budget, self.sessions.settings.restore_budget_tokens
        return min(default if budget is None else budget, _MOST_TOKENS)

    def _window(self, seq: int) -> str | None:
        windows = windows_in(self.sessions, self.source.row.path)
        opened = [each for each in windows if each.opened_seq <= seq]
        return opened[-1].window_id if opened else None


def _figures(trace: Trace, pack: StatePack | None) -> TokenFigures:
    """Return the tokens in use at the turn, and at the beginning of the branch (AGN-15)."""
    state = trace.replay.state
    known = None if state.tokens is None or state.tokens_stale else state.tokens.total
    if pack is None:
        return TokenFigures(known, known, state.window)
    # Only the history, as in a list of windows: the branch has reported nothing yet.
    begins_with = tokens.of_item(user_message([pack.text])) if pack.text else 0
    return TokenFigures(known, begins_with, state.window)
