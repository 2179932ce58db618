"""What the service answers, as wire records: the one place where the two meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from codex_checkpoints import protocol
from codex_checkpoints.core.checkpoint.anchors import Anchor
from codex_checkpoints.core.checkpoint.caps import Caps
from codex_checkpoints.core.checkpoint.notes import Note
from codex_checkpoints.core.history.reconstruct import History, Window
from codex_checkpoints.service.diagnosis import Diagnosis
from codex_checkpoints.service.listing import Detail, Page, Summary
from codex_checkpoints.service.receipts import Receipt, by_window
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Connecting and compacting are rare, and what they load would slow down every command.
    from codex_checkpoints.core.compaction.offering import Budget, Offer
    from codex_checkpoints.core.compaction.outline import Outline
    from codex_checkpoints.core.compaction.report import Piece
    from codex_checkpoints.core.losses.records import Loss
    from codex_checkpoints.service.compaction_request import Compacted, Uncompacted
    from codex_checkpoints.service.connector import Report
    from codex_checkpoints.service.doors import Door, HookState
    from codex_checkpoints.service.last_runs import Failure
    from codex_checkpoints.service.resuming import Ready


def session_list(page: Page) -> protocol.SessionList:
    """Return a page of sessions."""
    items = tuple(session_summary(summary) for summary in page.items)
    return protocol.SessionList(items, page.next_cursor)


def session_summary(summary: Summary) -> protocol.SessionSummary:
    """Return one session as it stands in a list."""
    told = filled(protocol.SessionSummary, summary)
    return told if summary.offer is None else evolve(told, offer=offer(summary.offer))


def offer(offer: Offer) -> protocol.Offer:
    """Return what speaks for a compaction."""
    limits, budget = offer.budget.limits, offer.budget
    return protocol.Offer(
        offer.tokens, offer.source, limits.trigger, limits.target, limits.window, budget.source
    )


def _budget(budget: Budget) -> protocol.WindowBudget:
    limits = budget.limits
    return protocol.WindowBudget(
        limits.window, budget.source, limits.reserve, limits.trigger, limits.target
    )


def session_detail(detail: Detail, receipts: Sequence[Receipt] = ()) -> protocol.SessionDetail:
    """Return one session with its turns, and what Codex was given of it last."""
    return protocol.SessionDetail(
        session_summary(detail.summary),
        tuple(filled(protocol.TurnEntry, turn) for turn in detail.turns),
        caps(detail.caps),
        detail.problems,
        dict(detail.skipped),
        filled(protocol.Receipt, receipts[-1]) if receipts else None,
        _budget(detail.budget),
        _budget(detail.outline_budget),
    )


def caps(effective: Caps) -> protocol.EffectiveCaps:
    """Return the caps in force."""
    return filled(protocol.EffectiveCaps, effective)


def note_list(notes: Iterable[Note]) -> protocol.NoteList:
    """Return the notes of a session."""
    return protocol.NoteList(tuple(map(_note, notes)), None)


def _note(note: Note) -> protocol.Note:
    return protocol.Note(
        note.kind,
        note.id,
        note.value,
        note.topic,
        note.decision,
        note.rationale,
        note.supersedes,
        note.superseded_by,
        note.status,
        note.why,
        filled(protocol.NoteEvidence, note.evidence),
        tuple(filled(protocol.NoteDependency, each) for each in note.depends_on),
        note.seq,
        note.turn_id,
        note.accepted_at,
    )


def anchor_list(anchors: Iterable[Anchor]) -> protocol.AnchorList:
    """Return what may be cited as evidence."""
    return protocol.AnchorList(tuple(filled(protocol.Anchor, each) for each in anchors), None)


def history(found: History) -> protocol.History:
    """Return what Codex would send."""
    return protocol.History(
        tuple(dict(item) for item in found.items),
        found.reconstructed,
        filled(protocol.WindowChain, found.chain),
        found.context.tokens,
        found.context.source,
        found.context.flagged,
        found.context.window,
    )


def window_list(
    windows: Sequence[Window], receipts: Iterable[Receipt], compactions: Mapping[str, str]
) -> protocol.WindowList:
    """Return the windows of a session, each with what Codex was given in it last.

    `compactions` are those of ours by the id of the window that they opened.
    """
    received = by_window(receipts, windows)
    rows = tuple(
        _window(each, received.get(each.number), compactions.get(each.window_id or ""))
        for each in windows
    )
    return protocol.WindowList(rows, None)


def outline(found: Outline) -> protocol.Outline:
    """Return the outline of a session."""
    return protocol.Outline(
        tuple(filled(protocol.OutlineChunk, chunk) for chunk in found.chunks),
        tuple(filled(protocol.OutlineTurn, turn) for turn in found.recent),
    )


def _window(window: Window, received: Receipt | None, compaction_id: str | None) -> protocol.Window:
    return protocol.Window(
        window.number,
        window.window_id,
        window.previous_id,
        window.opened_seq,
        window.opened_at,
        window.trigger,
        window.strategy,
        window.tokens_before,
        window.tokens_after,
        None if received is None else filled(protocol.Receipt, received),
        compaction_id,
    )


def loss_list(losses: Iterable[Loss]) -> protocol.LossList:
    """Return what the compactions of a session lost."""
    return protocol.LossList(tuple(map(_loss, losses)), None)


def _loss(loss: Loss) -> protocol.Loss:
    missed, since = loss.missed, loss.since
    task = None if missed.task is None else filled(protocol.LostText, missed.task)
    return protocol.Loss(
        number=loss.number,
        window_id=loss.window_id,
        opened_at_seq=loss.opened_seq,
        opened_at=loss.opened_at,
        trigger=loss.trigger,
        strategy=loss.strategy,
        counts=loss.counts,
        sealed=missed.sealed,
        task_present=None if task is None or task.lost is None else not task.lost,
        task=task,
        open_plan_steps=tuple(filled(protocol.LostText, it) for it in missed.open_plan_steps),
        edited_files=tuple(filled(protocol.LostFile, it) for it in missed.edited_files),
        failing_commands=tuple(filled(protocol.LostCommand, it) for it in missed.failing_commands),
        not_listed=missed.not_listed,
        reads=since.reads,
        rereads_unchanged=since.rereads_unchanged,
        bytes=since.bytes,
        rereads=tuple(filled(protocol.Reread, it) for it in since.rereads),
        loop=bool(since.loop_over),
        loop_over=since.loop_over,
    )


def compacted(done: Compacted) -> protocol.Compacted:
    """Return what a compaction did, or would do."""
    report = done.built.report
    return protocol.Compacted(
        compaction_id=done.compaction_id,
        session_id=done.session_id,
        source_session_id=done.source_session_id,
        into=done.into,
        strategy=done.strategy,
        determinism=done.determinism,
        placement=done.placement,
        standing_context=done.standing_context,
        replacement=tuple(dict(item) for item in done.built.items),
        tokens_before=report.before.tokens,
        tokens_before_source=report.before.source,
        tokens_replaced=report.replaced,
        tokens_after=report.after,
        tokens_after_source="estimated",
        bound=report.bound,
        kinds_before={str(kind): count for kind, count in report.kinds_before.items()},
        kinds_after={str(kind): count for kind, count in report.kinds_after.items()},
        kept=tuple(map(_piece, report.kept)),
        dropped=tuple(map(_piece, report.dropped)),
        truncated=tuple(map(_piece, report.truncated)),
        windows=protocol.CompactionWindows(
            filled(protocol.WindowChain, done.windows.before),
            filled(protocol.WindowChain, done.windows.after),
        ),
        hooks=tuple(filled(protocol.HookOutcome, each) for each in done.hooks),
        resume=None if done.session_id is None else f"codex resume {done.session_id}",
    )


def _piece(piece: Piece) -> protocol.CompactionPiece:
    return protocol.CompactionPiece(
        piece.place,
        piece.kind,
        piece.author,
        piece.at,
        piece.ref,
        piece.tokens,
        piece.fate,
        piece.cut_tokens,
        tuple(filled(protocol.LeftOut, each) for each in piece.left_out),
    )


def resumed(ready: Ready) -> protocol.Resumed:
    """Return how to go on with a session."""
    source, declined = ready.source, ready.declined
    return protocol.Resumed(
        session_id=ready.session_id,
        source_session_id=source.session_id,
        cwd=source.cwd,
        live=source.live,
        continued_by=source.continued_by,
        offer=None if ready.offer is None else offer(ready.offer),
        compacted=None if ready.compacted is None else compacted(ready.compacted),
        not_compacted=None
        if declined is None
        else protocol.NotCompacted(declined.code, declined.message),
        notice=ready.notice,
        resume=f"codex resume {ready.session_id}",
    )


def uncompacted(done: Uncompacted) -> protocol.Uncompacted:
    """Return what came of taking a compaction back."""
    return protocol.Uncompacted(
        done.compaction_id,
        done.session_id,
        done.source_session_id,
        done.into,
        f"codex resume {done.session_id}",
    )


def connect_report(report: Report) -> protocol.ConnectReport:
    """Return how Codex and we are connected, and what was changed."""
    seen = report.connection
    return protocol.ConnectReport(
        seen.codex_home,
        seen.codex_path,
        seen.codex_version,
        seen.codex_problem,
        tuple(map(_door, seen.doors)),
        tuple(map(_hook, seen.hooks)),
        tuple(filled(protocol.ConnectHome, each) for each in seen.other_homes),
        seen.problems,
        seen.way_out,
        report.written,
        tuple(filled(protocol.ConnectChange, each) for each in report.changes),
    )


def _door(door: Door) -> protocol.ConnectDoor:
    return protocol.ConnectDoor(
        door.door,
        door.configured,
        door.trusted,
        door.trust_unknown,
        door.last_ran_at,
        door.last_session,
        _failure(door.failure),
        door.problem,
        door.next,
        door.way_out,
    )


def _hook(hook: HookState) -> protocol.ConnectHook:
    return protocol.ConnectHook(
        hook.event,
        hook.configured,
        hook.trust,
        hook.enabled,
        hook.last_ran_at,
        hook.last_session,
        _failure(hook.failure),
    )


def _failure(failure: Failure | None) -> protocol.ConnectFailure | None:
    return None if failure is None else filled(protocol.ConnectFailure, failure)


def doctor_report(diagnosis: Diagnosis) -> protocol.DoctorReport:
    """Return a diagnosis."""
    return protocol.DoctorReport(
        diagnosis.codex_home,
        diagnosis.state_dir,
        diagnosis.sessions,
        tuple(filled(protocol.DoctorFinding, finding) for finding in diagnosis.findings),
        diagnosis.skipped,
    )
