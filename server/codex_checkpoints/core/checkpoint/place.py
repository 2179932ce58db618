"""Where something was observed, as far as its name depends on it."""

from __future__ import annotations

Place = tuple[int, str | None, str | None]
"""Where something was observed: `seq`, the folder of the turn, the base of the session."""
