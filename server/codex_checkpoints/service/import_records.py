"""The records of sessions that were made of portable packs, and the links that they tell of."""

from __future__ import annotations

from collections.abc import Container, Iterator

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.portable.arriving import links_of
from codex_checkpoints.core.portable.records import Import, imports_in, seed_in
from codex_checkpoints.core.restore.chains import Link
from codex_checkpoints.records import IMPORTS, Records
from codex_checkpoints.service.restore_records import storing


class ImportRecords:
    """The records of all imports."""

    def __init__(self, records: Records) -> None:
        """Keep them among these files."""
        self._records = records

    def made(self, session_id: str) -> Import | None:
        """Return how a session was made of a pack, None where it was not.

        Refuses `storage_error`.
        """
        with storing(session_id):
            found = imports_in(self._records.lines(session_id, IMPORTS))
        return next((each for each in found if each.session_id == session_id), None)

    def all(self) -> Iterator[Import]:
        """Yield every record, by session."""
        for session_id in sorted(self._records.holding(IMPORTS)):
            made = self.made(session_id)
            if made is not None:
                yield made

    def links(self, here: Container[str]) -> Iterator[Link]:
        """Yield the links that packs tell of; of sessions that are here only their own (AGN-86).

        A pack is somebody else's word: what it says of a session above must not give a session of
        this home another parent.
        """
        for made in self.all():
            own, *above = links_of(made.pack, made.session_id, made.imported_at, made.operation_id)
            yield own
            for link in above:
                if link.child in here:
                    break
                yield link

    def seed(self, session_id: str) -> Checkpoint | None:
        """Return what a session began with; raises `StorageError`."""
        return seed_in(self._records.lines(session_id, IMPORTS), session_id)
