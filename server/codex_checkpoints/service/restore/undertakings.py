"""What processes that were killed left half made: found by the next start, and brought to an end.

A session of ours, the branch of a restore or what a pack becomes, is written down as an undertaking
before anything of it is there, and stays so until all of it is done or nothing of it is left.  What
its end is, is known to `settling` and `importing`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.durable import StorageError
from codex_checkpoints.records import Records
from codex_checkpoints.service.refusal import Refusal

logger = logging.getLogger(__name__)


def is_import(records: Records, session_id: str) -> bool:
    """Return whether what is being made comes of a pack; raises `StorageError`."""
    return any("import" in object_of(line) for line in records.undertaken(session_id))


def take_back(records: Records, session_id: str, names: Iterable[str]) -> bool:
    """Remove what was put beside a session that never came to be; return whether all is gone.

    As long as it is not, its undertaking has to stay, or nobody would try again.
    """
    kept = [name for name in names if not _is_removed(records, session_id, name)]
    return not kept


def settle_left(
    records: Records, is_mine: Callable[[str], bool], settle: Callable[[str], bool]
) -> int:
    """Settle the undertakings that nobody is at any more; return how many came to their end.

    `settle` returns whether nothing is left to be done.  One that another process is at stays, and
    so does what cannot be written now.
    """
    settled = 0
    for session_id in records.left_undertakings():
        try:
            if not is_mine(session_id):
                continue
            with records.undertaking(session_id, patience=0.0) as journal:
                if settle(session_id):
                    journal.clear()
                    settled += 1
        except (StorageError, Refusal) as error:
            logger.warning("%s is not settled: %s", session_id, error)
    return settled


def _is_removed(records: Records, session_id: str, name: str) -> bool:
    try:
        records.remove(session_id, name)
    except StorageError as error:
        logger.warning("storage_error: %s of %s stays: %s", name, session_id, error)
        return False
    return True
