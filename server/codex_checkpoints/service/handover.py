"""What Codex itself is given: the view of the session that asks, and a receipt of that.

A receipt says what was handed over, when and to which context window, by a digest; the text itself
is nowhere kept (interfaces, "Files").
"""

from __future__ import annotations

import hashlib
import logging

from attrs import frozen

from codex_checkpoints.records import StorageError
from codex_checkpoints.service.projections import View
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions

logger = logging.getLogger(__name__)


@frozen
class Receiver:
    """Who is given something: through which door, in which context window, and when (UTC)."""

    door: str
    window: str | None
    at: str


def session_of(sessions: Sessions, thread: object) -> str:
    """Return the session of the thread that calls, with its files looked at, and no others.

    `thread` is what the caller's host says; only a whole id counts.  Raises `missing_context`
    where it says nothing and `unknown_session` for a thread without a session file in this home.
    """
    if not isinstance(thread, str) or not thread:
        message = "the call does not say which thread it comes from"
        hint = "Call from within Codex, which names the thread in _meta.threadId."
        raise Refusal("missing_context", message, {"rule": "session", "hint": hint})
    row = sessions.catalogue.look_for(thread.lower())
    if row is None:
        message = "the thread that calls has no session file in this Codex home"
        hint = "Codex must store its sessions, in the folder that this server was given as home."
        raise Refusal("unknown_session", message, {"rule": "session", "hint": hint})
    return row.session_id


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
