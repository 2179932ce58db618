"""When Codex last called us, and whether that went well: as receipts and the audit tell.

A receipt says what was handed over, also when that was nothing; only a hook that failed leaves word
of it in the audit, since Codex shows nobody what a hook says.  Of long files the end is read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping

import orjson

from codex_checkpoints.core.rollout.fields import is_object, text_of
from codex_checkpoints.records import AUDIT, HOOK_FAILED, RECEIPTS
from codex_checkpoints.values import frozen

TOOLS = "mcp"
"""The name under which the calls of our tools are told; those of hooks have that of their event."""

_ANY = ""
"""A call that named no event."""
_TAIL = 64 << 10


@frozen
class Run:
    """A call of ours by Codex that went well: when, and for which session."""

    at: str
    session: str


@frozen
class Failure:
    """A call of ours that failed and that no good one has followed."""

    at: str
    session_id: str | None
    code: str

    def __str__(self) -> str:
        """Return it as a sentence for a person."""
        whose = f" for session {self.session_id}" if self.session_id else ""
        return f"the hook failed at {self.at}{whose}: {self.code}"


@frozen
class Called:
    """The last call that went well, and the last that failed unless a good one came later."""

    ran: Run | None = None
    failure: Failure | None = None


class LastCalls:
    """The last calls of each hook and of the tools, as they stand in the state folder now."""

    def __init__(self, state_dir: str) -> None:
        """Read them."""
        self._ran = _runs(state_dir)
        self._failed = _failures(state_dir)

    def of(self, names: Iterable[str]) -> Called:
        """Return the last calls of some hooks, named by their events, or of the `TOOLS`."""
        wanted = tuple(names)
        ran = _newest(self._ran.get(name) for name in wanted)
        standing = [self._standing(name) for name in wanted]
        if TOOLS not in wanted:
            nameless = self._failed.get(_ANY)
            standing += [nameless if nameless and not _is_before(nameless.at, ran) else None]
        failure = max((each for each in standing if each), key=lambda each: each.at, default=None)
        return Called(ran, failure)

    def _standing(self, name: str) -> Failure | None:
        failure = self._failed.get(name)
        return None if failure and _is_before(failure.at, self._ran.get(name)) else failure


def _runs(state_dir: str) -> dict[str, Run]:
    found: dict[str, Run] = {}
    folder = os.path.join(state_dir, "sessions")
    with contextlib.suppress(OSError), os.scandir(folder) as sessions:
        for session in sessions:
            for receipt in _tail(os.path.join(session.path, RECEIPTS)):
                at, door = text_of(receipt.get("at")), text_of(receipt.get("door"))
                name = (text_of(receipt.get("event")) or _ANY) if door == "hook" else TOOLS
                if at is not None and not _is_before(at, found.get(name)):
                    found[name] = Run(at, session.name)
    return found


def _failures(state_dir: str) -> dict[str, Failure]:
    found: dict[str, Failure] = {}
    for event in _tail(os.path.join(state_dir, AUDIT)):
        at, code = text_of(event.get("at")), text_of(event.get("code"))
        if event.get("type") == HOOK_FAILED and at is not None and code is not None:
            name = text_of(event.get("event")) or _ANY
            found[name] = Failure(at, text_of(event.get("sessionId")), code)
    return found


def _newest(runs: Iterable[Run | None]) -> Run | None:
    return max((run for run in runs if run is not None), key=lambda run: run.at, default=None)


def _is_before(at: str, run: Run | None) -> bool:
    return run is not None and run.at > at


def _tail(path: str) -> Iterator[Mapping[str, object]]:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        for line in file.read(_TAIL).split(b"\n"):
            with contextlib.suppress(orjson.JSONDecodeError):
                value: object = orjson.loads(line)
                if is_object(value):
                    yield value
