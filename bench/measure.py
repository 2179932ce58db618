"""What a process costs: whole processes one after the other, and a server while it runs.

Every figure is taken from outside, as a user would have it: with the start of the interpreter and
the imports.  What is measured, and against what, is said in `run`.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import TracebackType
from typing import IO, Any, Self

from attrs import frozen

PASS = (sys.executable, "-c", "pass")
WAIT = 300.0
"""Seconds until an answer that must come counts as missing."""

# A process inherits the peak memory of the one it is forked from.  So it is started by one that
# is small, and waited for there.  What it read is told while it is not yet waited for, on Linux.
_STARTER = """
import json, os, sys, time
began = time.perf_counter()
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
took = read = None
if os.path.exists("/proc/self/io"):
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    took = time.perf_counter() - began
    with open(f"/proc/{child}/io") as told:
        read = int(told.readline().split()[1])
_, status, usage = os.wait4(child, 0)
took = took or time.perf_counter() - began
worked = usage.ru_utime + usage.ru_stime
cost = [took, usage.ru_maxrss, os.waitstatus_to_exitcode(status), read, worked]
os.write(int(sys.argv[1]), json.dumps(cost).encode())
"""


class Wrong(Exception):
    """An answer that is not the truth, or none at all: then its speed does not matter."""


@frozen
class Cost:
    """What a process took, and what it said; `read` are the bytes it read, where that is told.

    `worked` is its processor time in seconds, None where it was not measured.
    """

    seconds: float
    peak_mb: float
    said: bytes
    read: int | None = None
    worked: float | None = None


@frozen
class Ratio:
    """How one process compares with another, over several runs side by side.

    `read` are the most bytes that the first one read.
    """

    median: float
    least: float
    most: float
    peak_mb: float
    read: int = 0


def run(
    command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Cost:
    """Run a command to its end, in our environment but for what leads to another home."""
    env = clean_environment() if env is None else env
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as told:
        starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(writing), *command]
        done = subprocess.run(
            starter,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[writing],
            env=env,
            cwd=cwd,
        )
        os.close(writing)
        answer = told.read()
    seconds, peak, code, read, worked = json.loads(answer) if answer else (0.0, 0, -1, None, 0.0)
    if code != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Wrong(f"{' '.join(command[1:4])} ended with {code}: {''.join(last)}")
    return Cost(seconds, _mb(peak), done.stdout, read, worked)


def product(command: str, home: str, state: str, *more: str) -> tuple[str, ...]:
    """Return the command line of one of our commands."""
    folders = ("--codex-home", home, "--state-dir", state)
    return (sys.executable, "-m", "codex_checkpoints", command, *folders, *more)


def clean_environment() -> dict[str, str]:
    """Return the environment without what leads to another home, or compiles modules each time."""
    ours = {"CODEX_HOME", "CODEX_CHECKPOINTS_STATE", "PYTHONDONTWRITEBYTECODE"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def compare(
    runs: int, ours: Callable[[], Cost], theirs: Callable[[], Cost], *, worked: bool = False
) -> Ratio:
    """Run two things in turn; a machine that is busy is so for both.

    They are compared by the time that passed, or by the processor time that they `worked`.
    """
    ratios: list[float] = []
    peak, read = 0.0, 0
    for number in range(runs):
        first, second = (ours, theirs) if number % 2 else (theirs, ours)
        costs = {first: first(), second: second()}
        one, other = costs[ours], costs[theirs]
        took = (one.worked, other.worked) if worked else (one.seconds, other.seconds)
        ratios.append((took[0] or 0.0) / (took[1] or 1.0))
        peak, read = max(peak, costs[ours].peak_mb), max(read, costs[ours].read or 0)
    return Ratio(median(ratios), min(ratios), max(ratios), peak, read)


class Server:
    """A language server on its pipes, and what it costs meanwhile."""

    def __init__(self, home: str, state: str) -> None:
        """Start it and say `initialize`."""
        began = time.perf_counter()
        self._process = subprocess.Popen(
            product("serve", home, state),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
        )
        self._input, self._output = _open(self._process.stdin), _open(self._process.stdout)
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.started = time.perf_counter() - began
        self._send({"method": "initialized", "params": {}})

    def ask(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - any JSON value
        """Send a request and wait for its result."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        try:
            answer = self._answers.get(timeout=WAIT)
        except queue.Empty:
            raise Wrong(f"{method}: no answer") from None
        if "error" in answer:
            raise Wrong(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def told_of(self, session: str) -> None:
        """Wait until the server tells of a change of this session."""
        try:
            while session not in self._events.get(timeout=WAIT)["params"]["sessionIds"]:
                pass
        except queue.Empty:
            raise Wrong("a change was not told") from None

    def forget_events(self) -> None:
        """Pass over what was told so far."""
        while not self._events.empty():
            self._events.get()

    def cpu_seconds(self) -> float:
        """Return the processor time of all its threads until now."""
        if sys.platform != "linux":
            return _clock(_asked_of_ps(self._process.pid, "time"))
        # The clock of another process, threads that have ended included: clock_getcpuclockid(3).
        return time.clock_gettime(~self._process.pid << 3 | 2)

    def peak_mb(self) -> float:
        """Return its peak memory; where the system does not tell, what it has now."""
        status = f"/proc/{self._process.pid}/status"
        if not os.path.exists(status):
            return int(_asked_of_ps(self._process.pid, "rss")) / 1024
        with open(status, encoding="ascii") as file:
            peak = next(line for line in file if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None:
            self.ask("shutdown")
            self._send({"method": "exit"})
        else:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._input.close()
        self._output.close()

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._input.flush()

    def _read(self) -> None:
        while True:
            length = 0
            while (line := self._output.readline()) not in {b"\r\n", b""}:
                if line.startswith(b"Content-Length:"):
                    length = int(line.split(b":")[1])
            if not line:
                return
            message = json.loads(self._output.read(length))
            if "id" in message:
                self._answers.put(message)
            elif message["method"] == "checkpoints/changed":
                self._events.put(message)


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise Wrong("no pipe to the server")
    return pipe


def _mb(peak: int) -> float:
    """Return what the system tells of a peak, in megabytes: macOS counts bytes, Linux kilobytes."""
    return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)


def _asked_of_ps(process: int, what: str) -> str:
    asked = ["/bin/ps", "-o", f"{what}=", "-p", str(process)]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def _clock(text: str) -> float:
    """Return `1:02.34` in seconds."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds
