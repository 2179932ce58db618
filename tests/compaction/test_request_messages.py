"""Requests that are not user messages (goals, plans, tasks) are whole in a replacement."""

import pytest

import rollouts as r
from homes import Home, go_on, thread

OBJECTIVE = "Move every price to decimals.\n\n- keep the public API\n- all tests stay green"
PLAN = "# Rounding\n\n- round once\n- add tests\n\nNothing else changes."
WORK = r.several(r.shell("make test", "1 passed\n" * 900), r.assistant("I looked at it. " * 200))


def replaced(home: Home, *options: str) -> list[str]:
    """Return the texts of the messages of a replacement, without the handoff."""
    done = home.json("compact", thread(1), *options)
    texts = [item["content"][0]["text"] for item in done["replacement"]]
    assert texts[-1].startswith("[HOW TO USE SESSION_CHECKPOINT v1]")
    return texts[:-1]


def goal_turn(name: str) -> r.Step:
    return r.turn(r.for_goal(), WORK, name=name)


@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.parametrize("into", ["new", "in-place"])
def test_goal_alone_is_whole_in_a_replacement(home: Home, form: r.Form, into: str):
    home.put(r.rollout(r.session(form), r.goal(OBJECTIVE), goal_turn("g1"), goal_turn("g2")))

    assert replaced(home, "--into", into) == [f"Goal of this session (active):\n\n{OBJECTIVE}"]


def test_goal_and_request_keep_their_order(home: Home):
    asked = r.turn(r.user("Look, and change nothing."), WORK)
    home.put(r.rollout(r.session(), asked, r.goal(OBJECTIVE), goal_turn("g1")))
    goal = f"Goal of this session (active):\n\n{OBJECTIVE}"

    assert replaced(home, "--dry-run") == ["Look, and change nothing.", goal]

    paused = r.goal(OBJECTIVE, "paused")
    go_on(home.path(), thread(1), paused, r.turn(r.user("Write the news first."), name="u2"))
    assert replaced(home, "--dry-run") == [
        "Look, and change nothing.",
        goal.replace("active", "paused"),
        "Write the news first.",
    ]


def test_ended_goal_is_kept_only_without_any_other_request(home: Home):
    ended = (r.goal(OBJECTIVE), goal_turn("g1"), r.goal(OBJECTIVE, "complete"))
    home.put(r.rollout(r.session(), *ended))
    assert replaced(home, "--dry-run") == [f"Goal of this session (complete):\n\n{OBJECTIVE}"]

    go_on(home.path(), thread(1), r.turn(r.user("Write the news."), WORK, name="u2"))
    assert replaced(home, "--dry-run") == ["Write the news."]


def test_approved_plan_is_whole_in_a_replacement(home: Home):
    work = r.turn(r.user("Implement the plan."), WORK)
    home.put(r.rollout(r.session(), r.approved_plan(PLAN), work))

    assert replaced(home, "--dry-run") == [f"Approved plan:\n\n{PLAN}", "Implement the plan."]


def test_digest_omits_texts_that_are_whole_in_the_replacement(home: Home):
    proposes = r.assistant(f"Here it is.\n<proposed_plan>\n{PLAN}\n</proposed_plan>\nShall I?")
    planned = r.turn(r.user("Plan the rounding."), proposes)
    work = r.turn(r.user("Implement the plan."), WORK, name="u2")
    ask = r.call("update_goal", {"status": "active"}, "g"), r.output("g", '{"goal": "x_y.z"}')
    home.put(r.rollout(r.session(), planned, r.approved_plan(PLAN), work, r.goal(OBJECTIVE)))
    go_on(home.path(), thread(1), r.turn(r.for_goal(), *ask, WORK, name="g1"))

    digest = home.json("compact", thread(1), "--dry-run")["contents"]["digest"]["text"]

    assert "Here it is.\\n<proposed_plan>…</proposed_plan>\\nShall I?" in digest
    assert "round once" not in digest
    assert "decimals" not in digest
    assert "x_y.z" not in digest
    assert "decimals" in home.json("digest", thread(1))["text"]


def test_approved_plan_keeps_its_place_between_requests(home: Home):
    turns = (r.turn(r.user("Plan the rounding."), WORK, name="u1"), r.approved_plan(PLAN))
    more = r.turn(r.user("Implement the plan."), r.user("And the tests."), WORK, name="u2")
    home.put(r.rollout(r.session(), *turns, more, r.turn(r.user("Thanks."), name="u3")))

    assert replaced(home, "--dry-run") == [
        "Plan the rounding.",
        f"Approved plan:\n\n{PLAN}",
        *("Implement the plan.", "And the tests.", "Thanks."),
    ]


def test_task_of_a_helper_is_whole_in_a_replacement(home: Home):
    letter = r.letter("NEW_TASK", "Count the lines of a.py.\nReport the number.")
    home.put(r.rollout(r.session(), r.turn(letter, WORK)))

    (text,) = replaced(home, "--dry-run")
    assert text.endswith("Count the lines of a.py.\nReport the number.")


def test_second_compaction_does_not_double_a_goal(home: Home):
    home.put(r.rollout(r.session(), r.goal(OBJECTIVE), goal_turn("g1")))
    first = replaced(home, "--into", "in-place")
    go_on(home.path(), thread(1), goal_turn("g2"))

    assert replaced(home, "--into", "in-place") == first


def test_goal_changed_since_the_last_compaction_appears_in_its_new_form(home: Home):
    home.put(r.rollout(r.session(), r.turn(r.user("Look."), WORK), r.goal(OBJECTIVE)))
    go_on(home.path(), thread(1), goal_turn("g1"))
    replaced(home, "--into", "in-place")
    go_on(home.path(), thread(1), r.goal("Write a manual.", "paused"), goal_turn("g2"))

    goal = "Goal of this session (paused):\n\nWrite a manual."
    assert replaced(home, "--into", "in-place") == ["Look.", goal]

    go_on(home.path(), thread(1), r.goal("Write a manual.", "complete"), goal_turn("g3"))
    assert replaced(home, "--into", "in-place") == ["Look."]


def test_compaction_into_a_new_session_says_that_the_goal_stays_behind(home: Home):
    home.put(r.rollout(r.session(), r.goal(OBJECTIVE), goal_turn("g1")))

    lines = home.run("compact", thread(1)).stdout.decode().splitlines()

    assert "! The goal stays with the old session: set it in the new one with /goal." in lines
    (added,) = [line for line in lines if line.startswith("added:")]
    assert added.startswith("added: goal, plan or task in full and a summary, ")


def test_preview_says_that_a_goal_stays_and_counts_its_context_once(home: Home):
    turns = [goal_turn(f"g{number}") for number in range(9)]
    home.put(r.rollout(r.session(), r.goal(OBJECTIVE), *turns))

    new = home.json("compact", thread(1), "--dry-run")
    same = home.json("compact", thread(1), "--into", "in-place", "--dry-run")

    assert [each["code"] for each in new["contents"]["warnings"]] == ["goal_stays"]
    assert [each["code"] for each in same["contents"]["warnings"]] == []
    dropped = [each["tokens"] for each in new["dropped"] if each["kind"] == "context"]
    assert len(dropped) == 9
    assert new["tokensSentAgain"] == dropped[-1]
    assert new["contents"]["messages"][0]["ref"] is None


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--force",)])
def test_replacement_without_any_request_is_refused(home: Home, options: tuple[str, ...]):
    read = r.shell("cat a.py", "x = 1\n" * 900, reads=["a.py"])
    home.put(r.rollout(r.session(), r.turn(read, r.assistant("I read it."))))

    refused = home.refused("compact", thread(1), *options)

    assert (refused["code"], refused["facts"]["reason"]) == ("missing_context", "no_request")
    assert refused["message"].endswith("so a replacement would keep nothing.")


@pytest.mark.parametrize("window", ["0", "3"])
def test_state_pack_has_the_whole_goal_and_plan(home: Home, window: str):
    steps = (r.approved_plan(PLAN), r.turn(r.user("Implement the plan."), WORK), r.goal(OBJECTIVE))
    home.put(r.rollout(r.session(), *steps, goal_turn("g1")))
    marker = home.json("mark", thread(1), "--label", "x")["checkpointId"]
    options = ("--mode", "hard", "--window", window, "--dry-run")

    pack = home.json("restore", thread(1), marker, *options)["pack"]

    for line in (*OBJECTIVE.splitlines(), *PLAN.splitlines()):
        assert line in pack
    assert "The marked turn was answered" in pack


def test_pack_holds_a_goal_once_even_if_turns_request_it_too(home: Home):
    home.put(r.rollout(r.session(), r.turn(r.user("Look."), WORK), r.goal(OBJECTIVE)))
    go_on(home.path(), thread(1), goal_turn("g1"), goal_turn("g2"))
    marker = home.json("mark", thread(1), "--label", "here")["checkpointId"]

    options = ("--mode", "hard", "--window", "3", "--dry-run")
    pack = home.json("restore", thread(1), marker, *options)["pack"]

    _, messages = pack.split("[USER_MESSAGES]\n")
    lines = [line for line in messages.splitlines() if line.startswith("- ")]
    goal = " ".join(OBJECTIVE.split())
    assert len([line for line in lines if goal in " ".join(line.split())]) == 1
    assert lines[0] == "- Look."
    assert lines[-1].startswith("- Goal of this session (active): ")
