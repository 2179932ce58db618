"""Checkpoints of sessions: made of what was read of one, with what it remembers, and stored.

Which session is meant is known to `session_names`, what is shown of its checkpoint to `sessions`.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints.core.checkpoint import canonical
from codex_checkpoints.core.checkpoint.caps import Caps
from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.durable import StorageError
from codex_checkpoints.records import Records
from codex_checkpoints.service.reading.catalogue import Catalogue
from codex_checkpoints.service.reading.inheritance import inherited
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.turn_names import end_of, find_turn
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.values import frozen
from codex_checkpoints.workspace import Workspace


@frozen
class Projection:
    """A checkpoint, its bytes, and what became of its file.

    `stored` is where it lies, `None` where it was not to be stored; `changed` says whether its
    bytes had to be written; `storage_problem` is the system's reason when they could not be.
    """

    session_id: str
    checkpoint: Checkpoint
    data: bytes
    stored: str | None = None
    changed: bool = False
    storage_problem: str | None = None


@frozen
class View:
    """The view of a session, the caps it was made with, and the checkpoint it shows."""

    text: str
    caps: Caps
    of: Projection


class Projections:
    """Makes the checkpoints of the sessions of one home."""

    def __init__(self, catalogue: Catalogue, records: Records, workspace: Workspace) -> None:
        """Work on these; nothing is read yet."""
        self._catalogue = catalogue
        self._records = records
        self._workspace = workspace
        self.storage_problem: str | None = None
        """Why the last checkpoint that was to be stored could not be."""

    def current(self, opened: SessionFile) -> Checkpoint:
        """Return the checkpoint of a session as it was read, with the hashes of now."""
        return self._known(opened, opened.now(), None)

    def keep(self, row: Row, opened: SessionFile) -> Projection:
        """Project a session and store the checkpoint if its bytes changed."""
        checkpoint = self.current(opened)
        data = canonical.to_bytes(checkpoint)
        if not self._catalogue.is_current(row):
            # A file from elsewhere, or an older segment: the session's checkpoint is another's.
            return Projection(row.session_id, checkpoint, data)
        path = self._records.checkpoint_path(row.session_id, row.path)
        try:
            changed = self._records.write_checkpoint(row.session_id, row.path, data)
        except StorageError as error:
            if self.storage_problem != str(error):  # once, not for every session
                import logging  # noqa: PLC0415 - rarely needed, and slow to load

                log = logging.getLogger(__name__)
                log.warning("storage_error: %s cannot be stored: %s", path, error)
            self.storage_problem = str(error)
            return Projection(row.session_id, checkpoint, data, storage_problem=str(error))
        if changed:
            self.storage_problem = None
        return Projection(row.session_id, checkpoint, data, path, changed)

    def at(self, row: Row, opened: SessionFile, turn: str | int) -> Projection:
        """Return the checkpoint at the end of a turn; it is not stored."""
        replay = opened.now()
        found = find_turn(replay, turn, row.session_id)
        until = end_of(found, replay.state.turns.turns)
        if until is None:
            at, seq = replay, None
        else:
            at = self._catalogue.read(row, until).now()
            seq = at.seq
        checkpoint = self._known(opened, at, seq)
        return Projection(row.session_id, checkpoint, canonical.to_bytes(checkpoint))

    def updates(self, session_id: str) -> tuple[Update, ...]:
        """Return what was accepted in a session itself; raise `storage_error` when that fails."""
        try:
            return self._records.updates(session_id)
        except StorageError as error:
            message = f"the accepted updates of {session_id} cannot be read: {error}"
            facts = {"sessionId": session_id, "reason": str(error)}
            raise Refusal("storage_error", message, facts) from error

    def updates_of(self, opened: SessionFile) -> tuple[Update, ...]:
        """Return what a session remembers: what it inherits, then its own; raises as `updates`."""
        locate = self._catalogue.chains.locator(opened.path)
        return (*inherited(opened, locate, self.updates), *self.updates(opened.session_id))

    def project(self, replay: Replay, updates: Iterable[Update]) -> Checkpoint:
        """Return a checkpoint with the hashes of now; nothing is stored."""
        hashes = self._workspace.hashes(replay.state.base, replay.files())
        return replay.checkpoint(updates, hashes)

    # --- inside ----------------------------------------------------------------------------------

    def _known(self, opened: SessionFile, replay: Replay, seq: int | None) -> Checkpoint:
        """Project with the updates accepted up to `seq`, or all; the hashes are those of now."""
        updates = self.updates_of(opened)
        if seq is not None:
            updates = tuple(update for update in updates if update.seq <= seq)
        return self.project(replay, updates)
