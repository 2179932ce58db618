"""How Codex is connected with us: each door, hook and MCP server, what is wrong and what helps.

Successful calls are read from the receipts, failed ones from the audit.  No file is changed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from codex_checkpoints.codex import config, entries, file_edit, hooks, program
from codex_checkpoints.codex.app_server import AskingFailed
from codex_checkpoints.codex.config import Found
from codex_checkpoints.codex.entries import SERVER_NAME, ByEvent, CannotEdit, Entries, Hooks
from codex_checkpoints.codex.program import CodexReport, SeenHook
from codex_checkpoints.core.rollout.fields import load, object_of, text_of
from codex_checkpoints.storage.records import AUDIT, HOOK_FAILED, RECEIPTS
from codex_checkpoints.values import evolve, frozen

CONFIG, HOOKS = "config.toml", "hooks.json"

TOOLS = "mcp"
"""The name under which the calls of our tools are reported; a hook's call has that of its event."""

_ANY = ""
"""A call that named no event."""
_TAIL = 64 << 10
"""Bytes of a long file that are read, from its end."""

Problem = Literal[
    "not_configured",
    "unreadable",
    "incomplete",
    "program_missing",
    "other_program",
    "other_folders",
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
_OLD = "Update Codex: hooks around a compaction are there from version 0.129 on."
_OFF = (
    "Switch it on again: hooks with /hooks in Codex, or where `config.toml` says `false`; "
    "tools where it says `enabled_tools` or `disabled_tools`."
)
_WAYS_OUT: Mapping[Problem, tuple[Next | None, str]] = {
    "not_configured": (
        "connect",
        "Run `codex-checkpoints connect`: it shows what it would write, and asks.",
    ),
    "unreadable": (
        None,
        "Correct `config.toml` first: nothing is changed in a file that cannot be read.",
    ),
    "incomplete": ("repair", f"{_AGAIN}."),
    "program_missing": ("repair", f"{_AGAIN}, or `connect --remove`."),
    "other_program": ("repair", f"{_AGAIN} to have it call this one."),
    "other_folders": ("repair", f"{_AGAIN} to have it call us for this home."),
    "no_hooks": ("update_codex", _OLD),
    "disabled": ("trust", _OFF),
    "untrusted": ("trust", HOW_TO_TRUST),
    "failed": (None, "`codex-checkpoints connect --status` says when, for which session and why."),
}
_BY_HAND = "Correct what was written by hand, or take it out and run `codex-checkpoints connect`."
_NO_HOME = "There is no Codex home here: run Codex once, or name another with --codex-home."

_SURE = frozenset({"trusted", "managed"})


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

    `trusted` is null where that is not known, for the reason in `trustUnknown`; Codex asks for no
    trust in an MCP server.  `problem` is null or `not_configured`, `unreadable`
    (whether it is configured is not known), `incomplete`, `program_missing`, `other_program`,
    `other_folders`, `no_hooks`, `disabled`, `untrusted`, `failed`.  `next` is what helps:
    null or `connect`, `repair`, `trust`, `update_codex`, `choose_home`; `wayOut` says it in a
    sentence.  `byHand` tells that a person wrote something that calls it, which `connect` neither
    changes nor takes out.
    """

    door: str
    configured: bool
    trusted: bool | None
    trust_unknown: str | None
    last_ran_at: str | None
    last_session: str | None
    failure: Failure | None
    problem: Problem | None
    next: Next | None
    way_out: str | None
    by_hand: bool = False


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
    answer: CodexReport | None = None
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
    if found.path is None or not _calls_us(codex_home):
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
    paths = _files(codex_home)
    read = [_read(path, problems) for path in paths]
    there = [found or Found() for found in read]
    calling = {path: each.hooks.calling for path, each in zip(paths, there, strict=True)}
    recorded, off = (_named(calling, names) for names in (there[0].trusted, there[0].switched_off))
    ours = evolve(there[0], hooks=Hooks(tuple(hook for each in there for hook in each.hooks.all)))
    known = _Look(
        codex_home,
        wanted,
        codex,
        ours,
        frozenset(event for event, named in recorded.items() if any(named)),
        frozenset(event for event, named in off.items() if all(named)),
        LastCalls(state_dir),
    )
    states = tuple(known.hook_states())
    doors = known.hook_door(states), known.mcp_door()
    if read[0] is None:
        doors = tuple(map(_unreadable, doors))
    problems += _called_twice(codex_home, ours)
    found_elsewhere = (*_in_projects(around, codex_home), *_elsewhere(codex_home, codex.answer))
    problems += dict.fromkeys(found_elsewhere)
    in_files = tuple(problems)
    problems += () if codex.answer is None else codex.answer.warnings
    problems += [
        str(door.failure)
        for door in doors
        if door.failure is not None and door.problem not in {"not_configured", "unreadable"}
    ]
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
    backups = (copy for path in paths for copy in file_edit.copies(path))
    return Examined(connection, in_files, tuple(backups))


def _other_home(codex_home: str) -> OtherHome:
    found = (names for _, _, names in os.walk(os.path.join(codex_home, "sessions")))
    has_sessions = any(name.startswith("rollout-") for names in found for name in names)
    return OtherHome(codex_home, _calls_us(codex_home), has_sessions)


def _files(codex_home: str) -> list[str]:
    return [os.path.join(codex_home, name) for name in (CONFIG, HOOKS)]


def _calls_us(codex_home: str) -> bool:
    """Return whether an entry of a home calls us, whoever wrote it."""
    found = (_read(path, []) for path in _files(codex_home))
    return any(each is not None and not each.calls_nobody for each in found)


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


def _elsewhere(codex_home: str, answer: CodexReport | None) -> Iterator[str]:
    """Report hooks of ours that Codex sees in the configuration of a project."""
    for path in dict.fromkeys(hook.path for hook in _hooks_of_us(answer)):
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


# --- the two doors -------------------------------------------------------------------------------


@frozen
class _Look:
    """What is known of one home: our entries, Codex and its answer, the last calls.

    `recorded` are the events with a record of trust, right or not, `switched_off` those whose hooks
    are all switched off.
    """

    codex_home: str
    wanted: Entries
    codex: FoundCodex
    ours: Found
    recorded: frozenset[str]
    switched_off: frozenset[str]
    calls: LastCalls

    @property
    def events(self) -> frozenset[str]:
        """Return the events on which a hook calls us."""
        return frozenset(self.ours.hooks.calling)

    @property
    def lacking(self) -> frozenset[str]:
        """Return the events whose hook is missing or too narrow."""
        ours, events = self.ours.hooks.ours, self.events
        return frozenset(
            hook.event
            for hook in self.wanted.hooks
            if hook.event not in events
            or not all(each.is_for(hook) for each in ours.get(hook.event, ()))
        )

    def hook_states(self) -> Iterator[HookState]:
        """Yield the state of each hook that calls us: first those that are wanted."""
        seen = {hook.event: hook for hook in _hooks_of_us(self.codex.answer)}
        due = (hook.event for hook in self.wanted.hooks)
        events = tuple(dict.fromkeys((*due, *self.ours.hooks.calling)))
        there, lacking = self.events, self.lacking
        was_called = self.calls.of(events) != Called()
        for event in events:
            trust = None, None
            if event in there:
                trust = self._seen(event, seen.get(event), was_called=was_called)
            is_whole = event in there and event not in lacking
            yield HookState(event, is_whole, *trust, *self.calls.of([event]))

    def _seen(
        self, event: str, hook: SeenHook | None, *, was_called: bool
    ) -> tuple[str | None, bool | None]:
        """Return the trust in a configured hook, and whether it is switched on."""
        if hook is not None:
            return hook.trust, hook.enabled
        answer = self.codex.answer
        is_off = self.ours.hooks_off or event in self.switched_off
        is_off = is_off or (answer is not None and answer.hooks is not None)
        # Without a record of trust there is none, unless somebody let them run all the same.
        is_new = answer is None and event not in self.recorded and not was_called
        return "untrusted" if is_new else None, False if is_off else None

    def hook_door(self, hooks: Sequence[HookState]) -> Door:
        """Return the state of our hooks together."""
        there = [hook for hook in hooks if hook.event in self.events]
        lacking, codex = self.lacking, self.codex
        calls, by_hand = (
            [entries.split(each.command) for found in written.values() for each in found]
            for written in (self.ours.hooks.ours, self.ours.hooks.by_hand)
        )
        trusted = _trusted([hook.trust for hook in there])
        problem = _of_entries(self.wanted, calls) if calls or not by_hand else _of_hand(by_hand)
        if there and problem is None and lacking:
            problem = "incomplete"
        if codex.problem == "hooks_unknown" or program.has_hooks(codex.version) is False:
            problem = "no_hooks"
        if problem is None and any(hook.enabled is False for hook in there):
            problem = "disabled"
        if problem is None and trusted is False:
            problem = "untrusted"
        silence = None
        if there and trusted is None:
            silence = codex.problem or (None if codex.answer is not None else "not_asked")
        called = self.calls.of(hook.event for hook in hooks)
        is_whole = bool(there) and not lacking
        state = ("hook", is_whole, trusted, silence)
        return self._door(state, problem, called, ours=bool(calls), by_hand=bool(by_hand))

    def mcp_door(self) -> Door:
        """Return the state of our MCP server; Codex asks for no trust in one."""
        by_hand = list(self.ours.servers_by_hand.values())
        server = self.ours.server or next(iter(by_hand), None)
        words = [] if server is None else [entries.words_of(server)]
        if self.ours.server is None and server is not None:
            problem = _of_hand(words) or _of_home(self.wanted, server)
        else:
            problem = _of_entries(self.wanted, words)
        if problem is None and server is not None and not entries.offers_all(server):
            problem = "disabled"
        trusted = None if server is None else True
        state = ("mcp", server is not None, trusted, None)
        called, ours = self.calls.of([TOOLS]), self.ours.server is not None
        return self._door(state, problem, called, ours=ours, by_hand=bool(by_hand))

    def _door(
        self,
        state: tuple[str, bool, bool | None, str | None],
        problem: Problem | None,
        called: Called,
        *,
        ours: bool,
        by_hand: bool,
    ) -> Door:
        """Return a door with what helps; `state` are its first four fields.

        An entry that a person wrote is not repaired by us.
        """
        problem = problem or (None if called.failure is None else "failed")
        step, way_out = (None, None) if problem is None else _WAYS_OUT[problem]
        *_, trusted, _ = state
        if not os.path.isdir(self.codex_home):
            step, way_out = "choose_home", _NO_HOME
        elif problem is None and trusted is None and called.last_ran_at is None:
            step, way_out = "trust", HOW_TO_TRUST
        elif by_hand and not ours and step == "repair" and problem != "incomplete":
            step, way_out = None, _BY_HAND
        return Door(*state, *called, problem, step, way_out, by_hand)


def _hooks_of_us(answer: CodexReport | None) -> tuple[SeenHook, ...]:
    """Return the hooks in the answer of Codex that call us."""
    hooks = () if answer is None else answer.hooks or ()
    return tuple(h for h in hooks if entries.calls_us("hook", entries.split(h.command)))


def _unreadable(door: Door) -> Door:
    """Return a door whose file cannot be read."""
    if door.problem != "not_configured":
        return door
    step, way_out = _WAYS_OUT["unreadable"]
    return evolve(door, problem="unreadable", next=step, way_out=way_out)


def _trusted(words: Sequence[str | None]) -> bool | None:
    """Return whether all hooks are trusted; None where that is not known of each."""
    if not _SURE.issuperset(word for word in words if word is not None):
        return False
    return None if None in words or not words else True


def _of_entries(wanted: Entries, calls: Sequence[Sequence[str]]) -> Problem | None:
    """Return what is wrong with our commands."""
    if not calls:
        return "not_configured"
    for words in calls:
        files = [word for word in words if os.path.isabs(word) and word.endswith("launch.py")]
        if not all(os.path.isfile(path) for path in (words[0], *files)):
            return "program_missing"
    if any([*words[: len(wanted.program)]] != [*wanted.program] for words in calls):
        return "other_program"
    folders = [tuple(words[len(wanted.program) + 1 :]) for words in calls]
    return None if set(folders) == {wanted.options} else "other_folders"


def _of_hand(calls: Iterable[Sequence[str]]) -> Problem | None:
    """Return what is wrong with commands that a person wrote."""
    named = (words[0] for words in calls)
    gone = any(os.path.isabs(path) and not os.path.isfile(path) for path in named)
    return "program_missing" if gone else None


def _of_home(wanted: Entries, server: Mapping[str, object]) -> Problem | None:
    """Return what is wrong with the home of a server by hand: Codex passes no `CODEX_HOME`."""
    names = "--codex-home", "CODEX_HOME"
    is_named = any(name in str([*server.values()]) for name in names)
    return "other_folders" if "--codex-home" in wanted.options and not is_named else None


class Called(NamedTuple):
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
        if TOOLS not in good:
            good[_ANY] = ran  # a failure that names no event stands until any hook ran
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
            for receipt in _tail(os.path.join(session.path, RECEIPTS)):
                at, door = text_of(receipt.get("at")), text_of(receipt.get("door"))
                name = (text_of(receipt.get("event")) or _ANY) if door == "hook" else TOOLS
                if at is not None and not (name in found and found[name][0] > at):
                    found[name] = at, session.name
    return found


def _failures(state_dir: str) -> dict[str, Failure]:
    found: dict[str, Failure] = {}
    for event in _tail(os.path.join(state_dir, AUDIT)):
        at, code = text_of(event.get("at")), text_of(event.get("code"))
        if event.get("type") == HOOK_FAILED and at is not None and code is not None:
            name = text_of(event.get("event")) or _ANY
            found[name] = Failure(at, text_of(event.get("sessionId")), code)
    return found


def _tail(path: str) -> Iterator[Mapping[str, object]]:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        yield from map(object_of, map(load, file.read(_TAIL).split(b"\n")))
