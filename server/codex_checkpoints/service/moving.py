"""A thread put among the archived ones, or back: in steps, since Codex may be asked to do it.

Which thread, and whether Codex is asked, is found out by the thread that owns the sessions.  Codex
is asked on any thread and may take its time: that touches nothing of the service.  What came of it
is looked at by the owner again, who moves the files where Codex did not (`thread_manager`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.values import frozen

if TYPE_CHECKING:
    from codex_checkpoints.codex.app_server import AskingFailed
    from codex_checkpoints.codex.program import CodexArchive


@frozen
class Move:
    """A thread that is to be put away, or back; `codex` does it where it keeps book of threads."""

    thread_id: str
    archive: bool
    codex: CodexArchive | None

    def ask(self, cancelled: Callable[[], bool], begin: Callable[[], None]) -> Asked:
        """Let Codex do it, on any thread; it can be called off until `begin` is called.

        Raises `Cancelled`, and what `begin` raises: then nothing has changed.
        """
        if self.codex is None:
            return Asked(self)
        from codex_checkpoints.codex.app_server import AskingFailed  # noqa: PLC0415 - it is rare

        try:
            self.codex.move(self.thread_id, cancelled, begin, archive=self.archive)
        except AskingFailed as failure:
            if failure.code == "cancelled":
                raise Cancelled from failure
            return Asked(self, failure)
        return Asked(self)


@frozen
class Asked:
    """A move for which Codex was asked, where it is to be; `failure` says why it did not do it."""

    move: Move
    failure: AskingFailed | None = None
