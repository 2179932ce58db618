"""Finds the effects of a tool call: files, commands and other tools (rules, "Observations").

Paths are returned as the call has them; `state` makes uris of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.items import outcome_in, outcome_of, outcome_of_script
from codex_checkpoints.core.events import (
    MCP,
    SHELLS,
    UNKNOWN,
    Action,
    CommandRun,
    FilesChanged,
    FileViewed,
    Outcome,
    Seen,
    Steps,
    ToolCall,
    ToolRan,
    ToolResult,
)
from codex_checkpoints.core.fields import is_list, object_of, paths_in, text_of, words_of
from codex_checkpoints.core.patches import PatchedFile
from codex_checkpoints.core.shell import javascript, posix
from codex_checkpoints.core.shell.commands import is_check
from codex_checkpoints.core.shell.script import (
    BEGIN,
    ShellReading,
    files_of,
    inside,
    put_back,
    read_script,
)


@frozen
class Script:
    """The effects of a code-mode script if it succeeds, and its number of non-literal calls."""

    results: tuple[ToolResult, ...] = ()
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
_NOT_RUN: Final = re.compile(
    r"failed to parse function arguments: |unsupported call: |exec command rejected by user"
)
"""The beginning of an answer to a call that Codex could not read, or that the user refused."""

_HOME = re.compile(r"~[^/\\]*(?:[/\\]|$)|\$HOME\b|\$\{HOME\}|\$env:", re.IGNORECASE)
_OURS = frozenset({"memory.apply", "memory.read"})
_OURS_TO_THE_MODEL = frozenset({"memory_apply", "memory_read"})


def called(call: ToolCall, texts: tuple[str, ...], *, shortened: bool = False) -> tuple[Seen, ...]:
    """Return the effects of a call in an older file; `texts` are its answer.

    A patch counts only if the answer says `Success.`.  Any answer will do for other calls: an
    interrupted command did run.
    """
    outcome, digest = answer_to(call, texts), None if shortened else hash_of(texts)
    is_applied = any("Success." in text for text in texts)
    seen: list[Seen] = []
    for result in _results_of(call):
        match result:
            case CommandRun():
                seen += _command_seen(result, outcome, is_applied=is_applied)
            case ToolRan():
                seen += _tool_seen(result, digest)
            case FilesChanged() if not is_applied:
                pass
            case _:
                seen += seen_by(result)
    return tuple(seen)


def answer_to(call: ToolCall, texts: tuple[str, ...]) -> Outcome:
    """Return how the command of a call ended, by the answer to it.

    The answer to a code-mode script does not show the outcome of one command among several.
    """
    if not call.is_script:
        return outcome_in(texts)
    code = read_code(call)
    is_alone = len(code.results) + len(code.plans) + code.unread == 1
    return outcome_of_script(texts) if is_alone else UNKNOWN


def commands_of(call: ToolCall) -> tuple[CommandRun, ...]:
    """Return the commands that a call runs; for a script, the literal ones."""
    if not (call.is_command or call.is_script):
        return ()
    return tuple(each for each in _results_of(call) if isinstance(each, CommandRun))


def nothing_ran(texts: tuple[str, ...]) -> bool:
    """Return whether the answer to a call says that nothing was run."""
    return bool(texts) and _NOT_RUN.match(texts[0]) is not None


def needs_success(call: ToolCall) -> bool:
    """Return whether a call only applies patches, so that it counts only with `Success.`."""
    if call.is_command and not _holds_patch(call.arguments):
        return False
    results = _results_of(call)
    return bool(results) and all(map(_only_patches, results))


def _holds_patch(arguments: object) -> bool:
    command = _first(arguments, "command", "cmd")
    words = command if is_list(command) else (command,)
    return any(isinstance(word, str) and BEGIN in word for word in words)


def _only_patches(result: ToolResult) -> bool:
    if not isinstance(result, CommandRun):
        return isinstance(result, FilesChanged)
    reading = read_script(posix.script_of(result.argv), posix.program_of(result.argv))
    return bool(reading.patches) and reading.plain


def _results_of(call: ToolCall) -> tuple[ToolResult, ...]:
    """Return the effects of a call if it succeeds, without its outcome."""
    if call.is_script:
        return read_code(call).results
    result = _result_of(call)
    return () if result is None else (result,)


def seen_by(item: ToolResult, *, shortened: bool = False) -> tuple[Seen, ...]:
    """Return the effects of a tool; a `shortened` text has no hash."""
    match item:
        case CommandRun(status="declined" | "in_progress"):
            return ()
        case CommandRun():
            return _command_seen(item, outcome_of(item))
        case FilesChanged():
            return _changes(item.changes, item.call_id) if item.done else ()
        case ToolRan():
            is_silent = not item.ran or item.tool in _OURS or item.tool in _SILENT
            return () if is_silent else _tool_seen(item, None if shortened else hash_of(item.texts))
        case FileViewed():
            return (Seen("file", item.path, "read"),)


def files_put_back(script: str, folder: str | None) -> tuple[Seen, ...]:
    """Return the entries that git restored for a script in a folder: a file, or a folder's `_`."""
    deeper, paths = put_back(script)
    within = inside(folder, deeper)
    # `:/` is taken for everything below the base.
    named = ((f"{each}/_", within) if each != ":/" else ("_", None) for each in paths)
    return tuple(Seen("file", name, "update", inside) for name, inside in named)


def are_one_cat(seen: tuple[Seen, ...]) -> bool:
    """Return whether a command only printed one file, so that its output is the file."""
    script = seen[0].script if len(seen) == 1 else None
    return script is not None and posix.is_one_cat(script)


def read_code(call: ToolCall) -> Script:
    """Parse a code-mode script; each literal call counts as a call of that tool."""
    # Only older versions write such scripts, and the module takes time to load.
    calls, unread = javascript.literal_calls(str(call.arguments))
    results: list[ToolResult] = []
    plans: list[Steps] = []
    for inner in calls:
        if inner.name == "update_plan":
            plan = plan_of(inner.argument)
            unread += plan is None
            plans += [] if plan is None else [plan]
        elif inner.name != "exec":
            result = _result_of(evolve(call, name=inner.name, arguments=inner.argument))
            results += [] if result is None else [result]
    return Script(tuple(results), tuple(plans), unread)


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
    return "sha256:" + sha256(text.encode(errors="replace")).hexdigest()


def _command_seen(
    run: CommandRun, outcome: Outcome, *, is_applied: bool | None = None
) -> tuple[Seen, ...]:
    """Return the effects of a command: only its files if it does nothing else, else itself too."""
    script = posix.script_of(run.argv)
    reading = read_script(script, posix.program_of(run.argv))
    if is_applied is None:
        # If a call does more than apply a patch, its exit code does not show whether the patch
        # applied.
        printed = None if reading.plain else outcome.printed
        is_applied = not outcome.failed if printed is None else "Success." in printed
    within = inside(run.folder, reading.folder)
    patched = [
        seen
        for text in (reading.patches if is_applied else ())
        for seen in _changes(files_of(text), run.call_id, within)
    ]
    if reading.patches and reading.plain:
        return tuple(patched)
    reads, plain = _reads(run, script, reading, within)
    writes = () if outcome.failed else reading.writes
    written = (
        Seen(
            "file",
            each.path,
            each.action,
            within,
            only_if=None if each.target is None else ("no folder", each.target),
        )
        for each in writes
    )
    itself = Seen(
        "command",
        script,
        "run",
        minor=not is_check(script),
        more=reading.more and not outcome.failed,
    )
    plain = plain and bool(reads or writes) and len(writes) == len(reading.writes)
    # If the target of a copy is a folder, no file is named, and so the command counts.
    targets = dict.fromkeys(each.target for each in writes if plain and each.target is not None)
    instead = (evolve(itself, folder=within, only_if=("folder", each)) for each in targets)
    return (*(instead if plain else [itself]), *reads, *written, *patched)


def _reads(
    run: CommandRun, script: str, reading: ShellReading, within: str | None
) -> tuple[list[Seen], bool]:
    """Return the files that a command reads, and whether it only reads and writes files."""
    reads = [Seen("file", each.path, "read", within, script=script) for each in reading.reads]
    if run.parsed is None:
        return reads, reading.plain
    known = [path for kind, path in run.parsed if kind == "read" and path and not _in_home(path)]
    listed = [Seen("file", path, "read", run.folder, script=script) for path in known]
    if any(kind == "unknown" for kind, _ in run.parsed):
        return listed + reads, reading.plain
    changes = reading.writes or reading.patches
    return listed, len(known) == len(run.parsed) and (reading.plain or not changes)


def _tool_seen(ran: ToolRan, digest: str | None) -> tuple[Seen, ...]:
    """Return the output of a tool, and the files that it may have read by its arguments."""
    tool = ran.tool if ran.server is None else f"{ran.server}.{ran.tool}"
    files = (
        Seen("file", path, "read", only_if=("file", path))
        for path in ran.paths
        if not _in_home(path)
    )
    return (Seen("tool_output", f"{tool}/{ran.call_id}", "call", hash=digest), *files)


def _in_home(path: str) -> bool:
    """Return whether a path begins with the home folder, which a session does not record."""
    return _HOME.match(path) is not None


def _result_of(call: ToolCall) -> ToolResult | None:
    """Return the effects of a call; None if its arguments are unreadable or nothing is kept."""
    name, arguments = call.name, call.arguments
    server, tool = _tool_name(call)
    if server is None and name in SHELLS:
        argv, folder = _argv_in(arguments), text_of(_first(arguments, "workdir")) or None
        return None if argv is None else CommandRun(call.call_id, argv, folder, None, None, None)
    if server is None and name in _PATCHES:
        text = arguments if isinstance(arguments, str) else _first(arguments, "input", "patch")
        if not isinstance(text, str):
            return None
        return FilesChanged(call.call_id, files_of(text), done=True)
    if server is None and name in _VIEWS:
        path = text_of(_first(arguments, _VIEWS[name]))
        return None if path is None or _in_home(path) else FileViewed(call.call_id, path)
    if tool in (_OURS_TO_THE_MODEL if server else {*_SILENT, "exec"}):
        return None
    return ToolRan(call.call_id, server, tool, (), ran=True, paths=paths_in(arguments))


def _argv_in(arguments: object) -> tuple[str, ...] | None:
    words = _first(arguments, "command", "cmd")
    if isinstance(words, str):
        return posix.argv_of(words, text_of(_first(arguments, "shell")) or "")
    argv = words_of(words)
    return None if argv is None else tuple(argv)


def _changes(
    changes: Iterable[PatchedFile], call_id: str, folder: str | None = None
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
