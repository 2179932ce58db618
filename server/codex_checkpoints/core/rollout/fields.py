"""JSON from the bytes of a line, and its fields whatever they hold.

Rollout text is untrusted: every field may be missing or of another type than Codex writes.  Each
function here takes any value and gives one of the type it names, empty where there is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard

import orjson

from codex_checkpoints.core.rollout.items import Unreadable
from codex_checkpoints.values import frozen

Json = Mapping[str, object]

NOTHING: Json = {}

_LARGEST = 1 << 53
"""Whole numbers from here on are not told apart by everyone who reads our answers."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def load(raw: bytes) -> object:
    """Return the value of a JSON text, or `Unreadable`."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Unreadable("not_utf8")
    # orjson refuses a lone surrogate, which Codex may write; everything else it refuses is no
    # JSON for Codex either (ROL-15).
    if _SURROGATE_ESCAPE.search(raw):
        try:
            return _mended(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return Unreadable("not_json")


def _mended(value: object) -> object:
    """Return the value with each lone surrogate as U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if is_list(value):
        return [_mended(part) for part in value]
    if is_object(value):
        return {_SURROGATE.sub("\ufffd", key): _mended(part) for key, part in value.items()}
    return value


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


def text_of(value: object) -> str | None:
    """Return a text, None for anything else."""
    return value if isinstance(value, str) else None


def absent_or(value: object, text: str) -> bool:
    """Return whether a field is missing, or null, or just this text."""
    return value is None or value == text


def whole_of(value: object) -> int | None:
    """Return a number that counts something, None for anything else."""
    return value if type(value) is int and 0 <= value < _LARGEST else None


def object_of(value: object) -> Json:
    """Return an object, an empty one for anything else."""
    return value if is_object(value) else NOTHING


def list_of(value: object) -> list[object]:
    """Return a list, an empty one for anything else."""
    return value if is_list(value) else []


def words_of(value: object) -> list[str] | None:
    """Return a list of texts; None for an empty one and for anything else."""
    words = [word for word in list_of(value) if isinstance(word, str)]
    return words if words and len(words) == len(list_of(value)) else None


def texts_of(parts: object) -> tuple[str, ...]:
    """Return the texts of content parts, whatever they are called; a string is one part."""
    if isinstance(parts, str):
        return (parts,)
    found = (text_of(object_of(part).get("text")) for part in list_of(parts))
    return tuple(text for text in found if text is not None)


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NAMED = rb"(?P<name>%b)\s*+:\s*+" % _STRING
_OUTER = re.compile(rb"[{},\s]*+" + _NAMED)
"""Passes over the end of a payload, too."""
_INNER = re.compile(rb"[{,\s]*+" + _NAMED)
_PLAIN = re.compile(rb"%b|[^,}\s]++" % _STRING)
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|%b)*+[\[\]{}]' % _STRING)


@frozen
class Member:
    """A name as a parser has it, and from which byte to which its value stands."""

    name: str | None
    start: int
    end: int


def payload_members(line: bytes) -> Iterator[Member]:
    """Yield what stands directly in the payload of a record, in the order of the line.

    Nothing where the payload is no object.  What is there twice comes twice.
    """
    position = 0
    while outer := _OUTER.match(line, position):
        position = outer.end()
        if _name(outer) != "payload" or line[position : position + 1] != b"{":
            position = _end(line, position)
            continue
        while inner := _INNER.match(line, position):
            position = _end(line, inner.end())
            yield Member(_name(inner), inner.end(), position)


def _name(found: re.Match[bytes]) -> str | None:
    return text_of(load(found["name"]))


def _end(line: bytes, start: int) -> int:
    """Return where a value ends; where the line breaks off before, that is the end."""
    if line[start : start + 1] not in {b"[", b"{"}:
        plain = _PLAIN.match(line, start)
        return len(line) if plain is None else plain.end()
    depth = 0
    for bracket in _TO_BRACKET.finditer(line, start):
        depth += 1 if line[bracket.end() - 1] in b"[{" else -1
        if depth == 0:
            return bracket.end()
    return len(line)


CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""The control characters, as the inside of a regular expression's class."""
