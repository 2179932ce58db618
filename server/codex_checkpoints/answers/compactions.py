"""Compactions as wire records: one that was made or taken back, and the way on with a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints import protocol
from codex_checkpoints.answers.sessions import offer
from codex_checkpoints.codex import resume
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Compacting is rare, and what it loads would slow down every command.
    from codex_checkpoints.core.compaction.report import Piece
    from codex_checkpoints.service.compaction.request import Compacted, Uncompacted
    from codex_checkpoints.service.compaction.resuming import Ready


def compacted(done: Compacted) -> protocol.Compacted:
    """Return what a compaction did, or would do."""
    report = done.built.report
    return filled(
        protocol.Compacted,
        done,
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
        resume=None if done.session_id is None else resume(done.session_id),
    )


def _piece(piece: Piece) -> protocol.CompactionPiece:
    left_out = tuple(filled(protocol.LeftOut, each) for each in piece.left_out)
    return filled(protocol.CompactionPiece, piece, left_out=left_out)


def uncompacted(done: Uncompacted) -> protocol.Uncompacted:
    """Return what came of taking a compaction back."""
    return filled(protocol.Uncompacted, done, resume=resume(done.session_id))


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
        resume=resume(ready.session_id),
    )
