"""Everything that goes over in a restore, as one value: what the pack and the record are made of.

These are the categories that always travel (AGN-45 to AGN-50) and nothing else (AGN-39 to AGN-43).
How much of it a model is shown is decided by `pack`.
"""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.restore.references import References
from codex_checkpoints.core.restore.trace import Message, ModeChange

DEFAULT_REASON = "requested by the user"
"""The reason of a restore that was asked for without one."""

MAX_WINDOW = 5
"""How many user messages the continuity window holds at most (AGN-52)."""


@frozen
class TurnSource:
    """A turn as it is always addressed: with its session (AGN-11)."""

    session_id: str
    turn_id: str


@frozen
class Ancestor:
    """One restore further up: a branch, and the turn and marker that it was opened at."""

    session_id: str
    source_turn: TurnSource
    checkpoint_id: str


@frozen
class Origin:
    """Where a restore begins: a marker on a turn, and the chain of branches that led there.

    `chain` begins with the source itself, should it be a branch, and ends with the first branch.
    """

    source_turn: TurnSource
    checkpoint_id: str
    label: str
    created_at: str
    chain: tuple[Ancestor, ...] = ()


@frozen
class Pinned:
    """A pin as it is now; `content` is the text of the file or of its lines, if it can be read."""

    uri: str
    start: int | None
    end: int | None
    hash: str | None
    content: str | None

    @property
    def id(self) -> str:
        """Return the name of what is pinned, with its lines where it has some."""
        return self.uri if self.start is None else f"{self.uri}#L{self.start}-L{self.end}"

    @property
    def missing(self) -> bool:
        """Return whether there is no such file, or it has no such lines."""
        return self.hash is None and self.content is None


@frozen
class Carried:
    """What a restore carries: identity, notes, mode, references, pins, and perhaps a window."""

    origin: Origin
    reason: str
    modes: tuple[ModeChange, ...]
    checkpoint: Checkpoint
    references: References
    pins: tuple[Pinned, ...] = ()
    window: tuple[Message, ...] = ()
