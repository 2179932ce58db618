"""Reads the items of a history as Codex does, and gives them the form in which it sends them.

An item is a JSON object with a `type`.  Codex knows the fields of each type and drops all others.
A field of a wrong kind makes it skip the whole line, or the whole `compacted` record (ROL-7).  It
keeps a type that it does not know, and sends it as `{"type":"other"}` only from a replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from codex_checkpoints.core.agents.codex.reader import Line
from codex_checkpoints.core.fields import Json, is_list, is_object, list_of, object_of, text_of

Item = Mapping[str, object]
"""An item as a request holds it, without `id` and without the other fields that Codex adds."""

OTHER: Final[Item] = {"type": "other"}
"""Codex's substitute for a type that it does not know."""


BAD: Final = object()
ABSENT: Final = object()

_Take = Callable[[object], object]
"""Return the value that is sent for a value in the file; `BAD` if Codex refuses it."""


@frozen
class Field:
    """How a field is read, its default, and whether it is sent."""

    take: _Take
    missing: object = BAD
    sent: bool = True


def _unset(take: _Take, default: object = ABSENT, *, sent: bool = True) -> Field:
    """Return a field that may be missing or null."""
    return Field(lambda value: default if value is None else take(value), default, sent)


def _where(fits: Callable[[object], bool]) -> _Take:
    return lambda value: value if fits(value) else BAD


_text = _where(lambda value: isinstance(value, str))
_list = _where(is_list)
_whole = _where(lambda value: type(value) is int and value >= 0)
_environment = _where(lambda value: is_object(value) and _are_texts(value.values()))
_words = _where(lambda value: is_list(value) and _are_texts(value))


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _one_of(*words: str) -> _Take:
    return _where(words.__contains__)


def _parts(kinds: Mapping[str, Mapping[str, Field]]) -> _Take:
    """Return a reader for a list of objects, each of one of the `kinds`."""

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
    """Return a value in the form of its type; None if a field is of a wrong kind."""
    made: dict[str, object] = {"type": kind}
    for name, field in fields.items():
        taken = field.take(value[name]) if name in value else field.missing
        if taken is BAD:
            return None
        if taken is not ABSENT and field.sent:
            made[name] = taken
    return made


_TEXT_PART = {"text": Field(_text)}
_IMAGE_PART = {
    "image_url": Field(_text),
    "detail": _unset(_one_of("auto", "low", "high", "original")),
}
_AUDIO_PART = {"audio_url": Field(_text)}
_SEALED_PART = {"encrypted_content": Field(_text)}
_INPUT_PARTS = {"input_text": _TEXT_PART, "input_image": _IMAGE_PART, "input_audio": _AUDIO_PART}
_SPOKEN_PART = {
    "text": Field(_text),
    "annotations": _unset(_list),
    "logprobs": _unset(_list),
}

_content = _parts({**_INPUT_PARTS, "output_text": _SPOKEN_PART})
_letters = _parts({"input_text": _TEXT_PART, "encrypted_content": _SEALED_PART})
_answers = _parts({**_INPUT_PARTS, "encrypted_content": _SEALED_PART})
_summaries = _parts({"summary_text": _TEXT_PART})
_thoughts = _parts({"reasoning_text": _TEXT_PART, "text": _TEXT_PART})


def _output(value: object) -> object:
    return value if isinstance(value, str) else _answers(value)


def _thinking(value: object) -> object:
    """Return the raw thoughts; Codex leaves the key off if there are none."""
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
    kind = value.get("type") if is_object(value) else None
    if not isinstance(kind, str):
        return BAD
    fields = _SEARCHES.get(kind)
    return OTHER if fields is None else formed(object_of(value), kind, fields) or BAD


_OPTIONAL = _unset(_text)
_NULLABLE = _unset(_text, None)
_NEEDED = Field(_text)
_UNSENT = _unset(_text, sent=False)
_COMMAND = {
    "command": Field(_words),
    "timeout_ms": _unset(_whole, None),
    "working_directory": _NULLABLE,
    "env": _unset(_environment, None),
    "user": _NULLABLE,
}
_SEARCHES: Mapping[str, Mapping[str, Field]] = {
    "search": {"query": _OPTIONAL, "queries": _unset(_words)},
    "open_page": {"url": _OPTIONAL},
    "find_in_page": {"url": _OPTIONAL, "pattern": _OPTIONAL},
}

ALIASES = {"compaction_summary": "compaction"}
FORMS: Mapping[str, Mapping[str, Field]] = {
    "message": {
        "status": _OPTIONAL,
        "role": _NEEDED,
        "content": Field(_content),
        "phase": _unset(_one_of("commentary", "final_answer")),
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
        "encrypted_function_args": _unset(_list, sent=False),
    },
    "function_call_output": {"call_id": _OPTIONAL, "output": Field(_output)},
    "custom_tool_call": {
        "status": _OPTIONAL,
        "call_id": _NEEDED,
        "name": _NEEDED,
        "namespace": _OPTIONAL,
        "input": _NEEDED,
    },
    "custom_tool_call_output": {"call_id": _NEEDED, "name": _OPTIONAL, "output": Field(_output)},
    "local_shell_call": {
        "call_id": _NULLABLE,
        "status": Field(_one_of("completed", "in_progress", "incomplete")),
        "action": Field(_command),
    },
    "tool_search_call": {
        "call_id": _NULLABLE,
        "status": _OPTIONAL,
        "execution": _NEEDED,
        "arguments": Field(lambda value: value),
    },
    "tool_search_output": {
        "call_id": _NULLABLE,
        "status": _NEEDED,
        "execution": _NEEDED,
        "tools": Field(_list),
    },
    "web_search_call": {"status": _OPTIONAL, "action": _unset(_search)},
    "image_generation_call": {"status": _NEEDED, "revised_prompt": _OPTIONAL, "result": _NEEDED},
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
    """Read the items of a replacement; None if Codex refuses one of them."""
    read: list[Item] = []
    for value in values:
        item = read_item(value)
        if item is None:
            return None
        if not is_forgotten(item) and not is_instruction(value):
            read.append(item)
    return tuple(read)


def counts(line: Line) -> bool:
    """Return whether Codex reads a line: a checkpoint accepts more.

    Codex refuses lone surrogates, a time stamp that is not text and an ordinal that is not a
    number.
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
    """Return whether Codex drops an item at any place."""
    return item["type"] == "ghost_snapshot"


def texts(item: Item) -> tuple[str, ...]:
    """Return the text parts of a message that are of the type `input_text`."""
    parts = (object_of(part) for part in list_of(item.get("content")))
    found = (text_of(part.get("text")) for part in parts if part.get("type") == "input_text")
    return tuple(text for text in found if text is not None)


def user_message(parts: Iterable[str]) -> Item:
    """Make a user message of text parts."""
    content = [{"type": "input_text", "text": text} for text in parts]
    return {"type": "message", "role": "user", "content": content}


def is_instruction(value: object) -> bool:
    """Return whether an item has only base instructions; Codex sends them elsewhere."""
    passed = object_of(object_of(value).get("internal_chat_message_metadata_passthrough"))
    kinds = list_of(passed.get("content_item_kinds"))
    return bool(kinds) and all(kind == "model.base_instructions" for kind in kinds)


def _is_labelled(value: Mapping[str, object]) -> bool:
    passed = value.get("internal_chat_message_metadata_passthrough")
    labels = value.get("id"), object_of(passed).get("turn_id")
    return all(isinstance(label, str | None) for label in labels) and (
        passed is None or is_object(passed)
    )


def replacement_of(payload: Json) -> tuple[Item, ...] | None:
    """Return the history that a record installs, None if it has none or is refused."""
    history = payload.get("replacement_history")
    return read_items(history) if is_list(history) and _is_well_formed(payload) else None


def payloads_of(payload: Json) -> tuple[object, ...]:
    """Return the items that `replacement_of` reads, unchanged from the record."""
    history = list_of(payload.get("replacement_history"))
    kept = (each for each in history if not is_instruction(each))
    return tuple(each for each in kept if object_of(each).get("type") != "ghost_snapshot")


def is_legacy(payload: Json) -> bool:
    """Return whether a record has only a message, as older versions wrote it."""
    return payload.get("replacement_history") is None and _is_well_formed(payload)


def _is_well_formed(payload: Json) -> bool:
    history = payload.get("replacement_history")
    beside = payload.get("replacement_history_metadata")
    number, window_id = payload.get("window_number"), payload.get("window_id")
    texts = ("first_window_id", "previous_window_id", "compaction_response_id")
    objects = ("retained_context", "latest_token_usage_record", "resume_metadata")
    paired = is_list(beside) and is_list(history) and len(beside) == len(history)
    return (
        isinstance(payload.get("message"), str)
        and (beside is None or (paired and all(map(is_object, list_of(beside)))))
        and (number is None or _whole(number) is not BAD)
        and (isinstance(window_id, str | None) or _whole(window_id) is not BAD)
        and all(isinstance(payload.get(name), str | None) for name in texts)
        and all(payload.get(name) is None or is_object(payload[name]) for name in objects)
    )
