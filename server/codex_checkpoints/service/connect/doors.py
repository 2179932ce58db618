"""The state of the two doors, hook and MCP server: what keeps Codex from calling us, what helps.

Successful calls are read from the receipts, failed ones from the audit.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.config import Found
from codex_checkpoints.codex.entries import Entries
from codex_checkpoints.codex.program import Answer, SeenHook
from codex_checkpoints.core.rollout.fields import load, object_of, text_of
from codex_checkpoints.storage.records import AUDIT, HOOK_FAILED, RECEIPTS
from codex_checkpoints.values import evolve, frozen

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
class InFiles:
    """Our entries in the two files of a home, and the events for which Codex has a record.

    `recorded` are the events with a record of trust, right or not, `switched_off` those whose hooks
    are all switched off. `is_known` is whether `config.toml` could be read.
    """

    found: Found
    recorded: frozenset[str]
    switched_off: frozenset[str]
    is_known: bool


@frozen
class Known:
    """What is known of one home: its files, the answer of Codex or why it has none, the last calls.

    `silence` is None where Codex answered about trust; `has_hooks` is None where its version is not
    known.
    """

    home_is_there: bool
    wanted: Entries
    files: InFiles
    answer: Answer | None
    silence: str | None
    has_hooks: bool | None
    calls: LastCalls

    @property
    def ours(self) -> Found:
        """Return our entries."""
        return self.files.found

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


def hooks_of_us(answer: Answer | None) -> tuple[SeenHook, ...]:
    """Return the hooks in the answer of Codex that call us."""
    hooks = () if answer is None else answer.hooks or ()
    return tuple(h for h in hooks if entries.calls_us("hook", entries.split(h.command)))


def hook_states(known: Known) -> Iterator[HookState]:
    """Yield the state of each hook that calls us: first those that are wanted."""
    seen = {hook.event: hook for hook in hooks_of_us(known.answer)}
    due = (hook.event for hook in known.wanted.hooks)
    events = tuple(dict.fromkeys((*due, *known.ours.hooks.calling)))
    there, lacking = known.events, known.lacking
    was_called = known.calls.of(events) != Called()
    for event in events:
        trust = None, None
        if event in there:
            trust = _seen(known, event, seen.get(event), was_called=was_called)
        is_whole = event in there and event not in lacking
        yield HookState(event, is_whole, *trust, *known.calls.of([event]))


def _seen(
    known: Known, event: str, hook: SeenHook | None, *, was_called: bool
) -> tuple[str | None, bool | None]:
    """Return the trust in a configured hook, and whether it is switched on."""
    if hook is not None:
        return hook.trust, hook.enabled
    is_off = known.ours.hooks_off or event in known.files.switched_off
    is_off = is_off or (known.answer is not None and known.answer.hooks is not None)
    # Without a record of trust there is none, unless somebody let them run all the same.
    is_new = known.answer is None and event not in known.files.recorded and not was_called
    return "untrusted" if is_new else None, False if is_off else None


def hook_door(known: Known, hooks: Sequence[HookState]) -> Door:
    """Return the state of our hooks together."""
    there = [hook for hook in hooks if hook.event in known.events]
    lacking = known.lacking
    calls, by_hand = (
        [entries.split(each.command) for found in written.values() for each in found]
        for written in (known.ours.hooks.ours, known.ours.hooks.by_hand)
    )
    trusted = _trusted([hook.trust for hook in there])
    problem = _of_entries(known.wanted, calls) if calls or not by_hand else _of_hand(by_hand)
    is_to_correct = problem is not None and not calls
    if there and problem is None and lacking:
        problem = "incomplete"
    if known.has_hooks is False:
        problem = "no_hooks"
    if problem is None and any(hook.enabled is False for hook in there):
        problem = "disabled"
    if problem is None and trusted is False:
        problem = "untrusted"
    silence = known.silence if there and trusted is None else None
    called = known.calls.of(hook.event for hook in hooks)
    is_whole = bool(there) and not lacking
    door = _door(known, ("hook", is_whole, trusted, silence), problem, called)
    return _by_hand(door, is_to_correct=is_to_correct) if by_hand else door


def mcp_door(known: Known) -> Door:
    """Return the state of our MCP server; Codex asks for no trust in one."""
    by_hand = list(known.ours.servers_by_hand.values())
    server = known.ours.server or next(iter(by_hand), None)
    words = [] if server is None else [entries.words_of(server)]
    if known.ours.server is None and server is not None:
        problem = _of_hand(words) or _of_home(known.wanted, server)
    else:
        problem = _of_entries(known.wanted, words)
    is_to_correct = problem is not None and known.ours.server is None
    if problem is None and server is not None and not entries.offers_all(server):
        problem = "disabled"
    trusted = None if server is None else True
    state = ("mcp", server is not None, trusted, None)
    door = _door(known, state, problem, known.calls.of([TOOLS]))
    return _by_hand(door, is_to_correct=is_to_correct) if by_hand else door


def _by_hand(door: Door, *, is_to_correct: bool) -> Door:
    """Return a door with an entry written by hand, which we do not repair."""
    if is_to_correct and door.next == "repair":
        return evolve(door, by_hand=True, next=None, way_out=_BY_HAND)
    return evolve(door, by_hand=True)


def unreadable(door: Door) -> Door:
    """Return a door whose file cannot be read."""
    if door.problem != "not_configured":
        return door
    step, way_out = _WAYS_OUT["unreadable"]
    return evolve(door, problem="unreadable", next=step, way_out=way_out)


def _door(
    known: Known,
    state: tuple[str, bool, bool | None, str | None],
    problem: Problem | None,
    called: Called,
) -> Door:
    """Return a door with what helps; `state` are its first four fields."""
    problem = problem or (None if called.failure is None else "failed")
    step, way_out = (None, None) if problem is None else _WAYS_OUT[problem]
    *_, trusted, _ = state
    if not known.home_is_there:
        step, way_out = "choose_home", _NO_HOME
    elif problem is None and trusted is None and called.last_ran_at is None:
        step, way_out = "trust", HOW_TO_TRUST
    return Door(*state, *called, problem, step, way_out)


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


@frozen
class Failure:
    """A failed call after the last successful one."""

    at: str
    session_id: str | None
    code: str

    def __str__(self) -> str:
        whose = f" for session {self.session_id}" if self.session_id else ""
        return f"the hook failed at {self.at}{whose}: {self.code}"


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
