"""What a list says of a session beyond its own row: its markers, its branches, what made it.

A list asks for every row, and again after each change, so it is answered from the index and from
what was read once.  What the branches are is told by `branches`, a session at a time.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.durable import StorageError
from codex_checkpoints.records import IMPORTS, MARKERS, RESTORES, Look, Records
from codex_checkpoints.service.reading.catalogue import Catalogue
from codex_checkpoints.threads.contract import Row

logger = logging.getLogger(__name__)

MadeBy = Literal["restore", "compaction", "import"]
"""The operations of ours that make sessions."""

_OURS = "codex-checkpoints"


class Tallies:
    """The counts of one home's sessions; owned by one thread."""

    def __init__(self, catalogue: Catalogue, records: Records) -> None:
        """Ask these; nothing is read yet."""
        self._catalogue = catalogue
        self._records = records
        self._markers: dict[str, tuple[Look, int]] = {}
        self._made: dict[str, MadeBy] = {}

    def branches(self) -> Mapping[str, int]:
        """Return how many sessions here came of each (AGN-17)."""
        sources = map(source_of, self._catalogue.current().values())
        return Counter(source for source in sources if source is not None)

    def markers(self, session_id: str) -> int:
        """Return how many markers a session has; a file that has not changed is read once."""
        look = self._records.look(session_id, MARKERS)
        if look is None:
            return 0
        known = self._markers.get(session_id)
        if known is None or known[0] != look:
            known = self._markers[session_id] = look, self._count(session_id)
        return known[1]

    def made_by(self, row: Row) -> MadeBy | None:
        """Return which operation of ours made a session, which never changes; None where none."""
        if row.originator != _OURS or row.scratch:
            return None
        made = self._made.get(row.session_id)
        if made is None:
            made = self._made[row.session_id] = self._operation(row.session_id)
        return made

    def _operation(self, session_id: str) -> MadeBy:
        """Find it by the record beside what it made; a branch may be compacted later."""
        restores = map(object_of, self._lines(session_id, RESTORES))
        if any(restore.get("sessionId") == session_id for restore in restores):
            return "restore"
        imported = self._records.look(session_id, IMPORTS) is not None
        return "import" if imported else "compaction"

    def _count(self, session_id: str) -> int:
        from codex_checkpoints.core.restore.markers import shelf_of  # noqa: PLC0415 - few have any

        return len(shelf_of(self._lines(session_id, MARKERS)).markers)

    def _lines(self, session_id: str, name: str) -> Iterator[object]:
        """Yield the lines of a file; what cannot be read keeps nobody from the list."""
        try:
            yield from self._records.lines(session_id, name)
        except StorageError as error:
            logger.warning("storage_error: %s of %s: %s", name, session_id, error)


def source_of(row: Row) -> str | None:
    """Return the session that one is a branch of.

    A subagent is no branch, but part of the work, and in a scratch fork nobody works.
    """
    return None if row.scratch or row.parent_session is not None else row.forked_from
