"""Compaction as an operation: a checkpoint is installed in the place of a history (CKP-1).

In this order, each step durable before the next:

1. refuse, with nothing written; ask the hooks that run before; read again if that took long;
2. store the checkpoint (DSC-53);
3. add a *prepared* record with the source, and for a new session its record, which holds its seed;
4. install: publish the new session whole, or append two lines to the source;
5. add the record itself: from here on the pointer is the new one (JUN-24).

A process that is killed before step 4 has changed nothing that counts, one killed behind it has
done everything but to say so.  `recover` tells the two apart, by whether the session or the window
is there, and then takes the prepared record out again or adds what is missing (JUN-26).  Whoever
compacts a session holds the right to write to its records from step 2 on.

How a replacement is built is the business of `core.compaction`; taking one back that of `undoing`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Generator
from datetime import UTC, datetime

from attrs import frozen

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.compaction.building import Replacement, Terms, build
from codex_checkpoints.core.compaction.installed import (
    Line,
    Moment,
    Naming,
    in_place,
    new_session,
    source_of,
    token_count,
)
from codex_checkpoints.core.compaction.placement import STANDING_CONTEXT, Placement
from codex_checkpoints.core.compaction.records import (
    Determinism,
    Installed,
    Into,
    Prepared,
    Range,
    Record,
    RequestedBy,
    Sizes,
    Strategy,
    Undone,
    Windows,
    counts_of,
    digest_of,
    remaining,
    remembered,
    unsettled,
)
from codex_checkpoints.core.compaction.report import Declined, Figure, Reason
from codex_checkpoints.core.history.tokens import thresholds, window_size
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.records import StorageError
from codex_checkpoints.service.compaction_audit import Audit
from codex_checkpoints.service.compaction_hooks import Heard, Ring, Run
from codex_checkpoints.service.compaction_records import CompactionRecords, Shelf, storing
from codex_checkpoints.service.history import Histories, Traced
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.session_file import SessionFile
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.turn_names import has_ended
from codex_checkpoints.threads.contract import Item, Look, NewThread, Row, UnreadableSource

logger = logging.getLogger(__name__)


@frozen
class Outside:
    """What a service does not have of its own: a clock, chance, programs.

    `new_ids` are UUIDs of version 7 of one moment, in order; `run` runs a hook in a folder.
    """

    moment: Callable[[], datetime]
    new_ids: Callable[[datetime, int], tuple[str, ...]]
    run: Run
    find_codex: Callable[[], str | None]


@frozen
class Request:
    """What is asked for; `placement` and `strategy` are taken as they come, and may be refused."""

    session: str
    into: Into = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False
    requested_by: RequestedBy = "user"
    why: str = "requested by the user"


@frozen
class Compacted:
    """A compaction that was done, or, without an id, that would be: both report the same.

    `session_id` is the one to resume, None for a new one that is not there yet.
    """

    compaction_id: str | None
    session_id: str | None
    source_session_id: str
    into: Into
    strategy: Strategy
    determinism: Determinism
    placement: Placement
    built: Replacement
    windows: Windows
    hooks: tuple[Heard, ...] = ()

    @property
    def standing_context(self) -> str:
        """Return what becomes of the standing context, in words (CKP-31)."""
        return STANDING_CONTEXT[self.placement]


@frozen
class Source:
    """A session as it was read, at one point of it: what a compaction rests on."""

    row: Row
    opened: SessionFile
    replay: Replay
    live: bool
    end: int
    traced: Traced

    @property
    def session_id(self) -> str:
        """Return who the session is."""
        return self.row.session_id

    @property
    def look(self) -> Look:
        """Return what must be equal for the session to be unchanged."""
        return self.row.rollout.look

    @property
    def last_turn(self) -> Turn | None:
        """Return the newest turn that counts."""
        return next(reversed([*self.replay.state.turns.counting()]), None)

    @property
    def ended(self) -> bool:
        """Return whether nothing more is to come in the session as it stands (JUN-17)."""
        state = self.replay.state
        turns = state.turns.turns
        return not state.turns.task_open and (not turns or has_ended(turns[-1], state))


@frozen
class _Plan:
    source: Source
    built: Replacement
    placement: Placement


class Compacting:
    """Compactions of the sessions of one home."""

    def __init__(self, sessions: Sessions, outside: Outside) -> None:
        """Work on these sessions; nothing is read yet."""
        self.sessions = sessions
        self.outside = outside
        self.records: CompactionRecords = sessions.compactions
        self.audit = Audit(sessions.records, outside.moment)
        self._histories = Histories(sessions)

    def preview(self, request: Request) -> Compacted:
        """Return what a compaction would report; nothing is written.

        Refuses as `compact`, but for hooks, which are not asked.
        """
        plan = self._plan(request)
        before = plan.source.traced.history.chain
        if request.into == "in-place":
            session_id, after = plan.source.session_id, _next(before)
        else:
            session_id, after = None, Chain(number=1)
        return _compacted(request, plan, None, session_id, Windows(before, after))

    def compact(self, request: Request) -> Compacted:
        """Install a replacement; durable, and honoured by Codex's next request, on return.

        Refuses `unknown_session`, `unreadable_source`, `turn_not_complete`, `session_live`,
        `unsupported_placement`, `unsupported_strategy`, `codex_not_found`, `missing_context`,
        `not_smaller`, `item_too_large`, `blocked_by_hook`, `conflict`, `storage_error`.
        """
        plan = self._plan(request)
        at = self.outside.moment().astimezone(UTC)
        ids = self.outside.new_ids(at, 6)
        operation = self.audit.begin(ids[0], plan.source.session_id, plan.source.last_turn)
        heard = self._asked(request, plan, operation)
        if self._is_changed(plan.source):
            plan = self._plan(request)
        try:
            done = self._installed(request, plan, at, ids)
        except Refusal as refusal:
            operation.failed(refusal.code)
            raise
        record, result = done
        operation.installed(record, heard)
        after = self._told(request, plan, record)
        operation.observed(after)
        return result.with_hooks((*heard, *after)) if heard or after else result

    def recover(self) -> None:
        """Finish or take back what a process that was killed had begun (JUN-26)."""
        for session_id in self.records.holders():
            with contextlib.suppress(StorageError):
                if unsettled(self.records.of(session_id)) is not None:
                    with self.records.shelf(session_id) as shelf:
                        self.settle(shelf)

    # --- for those who undo ----------------------------------------------------------------------

    def read(self, session: str) -> Source:
        """Read a session up to one point of it; refuses as `find`, `unreadable_source`."""
        row = self.sessions.own(session)
        catalogue = self.sessions.catalogue
        catalogue.look([row.path])
        row = catalogue.current().get(row.session_id, row)
        opened = catalogue.open(row)
        broken = [each for each in opened.problems if each.code != "base_short"]
        if broken:
            message = f"session {row.session_id} builds on a rollout that is not there"
            facts = {"path": row.path, "reason": broken[0].code}
            raise Refusal("unreadable_source", message, facts)
        replay = opened.now()
        whole = replay is not opened.replay
        end = opened.mark.offset + (len(opened.tail) if whole else 0)
        traced = self._histories.traced(row, end, replay.seq - replay.scale.seq)
        live = row.session_id in catalogue.store.live_threads()
        return Source(row, opened, replay, live, end, traced)

    def history_below(self, source: Source, end: int) -> Traced:
        """Return the history of a session as it was when its file had so many bytes."""
        return self._histories.traced(source.row, end)

    @contextlib.contextmanager
    def installing(self, shelf: Shelf, record: Installed | Undone) -> Generator[None]:
        """Prepare a record, let the block install, and add it; however the block ends, settle."""
        self.settle(shelf)
        shelf.add(Prepared(record))
        try:
            yield
        except BaseException:
            with contextlib.suppress(StorageError):
                self.settle(shelf)
            raise
        shelf.settle(done=True)

    def settle(self, shelf: Shelf) -> None:
        """End what was prepared and left: look whether it happened."""
        record = unsettled(shelf.records)
        if record is None:
            return
        done = self._has_happened(record, shelf.records)
        if not done and isinstance(record, Installed) and record.into == "new":
            self.records.forget(record.session_id)
        shelf.settle(done=done)

    # --- inside ----------------------------------------------------------------------------------

    def _plan(self, request: Request) -> _Plan:
        self._check_strategy(request.strategy)
        source = self.read(request.session)
        if request.into == "in-place" and source.live:
            raise session_live(source.session_id)
        sessions = self.sessions
        checkpoint = sessions.project(source.replay, sessions.updates_of(source.opened))
        caps = sessions.settings.caps_for(source.replay.state.model)
        terms = self._terms(request, source)
        match build(self._past(source), checkpoint, caps, terms):
            case Declined() as declined:
                raise _declined(declined, source)
            case Replacement() as built:
                placement: Placement = "pre_turn" if terms.placement == "pre_turn" else "manual"
                return _Plan(source, built, placement)

    def _check_strategy(self, strategy: str) -> None:
        if strategy == "checkpoint":
            return
        if strategy != "codex":
            problem = f"strategy: {strategy[:80]!r} is not one of checkpoint, codex"
            raise Refusal("invalid_payload", problem, {"problems": [problem]})
        if self.outside.find_codex() is None:
            message = "the strategy `codex` needs the Codex CLI, and there is none on the PATH"
            raise Refusal("codex_not_found", message, {"strategy": strategy})
        message = "the strategy `codex` is not offered by this version"
        facts = {"strategy": strategy, "hint": "Leave --strategy out: `checkpoint` needs no model."}
        raise Refusal("unsupported_strategy", message, facts)

    def _terms(self, request: Request, source: Source) -> Terms:
        settings, context = self.sessions.settings, source.traced.history.context
        usable = context.tokens is not None and not context.flagged
        waived: set[Reason] = {"not_smaller"} if request.force else set()
        if request.force and not source.live:
            waived.add("turn_not_complete")  # nobody goes on with it: it was cut off
        advertised = context.window or source.row.context_window
        window = window_size(advertised, None, settings.context_window).tokens
        return Terms(
            placement=request.placement,
            turn_ended=source.ended,
            budget=settings.retained_tokens,
            before=Figure(context.tokens or 0, context.source) if usable else None,
            target=thresholds(window).target,
            waived=frozenset(waived),
        )

    def _past(self, source: Source) -> tuple[Past, ...]:
        """Return the history with what earlier records tell of the items of their replacements."""
        past, session_id = source.traced.past, source.session_id
        with storing(session_id):
            found = self.records.of(session_id)
        for record in reversed(found):
            if isinstance(record, Installed) and record.session_id == session_id:
                return remembered(past, record)
        return past

    def _asked(self, request: Request, plan: _Plan, operation: Operation) -> tuple[Heard, ...]:
        ring = self._ring("preCompact")
        heard, stopped = ring.ask(self._words(request, plan, "PreCompact"))
        if stopped is None:
            return heard
        operation.blocked(heard)
        message = f"a hook that runs before a compaction stopped it: {stopped.outcome}"
        message += f", {stopped.reason}" if stopped.reason else ""
        facts = {
            "sessionId": plan.source.session_id,
            "hook": stopped.number,
            "outcome": stopped.outcome,
            "reason": stopped.reason,
        }
        raise Refusal("blocked_by_hook", message, facts)

    def _told(self, request: Request, plan: _Plan, record: Installed) -> tuple[Heard, ...]:
        words = self._words(request, plan, "PostCompact") | {
            "compaction": {
                "compaction_id": record.compaction_id,
                "session_id": record.session_id,
                "replacement": record.replacement,
                "replaced": record.source.history,
                "kept": record.counts.kept,
                "truncated": record.counts.truncated,
                "dropped": record.counts.dropped,
                "tokens_before": record.sizes.before.tokens,
                "tokens_after": record.sizes.after.tokens,
            }
        }
        return self._ring("postCompact").tell(words)

    def _ring(self, event: str) -> Ring:
        hooks = self.sessions.settings.hooks.get(event, ())
        return Ring(hooks, self.outside.run, self.sessions.records.state_dir)

    def _words(self, request: Request, plan: _Plan, event: str) -> dict[str, object]:
        row, turn = plan.source.row, plan.source.last_turn
        return {
            "session_id": row.session_id,
            "turn_id": None if turn is None else turn.turn_id,
            "transcript_path": row.path,
            "cwd": row.cwd,
            "hook_event_name": event,
            "model": row.model,
            "trigger": "auto" if request.requested_by == "automatic" else "manual",
        }

    def _is_changed(self, source: Source) -> bool:
        seen = self.sessions.catalogue.store.look([source.row.path]).get(source.row.path)
        return seen is None or seen.look != source.look

    def _installed(
        self, request: Request, plan: _Plan, at: datetime, ids: tuple[str, ...]
    ) -> tuple[Installed, Compacted]:
        source = plan.source
        kept = self.sessions.keep(source.row, source.opened)
        if kept.storage_problem is not None:
            facts = {"sessionId": source.session_id, "reason": kept.storage_problem}
            message = f"the checkpoint cannot be stored: {kept.storage_problem}"
            raise Refusal("storage_error", message, facts)
        change = self._new(plan, at, ids) if request.into == "new" else self._in_place(plan, ids)
        windows = Windows(source.traced.history.chain, change.chain)
        record = Installed(
            compaction_id=ids[0],
            at=_text(at),
            requested_by=request.requested_by,
            why=request.why,
            placement=plan.placement,
            strategy="checkpoint",
            determinism="deterministic",
            into=request.into,
            session_id=change.session_id,
            source=self._range(source),
            replacement=digest_of(plan.built.items),
            items=remaining(plan.built),
            counts=counts_of(plan.built.report),
            sizes=Sizes(
                plan.built.report.before,
                Figure(plan.built.report.after, "estimated"),
                plan.built.report.bound,
            ),
            windows=windows,
            seed=kept.checkpoint if request.into == "new" else None,
        )
        with storing(source.session_id), self.records.shelf(source.session_id) as shelf:
            with self.installing(shelf, record):
                if isinstance(change.what, NewThread):
                    self.records.give(change.session_id, record)
                    row = self.sessions.threads.create(change.what, at)
                else:
                    threads = self.sessions.threads
                    threads.unload(source.session_id)
                    threads.append(source.session_id, change.what, at, expected=source.look)
                    row = self.sessions.own(source.session_id)
        self._settled(row)
        return record, _compacted(request, plan, ids[0], change.session_id, windows)

    def _new(self, plan: _Plan, at: datetime, ids: tuple[str, ...]) -> _Change:
        _, session_id, first, second, turn_id, item_id = ids
        source = plan.source
        row, traced = source.row, source.traced
        window = traced.history.context.window or row.context_window
        made = new_session(
            plan.built.items,
            source_of(source.session_id, row.cwd or "", traced.head, window),
            Naming(self.sessions.title(row) or "", turn_id, item_id),
            Moment(_text(at), int(at.timestamp() * 1000)),
            (session_id, first, second),
        )
        # Lists know by this how full the session is, before Codex has ever sent it (CKP-28).
        weight = token_count(
            plan.built.report.after + traced.instructions,
            {"info": {"model_context_window": window}},
        )
        thread = NewThread(made.meta, _items((*made.lines, weight)))
        return _Change(session_id, made.chain, thread)

    def _in_place(self, plan: _Plan, ids: tuple[str, ...]) -> _Change:
        traced = plan.source.traced
        chain = _next(traced.history.chain, ids[1])
        weight = plan.built.report.after + traced.instructions
        lines = in_place(plan.built.items, chain, weight, traced.last_report)
        return _Change(plan.source.session_id, chain, _items(lines))

    def _range(self, source: Source) -> Range:
        traced = source.traced
        return Range(
            source.session_id,
            traced.from_seq,
            traced.to_seq,
            digest_of(traced.history.items),
            source.end,
            self._prefix(source.row, source.end),
        )

    def _prefix(self, row: Row, end: int) -> str:
        digest = hashlib.sha256()

        def feed(data: bytes) -> int:
            digest.update(data)
            return len(data)

        try:
            self.sessions.catalogue.store.reader.read(row.path, 0, feed, end)
        except UnreadableSource as error:
            facts = {"path": row.path, "reason": str(error)}
            raise Refusal("unreadable_source", f"{row.path}: {error}", facts) from error
        return f"sha256:{digest.hexdigest()}"

    def _has_happened(self, record: Installed | Undone, records: tuple[Record, ...]) -> bool:
        """Return whether a session was published, or a window opened, as a record says."""
        catalogue = self.sessions.catalogue
        if isinstance(record, Installed) and record.into == "new":
            return catalogue.look_for(record.session_id) is not None
        of = record if isinstance(record, Installed) else _undone(record, records)
        window = record.windows.after if isinstance(record, Installed) else record.window
        if of is None or window is None or window.current is None:
            return False
        row = catalogue.look_for(of.source.session_id)
        return row is not None and self._stands_in(row, of.source.bytes_before, window.current)

    def _stands_in(self, row: Row, start: int, name: str) -> bool:
        """Return whether a window of this name was opened behind a place of a file."""
        needle = f'"window_id":"{name}"'.encode()
        found = False

        def feed(data: bytes) -> int:
            nonlocal found
            found = found or needle in data
            return data.rfind(b"\n") + 1 or max(0, len(data) - len(needle))

        try:
            _, rest = self.sessions.catalogue.store.reader.read(row.path, start, feed)
        except UnreadableSource:
            return False
        return found or needle in rest

    def _settled(self, row: Row) -> None:
        """Let what is stored of a session follow its change; a failure of that undoes nothing."""
        with contextlib.suppress(Refusal):
            self.sessions.keep(row, self.sessions.catalogue.open(row))


@frozen
class _Change:
    """What an install writes, and the windows that come of it."""

    session_id: str
    chain: Chain
    what: NewThread | tuple[Item, ...]
