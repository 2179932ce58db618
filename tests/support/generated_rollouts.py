"""Strategies for rollouts: whole sessions, damage, other spellings."""

import json
import re
from collections.abc import Callable
from typing import Any, cast

from hypothesis import strategies as st

import rollouts as r

PATHS = [
    "a.py",
    "b.py",
    "d/c.py",
    "./d/../a.py",
    "../out.py",
    "/abs/x.py",
    "ü ñ.py",
    "new\nline.py",
]
SCRIPTS = [
    *("ls", "cat a.py", "cat a.py b.py", "head -n 5 d/c.py | wc", "cd d && cat c.py && make"),
    *(
        "sed -n 1,5p b.py",
        "rg x",
        "echo '",
        "apply_patch <<'E'\n" + r.patch_text(add="h.py") + "\nE",
    ),
]
TEXTS = st.one_of(
    st.text("ab é日🦜\n\t\x00\u2028[]`#<>_", max_size=20),
    st.sampled_from(
        [
            "",
            "fix the login",
            "# Selected text:\n\n## My request:\nfix it",
            "<environment_context>\n  <cwd>/other</cwd>\n</environment_context>",
            "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- no",
            r.SUMMARY_OF_CODEX + " this problem.",
            "<image name=[Image #1]>",
            "password=hunter2hunter2",
            "y" * 161,
        ]
    ),
)
SHORT = st.one_of(
    st.sampled_from(["", "ok", '{"output":"Success. Updated","metadata":{"exit_code":0}}', "}"]),
    TEXTS,
)
OUTPUTS = SHORT | st.just("x" * 70_000)
NAMES = st.sampled_from(["t1", "t2", "t3", None])
CALLS = st.sampled_from([None, None, None, "c1", "c2", "x"])
"""Numbers of calls: mostly the next one, sometimes one that was there already."""
NEW_CALLS: st.SearchStrategy[str | None] = st.none()
"""Numbers of calls as Codex gives them: always the next one, so never one twice."""

PLANS = st.lists(st.tuples(TEXTS, st.booleans()), max_size=3)


def done(
    names: st.SearchStrategy[str | None],
    outputs: st.SearchStrategy[str] = OUTPUTS,
    calls: st.SearchStrategy[str | None] = CALLS,
) -> st.SearchStrategy[r.Step]:
    """Do something, in a turn of one of these names."""
    return st.one_of(
        st.builds(
            r.shell,
            st.sampled_from(SCRIPTS),
            outputs,
            reads=st.lists(st.sampled_from(PATHS), max_size=2),
            workdir=st.sampled_from([None, "/home/ana/shop/d", "d"]),
            status=st.sampled_from(["completed", "completed", "failed", "declined"]),
            call=calls,
            turn=names,
        ),
        st.builds(
            r.patch,
            add=st.sampled_from([None, *PATHS]),
            update=st.sampled_from([None, *PATHS]),
            delete=st.sampled_from([None, *PATHS]),
            move=st.sampled_from([None, ("a.py", "moved.py")]),
            done=st.booleans(),
            call=calls,
        ),
        PLANS.map(lambda steps: r.plan(*steps)),
        st.builds(
            r.mcp,
            st.sampled_from(["docs", "memory"]),
            st.sampled_from(["find", "memory.apply"]),
            outputs,
        ),
        st.builds(r.image, st.sampled_from(PATHS)),
        st.builds(
            r.call,
            st.sampled_from(["exec_command", "update_plan", "mcp__a__b", "wait"]),
            st.just({"cmd": "cat a.py"}),
            calls.map(lambda name: name or "y"),
        ),
        st.builds(r.output, calls.map(lambda name: name or "y"), outputs),
        st.builds(
            r.custom_call,
            st.just("exec"),
            st.sampled_from(
                [
                    "await tools.exec_command({cmd: 'cat a.py'})",
                    "await tools.update_plan({plan: [{step: 'x', status: 'completed'}]})",
                    "tools.exec_command(x)",
                ]
            ),
            calls.map(lambda name: name or "z"),
        ),
    )


def said(
    names: st.SearchStrategy[str | None], outputs: st.SearchStrategy[str] = OUTPUTS
) -> st.SearchStrategy[r.Step]:
    """Say something, in a turn of one of these names."""
    return st.one_of(
        st.builds(r.user, TEXTS, turn=names, images=st.integers(0, 1)),
        st.builds(r.injected, TEXTS, role=st.sampled_from(["user", "developer", "assistant"])),
        st.builds(r.assistant, TEXTS),
        st.builds(r.reasoning, outputs),
    )


FRAMED: st.SearchStrategy[r.Step] = st.one_of(
    st.builds(r.started),
    st.builds(r.complete, NAMES),
    st.builds(r.aborted, NAMES),
    st.builds(r.turn_context, st.sampled_from([None, "/home/ana/shop/d", "/elsewhere"]), TEXTS),
    st.builds(r.environment, st.sampled_from([r.FOLDER, "/other"])),
    st.builds(r.tokens, st.integers(0, 10**6), window=st.sampled_from([0, 1000, r.WINDOW])),
    st.just(r.event("token_count", info=None, rate_limits=None)),
    st.just(r.event("token_count", info={"last_token_usage": None}, rate_limits=None)),
    st.just(r.event("thread_settings_applied", thread_settings={"model": "another"})),
    st.builds(r.rollback, st.integers(0, 3)),
    st.builds(r.compacted, TEXTS),
    st.just(r.record("from_the_future", {"type": "user_message", "message": "no"})),
    st.just(r.event("thread_name_updated", thread_name="Ana's shop")),
    st.builds(r.item, st.sampled_from(["Reasoning", "Plan", "Hologram"]), id=st.just("i")),
)
ASKED: st.SearchStrategy[r.Step] = st.one_of(
    st.builds(r.started, parent=NAMES, trigger=st.sampled_from([None, "", "goal"])),
    st.builds(
        r.goal,
        st.sampled_from(["Mend all of the shop", "Fix it"]),
        st.sampled_from(["active", "active", "paused", "complete"]),
        st.sampled_from([None, "another"]),
    ),
    st.just(r.for_goal()),
    st.just(r.event("thread_goal_cleared")),
    st.just(r.call("update_goal", {"status": "complete"}, "g")),
    st.just(r.output("g", '{"goal":{"objective":"Fix it","status":"complete"}}')),
    st.builds(r.proposed_plan, TEXTS),
    st.builds(r.approved_plan, TEXTS),
    st.builds(r.letter, st.sampled_from(["NEW_TASK", "FINAL_ANSWER"]), TEXTS, sealed=st.booleans()),
    st.builds(r.review, TEXTS, turn=NAMES),
    st.just(r.user("Implement the plan.")),
    st.just(r.event("error", message="no", codex_error_info="usage_limit_exceeded")),
    st.builds(r.complete, NAMES, said=TEXTS, error=st.sampled_from([None, {"message": "no"}])),
)
"""What is asked without a message of a user, and how turns end."""
JUNK = st.sampled_from(
    [
        r.blank(),
        r.blank(b" \t"),
        r.raw(b"not json\n"),
        r.raw(b"[1,2]\n"),
        r.raw(
            b'{"type":"message","role":"user","content":[{"type":"input_text","text":"bare"}]}\n'
        ),
        r.raw(b"\x00\x00\x00\n"),
    ]
)


def steps(calls: st.SearchStrategy[str | None]) -> st.SearchStrategy[list[r.Step]]:
    """Let a session go on, with calls that have these numbers."""
    # Of a line longer than a chunk only the ends are looked at, unless somebody needs it.
    torn = st.builds(
        r.torn, st.one_of(said(NAMES, SHORT), done(NAMES, SHORT, calls)), st.integers(0, 30)
    )
    act = done(NAMES, calls=calls)
    return st.lists(
        st.one_of(said(NAMES), act, act, FRAMED, FRAMED, ASKED, st.one_of(JUNK, torn)), max_size=14
    )


@st.composite
def sessions(draw: st.DrawFn, calls: st.SearchStrategy[str | None] = CALLS) -> bytes:
    """Write a session in any form."""
    head = draw(
        st.sampled_from(
            [
                r.session("paginated"),
                r.session("paginated"),
                r.session("paginated", subagent_history_start_ordinal=6),
                r.session("legacy"),
                r.session("legacy"),
                r.session("legacy", events=False),
                r.session("legacy", cwd=None),
                r.session("bare"),
                r.session(cwd="C:\\Users\\ana\\shop"),
                r.several(r.session(), r.compacted("[SESSION_CHECKPOINT v1]\n", [])),
            ]
        )
    )
    data = r.rollout(head, *draw(steps(calls)))
    return Shown(data[:-1] if draw(st.integers(0, 9)) == 0 else data)


class Shown(bytes):
    """Bytes that are shown without their long runs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return re.sub(r"(.)\1{99,}", lambda run: f"{run[1]}…×{len(run[0])}…", repr(bytes(self)))


# --- damage --------------------------------------------------------------------------------------

Damage = Callable[[bytes, int], bytes]

_JUDGED_WHOLE = 60_000

ORDINALS = [b"-1", b"1.0", b'"3"', b"null", b"true", b"99999999999999999999", b"007", b"1e2"]


def _cut_off(line: bytes, at: int) -> bytes:
    return line[: max(0, len(line) - 1 - at % 25)]


def _cut_out(line: bytes, at: int) -> bytes:
    place = at % (len(line) + 1)
    return line[:place] + line[place + 3 :]


def _not_utf8(line: bytes, at: int) -> bytes:
    place = at % (len(line) + 1)
    return line[:place] + b"\xff\xc3" + line[place:]


def _nul(line: bytes, at: int) -> bytes:
    place = at % (len(line) + 1)
    return line[:place] + b"\x00" + line[place:]


def _surrogate(line: bytes, at: int) -> bytes:
    return line.replace(b'"text":"', (b'"text":"\\ud83d', b'"text":"\\udE00\\ud83d')[at % 2], 1)


def _strange_ordinal(line: bytes, at: int) -> bytes:
    return re.sub(rb'"ordinal":\d+', b'"ordinal":' + ORDINALS[at % len(ORDINALS)], line, count=1)


def _repeated(line: bytes, at: int) -> bytes:
    return b"\n".join([line] * (2 + at % 2))


def _without_payload(line: bytes, at: int) -> bytes:
    return re.sub(rb'"payload":.*', (b'"payload":7}', b'"payload":[]}')[at % 2], line)


DAMAGES: list[Damage] = [
    *(_cut_off, _cut_out, _not_utf8, _nul, _surrogate),
    *(_strange_ordinal, _repeated, _without_payload),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Damage one line of a session, and perhaps its end.

    Of a line longer than a chunk only the ends are looked at, unless somebody needs it: damage
    inside it may stay unseen.
    """
    lines = draw(sessions(NEW_CALLS)).split(b"\n")
    place = draw(st.sampled_from([n for n, line in enumerate(lines) if len(line) < _JUDGED_WHOLE]))
    damage = draw(st.sampled_from(DAMAGES))
    lines[place] = damage(lines[place], draw(st.integers(0, 10_000)))
    data = b"\n".join(lines)
    end = draw(st.sampled_from(["", "", "", "cut", "nul", "nothing"]))
    if end == "cut":
        return Shown(data[: len(data) - draw(st.integers(0, 60))])
    return Shown(data + (b"\x00" * 5000 if end == "nul" else b""))


# --- other spellings of the same -----------------------------------------------------------------

Spelling = Callable[[bytes], bytes]


def _each_line(change: Callable[[object], object], **dumped: object) -> Spelling:
    """Write every line that is JSON anew, changed."""
    how = {"ensure_ascii": True, "separators": (",", ":")} | dumped

    def again(line: bytes) -> bytes:
        try:
            value = json.loads(line)
        except ValueError:
            return line
        return json.dumps(change(value), **cast("dict[str, Any]", how)).encode()

    return lambda data: b"\n".join(again(line) for line in data.split(b"\n"))


def _same(value: object) -> object:
    return value


def _turned(value: object) -> object:
    """Turn the order of all keys around."""
    if isinstance(value, dict):
        known = cast("dict[str, object]", value)
        return {key: _turned(known[key]) for key in reversed(known)}
    if isinstance(value, list):
        return [_turned(each) for each in cast("list[object]", value)]
    return value


def _enriched(value: object) -> object:
    """Add an unknown field to the envelope and to the payload."""
    if not isinstance(value, dict):
        return value
    known = cast("dict[str, object]", value)
    payload = known.get("payload")
    if isinstance(payload, dict):
        told = cast("dict[str, object]", payload)
        known |= {"payload": {"aaa": [{"type": "x"}], **told, "zzz": {"text": "no"}}}
    return known | {"metadata": {"client_authored": False}}


def _blanks(data: bytes) -> bytes:
    return data.replace(b"\n", b"\n\n \t\n")


def _other_times(data: bytes) -> bytes:
    return data.replace(b'.000Z","', b'+00:00","')


SPELLINGS: dict[str, Spelling] = {
    "keys in another order": _each_line(_turned),
    "spaces": _each_line(_same, separators=(", ", ": ")),
    "escapes": _each_line(_same),
    "unknown fields": _each_line(_enriched),
    "CRLF": r.crlf,
    "a mark at the beginning": lambda data: b"\xef\xbb\xbf" + data,
    "blank lines": _blanks,
    "other time stamps": _other_times,
    "spaces at the ends": lambda data: data.replace(b"}\n", b"} \n"),
}


# --- lines that no Codex ever wrote --------------------------------------------------------------

LINES = ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "new"]
RESPONSES = [
    *("message", "function_call", "custom_tool_call", "local_shell_call", "reasoning", "new"),
    *("function_call_output", "custom_tool_call_output"),
]
EVENTS = [
    *("task_started", "task_complete", "turn_aborted", "thread_rolled_back", "user_message", "new"),
    *("token_count", "thread_settings_applied", "thread_name_updated", "patch_apply_end"),
    *("exec_command_end", "mcp_tool_call_end", "view_image_tool_call"),
]
ITEMS = [
    *("UserMessage", "CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall"),
    *("CollabAgentToolCall", "ImageView", "Reasoning", "New"),
]
FIELDS = [
    *("type", "payload", "item", "id", "call_id", "name", "arguments", "input", "content", "text"),
    *("role", "changes", "command", "cwd", "workdir", "parsed_cmd", "turn_id", "num_turns"),
    *("status", "message", "kind", "info", "last_token_usage", "total_tokens", "input_tokens"),
    *("plan", "step", "output", "namespace", "invocation", "result", "server", "tool", "path"),
    *("move_path", "model", "source", "action", "history_mode", "history_base", "thread_id"),
    *("subagent_history_start_ordinal", "internal_chat_message_metadata_passthrough", "Ok"),
    *("model_context_window", "thread_settings", "cmd", "success", "a.py"),
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.sampled_from([2**53, 2**64, 10**30, 1.5, "", "t1", "c1", "read", "update_plan", "exec"]),
    st.sampled_from(["completed", "user", "text", "{}", '{"plan":[{"step":7}]}', "\ud83d", "a.py"]),
    st.text(max_size=4),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def hostile_lines(draw: st.DrawFn) -> bytes:
    """Write a session whose lines have known names and whatever inside."""
    data = r.rollout(draw(st.sampled_from([r.session(), r.session("legacy"), r.session("bare")])))
    for number in range(1, draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(LINES))
        payload = draw(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6))
        if kind == "response_item":
            payload = {"type": draw(st.sampled_from(RESPONSES))} | payload
        elif kind == "event_msg" and draw(st.booleans()):
            item = {"type": draw(st.sampled_from(ITEMS))}
            item |= draw(st.dictionaries(st.sampled_from(FIELDS[1:]), VALUES, max_size=6))
            payload = {"type": "item_completed", "thread_id": "x", "turn_id": "t1", "item": item}
        elif kind == "event_msg":
            payload = {"type": draw(st.sampled_from(EVENTS))} | payload
        envelope = {"timestamp": f"2026-11-20T10:00:{number:02}.000Z", "ordinal": number}
        value = envelope | {"type": kind, "payload": draw(st.sampled_from([payload, [payload]]))}
        if draw(st.integers(0, 9)) == 0:
            value = draw(VALUES)
        data += r.to_line(value)
    return data
