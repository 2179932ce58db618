"""The title of a session reads as a person would say it; a picture alone has a name."""

import pytest

import rollouts as r
from codex_checkpoints.core.agents.codex.titles import PICTURE, title_in
from codex_checkpoints.core.checkpoint.requests import request_in
from codex_checkpoints.core.checkpoint.tail_summary import glance
from codex_checkpoints.core.checkpoint.windowed_replay import WindowedReplay
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.timeline import Timeline
from derived_state import read, task

FORMS: list[r.Form] = ["paginated", "legacy"]


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the till", "Fix the till"),
        (
            "[$deploy](/home/ana/skills/deploy/SKILL.md) [@linear](plugin://linear@x) ship it",
            "$deploy @linear ship it",
        ),
        ("[Login bug](chatgpt-conversation://6a60587b) go on there", "Login bug go on there"),
        ("see [src/a.py](file:///home/ana/shop/src/a.py:12)", "see src/a.py"),
        ("read [the page](https://example.org/a)", "read [the page](https://example.org/a)"),
        ("a list[0](x) of calls f(x)[1]", "a list0 of calls f(x)[1]"),
        ("## User Input\n\n```text\nAdd a button\n```\n\nYou **MUST** …", "Add a button"),
        ("## User Input\n\nnone", "## User Input\n\nnone"),
        ("PLEASE IMPLEMENT THIS PLAN:\n# Round once\n\n- change price.py", "Round once"),
        ("Implement this plan:\n", "Implement this plan:\n"),
    ],
)
def test_title_is_the_request_of_the_person(prompt: str, title: str):
    assert title_in(prompt) == title


@pytest.mark.parametrize("form", FORMS)
def test_picture_alone_names_session_and_turn_and_keeps_the_task(form: r.Form):
    alone = r.rollout(r.session(form), r.turn(r.user(images=1), r.assistant("A fox.")))
    state = read(alone).state

    assert state.first_text == PICTURE
    assert [request_in(turn) for turn in state.turns.counting()] == [PICTURE]
    assert task(alone) is None
    found = glance([alone], [alone])
    assert found is not None
    assert (found.first_text, found.task) == (PICTURE, None)


@pytest.mark.parametrize("form", FORMS)
def test_prompt_without_words_or_a_picture_has_no_name(form: r.Form):
    prompt = "# Context from my IDE setup:\n\n## Active file: src/cart.py\n"
    state = read(r.rollout(r.session(form), r.turn(r.user(prompt), r.assistant("And?")))).state

    assert state.first_text is None
    assert [request_in(turn) for turn in state.turns.counting()] == [None]


@pytest.mark.parametrize("form", FORMS)
def test_picture_with_words_is_named_by_them(form: r.Form):
    data = r.rollout(r.session(form), r.turn(r.user("What is this?", images=1)))

    assert read(data).state.first_text == "What is this?"


@pytest.mark.parametrize("form", FORMS)
def test_command_of_the_person_is_not_a_failed_check_of_the_agent(form: r.Form):
    def own(writer: r.Writer) -> None:
        done = {"command": ["/bin/bash", "-lc", "make test"], "cwd": r.FOLDER, "exit_code": 2}
        told = {**done, "source": "user_shell", "status": "failed", "aggregated_output": "boom"}
        if form == "paginated":
            writer.item("CommandExecution", None, id="own", **told)
        else:
            writer.event("exec_command_end", call_id="own", **told)

    data = r.rollout(
        r.session(form), r.turn(r.user("Fix it"), r.shell("make lint", exit_code=1), own)
    )
    replay = WindowedReplay()
    timeline, gathering = Timeline(replay), DigestExtract(replay, r.THREAD)
    replay.feed(data)

    (turn,) = timeline.turns()
    assert turn.checks_failed == 1
    assert [check.command for check in gathering.gathered().checks] == ["make lint"]
    assert "make test" in replay.checkpoint((), {}).artifacts
