"""What happened in a session, as wire records: history, windows, outline, what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from codex_checkpoints import protocol
from codex_checkpoints.core.history.rebuild import History, Window
from codex_checkpoints.service.connect.receipts import Receipt, by_window
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Outlines and losses are rare, and what they load would slow down every command.
    from codex_checkpoints.core.compaction.outline import Outline
    from codex_checkpoints.core.losses.records import Loss


def history(found: History) -> protocol.History:
    """Return what Codex would send."""
    return protocol.History(
        items=tuple(dict(item) for item in found.items),
        reconstructed=found.reconstructed,
        windows=filled(protocol.WindowChain, found.chain),
        context_tokens=found.context.tokens,
        context_tokens_source=found.context.source,
        context_tokens_flagged=found.context.flagged,
        context_window=found.context.window,
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


def _window(window: Window, received: Receipt | None, compaction_id: str | None) -> protocol.Window:
    return filled(
        protocol.Window,
        window,
        previous_window_id=window.previous_id,
        opened_at_seq=window.opened_seq,
        received=None if received is None else filled(protocol.Receipt, received),
        compaction_id=compaction_id,
    )


def outline(found: Outline) -> protocol.Outline:
    """Return the outline of a session."""
    return protocol.Outline(
        tuple(filled(protocol.OutlineChunk, chunk) for chunk in found.chunks),
        tuple(filled(protocol.OutlineTurn, turn) for turn in found.recent),
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
