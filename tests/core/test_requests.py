"""What a session was asked without a user message: goals, approved plans, reviews, other agents."""

import pytest

import rollouts as r
from codex_checkpoints.core.agents.codex.parsing import item_of
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.requests import request_in
from codex_checkpoints.core.digest.allocation import DigestTerms
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.core.events import AgentWrote
from codex_checkpoints.core.requests import heading_of, steps_of
from derived_state import checkpoint, plan, read, task

FORMS: list[r.Form] = ["paginated", "legacy"]
BOTH = pytest.mark.parametrize("form", FORMS)
OBJECTIVE = "Move every price to decimals and keep the interface"
REQUEST = "Only look at the files, change nothing."
PLAN = "# Round once\n\nWe round too often.\n\n- change price.py\n- add a test\n"


def turns(data: bytes) -> list[tuple[str, str | None, str]]:
    """Return each turn that counts, with what it was asked and how it ended."""
    state = read(data).state
    ends = dict(state.ends())
    return [(each.turn_id, request_in(each), ends[each.turn_id]) for each in state.turns.counting()]


def text(data: bytes) -> str | None:
    """Return the text of the task."""
    found = task(data)
    return None if found is None else found[0]


def works(name: str, *, trigger: str | None = "goal", context: bool = True) -> r.Step:
    """Let the model work in a task of its own, for the goal."""
    told = [r.for_goal()] if context else []
    done = [r.patch(update="a.py"), r.assistant("More to do.")]
    return r.several(r.started(name, trigger=trigger), *told, *done, r.complete())


# --- goals ---------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("trigger", "context"), [("goal", True), (None, True), ("goal", False), (None, False)]
)
def test_each_task_that_works_for_a_goal_is_a_turn_with_its_objective(
    form: r.Form, trigger: str | None, context: bool
):
    steps = [works(name, trigger=trigger, context=context) for name in ("g1", "g2")]
    data = r.rollout(r.session(form), r.goal(OBJECTIVE), *steps)

    assert turns(data) == [("g1", OBJECTIVE, "answered"), ("g2", OBJECTIVE, "answered")]
    set_at = 1 if form == "paginated" else 2
    assert task(data) == (OBJECTIVE, f"seq:{set_at}")
    assert read(data).state.first_text == OBJECTIVE


@BOTH
def test_a_goal_newer_than_the_last_message_is_the_task_until_it_ends(form: r.Form):
    asked = r.turn(r.user(REQUEST), r.assistant("I looked."))
    begun = [r.session(form), asked, r.goal(OBJECTIVE), works("g1")]

    for status in ("active", "paused", "budgetLimited"):
        assert text(r.rollout(*begun, r.goal(OBJECTIVE, status))) == OBJECTIVE
    assert text(r.rollout(*begun, r.goal(OBJECTIVE, "complete"))) == REQUEST
    assert text(r.rollout(*begun, r.event("thread_goal_cleared"))) == REQUEST


def test_a_message_newer_than_the_goal_is_the_task_until_the_goal_is_pursued_again():
    aside = r.turn(r.user("What time is it in Tokyo?"), r.assistant("Nine."))
    begun = [r.session(), r.goal(OBJECTIVE), works("g1"), aside]

    assert text(r.rollout(*begun)) == "What time is it in Tokyo?"
    report = r.goal(OBJECTIVE)  # the tokens that were used, say
    assert text(r.rollout(*begun, report)) == "What time is it in Tokyo?"
    assert text(r.rollout(*begun, works("g2"))) == OBJECTIVE
    resumed = [r.goal(OBJECTIVE, "paused"), r.goal(OBJECTIVE)]
    assert text(r.rollout(*begun, *resumed)) == OBJECTIVE


@BOTH
def test_a_message_in_a_task_that_works_for_the_goal_steers_it(form: r.Form):
    steps = [r.started("g1"), r.for_goal(), r.shell("ls"), r.user("and mind the tests")]
    data = r.rollout(r.session(form), r.goal(OBJECTIVE), *steps)

    assert turns(data) == [("g1", f"{OBJECTIVE} · then: and mind the tests", "open")]
    assert text(data) == f"{OBJECTIVE} · then: and mind the tests"


def test_the_model_completes_a_goal_by_a_call():
    done = f'{{"goal":{{"objective":"{OBJECTIVE}","status":"complete"}}}}'
    update = [r.call("update_goal", {"status": "complete"}, "c9"), r.output("c9", done)]
    end = r.several(r.started("g1"), r.for_goal(), *update, r.assistant("All done."), r.complete())
    data = r.rollout(r.session(), r.turn(r.user(REQUEST)), r.goal(OBJECTIVE), end)

    goal = read(data).state.turns.goal
    assert goal is not None
    assert (goal.status, goal.text, goal.ref) == ("complete", OBJECTIVE, "seq:5")
    assert text(data) == REQUEST


def test_a_task_that_something_else_triggered_is_not_for_the_goal():
    data = r.rollout(
        r.session(),
        r.turn(r.user(REQUEST)),
        r.goal(OBJECTIVE),
        works("w", trigger="", context=False),
    )

    assert turns(data)[1] == ("w", None, "answered")


@BOTH
def test_manual_compaction_is_not_a_turn_during_a_goal(form: r.Form):
    summed_up = [r.reasoning(), r.assistant("In short."), r.compacted("In short.")]
    data = r.rollout(r.session(form), r.goal(OBJECTIVE), works("g1"), r.turn(*summed_up, name="c"))

    assert turns(data) == [("g1", OBJECTIVE, "answered")]


def test_goal_of_a_forks_source_is_not_its_own():
    copied = [r.goal(OBJECTIVE, thread="another"), works("g1")]
    data = r.rollout(r.session("legacy"), r.turn(r.user(REQUEST)), *copied)

    assert turns(data)[1] == ("g1", OBJECTIVE, "answered")
    assert text(data) == REQUEST


def test_rollback_counts_user_turns_and_removes_the_turns_after_them():
    asked = [r.turn(r.user(name), name=name) for name in ("first", "second")]
    data = r.rollout(r.session("legacy"), r.goal(OBJECTIVE), *asked, works("g1"), r.rollback(1))

    assert [name for name, _, _ in turns(data)] == ["first"]


# --- approved plans ------------------------------------------------------------------------------


@BOTH
def test_plan_handed_over_before_the_first_task_is_plan_request_and_title(form: r.Form):
    begun = [r.session(form), r.approved_plan(PLAN)]
    assert (
        text(r.rollout(*begun)) == "# Round once We round too often. - change price.py - add a test"
    )

    data = r.rollout(*begun, r.turn(r.user("Implement the approved plan."), r.shell("ls")))

    found = read(data)
    assert found.state.first_text == "Round once"
    assert found.state.turns.plan is not None
    assert found.state.turns.plan.text == PLAN
    assert str(text(data)).startswith("Implement the approved plan. — of: # Round once We round")
    assert plan(checkpoint(data)) == [("s1", "change price.py", False), ("s2", "add a test", False)]
    evidence = checkpoint(data).plan.evidence
    assert evidence is not None
    assert evidence.source == "user"


def test_a_task_without_a_message_works_for_the_plan():
    data = r.rollout(r.session(), r.approved_plan(PLAN), r.turn(r.shell("ls"), name="p1"))

    assert turns(data)[0][:2] == (
        "p1",
        "# Round once We round too often. - change price.py - add a test",
    )


@BOTH
def test_user_approves_the_agents_earlier_proposal(form: r.Form):
    proposed = r.turn(r.user("Plan it, please, in detail."), r.proposed_plan(PLAN))
    yes = r.turn(r.user("Implement the plan."), r.patch(add="b.py"))
    no = r.turn(r.user("Forget it, and do the docs instead."), r.patch(add="b.py"))

    data = r.rollout(r.session(form), proposed, yes)
    assert str(text(data)).startswith("Implement the plan. — of: # Round once")
    assert [text for _, text, _ in plan(checkpoint(data))] == ["change price.py", "add a test"]

    data = r.rollout(r.session(form), proposed, no)
    assert text(data) == "Forget it, and do the docs instead."
    assert plan(checkpoint(data)) == []


def test_plan_steps_are_the_items_of_its_outermost_lists():
    text = "Intro\n\n1. one\n   - inner\n2) two\n* [ ] three\n- [x] four\nplain\n"
    assert steps_of(text) == ["one", "two", "three", "four"]
    assert heading_of("first line\n## Later heading\n") == "Later heading"
    assert heading_of("\n only \n") == " only "
    assert heading_of("") == ""


# --- other agents --------------------------------------------------------------------------------

HELPER = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "agent_path": "/lead/x"}}}


def test_message_of_another_agent_opens_a_turn():
    answered = [r.shell("wc -l a.py"), r.assistant("One line.")]
    steps = [r.started("h1"), r.letter("NEW_TASK", "Count the lines of a.py."), *answered]
    data = r.rollout(r.session(source=HELPER), *steps, r.complete())

    assert turns(data) == [("h1", "Count the lines of a.py.", "answered")]
    assert text(data) == "Count the lines of a.py."
    assert read(data).state.first_text == "Count the lines of a.py."


def test_encrypted_task_shows_the_nickname_and_path_of_the_helper():
    steps = [r.started("h1"), r.letter("NEW_TASK", "gAAAA", sealed=True), r.shell("ls")]
    head = r.session(source=HELPER, agent_nickname="Noether")
    data = r.rollout(head, *steps, r.complete())

    assert text(data) == "Noether (/lead/x)"
    assert read(data).state.first_text == "Noether (/lead/x)"


@pytest.mark.parametrize("sealed", [None, "gAAAA"])
def test_older_message_of_an_agent_opens_a_turn(sealed: str | None):
    more = {} if sealed is None else {"encrypted_content": sealed}
    told = {"author": "/lead", "recipient": "/lead/x", "content": "Count the lines of a.py."}
    steps = [r.started("h1"), r.record("inter_agent_communication", told | more), r.shell("ls")]
    found = turns(r.rollout(r.session(agent_path="/lead/x"), *steps, r.assistant("One.")))

    assert found == [("h1", "/lead/x" if sealed else "Count the lines of a.py.", "open")]


def test_result_of_a_helper_is_not_a_request():
    done = r.letter("FINAL_ANSWER", "a.py has one line.", author="/lead/x", recipient="/lead")
    data = r.rollout(r.session(), r.turn(r.user(REQUEST), r.assistant("Started."), done))

    assert turns(data) == [("t1", REQUEST, "answered")]


# --- reviews -------------------------------------------------------------------------------------


def test_subtask_ends_with_its_turn():
    steps = [r.started("child", parent="p1"), r.user("Review the changes."), r.shell("git diff")]
    data = r.rollout(r.session(), r.review("the changes", turn="p1"), *steps)
    assert turns(data) == [("p1", "Review the changes.", "open")]

    own_end = r.complete("child", said="{}")
    assert turns(data + r.rollout(r.session(), own_end).split(b"\n", 1)[1])[0][2] == "open"
    data = r.rollout(
        *(r.session(), r.review("the changes", turn="p1"), *steps),
        *(r.assistant("Found one."), r.complete("p1")),
    )
    assert turns(data) == [("p1", "Review the changes.", "answered")]


def test_task_of_a_subagent_is_its_own_turn():
    steps = [r.started("child", parent="p1"), r.user("Review the changes."), r.assistant("None.")]
    head = r.session(parent_thread_id="p", source={"subagent": "review"})

    assert turns(r.rollout(head, *steps, r.complete())) == [
        ("child", "Review the changes.", "answered")
    ]


def older_review(*reviewer: r.Step) -> r.Step:
    """Write a review as Codex 0.142 does: it names no parent and the prompt twice."""
    hint = "Look for bugs in the cart."
    prompt = r.event("user_message", message=hint, images=[], local_images=[])
    return r.several(
        r.event("entered_review_mode", target={"type": "custom"}, user_facing_hint=hint),
        *(r.started("child"), prompt, prompt, *reviewer),
        r.event("exited_review_mode", review_output={"findings": []}),
        r.assistant("None."),
    )


def test_review_whose_end_alone_is_recorded_is_a_turn():
    asked, thanks = (r.turn(r.user(text), r.assistant("Done.")) for text in (REQUEST, "Thanks."))
    data = r.rollout(r.session("legacy"), asked, older_review(), r.complete("p1"), thanks)

    assert [turn[1:] for turn in turns(data)] == [
        (REQUEST, "answered"),
        ("Look for bugs in the cart.", "answered"),
        ("Thanks.", "answered"),
    ]
    assert [line.split(" ", 3)[1:] for line in lines(data, "REQUESTS")][1] == [
        "t2",
        "#11",
        "Look for bugs in the cart.",
    ]


def test_end_without_a_begin_after_a_review_belongs_to_the_newest_turn():
    reviewer = (r.started("child", parent="p1"), r.user("Review it."), r.complete("p1"))
    later = (r.turn(r.user(REQUEST), name="t2"), r.complete("lost"), r.rollback(1))
    state = read(r.rollout(r.session(), r.review("it", turn="p1"), *reviewer, *later)).state

    assert state.turns.counts("p1")
    assert not state.turns.counts("lost")


def test_review_has_the_name_of_the_task_that_its_first_record_names():
    begun = r.event("entered_review_mode", target={}, user_facing_hint="x", turn_id="p1")
    prompt = r.event("user_message", message="Review it.", images=[], local_images=[])
    steps = [begun, r.started("child"), prompt, r.assistant("None."), r.complete("p1")]
    data = r.rollout(r.session("legacy"), *steps)

    assert turns(data) == [("p1", "Review it.", "answered")]
    assert [line.split(" ", 3)[3] for line in lines(data, "REQUESTS")] == ["Review it."]


def test_reviewer_is_part_of_the_task_that_asked_for_the_review():
    steps = [r.started("p1"), older_review(r.shell("git diff")), r.complete("p1")]
    asked = r.turn(r.user(REQUEST), r.assistant("Done."), name="t2")
    data = r.rollout(r.session("legacy"), *steps, asked)

    assert turns(data) == [
        ("p1", "Look for bugs in the cart.", "answered"),
        ("t2", REQUEST, "answered"),
    ]


def test_interrupted_review_takes_no_later_task():
    begun = r.event("entered_review_mode", target={}, user_facing_hint="the changes")
    asked = r.turn(r.user(REQUEST), r.assistant("Done."), name="t2")
    data = r.rollout(r.session("legacy"), r.started("p1"), begun, r.aborted("p1"), asked)

    assert [turn[::2] for turn in turns(data)] == [("p1", "aborted"), ("t2", "answered")]
    assert lines(data, "REQUESTS")[0].startswith("- t1 #")


def test_review_without_a_message_is_a_turn_and_keeps_the_task():
    steps = [r.started("v1"), r.review("current changes"), r.assistant("Fine."), r.complete()]
    data = r.rollout(r.session("legacy"), r.turn(r.user(REQUEST)), *steps)

    assert turns(data)[1] == ("v1", "Review: current changes", "answered")
    assert text(data) == REQUEST


# --- what a digest quotes of it ------------------------------------------------------------------


def lines(data: bytes, section: str) -> list[str]:
    """Return the lines of a section of the digest."""
    replay = Replay()
    gathering = DigestExtract(replay, r.THREAD)
    replay.close(data[replay.feed(data) :])
    found = digest_v1(gathering.gathered(), DigestTerms(4000))
    return [line.text for line in found.lines if line.section == section]


@BOTH
def test_goal_is_quoted_once_as_a_request_of_its_turn(form: r.Form):
    asked = r.turn(r.user(REQUEST), r.assistant("I looked."))
    steps = [asked, r.goal(OBJECTIVE), works("g1"), r.goal(OBJECTIVE), works("g2")]
    data = r.rollout(r.session(form), *steps, r.goal(OBJECTIVE, "paused"))

    first, second = lines(data, "REQUESTS")
    assert first.endswith(REQUEST)
    assert second.startswith("- t2 #")
    assert second.endswith(OBJECTIVE)
    assert lines(data, "STATUS")[:2] == ["- last turn: answered", "- goal: paused"]
    outcomes = [line.partition(" answered: ") for line in lines(data, "OUTCOMES")]
    assert [(place.split()[1], said) for place, _, said in outcomes] == [
        ("t3", "More to do."),
        ("t2", "More to do."),
        ("t1", "I looked."),
    ]


def test_approved_plan_is_a_request_of_the_next_turn():
    data = r.rollout(r.session(), r.approved_plan(PLAN), r.turn(r.user("Implement the plan.")))

    assert [line.split(" ", 3)[1:3] for line in lines(data, "REQUESTS")] == [
        ["t1", "#1"],
        ["t1", "#4"],
    ]
    assert "- change price.py" in lines(data, "REQUESTS")[0]


def test_result_of_a_helper_belongs_to_the_turn_that_called_it():
    spawned = [
        r.call("spawn_agent", {"task_name": "x", "message": "Count."}, "c1"),
        r.output("c1", '{"task_name":"/lead/x"}'),
    ]
    done = r.letter("FINAL_ANSWER", "a.py has one line.", author="/lead/x", recipient="/lead")
    data = r.rollout(
        r.session(),
        r.turn(r.user("Let a helper count the lines."), *spawned, r.assistant("Started.")),
        r.turn(r.user("What did it find?"), r.assistant("One line."), done),
    )

    helped = [line for line in lines(data, "OUTCOMES") if "subagent: " in line]
    assert [line.split()[1] for line in helped] == ["t1"]
    assert helped[0].endswith("subagent: a.py has one line.")


def test_findings_of_a_review_are_its_outcome():
    finding = {
        "title": "[P1] Cents get lost",
        "body": "Round once.",
        "code_location": {"absolute_file_path": "/x/a.py", "line_range": {"start": 3}},
    }
    steps = [r.started("v1"), r.review("current changes", [finding]), r.shell("ls"), r.complete()]
    data = r.rollout(r.session("legacy"), *steps)

    assert lines(data, "REQUESTS")[0].endswith("Review: current changes")
    assert lines(data, "OUTCOMES")[0].endswith("[P1] Cents get lost (/x/a.py:3)\\nRound once.")


def test_message_replaces_the_request_for_a_review():
    steps = [r.started("c", parent="p1"), r.user("Review the changes."), r.assistant("Fine.")]
    data = r.rollout(r.session(), r.review("the changes", turn="p1"), *steps, r.complete("p1"))

    assert [line.split(" ", 3)[3] for line in lines(data, "REQUESTS")] == ["Review the changes."]


def test_active_requests_are_quoted_whole():
    begun = [r.session(), r.approved_plan(PLAN), r.turn(r.user(REQUEST)), r.goal(OBJECTIVE)]

    found = read(r.rollout(*begun)).state.turns.other_requests()
    assert [(each.kind, each.text, each.status) for each in found] == [
        ("plan", PLAN, None),
        ("goal", OBJECTIVE, "active"),
    ]
    ended = read(r.rollout(*begun, r.goal(OBJECTIVE, "complete"))).state.turns.other_requests()
    assert [each.kind for each in ended] == ["plan"]


@pytest.mark.parametrize(
    ("text", "sealed", "words"),
    [
        ("Message Type: NEW_TASK\nTask name: /lead/a\nSender: /lead\nPayload:", True, None),
        (
            "Message Type: NEW_TASK\nSender: /lead\nPayload:\nCount the words",
            False,
            "Count the words",
        ),
        ("Message Type: FINAL_ANSWER\nSender: /lead/a\nPayload: 17 words.", False, "17 words."),
    ],
)
def test_message_of_an_agent_begins_after_its_head(text: str, sealed: bool, words: str | None):
    parts: list[object] = [{"type": "input_text", "text": text}]
    if sealed:
        parts.append({"type": "encrypted_content", "encrypted_content": "gAAAA"})
    payload = {"type": "agent_message", "author": "/lead", "recipient": "/lead/a", "content": parts}

    item = item_of("response_item", payload, bare=False)

    assert isinstance(item, AgentWrote)
    assert (item.text, item.form) == (words, text.partition("\n")[0].partition(": ")[2])


def test_message_after_a_review_is_another_request():
    steps = [r.started("v1"), r.review("the changes"), r.assistant("Fine."), r.complete()]
    data = r.rollout(r.session("legacy"), *steps, r.turn(r.user("Fix the first finding.")))

    assert [line.split(" ", 3)[3] for line in lines(data, "REQUESTS")] == [
        "Review: the changes",
        "Fix the first finding.",
    ]


def test_goal_handed_to_the_model_is_not_a_tool_output():
    handed = {"name": "goal_objective", "namespace": "agent", "output": OBJECTIVE}
    steps = [r.goal(OBJECTIVE), r.started("g1"), r.response("function_call_output", **handed)]
    data = r.rollout(r.session(), *steps, r.shell("python p1.py", "2 rows"), r.complete())

    assert len(lines(data, "REQUESTS")) == 1
    assert not any(OBJECTIVE in line for line in lines(data, "KEY_LINES"))


def test_encrypted_task_of_a_helper_is_not_quoted():
    sealed = "gAAAAABp" + "Zx9_" * 50
    asked = r.call("spawn_agent", {"task_name": "count", "message": sealed}, "c1")
    data = r.rollout(r.session(), r.turn(r.user(REQUEST), asked, r.assistant("Started.")))

    assert not any("Zx9_" in line for line in lines(data, "KEY_LINES"))
