"""Recognises the texts and records that we write into sessions."""

import re

from codex_checkpoints.core.events import Opener

HOW_TO_LINE = "[HOW TO USE SESSION_CHECKPOINT v1]"
CHECKPOINT_LINE = "[SESSION_CHECKPOINT v1]"
RESTORE_LINE = "[SESSION_RESTORE v1]"
DIGEST_LINE = "[SESSION_DIGEST v1]"

GOAL_LINE = "Goal of this session"
PLAN_LINE = "Approved plan:"
AGENT_LINE = "Task from another agent:"
"""The beginnings of requests in our replacements that are not user messages."""

_LINES = (HOW_TO_LINE, CHECKPOINT_LINE, RESTORE_LINE)
UNDO = "undo"
"""The `type` inside a `compacted` record that undoes the newest compaction.

Codex ignores it; it comes first, so that it is visible even in a line that is not read in full.
"""

_SPACE = re.compile(r"\s*+")


def is_ours(text: str) -> bool:
    """Return whether this is a handoff, a view or a state pack (JUN-15)."""
    start = _SPACE.match(text)
    return text.startswith(_LINES, start.end() if start else 0)


def is_worded_by_us(text: str) -> bool:
    """Return whether we put a goal, a plan or an agent's task into a message of a replacement."""
    return text.startswith((f"{GOAL_LINE} (", f"{PLAN_LINE}\n\n", f"{AGENT_LINE}\n\n"))


def opener_of(tag: str | None, message: str) -> Opener:
    """Return the kind of a `compacted` record, by the `type` inside it and its message."""
    if tag == UNDO:
        return "undo"
    return "restore" if message.startswith(RESTORE_LINE) else "compaction"
