"""Ids of context windows."""

from __future__ import annotations

import re

from codex_checkpoints.core.rollout.fields import Json, object_of

_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)


def window_id_of(value: object) -> str | None:
    """Return a value that is the id of a window, a UUID of version 7 (WIN-1), else None."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def first_window(head: Json) -> str | None:
    """Return the window in which a session began, from its head (WIN-2)."""
    return window_id_of(object_of(head.get("context_window")).get("window_id"))
