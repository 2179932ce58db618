"""Our entries in Codex's `config.toml`, put in and taken out as text.

Nothing is parsed and written anew, so every other byte stays, a byte order mark and CRLF as well;
`config_text` does that.  Each result is read once more and must say what it said before, with our
entries or without, and all that somebody added to ours; else nothing comes of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import Factory

from codex_checkpoints.codex import config_changes, config_text, entries
from codex_checkpoints.codex.amending import additions
from codex_checkpoints.codex.config_text import parsed, table
from codex_checkpoints.codex.entries import SERVER_NAME, CannotEdit, Entries, Written
from codex_checkpoints.values import frozen

_CORRECTED = ("command", "args")
_FEATURE = ("hooks", "codex_hooks")
"""How Codex calls its hooks among its features, and how it did at first."""


@frozen
class Found:
    """What a text has of ours and of others: our hooks by event, our server, foreign hooks.

    `places` are where hooks that call us stand, by event; `trusted` are the names under which Codex
    keeps that a person trusts a hook, `switched_off` those of hooks that they switched off;
    `hooks_off` says that they have switched all hooks off.
    `by_hand` and `servers_by_hand` call us and were written by a person: they count as foreign.
    """

    hooks: Mapping[str, tuple[Written, ...]]
    server: Mapping[str, object] | None
    foreign_server: bool
    foreign_hooks: bool
    places: Mapping[str, tuple[str, ...]] = Factory(dict[str, "tuple[str, ...]"])
    trusted: frozenset[str] = frozenset()
    switched_off: frozenset[str] = frozenset()
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
    data = parsed(text)
    servers = table(data.get("mcp_servers"))
    server = servers.get(SERVER_NAME)
    ours = entries.is_our_server(server)
    events = entries.groups_by_event(data.get("hooks"))
    states = table(table(data.get("hooks")).get("state"))
    return Found(
        entries.written_in(events, entries.is_our_handler),
        table(server) if ours else None,
        server is not None and not ours,
        any(not entries.is_our_handler(h) for g in events.values() for h in entries.handlers_in(g)),
        {event: tuple(entries.places_of(groups)) for event, groups in events.items()},
        frozenset(n for n, s in states.items() if table(s).get("trusted_hash") is not None),
        frozenset(n for n, s in states.items() if table(s).get("enabled") is False),
        any(table(data.get("features")).get(name) is False for name in _FEATURE),
        entries.written_by_hand(events),
        {
            name: table(each)
            for name, each in servers.items()
            if entries.calls_us("mcp", entries.words_of(each))
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
    if found.nothing:
        after = config_text.with_block(text, wanted)
    elif wanted.has_server or wanted.hooks:
        after = config_changes.amended(before, wanted)
    else:
        after = config_text.without(before).text
    if not _stand(_checked(before, after), wanted):
        raise CannotEdit("the new entries would not be read as they are meant")
    if not _says_all(before, after, wanted):
        raise CannotEdit("our entries were rewritten by hand, and more in them than can be kept")
    return after


def without_entries(text: str) -> str | None:
    """Return the text without anything of ours; None when nothing else was ever there.

    Raises `CannotEdit`.
    """
    if found_in(text).nothing and config_text.BEGIN not in text:
        return text
    left = config_text.without(text)
    if not _checked(text, left.text).nothing:
        raise CannotEdit("our entries were rewritten by hand and cannot be told from the rest")
    return None if left.lead == "" and left.text == "" else left.text


# --- meaning -------------------------------------------------------------------------------------


def _checked(before: str, after: str) -> Found:
    """Return what is found now; raise unless everything else says what it said before."""
    try:
        same = _foreign(parsed(before)) == _foreign(parsed(after))
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
    return all(server.get(name) == due[name] for name in _CORRECTED)


def _says_all(before: str, after: str, wanted: Entries) -> bool:
    """Say whether all that was added to those of our entries that are wanted stands there still."""
    old, new = _additions(parsed(before), wanted), _additions(parsed(after), wanted)
    return all(new.get(name) == value for name, value in old.items())


def _additions(data: Mapping[str, object], wanted: Entries) -> dict[str, object]:
    found = additions(entries.groups_by_event(data.get("hooks")), wanted)
    server = table(table(data.get("mcp_servers")).get(SERVER_NAME))
    if wanted.has_server and server:
        found["mcp_servers"] = {n: v for n, v in server.items() if n not in _CORRECTED}
    return found


def _foreign(data: Mapping[str, object]) -> dict[str, object]:
    """Return the data without what is ours, and without what is empty then."""
    rest = dict(data)
    servers = dict(table(rest.pop("mcp_servers", None)))
    if entries.is_our_server(servers.get(SERVER_NAME)):
        del servers[SERVER_NAME]
    hooks = dict(table(rest.pop("hooks", None)))
    for event, groups in entries.groups_by_event(hooks).items():
        hooks[event] = entries.foreign_groups(groups)
    kept = {name: value for name, value in hooks.items() if value not in ([], {})}
    return {**rest, "mcp_servers": servers, "hooks": kept}
