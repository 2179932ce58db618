"""A portable pack made a session of this home: listed, resumable, with what the other one knew.

Everything is read and judged before anything is written (`import_plan`).  Then, as in a restore:
what is to come is written down as an undertaking, the record with the pack and the markers are put
beside the session to be, the session file is published whole, and the audit is told.  The next
start takes back or finishes what was cut off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from codex_checkpoints.codex import resume
from codex_checkpoints.core.portable.arriving import Arrived, arrived, files_of, shelf_lines
from codex_checkpoints.core.portable.pack import Pack
from codex_checkpoints.core.portable.records import Import, line_of
from codex_checkpoints.core.restore.pack import tokens_of
from codex_checkpoints.core.restore.sealing import sealed
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.journal import StorageError
from codex_checkpoints.records import IMPORTS, MARKERS, Records
from codex_checkpoints.service.import_records import ImportRecords
from codex_checkpoints.service.portable.import_plan import ImportPlan, plan_import, thread_of
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore.undertakings import is_import, settle_left, take_back
from codex_checkpoints.service.restore_records import storing
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.values import frozen

logger = logging.getLogger(__name__)

IMPORTED = "PackImported"
"""The event of an import that is done."""

_BESIDE = (IMPORTS, MARKERS)
"""What is put beside a session before it is published."""


@frozen
class Imported:
    """What came of a pack, or would: a preview has neither ids nor a time."""

    operation_id: str
    session_id: str
    imported_at: str
    name: str
    cwd: str
    digest: str
    pack: Pack
    arrived: Arrived
    handoff: str
    dry_run: bool

    @property
    def handoff_tokens(self) -> int:
        """Return what the handoff costs, by our estimate."""
        return tokens_of(self.handoff)

    @property
    def resume(self) -> str | None:
        """Return the shell command that goes on with the session."""
        return None if self.dry_run else resume(self.session_id)


class Importing:
    """Makes sessions of packs; the time and new ids come from outside."""

    def __init__(
        self, sessions: Sessions, now: Callable[[], str], new_id: Callable[[], str]
    ) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._now = now
        self._new_id = new_id
        self._imports = ImportRecords(sessions.records)

    def preview(self, file: str, cwd: str) -> Imported:
        """Say what would come of a pack; nothing is written.  Refuses as `make`."""
        return _told(plan_import(self._sessions, file, cwd), None)

    def make(self, file: str, cwd: str) -> Imported:
        """Make a session of a pack, for the folder `cwd`; it is ready for Codex on return.

        Refuses `invalid_payload`, `limit_exceeded` and `policy_text` for a file that is no sound
        pack, `conflict` where this pack came in already, `storage_error`; then nothing was written.
        """
        plan = plan_import(self._sessions, file, cwd)
        operation_id, session_id, at = self._new_id(), self._new_id(), self._now()
        if session_id in self._sessions.catalogue.current():
            message = f"session {session_id} exists already"
            raise Refusal("conflict", message, {"sessionId": session_id, "reason": "exists"})
        new, windows = thread_of(plan, session_id, at, self._new_id)
        source = plan.pack.origin.session_id
        made = Import(
            operation_id, session_id, source, at, plan.digest, windows, plan.seed, plan.pack
        )
        self._sessions.pace.commit()
        with storing(session_id), self._records.undertaking(session_id) as journal:
            journal.append({"import": {"operationId": operation_id}})
            try:
                self._write(made)
                self._sessions.threads.create(new, datetime.fromisoformat(at))
            except (StorageError, Refusal):
                if take_back(self._records, session_id, _BESIDE):
                    journal.clear()
                raise
            try:
                self._tell(made)
                journal.clear()
            except StorageError as error:
                # The session is there, whole; what is left is told by the next start.
                logger.warning("import of %s is told later: %s", session_id, error)
        return _told(plan, made)

    def recover(self) -> int:
        """Finish or take back what killed processes left; return how many imports that were."""
        return settle_left(self._records, lambda each: is_import(self._records, each), self._settle)

    # --- inside ----------------------------------------------------------------------------------

    def _write(self, made: Import) -> None:
        with self._records.journal(made.session_id, IMPORTS) as journal:
            journal.append(line_of(made))
        lines = shelf_lines(made.pack, made.imported_at)
        if lines:
            with self._records.journal(made.session_id, MARKERS) as journal:
                for line in lines:
                    journal.append(line)

    def _tell(self, made: Import) -> None:
        """Tell the audit, once; raises `StorageError`."""
        for line in self._records.events():
            told = object_of(line)
            if (told.get("type"), told.get("operationId")) == (IMPORTED, made.operation_id):
                return
        settings, checkpoint = self._sessions.settings, made.seed
        event = {
            "type": IMPORTED,
            "at": self._now(),
            "operationId": made.operation_id,
            "sessionId": made.session_id,
            "sourceSessionId": made.source_session_id,
            "checkpointId": None,
            "sourceTurn": None,
            "restoreMode": None,
            "userId": settings.user_id,
            "orgId": settings.org_id,
            "packDigest": made.pack_digest,
            "notes": len(checkpoint.facts) + len(checkpoint.decisions),
            "files": len(files_of(made.pack)),
            "markers": len(made.pack.markers),
        }
        self._records.add_event(sealed(event))

    def _settle(self, session_id: str) -> bool:
        """Settle one import; return whether nothing is left to be done."""
        made = self._imports.made(session_id)
        if made is None or self._sessions.catalogue.look_for(session_id) is None:
            return take_back(self._records, session_id, _BESIDE)
        self._tell(made)
        return True

    @property
    def _records(self) -> Records:
        return self._sessions.records


def _told(plan: ImportPlan, made: Import | None) -> Imported:
    return Imported(
        "" if made is None else made.operation_id,
        "" if made is None else made.session_id,
        "" if made is None else made.imported_at,
        plan.name,
        plan.cwd,
        plan.digest,
        plan.pack,
        arrived(plan.pack, plan.seed),
        plan.handoff,
        dry_run=made is None,
    )
