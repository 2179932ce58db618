"""When Codex last called us, and whether that went well: as receipts and the audit tell.

A receipt says what was handed over; only a hook that failed leaves word of it in the audit, since
Codex shows nobody what a hook says.  Of long files the end is read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

import orjson
from attrs import frozen

from codex_checkpoints.core.rollout.fields import is_object, text_of
from codex_checkpoints.records import AUDIT, HOOK_FAILED, RECEIPTS

_TAIL = 64 << 10
_TOOLS = "memory."
"""How the receipts name what a tool handed over; everything else came from a hook."""


@frozen
class Run:
    """A call of ours by Codex that went well: when, and for which session."""

    at: str
    session: str


@frozen
class Failure:
    """A call of our hook that failed; no session where the call named none."""

    at: str
    session: str | None
    code: str

    def __str__(self) -> str:
        """Return it as a sentence for a person."""
        whose = f" for session {self.session}" if self.session else ""
        return f"the hook failed at {self.at}{whose}: {self.code}"


def last_run(state_dir: str, door: str) -> Run | None:
    """Return when a door last gave something to Codex."""
    newest: Run | None = None
    folder = os.path.join(state_dir, "sessions")
    with contextlib.suppress(OSError), os.scandir(folder) as sessions:
        for session in sessions:
            for receipt in _tail(os.path.join(session.path, RECEIPTS)):
                at, given = text_of(receipt.get("at")), text_of(receipt.get("door")) or ""
                theirs = "mcp" if given.startswith(_TOOLS) else "hook"
                if at is not None and theirs == door and (newest is None or at > newest.at):
                    newest = Run(at, session.name)
    return newest


def last_failure(state_dir: str, since: Run | None) -> Failure | None:
    """Return the newest call of the hook that failed, unless one has gone well since."""
    newest: Failure | None = None
    for event in _tail(os.path.join(state_dir, AUDIT)):
        at, code = text_of(event.get("at")), text_of(event.get("code"))
        if event.get("type") == HOOK_FAILED and at is not None and code is not None:
            newest = Failure(at, text_of(event.get("sessionId")), code)
    return None if newest is None or (since is not None and since.at > newest.at) else newest


def _tail(path: str) -> Iterator[Mapping[str, object]]:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        for line in file.read(_TAIL).split(b"\n"):
            with contextlib.suppress(orjson.JSONDecodeError):
                value: object = orjson.loads(line)
                if is_object(value):
                    yield value
