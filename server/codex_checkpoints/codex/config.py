"""Finds, writes and removes our entries in the text of Codex's `config.toml`.

They are one block between two comments, and found by their contents, since Codex moves tables.  A
change takes all of them out and puts one block at the end, with the values that others added to the
table of our server.  Every byte outside our tables stays.  Each result is parsed again, and refused
if other entries would change.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from attrs import frozen

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import (
    SERVER_NAME,
    CannotEdit,
    Entries,
    Groups,
    OurHook,
    UnreadableConfig,
)
from codex_checkpoints.core.fields import is_list, is_object, object_of

BEGIN = "# >>> codex-checkpoints: added by `codex-checkpoints connect`, removed by `--remove`"
END = "# <<< codex-checkpoints"
"""A comment is one of the two only if it is the whole line: others may name us as well."""

_SERVER = "mcp_servers"
_BARE = re.compile(r"[\w-]+", re.ASCII)


@frozen
class Found:
    """The groups of hooks of a text, and the table of our server."""

    groups: Groups
    server: Mapping[str, object] | None

    @property
    def hooks(self) -> Sequence[OurHook]:
        """Return our hooks."""
        return tuple(entries.ours_in(self.groups))

    @property
    def nothing(self) -> bool:
        """Return whether the text has none of our entries."""
        return not self.hooks and self.server is None


def found_in(text: str) -> Found:
    """Return the entries of a `config.toml`.  Raises `UnreadableConfig`."""
    data = _parsed(text)
    server = object_of(data.get(_SERVER)).get(SERVER_NAME)
    ours = object_of(server) if entries.is_our_server(server) else None
    return Found(entries.groups_in(data), ours)


def with_entries(text: str | None, wanted: Entries) -> str:
    """Return the text with our wanted entries; the same text if it has them already.

    None is a file that does not exist.  Raises `CannotEdit`.
    """
    before = text or ""
    found = found_in(before)
    if found.server is None and SERVER_NAME in object_of(_parsed(before).get(_SERVER)):
        raise CannotEdit(f"it has an MCP server named {SERVER_NAME} that is not ours")
    server = wanted.server(found.server or {})
    if found.server == server and wanted.are_all(found.hooks):
        return before
    newline = "\r\n" if "\r\n" in before else "\n"
    tables = [*_table((_SERVER, SERVER_NAME), server)]
    for hook in wanted.hooks:
        tables += _table(("hooks", hook.event), wanted.group(hook), is_element=True)
    left, is_all = _without_ours(before)
    lead = "" if text is None or (is_all and not left) else newline
    return _checked(before, left + lead + newline.join([BEGIN, *tables[1:], END]) + newline)


def without_entries(text: str) -> str | None:
    """Return the text without our entries, None if it is empty.  Raises `CannotEdit`."""
    if found_in(text).nothing and BEGIN not in text:
        return text
    left, is_all = _without_ours(text)
    if not found_in(_checked(text, left)).nothing:
        raise CannotEdit("our entries were rewritten by hand and cannot be told from the rest")
    return None if is_all and not left else left


class _Float(str):
    """A float as it is written: not every one equals itself."""

    __slots__ = ()


def _parsed(text: str) -> dict[str, object]:
    """Return the values of a text.  Raises `UnreadableConfig`."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=_Float)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Codex accepts TOML 1.1; whether `tomllib` does depends on the Python.
        reason = "it is not valid TOML to this program, though Codex may read a newer form of it"
        raise UnreadableConfig(f"{reason}: {error}") from error


def _checked(before: str, after: str) -> str:
    """Return a text that keeps the entries of others; raises `CannotEdit` if it does not."""
    try:
        is_same = entries.foreign(_parsed(before)) == entries.foreign(_parsed(after))
    except UnreadableConfig:
        is_same = False
    if not is_same:
        raise CannotEdit(
            "hooks or MCP servers are written there in a form to which nothing can be added, "
            "and from which nothing can be taken, without rewriting them; "
            "write them as [mcp_servers.NAME] and [[hooks.EVENT]] tables first"
        )
    return after


# --- our block -----------------------------------------------------------------------------------


def _table(
    path: Sequence[str], values: Mapping[str, object], *, is_element: bool = False
) -> Iterator[str]:
    """Yield the lines of a table and those below it, a blank one before each header."""
    tables = {key: value for key, value in values.items() if is_object(value)}
    lists = {
        key: [*map(object_of, value)]
        for key, value in values.items()
        if is_list(value) and value and all(map(is_object, value))
    }
    pairs = [f"{_key(k)} = {_value(v)}" for k, v in values.items() if k not in {*tables, *lists}]
    if pairs or is_element or not tables:
        header = ".".join(map(_key, path))
        yield from ("", f"[[{header}]]" if is_element else f"[{header}]", *pairs)
    for key, table in tables.items():
        yield from _table((*path, key), table)
    for key, elements in lists.items():
        for each in elements:
            yield from _table((*path, key), each, is_element=True)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: object) -> str:
    """Return a value as TOML: a JSON string is a basic string, except for one escape."""
    if isinstance(value, _Float):
        return value
    if is_list(value):
        return f"[{', '.join(map(_value, value))}]"
    if is_object(value):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    if isinstance(value, str | bool | int):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # a date or a time


# --- our part of a text ---------------------------------------------------------------------------


def _without_ours(text: str) -> tuple[str, bool]:
    """Return the text without our entries, and whether it began with the first of them."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    everything = [*statements(body)]
    gone = [*_ours(body, everything)]
    if not gone:
        return text, False
    head = body[: gone[0]]
    tail = "".join(
        body[each.start : each.end]
        for each in everything
        if each.start > gone[0] and each.start not in gone
    )
    # The line end that was added before our block.
    shorter = head.removesuffix("\n").removesuffix("\r") if head.endswith("\n") else head
    if not tail or not shorter or shorter.endswith("\n"):
        head = shorter
    return mark + head + tail, gone[0] == 0


def _ours(body: str, everything: Sequence[Statement]) -> Iterator[int]:
    """Yield the places of our tables and comments, and the blank lines between the two comments."""
    tables = {*_our_headers(body, everything)}
    marks = _marks(body, everything, tables)
    within = mine = False
    for each in everything:
        if each.kind in HEADERS:
            mine = each.start in tables
        if each.start in marks:
            within = marks[each.start] == BEGIN
            yield each.start
        elif mine and (within if each.kind == "blank" else each.kind != "comment"):
            yield each.start


def _our_headers(body: str, everything: Sequence[Statement]) -> Iterator[int]:
    """Yield the places of the headers of our tables."""
    data = _parsed(body)
    events = entries.groups_in(data)
    has_server = entries.is_our_server(object_of(data.get(_SERVER)).get(SERVER_NAME))
    groups, handlers = (dict.fromkeys(events, -1) for _ in range(2))
    for each in everything:
        is_ours, is_element = False, each.kind == "element"
        match each.path:
            case ("mcp_servers", name, *_):
                is_ours = name == SERVER_NAME and has_server
            case ("hooks", event, *below) if event in events:
                if is_element and not below:
                    groups[event], handlers[event] = groups[event] + 1, -1
                elif is_element and below == ["hooks"]:
                    handlers[event] += 1
                group, number = events[event][groups[event]], handlers[event]
                if below[:1] == ["hooks"] and number >= 0:
                    is_ours = entries.is_our_handler(entries.handlers_of(group)[number])
                else:
                    is_ours = entries.is_our_group(group)
            case _:
                pass
        if is_ours:
            yield each.start


def _marks(body: str, everything: Sequence[Statement], tables: Iterable[int]) -> dict[int, str]:
    """Return the places of our two comments, `BEGIN` and `END`.

    `END` is short: it is ours only after `BEGIN`, or after a table of ours.
    """
    comments = {e.start: body[e.start : e.end].strip() for e in everything if e.kind == "comment"}
    firsts = [start for start, text in comments.items() if text == BEGIN]
    begun = min((*firsts, *tables), default=len(body))
    seconds = [start for start, text in comments.items() if text == END and start > begun]
    return {**dict.fromkeys(firsts, BEGIN), **dict.fromkeys(seconds, END)}


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


HEADERS = frozenset({"table", "element"})


@frozen
class Statement:
    """A stretch of whole lines; `path` has the keys of a header."""

    kind: Literal["blank", "comment", "table", "element", "pair"]
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
                kind = "blank"
            case lead if lead[0] == "#":
                kind = "comment"
            case "[[":
                kind = "element"
            case lead if lead[0] == "[":
                kind = "table"
            case _:
                kind = "pair"
        path = _path(whole) if kind in HEADERS else ()
        yield Statement(kind, start, position, path)


def _statement_end(text: str, position: int) -> int:
    """Return the place after the line end outside of brackets and strings."""
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
