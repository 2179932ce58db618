"""Which items of a model's history Codex can read, and the form in which it sends them.

An item is a JSON object with a `type`.  Codex knows the fields of each type and drops all others;
a field of a wrong kind makes it skip the whole line, or the whole `compacted` record around it.
A type it does not know is kept, and sent as `{"type":"other"}` from a replacement alone.

What is *done* with items (their order, pairs and sizes) is known to `rebuild` and `pairing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codex_checkpoints.core.history.forms import (
    ALIASES,
    BAD,
    FORMS,
    OTHER,
    Item,
    formed,
    text_or_absent,
)
from codex_checkpoints.core.rollout.fields import is_object, list_of, object_of, text_of
from codex_checkpoints.core.rollout.reader import Line


def read_item(value: object) -> Item | None:
    """Return an item as Codex would send it, `OTHER` for an unknown type, None if it is refused."""
    if not is_object(value) or not _is_labelled(value):
        return None
    kind = value.get("type")
    if not isinstance(kind, str):
        return None
    kind = ALIASES.get(kind, kind)
    fields = FORMS.get(kind)
    return OTHER if fields is None else formed(value, kind, fields)


def read_items(values: Sequence[object]) -> tuple[Item, ...] | None:
    """Read the items of a replacement; None where Codex refuses one of them, and so all."""
    read: list[Item] = []
    for value in values:
        item = read_item(value)
        if item is None:
            return None
        if not is_forgotten(item) and not is_instruction(value):
            read.append(item)
    return tuple(read)


def counts(line: Line) -> bool:
    """Return whether Codex can read a line: it is stricter than a checkpoint is.

    Lone surrogates, a time stamp that is no text or an ordinal that is no number are no line to it.
    """
    if line.bare or line.passed_over or line.mended:
        return bool(line.kind) and not line.mended
    ordinal, beside = line.envelope.get("ordinal"), line.envelope.get("metadata")
    return (
        line.stamp is not None
        and (ordinal is None or (type(ordinal) is int and ordinal >= 0))
        and (beside is None or is_object(beside))
    )


def is_forgotten(item: Item) -> bool:
    """Return whether Codex drops an item wherever it stands."""
    return item["type"] == "ghost_snapshot"


def texts(item: Item) -> tuple[str, ...]:
    """Return the text parts that somebody put into a message (`input_text`)."""
    parts = (object_of(part) for part in list_of(item.get("content")))
    found = (text_of(part.get("text")) for part in parts if part.get("type") == "input_text")
    return tuple(text for text in found if text is not None)


def user_message(parts: Iterable[str]) -> Item:
    """Make a user message of text parts."""
    content = [{"type": "input_text", "text": text} for text in parts]
    return {"type": "message", "role": "user", "content": content}


def is_instruction(value: object) -> bool:
    """Return whether an item is nothing but the base instructions, which go their own way."""
    passed = object_of(object_of(value).get("internal_chat_message_metadata_passthrough"))
    kinds = list_of(passed.get("content_item_kinds"))
    return bool(kinds) and all(kind == "model.base_instructions" for kind in kinds)


def _is_labelled(value: Mapping[str, object]) -> bool:
    passed = value.get("internal_chat_message_metadata_passthrough")
    if text_or_absent(value.get("id")) is BAD or not (passed is None or is_object(passed)):
        return False
    return text_or_absent(object_of(passed).get("turn_id")) is not BAD
