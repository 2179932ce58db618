"""The history that Codex would send on resume: rules observed in the real program, then laws."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.agents.codex import injected_text
from codex_checkpoints.core.agents.codex.history.items import OTHER, read_item
from codex_checkpoints.core.agents.codex.history.rebuild import KEPT_TOKENS, NO_SUMMARY
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


def sent(*steps: Step, form: Form = "legacy") -> list[str]:
    """Say what Codex would send of a session with these steps."""
    return said(history(rollout(session(form), *steps)))


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
    opening = "Another began with this."
    digest = hashlib.sha256(opening.encode()).hexdigest()
    starts = ((len(opening), b"\n", digest), (0, b"", ""))
    monkeypatch.setattr(injected_text, "_SUMMARY_STARTS", starts)
    return lambda text: f"{opening}\n{text}"


# --- which items, and in which form --------------------------------------------------------------


@BOTH
def test_history_has_the_recorded_items(form: Form):
    seen = [environment(), turn_context(), user("why?"), reasoning(), shell("ls"), assistant("so")]
    done = [user("and?"), patch(add="a.py"), plan(("look", True)), assistant("done")]

    found = history(rollout(session(form), turn(*seen), turn(*done)))

    assert said(found) == [
        *(ENVIRONMENT, "why?", "reasoning:"),
        *("function_call:c1", "function_call_output:c1", "so", "and?"),
        *("custom_tool_call:c2", "custom_tool_call_output:c2"),
        *("function_call:c3", "function_call_output:c3", "done"),
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
def test_item_is_read_as_codex_reads_it(held: object, sent: object):
    assert read_item(held) == (held if sent is ... else sent)


INSTRUCTIONS = {
    **message("be good", role="developer"),
    "internal_chat_message_metadata_passthrough": {
        "content_item_kinds": ["model.base_instructions"]
    },
}


@BOTH
def test_records_outside_the_history_are_left_out(form: Form):
    others = [
        response("of_the_future", a=1),
        response("compaction_trigger"),
        response("ghost_snapshot", ghost_commit={}),
        injected("hidden", role="system"),
        response("message", role="user", content="no list"),
        record("retained_context", {"type": "verified_answer"}),
        record("response_item", INSTRUCTIONS),
    ]

    assert sent(turn(user("a"), *others, assistant("b")), form=form) == ["a", "b"]


def test_older_message_of_an_agent_becomes_an_item():
    told = {"author": "/lead", "recipient": "/lead/a", "content": "go", "trigger_turn": True}
    tellings = (told, told | {"encrypted_content": "E"}, {"content": "nobody's"})
    steps = (record("inter_agent_communication", each) for each in tellings)

    plain, sealed = history(rollout(session("legacy"), *steps)).items

    assert plain == {
        "type": "agent_message",
        "author": "/lead",
        "recipient": "/lead/a",
        "content": [{"type": "input_text", "text": "go"}],
    }
    assert isinstance(sealed["content"], list)
    assert sealed["content"][1] == {"type": "encrypted_content", "encrypted_content": "E"}


# --- pairs ---------------------------------------------------------------------------------------


def test_call_without_output_gets_an_aborted_one():
    action = {"type": "exec", "command": ["ls"]}
    calls = [
        call("f", {}, "c1"),
        custom_call("p", "x", "c2"),
        response("local_shell_call", call_id="c3", status="completed", action=action),
        response("local_shell_call", call_id=None, status="completed", action=action),
        response("tool_search_call", call_id="c4", execution="server", arguments={}),
    ]

    items = history(rollout(session(), turn(*calls))).items

    assert [item["type"] for item in items] == [
        *("function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
        *("local_shell_call", "function_call_output", "local_shell_call"),
        *("tool_search_call", "tool_search_output"),
    ]
    assert items[1] == {"type": "function_call_output", "call_id": "c1", "output": "aborted"}
    found: dict[str, object] = {"status": "completed", "execution": "client", "tools": []}
    assert items[8] == {"type": "tool_search_output", "call_id": "c4", **found}


def test_output_without_its_call_is_dropped_and_odd_order_is_kept():
    found: dict[str, object] = {"status": "completed", "tools": []}
    steps = [
        output("c1", "nobody asked"),
        custom_call("p", "x", "c2"),
        output("c2", "of another kind"),
        response("function_call_output", output="nobody's"),
        response("tool_search_output", call_id="c3", execution="client", **found),
        response("tool_search_output", call_id="c4", execution="server", **found),
        *(output("c5", "early"), call("f", {}, "c5"), output("c5", "again")),
    ]

    assert sent(*steps) == [
        *("custom_tool_call:c2", "custom_tool_call_output:c2"),
        *("function_call_output:", "tool_search_output:c4"),
        *("function_call_output:c5", "function_call:c5", "function_call_output:c5"),
    ]


# --- sizes ---------------------------------------------------------------------------------------


def outputs(*steps: Step) -> list[object]:
    items = history(rollout(session("legacy"), turn(*steps))).items
    return [item["output"] for item in items if "output" in item]


ELSEWHERE = {"delivered_assistant_message": {"message_id": "m"}}


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (output("c1", "a" * 48_000), "a" * 48_000),
        (output("c1", "é" * 24_001), "é" * 12_000 + "…1 tokens truncated…" + "é" * 12_000),
        (limited("c1", "a" * 400, 100), "a" * 400),
        (limited("c1", "a" * 401, 100), "a" * 200 + "…1 tokens truncated…" + "a" * 200),
        (limited("c1", "a" * 10, 0), "…3 tokens truncated…"),
        (limited("c1", "a", -1), "aborted"),  # no limit, so no line
        (limited("c1", "x", None, **ELSEWHERE), "aborted"),
    ],
)
def test_long_output_is_cut_in_the_middle_at_its_own_limit(answer: Step, left: str):
    assert outputs(call("f", {}, "c1"), answer) == [left]


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


# --- compactions ---------------------------------------------------------------------------------


@BOTH
def test_replacement_is_used_unchanged(form: Form):
    long = {"type": "function_call_output", "call_id": "c9", "output": "x" * 60_000}
    asked = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c9"}
    odd = [*kept("a"), long, message("sys", role="system"), {"type": "of_the_future"}, asked]
    gone = turn(user("old"), assistant("gone"))

    items = history(rollout(session(form), gone, compacted("summary", odd), user("new"))).items

    assert items == (*odd[:3], OTHER, asked, message("new"))


WHOLE: dict[str, object] = {"message": "m", "replacement_history": kept("kept")}


COMPACTED: list[tuple[dict[str, object], bool]] = [
    ({}, False),
    ({"message": 5}, False),
    (WHOLE | {"replacement_history": 5}, False),
    (WHOLE | {"replacement_history": [{"type": "message", "role": "user"}]}, False),
    (WHOLE | {"replacement_history": [5]}, False),
    (WHOLE | {"replacement_history_metadata": [{}, {}]}, False),
    (WHOLE | {"window_number": "1"}, False),
    (WHOLE | {"window_id": []}, False),
    (WHOLE | {"first_window_id": 5}, False),
    (WHOLE | {"retained_context": 5}, False),
    ({"message": "m", "replacement_history_metadata": [{}]}, False),
    (WHOLE | {"window_id": 3}, True),
    (WHOLE | {"window_id": "no uuid", "window_number": 1}, True),
    (WHOLE | {"replacement_history_metadata": [{}]}, True),
    (WHOLE | {"replacement_history_metadata": None, "of_the_future": 1}, True),
]


@pytest.mark.parametrize(("payload", "counts"), COMPACTED)
def test_record_that_codex_cannot_read_compacts_nothing(
    payload: Mapping[str, object], *, counts: bool
):
    steps = (turn(user("a")), record("compacted", payload), turn(user("b")))

    assert sent(*steps) == ["kept" if counts else "a", "b"]


@BOTH
def test_without_a_replacement_user_messages_and_the_summary_remain(form: Form):
    before = turn(environment(), user("a"), shell("ls"), assistant("gone"), user("b", images=1))

    found = history(rollout(session(form), before, compacted("summary"), turn(user("c"))))

    assert said(found) == ["a", "b", "summary", "c"]
    assert found.reconstructed
    assert found.baseline is None


def test_summary_is_not_a_prompt_and_a_note_replaces_a_missing_one(
    codex_summary: Callable[[str], str],
):
    one, two = codex_summary("first"), codex_summary("second")
    a, b = turn(user("a")), turn(user("b"))

    assert sent(a, compacted(one), b, compacted(two)) == ["a", "b", two]
    assert sent(a, b, compacted(one), rollback(1)) == ["a"]
    assert sent(a, compacted("")) == ["a", NO_SUMMARY]


def test_newest_user_messages_are_kept_and_long_ones_are_cut():
    newest = "c" * (4 * KEPT_TOKENS - 1600)
    parts = injected("a" * 1000, "b" * 1000)

    assert sent(user("too old"), parts, user(newest), compacted("summary")) == [
        f"{'a' * 800}|…100 tokens truncated…|{'b' * 800}",
        newest,
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
def test_messages_that_codex_takes_for_prompts_survive_a_compaction(text: str, counts: bool):
    left = sent(turn(injected(text)), compacted("summary"))

    assert left == ([text, "summary"] if counts else ["summary"])


# --- rollbacks -----------------------------------------------------------------------------------


PERMISSIONS = injected("<permissions instructions>", role="developer")
CONTEXT = (PERMISSIONS, injected("<turn_aborted>x</turn_aborted>"))
FIRST = turn(turn_context(), user("a"), assistant("1"))


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((FIRST, turn(*CONTEXT, user("b"), assistant("2")), rollback(1), user("c")), "a 1 c"),
        (
            (PERMISSIONS, user("a"), rollback(0), user("b"), rollback(9)),
            "<permissions instructions>",
        ),
        ((FIRST, turn(user("b"), compacted("", kept("short"))), rollback(1), user("c")), "a 1 c"),
    ],
    ids=["with their context", "more than there is", "past a compaction"],
)
def test_rollback_removes_the_newest_turns(steps: tuple[Step, ...], left: str):
    assert " ".join(sent(*steps)) == left


def test_compaction_clears_the_reference_settings_and_rollback_restores_them():
    steps = (
        turn(turn_context(), user("a")),
        turn(user("b"), compacted("", kept("s"))),
        rollback(1),
    )
    baselines = [history(rollout(session("legacy"), *steps[:n])).baseline for n in (1, 2, 3)]

    assert baselines == [3, None, 3]


# --- chains of files -----------------------------------------------------------------------------


def test_fork_begins_with_its_bases_up_to_their_cuts():
    base = rollout(
        session(), turn(user("a")), compacted("", kept("short")), turn(user("b")), turn(user("no"))
    )
    middle = rollout(session(history_base=based_on("base", 10, 0)), turn(user("c")))
    last = rollout(session(history_base=based_on("middle", 15, 0)), turn(user("d")))

    assert said(history(last, (base, 10), (middle, 15))) == ["short", "b", "c", "d"]
    assert said(history(last, (base, 5), (middle, 15))) == ["a", "c", "d"]


def test_head_in_the_middle_of_a_paginated_file_hides_earlier_lines():
    head = record("session_meta", {"id": "other", "history_mode": "paginated"})

    assert sent(turn(user("a")), head, turn(user("b")), form="paginated") == ["b"]
    assert sent(head, turn(user("a")), form="paginated") == ["a"]
    assert sent(turn(user("a")), record("session_meta", {"id": "x"})) == ["a"]


# --- any bytes -----------------------------------------------------------------------------------


def test_oldest_file_format_is_read():
    steps = (raw(b'{"record_type":"state"}\n'), user("a"), shell("ls"), assistant("b"))

    assert sent(*steps, form="bare") == ["a", "function_call:c1", "function_call_output:c1", "b"]


def test_damage_costs_only_its_line():
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
def test_last_line_without_its_newline_counts_if_it_is_complete(form: Form):
    lines = rollout(session(form), turn(user("a")), assistant("b")).splitlines(keepends=True)
    whole = next(i for i in range(len(lines)) if b'"text":"b"' in lines[i])

    assert said(history(b"".join(lines[: whole + 1]).rstrip())) == ["a", "b"]
    assert said(history(b"".join(lines[: whole + 1])[:-3])) == ["a"]


@pytest.mark.parametrize("quoted", ["compacted", "thread_rolled_back"])
def test_text_quoted_in_an_output_is_not_a_record(quoted: str):
    inner = json.dumps({"timestamp": "x", "type": quoted, "payload": {"num_turns": 1}})

    assert len(sent(turn(user("a"), shell("cat", f"{inner}\n{inner}")))) == 3


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
def test_chunks_of_any_size_give_the_same_history(steps: list[Step], form: Form, chunk: int):
    data = rollout(session(form), *steps)

    assert history(data, chunk=chunk) == history(data)


@given(st.lists(STEPS, max_size=30), st.sampled_from(["paginated", "legacy"]))
def test_every_call_has_an_output_and_every_output_a_call(steps: list[Step], form: Form):
    items = history(rollout(session(form), *steps)).items

    calls = {item["call_id"] for item in items if item["type"] == "function_call"}
    assert calls == {item["call_id"] for item in items if item["type"] == "function_call_output"}


@given(st.lists(STEPS, max_size=20), st.lists(STEPS, max_size=10))
def test_lines_before_a_replacement_do_not_change_the_history(
    before: list[Step], after: list[Step]
):
    base = [complete(), started("n"), compacted("", kept("r", "s"))]
    after = [step for step in after if step not in TAKE_BACK]
    whole = rollout(session("legacy"), *before, *base, *after)
    cut = whole.index(b'"turn_id":"n"')
    alone = rollout(session("legacy")) + whole[whole.rindex(b"\n", 0, cut) + 1 :]

    assert history(whole).items == history(alone).items


@given(st.binary(max_size=400))
def test_no_bytes_make_history_fail(data: bytes):
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


def test_memory_depends_on_the_newest_window_alone():
    megabyte = "x" * (1 << 20)
    old = (several(call("f", {}, f"o{each}"), output(f"o{each}", megabyte)) for each in range(16))
    data = rollout(session(), turn(user("a"), *old), compacted("", kept("short")), turn(user("b")))

    tracemalloc.start()
    found = history(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert said(found) == ["short", "b"]
    assert peak < 8 << 20
