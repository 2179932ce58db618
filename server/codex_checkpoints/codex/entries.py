"""Our hooks and our MCP server as values, and how to recognise them.

An entry that `connect` wrote is recognised exactly, since it may be removed. An entry of a person
that calls us is recognised by its first words; it is reported and never edited.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from codex_checkpoints.core.rollout.fields import is_list, list_of, object_of
from codex_checkpoints.values import frozen

SERVER_NAME = "codex-checkpoints"
"""Codex shows our tools in the namespace `mcp__codex_checkpoints`; nobody's own `memory` is near.
"""

TOOLS = ("memory.apply", "memory.read", "memory.recall")
"""What our server offers, by the names that a person may list in `disabled_tools`."""

SERVER_SECONDS = 20
HOOK_SECONDS = 20

_CHECKED_OPTIONS = frozenset({"--codex-home", "--state-dir"})
_FLAGS = frozenset({"-I", "-P", "-S", "-u"})
_WINDOWS_WORD = re.compile(r'"([^"]*)"|(\S+)')


class CannotEdit(Exception):
    """A file that is not edited; the message says why, `code` is that of the refusal."""

    code = "conflict"


class UnreadableConfig(CannotEdit):
    """A text that is not of its format."""

    code = "unreadable_source"


@frozen
class CodexHook:
    """An event on which Codex calls us; `matcher` None matches every occasion."""

    event: str
    matcher: str | None = None
    context_limit: int | None = None


ON_START = CodexHook("SessionStart", "resume|compact|fork", context_limit=0)
"""The view goes back in where a window begins anew; 0 lets all of it through (DSC-54, DSC-59).

After `startup` and `clear` there is nothing to give, so we are not even started (AGN-1).
"""
HOOKS = (ON_START, CodexHook("PreCompact"), CodexHook("PostCompact"))
ON_PROMPT = CodexHook("UserPromptSubmit")
"""Off unless asked for: it would run before every prompt."""

_OCCASIONS: Mapping[str, tuple[str, ...]] = {
    "SessionStart": ("resume", "compact", "fork"),
    "PreCompact": ("manual", "auto"),
    "PostCompact": ("manual", "auto"),
    "UserPromptSubmit": ("",),
}
_PLAIN_MATCHER = re.compile(r"[\w|-]+")
_WHATEVER = frozenset({"", "*"})
"""Matchers that take everything, as none does."""


@frozen
class Entries:
    """Our entries for Codex: the program, the server, the wanted hooks."""

    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    hooks: tuple[CodexHook, ...] = HOOKS
    has_server: bool = True
    """Whether our server belongs there; where a person has written one, it does not."""

    @property
    def hook_command(self) -> str:
        """Return the shell command of our hooks."""
        return join((*self.program, "hook", *self.options))

    def stand_in(self, hooks: ByEvent) -> bool:
        """Return whether these hooks are exactly the wanted ones."""
        found = {event: [each.command for each in there] for event, there in hooks.items()}
        return found == {hook.event: [self.hook_command] for hook in self.hooks} and all(
            each.is_for(hook) for hook in self.hooks for each in hooks[hook.event]
        )

    def server(self) -> dict[str, object]:
        """Return the table of our MCP server; Codex starts it without a shell."""
        return {
            "command": self.program[0],
            "args": [*self.program[1:], "mcp", *self.options],
            "startup_timeout_sec": SERVER_SECONDS,
            "tool_timeout_sec": SERVER_SECONDS,
        }

    def group(self, hook: CodexHook) -> dict[str, Any]:
        """Return the group of one event: its matcher and our one handler."""
        handler: dict[str, object] = {
            "type": "command",
            "command": self.hook_command,
            "timeout": HOOK_SECONDS,
        }
        if hook.context_limit is not None:
            handler["additionalContextLimit"] = hook.context_limit
        matcher: dict[str, object] = {} if hook.matcher is None else {"matcher": hook.matcher}
        return {**matcher, "hooks": [handler]}

    def renewed_server(self, old: Mapping[str, object]) -> dict[str, object]:
        """Return the table of our MCP server with what others added to the old one."""
        new = self.server()
        return {**old, "command": new["command"], "args": new["args"]} if old else new

    def renewed(self, hook: CodexHook, groups: Iterable[object]) -> dict[str, Any]:
        """Return the group of one event with what others added to ours among the old groups."""
        new, there = self.group(hook), to_replace(hook.event, groups)
        if there is None:
            return new
        (handler,) = new["hooks"]
        ours = {"command", "additionalContextLimit"}
        due = {name: value for name, value in handler.items() if name in ours}
        new["hooks"] = [{**object_of(there.table), **due}]
        if not is_our_group(there.group):
            return new
        old = dict(object_of(there.group))
        if there.matcher == hook.matcher:
            new.pop("matcher", None)  # another word for it may stay
        else:
            old.pop("matcher", None)
        return {**new, **old, "hooks": new["hooks"]}


def join(words: Sequence[str]) -> str:
    """Quote words for the shell of this system."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def split(command: str) -> list[str]:
    """Return the words of a command; none where it cannot be split."""
    if os.name == "nt":
        return [quoted or bare for quoted, bare in _WINDOWS_WORD.findall(command)]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def is_call_of(verb: str, words: Sequence[str]) -> bool:
    """Return whether `connect` wrote this command, with any folders; others never match."""
    left = list(words[1:])
    while left and (left[0] in _FLAGS or left[:2] == ["-X", "utf8"]):
        del left[: 2 if left[0] == "-X" else 1]
    is_module = left[:2] == ["-m", "codex_checkpoints"]
    place = "".join(left[:1]).replace("\\", "/").split("/")
    if not is_module and place[-2:] != ["bundled", "launch.py"]:
        return False
    called, *options = left[2 if is_module else 1 :] or [""]
    return called == verb and len(options) % 2 == 0 and {*options[::2]} <= _CHECKED_OPTIONS


def calls_us(verb: str, words: Sequence[str]) -> bool:
    """Return whether this command calls us, written by `connect` or by a person.

    A person writes the name of the program, with its folder or without.
    """
    program = words[0].replace("\\", "/").rpartition("/")[2] if words else ""
    by_name = program.removesuffix(".exe") == SERVER_NAME and [*words[1:2]] == [verb]
    return by_name or is_call_of(verb, words)


def is_our_server(table: object) -> bool:
    """Return whether `connect` wrote this table of an MCP server."""
    return is_call_of("mcp", words_of(table))


def words_of(server: object) -> list[str]:
    """Return the command and arguments of an MCP server; none where it is no such table."""
    command, arguments = _field(server, "command"), _field(server, "args")
    if not isinstance(command, str) or not is_list(arguments):
        return []
    return [command, *map(str, arguments)]


def offers_all(server: Mapping[str, object]) -> bool:
    """Return whether Codex offers each of our tools to a model.

    It offers `enabled_tools`, or all without such a list, less `disabled_tools`.
    """
    allowed, banned = server.get("enabled_tools"), server.get("disabled_tools")
    return server.get("enabled") is not False and all(
        (not is_list(allowed) or tool in allowed) and tool not in list_of(banned) for tool in TOOLS
    )


ByEvent = Mapping[str, "Sequence[Handler]"]


@frozen
class Hooks:
    """The hooks of one file, or of several."""

    all: tuple[Handler, ...] = ()

    @property
    def ours(self) -> ByEvent:
        """Return those that `connect` wrote, by event."""
        return _by_event(each for each in self.all if each.is_ours)

    @property
    def by_hand(self) -> ByEvent:
        """Return those that a person wrote to call us, by event."""
        return _by_event(each for each in self.all if each.is_by_hand)

    @property
    def calling(self) -> ByEvent:
        """Return all that call us, by event."""
        return _by_event(each for each in self.all if each.is_ours or each.is_by_hand)

    @property
    def others(self) -> Sequence[tuple[str, str]]:
        """Return event and place of those that `connect` did not write."""
        return [(each.event, each.place) for each in self.all if not each.is_ours]


def _by_event(handlers: Iterable[Handler]) -> ByEvent:
    found: dict[str, list[Handler]] = {}
    for each in handlers:
        found.setdefault(each.event, []).append(each)
    return found


def hooks_in(events: Mapping[str, Sequence[object]]) -> Hooks:
    """Return the hooks among the groups of each event."""
    return Hooks(tuple(each for event in events for each in handlers_in(event, events[event])))


@frozen
class Handler:
    """A handler of an event and its group, each with its number; `table` is its own."""

    event: str
    group_number: int
    number: int
    group: object
    table: object

    @property
    def is_ours(self) -> bool:
        """Return whether `connect` wrote it."""
        return is_our_handler(self.table)

    @property
    def calls_us(self) -> bool:
        """Return whether it calls us, whoever wrote it."""
        return calls_us("hook", _command_of(self.table))

    @property
    def is_by_hand(self) -> bool:
        """Return whether a person wrote it to call us, on an occasion that there is."""
        return self.calls_us and not self.is_ours and bool(self.occasions())

    @property
    def place(self) -> str:
        """Return its place among the groups of its event, as Codex counts."""
        return f"{self.group_number}:{self.number}"

    @property
    def command(self) -> str:
        """Return its shell command."""
        return str(_field(self.table, "command"))

    @property
    def matcher(self) -> str | None:
        """Return its matcher; None where it matches every occasion."""
        matcher = _field(self.group, "matcher")
        return matcher if isinstance(matcher, str) and matcher not in _WHATEVER else None

    def is_for(self, hook: CodexHook) -> bool:
        """Return whether its matcher and limit are those of a hook."""
        limits = (None, _field(self.table, "additionalContextLimit"))
        return self.matcher == hook.matcher and hook.context_limit in limits

    def occasions(self) -> tuple[str, ...]:
        """Return the occasions of its event for which it is called."""
        return tuple(each for each in _OCCASIONS.get(self.event, ()) if self._takes(each))

    def _takes(self, occasion: str) -> bool:
        if self.matcher is None:
            return True
        if _PLAIN_MATCHER.fullmatch(self.matcher):
            return occasion in self.matcher.split("|")
        with contextlib.suppress(re.error):
            return re.search(self.matcher, occasion) is not None
        return False


def events_of(hooks: object) -> dict[str, list[object]]:
    """Return the groups of each event of a table of hooks."""
    return {event: groups for event, groups in object_of(hooks).items() if is_list(groups)}


def handlers_of(group: object) -> list[object]:
    """Return the handlers of a group of hooks."""
    return list_of(_field(group, "hooks"))


def handlers_in(event: str, groups: Iterable[object]) -> Iterator[Handler]:
    """Yield the handlers of all groups of an event."""
    for group_number, group in enumerate(groups):
        for number, handler in enumerate(handlers_of(group)):
            yield Handler(event, group_number, number, group, handler)


def to_replace(event: str, groups: Iterable[object]) -> Handler | None:
    """Return our handler that a new one replaces: the first, best in a group of our own."""
    ours = [each for each in handlers_in(event, groups) if each.is_ours]
    alone = (each for each in ours if is_our_group(each.group))
    return next(alone, next(iter(ours), None))


def is_our_handler(handler: object) -> bool:
    """Return whether `connect` wrote this handler."""
    return is_call_of("hook", _command_of(handler))


def is_our_group(group: object) -> bool:
    """Return whether a group has our handlers and no others."""
    handlers = handlers_of(group)
    return bool(handlers) and all(map(is_our_handler, handlers))


def without_ours(events: Mapping[str, Sequence[object]]) -> dict[str, list[object]]:
    """Return the groups of each event without our handlers, and without groups of only ours."""
    left: dict[str, list[object]] = {}
    for event, groups in events.items():
        left[event] = []
        for group in groups:
            rest = [each for each in handlers_of(group) if not is_our_handler(each)]
            if len(rest) == len(handlers_of(group)):
                left[event].append(group)
            elif rest:
                left[event].append({**object_of(group), "hooks": rest})
    return left


def foreign(data: Mapping[str, object]) -> dict[str, object]:
    """Return a parsed file without our entries, and without tables that are empty then."""
    rest = dict(data)
    servers = dict(object_of(rest.pop("mcp_servers", None)))
    if is_our_server(servers.get(SERVER_NAME)):
        del servers[SERVER_NAME]
    hooks = {**object_of(rest.get("hooks")), **without_ours(events_of(rest.pop("hooks", None)))}
    kept = {name: value for name, value in hooks.items() if value not in ([], {})}
    return {**rest, "mcp_servers": servers, "hooks": kept}


def _command_of(handler: object) -> list[str]:
    """Return the words of the command of a handler."""
    command = _field(handler, "command")
    return split(command) if isinstance(command, str) else []


def _field(value: object, name: str) -> object:
    return object_of(value).get(name)
