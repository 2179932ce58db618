"""Runs Codex's app server, and the hooks that the settings name.

With the app server we exchange one JSON message a line; its messages are untrusted.  No shell runs,
and neither a session nor its folder decides which program runs.  Every wait ends by a timeout or a
cancellation, and output is bounded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from queue import Empty, Queue
from typing import IO, Literal, cast

import orjson
from attrs import frozen

from codex_checkpoints.core.fields import is_object, object_of, text_of

Message = Mapping[str, object]

_OUR_NAME = "codex-checkpoints"

_GRACE = 2.0
"""Timeout for Codex to end by itself, since it flushes its files then."""

_LOOK_AGAIN = 0.1
_MAX_LINE = 4 << 20


class AskingFailed(Exception):
    """Codex gave no answer; `code` is `timed_out`, `cancelled` or `codex_failed`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RequestDeclined(AskingFailed):
    """Codex refused; `reason` is its own text, unchecked."""

    def __init__(self, reason: str) -> None:
        super().__init__("codex_failed", "Codex refused")
        self.reason = reason


def never() -> bool:
    """Return False: it is never cancelled."""
    return False


class Deadline:
    """The limit for an answer: a timeout, or a cancellation."""

    def __init__(self, seconds: float, cancelled: Callable[[], bool] = never) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._cancelled = cancelled

    def next(self) -> float:
        """Return the seconds to wait before the next check.  Raises `AskingFailed`."""
        if self._cancelled():
            raise AskingFailed("cancelled", "the answer of Codex is no longer wanted")
        left = self._end - time.monotonic()
        if left <= 0:
            message = f"Codex gave no answer within {self._seconds:g} seconds"
            raise AskingFailed("timed_out", message)
        return min(left, _LOOK_AGAIN)


class AppServer:
    """A running app server; a thread of its own reads its messages."""

    def __init__(self, child: subprocess.Popen[bytes], patience: Deadline) -> None:
        self._child = child
        self._patience = patience
        self._asked = 0
        self._received: Queue[Message | None] = Queue()
        """The messages of Codex; None is the end."""
        self._sending: threading.Thread | None = None
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def call(self, method: str, params: Message, patience: Deadline | None = None) -> Message:
        """Send a request, and return the answer.

        Raises `RequestDeclined` if Codex refuses or its answer is not an object; else
        `AskingFailed`.
        """
        self._asked += 1
        number = self._asked
        patience = patience or self._patience
        self._send({"id": number, "method": method, "params": params}, patience)
        for message in self._messages(patience):
            if message.get("id") == number and "method" not in message:
                if is_object(result := message.get("result")):
                    return result
                raise RequestDeclined(text_of(object_of(message.get("error")).get("message")) or "")
        raise AskingFailed("codex_failed", "Codex ended without an answer")

    def notify(self, method: str) -> None:
        """Send a notification.  Raises `AskingFailed`."""
        self._send({"method": method}, self._patience)

    def news(self) -> Iterator[tuple[str, Message]]:
        """Yield method and params of each notification.

        Raises `AskingFailed`, also when Codex ends.
        """
        for message in self._messages(self._patience):
            method, params = message.get("method"), message.get("params")
            if isinstance(method, str) and is_object(params):
                yield method, params
        raise AskingFailed("codex_failed", "Codex ended without an answer")

    def end(self) -> None:
        """Close its input, and kill it and its group after a moment."""
        if self._sending is not None and self._sending.is_alive():
            kill(self._child)  # it does not read, and closing would wait for that
            self._sending.join()
        with contextlib.suppress(OSError):
            cast("IO[bytes]", self._child.stdin).close()
        self._listener.join(_GRACE)
        kill(self._child)  # not waited for yet, so its group is still its own
        self._child.wait()
        self._listener.join(_GRACE)

    def _send(self, message: Message, patience: Deadline) -> None:
        """Write a message, within the timeout for its answer."""
        data = orjson.dumps(message) + b"\n"
        sent = threading.Event()
        self._sending = threading.Thread(target=self._write, args=(data, sent), daemon=True)
        self._sending.start()
        while self._sending.is_alive():
            self._sending.join(patience.next())
        if not sent.is_set():
            raise AskingFailed("codex_failed", "Codex ended without an answer")

    def _write(self, data: bytes, sent: threading.Event) -> None:
        stdin = cast("IO[bytes]", self._child.stdin)
        with contextlib.suppress(OSError):
            stdin.write(data)
            stdin.flush()
            sent.set()

    def _messages(self, patience: Deadline) -> Iterator[Message]:
        """Yield messages until Codex ends; requests of Codex get an error."""
        while True:
            try:
                message = self._received.get(timeout=patience.next())
            except Empty:
                continue
            if message is None:
                self._received.put(None)  # for a caller that asks once more
                return
            if "id" in message and "method" in message:
                error = {"code": -32601, "message": "not supported"}
                self._send({"id": message["id"], "error": error}, patience)
            else:
                yield message

    def _listen(self) -> None:
        with contextlib.suppress(OSError), cast("IO[bytes]", self._child.stdout) as stdout:
            for message in _read(stdout):
                self._received.put(message)
        self._received.put(None)


@contextlib.contextmanager
def app_server(
    codex: str,
    codex_home: str,
    environment: Mapping[str, str],
    patience: Deadline,
) -> Generator[tuple[AppServer, str]]:
    """Start the app server of Codex over a home; yield it with its user agent.

    Raises `AskingFailed`.
    """
    try:
        child = subprocess.Popen(  # noqa: S603 - the program that the person calls as well
            [codex, "app-server"],
            cwd=codex_home,
            env={**environment, "CODEX_HOME": codex_home},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise AskingFailed("codex_failed", f"Codex did not start: {error.strerror}") from error
    server = AppServer(child, patience)
    try:
        client = {"name": _OUR_NAME, "title": None, "version": "1"}
        agent = server.call("initialize", {"clientInfo": client}).get("userAgent")
        server.notify("initialized")
        yield server, text_of(agent) or ""
    finally:
        server.end()


def _read(stream: IO[bytes]) -> Iterator[Message]:
    """Yield the objects among the lines; a line that is too long is skipped whole."""
    amid = False
    while line := stream.readline(_MAX_LINE):
        begins, amid = not amid, not line.endswith(b"\n")
        if not begins or amid:
            continue
        with contextlib.suppress(orjson.JSONDecodeError):
            message: object = orjson.loads(line)
            if is_object(message):
                yield message


MOST_OUTPUT = 65_536
"""Bytes of an answer that are read; a hook with more output is stopped."""

_HOOK_GRACE = 1.0
"""Seconds for the rest in the pipes; a program that has left the group may hold them open."""

End = Literal["exited", "timed_out", "not_started", "cancelled"]


@frozen
class ProgramResult:
    """The end of a program, and its output, None if that was too long."""

    end: End
    code: int | None
    output: bytes | None


def run(
    command: Sequence[str],
    given: bytes,
    seconds: float,
    folder: str,
    cancelled: Callable[[], bool],
) -> ProgramResult:
    """Run a program in a folder with these bytes on its stdin; its group ends with it.

    `cancelled` is called ten times a second.
    """
    if not command:
        return ProgramResult("not_started", None, None)
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
        return ProgramResult("not_started", None, None)
    output = bytearray()
    stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    listening = threading.Thread(target=_listen, args=(stdout, output), daemon=True)
    speaking = threading.Thread(target=_speak, args=(stdin, given), daemon=True)
    end: End = "exited"
    patience = Deadline(seconds, cancelled)
    try:  # from here on, or Ctrl+C would leave the program running
        listening.start()
        speaking.start()
        while child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(patience.next())
    except AskingFailed as error:
        end = "cancelled" if error.code == "cancelled" else "timed_out"
    finally:
        kill(child)
        child.wait()
        for thread in (speaking, listening):
            if thread.ident is not None:
                thread.join(_HOOK_GRACE)
    if end != "exited":
        return ProgramResult(end, None, None)
    answer = bytes(output)
    return ProgramResult(end, child.returncode, None if len(answer) > MOST_OUTPUT else answer)


def _speak(stdin: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError), stdin:  # it need not listen
        stdin.write(given)


def _listen(stdout: IO[bytes], output: bytearray) -> None:
    with contextlib.suppress(OSError), stdout:
        while len(output) <= MOST_OUTPUT and (data := os.read(stdout.fileno(), MOST_OUTPUT)):
            output += data


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a program and, where the system has groups, all its children."""
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
