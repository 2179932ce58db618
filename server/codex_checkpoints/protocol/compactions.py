"""Compactions: what is asked, what came of it, and its undoing."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.protocol.histories import WindowChain
from codex_checkpoints.protocol.sessions import Offer
from codex_checkpoints.values import frozen


@frozen
class CompactParams:
    """A session, where its work is to go on, and how.

    `into` is `new` or `in-place`, `strategy` is `checkpoint` or `codex`, `placement` is `manual` or
    `pre_turn`; `force` overrides `not_smaller`, and `turn_not_complete` where nobody holds the
    session.
    """

    session_id: str
    into: str = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False
    work_done_token: int | str | None = None


@frozen
class LeftOut:
    """A payload that a note stands for: its media type, its size in bytes."""

    media: str
    size: int


@frozen
class CompactionPiece:
    """One item of the replaced history: whose it was, when, where, and what became of it.

    `place` counts the items from 0.  `fate` is `kept`, `truncated`, `replaced`, `over_budget`,
    `over_target` or `only_payload`; `cutTokens` is how much a truncated one lost.
    """

    place: int
    kind: str
    author: str
    at: str | None
    ref: str | None
    tokens: int
    fate: str
    cut_tokens: int
    left_out: tuple[LeftOut, ...]


@frozen
class CompactionWindows:
    """The chain of the source, and that of the session where the work goes on."""

    before: WindowChain
    after: WindowChain


@frozen
class HookOutcome:
    """What came of a hook; `number` counts those of one event from 1.

    `outcome` is `passed`, `blocked`, `failed`, `timed_out`, `not_started` or `garbage`.
    """

    number: int
    outcome: str
    reason: str | None


@frozen
class Compacted:
    """A compaction that was done, or, where `compactionId` is null, that would be.

    `sessionId` is the one to resume, null for a new one that is not there yet.  `replacement` is
    what Codex sends from now on in place of the history.  `tokensBefore` is what decisions go by,
    `tokensReplaced` our estimate of the same history, and `tokensAfter` that of the replacement,
    both without base instructions; `bound` was stated before.
    """

    compaction_id: str | None
    session_id: str | None
    source_session_id: str
    into: str
    strategy: str
    determinism: str
    placement: str
    standing_context: str
    replacement: tuple[dict[str, Any], ...]
    tokens_before: int
    tokens_before_source: str
    tokens_replaced: int
    tokens_after: int
    tokens_after_source: str
    bound: int
    kinds_before: dict[str, int]
    kinds_after: dict[str, int]
    kept: tuple[CompactionPiece, ...]
    dropped: tuple[CompactionPiece, ...]
    truncated: tuple[CompactionPiece, ...]
    windows: CompactionWindows
    hooks: tuple[HookOutcome, ...]
    resume: str | None


@frozen
class UncompactParams:
    """A compaction by its id."""

    compaction_id: str


@frozen
class Uncompacted:
    """A compaction that was taken back; `sessionId` is where the work goes on again."""

    compaction_id: str
    session_id: str
    source_session_id: str
    into: str
    resume: str


@frozen
class ResumeParams:
    """A session that a person wants to go on with."""

    session_id: str
    work_done_token: int | str | None = None


@frozen
class NotCompacted:
    """Why a compaction that the settings ask for was not done: the code of its refusal."""

    code: str
    message: str


@frozen
class Resumed:
    """How to go on with a session, and what the check between two turns came to.

    `sessionId` is the one to resume, `resume` the shell command for it, to be run in `cwd`;
    `compacted` is the compaction that was done before, as the setting `automatic` asks,
    `notCompacted` why there is none.  `offer` speaks for one that was not done.  `live` says that
    Codex has the session loaded, `continuedBy` that its work went on elsewhere.  `notice` is one
    sentence for a quiet notification, null where there is nothing to tell.
    """

    session_id: str
    source_session_id: str
    cwd: str | None
    live: bool
    continued_by: str | None
    offer: Offer | None
    compacted: Compacted | None
    not_compacted: NotCompacted | None
    notice: str | None
    resume: str
