"""Find, write and remove our entries in the text of Codex's `config.toml`.

They are one block between two comments, and found by their contents, since Codex moves tables. A
change takes all of them out and puts one block in their place, with the values that others added
to our tables; how those were written is not kept. Every byte outside our tables stays. Each result
is parsed again, and refused where other entries would change.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import (
    SERVER_NAME,
    CannotEdit,
    Entries,
    Hooks,
    UnreadableConfig,
)
from codex_checkpoints.core.rollout.fields import is_list, is_object, object_of
from codex_checkpoints.values import Factory, frozen

BEGIN = "# >>> codex-checkpoints: added by `codex-checkpoints connect`, removed by `--remove`"
END = "# <<< codex-checkpoints"
"""A comment is one of the two only where it is all of the line: others may name us as well."""

_FEATURE = ("hooks", "codex_hooks")
"""How Codex calls its hooks among its features, and how it did at first."""

_SERVER = "mcp_servers"
_BARE = re.compile(r"[\w-]+", re.ASCII)


@frozen
class Found:
    """The entries of a text: all hooks, our server, another server under our name.

    `trusted` and `switched_off` are the names of hooks in the records of Codex; `hooks_off` is
    whether all hooks are switched off. `servers_by_hand` call us and were written by a person.
    """

    hooks: Hooks = Hooks()
    server: Mapping[str, object] | None = None
    foreign_server: bool = False
    trusted: frozenset[str] = frozenset()
    switched_off: frozenset[str] = frozenset()
    hooks_off: bool = False
    servers_by_hand: Mapping[str, Mapping[str, object]] = Factory(dict[str, "Mapping[str, object]"])

    @property
    def nothing(self) -> bool:
        """Return whether there is no entry of ours."""
        return not self.hooks.ours and self.server is None

    @property
    def calls_nobody(self) -> bool:
        """Return whether no entry calls us, whoever wrote it."""
        return self.nothing and not self.hooks.by_hand and not self.servers_by_hand


def found_in(text: str) -> Found:
    """Return the entries of a `config.toml`.  Raises `UnreadableConfig`."""
    data = _parsed(text)
    servers = object_of(data.get(_SERVER))
    server = servers.get(SERVER_NAME)
    ours = entries.is_our_server(server)
    states = object_of(object_of(data.get("hooks")).get("state"))
    return Found(
        entries.hooks_in(_events(data)),
        object_of(server) if ours else None,
        server is not None and not ours,
        frozenset(n for n, s in states.items() if object_of(s).get("trusted_hash") is not None),
        frozenset(n for n, s in states.items() if object_of(s).get("enabled") is False),
        any(object_of(data.get("features")).get(name) is False for name in _FEATURE),
        {
            name: object_of(each)
            for name, each in servers.items()
            if entries.calls_us("mcp", entries.words_of(each))
            and not (ours and name == SERVER_NAME)
        },
    )


def with_entries(text: str | None, wanted: Entries) -> str:
    """Return the text with our wanted entries; the same text where they stand already.

    None is a file that does not exist. Raises `CannotEdit`.
    """
    before = text or ""
    found = found_in(before)
    if wanted.has_server and found.foreign_server:
        raise CannotEdit(f"it has an MCP server named {SERVER_NAME} that is not ours")
    if _stand(found, wanted):
        return before
    after = _checked(before, _replaced(text, wanted))
    if not _stand(found_in(after), wanted):
        raise CannotEdit("the new entries would not be read as they are meant")
    return after


def without_entries(text: str) -> str | None:
    """Return the text without our entries, None where it is empty.  Raises `CannotEdit`."""
    if found_in(text).nothing and BEGIN not in text:
        return text
    head, tail, lead = _without_ours(text)
    left = head + (tail or "")
    if not found_in(_checked(text, [left])).nothing:
        raise CannotEdit("our entries were rewritten by hand and cannot be told from the rest")
    return None if lead == "" and left == "" else left


class _Float(str):
    """A float as it is written: not every one equals itself."""

    __slots__ = ()


def _parsed(text: str) -> dict[str, object]:
    """Return what a text says.  Raises `UnreadableConfig`."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=_Float)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Codex takes what TOML 1.1 allows; whether `tomllib` does hangs on the Python.
        reason = "it is not valid TOML to this program, though Codex may read a newer form of it"
        raise UnreadableConfig(f"{reason}: {error}") from error


def _events(data: Mapping[str, object]) -> dict[str, list[object]]:
    return entries.events_of(data.get("hooks"))


def _checked(before: str, candidates: Iterable[str]) -> str:
    """Return the candidate that keeps the entries of others, best with their hooks in place."""
    foreign = _foreign_in(before)
    right = [each for each in candidates if _foreign_in(each) == foreign]
    if not right:
        raise CannotEdit(
            "hooks or MCP servers are written there in a form to which nothing can be added, "
            "and from which nothing can be taken, without rewriting them; "
            "write them as [mcp_servers.NAME] and [[hooks.EVENT]] tables first"
        )
    # Codex keeps the trust in a hook by its place among the hooks of an event.
    places = found_in(before).hooks.others
    return next((each for each in right if found_in(each).hooks.others == places), right[-1])


def _foreign_in(text: str) -> dict[str, object] | None:
    try:
        return entries.foreign(_parsed(text))
    except UnreadableConfig:
        return None


def _call_of(server: Mapping[str, object]) -> list[object]:
    return [server.get("command"), server.get("args")]


def _stand(found: Found, wanted: Entries) -> bool:
    due = _call_of(wanted.server()) if wanted.has_server else None
    there = None if found.server is None else _call_of(found.server)
    return there == due and wanted.stand_in(found.hooks.ours)


# --- our block -----------------------------------------------------------------------------------


def _replaced(text: str | None, wanted: Entries) -> Iterator[str]:
    """Yield the text with the new block in the old place, and with it at the end."""
    before = text or ""
    newline = "\r\n" if "\r\n" in before else "\n"
    head, tail, old = _without_ours(before)
    left = head + (tail or "")
    tables = [*_tables(_parsed(before), wanted)]
    if not tables:
        yield left
        return
    block = newline.join([BEGIN, *tables[1:], END]) + newline
    lead = "" if text is None else newline
    if tail is not None:
        yield head + (lead if old is None else old) + block + tail
    yield left + lead + block


def _tables(data: Mapping[str, object], wanted: Entries) -> Iterator[str]:
    """Yield the lines of our tables, with what others added to those that they replace."""
    if wanted.has_server:
        old = object_of(object_of(data.get(_SERVER)).get(SERVER_NAME))
        yield from _table((_SERVER, SERVER_NAME), wanted.renewed_server(old))
    events = _events(data)
    for hook in wanted.hooks:
        group = wanted.renewed(hook, events.get(hook.event, ()))
        yield from _table(("hooks", hook.event), group, is_element=True)


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
    """Return a value as TOML: a JSON string is a basic string, but for one escape."""
    if isinstance(value, _Float):
        return value
    if is_list(value):
        return f"[{', '.join(map(_value, value))}]"
    if is_object(value):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    if isinstance(value, str | bool | int):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # a date or a time


# --- what is ours in a text ----------------------------------------------------------------------


def _without_ours(text: str) -> tuple[str, str | None, str | None]:
    """Return what stands before our first entry, what is left behind, and the line end between.

    Without an entry of ours all stands before.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    everything = [*statements(body)]
    gone = [*_ours(body, everything)]
    if not gone:
        return text, None, None
    head = body[: gone[0]]
    tail = "".join(
        body[each.start : each.end]
        for each in everything
        if each.start > gone[0] and each.start not in gone
    )
    lead: str | None = ""
    if head.endswith("\n"):
        lead = "\r\n" if head.endswith("\r\n") else "\n"
        shorter = head[: -len(lead)]
        if not tail or not shorter or shorter.endswith("\n"):
            head = shorter
        else:
            lead = None
    return mark + head, tail, lead


def _ours(body: str, everything: Sequence[Statement]) -> Iterator[int]:
    """Yield where our tables and comments are, and the blank lines between the two comments."""
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
    """Yield where the headers of our tables are."""
    data = _parsed(body)
    events = _events(data)
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

    `END` is short: it is ours only behind `BEGIN`, or behind a table of ours.
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
