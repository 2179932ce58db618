"""The events of one restore, told to the audit in their order (AGN-61, AGN-69).

What an event says is known to `core.restore.events`; when which one is told, to `restoring`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from codex_checkpoints.core.restore import events
from codex_checkpoints.core.restore.events import (
    Event,
    LLMChainReset,
    Operation,
    PackTruncated,
    RestoreFailed,
    RestoreRequested,
    StatePackPrepared,
    type_of,
)
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.records import Records
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import storing

logger = logging.getLogger(__name__)


class RestoreLog:
    """The events of one restore, numbered."""

    def __init__(self, records: Records, operation: Operation, now: Callable[[], str]) -> None:
        """Begin with none told."""
        self.operation = operation
        self._records = records
        self._now = now
        self._step = 0
        self._ended = False
        self._told: set[str] = set()

    @classmethod
    def resumed(cls, records: Records, operation: Operation, now: Callable[[], str]) -> RestoreLog:
        """Go on behind the events that are there; what was told is not told again."""
        log = cls(records, operation, now)
        for line in records.events():
            event = object_of(line)
            if event.get("operationId") == operation.operation_id:
                log._step += 1
                log._told.add(str(event.get("type")))
        return log

    def add(self, event: Event) -> None:
        """Tell an event; refuses `storage_error`."""
        if type_of(event) in self._told:
            return
        line = events.line_of(self.operation, event, step=self._step, at=self._now())
        with storing(self.operation.source_session_id):
            self._records.add_event(line)
        self._step += 1

    def add_all(self, several: Iterable[Event]) -> None:
        """Tell several events."""
        for event in several:
            self.add(event)

    def fail(self, code: str) -> bool:
        """Tell the end of what was begun; return whether nothing is left to be told."""
        self._ended = True
        if self._step == 0:
            return True
        try:
            self.add(RestoreFailed(code))
        except Refusal as refusal:
            logger.warning("storage_error: %s", refusal.message)
            return False
        return True

    def end(self, asked: RestoreRequested, code: str) -> None:
        """Tell of a restore that could not even be begun, unless it has its end already."""
        if self._ended:
            return
        try:
            self.add(asked)
        except Refusal as refusal:
            logger.warning("storage_error: %s", refusal.message)
        self.fail(code)


def hard_events(record: Restore) -> tuple[Event, ...]:
    """Return what is told of a hard restore alone, in its order (AGN-61)."""
    figures, windows = record.pack, record.windows
    if figures is None:
        return ()
    left = sum(item.reason == "budget" for item in record.deferred)
    included, deferred = len(record.included), len(record.deferred)
    prepared = StatePackPrepared(figures.digest, figures.tokens, figures.budget, included, deferred)
    cut = (PackTruncated(figures.budget, included, left),) if left else ()
    reset = LLMChainReset(windows.current or "", windows.first or "", windows.source)
    return (prepared, *cut, reset)
