"""What every operation works with and many are asked, and how one waits for programs of others."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from codex_checkpoints.assembly import Assembly, Places
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.values import frozen

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]
"""An operation in steps: each value that it yields is to be called on another thread.

Between two of them the operation runs on the thread of the sessions.
"""


@frozen
class SessionParams:
    """The session by its id, by a unique prefix of 8 characters or more, or by a path."""

    session_id: str


@frozen
class Text:
    """A text as it is stored or injected, byte for byte."""

    text: str


class Services:
    """The sessions of one home for one caller, who overrides what it wants to hear."""

    def __init__(self, where: Places, house: Assembly) -> None:
        """Work on these sessions, whose index is current."""
        self.where = where
        self.sessions: Sessions = house.sessions
        self.problems = house.problems
        """A sentence for each setting that was left aside."""

    def changed(self, session_ids: tuple[str, ...], reason: str) -> None:
        """Hear which sessions changed; `reason` is as in `protocol.Changed`."""

    def shown(self, session_id: str) -> None:
        """Hear of which session the state is shown."""

    def asks_codex(self) -> None:
        """Hear that Codex is asked for a summary next, which takes a while."""

    def look_around(self) -> None:
        """Bring the index up to date, for a caller that has left this to the operation."""

    def look_again(self) -> None:
        """Look for new files before a list, for a caller that does not look at each call."""

    def is_cancelled(self) -> bool:
        """Return whether the operation is called off and can still be stopped."""
        return False

    def commit(self) -> None:
        """Go on to the end whatever comes; raises `Cancelled` where it is too late for that."""


def elsewhere(function: Callable[[], T]) -> Steps[T]:
    """Run a piece that waits for programs and asks no session; for `yield from`."""
    return (yield function)


def carried_out(steps: Steps[T]) -> T:
    """Return what an operation in steps comes to, all of it on this thread."""
    try:
        piece = next(steps)
        while True:
            try:
                found = piece()
            except Exception as error:  # noqa: BLE001 - the operation says what it means
                piece = steps.throw(error)
            else:
                piece = steps.send(found)
    except StopIteration as end:
        return end.value
