"""Our history of a session equals the request that the real Codex sends on resume.

Each test makes a session, asks the product for its history, and then has Codex resume it.  Of the
request the base instructions at the head are left out, and at the end what belongs to the next
turn: context that Codex adds anew, and the prompt.
"""

import base64
import json
from pathlib import Path

import pytest

from codex import product
from codex.codex_cli import CODE_MODE_MODEL, AppServer, CodexHome
from codex.conftest import MakeHome
from codex.requests import sent
from codex.scripted_model import Answer, Json, ScriptedModel, call, say, script, shell
from homes import thread
from rollouts import (
    assistant,
    compacted,
    environment,
    injected,
    output,
    rollback,
    rollout,
    session,
    started,
    turn,
    turn_context,
    user,
)
from rollouts import (
    call as called,
)

pytestmark = pytest.mark.codex

Item = dict[str, Json]

PROMPT = "And what is next here?"
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def history(home: CodexHome, session_id: str) -> list[Item]:
    """Ask the product."""
    return json.loads(product.run(home, "history", session_id, "--json"))["items"]


def sent_on_resume(home: CodexHome, model: ScriptedModel, session_id: str) -> list[Item]:
    """Have Codex resume a session; what it sent, without the base instructions."""
    model.add(Answer(say("So.")))
    home.exec(PROMPT, resume=session_id)
    return sent(model.turns[-1])


def hold(home: CodexHome, model: ScriptedModel, session_id: str) -> list[Item]:
    """Compare the history with the request; return it."""
    ours = history(home, session_id)
    sent = sent_on_resume(home, model, session_id)
    assert ours
    assert ours == sent[: len(ours)]
    rest = sent[len(ours) :]
    assert rest[-1]["content"] == [{"type": "input_text", "text": PROMPT}]
    for item in rest[:-1]:
        assert item["role"] in {"developer", "user"}
        assert "<" in str(item["content"])  # context, in tags
    return ours


def types(items: list[Item]) -> list[Json]:
    return [item["type"] for item in items]


def test_history_of_a_session_with_calls_matches_codex(scripted: MakeHome) -> None:
    home, model = scripted(
        Answer(shell("cat README.md", "c1"), shell("exit 3", "c2")),
        Answer(shell("seq 1 30000", "c3")),  # longer than what is kept of an output
        Answer(say("Done.")),
    )

    items = hold(home, model, home.exec("What is this?"))

    assert types(items).count("function_call_output") == 3
    assert "tokens truncated" in str(items[-2]["output"])


def test_history_of_a_session_compacted_by_codex_matches_codex(scripted: MakeHome) -> None:
    home, model = scripted(
        *(Answer(say(f"Answer {number}.")) for number in range(3)), summaries=("All is well.",)
    )

    with AppServer(home) as server:
        thread_id = server.start()
        server.turn(thread_id, "One.")
        server.turn(thread_id, "Two.")
        server.compact(thread_id)
        server.turn(thread_id, "Three.")

    items = hold(home, model, thread_id)
    windows = json.loads(product.run(home, "windows", thread_id, "--json"))

    assert "Answer 0." not in str(items)
    assert "All is well." in str(items)
    assert [(each["trigger"], each["strategy"]) for each in windows] == [
        (None, None),
        ("manual", "local"),
    ]
    assert windows[1]["previousWindowId"] == windows[0]["windowId"] is not None


def test_history_of_a_fork_and_a_revert_matches_codex(scripted: MakeHome) -> None:
    home, model = scripted(*(Answer(say(f"Answer {number}.")) for number in range(5)))

    with AppServer(home) as server:
        thread_id = server.start()
        first = server.turn(thread_id, "One.")
        second = server.turn(thread_id, "Two.")
        fork = server.fork(thread_id, first)
        server.turn(fork, "Two, elsewhere.")
        server.revert(thread_id, second)
        server.turn(thread_id, "Two again.")

    assert "Two, elsewhere." in str(hold(home, model, fork))
    assert "Two again." in str(hold(home, model, thread_id))


def test_history_of_a_compacted_and_forked_legacy_session_matches_codex(scripted: MakeHome) -> None:
    home, model = scripted(
        *(Answer(say(f"Answer {number}.")) for number in range(4)), summaries=("All is well.",)
    )

    with AppServer(home) as server:
        thread_id = server.start(legacy=True)
        server.turn(thread_id, "One.")
        server.compact(thread_id)
        server.turn(thread_id, "Two.")
        fork = server.fork(thread_id)
        server.turn(fork, "Three, elsewhere.")

    hold(home, model, thread_id)
    hold(home, model, fork)


def test_history_of_an_interrupted_call_matches_codex(scripted: MakeHome) -> None:
    never = Answer(say("Never said."), held=True)
    home, model = scripted(Answer(shell("sleep 30", "c1", yield_time_ms=250)), never)

    with AppServer(home) as server:
        thread_id = server.start()
        turn_id = server.begin(thread_id, "Sleep on it.")
        never.wait_until_asked()
        server.interrupt(thread_id, turn_id)

    assert "<turn_aborted>" in str(hold(home, model, thread_id))


def test_history_of_a_process_killed_in_a_call_matches_codex(scripted: MakeHome) -> None:
    home, model = scripted(Answer(shell("cat README.md", "c1")), Answer(say("Done.")))
    session_id = home.exec("What is this?")
    (path,) = home.rollouts()
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(n for n, line in enumerate(lines) if b'"function_call_output"' in line)
    path.write_bytes(b"".join(lines[:cut]) + lines[cut][:-30])

    items = hold(home, model, session_id)

    assert items[-1] == {"type": "function_call_output", "call_id": "c1", "output": "aborted"}


def test_history_of_code_mode_matches_codex(scripted: MakeHome) -> None:
    source = 'text(await tools.exec_command({"cmd": "cat README.md"}));'
    home, model = scripted(
        Answer(script(source, "c1")), Answer(say("Done.")), model_name=CODE_MODE_MODEL
    )

    items = hold(home, model, home.exec("What is this?"))

    assert "custom_tool_call" in types(items)


def test_history_with_an_image_matches_codex(scripted: MakeHome) -> None:
    home, model = scripted(Answer(call("view_image", {"path": "a.png"}, "c1")), Answer(say("Red.")))
    (home.project / "a.png").write_bytes(base64.b64decode(PICTURE))

    assert "data:image/png;base64," in str(hold(home, model, home.exec("What is this?")))


def kept(*texts: str) -> list[dict[str, object]]:
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for text in texts
    ]


OLD = {
    "a rollback past a compaction": (
        turn(turn_context(), environment(), user("a"), assistant("1")),
        turn(turn_context(), user("b"), compacted("", kept("short"))),
        rollback(1),
        turn(turn_context(), user("c"), assistant("3")),
    ),
    "a rollback behind a compaction": (
        turn(user("a"), assistant("1")),
        compacted("", kept("short")),
        turn(turn_context(), user("b")),
        turn(injected("<permissions instructions>x", role="developer"), user("c")),
        rollback(1),
    ),
    "compactions without a replacement": (
        turn(user("a"), assistant("1"), called("f", {}, "c1")),
        compacted("first"),
        turn(user("b"), output("c2", "nobody asked")),
        compacted(""),
        turn(turn_context(), user("c"), called("f", {}, "c3")),
    ),
    "a rollback past one of those": (
        turn(user("a")),
        turn(user("b"), assistant("2")),
        compacted("short"),
        turn(user("c")),
        rollback(3),
    ),
    "a task that never ended": (
        turn(turn_context(), user("a"), assistant("1")),
        started("cut"),
        user("b"),
        compacted("", kept("short")),
        turn(turn_context(), user("c")),
        rollback(1),
    ),
    "a very long prompt": (
        turn(user("old")),
        turn(injected("a" * 3000, "b" * 3000)),
        turn(user("c" * 78_400)),
        compacted("short"),
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_history_of_an_older_file_format_matches_codex(scripted: MakeHome, name: str) -> None:
    home, model = scripted()
    path = (
        home.codex_home / "sessions/2026/11/20" / f"rollout-2026-11-20T10-00-00-{thread(1)}.jsonl"
    )
    path.parent.mkdir(parents=True)
    folder = str(home.project)
    head = session("legacy", thread=thread(1), cwd=folder, model_provider="scripted")
    path.write_bytes(rollout(head, *OLD[name]))

    hold(home, model, thread(1))


def test_only_codex_wrote_to_the_home(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Hello.")))
    session_id = home.exec("Hello?")
    (path,) = home.rollouts()
    before = path.read_bytes()

    history(home, session_id)

    assert path.read_bytes() == before
    assert not list(Path(home.codex_home).glob("codex-checkpoints/sessions/*"))
