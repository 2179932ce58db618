"""What Codex itself is given: the view of the session that asks, and a receipt of that.

A receipt says what was handed over, when and to which context window, by a digest; the text itself
is nowhere kept (interfaces, "Files").
"""

from __future__ import annotations

import hashlib
import logging

from codex_checkpoints.durable import StorageError
from codex_checkpoints.service.reading.projections import View
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.values import frozen

logger = logging.getLogger(__name__)


@frozen
class Receiver:
    """Who is given something: through which door, in which context window, and when (UTC)."""

    door: str
    window: str | None
    at: str


def hand_over(sessions: Sessions, session: str, receiver: Receiver) -> View:
    """Return the view of a session as it is now, and note who was given it."""
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
        logger.warning("storage_error: no receipt for %s: %s", session, error)
    return view
