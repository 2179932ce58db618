"""The end of a restore: told when its branch is there, or by the next start when it was killed.

Before its first event a restore is written down as an undertaking, before its branch appears with
all that there is to tell of it.  So what was cut off is taken back or finished, whichever way it
went, and every operation in the audit ends (AGN-62, AGN-85).  What comes before is `restoring`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from attrs import evolve

from codex_checkpoints.core.restore.events import BranchCreated, RestoreCompleted
from codex_checkpoints.core.restore.records import Restore, Windows
from codex_checkpoints.journal import StorageError
from codex_checkpoints.records import MARKERS, UPDATES
from codex_checkpoints.service.fingerprints import fingerprint
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_log import RestoreLog, hard_events
from codex_checkpoints.service.restore_records import RestoreRecords, Undertaking, is_import
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row, UnreadableSource

logger = logging.getLogger(__name__)


class Settling:
    """Completes restores, and takes back those that came to nothing."""

    def __init__(
        self, sessions: Sessions, restores: RestoreRecords, now: Callable[[], str]
    ) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._restores = restores
        self._now = now
        self._records = sessions.records

    def finish(self, row: Row, undertaking: Undertaking, log: RestoreLog) -> Restore:
        """Complete the record of a branch that is published, and tell it; done twice is as once.

        Raises `StorageError`; refuses `storage_error`.
        """
        reader = self._sessions.catalogue.reader
        try:
            digest, size = fingerprint(reader, row.path)
        except UnreadableSource as error:
            raise StorageError(str(error)) from error
        record = evolve(undertaking.record, branch_digest=digest, branch_bytes=size)
        hard = record.mode == "hard"
        if not hard:
            windows = Histories(self._sessions).windows(row.path)
            first, current = windows[0].window_id, windows[-1].window_id
            record = evolve(record, windows=Windows(record.windows.source, first, current))
        self._restores.give(record.session_id, record)
        self._restores.give(record.source_session_id, record)
        log.add(BranchCreated(record.placement or ("seed" if hard else "copy"), size, digest))
        log.add(undertaking.transferred)
        if hard:
            log.add_all(hard_events(record))
        log.add(
            RestoreCompleted(
                record.context_reset,
                record.tokens.before,
                record.tokens.after,
                tuple(caution.code for caution in record.warnings),
            )
        )
        return record

    def take_back(self, branch_id: str) -> None:
        """Remove what was put beside a branch that never came to be."""
        for name in (MARKERS, UPDATES):
            try:
                self._records.remove(branch_id, name)
            except StorageError as error:
                logger.warning("storage_error: %s of %s stays: %s", name, branch_id, error)

    def recover(self) -> int:
        """Finish or take back what killed processes left; return how many restores that were.

        One that another process is at stays, and so does what cannot be written now.
        """
        settled = 0
        for branch_id in self._records.left_undertakings():
            try:
                if is_import(self._records, branch_id):
                    continue
                with self._records.undertaking(branch_id, patience=0.0) as journal:
                    self._settle(branch_id)
                    journal.clear()
                    settled += 1
            except (StorageError, Refusal) as error:
                logger.warning("restore of %s is not settled: %s", branch_id, error)
        return settled

    def _settle(self, branch_id: str) -> None:
        operation = self._restores.begun(branch_id)
        if operation is None:
            return  # killed before anything but its name was written
        undertaking = self._restores.undertaken(branch_id)
        if undertaking is None:
            _fail(RestoreLog.resumed(self._records, operation, self._now))
            return
        log = RestoreLog.resumed(self._records, undertaking.operation, self._now)
        row = self._sessions.catalogue.look_for(branch_id)
        if row is None:
            self.take_back(branch_id)
            _fail(log)
        else:
            self.finish(row, undertaking, log)


def _fail(log: RestoreLog) -> None:
    if not log.fail("interrupted"):
        raise StorageError("its end cannot be told")
