"""Defines our hooks and our MCP server as values, and recognises those that `connect` wrote.

They are recognised exactly, since they may be removed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from codex_checkpoints.core.fields import is_list, list_of, object_of
from codex_checkpoints.core.files.copies import CopyMode

SERVER_NAME = "codex-checkpoints"
"""Codex shows our tools in the namespace `mcp__codex_checkpoints`; no other name is similar."""

SERVER_SECONDS = 20
HOOK_SECONDS = 20

_CHECKED_OPTIONS = frozenset({"--codex-home", "--state-dir"})
_FLAGS = frozenset({"-I", "-P", "-S", "-u"})
_WINDOWS_WORD = re.compile(r'"([^"]*)"|(\S+)')

Groups = Mapping[str, Sequence[object]]
"""The groups of hooks of each event, as Codex's files have them."""


class CannotEdit(Exception):
    """A file that cannot be edited; the message says why, `code` is the refusal's."""

    code = "conflict"


class UnreadableConfig(CannotEdit):
    """A text in another format."""

    code = "unreadable_source"


@frozen
class CodexHook:
    """An event on which Codex calls us; `matcher` None matches every occasion."""

    event: str
    matcher: str | None = None
    context_limit: object = None


ON_START = CodexHook("SessionStart", "resume|compact|fork", context_limit=0)
"""The view is added again when a new window begins; 0 lets all of it through (DSC-54, DSC-59).

After `startup` and `clear` there is nothing to give, so we are not even started (AGN-1).
"""
HOOKS = (ON_START, CodexHook("PreCompact"), CodexHook("PostCompact"))

BEFORE_TOOL = CodexHook("PreToolUse", "apply_patch|Bash")
AFTER_TOOL = CodexHook("PostToolUse", "Bash")
"""On these we copy the files that a tool is about to write, and note a script's effects."""


def hooks_for(copies: CopyMode) -> tuple[CodexHook, ...]:
    """Return the hooks for Codex to call, by the files that are copied."""
    before = () if copies == "off" else (BEFORE_TOOL,)
    after = (AFTER_TOOL,) if copies == "named" else ()
    return (*HOOKS, *before, *after)


@frozen
class OurHook:
    """A hook that `connect` wrote, as it is in a file, and the words of its command."""

    hook: CodexHook
    words: Sequence[str]


@frozen
class Entries:
    """Our entries for Codex: the program, the server, the wanted hooks."""

    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    hooks: tuple[CodexHook, ...] = HOOKS

    @property
    def hook_command(self) -> str:
        """Return the shell command of our hooks."""
        words = (*self.program, "hook", *self.options)
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def are_all(self, ours: Iterable[OurHook]) -> bool:
        """Return whether these hooks are exactly the wanted ones."""
        wanted = [OurHook(hook, split(self.hook_command)) for hook in self.hooks]
        return sorted(ours, key=str) == sorted(wanted, key=str)

    def server(self, old: Mapping[str, object]) -> dict[str, object]:
        """Return the table of our MCP server, with other people's additions to the old one.

        Codex starts it without a shell.
        """
        args = [*self.program[1:], "mcp", *self.options]
        call: dict[str, object] = {"command": self.program[0], "args": args}
        limits = {"startup_timeout_sec": SERVER_SECONDS, "tool_timeout_sec": SERVER_SECONDS}
        return {**old, **call} if old else {**call, **limits}

    def group(self, hook: CodexHook) -> dict[str, object]:
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


def split(command: str) -> list[str]:
    """Return the words of a command; none if it cannot be split."""
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


def is_our_server(table: object) -> bool:
    """Return whether `connect` wrote this table of an MCP server."""
    return is_call_of("mcp", words_of(table))


def words_of(server: object) -> list[str]:
    """Return the command and arguments of an MCP server; none if the value is not such a table."""
    command, arguments = object_of(server).get("command"), object_of(server).get("args")
    if not isinstance(command, str) or not is_list(arguments):
        return []
    return [command, *map(str, arguments)]


def groups_in(data: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the groups of hooks of each event in a parsed file."""
    hooks = object_of(data.get("hooks"))
    return {event: groups for event, groups in hooks.items() if is_list(groups)}


def handlers_of(group: object) -> list[object]:
    """Return the handlers of a group of hooks."""
    return list_of(object_of(group).get("hooks"))


def is_our_handler(handler: object) -> bool:
    """Return whether `connect` wrote this handler."""
    command = object_of(handler).get("command")
    return isinstance(command, str) and is_call_of("hook", split(command))


def is_our_group(group: object) -> bool:
    """Return whether a group has only our handlers."""
    handlers = handlers_of(group)
    return bool(handlers) and all(map(is_our_handler, handlers))


def ours_in(groups: Groups) -> Iterator[OurHook]:
    """Yield the hooks that `connect` wrote."""
    for event, its in groups.items():
        for group in its:
            matcher = object_of(group).get("matcher")
            known = matcher if isinstance(matcher, str) and matcher not in {"", "*"} else None
            for table in map(object_of, filter(is_our_handler, handlers_of(group))):
                hook = CodexHook(event, known, table.get("additionalContextLimit"))
                yield OurHook(hook, split(str(table["command"])))


def without_ours(groups: Groups) -> dict[str, list[object]]:
    """Return the groups of each event without our handlers, and without groups of only ours."""
    left: dict[str, list[object]] = {}
    for event, its in groups.items():
        left[event] = []
        for group in its:
            rest = [each for each in handlers_of(group) if not is_our_handler(each)]
            if len(rest) == len(handlers_of(group)):
                left[event].append(group)
            elif rest:
                left[event].append({**object_of(group), "hooks": rest})
    return left


def foreign(data: Mapping[str, object]) -> dict[str, object]:
    """Return a parsed file without our entries, and without tables that are empty then."""
    servers = dict(object_of(data.get("mcp_servers")))
    if is_our_server(servers.get(SERVER_NAME)):
        del servers[SERVER_NAME]
    hooks = {**object_of(data.get("hooks")), **without_ours(groups_in(data))}
    kept = {name: value for name, value in hooks.items() if value not in ([], {})}
    tables = {"mcp_servers": servers, "hooks": kept}
    rest = {name: value for name, value in data.items() if name not in tables}
    return rest | {name: table for name, table in tables.items() if table}
