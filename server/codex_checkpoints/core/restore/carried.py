"""Everything that goes over in a restore, as one value: what the pack and the record are made of.

These are the categories that always travel (AGN-45 to AGN-50) and nothing else (AGN-39 to AGN-43).
How much of it a model is shown is decided by `pack`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.restore.references import References
from codex_checkpoints.core.restore.trace import Message, ModeChange
from codex_checkpoints.values import frozen

DEFAULT_REASON = "requested by the user"
"""The reason of a restore that was asked for without one."""

MAX_WINDOW = 5
"""How many user messages the continuity window holds at most (AGN-52)."""


@frozen
class TurnSource:
    """A turn, with the session that it is of."""

    session_id: str
    turn_id: str


LinkKind = Literal["restore", "compaction", "revert", "subagent", "fork", "import"]
"""What made a child of a parent."""


@frozen
class Parent:
    """The session that another one came from, and the turn that it was left at, where that is told.

    Only a restore always tells it.
    """

    session_id: str
    turn_id: str | None


@frozen
class Ancestor:
    """One step further up: a session, what it came from and how; only a restore has a marker."""

    session_id: str
    source_turn: Parent
    checkpoint_id: str | None
    kind: LinkKind = "restore"


@frozen
class Origin:
    """Where a restore begins: a marker on a turn, and the chain of sessions that led there.

    `chain` begins with the source itself, should it have come from another session, and ends with
    the one that came from the first.
    """

    source_turn: TurnSource
    checkpoint_id: str
    label: str
    created_at: str
    chain: tuple[Ancestor, ...] = ()


Unseen = Literal["missing", "no_lines", "bound", "unreadable"]
"""Why nothing of a pin can be shown: no such file, no such lines, too large, not to be read."""


@frozen
class Pinned:
    """A pin as it is now; `content` is the text of the file or of its lines.

    Where there is none, `unseen` says why.
    """

    uri: str
    start: int | None
    end: int | None
    hash: str | None
    content: str | None
    unseen: Unseen | None = None

    @property
    def id(self) -> str:
        """Return the name of what is pinned, with its lines where it has some."""
        return self.uri if self.start is None else f"{self.uri}#L{self.start}-L{self.end}"

    @property
    def missing(self) -> bool:
        """Return whether there is no such file (AGN-65)."""
        return self.unseen == "missing"


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

    @property
    def hashes(self) -> Mapping[str, str | None]:
        """Return the hashes of the files that are referred to and pinned, by uri."""
        whole = {pin.uri: pin.hash for pin in self.pins if pin.start is None}
        return whole | {file.uri: file.hash for file in self.references.files}
