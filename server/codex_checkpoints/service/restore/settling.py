"""The end of a restore: told when its branch is there, or by the next start when it was killed.

Before its first event a restore is written down as an undertaking, before its branch appears with
all that there is to tell of it.  So what was cut off is taken back or finished, whichever way it
went, and every operation in the audit ends (AGN-62, AGN-85).  What comes before is `restoring`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from attrs import evolve

from codex_checkpoints.core.restore.events import BranchCreated, RestoreCompleted
from codex_checkpoints.core.restore.records import Restore, Windows
from codex_checkpoints.durable import StorageError
from codex_checkpoints.records import MARKERS, UPDATES
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.reading.fingerprints import fingerprint
from codex_checkpoints.service.restore.log import RestoreLog, hard_events
from codex_checkpoints.service.restore.undertakings import is_import, settle_left, take_back
from codex_checkpoints.service.restore_records import RestoreRecords, Undertaking
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row, UnreadableSource


class RestoreSettling:
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

    def fail(self, branch_id: str, log: RestoreLog, code: str) -> bool:
        """Take back a branch that never came to be, and tell it; return whether nothing is left."""
        gone = False
        with contextlib.suppress(StorageError):
            # Nothing lies beside a branch before it is written down what it will be; an id that
            # was refused since it is taken has another's files.
            written = self._restores.undertaken(branch_id) is not None
            gone = not written or take_back(self._records, branch_id, (MARKERS, UPDATES))
        return log.fail(code) and gone

    def recover(self) -> int:
        """Finish or take back what killed processes left; return how many restores that were.

        One that another process is at stays, and so does what cannot be written now.
        """
        return settle_left(
            self._records, lambda each: not is_import(self._records, each), self._settle
        )

    # --- inside ----------------------------------------------------------------------------------

    def _settle(self, branch_id: str) -> bool:
        """Settle one restore; return whether nothing is left to be done."""
        operation = self._restores.begun(branch_id)
        if operation is None:
            return True  # killed before anything but its name was written
        undertaking = self._restores.undertaken(branch_id)
        told = operation if undertaking is None else undertaking.operation
        log = RestoreLog.resumed(self._records, told, self._now)
        row = None if undertaking is None else self._sessions.catalogue.look_for(branch_id)
        if undertaking is None or row is None:
            return self.fail(branch_id, log, "interrupted")
        self.finish(row, undertaking, log)
        return True
