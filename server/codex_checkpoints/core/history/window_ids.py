"""Ids of context windows."""

from __future__ import annotations

import re

from codex_checkpoints.core.rollout.fields import Json, object_of, text_of

_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)


def is_window_id(text: str) -> bool:
    """Return whether a text is a UUID of version 7 (WIN-1)."""
    return _ID.fullmatch(text) is not None


def window_id_of(value: object) -> str | None:
    """Return a value that is the id of a window, else None."""
    text = text_of(value)
    return text if text is not None and is_window_id(text) else None


def first_window(head: Json) -> str | None:
    """Return the window in which a session began, from its head (WIN-2)."""
    return window_id_of(object_of(head.get("context_window")).get("window_id"))
