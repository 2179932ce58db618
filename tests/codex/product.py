"""The product over the home of a real Codex: as processes of its own, and inside the test."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import forked_python
from codex.child import Child, clean_environment
from codex.codex_cli import AppServer, CodexHome
from codex.scripted_model import Json
from codex_checkpoints import assembly
from codex_checkpoints.places import Places
from codex_checkpoints.service.sessions.sessions import Sessions

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
    done = forked_python.run(
        product(*arguments),
        cwd=home.root,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    errors = done.stderr.decode(errors="replace")
    said = f"{errors}{done.stdout.decode(errors='replace')[-400:]}"
    assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{said}"
    return done.stdout


def stored_checkpoint(home: CodexHome, session: str) -> bytes:
    """The checkpoint as it lies in the state folder now; nothing when there is none."""
    folder = home.codex_home / "codex-checkpoints" / "sessions" / session
    try:
        return (folder / "checkpoint_v1.json").read_bytes()
    except FileNotFoundError:
        return b""


def worked(
    home: CodexHome,
    first: str = "Fix the login, größer 日本 🙂",
    second: str = "And the logout as well, please.",
    *,
    legacy: bool = False,
) -> tuple[str, Path]:
    """Have Codex answer two prompts; its only session, and the file of that."""
    with AppServer(home) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, first)
        server.turn(thread, second)
    (path,) = home.rollouts()
    return thread, path


@contextmanager
def service_over(home: CodexHome) -> Generator[Sessions]:
    """The use cases over a home."""
    root = str(home.codex_home)
    house = assembly.assemble(Places(root, f"{root}/codex-checkpoints"))
    try:
        house.sessions.refresh()
        yield house.sessions
    finally:
        house.sessions.close()


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
