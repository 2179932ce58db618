"""The real Codex lists our branches, and sends exactly what a restore said that it would."""

import json
from pathlib import Path
from typing import Any

import pytest

from codex import product
from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.scripted_model import Answer, Json, ScriptedModel, apply_patch, say, shell

pytestmark = pytest.mark.codex

both_modes = pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])

PROMPT = "And now?"
SAID = "assistant-words"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+body-of-the-file\n*** End Patch"
NOT_COMPARED = ("id", "metadata", "internal_chat_message_metadata_passthrough")


def ask(home: CodexHome, *arguments: str) -> Any:  # noqa: ANN401 - any JSON document
    return json.loads(product.run(home, *arguments, "--json"))


def script() -> list[Answer]:
    return [
        Answer(shell("sed -n 1,2p calc/core.py", "call_1")),
        Answer(apply_patch(PATCH, "call_2")),
        Answer(say(SAID)),
        Answer(say("And that.")),
    ]


def two_turns(home: CodexHome, *, legacy: bool) -> tuple[str, Path]:
    with AppServer(home) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, "Fix the division, größer 日本 🙂")
        server.turn(thread, "later-words")
    (path,) = home.rollouts()
    return thread, path


def restore(home: CodexHome, thread: str, mode: str, turn: str = "1") -> Any:  # noqa: ANN401 - a record
    marker = ask(home, "mark", thread, "--label", "before the rewrite", "--turn", turn)
    return ask(home, "restore", thread, marker["checkpointId"], "--mode", mode)


def sent(home: CodexHome, model: ScriptedModel, session: str) -> list[dict[str, Json]]:
    """Resume a session; return what went out, without the base instructions."""
    before = len(model.turns)
    model.add(Answer(say("So.")))
    home.exec(PROMPT, resume=session)
    assert len(model.turns) == before + 1
    assert model.compactions == []
    items = [
        {key: value for key, value in item.items() if key not in NOT_COMPARED}
        for item in model.turns[-1].input
    ]
    first = next(n for n, item in enumerate(items) if item["type"] == "message")
    return items[:first] + items[first + 1 :]


def fresh(items: list[dict[str, Json]]) -> bool:
    """Return whether nothing is there but what Codex adds to a turn, and the prompt."""
    *context, prompt = items
    asked = prompt["content"] == [{"type": "input_text", "text": PROMPT}]
    return asked and all(
        item["role"] in {"developer", "user"} and "<" in str(item["content"]) for item in context
    )


@both_modes
def test_codex_goes_on_with_a_soft_branch_where_the_turn_ended(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script())
    thread, path = two_turns(home, legacy=legacy)
    before = path.read_bytes()

    branch = restore(home, thread, "soft")["sessionId"]

    history = ask(home, "history", branch)["items"]
    with AppServer(home) as server:
        assert set(server.listed()) == {branch, thread}
        assert server.read(branch)["forkedFromId"] == thread
    items = sent(home, model, branch)
    assert items[: len(history)] == history
    assert fresh(items[len(history) :])
    assert SAID in str(history)
    assert "later-words" not in str(items)
    assert path.read_bytes() == before
    (turn,) = [each for each in home.rollouts() if branch in each.name]
    assert turn.read_bytes().count(b"session_meta") == 1
    assert ask(home, "verify")["findings"] == []


@both_modes
def test_codex_begins_a_hard_branch_with_the_pack_and_nothing_else(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script())
    thread, path = two_turns(home, legacy=legacy)
    before = path.read_bytes()

    done = restore(home, thread, "hard")

    branch, pack = done["sessionId"], done["pack"]
    with AppServer(home) as server:
        assert set(server.listed()) == {branch, thread}
        read = server.read(branch)
        assert (read["preview"], read["forkedFromId"]) == ("before the rewrite", thread)
    items = sent(home, model, branch)
    assert items[0] == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": pack}],
    }
    assert fresh(items[1:])
    assert "file: calc/core.py" in pack
    for planted in (SAID, "later-words", "body-of-the-file", "return a // b"):
        assert planted not in str(items)
    assert path.read_bytes() == before
    (own,) = [each for each in home.rollouts() if branch in each.name]
    assert b"later-words" not in own.read_bytes()
    assert ask(home, "windows", branch)[-1]["number"] == 1
    state = json.loads(product.run(home, "show", branch))
    assert state["task"]["text"] == PROMPT
    assert {"calc/core.py", "new.txt"} <= state["artifacts"].keys()
    assert ask(home, "verify")["findings"] == []


def test_a_turn_that_codex_took_back_is_restored_from_what_remains(scripted: MakeHome) -> None:
    home, model = scripted(*(Answer(say(f"Answer {number}.")) for number in range(4)))
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "One.")
        second = server.turn(thread, "Two.")
    marker = ask(home, "mark", thread, "--label", "two")
    with AppServer(home) as server:
        server.resume(thread)
        server.revert(thread, second)
        server.turn(thread, "Otherwise.")
    before = {path: path.read_bytes() for path in home.rollouts()}
    assert len(before) == 2
    assert [each["detached"] for each in ask(home, "marks", thread)] == [True]

    lost = ask(home, "restore", thread, marker["checkpointId"], "--mode", "soft")
    kept = restore(home, thread, "soft", "2")

    assert [each["code"] for each in lost["warnings"]] == ["detached_marker"]
    assert kept["warnings"] == []
    for branch, text, other in (
        (lost["sessionId"], "Two.", "Otherwise."),
        (kept["sessionId"], "Otherwise.", "Two."),
    ):
        history = ask(home, "history", branch)["items"]
        items = sent(home, model, branch)
        assert items[: len(history)] == history
        assert text in str(history)
        assert other not in str(history)
    assert {path: path.read_bytes() for path in before} == before
    (chained,) = [each for each in home.rollouts() if kept["sessionId"] in each.name]
    ordinals = [json.loads(line)["ordinal"] for line in chained.read_bytes().splitlines()]
    assert ordinals == list(range(len(ordinals)))
