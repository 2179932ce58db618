"""What a tool call did: files, commands and other tools (rules, "Observations").

Paths are returned as the call has them; `state` makes uris of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

from attrs import evolve

from codex_checkpoints.core.rollout import patch, shell
from codex_checkpoints.core.rollout.fields import is_list, object_of, text_of, words_of
from codex_checkpoints.core.rollout.items import (
    MCP,
    SHELLS,
    Action,
    CommandRun,
    FileChange,
    FilesChanged,
    FileViewed,
    Seen,
    ToolCall,
    ToolRan,
    ToolResult,
)
from codex_checkpoints.core.rollout.turns import Steps
from codex_checkpoints.values import frozen

Needs = Literal["outcome", "success", "text"]
"""What an answer must have, so that a call counts.

`outcome`: any answer will do; an interrupted command did run.  `success`: a patch that was applied
answers `Success.`.  `text`: any answer will do, and its hash is recorded.
"""


@frozen
class Expected:
    """What a call did, if its outcome has what it needs."""

    needs: Needs
    seen: tuple[Seen, ...]


@frozen
class Script:
    """The calls and plans of a code-mode script, and the number of calls that are not literal."""

    expected: tuple[Expected, ...] = ()
    plans: tuple[Steps, ...] = ()
    unread: int = 0


_ACTIONS: Mapping[str, Action] = {"add": "add", "delete": "delete"}
_PATCHES = frozenset({"apply_patch", "applypatch"})
_VIEWS = {"view_image": "path", "read_file": "file_path"}
_SILENT = frozenset(
    {
        "write_stdin",  # belongs to the command whose session it feeds
        "tool_search",
        "wait",
        "new_context",
        "get_context_remaining",
    }
)
_OURS = frozenset({"memory.apply", "memory.read"})
_OURS_TO_THE_MODEL = frozenset({"memory_apply", "memory_read"})


def called(call: ToolCall, texts: tuple[str, ...], *, shortened: bool = False) -> tuple[Seen, ...]:
    """Return what a call of an older file did; `texts` are its answer."""
    digest = None if shortened else hash_of(texts)
    return tuple(seen for each in _expected_of(call) for seen in _happened(each, texts, digest))


def needs_success(call: ToolCall) -> bool:
    """Return whether a call only applies patches, so that it counts only with `Success.`."""
    if call.is_command and not _holds_patch(call.arguments):
        return False
    expected = _expected_of(call)
    return bool(expected) and all(each.needs == "success" for each in expected)


def _holds_patch(arguments: object) -> bool:
    command = _first(arguments, "command", "cmd")
    words = command if is_list(command) else (command,)
    return any(isinstance(word, str) and patch.BEGIN in word for word in words)


def _expected_of(call: ToolCall) -> tuple[Expected, ...]:
    return read_script(call).expected if is_script(call) else _expected(call)


def seen_by(item: ToolResult, *, shortened: bool = False) -> tuple[Seen, ...]:
    """Return what a tool did; a `shortened` text has no hash."""
    match item:
        case CommandRun():
            return _command_seen(item)
        case FilesChanged():
            return _changes(item.changes, item.call_id) if item.done else ()
        case ToolRan():
            return _tool_seen(item, shortened=shortened)
        case FileViewed():
            return (Seen("file", item.path, "read"),)


def are_one_cat(seen: tuple[Seen, ...]) -> bool:
    """Return whether a command did nothing but print one file, so that its output is the file."""
    script = seen[0].script if len(seen) == 1 else None
    return script is not None and shell.is_one_cat(script)


def is_script(call: ToolCall) -> bool:
    """Return whether a call runs a script in code mode."""
    return call.name == "exec" and call.namespace is None and isinstance(call.arguments, str)


def read_script(call: ToolCall) -> Script:
    """Parse a code-mode script; each literal call counts as a call of that tool."""
    # Only older versions write such scripts, and the module takes time to load.
    from codex_checkpoints.core.rollout import javascript  # noqa: PLC0415

    calls, unread = javascript.literal_calls(str(call.arguments))
    expected: list[Expected] = []
    plans: list[Steps] = []
    for inner in calls:
        if inner.name == "update_plan":
            plan = plan_of(inner.argument)
            unread += plan is None
            plans += [] if plan is None else [plan]
        elif inner.name != "exec":
            expected += _expected(evolve(call, name=inner.name, arguments=inner.argument))
    return Script(tuple(expected), tuple(plans), unread)


def plan_of(arguments: object) -> Steps | None:
    """Return the steps of an `update_plan` call, or None if it has none."""
    plan = object_of(arguments).get("plan")
    if not is_list(plan):
        return None
    return tuple(
        (text, step.get("status") == "completed")
        for step in map(object_of, plan)
        if (text := text_of(step.get("step"))) is not None
    )


def hash_of(texts: tuple[str, ...]) -> str | None:
    """Return the hash of a tool's output, its parts joined with LF; None if it is empty."""
    text = "\n".join(texts)
    if not text:
        return None
    return "sha256:" + hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _happened(expected: Expected, texts: tuple[str, ...], digest: str | None) -> tuple[Seen, ...]:
    if expected.needs == "text":
        return tuple(evolve(seen, hash=digest) for seen in expected.seen)
    applied = expected.needs == "outcome" or any("Success." in text for text in texts)
    return expected.seen if applied else ()


def _command_seen(run: CommandRun) -> tuple[Seen, ...]:
    if run.status in {"declined", "in_progress"}:
        return ()
    script = shell.script_of(run.argv)
    patched = _patch_in(script)
    if patched is not None:
        failed = run.status == "failed" or run.exit_code not in {None, 0}
        folder = _inside(run.folder, patched.folder)
        return () if failed else _patched(patched.text, run.call_id, folder)
    if run.parsed is None:
        return _command(script, shell.read_argv(run.argv), run.folder)
    reads = tuple(
        Seen("file", path, "read", run.folder, script=script)
        for kind, path in run.parsed
        if kind == "read" and path is not None
    )
    plain = len(reads) == len(run.parsed)
    return reads if plain else (Seen("command", script, "run"), *reads)


def _tool_seen(ran: ToolRan, *, shortened: bool) -> tuple[Seen, ...]:
    if not ran.ran or ran.tool in _OURS or ran.tool in _SILENT:
        return ()
    tool = ran.tool if ran.server is None else f"{ran.server}.{ran.tool}"
    digest = None if shortened else hash_of(ran.texts)
    return (Seen("tool_output", f"{tool}/{ran.call_id}", "call", hash=digest),)


def _expected(call: ToolCall) -> tuple[Expected, ...]:
    """Return what a call is about to do; nothing if its arguments cannot be parsed."""
    name, arguments = call.name, call.arguments
    server, tool = _tool_name(call)
    if server is None and name in SHELLS:
        return _expected_of_shell(arguments, call.call_id)
    if server is None and name in _PATCHES:
        text = arguments if isinstance(arguments, str) else _first(arguments, "input", "patch")
        return (Expected("success", _patched(text, call.call_id)),) if isinstance(text, str) else ()
    if server is None and name in _VIEWS:
        path = _first(arguments, _VIEWS[name])
        seen = Seen("file", path, "read") if isinstance(path, str) else None
        return () if seen is None else (Expected("outcome", (seen,)),)
    ours = _OURS_TO_THE_MODEL if server else {*_SILENT, "exec"}
    if tool in ours:
        return ()
    whole = tool if server is None else f"{server}.{tool}"
    return (Expected("text", (Seen("tool_output", f"{whole}/{call.call_id}", "call"),)),)


def _expected_of_shell(arguments: object, call_id: str) -> tuple[Expected, ...]:
    words = _first(arguments, "command", "cmd")
    workdir = _first(arguments, "workdir")
    folder = workdir if isinstance(workdir, str) and workdir else None
    argv = words_of(words)
    if isinstance(words, str):
        script, patched = words, _patch_in(words)
    elif argv is not None:
        script = shell.script_of(argv)
        patched = _patch_in(script)
    else:
        return ()
    if patched is not None:
        files = _patched(patched.text, call_id, _inside(folder, patched.folder))
        return (Expected("success", files),)
    reading = shell.read_script(script) if argv is None else shell.read_argv(argv)
    return (Expected("outcome", _command(script, reading, folder)),)


def _patch_in(script: str) -> shell.ShellPatch | None:
    # Few scripts hold a patch, and the search takes time.
    return shell.patch_in(script) if patch.BEGIN in script else None


def _command(script: str, reading: shell.ShellReading, folder: str | None) -> tuple[Seen, ...]:
    within = _inside(folder, reading.folder)
    reads = tuple(Seen("file", read.path, "read", within, script=script) for read in reading.reads)
    return reads if reading.plain and reads else (Seen("command", script, "run"), *reads)


def _patched(text: str, call_id: str, folder: str | None = None) -> tuple[Seen, ...]:
    return _changes(patch.files_of(text), call_id, folder)


def _changes(
    changes: Iterable[FileChange], call_id: str, folder: str | None = None
) -> tuple[Seen, ...]:
    seen: list[Seen] = []
    for change in changes:
        action = "move" if change.move_to else _ACTIONS.get(change.kind, "update")
        names = (change.path, change.move_to) if change.move_to else (change.path,)
        added = change.added
        seen += [Seen("file", name, action, folder, added, call_id=call_id) for name in names]
    return tuple(seen)


def _tool_name(call: ToolCall) -> tuple[str | None, str]:
    """Return (MCP server, tool); the server is None for a tool of Codex."""
    if call.namespace is not None and call.namespace.startswith(MCP):
        return call.namespace.removeprefix(MCP).strip("_") or None, call.name
    if call.name.startswith(MCP):
        server, separator, tool = call.name.removeprefix(MCP).partition("__")
        if separator and server and tool:
            return server, tool
    return None, call.name


def _first(arguments: object, *names: str) -> object:
    known = object_of(arguments)
    return next((known[name] for name in names if name in known), None)


def _inside(folder: str | None, deeper: str | None) -> str | None:
    """Return the folder after `cd deeper` in `folder`."""
    if deeper is None or folder is None:
        return deeper if folder is None else folder
    if deeper.startswith(("/", "\\")) or deeper[1:3] in {":\\", ":/"}:
        return deeper
    return f"{folder}/{deeper}"
