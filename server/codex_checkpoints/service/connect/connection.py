"""How Codex and we are connected: for each door whether it is configured, trusted, and in use.

It only looks.  What is to be written, and how, is known to `connecting`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from codex_checkpoints.codex import config_file, file_edit, hooks_file, program
from codex_checkpoints.codex.app_server import AskingFailed
from codex_checkpoints.codex.config_file import Found
from codex_checkpoints.codex.entries import SERVER_NAME, CannotEdit, Entries, Written
from codex_checkpoints.codex.file_edit import NotWritable, TooLong
from codex_checkpoints.codex.program import Answer
from codex_checkpoints.service.connect.connecting import CONFIG, HOOKS
from codex_checkpoints.service.connect.doors import (
    Door,
    HookState,
    Known,
    hook_door,
    hook_states,
    in_the_dark,
    mcp_door,
    seen_of_us,
)
from codex_checkpoints.service.connect.last_runs import LastCalls
from codex_checkpoints.values import frozen


@frozen
class OtherHome:
    """Another Codex home of this user: whether it is connected, and whether sessions are there."""

    codex_home: str
    connected: bool
    has_sessions: bool


@frozen
class Connection:
    """What is known about one Codex home; `problems` are sentences for a person.

    `in_files` are those of them that are about files of the user's, `backups` the copies of these
    that were kept.
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
    in_files: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()


@frozen
class Asked:
    """Codex's program, its version, what it said of hooks, and what is wrong with it."""

    path: str | None
    version: str | None
    answer: Answer | None
    problem: str | None


@frozen
class Surroundings:
    """What a door of ours knows of the machine: the folder at hand, where programs are, homes."""

    cwd: str
    environment: Mapping[str, str]
    other_homes: tuple[str, ...] = ()


def unasked(around: Surroundings) -> Asked:
    """Find Codex's program and leave it alone: its app server writes into the home it serves."""
    path = program.find(around.environment.get("PATH", ""))
    return Asked(path, None, None, "codex_not_found" if path is None else None)


def named(around: Surroundings) -> Asked:
    """Find Codex's program and ask it for its version, which writes nothing."""
    found = unasked(around)
    if found.path is None:
        return found
    return evolve(found, version=program.version(found.path, around.environment))


def asked(codex_home: str, around: Surroundings) -> Asked:
    """Ask Codex which hooks it sees and trusts, where there is something of ours.

    The problem is None, `codex_not_found`, `timed_out`, `codex_failed`, or `hooks_unknown` for a
    version without hooks.
    """
    found = unasked(around)
    if found.path is None or _ours(codex_home, []).found.calls_nobody:
        return found
    try:
        answer = program.ask(found.path, codex_home, around.cwd, around.environment)
    except AskingFailed as error:
        return Asked(found.path, None, None, error.code)
    problem = "hooks_unknown" if answer.hooks is None else None
    return Asked(found.path, answer.version, answer, problem)


def look(
    codex_home: str, state_dir: str, wanted: Entries, around: Surroundings, asked: Asked
) -> Connection:
    """Say how things stand; `asked` is what Codex itself says to it."""
    problems: list[str] = []
    ours = _ours(codex_home, problems)
    answer = asked.answer
    known = Known(
        os.path.isdir(codex_home),
        wanted,
        ours.found,
        ours.recorded,
        ours.switched_off,
        answer,
        asked.problem or (None if answer is not None else "not_asked"),
        asked.problem != "hooks_unknown" and program.has_hooks(asked.version),
        LastCalls(state_dir),
    )
    hooks = tuple(hook_states(known))
    doors = hook_door(known, hooks), mcp_door(known)
    if not ours.is_known:
        doors = tuple(in_the_dark(door) for door in doors)
    problems += _called_twice(codex_home, ours.found)
    problems += dict.fromkeys((*_in_projects(around, codex_home), *_elsewhere(codex_home, answer)))
    in_files = tuple(problems)
    problems += () if answer is None else answer.warnings
    problems += [
        str(door.failure)
        for door in doors
        if door.failure is not None and door.problem not in {"not_configured", "unreadable"}
    ]
    return Connection(
        codex_home,
        asked.path,
        asked.version,
        asked.problem,
        doors,
        hooks,
        tuple(_other_home(home) for home in around.other_homes),
        tuple(problems),
        doors[0].way_out if ours.found.hooks else None,
        in_files,
        tuple(
            path
            for name in (CONFIG, HOOKS)
            for path in file_edit.copies(os.path.join(codex_home, name))
        ),
    )


def _other_home(codex_home: str) -> OtherHome:
    found = (names for _, _, names in os.walk(os.path.join(codex_home, "sessions")))
    has_sessions = any(name.startswith("rollout-") for names in found for name in names)
    return OtherHome(codex_home, not _ours(codex_home, []).found.calls_nobody, has_sessions)


@frozen
class _Ours:
    """What of ours stands in the two files, and for which events it is on record.

    There may be a record of trust, or one that each of our hooks is switched off.
    """

    found: Found
    recorded: frozenset[str]
    switched_off: frozenset[str]
    is_known: bool = True
    """Whether `config.toml` could be read."""


def _ours(codex_home: str, problems: list[str]) -> _Ours:
    """Return what of ours stands in the two files; what cannot be read goes to the problems."""
    found = Found({}, None, foreign_server=False, foreign_hooks=False)
    places: dict[str, Mapping[str, tuple[str, ...]]] = {}
    unread: set[str] = set()
    for name in (CONFIG, HOOKS):
        path = os.path.join(codex_home, name)
        try:
            data = file_edit.read(path).data
            text = (data or b"").decode()
            if name == CONFIG:
                found = config_file.found_in(text)
                places[path] = found.places
            elif text.strip():
                found = evolve(
                    found,
                    hooks=_joined(found.hooks, hooks_file.hooks_in(text)),
                    by_hand=_joined(found.by_hand, hooks_file.by_hand_in(text)),
                )
                places[path] = hooks_file.places_in(text)
        except (CannotEdit, UnicodeDecodeError, TooLong, NotWritable) as error:
            unread.add(name)
            problems.append(f"{path} cannot be read: {error}")
        except OSError as error:
            unread.add(name)
            problems.append(f"{path} cannot be read: {error.strerror}")
    recorded = {event for event, is_named in _named(places, found.trusted) if is_named}
    off = list(_named(places, found.switched_off))
    on = {event for event, is_named in off if not is_named}
    switched_off = frozenset(event for event, _ in off if event not in on)
    return _Ours(found, frozenset(recorded), switched_off, is_known=CONFIG not in unread)


_Hooks = Mapping[str, tuple[Written, ...]]


def _joined(one: _Hooks, other: _Hooks) -> _Hooks:
    return {
        event: (*one.get(event, ()), *other.get(event, ()))
        for event in dict.fromkeys((*one, *other))
    }


def _called_twice(codex_home: str, found: Found) -> Iterator[str]:
    """Tell of what Codex would call more than once for the same: it would be told all of it again.

    Where a person wrote a call of ours in their own words, nobody takes out either.
    """
    for event, there in _joined(found.hooks, found.by_hand).items():
        calls = Counter(occasion for each in there for occasion in each.occasions(event))
        if max(calls.values(), default=0) > 1:
            yield f"{codex_home} has our hook for {event} more than once: {_EACH_ANSWERS}"
    servers = {
        **found.servers_by_hand,
        **({} if found.server is None else {SERVER_NAME: found.server}),
    }
    names = sorted(name for name, table in servers.items() if table.get("enabled") is not False)
    if len(names) > 1:
        path = os.path.join(codex_home, CONFIG)
        yield f"{path} has our MCP server more than once, as {', '.join(names)}: {_EACH_OFFERS}"


_EACH_ANSWERS = "each is called, so Codex is given the same twice; take out what was added by hand"
_EACH_OFFERS = "a model is offered the memory tools twice; take out what was added by hand"


def _named(
    places: Mapping[str, Mapping[str, tuple[str, ...]]], records: Iterable[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the event of each hook of ours, and whether it is named among the records of Codex.

    Codex keeps them by the file, the event and the place; what a trust is worth it alone knows.
    """
    names = {(os.path.realpath(path), *rest) for path, *rest in map(_key, records)}
    for path, events in places.items():
        for event, there in events.items():
            spelled = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
            for place in there:
                yield event, (os.path.realpath(path), spelled, place) in names


def _key(name: str) -> tuple[str, str, str]:
    """Take apart `<path>:<event>:<group>:<handler>`."""
    rest, _, handler = name.rpartition(":")
    rest, _, group = rest.rpartition(":")
    path, _, event = rest.rpartition(":")
    return path, event, f"{group}:{handler}"


def _elsewhere(codex_home: str, answer: Answer | None) -> Iterator[str]:
    """Tell of hooks of ours that a project's own configuration has as well: both would run."""
    for path in dict.fromkeys(hook.path for hook in seen_of_us(answer)):
        if os.path.realpath(os.path.dirname(path)) != os.path.realpath(codex_home):
            yield _twice(path)


def _in_projects(around: Surroundings, codex_home: str) -> Iterator[str]:
    """Tell the same without asking Codex: of the folder at hand and those above it."""
    homes = {os.path.realpath(home) for home in (codex_home, *around.other_homes)}
    folder = os.path.abspath(around.cwd)
    while folder != (above := os.path.dirname(folder)):
        project = os.path.join(folder, ".codex")
        folder = above
        if os.path.realpath(project) in homes or not os.path.isdir(project):
            continue
        for name, read in ((CONFIG, _in_config), (HOOKS, _in_hooks)):
            path = os.path.join(project, name)
            with contextlib.suppress(CannotEdit, OSError, ValueError, TooLong, NotWritable):
                data = file_edit.read(path).data
                if data is not None and read(data.decode()):
                    yield _twice(path)


def _in_config(text: str) -> _Hooks:
    found = config_file.found_in(text)
    return found.hooks or found.by_hand


def _in_hooks(text: str) -> _Hooks:
    return hooks_file.hooks_in(text) or hooks_file.by_hand_in(text)


def _twice(path: str) -> str:
    return f"{path} has our hooks, too: each would be called twice in that project"
