"""Sessions as people make them today, made by the real Codex (NOW-1 to NOW-5, NOW-10 to NOW-12).

Each kind of session is read, compacted both ways and restored both ways; the real Codex resumes
what comes out, and its next request holds what was asked.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from attrs import frozen

from codex.codex_cli import CODE_MODE_MODEL, MODEL, OLDER_LAUNCHER, AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, Json, Request, ScriptedModel, call, say, shell, text_of

pytestmark = pytest.mark.codex

GOAL = "Make div return a float and test it"
ASK = "Do not change anything, only look"
RENAME = "Rename the parser"
KEEP = "and do not touch the tests"
REVIEW = "Look for bugs in calc."
HELP = "Let a helper count the lines"
PLANNED = "# Divide truly\n\n- Change div in calc/core.py\n- Add a test\n"
PLAN = f"<proposed_plan>\n{PLANNED}</proposed_plan>\n"
FINDING: dict[str, Json] = {
    "title": "[P1] div floors",
    "body": "It returns an integer.",
    "confidence_score": 0.9,
    "priority": 1,
    "code_location": {
        "absolute_file_path": "/project/calc/core.py",
        "line_range": {"start": 5, "end": 6},
    },
}
FINDINGS = json.dumps(
    {
        "findings": [FINDING],
        "overall_correctness": "patch is incorrect",
        "overall_explanation": "It floors.",
        "overall_confidence_score": 0.9,
    }
)

LOOK = shell("cat README.md", "call_look")
STATUS = {"answered": "completed", "failed": "failed", "aborted": "interrupted"}
"""By the outcome of a turn: its status in Codex.  An open one is interrupted when it is read."""


@frozen
class Kind:
    """A kind of session.

    `asked`: texts that the task holds, and each request after a compaction or a restore.
    `outcomes` are those of its turns; `reason` is part of the reason of the last one.
    """

    answers: tuple[Answer, ...]
    make: Callable[[CodexHome, ScriptedModel], str]
    asked: tuple[str, ...]
    outcomes: tuple[str, ...]
    reason: str | None = None
    model_name: str = MODEL
    summaries: tuple[str, ...] = ()
    """Answers for Codex, which compacts a full window by itself when it is resumed."""


def goal_alone(home: CodexHome, _: ScriptedModel) -> str:
    with AppServer(home) as server:
        thread, since = server.start(), server.count()
        server.set_goal(thread, GOAL)
        server.wait_for_turn_end(thread, since)
    return thread


def goal_after_a_request(home: CodexHome, _: ScriptedModel) -> str:
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, ASK)
        since = server.count()
        server.set_goal(thread, GOAL)
        server.wait_for_turn_end(thread, since)
    return thread


def goal_paused(home: CodexHome, model: ScriptedModel) -> str:
    (held,) = (each for each in model.script if not each.is_released)
    with AppServer(home) as server:
        thread, since = server.start(), server.count()
        server.set_goal(thread, GOAL)
        held.wait_until_asked()
        server.pause_goal(thread)
        held.release()
        server.wait_for_turn_end(thread, since)
    return thread


def goal_killed(home: CodexHome, model: ScriptedModel) -> str:
    (held,) = (each for each in model.script if not each.is_released)
    server = AppServer(home)
    thread = server.start()
    server.set_goal(thread, GOAL)
    held.wait_until_asked()
    server.kill()
    return thread


def reviewed(home: CodexHome, _: ScriptedModel) -> str:
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, ASK)
        server.review(thread, REVIEW)
    return thread


def planned(home: CodexHome, _: ScriptedModel) -> str:
    def mode(name: str) -> Json:
        settings: Json = {"model": MODEL, "reasoning_effort": None, "developer_instructions": None}
        return {"mode": name, "settings": settings}

    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "Plan how div returns a float", collaborationMode=mode("plan"))
        server.turn(thread, "Implement the plan.", collaborationMode=mode("default"))
    return thread


def helped(home: CodexHome, _: ScriptedModel) -> str:
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, HELP)
        for _each in range(100):
            if any("subagent-completed" in json.dumps(each) for each in server.turns(thread)):
                break
            time.sleep(0.1)
        server.turn(thread, "What did it find?")
    return thread


def steered(home: CodexHome, model: ScriptedModel) -> str:
    (held,) = (each for each in model.script if not each.is_released)
    with AppServer(home) as server:
        thread, since = server.start(), server.count()
        turn = server.begin(thread, RENAME)
        held.wait_until_asked()
        server.steer(thread, turn, KEEP)
        held.release()
        server.wait_for_turn_end(thread, since)
    return thread


def in_another_folder(home: CodexHome, _: ScriptedModel) -> str:
    other = home.root / "other"
    other.mkdir()
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, ASK)
    with AppServer(home) as server:
        server.resume(thread, other)
        server.turn(thread, RENAME)
    return thread


def asked_twice(home: CodexHome, _: ScriptedModel) -> str:
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, ASK)
        server.turn(thread, RENAME)
    return thread


def failing(status: int, message: str, reason: str) -> Kind:
    """Return the kind of a session whose last turn meets an error after a call."""
    error = Answer(error=(status, {"message": message}))
    answers = (Answer(say("Seen.")), Answer(LOOK), error)
    return Kind(answers, asked_twice, (RENAME,), ("answered", "failed"), reason)


FULL: dict[str, Json] = {
    "message": "Your input exceeds the context window of this model.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
}


REACHED = call("update_goal", {"status": "complete"}, "call_done")
SPAWN = call(
    "spawn_agent",
    {"task_name": "count_lines", "message": "Count the lines of README.md.", "fork_turns": "none"},
    "call_spawn",
    namespace="collaboration",
)
KINDS = {
    "a goal alone, reached": Kind(
        (Answer(LOOK), Answer(REACHED), Answer(say("Reached."))), goal_alone, (GOAL,), ("answered",)
    ),
    "a goal after a request": Kind(
        (Answer(say("Seen.")), Answer(REACHED), Answer(say("Reached."))),
        goal_after_a_request,
        (),
        ("answered", "answered"),
    ),
    "a paused goal": Kind(
        (Answer(LOOK, held=True), Answer(say("So far."))), goal_paused, (GOAL,), ("answered",)
    ),
    "a goal in work, killed": Kind(
        (Answer(LOOK), Answer(say("So far."), held=True)), goal_killed, (GOAL,), ("open",)
    ),
    "a review": Kind(
        (Answer(say("Seen.")), Answer(LOOK), Answer(say(FINDINGS))),
        reviewed,
        (REVIEW,),
        ("answered", "answered"),
    ),
    "an approved plan": Kind(
        (Answer(say(PLAN)), Answer(say("Done as planned."))),
        planned,
        ("Implement the plan.", "Change div in calc/core.py"),
        ("answered", "answered"),
    ),
    "a helper": Kind(
        (
            Answer(SPAWN),
            Answer(say("It works.")),
            Answer(say("README.md has three lines.")),
            Answer(say("Three lines.")),
        ),
        helped,
        ("What did it find?",),
        ("answered", "answered"),
        model_name=CODE_MODE_MODEL,
    ),
    "a steer": Kind(
        (Answer(LOOK, held=True), Answer(say("Renamed."))),
        steered,
        (RENAME, KEEP),
        ("answered",),
    ),
    "another folder": Kind(
        (Answer(say("Seen.")), Answer(say("Renamed."))),
        in_another_folder,
        (RENAME,),
        ("answered", "answered"),
    ),
    "a bad request": failing(400, "The tool list is invalid.", "The tool list is invalid."),
    "a limit": failing(429, "Slow down.", "429"),
    "a busy service": failing(503, "Overloaded.", "503"),
    "a full window": Kind(
        (Answer(say("Seen.")), Answer(LOOK), Answer(error=(400, FULL))),
        asked_twice,
        (RENAME,),
        ("answered", "failed"),
        "ran out of room in the model's context window",
        summaries=("The parser has its old name.",) * 2,
    ),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_session_keeps_its_turns_and_its_request(scripted: MakeHome, kind: Kind) -> None:
    home, model = scripted(*kind.answers, summaries=kind.summaries, model_name=kind.model_name)
    thread = kind.make(home, model)

    turns = json.loads(run(home, "timeline", thread, "--json"))["turns"]
    checkpoint = json.loads(run(home, "show", thread, "--json"))
    with AppServer(home) as server:
        of_codex = [(each["id"], each["status"]) for each in own_turns(server.turns(thread))]

    assert model.unscripted == []
    assert tuple(each["outcome"] for each in turns) == kind.outcomes
    assert [(each["turnId"], STATUS.get(each["outcome"], "interrupted")) for each in turns] == (
        of_codex
    )
    assert (kind.reason or "") in (turns[-1]["reason"] or "")
    assert [text for text in kind.asked if text not in checkpoint["task"]["text"]] == []

    sent = {
        way: list(map(said, request.input))
        for way, request in continued(home, model, thread, can_mark=kind.outcomes != ("open",))
    }
    softly = sent.pop("soft", sent["source"])
    assert softly == sent.pop("source"), "a soft branch sends what Codex would send of the source"
    for way, items in sent.items():
        assert [text for text in kind.asked if text not in "\n".join(items)] == [], way


KILLING: tuple[tuple[int, dict[str, Json]], ...] = (
    (400, {"message": "The tool list is invalid."}),
    (429, {"message": "Slow down."}),
    (429, {"message": "The usage limit has been reached.", "type": "usage_limit_reached"}),
    (503, {"message": "Overloaded."}),
    (400, FULL),
)


def test_turn_without_a_recorded_error_in_older_codex_counts_as_failed(scripted: MakeHome) -> None:
    """Codex lists such turns as completed; nothing in the file but the missing answer says more."""
    killed = [
        answer
        for place, error in enumerate(KILLING)
        for answer in (Answer(shell("cat README.md", f"call_{place}")), Answer(error=error))
    ]
    home, model = scripted(Answer(say("Seen.")), *killed)
    with AppServer(home, OLDER_LAUNCHER) as older:
        thread = older.start()
        for prompt in (ASK, *[RENAME] * len(KILLING)):
            older.turn(thread, prompt)
        of_older = [(each["id"], each["status"]) for each in older.turns(thread)]

    turns = json.loads(run(home, "timeline", thread, "--json"))["turns"]
    (row,) = json.loads(run(home, "sessions", "--json"))
    digest = json.loads(run(home, "digest", thread, "--json"))
    (status,) = (each["text"] for each in digest["lines"] if each["section"] == "STATUS")
    with AppServer(home) as newest:
        of_newest = [(each["id"], each["status"]) for each in newest.turns(thread)]

    assert model.unscripted == []
    assert row["cliVersion"] == "0.142.5"
    assert [each["outcome"] for each in turns] == ["answered", *["failed"] * len(KILLING)]
    assert "failed" in status
    assert {each["reason"] for each in turns[1:]} == {"no answer, and Codex recorded no reason"}
    assert of_older == of_newest == [(each["turnId"], "completed") for each in turns]

    for way, request in continued(home, model, thread, can_mark=True):
        assert RENAME in "\n".join(map(said, request.input)), way


def test_a_review_by_an_older_codex_ends_with_its_turn(scripted: MakeHome) -> None:
    """Its file begins the task of the reviewer alone, and ends that of the review alone."""
    answers = (say("Seen."), say(FINDINGS), say("It rounds now."))
    home, model = scripted(*map(Answer, answers))
    with AppServer(home, OLDER_LAUNCHER) as older:
        thread = older.start()
        older.turn(thread, ASK)
        older.review(thread, REVIEW)
        marker = json.loads(run(home, "mark", thread, "--label", "reviewed", "--json"))
        older.turn(thread, RENAME)

    details = json.loads(run(home, "timeline", thread, "--json"))["turns"]
    requests = json.loads(run(home, "digest", thread, "--json"))["lines"]

    assert model.unscripted == []
    assert [each["outcome"] for each in details] == ["answered"] * 3
    assert marker["turnId"] == details[1]["turnId"]
    assert [
        (each["turn"], each["text"].split(" ", 3)[3])
        for each in requests
        if each["section"] == "REQUESTS"
    ] == [(1, ASK), (2, REVIEW), (3, RENAME)]


def said(item: Mapping[str, Json]) -> str:
    """Return the text of an item, or the arguments or output of a call."""
    return text_of(item) or str(item.get("arguments") or item.get("input") or item.get("output"))


def own_turns(turns: list[Any]) -> list[Any]:
    """Return the turns of Codex without those of the reviewer, which are part of the review.

    Codex leaves such a turn open in its list, and puts it before the review itself.
    """
    reviews = [
        each for each in turns if any(i["type"] == "enteredReviewMode" for i in each["items"])
    ]
    children = [turns[turns.index(each) - 1] for each in reviews]
    return [each for each in turns if each not in children]


def continued(
    home: CodexHome, model: ScriptedModel, thread: str, *, can_mark: bool
) -> Iterator[tuple[str, Request]]:
    """Yield the requests of a new prompt: in the source, and after each way to carry it on."""
    # Nothing else holds the session, so also an open turn was cut off.
    branches = {"new": ("compact", thread, "--into", "new", "--force")}
    if can_mark:
        marker = json.loads(run(home, "mark", thread, "--label", "here", "--json"))["checkpointId"]
        branches |= {way: ("restore", thread, marker, "--mode", way) for way in ("soft", "hard")}
    branches |= {"source": (), "in place": ("compact", thread, "--into", "in-place")}
    for way, words in branches.items():
        session = json.loads(run(home, *words, "--json"))["sessionId"] if words else thread
        model.add(Answer(say("Going on.")))
        home.exec("Go on.", resume=session)
        yield way, model.turns[-1]
