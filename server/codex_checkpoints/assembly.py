"""Builds the service of one Codex home from its folders and settings.

The doors read the environment and the command line, and pass the result in here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import Factory, frozen

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.places import Places, settings_of
from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.remote.kept_preview import KeptPreview
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.settings import with_editor
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage import session_files
from codex_checkpoints.storage.local import LocalThreadStore
from codex_checkpoints.storage.records import Records

if TYPE_CHECKING:
    from codex_checkpoints.storage.remote.contract import HistoryStore

logger = logging.getLogger(__name__)


@frozen
class Assembly:
    """The service of one home, the problems of its settings, and the last preview of a push."""

    sessions: Sessions
    problems: tuple[str, ...]
    preview: KeptPreview = Factory(KeptPreview)


def assemble(
    where: Places,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Assembly:
    """Read the settings and open the index; `overrides` are an editor's own settings."""
    settings, problems = settings_of(where.state_dir)
    if overrides:
        settings, more = with_editor(settings, overrides)
        problems += more
    records = Records(where.state_dir, beside=settings.checkpoint_location == "beside")
    records.clear_leftovers(_rollout_folders(where.codex_home) if records.beside else ())
    store = LocalThreadStore(where.codex_home, where.state_dir, stamps.now)
    store.clear_leftovers()

    def seed(session_id: str) -> Checkpoint | None:
        from codex_checkpoints.service.records.operation_records import beginning_of

        return beginning_of(records, session_id)

    sessions = Sessions(SessionIndex(store, store.index, seed), records, settings, environment)
    if records.unfinished_operations():
        # It imports every operation; a command needs only its own.
        from codex_checkpoints.service.recovery import recover

        recover(sessions)
    return Assembly(sessions, problems)


def archive_forks(sessions: Sessions) -> None:
    """Archive the scratch forks of compactions by Codex that were cut off."""
    catalogue = sessions.catalogue
    rows = [row for row in catalogue.current().values() if row.scratch and not row.archived]
    for row in rows:
        if row.session_id not in catalogue.store.live_threads():
            try:
                sessions.threads.archive_own(row.session_id)
            except Refusal as refusal:
                logger.warning("%s: %s", refusal.code, refusal.message)


def _rollout_folders(codex_home: str) -> Iterator[str]:
    for root in session_files.roots(codex_home):
        yield from (folder for folder, _, _ in os.walk(root))


def remote_store(place: str) -> HistoryStore:
    """Return the store of pushed sessions at a place, a folder or `postgresql://…`.

    Nothing is opened.  Raises `BadAddress`.
    """
    # Each driver is imported only by commands that use it.
    from codex_checkpoints.storage.remote.address import is_address

    if is_address(place):
        from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore

        return PostgresHistoryStore(place)
    from codex_checkpoints.storage.remote.folder import FolderHistoryStore

    return FolderHistoryStore(place)
