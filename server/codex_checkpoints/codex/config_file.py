"""Our entries in Codex's `config.toml`, put in and taken out as text.

Nothing is parsed and written anew, so every other byte stays: our tables are a block at the end,
between two comments, and are found by what they say, since Codex moves and copies tables between
the comments when it writes.  Each result is read once more and must say what it said before, with
our entries or without; else nothing comes of it.  A byte order mark and CRLF stay as they are.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import cast

from attrs import Factory

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.entries import SERVER_NAME, CannotEdit, Entries, Unreadable, Written
from codex_checkpoints.codex.toml_text import Kind, Statement, statements
from codex_checkpoints.values import frozen

BEGIN = "# >>> codex-checkpoints: added by `codex-checkpoints connect`, removed by `--remove`"
END = "# <<< codex-checkpoints"
_BEGINS, _ENDS = "# >>> codex-checkpoints", END
_FEATURE = ("hooks", "codex_hooks")
"""How Codex calls its hooks among its features, and how it did at first."""
_LINE_END = re.compile(r"\r?\n")


@frozen
class Found:
    """What a text has of ours and of others: our hooks by event, our server, foreign hooks.

    `places` are where hooks that call us stand, by event; `trusted` are the names under which Codex
    keeps that a person trusts a hook; `hooks_off` says that they have switched all hooks off.
    `by_hand` and `servers_by_hand` call us and were written by a person: they count as foreign.
    """

    hooks: Mapping[str, tuple[Written, ...]]
    server: Mapping[str, object] | None
    foreign_server: bool
    foreign_hooks: bool
    places: Mapping[str, tuple[str, ...]] = Factory(dict[str, "tuple[str, ...]"])
    trusted: frozenset[str] = frozenset()
    hooks_off: bool = False
    by_hand: Mapping[str, tuple[Written, ...]] = Factory(dict[str, "tuple[Written, ...]"])
    servers_by_hand: Mapping[str, Mapping[str, object]] = Factory(dict[str, "Mapping[str, object]"])

    @property
    def nothing(self) -> bool:
        """Say whether there is nothing of ours."""
        return not self.hooks and self.server is None

    @property
    def calls_nobody(self) -> bool:
        """Say whether nothing there calls us, whoever wrote it."""
        return self.nothing and not self.by_hand and not self.servers_by_hand


def found_in(text: str) -> Found:
    """Say what a `config.toml` holds.  Raises `Unreadable`."""
    data = _parsed(text)
    servers = _table(data.get("mcp_servers"))
    server = servers.get(SERVER_NAME)
    ours = entries.is_our_server(server)
    events = entries.groups_by_event(data.get("hooks"))
    return Found(
        entries.written_in(events, entries.is_our_handler),
        _table(server) if ours else None,
        server is not None and not ours,
        any(not entries.is_our_handler(h) for g in events.values() for h in entries.handlers_in(g)),
        {event: tuple(entries.places_of(groups)) for event, groups in events.items()},
        frozenset(
            name
            for name, state in _table(_table(data.get("hooks")).get("state")).items()
            if _table(state).get("trusted_hash") is not None
        ),
        any(_table(data.get("features")).get(name) is False for name in _FEATURE),
        entries.written_by_hand(events),
        {
            name: _table(table)
            for name, table in servers.items()
            if entries.calls_us("mcp", entries.words_of(table))
            and not (ours and name == SERVER_NAME)
        },
    )


def with_entries(text: str | None, wanted: Entries) -> str:
    """Return the text with our entries and no others of ours; the same text where they stand.

    None is a file that is not there.  Raises `CannotEdit`.
    """
    before = "" if text is None else text
    found = found_in(before)
    if wanted.has_server and found.foreign_server:
        raise CannotEdit(f"it has an MCP server named {SERVER_NAME} that is not ours")
    if _stand(found, wanted):
        return before
    mended = _mended(before, found, wanted)
    if mended is not None:
        return mended
    left = _without(before)
    newline = _newline(before)
    lead = left.lead if left.lead is not None else "" if text is None else newline
    block = newline.join(_block(wanted)) + newline
    place = len(left.text) if left.place is None else left.place
    after = left.text[:place] + lead + block + left.text[place:]
    if not (wanted.has_server or wanted.hooks):
        after = left.text
    if not _stand(_checked(before, after), wanted):
        raise CannotEdit("the new entries would not be read as they are meant")
    return after


def without_entries(text: str) -> str | None:
    """Return the text without anything of ours; None when nothing else was ever there.

    Raises `CannotEdit`.
    """
    if found_in(text).nothing and _BEGINS not in text:
        return text
    left = _without(text)
    if not _checked(text, left.text).nothing:
        raise CannotEdit("our entries were rewritten by hand and cannot be told from the rest")
    return None if left.lead == "" and left.text == "" else left.text


# --- text ----------------------------------------------------------------------------------------


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _block(wanted: Entries) -> list[str]:
    server = [f"[mcp_servers.{SERVER_NAME}]", *_pairs(wanted.server())]
    lines = [BEGIN, *(server if wanted.has_server else ())]
    for hook in wanted.hooks:
        group = wanted.group(hook)
        lines += ["", f"[[hooks.{hook.event}]]", *_pairs(group)]
        for handler in entries.handlers_of(group):
            lines += ["", f"[[hooks.{hook.event}.hooks]]", *_pairs(_table(handler))]
    return [*lines, END]


def _pairs(table: Mapping[str, object]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items() if key != "hooks"]


def _value(value: object) -> str:
    """Write a value as TOML: a JSON string is a basic string, but for one escape."""
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in cast('list[object]', value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _mended(text: str, found: Found, wanted: Entries) -> str | None:
    """Correct when our hooks are called, where they stand and nothing beside it.

    None where our entries have to be written anew.
    """
    if not (_server_stands(found, wanted) and wanted.calls_alike(found.hooks)):
        return None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    after, position = mark, 0
    for start, end, new in _corrections(body, wanted):
        after += body[position:start] + new
        position = end
    after += body[position:]
    try:
        return after if _stand(_checked(text, after), wanted) else None
    except CannotEdit:
        return None


def _corrections(body: str, wanted: Entries) -> Iterator[tuple[int, int, str]]:
    """Yield what is to stand in the place of which stretch, in the order of the text."""
    due: dict[tuple[str, ...], tuple[str, object]] = {}
    for hook in wanted.hooks:
        due["hooks", hook.event] = ("matcher", hook.matcher)
        if hook.context_limit is not None:
            due["hooks", hook.event, "hooks"] = ("additionalContextLimit", hook.context_limit)
    owner = _Owner(_parsed(body))
    everything = list(statements(body))
    headers = {Kind.TABLE, Kind.ELEMENT}
    for number, header in enumerate(everything):
        if header.kind not in headers or not owner.has(header) or header.path not in due:
            continue
        key, value = due[header.path]
        below = itertools.takewhile(lambda it: it.kind not in headers, everything[number + 1 :])
        pairs = ((it, _parsed(body[it.start : it.end])) for it in below if it.kind is Kind.PAIR)
        line = f"{key} = {_value(value)}"
        there, said = next(((it, data[key]) for it, data in pairs if key in data), (None, None))
        if there is None and value is not None:
            yield header.end, header.end, line + _newline(body)
        elif there is not None and value is None:
            yield there.start, there.end, ""
        elif there is not None and said != value:
            old = body[there.start : there.end]
            yield there.start, there.end, line + old[len(old.rstrip("\r\n")) :]


@frozen
class _Left:
    """A text without ours: where the block stood, and the line end that was put before it."""

    text: str
    place: int | None
    lead: str | None


def _without(text: str) -> _Left:
    """Take out our tables and comments, and the line end that `with_entries` put before them."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    ours = _ours(body)
    if not ours:
        return _Left(text, None, None)
    start = ours[0].start
    kept, position = "", start
    for statement in ours:
        kept += body[position : statement.start]
        position = statement.end
    head, tail = body[:start], kept + body[position:]
    lead: str | None = ""
    if head.endswith("\n"):
        lead = "\r\n" if head.endswith("\r\n") else "\n"
        shorter = head[: -len(lead)]
        if not tail or not shorter or shorter.endswith("\n"):
            head = shorter
        else:
            lead = None
    return _Left(mark + head + tail, len(mark + head), lead)


def _ours(body: str) -> list[Statement]:
    """Return what is to go: our tables and two comments, and the blank lines between those two."""
    owner = _Owner(_parsed(body))
    found: list[Statement] = []
    within = mine = False
    for statement in statements(body):
        line = body[statement.start : statement.end].strip()
        match statement.kind:
            case Kind.COMMENT if line.startswith(_BEGINS):
                within = mine = True
                found.append(statement)
            case Kind.COMMENT if line.startswith(_ENDS):
                within = mine = False
                found.append(statement)
            case Kind.TABLE | Kind.ELEMENT:
                mine = owner.has(statement)
                if mine:
                    found.append(statement)
            case Kind.BLANK if mine and within:
                found.append(statement)
            case Kind.PAIR if mine:
                found.append(statement)
            case _:
                pass
    return found


class _Owner:
    """Tell whose a header is, asked in the order of the file: it counts array elements."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self._server_is_ours = entries.is_our_server(
            _table(data.get("mcp_servers")).get(SERVER_NAME)
        )
        self._events = entries.groups_by_event(data.get("hooks"))
        self._groups: dict[str, int] = {}
        self._handler = -1

    def has(self, header: Statement) -> bool:
        match header.path:
            case ("mcp_servers", name, *_) if name == SERVER_NAME:
                return self._server_is_ours
            case ("hooks", event) if header.kind is Kind.ELEMENT:
                self._groups[event] = self._groups.get(event, -1) + 1
                self._handler = -1
                return entries.is_our_group(self._group(event))
            case ("hooks", event, "hooks") if header.kind is Kind.ELEMENT:
                self._handler += 1
                handlers = entries.handlers_of(self._group(event))[self._handler :][:1]
                return any(entries.is_our_handler(handler) for handler in handlers)
            case _:
                return False

    def _group(self, event: str) -> object:
        groups = self._events.get(event, [])[self._groups.get(event, 0) :]
        return groups[0] if groups else None


# --- meaning -------------------------------------------------------------------------------------


def _checked(before: str, after: str) -> Found:
    """Return what is found now; raise unless everything else says what it said before."""
    try:
        same = _foreign(_parsed(before)) == _foreign(_parsed(after))
    except CannotEdit:
        same = False
    if not same:
        raise CannotEdit(
            "hooks or MCP servers are written there in a form to which nothing can be added, "
            "and from which nothing can be taken, without rewriting them; "
            "write them as [mcp_servers.NAME] and [[hooks.EVENT]] tables first"
        )
    return found_in(after)


def _stand(found: Found, wanted: Entries) -> bool:
    return _server_stands(found, wanted) and wanted.stand_in(found.hooks)


def _server_stands(found: Found, wanted: Entries) -> bool:
    server, due = found.server, wanted.server()
    if server is None or not wanted.has_server:
        return server is None and not wanted.has_server
    return all(server.get(name) == due[name] for name in ("command", "args"))


def _foreign(data: Mapping[str, object]) -> dict[str, object]:
    """Return the data without what is ours, and without what is empty then."""
    rest = dict(data)
    servers = dict(_table(rest.pop("mcp_servers", None)))
    if entries.is_our_server(servers.get(SERVER_NAME)):
        del servers[SERVER_NAME]
    hooks = dict(_table(rest.pop("hooks", None)))
    for event, groups in entries.groups_by_event(hooks).items():
        hooks[event] = entries.foreign_groups(groups)
    kept = {name: value for name, value in hooks.items() if value not in ([], {})}
    return {**rest, "mcp_servers": servers, "hooks": kept}


def _parsed(text: str) -> dict[str, object]:
    try:
        # A float is compared as it is written: not every one equals itself.
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable(f"it is not valid TOML: {error}") from error


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
