"""How a compaction is all done or not at all, wherever it is cut off (JUN-26).

It is written down as *prepared* with its source before anything changes, and as done when all of it
stands; in between there is one step that installs.  A process that is killed before that step has
changed nothing that counts; one that is killed behind it has done everything but to say so.  Which
of the two it was shows in whether the new session, or the new window, is there.

Whoever installs holds the right to write to the records of the source until the end, so nobody
settles what another is still at.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Sequence

from codex_checkpoints.core.compaction.records import (
    Installed,
    Prepared,
    Record,
    Undone,
    unsettled,
)
from codex_checkpoints.durable import StorageError
from codex_checkpoints.service.compaction_records import CompactionRecords, Shelf
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row, UnreadableSource

logger = logging.getLogger(__name__)


class CompactionSettling:
    """The records of compactions while they come about."""

    def __init__(self, sessions: Sessions) -> None:
        """Work on the records of these sessions."""
        self._catalogue = sessions.catalogue
        self._records: CompactionRecords = sessions.compactions

    def recover(self) -> None:
        """Finish or take back what a process that was killed had begun."""
        for session_id in sorted(self._records.holders()):
            try:
                if unsettled(self._records.of(session_id)) is not None:
                    with self._records.shelf(session_id) as shelf:
                        self.settle(shelf)
            except StorageError as error:
                # Another one is at it right now, or the next start may do it.
                logger.warning("storage_error: compactions of %s: %s", session_id, error)

    @contextlib.contextmanager
    def installing(self, shelf: Shelf, record: Installed | Undone) -> Generator[None]:
        """Prepare a record, have the block install, and add it; settle however the block ends."""
        self.settle(shelf)
        shelf.add(Prepared(record))
        try:
            yield
        except BaseException:
            with contextlib.suppress(StorageError):
                self.settle(shelf)
            raise
        shelf.settle(done=True)

    def settle(self, shelf: Shelf) -> None:
        """End what was prepared and left; raises `StorageError`."""
        record = unsettled(shelf.records)
        if record is None:
            return
        done = self._has_happened(record, shelf.records)
        if not done and isinstance(record, Installed) and record.into == "new":
            self._records.forget(record.session_id)
        shelf.settle(done=done)

    def _has_happened(self, record: Installed | Undone, records: Sequence[Record]) -> bool:
        """Return whether a session was published, or a window opened, as a record says."""
        match record:
            case Installed(into="new"):
                return self._catalogue.look_for(record.session_id) is not None
            case Installed():
                of, window = record, record.windows.after.current
            case Undone():
                of = _undone(record, records)
                window = None if record.window is None else record.window.current
        if of is None or window is None:
            return False
        row = self._catalogue.look_for(of.source.session_id)
        return row is not None and self._opens(row, of.source.bytes_before, window)

    def _opens(self, row: Row, start: int, window_id: str) -> bool:
        """Return whether a window was opened behind a place of a rollout."""
        needle = f'"window_id":"{window_id}"'.encode()
        found = False

        def feed(data: bytes) -> int:
            nonlocal found
            found = found or needle in data
            return max(0, len(data) - len(needle))

        try:
            _, rest = self._catalogue.reader.read(row.path, start, feed)
        except UnreadableSource:
            return False
        return found or needle in rest


def _undone(record: Undone, records: Sequence[Record]) -> Installed | None:
    """Return the compaction that a record takes back."""
    made = (each for each in records if isinstance(each, Installed))
    return next((each for each in made if each.compaction_id == record.compaction_id), None)
