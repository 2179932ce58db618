"""What the sessions that we made began with, and which of them others were made from.

Three operations make sessions: a compaction into a new session, a restore, and the import of a
portable pack.  Each keeps its own records; whoever reads a session asks here.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.state import Seeds
from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.durable import StorageError
from codex_checkpoints.records import IMPORTS, Records
from codex_checkpoints.service.compaction_records import CompactionRecords, storing
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.threads.contract import ThreadStore, UnreadableSource


def beginnings(records: Records) -> Seeds:
    """Return how to find what a session goes on from (JUN-46, AGN-88)."""
    kept = CompactionRecords(records), RestoreRecords(records)

    def seed(session_id: str) -> Checkpoint | None:
        try:
            found = (each.seed(session_id) for each in kept)
            return next((each for each in found if each is not None), None) or imported(session_id)
        except StorageError as error:
            reason = f"its record of how it began cannot be read: {error}"
            raise UnreadableSource(reason) from error

    def imported(session_id: str) -> Checkpoint | None:
        if records.look(session_id, IMPORTS) is None:
            return None
        # Few sessions came in a pack, and Codex waits for what is loaded here.
        from codex_checkpoints.service.import_records import ImportRecords  # noqa: PLC0415

        return ImportRecords(records).seed(session_id)

    return seed


def went_on_from(records: Records, session_id: str) -> tuple[str, int | None] | None:
    """Return the session that one of ours was made of, None where it was made of none.

    Beside it stands how far what was noted there is in its seed alone; None where it has its own
    copy.  Refuses `storage_error`.
    """
    restored = RestoreRecords(records).made(session_id)
    if restored is not None:
        seed = restored.seed if restored.mode == "hard" else None
        return restored.source_session_id, None if seed is None else seed.seq
    with storing(session_id):
        compactions = CompactionRecords(records).of(session_id)
    for each in compactions:
        if isinstance(each, Installed) and (each.into, each.session_id) == ("new", session_id):
            return each.source.session_id, each.source.to_seq
    return None


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
