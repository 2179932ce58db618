"""The real Codex sends the installed replacement next, and after an undo the earlier history."""

from pathlib import Path
from typing import Any

import pytest

from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import service_over, worked
from codex.requests import sent
from codex.scripted_model import Answer, Request, Usage, say, shell, update_plan
from codex_checkpoints.core.agents.codex.history.item_kinds import kind_of
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction import request as asking
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.details import detail_of
from homes import more, thread
from rollouts import (
    Step,
    assistant,
    environment,
    record,
    rollout,
    session,
    several,
    turn,
    turn_context,
    user,
)

pytestmark = pytest.mark.codex

both = pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])

FULL = 262_000
"""More tokens than the window holds: Codex would compact by itself before the next turn."""

WORK = "I read it all, and this is what I saw. " * 200


def script() -> list[Answer]:
    return [
        Answer(shell("cat README.md", "call_1")),
        Answer(update_plan([("Read it", "completed"), ("Fix it", "pending")], "call_2")),
        Answer(say(WORK)),
        Answer(say(WORK), usage=Usage(input=FULL)),
        *(Answer(say("Going on.")) for _ in range(4)),
    ]


def compacted(home: CodexHome, thread: str, into: Any = "new") -> asking.Compacted:  # noqa: ANN401
    with service_over(home) as sessions:
        return Compacting(sessions, outside({})).compact(
            asking.CompactionRequest(thread, into=into)
        )


def begins_with(request: Request, items: Any) -> bool:  # noqa: ANN401 - items as they are
    """Return whether a request begins with these items, behind the base instructions."""
    return sent(request)[: len(items)] == list(items)


@both
def test_a_new_session_is_listed_resumed_and_sends_exactly_the_replacement(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script())
    thread, path = worked(home, legacy=legacy)
    before = path.read_bytes()

    done = compacted(home, thread)

    made = str(done.session_id)
    with AppServer(home) as server:
        assert set(server.listed()) == {made, thread}
        read = server.read(made)
        assert (read["forkedFromId"], read["preview"]) == (thread, "Fix the login, größer 日本 🙂")
    calls = len(model.turns)
    for prompt in ("Go on.", "And on."):
        home.exec(prompt, resume=made)
        request = model.turns[-1]
        assert begins_with(request, done.replacement)
        assert request.texts("user")[-1] == prompt
        assert not any(WORK[:30] in text for text in request.texts("assistant"))
    assert model.compactions == []
    assert len(model.turns) == calls + 2
    assert path.read_bytes() == before
    with service_over(home) as sessions:
        detail = detail_of(sessions, made)
        assert [turn.task for turn in detail.turns] == ["Go on.", "And on."]
        assert "And on." in sessions.view(made).text
        assert "[ ]" in sessions.view(made).text  # the plan of the source goes on


@both
def test_new_session_keeps_the_model_and_effort_of_its_source(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(Answer(say(WORK)), Answer(say("Going on.")), model_name="gpt-5.2")
    with AppServer(home) as server:
        source = server.start(legacy=legacy)
        server.turn(source, "Fix it.", model="gpt-5.5", effort="high")
    done = compacted(home, source)

    with AppServer(home) as server:
        resumed = server.call("thread/resume", {"threadId": str(done.session_id)})
        server.turn(str(done.session_id), "Go on.")

    assert (resumed["model"], resumed["reasoningEffort"]) == ("gpt-5.5", "high")
    request = model.turns[-1]
    assert (request.body["model"], request.body["reasoning"]) == ("gpt-5.5", {"effort": "high"})
    assert begins_with(request, done.replacement)
    assert any("<environment_context>" in text for text in request.texts("user"))
    assert model.compactions == []


@both
def test_next_request_after_compacting_in_place_is_the_replacement(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script())
    thread, path = worked(home, legacy=legacy)
    before, calls = path.read_bytes(), len(model.turns)

    done = compacted(home, thread, "in-place")
    home.exec("Go on.", resume=thread)

    assert begins_with(model.turns[-1], done.replacement)
    assert model.turns[-1].texts("user")[-1] == "Go on."
    assert (len(model.turns), model.compactions) == (calls + 1, [])
    assert path.read_bytes().startswith(before)


@both
def test_undo_in_place_makes_codex_send_the_earlier_history(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script()[:2], *(Answer(say(WORK)) for _ in range(6)))
    thread, _ = worked(home, legacy=legacy)
    done = compacted(home, thread, "in-place")

    with service_over(home) as sessions:
        Undoing(sessions, outside({})).uncompact(str(done.compaction_id))
    home.exec("Go on.", resume=thread)

    said = model.turns[-1].texts("assistant")
    assert said == [WORK, WORK]
    assert model.compactions == []
    assert not any("[SESSION_CHECKPOINT" in text for text in model.turns[-1].texts("user"))


@both
def test_session_loaded_in_codex_is_compacted_only_into_a_new_session(
    scripted: MakeHome, legacy: bool
) -> None:
    home, _ = scripted(*script())
    with AppServer(home) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, "Fix the login.")
        with pytest.raises(Refusal) as refused:
            compacted(home, thread, "in-place")
        done = compacted(home, thread)
        assert done.session_id in server.listed()
    assert refused.value.code == "session_live"


@both
def test_after_codex_compacts_our_session_only_one_handoff_counts(
    scripted: MakeHome, legacy: bool
) -> None:
    home, _ = scripted(*script(), summaries=("It is about a login.",))
    thread, _ = worked(home, legacy=legacy)
    made = str(compacted(home, thread).session_id)
    home.exec("Go on.", resume=made)
    with AppServer(home) as server:
        server.resume(made)
        server.compact(made)

    again = compacted(home, made)

    kinds = [kind_of(item) for item in again.replacement]
    assert kinds.count("handoff") == 1
    assert kinds[-1] == "handoff"
    assert "summary" not in kinds
    home.exec("And on.", resume=str(again.session_id))


# --- behind a rollback ---------------------------------------------------------------------------


def did(text: str) -> Step:
    return turn(turn_context(), user(text), assistant(WORK))


def taken_back(turns: int) -> Step:
    """Take turns back, also where no other events are told."""
    return record("event_msg", {"type": "thread_rolled_back", "num_turns": turns})


BEGINNING = several(turn(turn_context(), environment(), user("a"), assistant(WORK)), did("b"))
ROLLED_BACK = {
    "at the end": (True, (BEGINNING, did("c"), taken_back(1))),
    "again and again": (True, (BEGINNING, taken_back(1), did("c"), did("d"), taken_back(1))),
    "long ago": (True, (BEGINNING, taken_back(1), did("c"), did("d"))),
    "long ago, without task events": (False, (BEGINNING, taken_back(1), did("c"), did("d"))),
}


def put(home: CodexHome, *steps: Step, events: bool = True) -> Path:
    """Put a session in its place as older versions of Codex wrote it."""
    name = f"rollout-2026-11-20T10-00-00-{thread(1)}.jsonl"
    path = home.codex_home / "sessions/2026/11/20" / name
    path.parent.mkdir(parents=True)
    head = session(
        "legacy",
        thread=thread(1),
        cwd=str(home.project),
        events=events,
        model_provider="scripted",
    )
    path.write_bytes(rollout(head, *steps))
    return path


def history_of(home: CodexHome) -> list[Any]:
    with service_over(home) as sessions:
        return list(Histories(sessions).history(thread(1)).items)


@pytest.mark.parametrize("where", ROLLED_BACK)
def test_replacement_counts_and_can_be_undone_after_any_rollback(
    scripted: MakeHome, where: str
) -> None:
    events, steps = ROLLED_BACK[where]
    home, model = scripted(*(Answer(say("So.")) for _ in range(2)))
    put(home, *steps, events=events)
    before = history_of(home)

    done = compacted(home, thread(1), "in-place")
    home.exec("Go on.", resume=thread(1))

    assert begins_with(model.turns[-1], done.replacement)
    assert model.turns[-1].texts("user")[-1] == "Go on."

    with service_over(home) as sessions:
        Undoing(sessions, outside({})).uncompact(str(done.compaction_id))
    home.exec("And on.", resume=thread(1))

    assert begins_with(model.turns[-1], before)
    said = model.turns[-1].texts("user")
    assert (said.count("Go on."), said[-1]) == (1, "And on.")
    assert model.compactions == []


def test_message_that_was_rolled_back_does_not_prevent_undo(scripted: MakeHome) -> None:
    home, model = scripted(Answer(say("So.")))
    path = put(home, BEGINNING)
    before = history_of(home)
    done = compacted(home, thread(1), "in-place")
    with path.open("ab") as file:
        steps = turn(turn_context(), user("Drop it."), assistant("Done."), name="later")
        file.write(more(steps, taken_back(1), thread=thread(1), ordinal=0, form="legacy"))

    with service_over(home) as sessions:
        Undoing(sessions, outside({})).uncompact(str(done.compaction_id))
    home.exec("And on.", resume=thread(1))

    assert begins_with(model.turns[-1], before)
    assert "Drop it." not in model.turns[-1].texts("user")
    assert model.compactions == []
