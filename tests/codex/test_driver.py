"""The driver itself: the real Codex follows the script, is heard out, and leaves no process."""

import contextlib
import json
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codex.codex_cli import AppServer
from codex.conftest import MakeHome
from codex.scripted_model import (
    MAX_REQUESTS,
    Answer,
    ScriptedModel,
    say,
    shell,
)

pytestmark = pytest.mark.codex


def test_codex_reports_no_warnings(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Hello.")))

    home.exec("Hello?")

    assert (home.root / "codex-exec.err").read_text() == "Reading additional input from stdin...\n"


def test_a_legacy_thread_has_no_ordinals(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Hello.")))

    with AppServer(home) as server:
        server.turn(server.start(legacy=True), "Hello?")

    (rollout,) = home.rollouts()
    lines = [json.loads(line) for line in rollout.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["payload"]["history_mode"] == "legacy"
    assert not any("ordinal" in line for line in lines)


def test_client_that_asks_without_end_is_refused() -> None:
    with ScriptedModel(()) as model:
        address = urlsplit(model.base_url)
        connection = HTTPConnection(str(address.hostname), address.port)
        with contextlib.closing(connection):
            answers: list[int] = []
            for _ in range(MAX_REQUESTS + 1):
                connection.request("GET", "/v1/models")
                response = connection.getresponse()
                response.read()
                answers.append(response.status)

    assert answers == [200] * MAX_REQUESTS + [503]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_keeps_running(scripted: MakeHome) -> None:
    never = Answer(say("Never said."), held=True)
    home, _ = scripted(Answer(shell("sleep 30", "call_sleep", yield_time_ms=250)), never)

    with AppServer(home) as server:
        server.begin(server.start(), "Sleep on it.")
        never.wait_until_asked()
        assert running_in(home.codex_home)

    assert running_in(home.codex_home) == []


def running_in(codex_home: Path) -> list[str]:
    """Find the processes that have this CODEX_HOME in their environment."""
    wanted = f"CODEX_HOME={codex_home}".encode()
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # gone, or somebody else's
            continue
    return found
