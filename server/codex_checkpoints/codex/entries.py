"""What Codex is to call: our hooks and our MCP server, as values, and how to know them again.

What `connect` wrote is known exactly, since it may be taken out again.  What a person wrote to call
us is known by its first words; that is looked at and never edited.  Where either stands in a file
is the business of `config_file` and `hooks_file`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from codex_checkpoints.values import frozen

SERVER_NAME = "codex-checkpoints"
"""Codex shows our tools in the namespace `mcp__codex_checkpoints`; nobody's own `memory` is near.
"""

TOOLS = ("memory.apply", "memory.read")
"""What our server offers, by the names under which a person may leave tools out."""

SERVER_SECONDS = 20
HOOK_SECONDS = 20

_CHECKED_OPTIONS = frozenset({"--codex-home", "--state-dir"})
_FLAGS = frozenset({"-I", "-P", "-S", "-u"})
_WINDOWS_WORD = re.compile(r'"([^"]*)"|(\S+)')


class CannotEdit(Exception):
    """A text in which nothing is changed; the message says why."""


class Unreadable(CannotEdit):
    """A text that is not what its name says."""


@frozen
class Hook:
    """One event on which Codex calls us; `matcher` narrows it, None takes all of them."""

    event: str
    matcher: str | None = None
    context_limit: int | None = None

    def is_said_by(self, written: Written) -> bool:
        """Say whether a handler is called for this, and may say as much; whom it calls aside."""
        limits = (None, written.context_limit)
        return written.matcher == self.matcher and self.context_limit in limits


@frozen
class Written:
    """A handler that calls us, as a file has it; `matcher` is None where it narrows nothing."""

    command: str
    matcher: str | None
    context_limit: object

    def occasions(self, event: str) -> tuple[str, ...]:
        """Return for which occasions of an event it is called, of those that we answer."""
        return tuple(each for each in _OCCASIONS.get(event, ()) if self._takes(each))

    def _takes(self, occasion: str) -> bool:
        if self.matcher is None:
            return True
        if _PLAIN_MATCHER.fullmatch(self.matcher):
            return occasion in self.matcher.split("|")
        with contextlib.suppress(re.error):
            return re.search(self.matcher, occasion) is not None
        return False


ON_START = Hook("SessionStart", "resume|compact|fork", context_limit=0)
"""The view goes back in where a window begins anew; 0 lets all of it through (DSC-54, DSC-59).

After `startup` and `clear` there is nothing to give, so we are not even started (AGN-1).
"""
HOOKS = (ON_START, Hook("PreCompact"), Hook("PostCompact"))
ON_PROMPT = Hook("UserPromptSubmit")
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
    """All that belongs into Codex's configuration: our program, its server, the hooks it wants."""

    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    hooks: tuple[Hook, ...] = HOOKS
    has_server: bool = True
    """Whether our server belongs there; where a person has written one, it does not."""

    @property
    def hook_command(self) -> str:
        """Return the line that Codex gives to a shell."""
        return join((*self.program, "hook", *self.options))

    def calls_alike(self, hooks: Mapping[str, Sequence[Written]]) -> bool:
        """Say whether the hooks are those that are wanted, each calls this program, and once."""
        found = {event: [each.command for each in there] for event, there in hooks.items()}
        return found == {hook.event: [self.hook_command] for hook in self.hooks}

    def stand_in(self, hooks: Mapping[str, Sequence[Written]]) -> bool:
        """Say whether the hooks are those that are wanted, and are called as they ought to be."""
        return self.calls_alike(hooks) and all(
            hook.is_said_by(each) for hook in self.hooks for each in hooks[hook.event]
        )

    def server(self) -> dict[str, object]:
        """Return the table of our MCP server; Codex starts it without a shell."""
        return {
            "command": self.program[0],
            "args": [*self.program[1:], "mcp", *self.options],
            "startup_timeout_sec": SERVER_SECONDS,
            "tool_timeout_sec": SERVER_SECONDS,
        }

    def group(self, hook: Hook) -> dict[str, object]:
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


def join(words: Sequence[str]) -> str:
    """Quote words for the shell of this system."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def split(command: str) -> list[str]:
    """Return the words of a command line; none where it is no plain one."""
    if os.name == "nt":
        return [quoted or bare for quoted, bare in _WINDOWS_WORD.findall(command)]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def is_call_of(verb: str, words: Sequence[str]) -> bool:
    """Say whether this is how `connect` writes a call of ours, whatever folders it names.

    Exact, so that a command of a person's own that mentions us is never taken for ours.
    """
    left = list(words[1:])
    while left and (left[0] in _FLAGS or left[:2] == ["-X", "utf8"]):
        del left[: 2 if left[0] == "-X" else 1]
    match left:
        case ["-m", "codex_checkpoints", str(said), *options] if said == verb:
            pass
        case [launcher, str(said), *options] if said == verb and _is_launcher(launcher):
            pass
        case _:
            return False
    return len(options) % 2 == 0 and set(options[::2]) <= _CHECKED_OPTIONS


def calls_us(verb: str, words: Sequence[str]) -> bool:
    """Say whether this is a call of ours, as `connect` or as a person writes it; for looking only.

    A person writes the name of the program, with its folder or without.
    """
    program = words[0].replace("\\", "/").rpartition("/")[2] if words else ""
    by_name = program.removesuffix(".exe") == SERVER_NAME and [*words[1:2]] == [verb]
    return by_name or is_call_of(verb, words)


def _is_launcher(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return parts[-2:] == ["bundled", "launch.py"]


def is_our_handler(handler: object) -> bool:
    """Say whether this handler of a hook is one that `connect` wrote."""
    command = _field(handler, "command")
    return isinstance(command, str) and is_call_of("hook", split(command))


def is_handler_by_hand(handler: object) -> bool:
    """Say whether this handler of a hook calls us, and is not of `connect`."""
    return _calls_our_hook(handler) and not is_our_handler(handler)


def _calls_our_hook(handler: object) -> bool:
    command = _field(handler, "command")
    return isinstance(command, str) and calls_us("hook", split(command))


def is_our_server(table: object) -> bool:
    """Say whether this table of an MCP server is one that `connect` wrote."""
    return is_call_of("mcp", words_of(table))


def words_of(server: object) -> list[str]:
    """Return the command and the arguments of an MCP server; none where it is no such table."""
    command, arguments = _field(server, "command"), _field(server, "args")
    if not isinstance(command, str) or not isinstance(arguments, list):
        return []
    return [command, *(str(word) for word in cast("list[object]", arguments))]


def offers_all(server: Mapping[str, object]) -> bool:
    """Say whether Codex offers each of our tools to a model: a server may be off, or tools of it.

    Only what `enabled_tools` names is offered where there is such a list, and nothing of what
    `disabled_tools` names.
    """
    allowed, banned = server.get("enabled_tools"), server.get("disabled_tools")
    return server.get("enabled") is not False and not any(
        (isinstance(allowed, list) and tool not in allowed)
        or (isinstance(banned, list) and tool in banned)
        for tool in TOOLS
    )


def groups_by_event(hooks: object) -> dict[str, list[object]]:
    """Return the groups of each event of a table of hooks."""
    if not isinstance(hooks, Mapping):
        return {}
    return {
        event: cast("list[object]", groups)
        for event, groups in cast("Mapping[str, object]", hooks).items()
        if isinstance(groups, list)
    }


def handlers_of(group: object) -> list[object]:
    """Return the handlers of a group of hooks."""
    found = _field(group, "hooks")
    return list(cast("list[object]", found)) if isinstance(found, list) else []


def handlers_in(groups: Iterable[object]) -> list[object]:
    """Return the handlers of all groups of an event."""
    return [handler for group in groups for handler in handlers_of(group)]


def written_in(
    events: Mapping[str, Iterable[object]], is_meant: Callable[[object], bool]
) -> dict[str, tuple[Written, ...]]:
    """Return the handlers that are meant by event, of the groups of each; no event without one."""
    found = {
        event: tuple(
            written(group, handler)
            for group in groups
            for handler in handlers_of(group)
            if is_meant(handler)
        )
        for event, groups in events.items()
    }
    return {event: there for event, there in found.items() if there}


def written_by_hand(events: Mapping[str, Iterable[object]]) -> dict[str, tuple[Written, ...]]:
    """Return the handlers by event that a person wrote and that we would answer."""
    found = written_in(events, is_handler_by_hand)
    heard = {
        event: tuple(each for each in there if each.occasions(event))
        for event, there in found.items()
    }
    return {event: there for event, there in heard.items() if there}


def written(group: object, handler: object) -> Written:
    """Return what a handler in a group says of when it is called, and whom."""
    matcher = _field(group, "matcher")
    return Written(
        str(_field(handler, "command")),
        matcher if isinstance(matcher, str) and matcher not in _WHATEVER else None,
        _field(handler, "additionalContextLimit"),
    )


def places_of(groups: Iterable[object]) -> list[str]:
    """Return where handlers that call us stand among the groups of an event, as Codex counts."""
    return [
        f"{group}:{place}"
        for group, each in enumerate(groups)
        for place, handler in enumerate(handlers_of(each))
        if _calls_our_hook(handler)
    ]


def is_our_group(group: object) -> bool:
    """Say whether this group has our handlers and no others."""
    handlers = handlers_of(group)
    return bool(handlers) and all(is_our_handler(handler) for handler in handlers)


def foreign_groups(groups: Iterable[object]) -> list[object]:
    """Return the groups of an event without our handlers, and without groups of ours alone."""
    kept: list[object] = []
    for group in groups:
        rest = [handler for handler in handlers_of(group) if not is_our_handler(handler)]
        if len(rest) == len(handlers_of(group)):
            kept.append(group)
        elif rest:
            kept.append({**cast("Mapping[str, object]", group), "hooks": rest})
    return kept


def _field(value: object, name: str) -> object:
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
