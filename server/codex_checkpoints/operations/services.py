"""The common part of all operations: the services of a caller, and common params."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

from attrs import Factory, frozen

from codex_checkpoints.assembly import Assembly
from codex_checkpoints.places import Places
from codex_checkpoints.service.sessions.sessions import Sessions


@frozen
class SessionParams:
    """A session: its id, a unique prefix of 8 characters or more, a path, or its name."""

    session_id: str


@frozen
class Text:
    """A text as it is stored or injected, byte for byte."""

    text: str


@frozen
class InitializationOptions:
    """Options of the client at the start; `settings` override `config.toml` by name."""

    codex_home: str | None = None
    state_dir: str | None = None
    settings: dict[str, Any] = Factory(dict[str, Any])


class Services:
    """The sessions of one home for one caller; a caller overrides the methods that it needs."""

    def __init__(self, where: Places, assembly: Assembly) -> None:
        self.where = where
        self.sessions: Sessions = assembly.sessions
        self.preview = assembly.preview
        self.problems = assembly.problems  # a sentence for each setting that is ignored

    def changed(self, session_ids: tuple[str, ...], reason: str) -> None:
        """Note changed sessions; `reason` is as in `protocol.Changed`."""

    def shown(self, session_id: str) -> None:
        """Note that the state of a session is shown."""

    def asks_codex(self) -> None:
        """Note that Codex is asked for a summary next, which takes a while."""

    def advanced(self, _done: int, _total: int) -> None:
        """Note how many sessions of a long operation are done."""

    def update_index(self) -> None:
        """Update the index, if the caller leaves that to the operation."""

    def find_new_files(self) -> None:
        """Look for new files before a list, if the caller does not at each call."""

    def found(self, _hits: Sequence[object]) -> bool:
        """Take hits of a search incrementally; return whether the answer can leave them out."""
        return False

    def is_cancelled(self) -> bool:
        """Return whether the operation is cancelled and can still be stopped."""
        return False

    def read_all(self) -> None:
        """Read every session whole."""
        self.sessions.read_all()

    def commit(self) -> None:
        """Make the operation uncancellable; raises `Cancelled` if it is cancelled already."""


@cache
def records_of(operation: Callable[..., Any]) -> tuple[type, type]:
    """Return the records of params and result that an operation declares."""
    hints = get_type_hints(operation)
    result = hints.pop("return")
    _, params, *_ = hints.values()
    steps = get_args(result)  # of `Steps[Result]`
    return params, steps[-1] if steps else result
