"""Where each statement of a TOML text begins and ends, so that it can be edited without a rewrite.

For texts that `tomllib` accepts; about others nothing is promised.  What statements mean to us is
known to `config_file`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import Enum, auto
from typing import cast

from codex_checkpoints.values import frozen

_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[^\"'\#\[\]{}\n]+"
    r"|.",
    re.DOTALL,
)
_BLANK = re.compile(r"[ \t\r]*")


class Kind(Enum):
    """What a statement is."""

    BLANK = auto()
    COMMENT = auto()
    TABLE = auto()
    ELEMENT = auto()
    PAIR = auto()


@frozen
class Statement:
    """A stretch of whole lines; `path` is what the header of a table or an element names."""

    kind: Kind
    start: int
    end: int
    path: tuple[str, ...] = ()


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a valid text; together they are the text."""
    position = 0
    while position < len(text):
        start = position
        first = _BLANK.match(text, position)
        position = start if first is None else first.end()
        lead = text[position : position + 2]
        position = _end(text, position)
        whole = text[start:position]
        if lead[:1] in {"", "\n"}:
            yield Statement(Kind.BLANK, start, position)
        elif lead[0] == "#":
            yield Statement(Kind.COMMENT, start, position)
        elif lead[0] == "[":
            kind = Kind.ELEMENT if lead == "[[" else Kind.TABLE
            yield Statement(kind, start, position, _path(whole))
        else:
            yield Statement(Kind.PAIR, start, position)


def value_in(text: str, pair: Statement) -> tuple[int, int]:
    """Return where the value of a pair begins and ends, without what is said behind it."""
    position, start, end, depth = pair.start, None, pair.start, 0
    while position < pair.end and (piece := _PIECE.match(text, position)) is not None:
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


def _end(text: str, position: int) -> int:
    """Return the place behind the line end that no bracket or string swallows."""
    depth = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
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
    """Return the keys that a header names, read by the one who knows how."""
    names: list[str] = []
    value: object = tomllib.loads(header)
    while value:
        if isinstance(value, list):
            (value,) = cast("list[object]", value)
        else:
            ((name, value),) = cast("dict[str, object]", value).items()
            names.append(name)
    return tuple(names)
