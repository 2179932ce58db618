"""Finishes or rolls back the unfinished operations of killed processes."""

from __future__ import annotations

import logging

from codex_checkpoints.core.fields import Json, object_of
from codex_checkpoints.service.compaction.install import reopened as compaction
from codex_checkpoints.service.connect.codex_config import reopened as connection
from codex_checkpoints.service.files.writes import reopened as files
from codex_checkpoints.service.operation import INTERRUPTED, PendingOperation, settle
from codex_checkpoints.service.packs import reopened_export, reopened_import
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.remote.pull import reopened_pull
from codex_checkpoints.service.restore.restore import reopened as restore
from codex_checkpoints.service.sessions.deletion import reopened as deletion
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.atomic_files import StorageError

logger = logging.getLogger(__name__)


def recover(sessions: Sessions) -> int:
    """Settle all unfinished operations that no process runs; return the number of settled ones."""
    records, count = sessions.records, 0
    for name in records.unfinished_operations():
        try:
            with records.operation_journal(name, patience=0.0) as journal:
                written: dict[str, object] = {}
                for line in records.operation_lines(name):
                    written |= object_of(line)
                work = _reopened(sessions, name, written)
                if work is None:  # only its name was written
                    journal.clear()
                count += work is None or settle(name, journal, work, INTERRUPTED)
        except (StorageError, Refusal) as error:
            logger.warning("cannot settle %s: %s", name, error)
    return count


def _reopened(sessions: Sessions, name: str, written: Json) -> PendingOperation | None:
    if "import" in written:
        return reopened_import(sessions, name)
    if "pull" in written:
        return reopened_pull(sessions, name)
    if "compaction" in written:
        return compaction(sessions, written)
    if "export" in written:
        return reopened_export(sessions, written)
    if "connect" in written:
        return connection(sessions.records, sessions.catalogue.store.place, written)
    if "files" in written:
        return files(sessions, written)
    if "delete" in written:
        return deletion(sessions, written)
    return restore(sessions, name)
