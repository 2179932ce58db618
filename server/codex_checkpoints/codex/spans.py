"""The places of values in a valid TOML or JSON text, to edit it in place."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import cast

from codex_checkpoints.values import frozen

_TOML_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[^\"'\#\[\]{}\n]+"
    r"|.",
    re.DOTALL,
)


class Kind(Enum):
    """The kind of a statement."""

    BLANK = auto()
    COMMENT = auto()
    TABLE = auto()
    ELEMENT = auto()
    PAIR = auto()


HEADERS = frozenset({Kind.TABLE, Kind.ELEMENT})


@frozen
class Statement:
    """A stretch of whole lines; `path` has the keys of a header."""

    kind: Kind
    start: int
    end: int
    path: tuple[str, ...] = ()


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a valid text; together they are the text."""
    position = 0
    while position < len(text):
        start = position
        position = _statement_end(text, start)
        whole = text[start:position]
        match whole.lstrip(" \t\r")[:2]:
            case "" | "\n":
                kind = Kind.BLANK
            case lead if lead[0] == "#":
                kind = Kind.COMMENT
            case "[[":
                kind = Kind.ELEMENT
            case lead if lead[0] == "[":
                kind = Kind.TABLE
            case _:
                kind = Kind.PAIR
        path = _path(whole) if kind in HEADERS else ()
        yield Statement(kind, start, position, path)


def value_in(text: str, pair: Statement) -> tuple[int, int]:
    """Return where the value of a pair begins and ends, without a comment behind it."""
    position, start, end, depth = pair.start, None, pair.start, 0
    while position < pair.end and (piece := _TOML_PIECE.match(text, position)) is not None:
        word = piece.group()
        if start is None and "=" in word and word[0] not in "\"'":
            start = position + word.index("=") + 1
        if word[0] == "#" and depth == 0:
            break
        depth += (word in {"[", "{"}) - (word in {"]", "}"})
        position = end = piece.end()
    start = pair.start if start is None else start
    value = text[start:end]
    return end - len(value.lstrip()), start + len(value.rstrip())


def _statement_end(text: str, position: int) -> int:
    """Return the place behind the line end outside of brackets and strings."""
    depth = 0
    while position < len(text):
        piece = _TOML_PIECE.match(text, position)
        position = len(text) if piece is None else piece.end()
        match text[position - 1] if piece is not None and piece.end() - piece.start() == 1 else "":
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth <= 0:
                break
            case _:
                pass
    return position


def _path(header: str) -> tuple[str, ...]:
    """Return the keys of a header, as `tomllib` reads it."""
    names: list[str] = []
    value: object = tomllib.loads(header)
    while value:
        if isinstance(value, list):
            (value,) = cast("list[object]", value)
        else:
            ((name, value),) = cast("dict[str, object]", value).items()
            names.append(name)
    return tuple(names)


_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@frozen
class Part:
    """A value of an array or an object; `start` is that of its name, if it has one."""

    start: int
    value: int
    end: int
    name: str | None = None


def parts(text: str, position: int) -> Iterator[Part]:
    """Yield the values of the array or object that begins here; none for another value."""
    if text[position : position + 1] not in {"[", "{"}:
        return
    named = text[position] == "{"
    position = _space(text, position + 1)
    while text[position] not in "]}":
        start, name = position, None
        if named:
            name, end = _DECODER.raw_decode(text, position)
            position = _space(text, _space(text, end) + 1)
        _, end = _DECODER.raw_decode(text, position)
        yield Part(start, position, end, name)
        position = _space(text, end)
        if text[position] == ",":
            position = _space(text, position + 1)


def first(text: str) -> int:
    """Return where the value of a text begins."""
    return _space(text, 0)


def member(text: str, position: int, name: str) -> Part | None:
    """Return the member of an object by its name, the last of several."""
    if text[position : position + 1] != "{":
        return None
    found = [part for part in parts(text, position) if part.name == name]
    return found[-1] if found else None


def without(text: str, siblings: list[Part], gone: int) -> str:
    """Return a text without one value of an array or object, and without its comma."""
    part = siblings[gone]
    if gone > 0:
        return text[: siblings[gone - 1].end] + text[part.end :]
    if len(siblings) > 1:
        return text[: part.start] + text[siblings[1].start :]
    return text[: part.start] + text[part.end :]


def with_values(text: str, values: Mapping[str, object]) -> str:
    """Return the text of an object with these members in it; None removes a member.

    The object has a member that is not named here.
    """
    for name, value in values.items():
        siblings = list(parts(text, 0))
        at = max((number for number, each in enumerate(siblings) if each.name == name), default=-1)
        new = json.dumps(value, ensure_ascii=False)
        if at < 0:
            text = text if value is None else f"{{{json.dumps(name)}: {new}, {text[1:]}"
        elif value is None:
            text = without(text, siblings, at)
        elif json.loads(text[siblings[at].value : siblings[at].end]) != value:
            text = text[: siblings[at].value] + new + text[siblings[at].end :]
    return text


def _space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()
