"""Reads the texts of calls and of their outputs, without the answers that a person keeps secret."""

from __future__ import annotations

from typing import Final

import orjson

from codex_checkpoints.core.agents.codex.injected_text import without_payloads
from codex_checkpoints.core.events import ToolCall
from codex_checkpoints.core.fields import (
    Json,
    list_of,
    load,
    object_of,
    text_of,
    texts_of,
    words_of,
)
from codex_checkpoints.core.shell import posix
from codex_checkpoints.core.shell.script import BEGIN

OURS: Final = frozenset({"memory_read", "memory_apply", "memory_recall"})
"""Our own tools: their calls and outputs only look at the session."""

DIALOG: Final = "request_user_input"
"""The tool that asks the user; an answer may be secret."""

_TOO_DEEP: Final = "\u2026"


def script_of(item: object) -> str | None:
    """Return the script of a command's call."""
    if not isinstance(item, ToolCall) or not item.is_command:
        return None
    arguments = object_of(item.arguments)
    command = arguments.get("command", arguments.get("cmd"))
    words = words_of(command)
    return posix.script_of(words) if words is not None else text_of(command)


def output_of(payload: Json) -> str:
    """Return the text of an output; a base64 image is replaced by its size.

    Very old files store the text in an object.
    """
    output = payload.get("output")
    if not isinstance(output, str):
        output = "\n".join(texts_of(object_of(output).get("content", output)))
    return without_payloads(output, [])[0]


def secrets_of(asked: Json) -> frozenset[str | None]:
    """Return the ids of the secret questions of a dialog."""
    questions = map(object_of, list_of(asked.get("questions")))
    return frozenset(text_of(each.get("id")) for each in questions if each.get("isSecret"))


def without_answers(output: str, ids: frozenset[str | None]) -> str:
    """Return the output of a dialog without the answers to the given questions."""
    answers = object_of(json_in(output).get("answers"))
    return written({"answers": {each: answers[each] for each in answers if each not in ids}})


def written(value: object) -> str:
    """Return a value as JSON, a string without its quotation marks."""
    try:
        line = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # too deep
        return _TOO_DEEP
    return line[1:-1] if isinstance(value, str) else line


def json_in(text: str) -> Json:
    """Return the JSON object in a text; empty if there is none."""
    return object_of(load(text.encode(errors="replace"))) if text.startswith("{") else {}


def patch_in(arguments: object) -> str:
    """Return the argument of a call that holds a patch; empty without one."""
    if isinstance(arguments, str):
        return arguments
    for each in object_of(arguments).values():
        for text in texts_of(each) or [part for part in list_of(each) if isinstance(part, str)]:
            if BEGIN in text:
                return text
    return ""
