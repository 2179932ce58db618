"""A `compacted` record: a window was replaced, by whom, and by how much.

Codex is strict with it: one field of a wrong kind and the record counts for nothing.  Ids and the
number may be missing in older files; what is missing stays absent (ROL-7, WIN-9).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.history.envelope import Line, Place
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.items import read_items, texts
from codex_checkpoints.core.history.speakers import is_prompt, is_summary
from codex_checkpoints.core.history.windows import is_window_id
from codex_checkpoints.core.rollout import contextual
from codex_checkpoints.core.rollout.fields import Json, is_list, is_object, text_of

Strategy = Literal["checkpoint", "codex", "local", "remote", "fresh"]

ANSWER_END = 512
"""How many characters of a message are kept, to know it again by its end."""


@frozen
class Compaction:
    """Where a window was opened, without its history.

    `place` is where the record stands, `index` counts the records of a session from 0.  Without a
    `replacement` the history is to be made of user messages and the record's message (CKP-26);
    `size` is our estimate of the replacement in tokens.
    """

    place: Place
    index: int
    seq: int
    stamp: str | None
    number: int | None
    window_id: str | None
    first_id: str | None
    previous_id: str | None
    replacement: bool
    size: int | None
    strategy: Strategy | None
    message_end: str


def read_compaction(line: Line, index: int) -> Compaction | None:
    """Read a record, None where Codex passes over it."""
    payload = line.payload
    replacement = replacement_of(payload)
    if replacement is None and not is_legacy(payload):
        return None
    ids = [_window_id(payload.get(name)) for name in ("window_id", "first_window_id")]
    message = text_of(payload.get("message")) or ""
    return Compaction(
        place=line.place,
        index=index,
        seq=line.seq,
        stamp=line.stamp or None,
        number=_number(payload),
        window_id=ids[0],
        first_id=ids[1],
        previous_id=_window_id(payload.get("previous_window_id")),
        replacement=replacement is not None,
        size=None if replacement is None else tokens.of_items(replacement),
        strategy=_strategy(replacement, message),
        message_end=message[-ANSWER_END:],
    )


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


def _number(payload: Json) -> int | None:
    """Return the window's number; for a week it stood in `window_id` (WIN-9)."""
    for name in ("window_number", "window_id"):
        value = payload.get(name)
        if type(value) is int:
            return value
    return None


def _window_id(value: object) -> str | None:
    return value if isinstance(value, str) and is_window_id(value) else None


def _strategy(replacement: Sequence[Item] | None, message: str) -> Strategy | None:
    """Tell who made a replacement by what it ends with."""
    if replacement is None:
        return "local" if message else None
    last = texts(replacement[-1])[:1] if replacement else ()
    if any(contextual.is_ours(text) for text in last):
        return "checkpoint"
    if any(item["type"] in {"compaction", "context_compaction"} for item in replacement):
        return "remote"
    if any(is_summary(text) for item in replacement for text in texts(item)[:1]):
        return "local"
    return None if message or any(map(is_prompt, replacement)) else "fresh"
