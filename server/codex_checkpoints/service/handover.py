"""Give Codex a view of a session, and keep a receipt of it.

A module of its own, since a hook hands over in its own way.
"""

from __future__ import annotations

import hashlib

from codex_checkpoints import logs
from codex_checkpoints.service.reading.projections import View
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.durable import StorageError
from codex_checkpoints.values import frozen


@frozen
class Receiver:
    """The receiver of a view: its door, its context window, and the time (UTC)."""

    door: str
    window: str | None
    at: str


def hand_over(sessions: Sessions, session: str, receiver: Receiver) -> View:
    """Return the current view of a session, and write a receipt."""
    view = sessions.view(session)
    data = view.text.encode()
    receipt = {
        "at": receiver.at,
        "door": receiver.door,
        "sessionId": session,
        "windowId": receiver.window,
        "seq": view.of.checkpoint.seq,
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "size": len(data),
    }
    try:
        sessions.records.add_receipt(session, receipt)
    except StorageError as error:
        # It is bookkeeping that may be deleted; the answer matters more.
        logs.warn(__name__, "storage_error: no receipt for %s: %s", session, error)
    return view
