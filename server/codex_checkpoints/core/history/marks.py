"""What the first pass notes of a session: marks in the order of the lines, and an outline."""

from __future__ import annotations

from codex_checkpoints.core.history.compacted import Compaction
from codex_checkpoints.core.history.openings import Opening
from codex_checkpoints.core.history.tokens import Usage
from codex_checkpoints.core.rollout.reader import Place
from codex_checkpoints.values import frozen


@frozen
class Began:
    """Codex began to work on a submission."""


@frozen
class Ended:
    """It stopped working on it."""

    turn_id: str | None
    aborted: bool


@frozen
class Said:
    """Lines of the history; with `turn` one of them was a user's prompt or an agent's message."""

    turn: bool


@frozen
class Settings:
    """The settings of a turn were written down, which later turns are compared with."""

    turn_id: str | None
    seq: int


@frozen
class World:
    """The injected context was written down, whole (`full`) or as a change."""

    full: bool


@frozen
class TakenBack:
    """The newest user turns no longer count."""

    turns: int


Mark = Began | Ended | Said | Settings | World | TakenBack | Compaction


@frozen
class Outline:
    """What the first pass found.

    Nothing before `start` counts any more.  `window_id` is that of the first window, `opened_seq`
    and `opened_at` say when it was opened; `usage` is the newest report, `stale` when a window was
    opened after it; `instructions` are the tokens of the base instructions.
    """

    marks: tuple[Mark, ...]
    openings: tuple[Opening, ...]
    start: Place
    session_id: str | None
    window_id: str | None
    opened_seq: int
    opened_at: str | None
    instructions: int
    usage: Usage | None
    stale: bool
    seq: int
