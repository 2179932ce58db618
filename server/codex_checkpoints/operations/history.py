"""Returns a session's history, windows, losses and changes."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from codex_checkpoints.core.agents.codex.history.windows import Chain as WindowChain
from codex_checkpoints.core.compaction.token_budget import Outline
from codex_checkpoints.core.losses.file_activity import Loss
from codex_checkpoints.core.restore.records import difference
from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.service.connect.delivery_log import by_window, received
from codex_checkpoints.service.history.changes import ChangesParams, FileChanges
from codex_checkpoints.service.history.changes import changes as changes_of
from codex_checkpoints.service.history.compaction_losses import losses_of
from codex_checkpoints.service.history.resumed_history import Histories, state_at
from codex_checkpoints.service.history.timelines import SessionTimeline, TurnTranscript
from codex_checkpoints.service.history.timelines import timeline as timeline_of
from codex_checkpoints.service.history.timelines import transcript as transcript_of
from codex_checkpoints.service.history.windows import outline as outlined
from codex_checkpoints.service.history.windows import windows_in
from codex_checkpoints.service.sessions.summaries import Receipt


@frozen
class History:
    """The history that Codex would send when the session is resumed, without the next turn's part.

    `items` are response items, calls paired, outputs cut, without ids.  `reconstructed`: a part is
    made of user messages, since a compaction kept no history.  `contextTokensSource` is `reported`
    or `estimated`; `contextTokensFlagged`: more than the window, so nothing is decided by it.
    """

    items: tuple[dict[str, Any], ...]
    reconstructed: bool
    windows: WindowChain
    context_tokens: int | None
    context_tokens_source: str
    context_tokens_flagged: bool
    context_window: int | None


@frozen
class Window:
    """One context window: number 0 is the first, each compaction opened another.

    `trigger` is `manual`, `pre_turn` or `mid_turn`; `strategy` is `checkpoint` or `codex` for ours,
    `local`, `remote` or `fresh` for Codex's.  `received` is the last view that Codex was given in
    it; `compactionId` is the compaction of ours that opened it, and `undone` whether that was
    undone.
    """

    number: int
    window_id: str | None
    previous_window_id: str | None
    opened_at_seq: int
    opened_at: str | None
    trigger: str | None
    strategy: str | None
    tokens_before: int | None
    tokens_after: int | None
    received: Receipt | None
    compaction_id: str | None
    undone: bool


@frozen
class WindowList:
    """The windows of a session, the first one first."""

    items: tuple[Window, ...]
    next_cursor: str | None


@frozen
class LossList:
    """The compactions of a session, the oldest first."""

    items: tuple[Loss, ...]
    next_cursor: str | None


@frozen
class DiffParams:
    """Two turns by id or number; null is the current state."""

    session_id: str
    from_turn_id: str | None
    to_turn_id: str | None


@frozen
class TranscriptParams:
    """A session, one of its turns by id or number, and how many items of it to leave out."""

    session_id: str
    turn_id: str
    offset: int = 0


@frozen
class Difference:
    """The changes between the ends of two turns.

    Each entry is `{change, before, after}`; `change` is `added`, `removed` or `changed`.
    `planReordered`: steps that both have changed places.
    """

    session_id: str
    from_turn_id: str | None
    to_turn_id: str | None
    task: dict[str, Any] | None
    plan: tuple[dict[str, Any], ...]
    plan_reordered: bool
    decisions: tuple[dict[str, Any], ...]
    facts: tuple[dict[str, Any], ...]
    artifacts: tuple[dict[str, Any], ...]


def history(services: Services, params: SessionParams) -> History:
    """Return the history that Codex would send on resume."""
    found = Histories(services.sessions).history(params.session_id)
    return History(
        reconstructed=found.reconstructed,
        items=tuple(dict(item) for item in found.items),
        windows=found.chain,
        context_tokens=found.context.tokens,
        context_tokens_source=found.context.source,
        context_tokens_flagged=found.context.flagged,
        context_window=found.context.window,
    )


def windows(services: Services, params: SessionParams) -> WindowList:
    """Return the windows of a session, each with the last view that Codex was given in it."""
    sessions = services.sessions
    found = windows_in(sessions, params.session_id)
    opened = sessions.compactions.by_window(sessions.find(params.session_id).session_id)
    given = by_window(received(sessions, params.session_id), found)
    made = [(each := opened.get(window.window_id)) and each.by for window in found]
    rows = (
        Window(
            number=each.number,
            window_id=each.window_id,
            opened_at=each.opened_at,
            trigger=each.trigger,
            strategy=each.strategy,
            tokens_before=each.tokens_before,
            tokens_after=each.tokens_after,
            previous_window_id=each.previous_id,
            opened_at_seq=each.opened_seq,
            received=given.get(each.number),
            compaction_id=None if by is None else by.compaction_id,
            undone=by is not None and sessions.compactions.is_undone(by),
        )
        for each, by in zip(found, made, strict=True)
    )
    return WindowList(tuple(rows), None)


def outline(services: Services, params: SessionParams) -> Outline:
    """Return the outline of a session."""
    return outlined(services.sessions, params.session_id)


def timeline(services: Services, params: SessionParams) -> SessionTimeline:
    """Return the turns of a session and its events, at most 400 rows."""
    return timeline_of(services.sessions, params.session_id)


def transcript(services: Services, params: TranscriptParams) -> TurnTranscript:
    """Return the messages and actions of a turn, at most 200 items at a time."""
    return transcript_of(services.sessions, params.session_id, params.turn_id, params.offset)


def changes(services: Services, params: ChangesParams) -> FileChanges:
    """Return the changes of some turns of a session in files."""
    return changes_of(services.sessions, params)


def losses(services: Services, params: SessionParams) -> LossList:
    """Return the losses of each compaction of a session."""
    return LossList(losses_of(services.sessions, params.session_id), None)


def diff(services: Services, params: DiffParams) -> Difference:
    """Return the changes between two turns."""
    sessions, session = services.sessions, params.session_id
    session_id, from_turn_id, before = state_at(sessions, session, params.from_turn_id)
    _, to_turn_id, after = state_at(sessions, session, params.to_turn_id)
    return Difference(session_id, from_turn_id, to_turn_id, **difference(before, after))
