"""Folder, title, source and branch of a row equal the real Codex's own list (NOW-6).

A row has a word for a structured source.
"""

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import rollouts as r
from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, say
from homes import Home, thread

pytestmark = pytest.mark.codex

KINDS = [
    *("cli", "vscode", "exec", "appServer", "unknown"),
    *("subAgent", "subAgentReview", "subAgentCompact", "subAgentThreadSpawn", "subAgentOther"),
]
WORDS = {"appServer": "mcp"}
GIT = {"commit_hash": "4f1c0de9", "branch": "feature/x", "repository_url": None}
EDITOR = (
    "# Context from my IDE setup:\n\n## Active file: till.py\n\n## My request for Codex:\nFix it"
)
SESSIONS: dict[str, tuple[dict[str, Any], tuple[r.Step, ...]]] = {
    "a plain one": ({"git": GIT}, (r.turn(r.user("Fix the till")),)),
    "of an editor": ({"source": "vscode"}, (r.turn(r.user(EDITOR)),)),
    "of a program": ({"source": "exec"}, (r.turn(r.user("Count the words")),)),
    "over MCP": ({"source": "mcp"}, (r.turn(r.user("Count the lines")),)),
    "a review": ({"source": {"subagent": "review"}}, (r.turn(r.user("Review it")),)),
    "two turns": ({}, (r.turn(r.user("First this")), r.turn(r.user("Then that")))),
}
FORMS: list[r.Form] = ["legacy", "paginated"]


def listed(home: CodexHome, count: int) -> dict[str, dict[str, Any]]:
    """Return the threads of Codex's list, once it knows as many."""
    asked: dict[str, Any] = {"limit": 100, "sourceKinds": KINDS, "modelProviders": []}
    threads: list[dict[str, Any]] = []
    with AppServer(home) as server:
        for _ in range(100):
            threads = cast("list[dict[str, Any]]", server.call("thread/list", asked)["data"])
            if len(threads) >= count:
                break
            time.sleep(0.1)
    return {each["id"]: each for each in threads}


def source_word(source: str | Mapping[str, Any]) -> str:
    """Return our word for a source as Codex lists it."""
    if isinstance(source, str):
        return WORDS.get(source, source)
    helper = source["subAgent"]
    return helper if isinstance(helper, str) else helper["other"]


def test_codex_refuses_exactly_the_sessions_that_rows_mark_as_refused(
    scripted: MakeHome, tmp_path: Path
) -> None:
    theirs, _ = scripted()
    ours = Home(tmp_path / "ours")
    turns = r.turn(r.user("Fix the till"), r.shell("make", "PLAIN"))
    for number, form in enumerate(FORMS, 1):
        ours.put(r.rollout(r.session(form, thread=thread(number)), turns), number)
    spoilt = r.rollout(r.session("legacy", thread=thread(3)), turns).replace(b"PLAIN", b"\xff")
    ours.put(spoilt, 3)
    gone = r.session(thread=thread(4), history_base=r.based_on(thread(9), 3, 9))
    ours.put(r.rollout(gone, turns), 4)

    rows = ours.json("sessions", "--read")
    shutil.copytree(ours.root / "sessions", theirs.codex_home / "sessions")
    refused = {each["sessionId"] for each in rows if each["refused"] is not None}

    assert refused == {thread(3), thread(4)}
    with AppServer(theirs) as server:
        for each in (thread(1), thread(2)):
            assert server.resume(each) == each
        for each in refused:
            assert server.refusal("thread/resume", {"threadId": each})


def test_codex_lists_derived_sessions_in_their_newest_folder(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Seen.")), Answer(say("Renamed.")))
    other = home.root / "other"
    other.mkdir()
    with AppServer(home) as server:
        source = server.start()
        server.turn(source, "Look around")
    with AppServer(home) as server:
        server.resume(source, other)
        server.turn(source, "Rename the parser")
    marker = json.loads(run(home, "mark", source, "--label", "here", "--json"))["checkpointId"]
    ways = [("compact", source, "--force")]
    ways += [("restore", source, marker, "--mode", mode) for mode in ("soft", "hard")]
    made = [json.loads(run(home, *way, "--json"))["sessionId"] for way in ways]

    rows = {each["sessionId"]: each["cwd"] for each in json.loads(run(home, "sessions", "--json"))}
    threads = listed(home, 4)

    assert rows == {each: threads[each]["cwd"] for each in (source, *made)}
    assert set(rows.values()) == {str(other)}


def branch_of(git: dict[str, Any] | None) -> str | None:
    return None if git is None else git.get("branch")


def test_row_matches_codexs_own_list(scripted: MakeHome, tmp_path: Path) -> None:
    theirs, _ = scripted()
    ours, number = Home(tmp_path / "ours"), 0
    for form in FORMS:
        for head, steps in SESSIONS.values():
            number += 1
            data = r.rollout(r.session(form, thread=thread(number), **head), *steps)
            ours.put(data, number)

    rows = {each["sessionId"]: each for each in ours.json("sessions")}
    shutil.copytree(ours.root / "sessions", theirs.codex_home / "sessions")
    threads = listed(theirs, number)

    assert threads.keys() == rows.keys()
    for name, shown in threads.items():
        row = rows[name]
        assert row["cwd"] == shown["cwd"]
        assert row["source"] == source_word(shown["source"])
        assert branch_of(row["git"]) == branch_of(shown["gitInfo"])
        assert row["title"] == " ".join((shown["name"] or shown["preview"]).split())
