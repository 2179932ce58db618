"""A portable pack made a session of this home: listed, resumable, with what the other one knew.

Everything is read and judged before anything is written.  Then, as in a restore: what is to come is
written down as an undertaking, the record with the pack and the markers are put beside the session
to be, the session file is published whole, and the audit is told.  The next start takes back or
finishes what was cut off.  The new session begins with the handoff of its checkpoint; its hashes
are those of the files in the folder it is made for, seen now (`core/portable/arriving`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import datetime

from attrs import frozen

from codex_checkpoints import pack_file
from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.how_to import bundle, handoff
from codex_checkpoints.core.compaction.installed import Moment, Naming, new_session, source_of
from codex_checkpoints.core.portable.arriving import (
    Arrived,
    arrived,
    files_of,
    seed_of,
    shelf_lines,
)
from codex_checkpoints.core.portable.pack import MAX_BYTES, Pack
from codex_checkpoints.core.portable.reading import BadPack, pack_in
from codex_checkpoints.core.portable.records import Import, line_of
from codex_checkpoints.core.restore.pack import tokens_of
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.restore.sealing import digest_of, sealed
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.journal import StorageError
from codex_checkpoints.records import IMPORTS, MARKERS, Records
from codex_checkpoints.service.import_records import ImportRecords
from codex_checkpoints.service.pace import paced_hashes
from codex_checkpoints.service.refusal import Refusal, misfit
from codex_checkpoints.service.restore_records import is_import, storing
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Item, NewThread

logger = logging.getLogger(__name__)

IMPORTED = "PackImported"
"""The event of an import that is done."""


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
        return None if self.dry_run else f"codex resume {self.session_id}"


@frozen
class _Read:
    """A pack that may come in, and what it would be here."""

    pack: Pack
    digest: str
    cwd: str
    seed: Checkpoint
    handoff: str
    name: str


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
        return _told(self._read(file, cwd), None)

    def make(self, file: str, cwd: str) -> Imported:
        """Make a session of a pack, for the folder `cwd`; it is ready for Codex on return.

        Refuses `invalid_payload`, `limit_exceeded` and `policy_text` for a file that is no sound
        pack, `conflict` where this pack came in already, `storage_error`; then nothing was written.
        """
        read = self._read(file, cwd)
        operation_id, session_id, at = self._new_id(), self._new_id(), self._now()
        if session_id in self._sessions.catalogue.current():
            message = f"session {session_id} exists already"
            raise Refusal("conflict", message, {"sessionId": session_id, "reason": "exists"})
        new, windows = self._thread(read, session_id, at)
        source = read.pack.origin.session_id
        made = Import(
            operation_id, session_id, source, at, read.digest, windows, read.seed, read.pack
        )
        self._sessions.pace.commit()
        with storing(session_id), self._records.undertaking(session_id) as journal:
            journal.append({"import": {"operationId": operation_id}})
            try:
                self._write(made)
                self._sessions.threads.create(new, datetime.fromisoformat(at))
            except (StorageError, Refusal):
                self._take_back(session_id)
                journal.clear()
                raise
            try:
                self._tell(made)
                journal.clear()
            except StorageError as error:
                # The session is there, whole; what is left is told by the next start.
                logger.warning("import of %s is told later: %s", session_id, error)
        return _told(read, made)

    def recover(self) -> int:
        """Finish or take back what killed processes left; return how many imports that were."""
        settled = 0
        for session_id in self._records.left_undertakings():
            try:
                if not is_import(self._records, session_id):
                    continue
                with self._records.undertaking(session_id, patience=0.0) as journal:
                    self._settle(session_id)
                    journal.clear()
                    settled += 1
            except (StorageError, Refusal) as error:
                logger.warning("import of %s is not settled: %s", session_id, error)
        return settled

    # --- inside ----------------------------------------------------------------------------------

    def _read(self, file: str, cwd: str) -> _Read:
        """Read and judge a pack; nothing of it is in this home yet.  Raises `Cancelled`."""
        sessions = self._sessions
        folder = os.path.abspath(cwd)
        if not os.path.isdir(folder):
            raise misfit("cwd: must be a folder that is there")
        data = _bytes_of(file)
        sessions.pace.step()
        try:
            pack = pack_in(data)
        except BadPack as error:
            message = f"this pack is refused: {error}"
            raise Refusal(error.code, message, {"problems": list(error.problems)}) from error
        digest = digest_of(data)
        self._refuse_twice(digest)
        hashes = paced_hashes(sessions.pace, sessions.workspace, folder, files_of(pack))
        seed = seed_of(pack, hashes)
        caps = sessions.settings.caps_for(pack.origin.model)
        text = bundle(view_v1(seed, caps))
        return _Read(pack, digest, folder, seed, text, _name_of(pack))

    def _refuse_twice(self, digest: str) -> None:
        there = self._sessions.catalogue.current()
        for made in self._imports.all():
            self._sessions.pace.step()
            if made.pack_digest == digest and made.session_id in there:
                message = f"this pack is here already, as session {made.session_id}"
                facts = {"sessionId": made.session_id, "reason": "imported"}
                raise Refusal("conflict", message, facts)

    def _thread(self, read: _Read, session_id: str, at: str) -> tuple[NewThread, Windows]:
        """Return the session file to be made, and its windows (WIN-13).

        It names neither a source, which is not here, nor a provider of models: Codex takes the one
        that it is set to here.
        """
        origin = read.pack.origin
        head = {"cli_version": origin.cli_version, "source": "cli"}
        source = source_of("", read.cwd, head | {"history_mode": origin.history_mode}, None)
        moment = Moment(at, int(datetime.fromisoformat(at).timestamp() * 1000))
        naming = Naming(read.name, self._new_id(), self._new_id())
        ids = (session_id, self._new_id(), self._new_id())
        items = (handoff(view_of(read.handoff)),)
        made = new_session(items, source, naming, moment, ids)
        meta = {key: each for key, each in made.meta.items() if key != "forked_from_id"}
        lines = tuple(Item(line.type, line.payload) for line in made.lines)
        return NewThread(meta, lines), Windows(None, made.chain.first, made.chain.current)

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

    def _settle(self, session_id: str) -> None:
        made = self._imports.made(session_id)
        if made is None or self._sessions.catalogue.look_for(session_id) is None:
            self._take_back(session_id)
        else:
            self._tell(made)

    def _take_back(self, session_id: str) -> None:
        """Remove what was put beside a session that never came to be."""
        for name in (IMPORTS, MARKERS):
            try:
                self._records.remove(session_id, name)
            except StorageError as error:
                logger.warning("storage_error: %s of %s stays: %s", name, session_id, error)

    @property
    def _records(self) -> Records:
        return self._sessions.records


def view_of(text: str) -> str:
    """Return the view inside a handoff."""
    return text.partition("\n\n")[2]


def _bytes_of(file: str) -> bytes:
    if not os.path.isabs(file) or "\0" in file:
        raise misfit("file: must be a whole path")
    try:
        return pack_file.read(file, MAX_BYTES)
    except pack_file.TooLarge as error:
        message = f"{file} has more than {MAX_BYTES} bytes"
        raise Refusal("limit_exceeded", message, {"file": file, "limit": MAX_BYTES}) from error
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"{file} cannot be read: {reason}"
        raise Refusal("unreadable_source", message, {"file": file, "reason": reason}) from error


def _name_of(pack: Pack) -> str:
    """Return how the session is called in lists: by its name, else by its task."""
    task = pack.checkpoint.task
    name = pack.origin.name or ("" if task is None else task.text)
    return value(name, MAX_VALUE_CHARS) or "Imported session"


def _told(read: _Read, made: Import | None) -> Imported:
    return Imported(
        "" if made is None else made.operation_id,
        "" if made is None else made.session_id,
        "" if made is None else made.imported_at,
        read.name,
        read.cwd,
        read.digest,
        read.pack,
        arrived(read.pack, read.seed),
        read.handoff,
        dry_run=made is None,
    )
