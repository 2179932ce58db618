"""Defines the refusals of the service, each with a code."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager

from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.contract import Row, UnreadableSource

SHORTEST_PREFIX = 8
"""The fewest characters of an id that may identify it."""


class Refusal(Exception):
    """A refused request: a code from the interfaces page, a sentence, and facts as JSON values."""

    def __init__(self, code: str, message: str, facts: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts: Mapping[str, object] = facts or {}


def one_named(ids: Iterable[str], name: str) -> str | None:
    """Return the id `name`, else the only id with this prefix, else None.

    A prefix has at least `SHORTEST_PREFIX` characters.
    """
    fitting = {each for each in ids if each.startswith(name)}
    if name in fitting:
        return name
    return fitting.pop() if len(fitting) == 1 and len(name) >= SHORTEST_PREFIX else None


def misfit(problem: str) -> Refusal:
    """Return the refusal of an invalid argument."""
    return Refusal("invalid_payload", problem, {"problems": [problem]})


def unreadable(path: str, reason: str, session_id: str | None = None) -> Refusal:
    """Return the refusal of a session file that cannot be read or was replaced."""
    facts = {"path": path, "reason": reason}
    if session_id is not None:
        facts = {"sessionId": session_id, **facts}
    return Refusal("unreadable_source", f"{path}: {reason}", facts)


@contextlib.contextmanager
def reading_file(row: Row) -> Generator[None]:
    """Turn an `UnreadableSource` about the file of a session into a refusal."""
    try:
        yield
    except UnreadableSource as error:
        raise unreadable(row.path, str(error), row.session_id) from error


def not_stored(
    message: str, error: StorageError, facts: Mapping[str, object] | None = None
) -> Refusal:
    """Return the refusal for a file of ours; `path` among the facts names it where known."""
    where = {} if error.path is None else {"path": error.path}
    known = {**(facts or {}), "reason": str(error), **where}
    return Refusal("storage_error", f"{message}: {error}", known)


def keeping(what: str, session_id: str | None) -> AbstractContextManager[None]:
    """Turn a `StorageError` about our records into a refusal."""
    return _refusing(what, session_id, "kept", {"sessionId": session_id})


def reading(what: str, session_id: str | None = None) -> AbstractContextManager[None]:
    """Turn a `StorageError` about records of ours that cannot be read into a refusal."""
    return _refusing(what, session_id, "read", {"sessionId": session_id} if session_id else {})


@contextlib.contextmanager
def _refusing(
    what: str, session_id: str | None, done: str, facts: Mapping[str, object]
) -> Generator[None]:
    try:
        yield
    except StorageError as error:
        of_it = "" if session_id is None else f" of {session_id}"
        raise not_stored(f"the {what}{of_it} cannot be {done}", error, facts) from error


class Cancelled(Exception):
    """The caller cancelled the request."""
