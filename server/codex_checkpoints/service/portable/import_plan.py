"""What would come of a portable pack, found out without writing anything.

The pack is read within its bound and judged; its hashes are replaced by those of the files in the
folder that the session is to be for, seen now (`core/portable/arriving`).  The new session begins
with the handoff of its checkpoint.  A preview ends here; the rest is done by `importing`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

from codex_checkpoints import durable
from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.how_to import bundle, handoff
from codex_checkpoints.core.compaction.installed import Moment, Naming, new_session, source_of
from codex_checkpoints.core.portable.arriving import files_of, seed_of
from codex_checkpoints.core.portable.pack import MAX_BYTES, Pack
from codex_checkpoints.core.portable.reading import BadPack, pack_in
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.restore.sealing import digest_of
from codex_checkpoints.service.import_records import ImportRecords
from codex_checkpoints.service.reading.pace import paced_hashes
from codex_checkpoints.service.refusal import Refusal, misfit
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Item, NewThread
from codex_checkpoints.values import frozen


@frozen
class ImportPlan:
    """A pack that may come in, and what it would be here."""

    pack: Pack
    digest: str
    cwd: str
    seed: Checkpoint
    handoff: str
    name: str


def plan_import(sessions: Sessions, file: str, cwd: str) -> ImportPlan:
    """Read and judge a pack; nothing of it is in this home yet.

    Refuses `invalid_payload`, `limit_exceeded`, `policy_text`, `unreadable_source`, and `conflict`
    where this pack came in already.  Raises `Cancelled`.
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
    """Return the session file to be made, and its windows (WIN-13).

    It names neither a source, which is not here, nor a provider of models: Codex takes the one that
    it is set to here.
    """
    origin = plan.pack.origin
    head = {"cli_version": origin.cli_version, "source": "cli"}
    source = source_of("", plan.cwd, head | {"history_mode": origin.history_mode}, None)
    moment = Moment(at, int(datetime.fromisoformat(at).timestamp() * 1000))
    naming = Naming(plan.name, new_id(), new_id())
    ids = (session_id, new_id(), new_id())
    items = (handoff(_view_in(plan.handoff)),)
    made = new_session(items, source, naming, moment, ids)
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


def _view_in(text: str) -> str:
    """Return the view inside a handoff."""
    return text.partition("\n\n")[2]


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
    """Return how the session is called in lists: by its name, else by its task."""
    task = pack.checkpoint.task
    name = pack.origin.name or ("" if task is None else task.text)
    return value(name, MAX_VALUE_CHARS) or "Imported session"
