"""The first lines of the texts that we put into messages, and how to recognise them."""

from codex_checkpoints.patterns import pattern

HOW_TO_LINE = "[HOW TO USE SESSION_CHECKPOINT v1]"
CHECKPOINT_LINE = "[SESSION_CHECKPOINT v1]"
RESTORE_LINE = "[SESSION_RESTORE v1]"
DIGEST_LINE = "[SESSION_DIGEST v1]"

_LINES = (HOW_TO_LINE, CHECKPOINT_LINE, RESTORE_LINE)
_SPACE = pattern(r"\s*+")


def is_ours(text: str) -> bool:
    """Return whether this is a handoff, a view or a state pack (JUN-15)."""
    start = _SPACE.match(text)
    return text.startswith(_LINES, start.end() if start else 0)
