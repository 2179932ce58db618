"""A `compacted` record: a window was replaced, by whom, and by how much.

Ids and the number may be missing in older files; what is missing stays absent (ROL-7, WIN-9).
Whether a record counts, and what it installs, is told by `replacement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.items import texts
from codex_checkpoints.core.history.replacement import is_legacy, replacement_of
from codex_checkpoints.core.history.speakers import is_prompt, is_summary
from codex_checkpoints.core.history.window_ids import window_id_of
from codex_checkpoints.core.rollout.fields import Json, text_of
from codex_checkpoints.core.rollout.ours import is_ours
from codex_checkpoints.core.rollout.reader import Line, Place
from codex_checkpoints.values import frozen

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
    ids = [window_id_of(payload.get(name)) for name in ("window_id", "first_window_id")]
    message = text_of(payload.get("message")) or ""
    return Compaction(
        place=line.place,
        index=index,
        seq=line.seq,
        stamp=line.stamp or None,
        number=_number(payload),
        window_id=ids[0],
        first_id=ids[1],
        previous_id=window_id_of(payload.get("previous_window_id")),
        replacement=replacement is not None,
        size=None if replacement is None else tokens.of_items(replacement),
        strategy=_strategy(replacement, message),
        message_end=message[-ANSWER_END:],
    )


def _number(payload: Json) -> int | None:
    """Return the window's number; for a week it stood in `window_id` (WIN-9)."""
    for name in ("window_number", "window_id"):
        value = payload.get(name)
        if type(value) is int:
            return value
    return None


def _strategy(replacement: Sequence[Item] | None, message: str) -> Strategy | None:
    """Tell who made a replacement by what it ends with."""
    if replacement is None:
        return "local" if message else None
    last = texts(replacement[-1])[:1] if replacement else ()
    if any(is_ours(text) for text in last):
        return "checkpoint"
    if any(item["type"] in {"compaction", "context_compaction"} for item in replacement):
        return "remote"
    if any(is_summary(text) for item in replacement for text in texts(item)[:1]):
        return "local"
    return None if message or any(map(is_prompt, replacement)) else "fresh"
