"""The history that a `compacted` record installs, if the record counts at all.

Codex is strict with it: one field of a wrong kind and the record counts for nothing (ROL-7).
What else it says of a window is read by `compacted`.
"""

from __future__ import annotations

from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.items import read_items
from codex_checkpoints.core.rollout.fields import Json, is_list, is_object


def replacement_of(payload: Json) -> tuple[Item, ...] | None:
    """Return the history that a record installs, None where it has none or counts for nothing."""
    history = payload.get("replacement_history")
    return read_items(history) if is_list(history) and _is_well_formed(payload) else None


def is_legacy(payload: Json) -> bool:
    """Return whether a record has nothing but a message, as older versions wrote it."""
    return payload.get("replacement_history") is None and _is_well_formed(payload)


def _is_well_formed(payload: Json) -> bool:
    history, beside = (
        payload.get("replacement_history"),
        payload.get("replacement_history_metadata"),
    )
    number, window_id = payload.get("window_number"), payload.get("window_id")
    return (
        isinstance(payload.get("message"), str)
        and _fits(beside, history)
        and (number is None or _is_whole(number))
        and (window_id is None or isinstance(window_id, str) or _is_whole(window_id))
        and all(_is_text_or_null(payload.get(name)) for name in _TEXTS)
        and all(_is_object_or_null(payload.get(name)) for name in _OBJECTS)
    )


_TEXTS = ("first_window_id", "previous_window_id", "compaction_response_id")
_OBJECTS = ("retained_context", "latest_token_usage_record", "resume_metadata")


def _fits(beside: object, history: object) -> bool:
    if beside is None:
        return True
    if not is_list(beside) or not is_list(history) or len(beside) != len(history):
        return False
    return all(is_object(each) for each in beside)


def _is_whole(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_text_or_null(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_object_or_null(value: object) -> bool:
    return value is None or is_object(value)
