"""Codex's own program: where it is, which version, and what it makes of our hooks.

Codex is asked through its app server over pipes, with a limit of time.  It is told of nobody's
session, and nothing is asked that would start a turn, an MCP server or a hook.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from typing import IO, cast

import orjson
from attrs import frozen

SECONDS = 10.0
"""What Codex may take for its whole answer; it takes a fraction of one."""

_VERSION = re.compile(r"/(\d+\.\d+\.\d+\S*)")
_MAX_LINE = 16 << 20


class AskingFailed(Exception):
    """Codex gave no answer; `code` says why: `timed_out`, `codex_failed`."""

    def __init__(self, code: str, message: str) -> None:
        """Say why."""
        super().__init__(message)
        self.code = code


@frozen
class SeenHook:
    """A hook as Codex sees it; `trust` is `trusted`, `untrusted`, `modified` or `managed`."""

    event: str
    command: str
    trust: str
    enabled: bool
    path: str


@frozen
class Answer:
    """What Codex says of itself; `hooks` is None where it knows no hooks."""

    version: str | None
    hooks: tuple[SeenHook, ...] | None
    warnings: tuple[str, ...]


def find(search_path: str) -> str | None:
    """Return the Codex CLI on a search path, never one in the current folder."""
    for folder in search_path.split(os.pathsep):
        if os.path.isabs(folder) and (found := shutil.which(os.path.join(folder, "codex"))):
            return found
    return None


def this_program(interpreter: str, package_folder: str) -> tuple[str, ...]:
    """Return the words that start this very program from any folder.

    From the editor's bundle by its launcher; else as a module, with `-P`: Codex starts us in the
    folder of a session, and a module there must not pass for ours.
    """
    launcher = os.path.join(os.path.dirname(os.path.dirname(package_folder)), "launch.py")
    if os.path.isfile(launcher):
        return (interpreter, "-I", "-S", "-X", "utf8", "-u", launcher)
    return (interpreter, "-P", "-X", "utf8", "-m", "codex_checkpoints")


def ask(codex: str, codex_home: str, cwd: str, environment: Mapping[str, str]) -> Answer:
    """Ask Codex for its version and for the hooks that hold in a folder.

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
    late = threading.Event()

    def end() -> None:
        late.set()
        _kill(child)

    timer = threading.Timer(SECONDS, end)
    timer.start()
    try:
        return _conversation(child, cwd)
    except (OSError, EOFError, ValueError) as error:
        if late.is_set():
            message = f"Codex gave no answer within {SECONDS:g} seconds"
            raise AskingFailed("timed_out", message) from error
        raise AskingFailed("codex_failed", "Codex ended without an answer") from error
    finally:
        timer.cancel()
        _close(child)


def _conversation(child: subprocess.Popen[bytes], cwd: str) -> Answer:
    asked, answers = cast("IO[bytes]", child.stdin), _answers(cast("IO[bytes]", child.stdout))
    client = {"name": "codex-checkpoints", "title": None, "version": "1"}
    _send(asked, {"id": 1, "method": "initialize", "params": {"clientInfo": client}})
    agent = str(_result(answers, 1).get("userAgent"))
    version = _VERSION.search(agent)
    _send(asked, {"method": "initialized"})
    _send(asked, {"id": 2, "method": "hooks/list", "params": {"cwds": [cwd]}})
    try:
        listed = _result(answers, 2)
    except _Refused:
        listed = None
    entries = [] if listed is None else cast("list[Mapping[str, object]]", listed.get("data") or [])
    return Answer(
        None if version is None else version[1],
        None if listed is None else tuple(hook for entry in entries for hook in _hooks(entry)),
        tuple(str(text) for e in entries for text in cast("list[object]", e.get("warnings") or [])),
    )


def _hooks(entry: Mapping[str, object]) -> Iterator[SeenHook]:
    for hook in cast("list[Mapping[str, object]]", entry.get("hooks") or []):
        name = str(hook.get("eventName"))
        yield SeenHook(
            name[:1].upper() + name[1:],
            str(hook.get("command", "")),
            str(hook.get("trustStatus")),
            hook.get("enabled") is not False,
            str(hook.get("sourcePath")),
        )


class _Refused(Exception):
    """Codex does not know this question."""


def _send(stream: IO[bytes], message: Mapping[str, object]) -> None:
    stream.write(orjson.dumps(message) + b"\n")
    stream.flush()


def _answers(stream: IO[bytes]) -> Iterator[Mapping[str, object]]:
    while line := stream.readline(_MAX_LINE):
        with contextlib.suppress(orjson.JSONDecodeError):
            message = orjson.loads(line)
            if isinstance(message, dict):
                yield cast("dict[str, object]", message)
    raise EOFError


def _result(answers: Iterator[Mapping[str, object]], number: int) -> Mapping[str, object]:
    for message in answers:
        if message.get("id") == number and "method" not in message:
            result = message.get("result")
            if isinstance(result, dict):
                return cast("dict[str, object]", result)
            raise _Refused
    raise EOFError


def _close(child: subprocess.Popen[bytes]) -> None:
    """Let it end by itself, since it flushes its files then; insist after a moment."""
    with contextlib.suppress(OSError):
        cast("IO[bytes]", child.stdin).close()
    try:
        child.wait(2)
    except subprocess.TimeoutExpired:
        _kill(child)
        child.wait()
    cast("IO[bytes]", child.stdout).close()


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
