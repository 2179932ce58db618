"""The real Codex lists our branches, and sends exactly the history that a restore promised."""

import json
from pathlib import Path
from typing import Any

import pytest

from codex import product, requests
from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.generations import FIRST, GENERATIONS, SECOND, written_by
from codex.scripted_model import Answer, Json, ScriptedModel, apply_patch, say, shell
from rollouts import THREAD

pytestmark = pytest.mark.codex

both_modes = pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])

PROMPT = "And what is next here?"
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
    return product.worked(home, "Fix the division, größer 日本 🙂", "later-words", legacy=legacy)


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
    return requests.sent(model.turns[-1])


def fresh(items: list[dict[str, Json]]) -> bool:
    """Return whether nothing is there but what Codex adds to a turn, and the prompt."""
    *context, prompt = items
    asked = prompt["content"] == [{"type": "input_text", "text": PROMPT}]
    return asked and all(
        item["role"] in {"developer", "user"} and "<" in str(item["content"]) for item in context
    )


NAME = "before the rewrite: Fix the division, größer 日本 🙂"


@both_modes
def test_codex_continues_a_soft_branch_after_its_turn(scripted: MakeHome, legacy: bool) -> None:
    home, model = scripted(*script())
    thread, path = two_turns(home, legacy=legacy)
    before = path.read_bytes()

    branch = restore(home, thread, "soft")["sessionId"]

    history = ask(home, "history", branch)["items"]
    with AppServer(home) as server:
        assert set(server.listed()) == {branch, thread}
        assert server.read(branch)["forkedFromId"] == thread
        # Of other threads Codex has the name in its database; `resume` goes by the list too.
        assert server.read(branch)["name"] == (NAME if legacy else None)
    items = sent(home, model, NAME)
    assert items[: len(history)] == history
    assert fresh(items[len(history) :])
    assert SAID in str(history)
    assert "later-words" not in str(items)
    assert path.read_bytes() == before
    (turn,) = [each for each in home.rollouts() if branch in each.name]
    assert turn.read_bytes().count(b"session_meta") == 1


@pytest.mark.parametrize("generation", GENERATIONS)
def test_codex_continues_a_soft_branch_of_a_session_of_any_version(
    scripted: MakeHome, generation: str
) -> None:
    home, model = scripted()
    path = home.codex_home / f"sessions/2026/11/20/rollout-2026-11-20T10-00-00-{THREAD}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(written_by(generation))

    branch = restore(home, THREAD, "soft")["sessionId"]

    history = ask(home, "history", branch)["items"]
    ask(home, "mark", branch, "--label", "the same turn")
    assert len({each["turnId"] for each in ask(home, "marks", branch)}) == 1
    items = sent(home, model, branch)
    assert items[: len(history)] == history
    assert fresh(items[len(history) :])
    assert str(history).count(FIRST) == 1
    assert SECOND not in str(items)


@both_modes
def test_codex_starts_a_hard_branch_with_the_pack_alone(scripted: MakeHome, legacy: bool) -> None:
    home, model = scripted(*script())
    thread, path = two_turns(home, legacy=legacy)
    before = path.read_bytes()

    done = restore(home, thread, "hard")

    branch, pack = done["sessionId"], done["pack"]
    with AppServer(home) as server:
        assert set(server.listed()) == {branch, thread}
        read = server.read(branch)
        assert read["forkedFromId"] == thread
        assert read["preview"] == "before the rewrite: Fix the division, größer 日本 🙂"
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


@both_modes
def test_hard_branch_keeps_the_model_and_effort_of_its_source(
    scripted: MakeHome, legacy: bool
) -> None:
    home, _ = scripted(Answer(say(SAID)), model_name="gpt-5.2")
    with AppServer(home) as server:
        source = server.start(legacy=legacy)
        server.turn(source, "Fix the division.", model="gpt-5.5", effort="high")
    branch = restore(home, source, "hard")["sessionId"]

    with AppServer(home) as server:
        resumed = server.call("thread/resume", {"threadId": branch})

    assert (resumed["model"], resumed["reasoningEffort"]) == ("gpt-5.5", "high")


def test_reverted_turn_is_restored_from_the_remaining_records(scripted: MakeHome) -> None:
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


@both_modes
def test_codex_continues_a_soft_branch_of_a_session_without_whole_texts(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script())
    thread, path = two_turns(home, legacy=legacy)
    whole = path.read_bytes().splitlines(keepends=True)
    # A line that never was one, and one that lost a byte, in front of the end of the first turn.
    end = next(n for n, line in enumerate(whole) if b"task_complete" in line)
    hurt = whole[end - 1].replace(b'"payload"', b'"pay\xffload"')
    path.write_bytes(b"".join((*whole[: end - 1], b"\xff\xfe\n", hurt, *whole[end:])))

    branch = restore(home, thread, "soft")["sessionId"]

    history = ask(home, "history", branch)["items"]
    with AppServer(home) as server:
        assert branch in server.listed()
    items = sent(home, model, branch)
    assert items[: len(history)] == history
    assert fresh(items[len(history) :])


def test_soft_branch_of_a_compacted_session_has_its_own_windows(scripted: MakeHome) -> None:
    home, model = scripted(*(Answer(say(f"Answer {n}.")) for n in range(3)), summaries=("Short.",))
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "One.")
        server.compact(thread)
        server.turn(thread, "Two.")
    (path,) = home.rollouts()
    before = path.read_bytes()
    source = {each["windowId"] for each in ask(home, "windows", thread)}

    branch = restore(home, thread, "soft", "2")["sessionId"]

    windows = ask(home, "windows", branch)
    assert len(windows) == 2
    assert source.isdisjoint(each["windowId"] for each in windows)
    assert windows[1]["previousWindowId"] == windows[0]["windowId"]
    history = ask(home, "history", branch)["items"]
    summaries = len(model.compactions)
    model.add(Answer(say("So.")))
    home.exec(PROMPT, resume=branch)
    assert len(model.compactions) == summaries
    items = [
        {key: each for key, each in item.items() if key not in NOT_COMPARED}
        for item in model.turns[-1].input
    ]
    assert str(history[-1]) in str(items)
    assert "Two." in str(items)
    assert path.read_bytes() == before
    again = ask(home, "windows", branch)
    assert [each["windowId"] for each in again[:2]] == [each["windowId"] for each in windows]
    assert again[0]["windowId"] == ask(home, "history", branch)["windows"]["first"]
