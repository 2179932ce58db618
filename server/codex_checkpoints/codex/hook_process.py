"""Run a program that the settings name, with limits of time and output, until it is cancelled.

No shell runs, and nothing from a session or its folder decides what runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Literal, cast

from codex_checkpoints.values import frozen

MOST_OUTPUT = 65_536
"""Bytes of an answer that are read; a hook that says more is stopped."""

_LOOK_AGAIN = 0.1
_GRACE = 1.0
"""Seconds for what is left in the pipes; a program that has left the group may hold them open."""

End = Literal["exited", "timed_out", "not_started", "cancelled"]


@frozen
class Ran:
    """How a program ended, and its output, None where that was too long."""

    end: End
    code: int | None
    output: bytes | None


def run(
    command: Sequence[str],
    given: bytes,
    seconds: float,
    folder: str,
    cancelled: Callable[[], bool],
) -> Ran:
    """Run a program in a folder with these bytes on its stdin; its group ends with it.

    `cancelled` is called ten times a second.
    """
    if not command:
        return Ran("not_started", None, None)
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
    output = bytearray()
    stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    listening = threading.Thread(target=_listen, args=(stdout, output), daemon=True)
    speaking = threading.Thread(target=_speak, args=(stdin, given), daemon=True)
    try:  # from here on, or Ctrl+C would leave the program running
        listening.start()
        speaking.start()
        end = _waited(child, seconds, cancelled)
    finally:
        kill(child)
        child.wait()
        for thread in (speaking, listening):
            if thread.ident is not None:
                thread.join(_GRACE)
    if end != "exited":
        return Ran(end, None, None)
    answer = bytes(output)
    return Ran(end, child.returncode, None if len(answer) > MOST_OUTPUT else answer)


def _waited(child: subprocess.Popen[bytes], seconds: float, cancelled: Callable[[], bool]) -> End:
    """Wait until the program ends, its time is over, or the caller cancels."""
    latest = time.monotonic() + seconds
    while not cancelled():
        left = latest - time.monotonic()
        if left <= 0:
            return "timed_out"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(min(left, _LOOK_AGAIN))
            return "exited"
    return "cancelled"


def _speak(stdin: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError), stdin:  # it need not listen
        stdin.write(given)


def _listen(stdout: IO[bytes], output: bytearray) -> None:
    with contextlib.suppress(OSError), stdout:
        while len(output) <= MOST_OUTPUT and (data := os.read(stdout.fileno(), MOST_OUTPUT)):
            output += data


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a program and, where the system knows groups, all that it started."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
