"""Put threads away, and back, through Codex itself.

Codex keeps a database beside its session files.  A thread that is moved behind its back can no
longer be resumed, nor taken out of the archive, until it is moved back: so where there is such a
database, Codex itself is asked.  Where there is none, moving the files is all that Codex does, and
`threads` does it.

It is asked through its app server, so that it is known when it begins: whoever stops it before has
changed nothing, and later it is left to end, since a thread that is moved by half can be opened by
nobody.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from codex_checkpoints.codex.app_server import AskingFailed, Patience, app_server
from codex_checkpoints.codex.program import find

SECONDS = 30.0
"""What Codex may take to start, and again to move one thread; it takes a second."""

_DATABASE = re.compile(r"state_\d+\.sqlite")


class CodexArchive:
    """The archive of one home as Codex keeps it."""

    def __init__(self, codex_home: str, environment: Mapping[str, str]) -> None:
        """Look for nothing yet; `environment` is the one that Codex would be called with."""
        self._home = codex_home
        self._environment = environment

    def is_kept(self) -> bool:
        """Return whether Codex keeps a database of threads in this home."""
        try:
            return any(map(_DATABASE.fullmatch, os.listdir(self._home)))
        except OSError:
            return False

    def move(
        self,
        thread_id: str,
        cancelled: Callable[[], bool],
        begin: Callable[[], None],
        *,
        archive: bool,
    ) -> None:
        """Let Codex put a thread away, or back; `begin` is called before it changes anything.

        Raises `AskingFailed`: `codex_not_found`, `timed_out`, `codex_failed`, and `cancelled` where
        nobody wants it any more before it has begun; and whatever `begin` raises.
        """
        codex = find(self._environment.get("PATH", ""))
        if codex is None:
            raise AskingFailed("codex_not_found", "no Codex CLI is on the PATH")
        starting = Patience(SECONDS, cancelled)
        with app_server(codex, self._home, self._environment, starting) as (server, _):
            begin()
            method = "thread/archive" if archive else "thread/unarchive"
            server.call(method, {"threadId": thread_id}, Patience(SECONDS))
