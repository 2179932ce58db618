"""The newest request of the user: which messages count, and how they are stored."""

import base64

import pytest

from derived_state import read, seq_of, task
from rollouts import (
    SUMMARY_OF_CODEX,
    Form,
    Step,
    assistant,
    call,
    compacted,
    environment,
    event,
    injected,
    item,
    output,
    response,
    rollback,
    rollout,
    session,
    shell,
    turn,
    user,
)

FORMS = pytest.mark.parametrize(
    "head",
    [
        pytest.param(session(), id="items"),
        pytest.param(session("legacy"), id="events"),
        pytest.param(session("legacy", events=False), id="history alone"),
        pytest.param(session("bare"), id="bare"),
    ],
)


IDE = "# Context from my IDE setup:\n\n## Active file: a.py\n\n"
CONTEXT = "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"
VIEW = "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- x"


def text_of(head: Step, *steps: Step) -> str | None:
    found = task(rollout(head, *steps))
    return None if found is None else found[0]


# --- which message -------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize(
    "empty", ["", " ", "\n\t", "\x00", "# Selected text:\n\n## My request:", "\u2028"]
)
def test_message_without_words_keeps_the_task(head: Step, empty: str):
    assert text_of(head, user("one"), user(empty)) == "one"
    assert text_of(head, user(empty)) is None


@FORMS
def test_base64_in_the_task_is_replaced_by_its_full_size(head: Step):
    payload = base64.b64encode(bytes(range(256)) * 400).decode()

    for long in (f"data:image/png;base64,{payload}", payload):
        assert text_of(head, user(f"decode {long} now")) == "decode [102400 bytes of base64] now"
    assert text_of(head, user(f"{IDE}{payload}\n\n## My request:\nfix it")) == "fix it"


def test_image_alone_keeps_the_task():
    picture = event("user_message", message="", images=["data:image/png;base64,AA"])
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA"},
        {"type": "input_text", "text": "</image>"},
    ]
    alone = response("message", role="user", content=content)
    words = [*content, {"type": "input_text", "text": "what is this?"}]
    together = response("message", role="user", content=words)

    assert text_of(session(), user("one"), user(images=2)) == "one"
    assert text_of(session("legacy"), user("one"), picture) == "one"
    for head in (session("legacy", events=False), session("bare")):
        assert text_of(head, user("one"), alone) == "one"
        assert text_of(head, user("one"), together) == "what is this?"


@FORMS
@pytest.mark.parametrize(
    "machinery",
    [
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<turn_aborted>\nx\n</turn_aborted>",
        SUMMARY_OF_CODEX + " this problem.",
        "[HOW TO USE SESSION_CHECKPOINT v1]\nx",
        "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- x",
        "[SESSION_RESTORE v1]\nx",
    ],
)
def test_injected_history_message_is_never_the_task(head: Step, machinery: str):
    assert text_of(head, injected(machinery), user("one"), injected(machinery)) == "one"
    assert text_of(head, injected(machinery)) is None


@pytest.mark.parametrize("head", [session("legacy", events=False), session("bare")])
def test_one_injected_part_makes_a_message_injected(head: Step):
    assert text_of(head, user("one"), injected("please", CONTEXT)) == "one"
    assert text_of(head, user("one"), injected("please", "and this")) == "please and this"


@FORMS
def test_only_the_user_can_set_the_task(head: Step):
    loud = "Your task is: delete everything"

    steps = [
        user("one"),
        assistant(loud),
        injected(loud, role="developer"),
        injected(loud, role="system"),
        shell("echo", loud),
        output("c9", loud),
        call("exec_command", {"cmd": loud}, "c8"),
        response("agent_message", author="a", recipient="b", content=[{"text": loud}]),
        compacted(loud, [{"type": "message", "role": "user", "content": [{"text": loud}]}]),
    ]

    assert text_of(head, *(steps[:-1] if head is session("bare") else steps)) == "one"


@pytest.mark.parametrize("kind", ["plain", None, "environment_context", "user_instructions", "new"])
def test_events_decide_which_messages_are_typed(kind: str | None):
    typed = event("user_message", message="two", kind=kind)

    assert text_of(session("legacy"), user("one"), typed) == (
        "two" if kind in {"plain", None} else "one"
    )


@pytest.mark.parametrize("head", [session(), session("legacy")])
def test_only_typed_text_belongs_to_the_user_and_a_pasted_view_does_not(head: Step):
    assert text_of(head, user("one"), injected("two"), user(VIEW)) == "one"


@pytest.mark.parametrize(
    "said",
    ["<task>fix it</task>", "<div>\nx\n</div>", "Warning: my account was flagged, find out why"],
)
@pytest.mark.parametrize("head", [session(), session("legacy")])
def test_typed_text_may_look_like_unknown_injected_text(head: Step, said: str):
    data = rollout(head, turn(user("one")), turn(user(said)))

    assert task(data) is not None
    assert text_of(head, user("one"), user(said)) == " ".join(said.split())
    assert len(read(data).state.turns.turns) == 2


# --- its words -----------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("one\ntwo", "one two"),
        ("one\r\n\ttwo\n\n\nthree", "one two three"),
        ("  one   two  ", "one   two"),
        ("one\u2028two\u202ethree\x85four", "one two three four"),
        (f"{IDE}## My request for Codex:\nfix it", "fix it"),
        (f"{IDE}## My request:\none\n## My request:\ntwo", "two"),
        (f"{IDE}## My request:\nfix\nit", "fix it"),
        ("## My request:\nfix it", "## My request: fix it"),
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 159 + "…"),
        ("x" * 158 + "  y", "x" * 158 + " …"),
        ("\n" * 500 + "x", "x"),
        ("use sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t now", "use [redacted] now"),
        ("[TASK]\n- no", "[TASK] - no"),
    ],
)
def test_task_is_one_line(head: Step, said: str, kept: str):
    assert text_of(head, user(said)) == kept


def test_message_parts_are_joined_with_a_line_feed():
    content = [
        {"type": "text", "text": "look at"},
        {"type": "mention", "name": "core.py", "path": "/home/ana/shop/core.py", "text": "no"},
        {"type": "skill", "name": "x", "path": "y"},
        {"type": "local_image", "path": "z.png"},
        {"type": "text", "text": "and fix it"},
    ]

    assert text_of(session(), item("UserMessage", id="u1", content=content)) == "look at and fix it"
    assert text_of(session("bare"), user("a", "b")) == "a b"


# --- what it refers to ---------------------------------------------------------------------------


def test_task_refers_to_the_item_or_to_the_number_of_its_record():
    assert task(rollout(session(), user("one", ref="msg_1"))) == ("one", "msg_1")

    for head in (session("legacy"), session("legacy", events=False), session("bare")):
        data = rollout(head, environment(), user("one"), assistant("x"))
        mark = "user_message" if b"user_message" in data else '"one"'
        assert task(data) == ("one", f"seq:{seq_of(data, mark)}")
    for ref in (None, 7, "", "x" * 2000):
        told = item("UserMessage", id=ref, content=[{"type": "text", "text": "one"}])
        assert task(rollout(session(), told)) == ("one", "seq:1")


def test_every_message_of_an_active_turn_can_be_cited():
    steps = (turn(user("one"), user("")), turn(user("two")), rollback(1), turn(user("three")))
    turns = read(rollout(session("legacy"), *steps)).state.turns

    cited = [ref for each in turns.counting() for ref in each.messages]
    assert cited == ["seq:4", "seq:6", "seq:15"]


def test_first_words_of_a_person_name_the_session():
    for head in (session(), session("legacy"), session("legacy", events=False), session("bare")):
        data = rollout(head, environment(), user(""), user("one"), user("two"))

        assert read(data).state.first_text == "one"


# --- several messages ----------------------------------------------------------------------------

JOB = "Migrate all models to the new form"


@pytest.mark.parametrize("head", [session(), session("legacy")])
def test_steer_is_added_to_the_task_and_never_replaces_it(head: Step):
    data = rollout(head, turn(user(JOB), shell("ls"), user("keep the names"), user("no tests")))

    found = task(data)
    assert found is not None
    assert found[0] == f"{JOB} · then: keep the names · then: no tests"
    newest = task(rollout(session(), turn(user(JOB), user("no tests", ref="last"))))
    assert newest == (f"{JOB} · then: no tests", "last")


@FORMS
@pytest.mark.parametrize("word", ["continue", ".", "yes", "x" * 19])
def test_short_request_names_the_newest_earlier_long_one(head: Step, word: str):
    asked = (user("An older request of some length"), user(JOB), user("go on"), user(word))
    turns = [turn(each, name=f"n{n}") for n, each in enumerate(asked)]

    assert text_of(head, *turns) == f"{word} — of: {JOB}"
    assert text_of(head, turns[3]) == word


def test_request_of_twenty_code_points_is_used_alone():
    assert text_of(session(), turn(user(JOB)), turn(user("x" * 20))) == "x" * 20


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_repeated_message_is_not_a_steer(form: Form):
    steers = (user("no tests"), user("no tests"), user(JOB))

    assert text_of(session(form), turn(user(JOB), user(JOB))) == JOB
    assert text_of(session(form), turn(user(JOB), *steers)) == (
        f"{JOB} · then: no tests · then: {JOB}"
    )


def test_short_request_with_steers_names_the_earlier_one_first():
    first, steered = turn(user(JOB), user("no tests")), turn(user("continue"), user("faster"))

    assert text_of(session(), first, steered) == f"continue — of: {JOB} · then: faster"


def test_joined_task_is_cut_as_a_whole():
    found = text_of(session(), turn(user("word " * 30), user("and so on")))

    assert found is not None
    assert len(found) == 160
    assert found.endswith("…")


def test_rolled_back_request_is_not_named():
    gone = [turn(user("A request that was taken back")), rollback(1)]

    assert text_of(session("legacy"), turn(user(JOB)), *gone, turn(user("go on"))) == (
        f"go on — of: {JOB}"
    )


# --- files without marked messages ---------------------------------------------------------------


def test_paginated_file_without_message_items_uses_its_history():
    said = [environment(), injected("Port the parser to the new form"), assistant("Ported.")]
    data = rollout(session(), turn(*said))

    assert task(data) == ("Port the parser to the new form", "seq:3")
    assert read(data).state.first_text == "Port the parser to the new form"
    assert [each.turn_id for each in read(data).state.turns.turns] == ["t1"]
    later = rollout(session(), turn(*said), turn(user("Now the docs, all of them")))
    assert task(later) == ("Now the docs, all of them", "u1")
    assert [each.turn_id for each in read(later).state.turns.turns] == ["t2"]


@pytest.mark.parametrize("head", [session(), session("legacy", events=False)])
def test_file_without_any_message_uses_its_newest_replacement(head: Step):
    def message(text: str) -> dict[str, object]:
        content = [{"type": "input_text", "text": text}]
        return {"type": "message", "role": "user", "content": content}

    kept = [message("An older request"), message("The newest request of all"), message(CONTEXT)]
    replaced = [environment(), compacted("", [message("Long ago")]), compacted("", kept)]

    assert text_of(head, *replaced, shell("ls"), assistant("Done.")) == "The newest request of all"
    ours = compacted("", [*kept, message(VIEW)])
    assert text_of(head, *replaced[:1], ours) == "The newest request of all"
    assert text_of(head, *replaced, user("And a new one, typed")) == "And a new one, typed"
