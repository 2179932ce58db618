"""What Codex would send on resume: each rule as the real program showed it, then laws."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.history import speakers
from codex_checkpoints.core.history.items import OTHER, read_item
from codex_checkpoints.core.history.rebuild import KEPT_TOKENS, NO_SUMMARY
from histories import history, said
from rollouts import (
    FOLDER,
    Form,
    Step,
    Writer,
    aborted,
    assistant,
    based_on,
    blank,
    call,
    compacted,
    complete,
    crlf,
    custom_call,
    environment,
    event,
    image,
    injected,
    output,
    patch,
    plan,
    raw,
    reasoning,
    record,
    response,
    rollback,
    rollout,
    session,
    several,
    shell,
    started,
    to_line,
    torn,
    turn,
    turn_context,
    user,
)

BOTH = pytest.mark.parametrize("form", ["paginated", "legacy"])
ENVIRONMENT = f"<environment_context>\n  <cwd>{FOLDER}</cwd>\n</environment_context>"
TEXT = {"type": "input_text", "text": "x"}
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"}


def message(text: str, role: str = "user", **more: object) -> dict[str, object]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
        **more,
    }


def kept(*texts: str) -> list[dict[str, object]]:
    return [message(text) for text in texts]


def limited(call_id: str, text: object, limit: object, **beside: object) -> Step:
    """Answer a call, with what Codex keeps beside an item."""

    def write(writer: Writer) -> None:
        payload = {"type": "function_call_output", "call_id": call_id, "output": text}
        line = {"timestamp": "2026-11-20T10:00:00.000Z", "type": "response_item"}
        told = {"fallback_token_limit_override": limit, **beside}
        writer.write(to_line(line | {"payload": payload, "metadata": told}))

    return write


@pytest.fixture
def codex_summary(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write summaries with an opening that is taken for Codex's own, whose words are not ours."""
    opening = "Somebody else began with this."
    digest = hashlib.sha256(opening.encode()).hexdigest()
    monkeypatch.setattr(speakers, "_SUMMARY", (len(opening), digest))
    return lambda text: f"{opening}\n{text}"


# --- which items, and in which form --------------------------------------------------------------


@BOTH
def test_a_session_is_sent_as_it_was_recorded(form: Form):
    data = rollout(
        session(form),
        turn(
            environment(), turn_context(), user("why?"), reasoning(), shell("ls"), assistant("so")
        ),
        turn(user("and?"), patch(add="a.py"), plan(("look", True)), assistant("done")),
    )

    found = history(data)

    assert said(found) == [
        ENVIRONMENT,
        "why?",
        "reasoning:",
        "function_call:c1",
        "function_call_output:c1",
        "so",
        "and?",
        "custom_tool_call:c2",
        "custom_tool_call_output:c2",
        "function_call:c3",
        "function_call_output:c3",
        "done",
    ]
    assert not found.reconstructed


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        (message("x", id="msg_1", metadata={}, zone=1), message("x")),
        (message("x", status="completed", phase="commentary"), ...),
        (message("x", phase=None), message("x")),
        (message("x", phase="thinking"), None),
        (message("x", role="tester"), ...),
        (message("x", id=5), None),
        (message("x", internal_chat_message_metadata_passthrough={"turn_id": 5}), None),
        ({"type": "message", "role": "user", "content": "x"}, None),
        ({"type": "message", "role": "user", "content": []}, ...),
        ({"type": "message", "role": "user", "content": [TEXT, {"type": "weird"}]}, None),
        ({"type": "message", "role": "user", "content": [TEXT, PICTURE]}, ...),
        ({"type": "message", "content": [TEXT]}, None),
        (
            {"type": "reasoning", "summary": [], "encrypted_content": "E"},
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "E"},
        ),
        (
            {"type": "reasoning", "summary": [], "content": [{"type": "text", "text": "t"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": None},
        ),
        ({"type": "reasoning", "encrypted_content": "E"}, None),
        ({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}, ...),
        ({"type": "function_call", "name": "f", "arguments": {}, "call_id": "c"}, None),
        ({"type": "function_call_output", "call_id": "c", "output": [PICTURE]}, ...),
        ({"type": "function_call_output", "call_id": "c", "output": {"content": "o"}}, None),
        (
            {"type": "web_search_call", "action": {"type": "dream", "of": "sheep"}},
            {"type": "web_search_call", "action": {"type": "other"}},
        ),
        (
            {"type": "local_shell_call", "status": "completed", "action": {"type": "exec"}},
            None,
        ),
        (
            {"type": "compaction_summary", "encrypted_content": "E"},
            {"type": "compaction", "encrypted_content": "E"},
        ),
        ({"type": "compaction"}, None),
        ({"type": "context_compaction"}, ...),
        ({"type": "of_the_future", "a": 1}, OTHER),
        ({"a": 1}, None),
        (5, None),
    ],
)
def test_an_item_is_read_as_codex_reads_it(held: object, sent: object):
    assert read_item(held) == (held if sent is ... else sent)


@BOTH
def test_what_is_no_item_of_the_history_is_left_out(form: Form):
    data = rollout(
        session(form),
        turn(
            user("a"),
            response("of_the_future", a=1),
            response("compaction_trigger"),
            response("ghost_snapshot", ghost_commit={}),
            injected("hidden", role="system"),
            response("message", role="user", content="no list"),
            record("retained_context", {"type": "verified_answer"}),
            assistant("b"),
        ),
    )

    assert said(history(data)) == ["a", "b"]


def test_base_instructions_that_stand_in_the_history_are_left_out():
    kinds = {"content_item_kinds": ["model.base_instructions"]}
    instructions = message("be good", role="developer")
    data = rollout(
        session(),
        turn(
            response("additional_tools", role="developer", tools=[]),
            record(
                "response_item",
                {**instructions, "internal_chat_message_metadata_passthrough": kinds},
            ),
            user("a"),
        ),
    )

    assert said(history(data)) == ["additional_tools:", "a"]


def test_an_agents_message_of_the_older_form_becomes_an_item():
    told = {"author": "/lead", "recipient": "/lead/a", "content": "go", "trigger_turn": True}
    data = rollout(
        session("legacy"),
        record("inter_agent_communication", told),
        record("inter_agent_communication", told | {"encrypted_content": "E"}),
        record("inter_agent_communication", {"content": "nobody's"}),
    )

    plain, sealed = history(data).items

    assert plain == {
        "type": "agent_message",
        "author": "/lead",
        "recipient": "/lead/a",
        "content": [{"type": "input_text", "text": "go"}],
    }
    assert isinstance(sealed["content"], list)
    assert sealed["content"][1] == {"type": "encrypted_content", "encrypted_content": "E"}


# --- pairs ---------------------------------------------------------------------------------------


def test_a_call_without_output_gets_one_that_says_aborted():
    action = {"type": "exec", "command": ["ls"]}
    data = rollout(
        session(),
        turn(
            call("f", {}, "c1"),
            custom_call("p", "x", "c2"),
            response("local_shell_call", call_id="c3", status="completed", action=action),
            response("local_shell_call", call_id=None, status="completed", action=action),
            response("tool_search_call", call_id="c4", execution="server", arguments={}),
            assistant("so"),
        ),
    )

    items = history(data).items

    assert [item["type"] for item in items] == [
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "function_call_output",
        "local_shell_call",
        "tool_search_call",
        "tool_search_output",
        "message",
    ]
    assert items[1] == {"type": "function_call_output", "call_id": "c1", "output": "aborted"}
    assert items[8] == {
        "type": "tool_search_output",
        "call_id": "c4",
        "status": "completed",
        "execution": "client",
        "tools": [],
    }


def test_an_output_without_its_call_is_left_out():
    found: dict[str, object] = {"status": "completed", "tools": []}
    data = rollout(
        session(),
        turn(
            output("c1", "nobody asked"),
            custom_call("p", "x", "c2"),
            output("c2", "of another kind"),
            response("function_call_output", output="nobody's"),
            response("tool_search_output", call_id="c3", execution="client", **found),
            response("tool_search_output", call_id="c4", execution="server", **found),
        ),
    )

    assert said(history(data)) == [
        "custom_tool_call:c2",
        "custom_tool_call_output:c2",
        "function_call_output:",
        "tool_search_output:c4",
    ]


def test_pairs_in_an_odd_order_stay_in_it():
    data = rollout(
        session(),
        turn(output("c1", "early"), call("f", {}, "c1"), output("c1", "again")),
    )

    assert [item["type"] for item in history(data).items] == [
        "function_call_output",
        "function_call",
        "function_call_output",
    ]


# --- sizes ---------------------------------------------------------------------------------------


def outputs(*steps: Step) -> list[object]:
    items = history(rollout(session("legacy"), turn(*steps))).items
    return [item["output"] for item in items if "output" in item]


def test_a_long_output_loses_its_middle():
    fits, cut = outputs(
        call("f", {}, "c1"),
        output("c1", "a" * 48_000),
        call("f", {}, "c2"),
        output("c2", "é" * 24_001),
    )

    assert fits == "a" * 48_000
    assert cut == "é" * 12_000 + "…1 tokens truncated…" + "é" * 12_000


def test_the_limit_beside_an_output_counts():
    same, cut, nothing = outputs(
        *(call("f", {}, name) for name in ("c1", "c2", "c3")),
        limited("c1", "a" * 400, 100),
        limited("c2", "a" * 401, 100),
        limited("c3", "a" * 10, 0),
    )

    assert same == "a" * 400
    assert cut == "a" * 200 + "…1 tokens truncated…" + "a" * 200
    assert nothing == "…3 tokens truncated…"


def test_a_limit_that_is_no_number_costs_the_line():
    assert outputs(call("f", {}, "c1"), limited("c1", "a", -1)) == ["aborted"]


def test_parts_share_one_limit_and_images_stay():
    def text(letter: str, size: int) -> dict[str, object]:
        return {"type": "input_text", "text": letter * size}

    parts = [text("a", 301), text("", 0), text("b", 300), PICTURE, text("c", 1), text("d", 1)]
    (cut,) = outputs(call("f", {}, "c1"), limited("c1", parts, 100))

    assert cut == [
        text("a", 301),
        {"type": "input_text", "text": "b" * 48 + "…51 tokens truncated…" + "b" * 48},
        PICTURE,
        {"type": "input_text", "text": "[omitted 2 text items ...]"},
    ]


def test_a_message_that_was_said_elsewhere_is_not_sent():
    data = rollout(
        session("legacy"),
        turn(
            call("f", {}, "c1"),
            limited("c1", "x", None, delivered_assistant_message={"message_id": "m"}),
        ),
    )

    assert said(history(data)) == ["function_call:c1", "function_call_output:c1"]
    assert history(data).items[1]["output"] == "aborted"


# --- compactions ---------------------------------------------------------------------------------


@BOTH
def test_a_replacement_is_taken_as_it_stands(form: Form):
    long = {"type": "function_call_output", "call_id": "c9", "output": "x" * 60_000}
    odd = [*kept("a"), long, message("sys", role="system"), {"type": "of_the_future"}]
    asked = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c9"}
    data = rollout(
        session(form),
        turn(user("old"), assistant("gone")),
        compacted("summary", [*odd, asked]),
        turn(user("new")),
    )

    items = history(data).items

    assert items == (*odd[:3], OTHER, asked, message("new"))


@BOTH
def test_the_last_replacement_counts(form: Form):
    data = rollout(
        session(form),
        turn(user("a")),
        compacted("", kept("first")),
        turn(user("b")),
        compacted("", []),
        turn(user("c")),
    )

    assert said(history(data)) == ["c"]


BROKEN: list[dict[str, object]] = [
    {},
    {"message": 5},
    {"message": "m", "replacement_history": 5},
    {"message": "m", "replacement_history": [{"type": "message", "role": "user"}]},
    {"message": "m", "replacement_history": [5]},
    {"message": "m", "replacement_history": [], "replacement_history_metadata": [{}]},
    {"message": "m", "replacement_history": [], "window_number": "1"},
    {"message": "m", "replacement_history": [], "window_id": []},
    {"message": "m", "replacement_history": [], "first_window_id": 5},
    {"message": "m", "replacement_history": [], "retained_context": 5},
    {"message": "m", "replacement_history_metadata": [{}]},
]


@pytest.mark.parametrize("payload", BROKEN)
def test_a_record_that_codex_cannot_read_compacts_nothing(payload: Mapping[str, object]):
    data = rollout(session(), turn(user("a")), record("compacted", payload), turn(user("b")))

    assert said(history(data)) == ["a", "b"]


UNUSUAL: list[dict[str, object]] = [
    {"window_id": 3},
    {"window_id": "no uuid", "window_number": 1},
    {"replacement_history_metadata": [{}]},
    {"replacement_history_metadata": None, "of_the_future": 1},
]


@pytest.mark.parametrize("more", UNUSUAL)
def test_a_record_may_hold_less_or_more_than_it_does_today(more: Mapping[str, object]):
    payload = {"message": "m", "replacement_history": kept("kept"), **more}
    data = rollout(session(), turn(user("a")), record("compacted", payload))

    assert said(history(data)) == ["kept"]


@BOTH
def test_without_a_replacement_what_people_said_and_the_message_are_left(form: Form):
    data = rollout(
        session(form),
        turn(environment(), user("a"), shell("ls"), assistant("gone"), user("b", images=1)),
        compacted("summary"),
        turn(user("c")),
    )

    found = history(data)

    assert said(found) == ["a", "b", "summary", "c"]
    assert found.reconstructed
    assert found.baseline is None


def test_a_summary_of_an_earlier_compaction_does_not_outlive_the_next(
    codex_summary: Callable[[str], str],
):
    data = rollout(
        session("legacy"),
        turn(user("a")),
        compacted(codex_summary("first")),
        turn(user("b")),
        compacted(codex_summary("second")),
    )

    assert said(history(data)) == ["a", "b", codex_summary("second")]


def test_without_a_summary_a_note_says_so():
    data = rollout(session("legacy"), turn(user("a")), compacted(""))

    assert said(history(data)) == ["a", NO_SUMMARY]


def test_what_people_said_is_kept_from_the_newest_on_and_cut_where_it_is_too_long():
    room = 4 * KEPT_TOKENS
    data = rollout(
        session("legacy"),
        turn(user("too old")),
        turn(injected("a" * 1000, "b" * 1000)),
        turn(user("c" * (room - 1600))),
        compacted("summary"),
    )

    assert said(history(data)) == [
        f"{'a' * 800}|…100 tokens truncated…|{'b' * 800}",
        "c" * (room - 1600),
        "summary",
    ]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("a prompt", True),
        ("", True),
        ("<foo>x</foo>", True),
        ("<user_instructions>x</user_instructions>", True),
        ("<environment_context>x", True),
        (" \n<Environment_Context>x</environment_context>\n", False),
        ("<skills_instructions>x</skills_instructions>", False),
        ("<external_a>x</external_a>", False),
        ("<external_a>x</external_b>", True),
        ("<EXTERNAL_a>x</EXTERNAL_a>", True),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", False),
        ('<codex_internal_context source="goal">x</codex_internal_context>', False),
        ('<codex_internal_context source="Goal">x</codex_internal_context>', True),
        ('<hook_prompt hook_run_id="a" b="c">x</hook_prompt>', False),
        ('<hook_prompt hook_run_id="">x</hook_prompt>', True),
        ("<turn_aborted>" + "x" * 5000 + "</turn_aborted>", False),
        ("[SESSION_CHECKPOINT v1]\nx", True),
    ],
)
def test_what_outlives_a_compaction_is_what_codex_takes_for_a_prompt(text: str, counts: bool):
    data = rollout(session("legacy"), turn(injected(text)), compacted("summary"))

    assert said(history(data)) == ([text, "summary"] if counts else ["summary"])


# --- rollbacks -----------------------------------------------------------------------------------


def test_a_rollback_takes_the_newest_turns_and_their_context():
    data = rollout(
        session("legacy"),
        turn(environment(), user("a"), assistant("1")),
        turn(
            injected("<permissions instructions>x", role="developer"),
            injected("<turn_aborted>x</turn_aborted>"),
            user("b"),
            assistant("2"),
        ),
        rollback(1),
        turn(user("c")),
    )

    assert said(history(data))[1:] == ["a", "1", "c"]


def test_a_rollback_of_more_than_there_is_leaves_what_came_before_the_first_turn():
    data = rollout(
        session("legacy"), turn(environment(), user("a")), rollback(0), turn(user("b")), rollback(9)
    )

    assert said(history(data)) == [ENVIRONMENT]


def test_a_rollback_past_a_compaction_brings_the_history_before_it_back():
    data = rollout(
        session("legacy"),
        turn(turn_context(), user("a"), assistant("1")),
        turn(turn_context(), user("b"), compacted("", kept("short")), assistant("2")),
        rollback(1),
        turn(user("c")),
    )

    assert said(history(data)) == ["a", "1", "c"]


def test_the_settings_to_compare_with_are_cleared_by_a_compaction_and_come_back_with_a_rollback():
    first = turn(turn_context(), user("a"))
    after = rollout(session("legacy"), first, turn(user("b"), compacted("", kept("s"))))
    back = rollout(session("legacy"), first, turn(user("b"), compacted("", kept("s"))), rollback(1))

    assert history(rollout(session("legacy"), first)).baseline == 3
    assert history(after).baseline is None
    assert history(back).baseline == 3


def test_a_summary_made_of_messages_is_no_turn_that_a_rollback_could_take(
    codex_summary: Callable[[str], str],
):
    data = rollout(
        session("legacy"),
        turn(user("a")),
        turn(user("b")),
        compacted(codex_summary("s")),
        rollback(1),
    )

    assert said(history(data)) == ["a"]


# --- chains of files -----------------------------------------------------------------------------


def test_a_fork_begins_with_what_its_base_says_below_the_cut():
    base = rollout(session(), turn(user("a"), assistant("1")), turn(user("not in the fork")))
    at = based_on("base", 7, 0)
    fork = rollout(session(thread="f", history_base=at), turn(user("c")))

    assert said(history(fork, (base, 7))) == ["a", "1", "c"]


def test_a_compaction_in_a_base_counts_for_what_builds_on_it():
    base = rollout(
        session(), turn(user("a")), compacted("", kept("short")), turn(user("b")), turn(user("no"))
    )
    middle = rollout(session(history_base=based_on("base", 10, 0)), turn(user("c")))
    last = rollout(session(history_base=based_on("middle", 15, 0)), turn(user("d")))

    assert said(history(last, (base, 10), (middle, 15))) == ["short", "b", "c", "d"]


def test_a_head_in_the_middle_of_a_paginated_file_hides_what_is_before_it():
    head = {"id": "other", "history_mode": "paginated"}
    data = rollout(session(), turn(user("a")), record("session_meta", head), turn(user("b")))
    copied = rollout(session(), record("session_meta", head), turn(user("a")))
    legacy = rollout(session("legacy"), turn(user("a")), record("session_meta", {"id": "x"}))

    assert said(history(data)) == ["b"]
    assert said(history(copied)) == ["a"]
    assert said(history(legacy)) == ["a"]


# --- any bytes -----------------------------------------------------------------------------------


def test_the_oldest_files_are_read_as_well():
    data = rollout(
        session("bare"),
        raw(b'{"record_type":"state"}\n'),
        user("a"),
        shell("ls"),
        assistant("b"),
    )

    assert said(history(data)) == ["a", "function_call:c1", "function_call_output:c1", "b"]


def test_damage_costs_no_more_than_the_line_it_is_in():
    data = rollout(
        session(),
        blank(),
        turn(user("a"), torn(injected("lost")), user("b")),
        raw(b'{"timestamp":5,"type":"response_item","payload":{"type":"message"}}\n'),
        raw(b'{"type":"response_item","payload":{"type":"message"}}\n'),
        raw(b'{"timestamp":"x","ordinal":"9","type":"response_item","payload":{}}\n'),
        raw(b'["timestamp"]\n{"type":[]}\n\xff\xfe\n'),
        raw(
            b'{"timestamp":"x","type":"response_item","payload":{"type":"message"},"metadata":5}\n'
        ),
        turn(user("c")),
    )

    assert said(history(data)) == ["a", "b", "c"]
    assert history(crlf(data)).items == history(data).items
    assert history(b"\xef\xbb\xbf" + data).items == history(data).items


@BOTH
def test_a_last_line_without_its_end_counts_when_it_is_whole(form: Form):
    data = rollout(session(form), turn(user("a")), assistant("b"))
    lines = data.splitlines(keepends=True)
    whole = next(i for i in range(len(lines)) if b'"text":"b"' in lines[i])

    assert said(history(b"".join(lines[: whole + 1]).rstrip())) == ["a", "b"]
    assert said(history(b"".join(lines[: whole + 1])[:-3])) == ["a"]


def test_other_key_orders_and_spaces_are_read_the_same():
    payload = {"content": [TEXT], "role": "user", "type": "message"}
    line = {"type": "response_item", "payload": payload, "timestamp": "x"}
    data = rollout(session("legacy"), raw(b" " + json.dumps(line, indent=None).encode() + b" \n"))

    assert said(history(data)) == ["x"]


@pytest.mark.parametrize("quoted", ["compacted", "thread_rolled_back"])
def test_what_an_output_quotes_is_no_record(quoted: str):
    inner = json.dumps({"timestamp": "x", "type": quoted, "payload": {"num_turns": 1}})
    data = rollout(session("legacy"), turn(user("a"), shell("cat", f"{inner}\n{inner}")))

    assert len(history(data).items) == 3


TAKE_BACK = [rollback(1), rollback(2)]
STEPS = st.sampled_from(
    [
        user("u"),
        assistant("a"),
        shell("ls", "out"),
        call("f", {}, "lonely"),
        output("orphan", "x"),
        environment(),
        injected("<permissions instructions>", role="developer"),
        image("a.png"),
        reasoning(),
        turn_context(),
        compacted("", kept("r", "s")),
        compacted("old"),
        *TAKE_BACK,
        started(),
        complete(),
        aborted(),
        event("token_count", info=None),
        raw(b"{torn\n"),
        blank(),
        response("agent_message", author="a", recipient="b", content=[TEXT]),
    ]
)


@given(
    st.lists(STEPS, max_size=30),
    st.sampled_from(["paginated", "legacy", "bare"]),
    st.integers(1, 300),
)
def test_portions_of_any_size_give_the_same_history(steps: list[Step], form: Form, chunk: int):
    data = rollout(session(form), *steps)

    assert history(data, chunk=chunk) == history(data)


@given(st.lists(STEPS, max_size=30), st.sampled_from(["paginated", "legacy"]))
def test_every_call_has_an_output_and_every_output_a_call(steps: list[Step], form: Form):
    items = history(rollout(session(form), *steps)).items

    calls = {item["call_id"] for item in items if item["type"] == "function_call"}
    answers = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    assert calls == answers


@given(st.lists(STEPS, max_size=20), st.lists(STEPS, max_size=10))
def test_nothing_before_a_replacement_changes_what_comes_of_it(
    before: list[Step], after: list[Step]
):
    base = [complete(), started("n"), compacted("", kept("r", "s"))]
    after = [step for step in after if step not in TAKE_BACK]
    whole = rollout(session("legacy"), *before, *base, *after)
    cut = whole.index(b'"turn_id":"n"')
    alone = rollout(session("legacy")) + whole[whole.rindex(b"\n", 0, cut) + 1 :]

    assert history(whole).items == history(alone).items


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(data: bytes):
    history(data)
    history(rollout(session()) + data)
    history(data, (rollout(session(), turn(user("a"))), 5))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "content", "output", "role", "call_id", "action", "text"])
                | st.text(max_size=3),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_no_value_makes_an_item_fail(value: object):
    read_item(value)
    history(rollout(session(), record("response_item", value), record("compacted", value)))


def test_memory_is_that_of_the_newest_window():
    megabyte = "x" * (1 << 20)
    old = (several(call("f", {}, f"o{each}"), output(f"o{each}", megabyte)) for each in range(16))
    data = rollout(session(), turn(user("a"), *old), compacted("", kept("short")), turn(user("b")))

    tracemalloc.start()
    found = history(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert said(found) == ["short", "b"]
    assert peak < 8 << 20
