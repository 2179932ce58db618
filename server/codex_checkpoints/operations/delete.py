"""Removes a session that we made."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.sessions import deletion
from codex_checkpoints.service.sessions.summaries import SessionSummary


@frozen
class DeleteParams:
    """A session of ours; one with turns of the user's own needs `force`."""

    session_id: str
    force: bool = False


@frozen
class Deleted:
    """A session that was deleted."""

    session_id: str
    deleted: bool


def delete(services: Services, params: DeleteParams) -> Deleted:
    """Remove a session that we made."""
    return Deleted(removed(services, params).session_id, deleted=True)


def removed(
    services: Services,
    params: DeleteParams,
    agreed: Callable[[SessionSummary], bool] = lambda _: True,
) -> SessionSummary:
    """Remove a session that we made, if `agreed` says yes; return its summary."""
    gone = deletion.delete(services.sessions, params.session_id, force=params.force, agreed=agreed)
    services.changed((gone.session_id,), "rollout")
    return gone
