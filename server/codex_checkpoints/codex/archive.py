"""Put threads away, and back, through Codex's own program.

Codex keeps a database beside its session files.  A thread that is moved behind its back can no
longer be resumed, nor taken out of the archive, until it is moved back: so where there is such a
database, Codex itself is asked.  Where there is none, moving the files is all that Codex does, and
`threads` does it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

from codex_checkpoints.codex.app_server import AskingFailed
from codex_checkpoints.codex.program import find

SECONDS = 30.0
"""What Codex may take to move one thread; it takes a second."""

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

    def move(self, thread_id: str, *, archive: bool) -> None:
        """Let Codex put a thread away, or back.

        Raises `AskingFailed`: `codex_not_found`, `timed_out`, `codex_failed`.
        """
        codex = find(self._environment.get("PATH", ""))
        if codex is None:
            raise AskingFailed("codex_not_found", "no Codex CLI is on the PATH")
        try:
            done = subprocess.run(  # noqa: S603 - the program that the person calls as well
                [codex, "archive" if archive else "unarchive", thread_id],
                cwd=self._home,
                env={**self._environment, "CODEX_HOME": self._home},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            message = f"Codex did not end within {SECONDS:g} seconds"
            raise AskingFailed("timed_out", message) from error
        except OSError as error:
            message = f"Codex did not start: {error.strerror}"
            raise AskingFailed("codex_failed", message) from error
        if done.returncode != 0:
            raise AskingFailed("codex_failed", f"Codex ended with code {done.returncode}")
