"""Returns one session with its turns."""

from __future__ import annotations

from attrs import evolve

from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.service.connect.delivery_log import received
from codex_checkpoints.service.history.copied_turns import with_times
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.summaries import SessionDetail


def session(services: Services, params: SessionParams) -> SessionDetail:
    """Return one session with its turns."""
    detail = with_times(services.sessions, detail_of(services.sessions, params.session_id))
    receipts = received(services.sessions, params.session_id)
    return evolve(detail, received=receipts[-1] if receipts else None)
