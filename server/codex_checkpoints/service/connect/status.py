"""Report for each door whether it is configured, trusted and in use; no file is changed."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from codex_checkpoints.codex import config, file_edit, hooks, program
from codex_checkpoints.codex.app_server import AskingFailed
from codex_checkpoints.codex.config import Found
from codex_checkpoints.codex.entries import SERVER_NAME, ByEvent, CannotEdit, Entries, Hooks
from codex_checkpoints.codex.program import Answer
from codex_checkpoints.service.connect.doors import (
    Door,
    HookState,
    InFiles,
    Known,
    LastCalls,
    hook_door,
    hook_states,
    hooks_of_us,
    mcp_door,
    unreadable,
)
from codex_checkpoints.values import evolve, frozen

CONFIG, HOOKS = "config.toml", "hooks.json"


@frozen
class OtherHome:
    """Another Codex home of this user: whether it is connected, and whether sessions are there."""

    codex_home: str
    connected: bool
    has_sessions: bool


@frozen
class Done:
    """A written or previewed change of a file of Codex."""

    path: str
    action: str
    diff: str
    backup: str | None


@frozen
class Connection:
    """How Codex is connected with us, and what was `written` or would be.

    `codexProblem` is null or `codex_not_found`, `timed_out`, `codex_failed`, `hooks_unknown`.
    """

    codex_home: str
    codex_path: str | None
    codex_version: str | None
    codex_problem: str | None
    doors: tuple[Door, ...]
    hooks: tuple[HookState, ...]
    other_homes: tuple[OtherHome, ...]
    problems: tuple[str, ...]
    way_out: str | None
    written: bool = False
    changes: tuple[Done, ...] = ()


@frozen
class Examined:
    """A connection, its problems with files of the user, and the copies kept of them."""

    connection: Connection
    in_files: tuple[str, ...]
    backups: tuple[str, ...]


@frozen
class FoundCodex:
    """The program of Codex, its version, its answer about hooks, and what is wrong with it.

    `problem` is None, `codex_not_found`, `timed_out`, `codex_failed`, or `hooks_unknown` for a
    version without hooks.
    """

    path: str | None
    version: str | None = None
    answer: Answer | None = None
    problem: str | None = None


@frozen
class Surroundings:
    """The current folder, the environment, and other Codex homes."""

    cwd: str
    environment: Mapping[str, str]
    other_homes: tuple[str, ...] = ()


def find_codex(around: Surroundings) -> FoundCodex:
    """Find the program of Codex without starting it."""
    path = program.find(around.environment.get("PATH", ""))
    return FoundCodex(path, problem="codex_not_found" if path is None else None)


def find_version(around: Surroundings) -> FoundCodex:
    """Find the program of Codex, and its version; this writes nothing."""
    found = find_codex(around)
    if found.path is None:
        return found
    return evolve(found, version=program.version(found.path, around.environment))


def ask_codex(codex_home: str, around: Surroundings) -> FoundCodex:
    """Ask Codex which hooks it sees and trusts, where an entry calls us."""
    found = find_codex(around)
    if found.path is None or _read_both(codex_home, []).found.calls_nobody:
        return found
    try:
        answer = program.ask(found.path, codex_home, around.cwd, around.environment)
    except AskingFailed as error:
        return FoundCodex(found.path, problem=error.code)
    problem = "hooks_unknown" if answer.hooks is None else None
    return FoundCodex(found.path, answer.version, answer, problem)


def look(
    codex_home: str, state_dir: str, wanted: Entries, around: Surroundings, codex: FoundCodex
) -> Examined:
    """Report the connection."""
    problems: list[str] = []
    files = _read_both(codex_home, problems)
    ours, answer = files.found, codex.answer
    known = Known(
        os.path.isdir(codex_home),
        wanted,
        files,
        answer,
        codex.problem or (None if answer is not None else "not_asked"),
        codex.problem != "hooks_unknown" and program.has_hooks(codex.version),
        LastCalls(state_dir),
    )
    states = tuple(hook_states(known))
    doors = hook_door(known, states), mcp_door(known)
    if not files.is_known:
        doors = tuple(map(unreadable, doors))
    problems += _called_twice(codex_home, ours)
    problems += dict.fromkeys((*_in_projects(around, codex_home), *_elsewhere(codex_home, answer)))
    in_files = tuple(problems)
    problems += () if answer is None else answer.warnings
    problems += [
        str(door.failure)
        for door in doors
        if door.failure is not None and door.problem not in {"not_configured", "unreadable"}
    ]
    backups = (file_edit.copies(os.path.join(codex_home, name)) for name in (CONFIG, HOOKS))
    connection = Connection(
        codex_home,
        codex.path,
        codex.version,
        codex.problem,
        doors,
        states,
        tuple(map(_other_home, around.other_homes)),
        tuple(problems),
        doors[0].way_out if ours.hooks.ours else None,
    )
    return Examined(connection, in_files, tuple(path for copies in backups for path in copies))


def _other_home(codex_home: str) -> OtherHome:
    found = (names for _, _, names in os.walk(os.path.join(codex_home, "sessions")))
    has_sessions = any(name.startswith("rollout-") for names in found for name in names)
    return OtherHome(codex_home, not _read_both(codex_home, []).found.calls_nobody, has_sessions)


def _read_both(codex_home: str, problems: list[str]) -> InFiles:
    """Return our entries in the two files; add what cannot be read to the problems."""
    paths = [os.path.join(codex_home, name) for name in (CONFIG, HOOKS)]
    read = [_read(path, problems) for path in paths]
    there = [found or Found() for found in read]
    config = there[0]
    calling = {path: each.hooks.calling for path, each in zip(paths, there, strict=True)}
    recorded, off = (_named(calling, names) for names in (config.trusted, config.switched_off))
    return InFiles(
        evolve(config, hooks=Hooks(tuple(hook for each in there for hook in each.hooks.all))),
        frozenset(event for event, named in recorded.items() if any(named)),
        frozenset(event for event, named in off.items() if all(named)),
        read[0] is not None,
    )


def _read(path: str, problems: list[str]) -> Found | None:
    """Return our entries in a file of Codex; None where it cannot be read."""
    try:
        text = (file_edit.read(path).data or b"").decode()
        if os.path.basename(path) == CONFIG:
            return config.found_in(text)
        return Found(hooks.found_in(text)) if text.strip() else Found()
    except (CannotEdit, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {error}")
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}")
    return None


def _named(calling: Mapping[str, ByEvent], records: Iterable[str]) -> dict[str, list[bool]]:
    """Return by event whether a record of Codex names each hook of ours.

    The records are named `<path>:<event>:<group>:<handler>`.
    """
    split = (name.rsplit(":", 3) for name in records)
    names = {(os.path.realpath(path), ":".join(place)) for path, *place in split}
    found: dict[str, list[bool]] = {}
    for path, events in calling.items():
        for event, there in events.items():
            spelled = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
            keys = ((os.path.realpath(path), f"{spelled}:{hook.place}") for hook in there)
            found.setdefault(event, []).extend(key in names for key in keys)
    return found


_EACH_ANSWERS = "each is called, so Codex is given the same twice; take out what was added by hand"
_EACH_OFFERS = "a model is offered the memory tools twice; take out what was added by hand"


def _called_twice(codex_home: str, found: Found) -> Iterator[str]:
    """Report hooks and servers of ours that Codex would call twice."""
    for event, there in found.hooks.calling.items():
        calls = Counter(occasion for each in there for occasion in each.occasions())
        if max(calls.values(), default=0) > 1:
            yield f"{codex_home} has our hook for {event} more than once: {_EACH_ANSWERS}"
    servers = dict(found.servers_by_hand)
    if found.server is not None:
        servers[SERVER_NAME] = found.server
    names = sorted(name for name, table in servers.items() if table.get("enabled") is not False)
    if len(names) > 1:
        path = os.path.join(codex_home, CONFIG)
        yield f"{path} has our MCP server more than once, as {', '.join(names)}: {_EACH_OFFERS}"


def _elsewhere(codex_home: str, answer: Answer | None) -> Iterator[str]:
    """Report hooks of ours that Codex sees in the configuration of a project."""
    for path in dict.fromkeys(hook.path for hook in hooks_of_us(answer)):
        if os.path.realpath(os.path.dirname(path)) != os.path.realpath(codex_home):
            yield _twice(path)


def _in_projects(around: Surroundings, codex_home: str) -> Iterator[str]:
    """Report hooks of ours in the current folder and those above it, without Codex."""
    homes = {os.path.realpath(home) for home in (codex_home, *around.other_homes)}
    folder = os.path.abspath(around.cwd)
    while folder != (above := os.path.dirname(folder)):
        project = os.path.join(folder, ".codex")
        folder = above
        if os.path.realpath(project) in homes or not os.path.isdir(project):
            continue
        for name in (CONFIG, HOOKS):
            path = os.path.join(project, name)
            found = _read(path, [])
            if found is not None and found.hooks.calling:
                yield _twice(path)


def _twice(path: str) -> str:
    return f"{path} has our hooks, too: each would be called twice in that project"
