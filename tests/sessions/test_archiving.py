"""A session archived by the installed Codex, where Codex is any program: it may take its time.

What the real one does is tried in `codex/test_archive.py`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from homes import WAIT, Home, chat, eventually, thread
from peer import Peer

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a program that POSIX starts by its name")

CANCELLED = -32_800

CODEX = """\
#!{python}
import json, os, sys, time
from pathlib import Path

here, home = Path(__file__).parent, Path(os.environ["CODEX_HOME"])
(here / "pid").write_text(str(os.getpid()))

def move(to, name):
    to.mkdir(parents=True, exist_ok=True)
    for folder in ("sessions", "archived_sessions"):
        for path in list((home / folder).rglob(f"rollout-*{{name}}.jsonl")):
            path.rename(to / path.name)

def waits_at(method):
    try:
        return (here / "waits").read_text() == method
    except FileNotFoundError:  # also between two looks: it is taken away while this runs
        return False

for line in sys.stdin:
    message = json.loads(line)
    method, answer = message["method"], {{"result": {{}}}}
    with open(here / "asked", "a") as asked:
        asked.write(method + "\\n")
    while waits_at(method):
        time.sleep(0.01)
    if (here / "refuses").exists() and method.startswith("thread/"):
        answer = {{"error": {{"code": -32600, "message": "no rollout found"}}}}
    elif method == "thread/archive":
        move(home / "archived_sessions", message["params"]["threadId"])
    elif method == "thread/unarchive":
        move(home / "sessions/2026/11/20", message["params"]["threadId"])
    if "id" in message:
        print(json.dumps({{"id": message["id"], **answer}}), flush=True)
"""


class Codex:
    """A program in the place of Codex, in a folder of its own, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        program = folder / "codex"
        program.write_text(CODEX.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.pathsep.join([str(self.folder), os.environ["PATH"]])}

    def wait_at(self, method: str) -> None:
        (self.folder / "waits").write_text(method)

    def go_on(self) -> None:
        (self.folder / "waits").unlink()

    def refuse(self) -> None:
        (self.folder / "refuses").touch()

    def asked(self) -> list[str]:
        file = self.folder / "asked"
        return file.read_text().split() if file.exists() else []

    def begun(self, method: str) -> None:
        """Wait until it was asked for something."""
        eventually(lambda: method in self.asked())

    def has_ended(self) -> bool:
        command = ["ps", "-o", "stat=", "-p", (self.folder / "pid").read_text()]
        state = subprocess.run(command, capture_output=True, check=False)
        return state.stdout.strip()[:1] in {b"", b"Z"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of which Codex keeps a database."""
    home = Home(tmp_path)
    home.put(chat("one"))
    home.put(chat("two", 2), 2)
    (home.root / "state_5.sqlite").touch()
    return home


@pytest.fixture
def codex(tmp_path: Path) -> Codex:
    return Codex(tmp_path / "bin")


@pytest.fixture
def peer(home: Home, codex: Codex) -> Generator[Peer]:
    with Peer(home.root, env=codex.environment) as peer:
        peer.start()
        yield peer


def ask(peer: Peer, what: str = "archive", number: int = 1, **more: Any) -> int:  # noqa: ANN401
    return peer.ask(f"checkpoints/{what}", {"sessionId": thread(number), **more})


def listed(peer: Peer, *, archived: bool = False) -> list[str]:
    items = peer.call("checkpoints/sessions", {"archived": archived})["items"]
    return sorted(each["sessionId"] for each in items)


def call_off(peer: Peer, number: int) -> None:
    peer.notify("$/cancelRequest", {"id": number})


# --- an editor -----------------------------------------------------------------------------------


def test_other_requests_are_served_while_codex_moves_a_session(
    home: Home, codex: Codex, peer: Peer
):
    codex.wait_at("thread/archive")
    number = ask(peer, workDoneToken="t")
    codex.begun("thread/archive")

    assert listed(peer) == [thread(1), thread(2)]
    assert "one" in peer.call("checkpoints/view", {"sessionId": thread(1)})["text"]
    renamed = peer.call("checkpoints/rename", {"sessionId": thread(1), "name": "called so"})
    assert renamed["title"] == "called so"
    codex.go_on()
    done = peer.answer(number)["result"]

    assert (done["archived"], done["path"]) == (True, str(home.path(archived=True)))
    assert done["title"] == "called so"
    assert listed(peer) == [thread(2)]
    assert listed(peer, archived=True) == [thread(1)]
    told = [peer.heard("$/progress")["value"] for _ in range(2)]
    assert told[0]["title"] == "Archiving the session"
    assert (told[0]["kind"], told[1]["kind"]) == ("begin", "end")


def test_codex_archives_and_unarchives_a_session(home: Home, codex: Codex, peer: Peer):
    peer.call("checkpoints/show", {"sessionId": thread(1)})
    assert peer.answer(ask(peer))["result"]["archived"]
    while thread(1) not in peer.heard("checkpoints/changed")["sessionIds"]:
        pass
    shown = peer.call("checkpoints/show", {"sessionId": thread(1)})["text"]
    assert json.loads(shown)["task"]["text"] == "one"
    back = peer.answer(ask(peer, "unarchive"))["result"]

    assert (back["archived"], back["path"]) == (False, str(home.path()))
    assert [each for each in codex.asked() if each.startswith("thread/")] == [
        "thread/archive",
        "thread/unarchive",
    ]


@pytest.mark.parametrize("is_leaving", [False, True])
def test_cancelling_while_codex_starts_changes_nothing(
    home: Home, codex: Codex, peer: Peer, is_leaving: bool
):
    codex.wait_at("initialize")
    number = ask(peer)
    codex.begun("initialize")
    if is_leaving:
        peer.call("shutdown")
    else:
        call_off(peer, number)

    assert peer.answer(number)["error"]["code"] == CANCELLED
    assert codex.has_ended()
    assert codex.asked() == ["initialize"]
    assert home.path().exists()


def test_cancelling_while_codex_moves_it_returns_the_result(codex: Codex, peer: Peer):
    codex.wait_at("thread/archive")
    number = ask(peer)
    codex.begun("thread/archive")
    call_off(peer, number)
    codex.go_on()

    assert peer.answer(number)["result"]["archived"]


def test_second_of_two_concurrent_archives_finds_it_done(codex: Codex, peer: Peer):
    codex.wait_at("thread/archive")
    listed(peer)  # who waits for the index may be overtaken
    first, second = ask(peer), ask(peer)
    codex.begun("thread/archive")
    codex.go_on()

    assert peer.answer(first)["result"]["archived"]
    assert peer.answer(second)["error"]["data"]["code"] == "conflict"
    assert codex.asked().count("thread/archive") == 1


def test_request_waiting_for_another_session_can_be_cancelled(home: Home, codex: Codex, peer: Peer):
    codex.wait_at("thread/archive")
    first = ask(peer)
    codex.begun("thread/archive")
    second = ask(peer, number=2)
    call_off(peer, second)

    assert peer.answer(second)["error"]["code"] == CANCELLED
    codex.go_on()
    assert peer.answer(first)["result"]["archived"]
    assert home.path(2).exists()


def test_shutdown_waits_for_a_move_that_codex_began(home: Home, codex: Codex, peer: Peer):
    codex.wait_at("thread/archive")
    number = ask(peer)
    codex.begun("thread/archive")
    leaving = peer.ask("shutdown")
    assert peer.error("checkpoints/sessions")["code"] == CANCELLED
    codex.go_on()

    assert peer.answer(number)["result"]["archived"]
    assert peer.answer(leaving)["result"] is None
    assert home.path(archived=True).exists()


# --- the command line ----------------------------------------------------------------------------


def test_move_refused_by_codex_is_made_without_it_and_reported(home: Home, codex: Codex):
    codex.refuse()

    done = home.run("archive", thread(1), env=codex.environment)

    assert done.returncode == 0
    assert done.stderr.startswith(b"codex_failed: Codex refused; ")
    assert home.path(archived=True).exists()


def test_refused_move_is_not_notified(home: Home, codex: Codex):
    codex.refuse()
    home.put(b"in the way", archived=True)

    done = home.run("archive", thread(1), "--json", env=codex.environment)

    assert json.loads(done.stdout)["error"]["code"] == "conflict"
    assert b"is moved" not in done.stderr
    assert home.path().exists()


def test_codex_without_its_own_list_is_not_asked(home: Home, codex: Codex):
    (home.root / "state_5.sqlite").unlink()

    assert home.json("archive", thread(1), env=codex.environment)["archived"]
    assert codex.asked() == []


def test_interrupt_while_codex_starts_changes_nothing(home: Home, codex: Codex):
    codex.wait_at("initialize")
    process = home.start("archive", thread(1), env=codex.environment)
    try:
        codex.begun("initialize")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()

    assert process.returncode == 130
    assert codex.has_ended()
    assert codex.asked() == ["initialize"]
    assert home.path().exists()
