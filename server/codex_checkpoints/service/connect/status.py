"""Reports the connection with Codex: each door, hook and MCP server, its problem and the remedy.

Successful calls are read from the receipts, failed ones from the audit.  No file is changed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.codex import config, entries, file_edit, hooks, program
from codex_checkpoints.codex.app_server import AskingFailed
from codex_checkpoints.codex.entries import CannotEdit, Entries, OurHook
from codex_checkpoints.codex.program import CodexReport
from codex_checkpoints.core.fields import load, object_of, text_of
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.records import AUDIT, FILE_COPIES, HOOK_FAILED, RECEIPTS

CONFIG, HOOKS = "config.toml", "hooks.json"

TOOLS = "mcp"
"""The name of our tools' calls in reports; a hook's call has the name of its event."""

_TAIL = 64 << 10
"""Bytes of a long file that are read, from its end."""

Problem = Literal[
    "not_configured",
    "unreadable",
    "program_missing",
    "outdated",
    "no_hooks",
    "disabled",
    "untrusted",
    "failed",
]
Next = Literal["connect", "repair", "trust", "update_codex", "choose_home"]

HOW_TO_TRUST = (
    "Start Codex: it shows new hooks and asks whether to trust them; /hooks shows them later."
)
_AGAIN = "Run `codex-checkpoints connect` again"
_OFF = "Switch it on again: with /hooks in Codex, or where `config.toml` says `false`."
_WAYS_OUT: Mapping[Problem, tuple[Next | None, str]] = {
    "not_configured": (
        "connect",
        "Run `codex-checkpoints connect`: it shows what it would write, and asks.",
    ),
    "unreadable": (
        None,
        "Correct `config.toml` first: nothing is changed in a file that cannot be read.",
    ),
    "program_missing": ("repair", f"{_AGAIN}, or `connect --remove`."),
    "outdated": ("repair", f"{_AGAIN}."),
    "no_hooks": (
        "update_codex",
        "Update Codex: hooks around a compaction are there from version 0.129 on.",
    ),
    "disabled": ("trust", _OFF),
    "untrusted": ("trust", HOW_TO_TRUST),
    "failed": (None, "`codex-checkpoints connect --status` says when, for which session and why."),
}
_NO_HOME = "There is no Codex home here: run Codex once, or name another with --codex-home."


@frozen
class Failure:
    """A failed call after the last successful one."""

    at: str
    session_id: str | None
    code: str

    def __str__(self) -> str:
        whose = f" for session {self.session_id}" if self.session_id else ""
        return f"the hook failed at {self.at}{whose}: {self.code}"


@frozen
class HookState:
    """A hook of ours; `trust` is Codex's word: `trusted`, `untrusted`, `modified`, `managed`."""

    event: str
    configured: bool
    trust: str | None
    enabled: bool | None
    last_ran_at: str | None = None
    last_session: str | None = None
    failure: Failure | None = None


@frozen
class Door:
    """One way in which Codex calls us: `hook` or `mcp`.

    `trusted` is null if that is not known; Codex asks for no trust in an MCP server.  `problem` is
    null or `not_configured`, `unreadable` (whether it is configured is not known),
    `program_missing`, `outdated` (not as `connect` would write it), `no_hooks`, `disabled`,
    `untrusted`, `failed`.  `next` is the remedy: null or `connect`, `repair`, `trust`,
    `update_codex`, `choose_home`; `wayOut` says it in a sentence.
    """

    door: str
    configured: bool
    trusted: bool | None
    last_ran_at: str | None
    last_session: str | None
    failure: Failure | None
    problem: Problem | None
    next: Next | None
    way_out: str | None


@frozen
class Done:
    """A written or previewed change of a file of Codex."""

    path: str
    action: str
    diff: str
    backup: str | None


@frozen
class Connection:
    """The connection of Codex with us, and the files that were `written` or would be.

    `codexProblem` is null or `codex_not_found`, `timed_out`, `codex_failed`, `hooks_unknown`.
    """

    codex_home: str
    codex_path: str | None
    codex_version: str | None
    codex_problem: str | None
    doors: tuple[Door, ...]
    hooks: tuple[HookState, ...]
    problems: tuple[str, ...]
    way_out: str | None
    written: bool = False
    changes: tuple[Done, ...] = ()


@frozen
class FoundCodex:
    """The program of Codex, its answer about hooks, and its problem.

    `problem` is None, `codex_not_found`, `timed_out`, `codex_failed`, or `hooks_unknown` for a
    version without hooks.
    """

    path: str | None
    answer: CodexReport | None = None
    problem: str | None = None


def find_codex(environment: Mapping[str, str]) -> FoundCodex:
    """Find the program of Codex without starting it."""
    path = program.find(environment.get("PATH", ""))
    return FoundCodex(path, problem="codex_not_found" if path is None else None)


def ask_codex(codex_home: str, environment: Mapping[str, str]) -> FoundCodex:
    """Ask Codex which hooks it sees and trusts, if an entry calls us."""
    found = find_codex(environment)
    ours = _found(codex_home)
    if found.path is None or not (ours.hooks or ours.server):
        return found
    try:
        answer = program.ask(found.path, codex_home, environment)
    except AskingFailed as error:
        return FoundCodex(found.path, problem=error.code)
    return FoundCodex(found.path, answer, "hooks_unknown" if answer.hooks is None else None)


@frozen
class _Found:
    """Our entries in the files of a home, and by path why a file cannot be read."""

    hooks: Sequence[OurHook]
    server: Mapping[str, object] | None
    unreadable: Mapping[str, object]


def _found(codex_home: str) -> _Found:
    ours: list[OurHook] = []
    server, unreadable = None, dict[str, object]()
    for name in (CONFIG, HOOKS):
        try:
            text = (file_edit.read(os.path.join(codex_home, name)).data or b"").decode()
            if name == CONFIG:
                found = config.found_in(text)
                server, ours = found.server, [*found.hooks]
            elif text.strip():
                ours += entries.ours_in(hooks.groups_in(text))
        except (CannotEdit, UnicodeDecodeError) as error:
            unreadable[name] = error
        except OSError as error:
            unreadable[name] = error.strerror
    return _Found(ours, server, unreadable)


def look(codex_home: str, state_dir: str, wanted: Entries, codex: FoundCodex) -> Connection:
    """Report the connection."""
    found, calls, answer = _found(codex_home), LastCalls(state_dir), codex.answer
    states = tuple(_hook_states(wanted, found.hooks, codex, calls))
    hook = _hook_door(wanted, found.hooks, codex, states, calls)
    doors = tuple(
        _advised(each, codex_home, is_unreadable=CONFIG in found.unreadable)
        for each in (hook, _mcp_door(wanted, found.server, calls))
    )
    problems = [
        *(
            f"{os.path.join(codex_home, name)} cannot be read: {reason}"
            for name, reason in found.unreadable.items()
        ),
        *(() if answer is None else answer.warnings),
        *(str(door.failure) for door in doors if door.configured and door.failure),
    ]
    return Connection(
        codex_home,
        codex.path,
        None if answer is None else answer.version,
        codex.problem,
        doors,
        states,
        tuple(problems),
        doors[0].way_out if found.hooks else None,
    )


def _hook_states(
    wanted: Entries, ours: Sequence[OurHook], codex: FoundCodex, calls: LastCalls
) -> Iterator[HookState]:
    """Yield the state of each hook that we want."""
    listed = None if codex.answer is None else codex.answer.hooks
    seen = {
        each.event: each
        for each in listed or ()
        if entries.is_call_of("hook", entries.split(each.command))
    }
    there = [each.hook for each in ours]  # a hook in a file need have no hash
    for hook in wanted.hooks:
        trust, enabled = None, None
        if hook in there and listed is not None:
            its = seen.get(hook.event)  # a hook that is not listed is switched off
            trust, enabled = (None, False) if its is None else (its.trust, its.enabled)
        called = calls.of([hook.event])
        yield HookState(
            hook.event,
            hook in there,
            trust,
            enabled,
            called.last_ran_at,
            called.last_session,
            called.failure,
        )


def _hook_door(
    wanted: Entries,
    ours: Sequence[OurHook],
    codex: FoundCodex,
    hooks: Sequence[HookState],
    calls: LastCalls,
) -> Door:
    """Return the combined state of our hooks."""
    there = [hook for hook in hooks if hook.configured]
    trusted = _trusted([hook.trust for hook in there])
    problem = _problem_of([each.words for each in ours])
    if problem is None and not wanted.are_all(ours):
        problem = "outdated"
    if codex.problem == "hooks_unknown":
        problem = "no_hooks"
    if problem is None and any(hook.enabled is False for hook in there):
        problem = "disabled"
    if problem is None and trusted is False:
        problem = "untrusted"
    called = calls.of(hook.event for hook in hooks)
    is_whole = len(there) == len(hooks)
    return _door("hook", problem, called, configured=is_whole, trusted=trusted)


def _mcp_door(wanted: Entries, server: Mapping[str, object] | None, calls: LastCalls) -> Door:
    """Return the state of our MCP server; Codex asks for no trust in one."""
    problem = _problem_of([] if server is None else [entries.words_of(server)])
    if server is not None and problem is None:
        problem = "outdated" if server != wanted.server(server) else None
        problem = problem or ("disabled" if server.get("enabled") is False else None)
    trusted = None if server is None else True
    return _door("mcp", problem, calls.of([TOOLS]), configured=server is not None, trusted=trusted)


def _door(
    name: str, problem: Problem | None, called: Called, *, configured: bool, trusted: bool | None
) -> Door:
    ran_at, session, failure = called.last_ran_at, called.last_session, called.failure
    return Door(name, configured, trusted, ran_at, session, failure, problem, None, None)


def _advised(door: Door, codex_home: str, *, is_unreadable: bool) -> Door:
    """Return a door with its remedy."""
    problem = door.problem or (None if door.failure is None else "failed")
    if is_unreadable and problem == "not_configured":
        problem = "unreadable"
    step, way_out = (None, None) if problem is None else _WAYS_OUT[problem]
    if not os.path.isdir(codex_home):
        step, way_out = "choose_home", _NO_HOME
    elif problem is None and door.trusted is None and door.last_ran_at is None:
        step, way_out = "trust", HOW_TO_TRUST
    return evolve(door, problem=problem, next=step, way_out=way_out)


def _trusted(words: Sequence[str | None]) -> bool | None:
    """Return whether all hooks are trusted; None if that is not known for each."""
    if any(word not in {"trusted", "managed", None} for word in words):
        return False
    return None if None in words or not words else True


def _problem_of(calls: Sequence[Sequence[str]]) -> Problem | None:
    """Return the problem of our commands, wherever they lead."""
    if not calls:
        return "not_configured"
    for words in calls:
        files = [word for word in words if os.path.isabs(word) and word.endswith("launch.py")]
        if not all(os.path.isfile(path) for path in (words[0], *files)):
            return "program_missing"
    return None


@frozen
class Called:
    """The last successful call, and a failure after it."""

    last_ran_at: str | None = None
    last_session: str | None = None
    failure: Failure | None = None


class LastCalls:
    """The last calls of each hook and of the tools, read from the state folder."""

    def __init__(self, state_dir: str) -> None:
        self._ran = _runs(state_dir)
        self._failed = _failures(state_dir)

    def of(self, names: Iterable[str]) -> Called:
        """Return the last calls of hooks, by their events, or of the `TOOLS`."""
        good = {name: self._ran.get(name) for name in names}
        ran = max(filter(None, good.values()), default=None)
        failed = ((self._failed.get(name), run) for name, run in good.items())
        standing = (each for each, run in failed if each and not (run and run[0] > each.at))
        failure = max(standing, key=lambda each: each.at, default=None)
        return Called(*(ran or (None, None)), failure)


def _runs(state_dir: str) -> dict[str, tuple[str, str]]:
    """Return the time and session of the last successful call, by name."""
    found: dict[str, tuple[str, str]] = {}
    folder = os.path.join(state_dir, "sessions")
    with contextlib.suppress(OSError), os.scandir(folder) as sessions:
        for session in sessions:
            for name, at in _runs_in(session.path):
                if not (name in found and found[name][0] > at):
                    found[name] = at, session.name
    return found


def _runs_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and time of the successful calls that the records of a session have."""
    for line in _tail(os.path.join(folder, RECEIPTS)):
        is_hook = line.get("door") == "hook"
        if (at := text_of(line.get("at"))) is not None:
            yield (text_of(line.get("event")) or "") if is_hook else TOOLS, at
    for line in _tail(os.path.join(folder, FILE_COPIES)):
        at, event = text_of(line.get("at")), text_of(line.get("event"))
        if at is not None and event is not None:
            yield event, at


def _failures(state_dir: str) -> dict[str, Failure]:
    found: dict[str, Failure] = {}
    for event in _tail(os.path.join(state_dir, AUDIT)):
        at, code = text_of(event.get("at")), text_of(event.get("code"))
        if event.get("type") == HOOK_FAILED and at is not None and code is not None:
            # A call that could not be read names no event; Codex begins with this one.
            name = text_of(event.get("event")) or "SessionStart"
            found[name] = Failure(at, text_of(event.get("sessionId")), code)
    return found


def _tail(path: str) -> Iterator[Mapping[str, object]]:
    with contextlib.suppress(OSError), open(path, "rb", opener=atomic_files.own) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        yield from map(object_of, map(load, file.read(_TAIL).split(b"\n")))
