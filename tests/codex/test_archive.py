"""A session that we archive is archived for Codex too, in each place where Codex records it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from codex import product
from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.scripted_model import Answer, say

pytestmark = pytest.mark.codex

BIN = Path(__file__).parent / "node_modules" / ".bin"


def ask(home: CodexHome, *arguments: str, codex: bool = True) -> tuple[list[str], str]:
    """Run a command beside Codex; the archived sessions then, and what was said on stderr."""
    env = product.environment(home)
    if not codex:
        env["PATH"] = str(home.temp)  # nothing is there
    else:
        env["PATH"] = os.pathsep.join([str(BIN), env["PATH"]])
    done = subprocess.run(
        product.product(*arguments), env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    listed = json.loads(product.run(home, "sessions", "--archived", "--json"))
    return [each["sessionId"] for each in listed], done.stderr


def codex_lists(home: CodexHome) -> tuple[list[str], list[str]]:
    """Return the active and the archived threads as Codex tells them."""
    with AppServer(home) as server:
        return server.listed(), server.listed(archived=True)


@pytest.mark.parametrize("with_database", [True, False])
def test_codex_sees_our_archived_sessions_and_can_continue_them(
    scripted: MakeHome, *, with_database: bool
):
    home, model = scripted(Answer(say("hello")), Answer(say("again")))
    with AppServer(home) as server:
        session = server.start()
        server.turn(session, "Say hello")
    if not with_database:
        for path in home.codex_home.glob("*.sqlite*"):
            path.unlink()

    assert ask(home, "archive", session) == ([session], "")
    assert codex_lists(home) == ([], [session])
    assert ask(home, "unarchive", session) == ([], "")
    assert codex_lists(home) == ([session], [])
    home.exec("Say it again", resume=session)
    assert len(model.requests) == 2


def test_without_codex_the_file_is_moved_with_a_warning(scripted: MakeHome):
    home, _ = scripted(Answer(say("hello")))
    session = home.exec("Say hello")

    archived, said = ask(home, "archive", session, codex=False)

    assert archived == [session]
    assert said.startswith("codex_not_found: ")
    assert f"codex archive {session}" in said


def test_file_moved_without_codex_is_restored_completely(scripted: MakeHome):
    home, model = scripted(Answer(say("hello")), Answer(say("again")))
    session = home.exec("Say hello")
    ask(home, "archive", session, codex=False)

    archived, said = ask(home, "unarchive", session)

    assert archived == []
    assert said.startswith("codex_failed: ")  # Codex knows of no archived one
    home.exec("Say it again", resume=session)
    assert len(model.requests) == 2
