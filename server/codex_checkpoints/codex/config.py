"""Find, write and remove our entries in the text of Codex's `config.toml`.

They are one block between two comments, and found by their contents, since Codex moves tables. A
change replaces the block; lines that others added to our tables are kept. Every other byte stays.
Each result is parsed again, and refused where other entries would change.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import cast

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import SERVER_NAME, CannotEdit, Entries, Hooks, Unreadable
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.values import Factory, frozen

BEGIN = "# >>> codex-checkpoints: added by `codex-checkpoints connect`, removed by `--remove`"
END = "# <<< codex-checkpoints"
"""A comment is one of the two only where it is all of the line: others may name us as well."""

_FEATURE = ("hooks", "codex_hooks")
"""How Codex calls its hooks among its features, and how it did at first."""

_SERVER = "mcp_servers"
_CALL = ("command", "args")


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
    """Return the entries of a `config.toml`.  Raises `Unreadable`."""
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
    if not _says_all(before, after, wanted):
        raise CannotEdit("our entries were rewritten by hand, and more in them than can be kept")
    return after


def without_entries(text: str) -> str | None:
    """Return the text without our entries, None where it is empty.  Raises `CannotEdit`."""
    if found_in(text).nothing and BEGIN not in text:
        return text
    head, tail, lead = _Layout(text).without_ours()
    left = head + (tail or "")
    if not found_in(_checked(text, [left])).nothing:
        raise CannotEdit("our entries were rewritten by hand and cannot be told from the rest")
    return None if lead == "" and left == "" else left


def _parsed(text: str) -> dict[str, object]:
    """Return what a text says.  Raises `Unreadable`."""
    try:
        # A float is compared as it is written: not every one equals itself.
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Codex takes what TOML 1.1 allows; whether `tomllib` does hangs on the Python.
        reason = "it is not valid TOML to this program, though Codex may read a newer form of it"
        raise Unreadable(f"{reason}: {error}") from error


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
    except Unreadable:
        return None


def _stand(found: Found, wanted: Entries) -> bool:
    due = [wanted.server()[name] for name in _CALL] if wanted.has_server else None
    there = None if found.server is None else [found.server.get(name) for name in _CALL]
    return there == due and wanted.stand_in(found.hooks.ours)


def _says_all(before: str, after: str, wanted: Entries) -> bool:
    """Return whether all additions to our wanted entries are kept."""
    old, new = (_additions(_parsed(text), wanted) for text in (before, after))
    return all(new.get(name) == value for name, value in old.items())


def _additions(data: Mapping[str, object], wanted: Entries) -> dict[str, object]:
    found = entries.added_to_hooks(_events(data), wanted)
    server = object_of(object_of(data.get(_SERVER)).get(SERVER_NAME))
    if wanted.has_server and server:
        found[_SERVER] = {n: v for n, v in server.items() if n not in _CALL}
    return found


def _replaced(text: str | None, wanted: Entries) -> Iterator[str]:
    """Yield the text with the new block in the old place, and with it at the end."""
    before = text or ""
    newline = "\r\n" if "\r\n" in before else "\n"
    layout = _Layout(before)
    tables, carried = _tables(layout, wanted)
    head, tail, old = layout.without_ours(carried)
    left = head + (tail or "")
    if not tables:
        yield left
        return
    block = newline.join([BEGIN, *tables[1:], END]) + newline
    lead = "" if text is None else newline
    if tail is not None:
        yield head + (lead if old is None else old) + block + tail
    yield left + lead + block


def _tables(layout: _Layout, wanted: Entries) -> tuple[list[str], list[Section]]:
    """Return the lines of our tables, a blank one before each, and the old tables they replace."""
    lines: list[str] = []
    carried: list[Section] = []

    def add(header: str, values: Mapping[str, object], old: list[Section], ours: set[str]) -> None:
        """Add a table with our values, or the old one with our values in it."""
        carried.extend(old)
        if old:
            due = {key: values.get(key) for key in ours}
            lines.extend(("", *layout.with_values(old[0], due)))
        else:
            lines.extend(("", header, *_pairs(values)))
        for below in old[1:]:
            lines.extend(("", *layout.with_values(below, {})))

    if wanted.has_server:
        header = f"[{_SERVER}.{SERVER_NAME}]"
        add(header, wanted.server(), layout.ours(_SERVER), {*_CALL})
    for hook in wanted.hooks:
        group = wanted.group(hook)
        (handler,) = entries.handlers_of(group)
        del group["hooks"]
        there = entries.to_replace(layout.events.get(hook.event, ()))
        place = None if there is None else f"{hook.event}:{there.group_number}"
        old = [] if there is None else layout.ours(f"{place}:{there.number}")
        outer = layout.ours(place) if place and old else []
        is_right = there is not None and there.matcher == hook.matcher
        add(f"[[hooks.{hook.event}]]", group, outer, set() if is_right else {"matcher"})
        ours = {"command"} if hook.context_limit is None else {"command", "additionalContextLimit"}
        add(f"[[hooks.{hook.event}.hooks]]", object_of(handler), old, ours)
    return lines, carried


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in values.items()]


def _value(value: object) -> str:
    """Return a value as TOML: a JSON string is a basic string, but for one escape."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, cast('list[object]', value)))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@frozen
class Section:
    """A header and the lines below it up to the last pair: later comments belong to the next table.

    `entry` is `mcp_servers`, `EVENT:GROUP` or `EVENT:GROUP:HANDLER`.
    """

    header: Statement
    lines: Sequence[Statement]
    entry: str
    is_ours: bool


class _Layout:
    """The tables of a valid text, and which are ours."""

    def __init__(self, text: str) -> None:
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._body = text.removeprefix(self._mark)
        self._statements = list(statements(self._body))
        data = _parsed(self._body)
        self.events = _events(data)
        self._has_server = entries.is_our_server(object_of(data.get(_SERVER)).get(SERVER_NAME))
        self._sections = list(self._read())
        self._marks = self._read_marks()

    def ours(self, entry: str) -> list[Section]:
        """Return the tables of an entry of ours, the outermost first."""
        found = [each for each in self._sections if each.is_ours and each.entry == entry]
        found.sort(key=lambda section: len(section.header.path))
        whole = bool(found) and len(found[0].header.path) == (3 if entry.count(":") > 1 else 2)
        return found if whole else []

    def with_values(self, section: Section, due: Mapping[str, object]) -> Iterator[str]:
        """Yield the lines of a table with these values in it; None removes a key."""
        yield self._text(section.header)
        missing = {key: value for key, value in due.items() if value is not None}
        for each in section.lines:
            if each.start in self._marks:
                continue
            text = self._text(each)
            pair = _parsed(text) if each.kind is Kind.PAIR else {}
            key = next(iter(pair), "")
            if key in due and (value := missing.pop(key, None)) != pair[key]:
                if value is None:
                    continue
                start, end = value_in(self._body, each)
                text = self._body[each.start : start] + _value(value) + text[end - each.start :]
            yield text
        yield from _pairs(missing)

    def without_ours(self, carried: Iterable[Section] = ()) -> tuple[str, str | None, str | None]:
        """Return what stands before our first entry, what is left behind, and the line end between.

        Without an entry of ours all stands before. Of `carried` tables the comments of others go as
        well.
        """
        gone = [*self._gone({each.start for section in carried for each in section.lines})]
        if not gone:
            return self._mark + self._body, None, None
        head = self._body[: gone[0]]
        tail = "".join(
            self._body[each.start : each.end]
            for each in self._statements
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
        return self._mark + head, tail, lead

    def _text(self, statement: Statement) -> str:
        return self._body[statement.start : statement.end].rstrip("\r\n")

    def _read(self) -> Iterator[Section]:
        everything = self._statements
        starts = [number for number, each in enumerate(everything) if each.kind in HEADERS]
        groups: dict[str, int] = {}
        handlers: dict[str, int] = {}
        for start, end in itertools.pairwise([*starts, len(everything)]):
            header, entry, is_ours = everything[start], "", False
            match header.path:
                case ("mcp_servers", name, *_):
                    entry, is_ours = _SERVER, name == SERVER_NAME and self._has_server
                case ("hooks", event, *below) if event in self.events:
                    if header.kind is Kind.ELEMENT and not below:
                        groups[event], handlers[event] = groups.get(event, -1) + 1, -1
                    elif header.kind is Kind.ELEMENT and below == ["hooks"]:
                        handlers[event] += 1
                    group = self.events[event][groups[event]]
                    entry, is_ours = f"{event}:{groups[event]}", entries.is_our_group(group)
                    if below[:1] == ["hooks"] and (number := handlers[event]) >= 0:
                        entry = f"{entry}:{number}"
                        is_ours = entries.is_our_handler(entries.handlers_of(group)[number])
                case _:
                    pass
            pairs = (n for n in range(start, end) if everything[n].kind is Kind.PAIR)
            last = max(pairs, default=start)
            yield Section(header, everything[start + 1 : last + 1], entry, is_ours)

    def _gone(self, carried: set[int]) -> Iterator[int]:
        """Yield where our tables and comments are, and the blank lines between the two comments."""
        ours = {section.header.start for section in self._sections if section.is_ours}
        within = mine = False
        for each in self._statements:
            if each.start in self._marks:
                within = self._marks[each.start] == BEGIN
                yield each.start
                continue
            if each.kind in HEADERS:
                mine = each.start in ours
            goes = within if each.kind is Kind.BLANK else each.kind is not Kind.COMMENT
            if each.start in carried or (mine and goes):
                yield each.start

    def _read_marks(self) -> dict[int, str]:
        """Return the places of our two comments, `BEGIN` and `END`.

        `END` is short: it is ours only behind `BEGIN`, or behind a table of ours.
        """
        comments = [
            (each.start, self._text(each).strip())
            for each in self._statements
            if each.kind is Kind.COMMENT
        ]
        firsts = [start for start, text in comments if text == BEGIN]
        tables = [section.header.start for section in self._sections if section.is_ours]
        begun = min((*firsts, *tables), default=len(self._body))
        seconds = (start for start, text in comments if text == END and start > begun)
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
