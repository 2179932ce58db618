"""What is written down of a compaction while it happens: one sealed line an event (CKP-2, CKP-11).

Ids, counts, digests and codes stand in these events, and no text of a session.  That the log cannot
be written is said, and stops nothing: the records of compactions tell the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import attrs

from codex_checkpoints.core.compaction.record_lines import to_value
from codex_checkpoints.core.compaction.records import Installed, Undone
from codex_checkpoints.core.restore.sealing import sealed
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.durable import StorageError
from codex_checkpoints.service.compaction.hooks import Heard
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.stamps import in_text
from codex_checkpoints.values import define

logger = logging.getLogger(__name__)

_TOLD = (
    "requestedBy",
    "why",
    "placement",
    "strategy",
    "determinism",
    "into",
    "source",
    "replacement",
    "counts",
    "sizes",
    "windows",
    "baseline",
)


@define
class Operation:
    """The events of one compaction, numbered from 0."""

    _sessions: Sessions
    _moment: Callable[[], datetime]
    _operation_id: str
    _source_session_id: str
    _source_turn: Turn | None
    _step: int = 0

    def blocked(self, heard: Sequence[Heard]) -> None:
        """Note that a hook stopped it, before anything was written."""
        self._note("CompactionBlocked", None, {"hooks": _told(heard)})

    def failed(self, code: str) -> None:
        """Note that it ended without effect, by the code of the refusal."""
        self._note("CompactionFailed", None, {"code": code})

    def installed(self, record: Installed, heard: Sequence[Heard]) -> None:
        """Note who compacted what, when and why, and what remains."""
        known = to_value(record)
        told = {name: known[name] for name in _TOLD} | {"items": len(record.items)}
        self._note("CompactionInstalled", record.session_id, told | {"hooks": _told(heard)})

    def observed(self, heard: Sequence[Heard]) -> None:
        """Note what came of the hooks that run after it, if there are any."""
        if heard:
            self._note("CompactionObserved", None, {"hooks": _told(heard)})

    def undone(self, record: Undone, session_id: str) -> None:
        """Note that a compaction was taken back."""
        known = to_value(record)
        told = {name: known[name] for name in ("requestedBy", "why", "window")}
        self._note("CompactionUndone", session_id, told)

    def _note(self, kind: str, session_id: str | None, told: Mapping[str, object]) -> None:
        turn, settings = self._source_turn, self._sessions.settings
        event: dict[str, object] = {
            "type": kind,
            "at": in_text(self._moment()),
            "operationId": self._operation_id,
            "sessionId": session_id,
            "sourceSessionId": self._source_session_id,
            "checkpointId": None,
            "sourceTurn": None
            if turn is None
            else {"sessionId": self._source_session_id, "turnId": turn.turn_id},
            "restoreMode": None,
            "userId": settings.user_id,
            "orgId": settings.org_id,
            **told,
            "step": self._step,
        }
        self._step += 1
        try:
            self._sessions.records.add_event(sealed(event))
        except StorageError as error:
            logger.warning("storage_error: no event of %s: %s", self._operation_id, error)


def _told(heard: Sequence[Heard]) -> list[dict[str, object]]:
    """Return what came of hooks; what one gave as its reason is its own text, and left out."""
    shown = attrs.filters.exclude(attrs.fields(Heard).reason)
    return [attrs.asdict(each, filter=shown) for each in heard]
