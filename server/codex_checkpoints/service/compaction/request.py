"""What is asked of a compaction, what it answers, and how it refuses.

What is done between the two is known to `compacting` and `undoing`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from codex_checkpoints.core.compaction.building import Replacement
from codex_checkpoints.core.compaction.placement import STANDING_CONTEXT, Placement
from codex_checkpoints.core.compaction.records import (
    Determinism,
    Into,
    RequestedBy,
    Strategy,
    Windows,
)
from codex_checkpoints.core.compaction.report import Declined, Figure, Reason
from codex_checkpoints.service.compaction.hooks import Heard, Run
from codex_checkpoints.service.compaction.scratching import Summarise
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.values import frozen


@frozen
class Outside:
    """What a service does not have of its own: a clock, chance, programs.

    `new_ids` are UUIDs of version 7 of one moment, in order; `run` runs a hook in a folder;
    `find_codex` says where the Codex CLI is, `summarise` has it make a summary.
    """

    moment: Callable[[], datetime]
    new_ids: Callable[[datetime, int], tuple[str, ...]]
    run: Run
    find_codex: Callable[[], str | None]
    summarise: Summarise


@frozen
class Request:
    """What is asked for; `placement` and `strategy` are taken as they come, and may be refused.

    `seconds` is what Codex may take for a summary of its own; None leaves that to the settings.
    """

    session: str
    into: Into = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False
    seconds: float | None = None
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
class Uncompacted:
    """A compaction that was taken back; `session_id` is where the work goes on again."""

    compaction_id: str
    session_id: str
    source_session_id: str
    into: Into


def session_live(session_id: str) -> Refusal:
    """Return the refusal to write to a session that somebody has loaded."""
    message = f"session {session_id} is loaded by another process, which would not notice"
    hint = "Close it in Codex, or compact into a new session."
    return Refusal("session_live", message, {"sessionId": session_id, "hint": hint})


def gone_on(session_id: str) -> Refusal:
    """Return the refusal to install a summary that is out of date."""
    message = f"session {session_id} went on while Codex made its summary, so nothing is installed"
    return Refusal("conflict", message, {"sessionId": session_id, "reason": "gone_on"})


def no_preview(session_id: str, before: Figure, seconds: float) -> Refusal:
    """Return the refusal to preview a summary that only a model can make.

    Everything else was checked before; the facts are what can be known without asking the model.
    """
    size = f"{before.tokens} tokens ({before.source})"
    message = f"Codex makes this summary with its model, which no preview asks; now it is {size}"
    facts = {
        "sessionId": session_id,
        "strategy": "codex",
        "tokensBefore": before.tokens,
        "tokensBeforeSource": before.source,
        "seconds": seconds,
        "hint": "What is installed can be taken back with uncompact.",
    }
    return Refusal("no_preview", message, facts)


_SENTENCES: dict[Reason, str] = {
    "turn_not_complete": "its last turn is open: it is running, waiting, or was cut off",
    "missing_context": "it holds nothing yet that could be gone on with",
    "not_smaller": "a replacement would not be smaller than what it replaces",
    "item_too_large": "its handoff or newest message alone does not fit into the window",
    "unsupported_placement": "only the placements manual and pre_turn are offered",
    "below_threshold": "its window is not full enough",
}
_HINTS: dict[Reason, str] = {
    "turn_not_complete": "Let the turn end; where nobody holds the session, --force goes on.",
    "not_smaller": "With --force it is done all the same.",
}


def declined_by(declined: Declined, session_id: str) -> Refusal:
    """Return the refusal that says why the core built no replacement (JUN-45)."""
    facts = {"sessionId": session_id, **declined.facts}
    if hint := _HINTS.get(declined.reason):
        facts["hint"] = hint
    sentence = f"session {session_id} is not compacted: {_SENTENCES[declined.reason]}"
    return Refusal(declined.reason, sentence, facts)
