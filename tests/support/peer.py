"""A client in forty lines that shares nothing with the server: bytes out, JSON in.

It speaks JSON-RPC over the pipes of the real process, so a test sees what any client would see,
and it can say things that no library would let it say.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

import forked_python

WAIT = 20.0
"""Seconds until something that must come counts as missing."""


class Peer:
    """One server process and what it said."""

    def __init__(
        self,
        codex_home: Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        first: str = "",
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """Start the server; `first` is Python that is executed before it."""
        server = str(Path(__file__).parents[2] / "server")
        environment = {**os.environ, "PYTHONPATH": server, "CODEX_HOME": str(codex_home)}
        environment.pop("CODEX_CHECKPOINTS_STATE", None)
        self.process = process or forked_python.Popen(
            forked_python.product("serve", *arguments, first=first),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment | (env or {}),
        )
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.notifications: queue.Queue[dict[str, Any]] = queue.Queue()
        self.log: list[str] = []
        self._number = 0
        self._initialized = False
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_log, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def send_bytes(self, body: bytes) -> None:
        """Send a body as it is, under a right header."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.send({"method": method, "params": {} if params is None else params})

    def ask(self, method: str, params: object = None) -> int:
        """Send a request, the first one behind an `initialize`; return its id."""
        if method == "initialize":
            self._initialized = True
        elif not self._initialized:
            self.initialize()
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self._number

    def answer(self, number: int | str | None) -> dict[str, Any]:
        """Wait for the answer to a request; others are put back."""
        others: list[dict[str, Any]] = []
        while True:
            message = self._answers.get(timeout=WAIT)
            if message["id"] == number:
                for other in others:
                    self._answers.put(other)
                return message
            others.append(message)

    def has_answer(self, number: int) -> bool:
        """Return whether the answer to a request has come."""
        return any(message["id"] == number for message in [*self._answers.queue])

    def forget(self) -> None:
        """Drop the answers and notifications that nobody waited for."""
        for each in (self._answers, self.notifications):
            with contextlib.suppress(queue.Empty):
                while True:
                    each.get_nowait()

    def call(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - any JSON value
        """Ask and return the result; an error is an assertion."""
        message = self.answer(self.ask(method, params))
        assert "error" not in message, message
        return message["result"]

    def initialize(self, options: object = None) -> dict[str, Any]:
        """Send the first request of an editor; return its result."""
        params: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
        return self.call("initialize", {**params, "initializationOptions": options})

    def error(self, method: str, params: object = None) -> dict[str, Any]:
        """Ask and return the error."""
        return self.answer(self.ask(method, params))["error"]

    def heard(self, method: str) -> dict[str, Any]:
        """Wait for a notification; return its params."""
        while True:
            message = self.notifications.get(timeout=WAIT)
            if message["method"] == method:
                return message["params"]

    def start(self, options: object = None) -> dict[str, Any]:
        """Begin as an editor does, unless a request was sent already."""
        result = {} if self._initialized else self.initialize(options)
        self.notify("initialized")
        return result

    def stop(self) -> int:
        """Leave as an editor does; return the exit code."""
        if self.process.poll() is None:
            self.call("shutdown")
            self.notify("exit")
        code = self.process.wait(WAIT)
        self.close()
        return code

    def close(self) -> None:
        """End the process, however it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT)
        for reader in self._readers:
            reader.join(WAIT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline()) not in {b"\r\n", b""}:
                if line.startswith(b"Content-Length:"):
                    length = int(line.split(b":")[1])
            if not line:
                return
            message = json.loads(stream.read(length))
            (self._answers if "id" in message else self.notifications).put(message)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace"))
