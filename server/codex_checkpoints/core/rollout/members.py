"""Where the members of a record and of its payload stand in the bytes of a line.

For whoever changes one value of a line and keeps every other byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codex_checkpoints.core.rollout.fields import load, text_of
from codex_checkpoints.values import frozen

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NAMED = rb"(?P<name>%b)\s*+:\s*+" % _STRING
_OUTER = re.compile(rb"[{},\s]*+" + _NAMED)
"""It also passes over the end of a payload."""
_INNER = re.compile(rb"[{,\s]*+" + _NAMED)
_PLAIN = re.compile(rb"%b|[^,}\s]++" % _STRING)
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|%b)*+[\[\]{}]' % _STRING)


@frozen
class Member:
    """A key, None if it cannot be decoded, and the first and last offset of its value."""

    name: str | None
    start: int
    end: int


def payload_members(line: bytes) -> Iterator[Member]:
    """Yield the members of the payload of a record in their order, repetitions included.

    Yields nothing if the payload is no object.
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
    """Return where a value ends, or the end of the line if it is cut off."""
    if line[start : start + 1] not in {b"[", b"{"}:
        plain = _PLAIN.match(line, start)
        return len(line) if plain is None else plain.end()
    depth = 0
    for bracket in _TO_BRACKET.finditer(line, start):
        depth += 1 if line[bracket.end() - 1] in b"[{" else -1
        if depth == 0:
            return bracket.end()
    return len(line)
