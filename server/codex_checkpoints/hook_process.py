"""Running a program that the user named in the settings, with a limit of time and of output.

No shell is asked, and nothing from a session or its folder decides what runs.  What a hook may say,
and what comes of one that fails, is known to `service.compaction_hooks`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, Literal, cast

from attrs import frozen

MOST_OUTPUT = 65_536
"""Bytes of an answer that are read; a hook that says more is stopped."""


@frozen
class Ran:
    """How a program ended, and what it said; `output` is None where that was too much."""

    end: Literal["exited", "timed_out", "not_started"]
    code: int | None
    output: bytes | None


def run(command: Sequence[str], given: bytes, seconds: float, folder: str) -> Ran:
    """Run a program in a folder with these bytes on its stdin; whatever it started ends with it."""
    try:
        child = subprocess.Popen(  # noqa: S603 - the user's own settings name it
            list(command),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError):
        return Ran("not_started", None, None)
    said = bytearray()
    stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    listening = threading.Thread(target=_listen, args=(stdout, said), daemon=True)
    speaking = threading.Thread(target=_speak, args=(stdin, given), daemon=True)
    listening.start()
    speaking.start()
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        return Ran("timed_out", None, None)
    finally:
        _end(child)
        speaking.join()
        listening.join()
    return Ran("exited", code, None if len(said) > MOST_OUTPUT else bytes(said))


def _speak(stdin: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError), stdin:  # it need not listen
        stdin.write(given)


def _listen(stdout: IO[bytes], said: bytearray) -> None:
    with contextlib.suppress(OSError), stdout:
        while len(said) <= MOST_OUTPUT and (data := os.read(stdout.fileno(), MOST_OUTPUT)):
            said += data


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the program and, where the system knows groups, all that it started."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
