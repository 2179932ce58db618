"""Finds where a helper's own lines begin in a file that starts with its parent's history.

Codex 0.128 to 0.147 copied that history.  It may have given the lines new times, but never new turn
ids.  So the id of a task shows whether it began before the helper did (rules, "Turns").
"""

from __future__ import annotations

import re

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import items

_BY_TIME = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f-]{17}")
"""A UUID that begins with its time in milliseconds."""


def may_inherit(head: events.SessionMeta) -> bool:
    """Return whether lines of the parent may precede a helper's own."""
    is_marked = head.paginated or head.bare or head.inherited_below is not None
    return head.parent_session is not None and not is_marked


def is_copied(head: events.SessionMeta, item: items.Item, stamp: str | None) -> bool | None:
    """Return whether a line comes from the parent, None if it does not show."""
    is_older = None not in {stamp, head.timestamp} and (stamp or "") < (head.timestamp or "")
    match item:
        case events.SessionMeta(session_id=session_id) if session_id != head.session_id:
            return True
        case events.TaskStarted(turn_id=turn_id):
            began, own = _time_in(turn_id), _time_in(head.session_id)
            return is_older if began is None or own is None else began < own
        case events.UserMessage(in_history=False):
            return is_older
        case _:
            return is_older or None


def _time_in(name: str | None) -> str | None:
    found = _BY_TIME.fullmatch(name or "")
    return None if found is None else found[1] + found[2]
