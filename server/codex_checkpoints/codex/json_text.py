"""Where the parts of a JSON text begin and end, so that it can be edited without a rewrite.

For texts that `json.loads` accepts; about others nothing is promised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from codex_checkpoints.values import frozen

_SPACE = re.compile(r"[ \t\r\n]*")
_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|[^"\[\]{},:]+|.')


@frozen
class Part:
    """A value of an array or an object: `start` is that of its name, if it has one."""

    start: int
    value: int
    end: int
    name: str | None = None


def parts(text: str, position: int) -> Iterator[Part]:
    """Yield what the array or object holds that begins here; nothing for another value."""
    if text[position : position + 1] not in {"[", "{"}:
        return
    named = text[position] == "{"
    position = _space(text, position + 1)
    while text[position] not in "]}":
        start, name = position, None
        if named:
            end = _value_end(text, position)
            name = str(json.loads(text[position:end]))
            position = _space(text, _space(text, end) + 1)
        end = _value_end(text, position)
        yield Part(start, position, end, name)
        position = _space(text, end)
        if text[position] == ",":
            position = _space(text, position + 1)


def first(text: str) -> int:
    """Return where the value of a text begins."""
    return _space(text, 0)


def member(text: str, position: int, name: str) -> Part | None:
    """Return the member of an object by its name, the last of several as a parser has it."""
    if text[position : position + 1] != "{":
        return None
    found = [part for part in parts(text, position) if part.name == name]
    return found[-1] if found else None


def without(text: str, siblings: list[Part], gone: int) -> str:
    """Return a text without one of the parts of an array or object, and without its comma."""
    part = siblings[gone]
    if gone > 0:
        return text[: siblings[gone - 1].end] + text[part.end :]
    if len(siblings) > 1:
        return text[: part.start] + text[siblings[1].start :]
    return text[: part.start] + text[part.end :]


def _space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _value_end(text: str, position: int) -> int:
    depth = 0
    while True:
        piece = _PIECE.match(text, position)
        if piece is None:
            return position
        match piece.group():
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case word if depth == 0 and not word.startswith('"'):
                return position + len(word.rstrip(" \t\r\n"))
            case _:
                pass
        position = piece.end()
        if depth == 0:
            return position
