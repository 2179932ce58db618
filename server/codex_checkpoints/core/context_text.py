"""Words the part of a context besides its history: one text for compactions and restores."""

from __future__ import annotations

UNREPORTED = "Codex's own instructions, usually 6,000 to 18,000"
"""The part of the context that is unknown if a session reported no tokens."""


def beside_text(beside: int | None) -> str:
    """Return a sentence about the tokens besides the history; None: nothing was reported."""
    if beside is None:
        return f"Plus {UNREPORTED}."
    return f"Instructions and tools stay: about {beside:,} tokens."
