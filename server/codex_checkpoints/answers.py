"""What the service answers, as wire records: the one place where the two meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from codex_checkpoints import protocol
from codex_checkpoints.core.checkpoint.anchors import Anchor
from codex_checkpoints.core.checkpoint.caps import Caps
from codex_checkpoints.core.checkpoint.notes import Note
from codex_checkpoints.core.history.reconstruct import History, Window
from codex_checkpoints.service.diagnosis import Diagnosis
from codex_checkpoints.service.listing import Page, Summary
from codex_checkpoints.service.sessions import Detail
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Connecting and compacting are rare, and what they load would slow down every command.
    from codex_checkpoints.core.compaction.report import Piece
    from codex_checkpoints.service.compaction_request import Compacted, Uncompacted
    from codex_checkpoints.service.connector import Report


def session_list(page: Page) -> protocol.SessionList:
    """Return a page of sessions."""
    items = tuple(filled(protocol.SessionSummary, summary) for summary in page.items)
    return protocol.SessionList(items, page.next_cursor)


def session_summary(summary: Summary) -> protocol.SessionSummary:
    """Return one session as it stands in a list."""
    return filled(protocol.SessionSummary, summary)


def session_detail(detail: Detail) -> protocol.SessionDetail:
    """Return one session with its turns."""
    return protocol.SessionDetail(
        filled(protocol.SessionSummary, detail.summary),
        tuple(filled(protocol.TurnEntry, turn) for turn in detail.turns),
        caps(detail.caps),
        detail.problems,
        dict(detail.skipped),
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


def window_list(windows: Iterable[Window]) -> protocol.WindowList:
    """Return the windows of a session."""
    return protocol.WindowList(tuple(map(_window, windows)), None)


def _window(window: Window) -> protocol.Window:
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
        tuple(filled(protocol.ConnectDoor, each) for each in seen.doors),
        tuple(filled(protocol.ConnectHook, each) for each in seen.hooks),
        tuple(protocol.ConnectHome(home, each) for home, each in seen.other_homes.items()),
        seen.problems,
        seen.way_out,
        report.written,
        tuple(filled(protocol.ConnectChange, each) for each in report.changes),
    )


def doctor_report(diagnosis: Diagnosis) -> protocol.DoctorReport:
    """Return a diagnosis."""
    return protocol.DoctorReport(
        diagnosis.codex_home,
        diagnosis.state_dir,
        diagnosis.sessions,
        tuple(filled(protocol.DoctorFinding, finding) for finding in diagnosis.findings),
        diagnosis.skipped,
    )
