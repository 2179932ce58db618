"""Restores files to their state after a turn."""

from __future__ import annotations

from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.files import restores
from codex_checkpoints.service.files.restores import FilesParams, RestoredFiles, UndoFilesParams


def restore_files_preview(services: Services, params: FilesParams) -> RestoredFiles:
    """Return the expected effects of a restore of files."""
    return restores.preview(services.sessions, params)


def restore_files(services: Services, params: FilesParams) -> RestoredFiles:
    """Restore files."""
    return _changed(services, restores.restore(services.sessions, params))


def undo_restore_files(services: Services, params: UndoFilesParams) -> RestoredFiles:
    """Undo a restore of files."""
    return _changed(services, restores.undo(services.sessions, params))


def _changed(services: Services, done: RestoredFiles) -> RestoredFiles:
    if done.operation_id is not None:
        services.changed((done.session_id,), "workspace")
    return done
