"""Requests that the service refuses, each with a code."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping

from codex_checkpoints.storage.durable import StorageError

SHORTEST_PREFIX = 8
"""The fewest characters of an id that may stand for all of it."""


class Refusal(Exception):
    """A refused request: a code from the interfaces page, a sentence, and facts as JSON values."""

    def __init__(self, code: str, message: str, facts: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts: Mapping[str, object] = facts or {}


def misfit(problem: str) -> Refusal:
    """Return the refusal of an unfitting argument."""
    return Refusal("invalid_payload", problem, {"problems": [problem]})


def unreadable(path: str, reason: str, session_id: str | None = None) -> Refusal:
    """Return the refusal of a session file that cannot be read or was replaced."""
    facts = {"path": path, "reason": reason}
    if session_id is not None:
        facts = {"sessionId": session_id, **facts}
    return Refusal("unreadable_source", f"{path}: {reason}", facts)


@contextlib.contextmanager
def keeping(what: str, session_id: str | None) -> Generator[None]:
    """Turn a `StorageError` about our records into a refusal."""
    try:
        yield
    except StorageError as error:
        of_it = "" if session_id is None else f" of {session_id}"
        facts = {"sessionId": session_id, "reason": str(error)}
        raise Refusal(
            "storage_error", f"the {what}{of_it} cannot be kept: {error}", facts
        ) from error


@contextlib.contextmanager
def reading(what: str, session_id: str | None = None) -> Generator[None]:
    """Turn a `StorageError` about records of ours that cannot be read into a refusal."""
    try:
        yield
    except StorageError as error:
        of_it = "" if session_id is None else f" of {session_id}"
        facts = {} if session_id is None else {"sessionId": session_id}
        facts["reason"] = str(error)
        raise Refusal(
            "storage_error", f"the {what}{of_it} cannot be read: {error}", facts
        ) from error


class Cancelled(Exception):
    """The caller no longer wants the answer."""
