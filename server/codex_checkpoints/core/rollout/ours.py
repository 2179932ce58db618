"""The texts that we put into messages: with what line each begins, and how one is known again.

What else a machine puts into a user's mouth is told by `contextual`.
"""

import re

HOW_TO_LINE = "[HOW TO USE SESSION_CHECKPOINT v1]"
CHECKPOINT_LINE = "[SESSION_CHECKPOINT v1]"
RESTORE_LINE = "[SESSION_RESTORE v1]"

_LINES = (HOW_TO_LINE, CHECKPOINT_LINE, RESTORE_LINE)
_SPACE = re.compile(r"\s*+")


def is_ours(text: str) -> bool:
    """Tell whether this is a handoff, view or state pack of ours (JUN-15)."""
    start = _SPACE.match(text)
    return text.startswith(_LINES, start.end() if start else 0)
