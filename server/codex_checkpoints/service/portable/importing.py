"""Import a portable pack as a session that can be listed and resumed.

The pack is validated before anything is written; then the session is made as an `undertaking`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

from codex_checkpoints.core.audit import digest_of
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, Checkpoint
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.handoff import bundle, handoff
from codex_checkpoints.core.compaction.installed import (
    Naming,
    SourceSession,
    moment_of,
    new_session,
)
from codex_checkpoints.core.portable.pack import MAX_BYTES, Pack
from codex_checkpoints.core.portable.reading import (
    BadPack,
    Import,
    files_of,
    line_of,
    marker_lines,
    pack_in,
    seed_of,
)
from codex_checkpoints.core.restore.events import event_of
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.service.kept import ImportRecords, storing_restore
from codex_checkpoints.service.reading.pace import paced_hashes
from codex_checkpoints.service.refusal import Refusal, misfit
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.undertaking import (
    added,
    close,
    operation_of,
    removed,
    undertaking,
)
from codex_checkpoints.storage import durable
from codex_checkpoints.storage.contract import Item, NewThread
from codex_checkpoints.storage.records import IMPORTS, MARKERS
from codex_checkpoints.values import define, frozen


@frozen
class ImportPlan:
    """A validated pack, and the session it becomes."""

    pack: Pack
    digest: str
    cwd: str
    seed: Checkpoint
    handoff: str
    name: str


def plan_import(sessions: Sessions, file: str, cwd: str) -> ImportPlan:
    """Read and validate a pack; write nothing.

    Refuses `invalid_payload`, `limit_exceeded`, `policy_text`, `unreadable_source`, and `conflict`
    where this pack was imported already. Raises `Cancelled`.
    """
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
    _refuse_twice(sessions, digest)
    hashes = paced_hashes(sessions.pace, sessions.workspace, folder, files_of(pack))
    seed = seed_of(pack, hashes)
    caps = sessions.settings.caps_for(pack.origin.model)
    text = bundle(view_v1(seed, caps))
    return ImportPlan(pack, digest, folder, seed, text, _name_of(pack))


def thread_of(
    plan: ImportPlan, session_id: str, at: str, new_id: Callable[[], str]
) -> tuple[NewThread, Windows]:
    """Return the session file to create, and its windows (WIN-13).

    It names no source, which is not here, and no provider of models: Codex takes its own setting.
    """
    origin = plan.pack.origin
    head = {"cli_version": origin.cli_version, "source": "cli"}
    source = SourceSession("", plan.cwd, head | {"history_mode": origin.history_mode}, None)
    naming = Naming(plan.name, new_id(), new_id())
    ids = (session_id, new_id(), new_id())
    items = (handoff(plan.handoff.partition("\n\n")[2]),)
    made = new_session(items, source, naming, moment_of(at), ids)
    meta = {key: each for key, each in made.meta.items() if key != "forked_from_id"}
    lines = tuple(Item(line.type, line.payload) for line in made.lines)
    return NewThread(meta, lines), Windows(None, made.chain.first, made.chain.current)


def _refuse_twice(sessions: Sessions, digest: str) -> None:
    there = sessions.catalogue.current()
    for made in ImportRecords(sessions.records).all():
        sessions.pace.step()
        if made.pack_digest == digest and made.session_id in there:
            message = f"this pack is here already, as session {made.session_id}"
            facts = {"sessionId": made.session_id, "reason": "imported"}
            raise Refusal("conflict", message, facts)


def _bytes_of(file: str) -> bytes:
    if not os.path.isabs(file) or "\0" in file:
        raise misfit("file: must be a whole path")
    try:
        return durable.read(file, MAX_BYTES)
    except durable.TooLarge as error:
        message = f"{file} has more than {MAX_BYTES} bytes"
        raise Refusal("limit_exceeded", message, {"file": file, "limit": MAX_BYTES}) from error
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"{file} cannot be read: {reason}"
        raise Refusal("unreadable_source", message, {"file": file, "reason": reason}) from error


def _name_of(pack: Pack) -> str:
    task = pack.checkpoint.task
    name = pack.origin.name or ("" if task is None else task.text)
    return value(name, MAX_VALUE_CHARS) or "Imported session"


IMPORTED = "PackImported"
"""The event of an import that is done."""


@frozen
class Imported:
    """The result of an import; a preview has no record."""

    plan: ImportPlan
    made: Import | None = None


@define
class Importing:
    """Imports packs; the time and new ids come from the caller."""

    _sessions: Sessions
    _now: Callable[[], str]
    _new_id: Callable[[], str]

    def preview(self, file: str, cwd: str) -> Imported:
        """Return the result of an import; write nothing. Refuses as `make`."""
        return Imported(plan_import(self._sessions, file, cwd))

    def make(self, file: str, cwd: str) -> Imported:
        """Import a pack for the folder `cwd`; the session is ready for Codex on return.

        Refuses `invalid_payload`, `limit_exceeded`, `policy_text`, `storage_error`, and `conflict`
        where this pack was imported already; then nothing was written.
        """
        plan, records = plan_import(self._sessions, file, cwd), self._sessions.records
        operation_id, session_id, at = self._new_id(), self._new_id(), self._now()
        if session_id in self._sessions.catalogue.current():
            message = f"session {session_id} exists already"
            raise Refusal("conflict", message, {"sessionId": session_id, "reason": "exists"})
        new, windows = thread_of(plan, session_id, at, self._new_id)
        source = plan.pack.origin.session_id
        made = Import(
            operation_id, session_id, source, at, plan.digest, windows, plan.seed, plan.pack
        )
        self._sessions.pace.commit()
        work = ImportWork(self._sessions, self._now, session_id, made)
        with storing_restore(session_id), undertaking(records, session_id, work) as prepare:
            prepare({"import": {"operationId": operation_id}})
            added(records, session_id, IMPORTS, [line_of(made)])
            added(records, session_id, MARKERS, marker_lines(plan.pack, at))
            self._sessions.threads.create(new, datetime.fromisoformat(at))
            work.published = True
        return Imported(plan, made)


@define
class ImportWork:
    """An import from its first line to its event; `undertaking.Work`."""

    _sessions: Sessions
    _now: Callable[[], str]
    _session_id: str
    _made: Import | None
    published: bool = False

    def is_published(self) -> bool:
        """Return whether the session exists."""
        if self.published or self._made is None:
            return self.published
        return self._sessions.catalogue.look_for(self._session_id) is not None

    def record(self) -> None:
        """Write the event; the record lies with the session already."""
        made = self._made
        if made is None:
            return
        more = {
            "packDigest": made.pack_digest,
            "notes": len(made.seed.facts) + len(made.seed.decisions),
            "files": len(files_of(made.pack)),
            "markers": len(made.pack.markers),
        }
        ids = made.operation_id, made.session_id, made.source_session_id
        operation = operation_of(self._sessions.settings, *ids)
        event = event_of(IMPORTED, self._now(), operation, more)
        close(self._sessions.records, event, again=not self.published)

    def take_back(self, code: str) -> bool:
        """Remove the files beside a session that was not published; it has no event."""
        del code
        return removed(self._sessions.records, self._session_id, (IMPORTS, MARKERS))


def reopened(sessions: Sessions, now: Callable[[], str], session_id: str) -> ImportWork:
    """Return the import that a process wrote down."""
    made = ImportRecords(sessions.records).made(session_id)
    return ImportWork(sessions, now, session_id, made)
