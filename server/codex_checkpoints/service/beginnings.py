"""What the sessions that we made began with, and which of them others were made from.

Two operations make sessions: a compaction into a new session, and a restore.  Each keeps its own
records; whoever reads a session asks here.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.seed import Seeds
from codex_checkpoints.records import Records
from codex_checkpoints.service.compaction_records import CompactionRecords
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.threads.contract import ThreadStore


def beginnings(records: Records) -> Seeds:
    """Return how to find what a session goes on from (JUN-46, AGN-88)."""
    compactions, restores = CompactionRecords(records), RestoreRecords(records)

    def seed(session_id: str) -> Checkpoint | None:
        found = compactions.seed(session_id)
        return restores.seed(session_id) if found is None else found

    return seed


def is_begun_from(records: Records, store: ThreadStore) -> Callable[[str], bool]:
    """Return how to find out whether a session that is still there was made from another."""
    compactions, restores = CompactionRecords(records), RestoreRecords(records)

    def refers(session_id: str) -> bool:
        if compactions.points_at(session_id):
            return True
        try:
            branches = {
                each.session_id
                for each in restores.of(session_id)
                if each.source_session_id == session_id
            }
        except Refusal:
            return True  # what cannot be read may say so
        return not branches.isdisjoint(store.places())

    return refers
