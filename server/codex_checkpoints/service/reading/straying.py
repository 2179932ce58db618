"""Notice, as a session goes on, edits that neither its plan nor recent work speaks of (DSC-68).

What has come since the last look is held against the checkpoint of before.  Which edit strays is
decided by the core; here it is known what was edited, and since when.  Nobody is asked or told.
"""

from __future__ import annotations

from collections.abc import Container

from codex_checkpoints.core.checkpoint.caps import Limits
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.straying import straying
from codex_checkpoints.service.reading.projections import Projection
from codex_checkpoints.values import frozen


@frozen
class Strayed:
    """Files that Codex edited though neither the plan nor recent work speaks of them.

    Sent only where the setting `driftGuard` asks for it, once for the new records of a session.
    `seq` is that of the session after them.
    """

    session_id: str
    uris: tuple[str, ...]
    seq: int


class Guard:
    """The checkpoints of before, and what strayed from them."""

    def __init__(self) -> None:
        """Know of no session; the first look at one finds nothing."""
        self._before: dict[str, Checkpoint] = {}
        self._strayed: list[Strayed] = []

    def look(self, replay: Replay, now: Projection) -> None:
        """Hold the new records of a session against what it was about before them."""
        before = self._before.get(now.session_id)
        self._before[now.session_id] = now.checkpoint
        if before is None or now.checkpoint.seq <= before.seq:
            return
        kept = replay.state.observations.kept(Limits())
        edits = sorted((met.edited, uri) for uri, met in kept.items() if met.edited > before.seq)
        uris = straying(before, (uri for _, uri in edits))
        if uris:
            self._strayed.append(Strayed(now.session_id, uris, now.checkpoint.seq))

    def take(self) -> tuple[Strayed, ...]:
        """Return, once, what was found since the last time."""
        strayed, self._strayed = tuple(self._strayed), []
        return strayed

    def forget_all_but(self, sessions: Container[str]) -> None:
        """Let go of the sessions that nobody follows any more."""
        for session in [each for each in self._before if each not in sessions]:
            del self._before[session]
