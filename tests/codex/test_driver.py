"""The driver itself: the real Codex runs as told, is heard out, and leaves nothing behind."""

import contextlib
import json
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codex.codex_cli import PROJECT, AppServer
from codex.conftest import MakeHome
from codex.scripted_model import (
    MAX_REQUESTS,
    Answer,
    ScriptedModel,
    apply_patch,
    say,
    shell,
    update_plan,
)

pytestmark = pytest.mark.codex


def kinds(rollout: Path) -> list[str]:
    lines = rollout.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["type"] for line in lines]


def test_a_session_is_written_and_its_requests_are_recorded(scripted: MakeHome) -> None:
    home, model = scripted(
        Answer(update_plan([("Look", "in_progress")], "call_plan")),
        Answer(shell("cat README.md", "call_cat")),
        Answer(say("It adds and divides.")),
    )

    session = home.exec("What is this?")

    (rollout,) = home.rollouts()
    assert session in rollout.name
    assert kinds(rollout)[0] == "session_meta"
    assert [request.texts("user")[-1] for request in model.turns] == ["What is this?"] * 3
    outputs = [item for item in model.turns[-1].input if item["type"] == "function_call_output"]
    assert [item["call_id"] for item in outputs] == ["call_plan", "call_cat"]
    assert PROJECT["README.md"].strip() in str(outputs[-1]["output"])
    assert model.unscripted == []


def test_a_resumed_session_sends_its_history(scripted: MakeHome) -> None:
    home, model = scripted(Answer(say("Hello.")), Answer(say("Still here.")))

    session = home.exec("First.")
    home.exec("Second.", resume=session)

    assert len(home.rollouts()) == 1
    sent = model.turns[-1]
    assert [text for text in sent.texts("user") if text in {"First.", "Second."}] == [
        "First.",
        "Second.",
    ]
    assert sent.texts("assistant") == ["Hello."]


def test_a_held_answer_lets_a_test_look_around(scripted: MakeHome) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch"
    first = Answer(apply_patch(patch, "call_patch"), held=True)
    second = Answer(say("Done."), held=True)
    home, _ = scripted(first, second)

    with home.run("Add a file.") as run:
        first.wait_until_asked()
        assert not (home.project / "new.txt").exists()
        first.release()
        second.wait_until_asked()
        assert (home.project / "new.txt").read_text() == "new\n"
        second.release()
        run.finish()


def test_codex_has_nothing_to_complain_about(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Hello.")))

    home.exec("Hello?")

    assert (home.root / "codex-exec.err").read_text() == "Reading additional input from stdin...\n"


def test_a_thread_is_started_compacted_forked_reverted_and_archived(scripted: MakeHome) -> None:
    home, model = scripted(
        *(Answer(say(f"Answer {number}.")) for number in range(1, 6)),
        summaries=("All is well so far.",),
    )

    with AppServer(home) as server:
        thread = server.start()
        first = server.turn(thread, "One.")
        server.turn(thread, "Two.")
        fork = server.fork(thread, first)
        server.turn(fork, "Three, elsewhere.")
        server.compact(thread)
        last = server.turn(thread, "Three.")
        server.revert(thread, last)
        server.turn(thread, "Three again.")
        server.archive(fork)

    names = [path.name for path in home.rollouts()]
    assert sum(thread in name for name in names) == 2
    (archived,) = (home.codex_home / "archived_sessions").iterdir()
    assert fork in archived.name
    assert len(model.compactions) == 1
    assert "All is well so far." in model.turns[-1].texts("user")[-2]
    assert model.unscripted == []


def test_a_legacy_thread_has_no_ordinals(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Hello.")))

    with AppServer(home) as server:
        server.turn(server.start(legacy=True), "Hello?")

    (rollout,) = home.rollouts()
    lines = [json.loads(line) for line in rollout.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["payload"]["history_mode"] == "legacy"
    assert not any("ordinal" in line for line in lines)


def test_a_client_that_never_stops_asking_is_refused() -> None:
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
def test_nothing_is_left_running(scripted: MakeHome) -> None:
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
