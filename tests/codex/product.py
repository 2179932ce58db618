"""The product as its users start it: `watch`, `serve` and `show` as processes of their own.

The language server's client speaks plain JSON-RPC with Content-Length frames and shares nothing
with pygls, so that what it sees is what any editor would see.
"""

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Self, cast

import python
from codex.child import Child, clean_environment
from codex.codex_cli import CodexHome
from codex.scripted_model import Json

SOURCE = Path(__file__).parents[2] / "server"
PATIENCE = 20.0
"""Seconds that the product may take to start, to answer, to end."""

Document = dict[str, Json]


def product(*arguments: str) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "codex_checkpoints", *arguments]


def environment(home: CodexHome) -> dict[str, str]:
    """What the product sees: the throw-away home and its own source."""
    return clean_environment(home.user, home.codex_home, home.temp) | {"PYTHONPATH": str(SOURCE)}


def run(home: CodexHome, *arguments: str) -> bytes:
    """Run a command to its good end; what it printed."""
    done = python.run(
        product(*arguments),
        cwd=home.root,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{errors}"
    return done.stdout


def stored_checkpoint(home: CodexHome, session: str) -> bytes:
    """The checkpoint as it lies in the state folder now; nothing when there is none."""
    folder = home.codex_home / "codex-checkpoints" / "sessions" / session
    try:
        return (folder / "checkpoint_v1.json").read_bytes()
    except FileNotFoundError:
        return b""


class Watch:
    """`codex-checkpoints watch`, until the test leaves."""

    def __init__(self, home: CodexHome) -> None:
        log = home.root / "watch.log"
        self._child = Child(product("watch"), home.root, environment(home), log, piped=False)

    def stop(self) -> int:
        """Interrupt it as Ctrl-C does; its exit code."""
        self._child.interrupt()
        return self._child.wait(PATIENCE)

    def log(self) -> str:
        """What it printed."""
        return self._child.errors()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._child.kill()
        if error is not None:
            error.add_note(f"The product said:\n{self.log()}")


class Serve:
    """`codex-checkpoints serve` and a language client at the other end of its pipes."""

    def __init__(self, home: CodexHome) -> None:
        log = home.root / "serve.log"
        self._child = Child(product("serve"), home.root, environment(home), log)
        self._answers: dict[int, Document] = {}
        self._changes: list[Document] = []
        self._news = threading.Condition()
        self._ended = False
        self._writing = threading.Lock()
        self._ids = itertools.count(1)
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self._begin()
        except BaseException:
            self._child.kill()
            raise

    def _begin(self) -> None:
        capabilities: Document = {"window": {"workDoneProgress": True}}
        start: Document = {"processId": None, "rootUri": None, "capabilities": capabilities}
        self.request("initialize", start)
        self.notify("initialized", {})

    def request(self, method: str, params: Mapping[str, Json] | None = None) -> Json:
        """Send a request; its result."""
        number = next(self._ids)
        sent: Document = {} if params is None else {"params": dict(params)}
        self._send({"jsonrpc": "2.0", "id": number, "method": method, **sent})
        if not self._wait(lambda: number in self._answers, PATIENCE):
            raise TimeoutError(f"no answer to {method}:\n{self.log()}")
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}\n{self.log()}"
        return answer["result"]

    def ask(self, method: str, params: Mapping[str, Json]) -> Document:
        """Send a request whose result is an object."""
        return cast("Document", self.request(method, params))

    def notify(self, method: str, params: Mapping[str, Json] | None = None) -> None:
        """Send a notification."""
        sent: Document = {} if params is None else {"params": dict(params)}
        self._send({"jsonrpc": "2.0", "method": method, **sent})

    def changes(self) -> list[Document]:
        """The params of all `checkpoints/changed` by now."""
        with self._news:
            return list(self._changes)

    def wait_for_change(self, session: str, since: int, within: float) -> bool:
        """Wait until a `checkpoints/changed` after the first `since` ones names the session."""

        def named() -> bool:
            return any(session in cast("list[str]", c["sessionIds"]) for c in self._changes[since:])

        return self._wait(named, within)

    def stop(self) -> int:
        """End it as a client does; its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self._child.wait(PATIENCE)

    def log(self) -> str:
        """What it wrote to stderr."""
        return self._child.errors()

    def _wait(self, is_so: Callable[[], bool], within: float) -> bool:
        with self._news:
            self._news.wait_for(lambda: is_so() or self._ended, within)
            return is_so()

    def _send(self, message: Document) -> None:
        body = json.dumps(message).encode()
        with self._writing:
            self._child.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._child.stdin.flush()

    def _read(self) -> None:
        with self._child.stdout as output:
            while (message := _read_message(output)) is not None:
                self._take(message)
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _take(self, message: Document) -> None:
        if "method" in message and "id" in message:  # progress, registrations: all are granted
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        with self._news:
            if "method" not in message:
                self._answers[cast("int", message["id"])] = message
            elif message["method"] == "checkpoints/changed":
                self._changes.append(cast("Document", message["params"]))
            self._news.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._child.kill()
        if error is not None:
            error.add_note(f"The product said:\n{self.log()}")


def _read_message(stream: IO[bytes]) -> Document | None:
    length = None
    while (line := stream.readline().strip()) or length is None:
        if not line:  # the end of the stream, or a blank line where a header was due
            return None
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return cast("Document", json.loads(stream.read(length)))
