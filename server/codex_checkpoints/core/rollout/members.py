"""Where the members of a record's payload stand in its bytes, so that one can be exchanged alone.

For lines that `fields.load` reads, in one pass over their bytes: what a member holds is passed
over, bracket by bracket, and only its name is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codex_checkpoints.core.rollout.fields import load, text_of
from codex_checkpoints.values import frozen

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
