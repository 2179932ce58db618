"""Which items of a model's history Codex can read, and the form in which it sends them.

An item is a JSON object with a `type`.  Codex knows the fields of each type and drops all others;
a field of a wrong kind makes it skip the whole line, or the whole `compacted` record around it.
A type it does not know is kept, and sent as `{"type":"other"}` from a replacement alone.

A `compacted` record installs such items, if it counts at all: one field of a wrong kind and it
counts for nothing (ROL-7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from codex_checkpoints.core.rollout.fields import (
    Json,
    is_list,
    is_object,
    list_of,
    object_of,
    text_of,
)
from codex_checkpoints.core.rollout.reader import Line
from codex_checkpoints.values import frozen

Item = Mapping[str, object]
"""One item as a request holds it: without `id` and without what Codex keeps beside it."""

OTHER: Final[Item] = {"type": "other"}
"""What Codex makes of a type it does not know."""


class _No(Enum):
    BAD = "bad"
    ABSENT = "absent"


BAD, ABSENT = _No.BAD, _No.ABSENT
_Take = Callable[[object], object]
"""From what a file holds to what is sent; `BAD` where Codex would not take it."""


@frozen
class Field:
    """One field: how it is read, what stands for it where it is missing, whether it is sent."""

    take: _Take
    missing: object = BAD
    sent: bool = True


# --- kinds of value ------------------------------------------------------------------------------


def _any(value: object) -> object:
    return value


def _text(value: object) -> object:
    return value if isinstance(value, str) else BAD


def text_or_absent(value: object) -> object:
    """Take a text, or nothing."""
    return ABSENT if value is None else _text(value)


def _text_or_null(value: object) -> object:
    return None if value is None else _text(value)


def _whole_or_null(value: object) -> object:
    return value if value is None or (type(value) is int and value >= 0) else BAD


def _list(value: object) -> object:
    return value if is_list(value) else BAD


def _list_or_absent(value: object) -> object:
    return ABSENT if value is None else _list(value)


def _environment(value: object) -> object:
    if value is None:
        return None
    return value if is_object(value) and _are_texts(value.values()) else BAD


def _words(value: object) -> object:
    return value if is_list(value) and _are_texts(value) else BAD


def _words_or_absent(value: object) -> object:
    return ABSENT if value is None else _words(value)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _one_of(*words: str) -> _Take:
    return lambda value: value if value in words else BAD


def _one_of_or_absent(*words: str) -> _Take:
    return lambda value: ABSENT if value is None else value if value in words else BAD


def _parts(kinds: Mapping[str, Mapping[str, Field]]) -> _Take:
    """Take a list of objects, each of one of the `kinds`."""

    def take(value: object) -> object:
        if not is_list(value):
            return BAD
        taken: list[object] = []
        for part in value:
            kind = part.get("type") if is_object(part) else None
            fields = kinds.get(kind) if isinstance(kind, str) else None
            made = None if fields is None else formed(object_of(part), str(kind), fields)
            if made is None:
                return BAD
            taken.append(made)
        return taken

    return take


def formed(value: Mapping[str, object], kind: str, fields: Mapping[str, Field]) -> Item | None:
    """Return a value in the form of its type; None where a field is of a wrong kind."""
    made: dict[str, object] = {"type": kind}
    for name, field in fields.items():
        taken = field.take(value[name]) if name in value else field.missing
        if taken is BAD:
            return None
        if taken is not ABSENT and field.sent:
            made[name] = taken
    return made


# --- parts ---------------------------------------------------------------------------------------

_TEXT_PART = {"text": Field(_text)}
_IMAGE_PART = {
    "image_url": Field(_text),
    "detail": Field(_one_of_or_absent("auto", "low", "high", "original"), ABSENT),
}
_AUDIO_PART = {"audio_url": Field(_text)}
_SEALED_PART = {"encrypted_content": Field(_text)}
_INPUT_PARTS = {"input_text": _TEXT_PART, "input_image": _IMAGE_PART, "input_audio": _AUDIO_PART}
_SPOKEN_PART = {
    "text": Field(_text),
    "annotations": Field(_list_or_absent, ABSENT),
    "logprobs": Field(_list_or_absent, ABSENT),
}

_content = _parts({**_INPUT_PARTS, "output_text": _SPOKEN_PART})
_letters = _parts({"input_text": _TEXT_PART, "encrypted_content": _SEALED_PART})
_answers = _parts({**_INPUT_PARTS, "encrypted_content": _SEALED_PART})
_summaries = _parts({"summary_text": _TEXT_PART})
_thoughts = _parts({"reasoning_text": _TEXT_PART, "text": _TEXT_PART})


def _output(value: object) -> object:
    return value if isinstance(value, str) else _answers(value)


def _thinking(value: object) -> object:
    """Take what the model thought; without any raw thought Codex leaves the key off."""
    if value is None:
        return None
    taken = _thoughts(value)
    if taken is BAD:
        return BAD
    raw = any(object_of(part).get("type") == "reasoning_text" for part in list_of(taken))
    return taken if raw else ABSENT


def _command(value: object) -> object:
    if not is_object(value) or value.get("type") != "exec":
        return BAD
    return formed(value, "exec", _COMMAND) or BAD


def _search(value: object) -> object:
    if value is None:
        return ABSENT
    kind = value.get("type") if is_object(value) else None
    if not isinstance(kind, str):
        return BAD
    fields = _SEARCHES.get(kind)
    return OTHER if fields is None else formed(object_of(value), kind, fields) or BAD


_OPTIONAL = Field(text_or_absent, ABSENT)
_COMMAND = {
    "command": Field(_words),
    "timeout_ms": Field(_whole_or_null, None),
    "working_directory": Field(_text_or_null, None),
    "env": Field(_environment, None),
    "user": Field(_text_or_null, None),
}
_SEARCHES: Mapping[str, Mapping[str, Field]] = {
    "search": {"query": _OPTIONAL, "queries": Field(_words_or_absent, ABSENT)},
    "open_page": {"url": _OPTIONAL},
    "find_in_page": {"url": _OPTIONAL, "pattern": _OPTIONAL},
}

# --- items ---------------------------------------------------------------------------------------

_NULLABLE = Field(_text_or_null, None)
_NEEDED = Field(_text)
_UNSENT = Field(text_or_absent, ABSENT, sent=False)

ALIASES = {"compaction_summary": "compaction"}
FORMS: Mapping[str, Mapping[str, Field]] = {
    "message": {
        "status": _OPTIONAL,
        "role": _NEEDED,
        "content": Field(_content),
        "phase": Field(_one_of_or_absent("commentary", "final_answer"), ABSENT),
        "encrypted_content": _UNSENT,
    },
    "reasoning": {
        "summary": Field(_summaries),
        "content": Field(_thinking, None),
        "encrypted_content": _NULLABLE,
    },
    "function_call": {
        "status": _OPTIONAL,
        "name": _NEEDED,
        "namespace": _OPTIONAL,
        "arguments": _NEEDED,
        "call_id": _NEEDED,
        "encrypted_function_args": Field(_list_or_absent, ABSENT, sent=False),
    },
    "function_call_output": {"call_id": _OPTIONAL, "output": Field(_output)},
    "custom_tool_call": {
        "status": _OPTIONAL,
        "call_id": _NEEDED,
        "name": _NEEDED,
        "namespace": _OPTIONAL,
        "input": _NEEDED,
    },
    "custom_tool_call_output": {
        "call_id": _NEEDED,
        "name": _OPTIONAL,
        "output": Field(_output),
    },
    "local_shell_call": {
        "call_id": _NULLABLE,
        "status": Field(_one_of("completed", "in_progress", "incomplete")),
        "action": Field(_command),
    },
    "tool_search_call": {
        "call_id": _NULLABLE,
        "status": _OPTIONAL,
        "execution": _NEEDED,
        "arguments": Field(_any),
    },
    "tool_search_output": {
        "call_id": _NULLABLE,
        "status": _NEEDED,
        "execution": _NEEDED,
        "tools": Field(_list),
    },
    "web_search_call": {"status": _OPTIONAL, "action": Field(_search, ABSENT)},
    "image_generation_call": {
        "status": _NEEDED,
        "revised_prompt": _OPTIONAL,
        "result": _NEEDED,
    },
    "agent_message": {"author": _NEEDED, "recipient": _NEEDED, "content": Field(_letters)},
    "compaction": {"encrypted_content": _NEEDED},
    "context_compaction": {"encrypted_content": _OPTIONAL},
    "additional_tools": {"role": _NEEDED, "tools": Field(_list)},
    "compaction_trigger": {},
    "ghost_snapshot": {},
}
"""The fields of each type, in the order in which Codex sends them."""


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
