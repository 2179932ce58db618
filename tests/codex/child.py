"""A child process that never outlives its test, and waiting with a limit."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Self, TypeVar

import forked_python

T = TypeVar("T")

GRACE = 10.0
"""Seconds a child gets to end by itself."""

_LOOK_AGAIN = 0.01


def clean_environment(home: Path, codex_home: Path, temp: Path) -> dict[str, str]:
    """An environment with nothing of the user's in it: no proxies, no settings, no keys."""
    kept = ("PATH", "SYSTEMROOT", "PATHEXT", "COMSPEC")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return environment | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "CODEX_HOME": str(codex_home),
        "TMPDIR": str(temp),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }


def eventually(look: Callable[[], T], expected: Callable[[], T], within: float) -> None:
    """Look until what is there equals what is expected, both of which may still move."""
    end = time.monotonic() + within
    while (seen := look()) != (due := expected()):
        assert time.monotonic() < end, f"not within {within} s:\n{seen!r}\ninstead of\n{due!r}"
        threading.Event().wait(_LOOK_AGAIN)


class Child:
    """A process in a group of its own; errors go into a file, and so does output that nobody reads.

    Whoever reads the output (`piped`) reads to the end and closes it.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        log: Path,
        *,
        piped: bool = True,
    ) -> None:
        self.log = log
        with log.open("ab") as errors:
            self._process = forked_python.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if piped else errors,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe into the child."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe out of the child."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def alive(self) -> bool:
        """Is it still running?"""
        return self._process.poll() is None

    def errors(self) -> str:
        """What it wrote to stderr."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self, within: float) -> int:
        """Wait for its end; the exit code."""
        return self._process.wait(within)

    def close_stdin(self) -> None:
        """Say that no more input comes."""
        with contextlib.suppress(OSError):
            self.stdin.close()

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Close its input, then insist; whatever it has started in its group goes too."""
        self.close_stdin()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.kill()

    def kill(self) -> None:
        """Kill it and its group at once."""
        if sys.platform == "win32":
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self.close_stdin()
        self._process.wait(GRACE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
