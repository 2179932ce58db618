"""Reads the records of imports."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define

from codex_checkpoints.core.portable.pack_import import Import, import_in
from codex_checkpoints.service.records.operation_records import storing_restore
from codex_checkpoints.storage.records import IMPORTS, Records


@define
class ImportRecords:
    """The records of all imports."""

    _records: Records

    def made(self, session_id: str) -> Import | None:
        """Return the import that made a session, or None; refuses `storage_error`."""
        with storing_restore(session_id):
            found = [*map(import_in, self._records.lines(session_id, IMPORTS))]
        return next((each for each in found if each and each.session_id == session_id), None)

    def all(self) -> Iterator[Import]:
        """Yield every record, by session."""
        for session_id in sorted(self._records.holding(IMPORTS)):
            made = self.made(session_id)
            if made is not None:
                yield made
