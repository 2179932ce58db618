"""How Codex and we are connected: for each door whether it is configured, trusted, and in use.

It only looks.  What is to be written, and how, is known to `connecting`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from codex_checkpoints.codex import config_file, entries, file_edit, hooks_file, program
from codex_checkpoints.codex.config_file import Found
from codex_checkpoints.codex.entries import CannotEdit, Entries
from codex_checkpoints.codex.program import Answer, AskingFailed
from codex_checkpoints.service.connecting import CONFIG, HOOKS
from codex_checkpoints.service.last_runs import Run, last_failure, last_run

HOW_TO_TRUST = (
    "Start Codex: it shows new hooks and asks whether to trust them; /hooks shows them later."
)


@frozen
class HookState:
    """One of our hooks; `trust` is Codex's word for it, None where Codex was not asked."""

    event: str
    configured: bool
    trust: str | None
    enabled: bool | None


@frozen
class Door:
    """One of the two ways in which Codex calls us: `hook` or `mcp`.

    `trusted` is None where that is not known; Codex asks for no trust in an MCP server.  `problem`
    is None or one of `not_configured`, `incomplete`, `program_missing`, `other_program`, `failed`.
    """

    door: str
    configured: bool
    trusted: bool | None
    last_ran_at: str | None
    last_session: str | None
    problem: str | None


@frozen
class Connection:
    """What is known about one Codex home; `problems` are sentences for a person."""

    codex_home: str
    codex_path: str | None
    codex_version: str | None
    codex_problem: str | None
    doors: tuple[Door, ...]
    hooks: tuple[HookState, ...]
    other_homes: Mapping[str, bool]
    problems: tuple[str, ...]
    way_out: str | None


@frozen
class Asked:
    """Codex's program, what it said, and what is wrong with it."""

    path: str | None
    answer: Answer | None
    problem: str | None


@frozen
class Surroundings:
    """What a door of ours knows of the machine: the folder at hand, where programs are, homes."""

    cwd: str
    environment: Mapping[str, str]
    other_homes: tuple[str, ...] = ()


def unasked(around: Surroundings) -> Asked:
    """Find Codex's program and leave it alone: it writes into its home as soon as it runs."""
    path = program.find(around.environment.get("PATH", ""))
    return Asked(path, None, "codex_not_found" if path is None else None)


def asked(codex_home: str, around: Surroundings) -> Asked:
    """Ask Codex which hooks it sees and trusts, where there is something of ours.

    The problem is None, `codex_not_found`, `timed_out`, `codex_failed`, or `hooks_unknown` for a
    version without hooks.
    """
    found = unasked(around)
    if found.path is None or _ours(codex_home, []).nothing:
        return found
    try:
        answer = program.ask(found.path, codex_home, around.cwd, around.environment)
    except AskingFailed as error:
        return Asked(found.path, None, error.code)
    return Asked(found.path, answer, "hooks_unknown" if answer.hooks is None else None)


def look(
    codex_home: str, state_dir: str, wanted: Entries, around: Surroundings, asked: Asked
) -> Connection:
    """Say how things stand; `asked` is what Codex itself says to it."""
    problems: list[str] = []
    ours = _ours(codex_home, problems)
    answer = asked.answer
    hooks = tuple(_hook_states(wanted, ours, answer))
    problems += () if answer is None else answer.warnings
    problems += _elsewhere(codex_home, answer)
    ran = last_run(state_dir, "hook")
    failure = last_failure(state_dir, ran)
    problems += [] if failure is None else [str(failure)]
    failed = None if failure is None else "failed"
    doors = (
        _hook_door(wanted, ours, hooks, ran, failed),
        _mcp_door(wanted, ours, last_run(state_dir, "mcp")),
    )
    return Connection(
        codex_home,
        asked.path,
        None if answer is None else answer.version,
        asked.problem,
        doors,
        hooks,
        {home: not _ours(home, []).nothing for home in around.other_homes},
        tuple(problems),
        HOW_TO_TRUST if doors[0].configured and not doors[0].trusted else None,
    )


def _ours(codex_home: str, problems: list[str]) -> Found:
    """Return what of ours stands in the two files; what cannot be read goes to the problems."""
    found = Found({}, None, foreign_server=False, foreign_hooks=False)
    for name in (CONFIG, HOOKS):
        path = os.path.join(codex_home, name)
        try:
            data = file_edit.read(path).data
            text = (data or b"").decode()
            if name == CONFIG:
                found = config_file.found_in(text)
            elif text.strip():
                hooks = {**found.hooks, **hooks_file.commands_in(text)}
                found = Found(hooks, found.server, found.foreign_server, found.foreign_hooks)
        except (CannotEdit, UnicodeDecodeError, file_edit.TooLong, file_edit.NotWritable) as error:
            problems.append(f"{path} cannot be read: {error}")
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}")
    return found


def _hook_states(wanted: Entries, ours: Found, answer: Answer | None) -> Iterator[HookState]:
    seen = {} if answer is None else {hook.event: hook for hook in _our_hooks(answer)}
    for event in dict.fromkeys((*(hook.event for hook in wanted.hooks), *ours.hooks)):
        hook = seen.get(event)
        yield HookState(
            event,
            event in ours.hooks,
            None if hook is None else hook.trust,
            None if hook is None else hook.enabled,
        )


def _our_hooks(answer: Answer) -> list[program.SeenHook]:
    hooks = answer.hooks or ()
    return [hook for hook in hooks if entries.is_call_of("hook", entries.split(hook.command))]


def _elsewhere(codex_home: str, answer: Answer | None) -> Iterator[str]:
    """Tell of hooks of ours that a project's own configuration has as well: both would run."""
    for path in dict.fromkeys(hook.path for hook in (_our_hooks(answer) if answer else ())):
        if os.path.realpath(os.path.dirname(path)) != os.path.realpath(codex_home):
            yield f"{path} has our hooks, too: each would be called twice in that project"


def _hook_door(
    wanted: Entries,
    ours: Found,
    hooks: Sequence[HookState],
    ran: Run | None,
    failed: str | None,
) -> Door:
    due = {hook.event for hook in wanted.hooks}
    trusts = [hook.trust for hook in hooks if hook.configured]
    known = bool(trusts) and None not in trusts
    commands = [command for found in ours.hooks.values() for command in found]
    problem = "incomplete" if ours.hooks and due - set(ours.hooks) else None
    return Door(
        "hook",
        bool(commands) and problem is None,
        all(trust in {"trusted", "managed"} for trust in trusts) if known else None,
        None if ran is None else ran.at,
        None if ran is None else ran.session,
        problem
        or _problem([entries.split(command) for command in commands], wanted.program)
        or failed,
    )


def _mcp_door(wanted: Entries, ours: Found, ran: Run | None) -> Door:
    calls = [] if ours.server is None else [entries.words_of(ours.server)]
    return Door(
        "mcp",
        ours.server is not None,
        None if ours.server is None else True,
        None if ran is None else ran.at,
        None if ran is None else ran.session,
        _problem(calls, wanted.program),
    )


def _problem(calls: Sequence[Sequence[str]], own: Sequence[str]) -> str | None:
    if not calls:
        return "not_configured"
    for words in calls:
        files = [word for word in words if os.path.isabs(word) and word.endswith("launch.py")]
        if not all(os.path.isfile(path) for path in (words[0], *files)):
            return "program_missing"
    return None if all([*words[: len(own)]] == [*own] for words in calls) else "other_program"
