"""Histories to compact: their items in short form, and strategies for any."""

import base64
import random
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from codex_checkpoints.core.agents.codex.history.item_kinds import Past
from codex_checkpoints.core.agents.codex.own_messages import HOW_TO_LINE, RESTORE_LINE
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Evidence,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.fields import texts_of
from rollouts import SUMMARY_OF_CODEX

Item = Mapping[str, object]

ENVIRONMENT = "<environment_context>\n  <cwd>/home/ana/shop</cwd>\n</environment_context>"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(3000)).decode()
SUMMARY = SUMMARY_OF_CODEX + " this problem.\nIt did so."


def message(role: str, *texts: str) -> Item:
    part = "output_text" if role == "assistant" else "input_text"
    content = [{"type": part, "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


def user(*texts: str) -> Item:
    return message("user", *texts)


def image(url: str = f"data:image/png;base64,{PNG}") -> Mapping[str, object]:
    return {"type": "input_image", "image_url": url}


def with_parts(*parts: Mapping[str, object] | str) -> Item:
    told = [
        {"type": "input_text", "text": part} if isinstance(part, str) else part for part in parts
    ]
    return {"type": "message", "role": "user", "content": told}


def call(call_id: str, kind: str = "function_call") -> Item:
    return {"type": kind, "name": "exec_command", "arguments": "{}", "call_id": call_id}


def output(call_id: str, text: str = "ok", kind: str = "function_call_output") -> Item:
    return {"type": kind, "call_id": call_id, "output": text}


def reasoning() -> Item:
    return {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAA"}


def compaction() -> Item:
    return {"type": "compaction", "encrypted_content": "gAAA"}


def pasts(items: Sequence[Item]) -> tuple[Past, ...]:
    """Give each item a time and a place of its own."""
    return tuple(
        Past(item, f"2026-11-20T10:00:{place % 60:02d}.000Z", f"seq:{place}")
        for place, item in enumerate(items)
    )


def text_of(item: Item) -> str:
    """Join the text parts of a message."""
    return "".join(texts_of(item["content"]))


ASKED = Evidence("user", "u1")
CHECKPOINT = Checkpoint(
    seq=9,
    task=Task("fix the login", ASKED),
    plan=Plan((Step("s1", "find it"), Step("s2", "fix it")), {"s1": True, "s2": False}, ASKED),
    decisions=(),
    artifacts={"a.py": Artifact("a.py", "file", "sha256:" + "0" * 64, 7)},
    facts={},
    recent_artifacts=("a.py",),
)
EMPTY = Checkpoint(-1, None, Plan(), (), {}, {}, ())

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PROMPTS = st.one_of(
    WORDS,
    st.integers(1, 400).map(lambda length: "ä b" * length),
    st.sampled_from(["fix the login", '"quoted"\n\n\\', "…7 tokens truncated…"]),
)
CALL_IDS = st.sampled_from(["c1", "c2", "c3", "c4"])
ITEMS: st.SearchStrategy[Item] = st.one_of(
    st.lists(PROMPTS, min_size=1, max_size=3).map(lambda texts: user(*texts)),
    st.sampled_from(
        [
            user(ENVIRONMENT),
            user(f"{HOW_TO_LINE}\nold\n\n[SESSION_CHECKPOINT v1]\n"),
            user(f"{RESTORE_LINE}\nold"),
            user(SUMMARY),
            message("developer", "<permissions instructions>x</permissions instructions>"),
            with_parts(image()),
            with_parts("look", image(), "there"),
            reasoning(),
            compaction(),
            {"type": "from_the_future"},
        ]
    ),
    PROMPTS.map(lambda text: message("assistant", text)),
    CALL_IDS.map(call),
    st.builds(output, CALL_IDS, PROMPTS),
    st.builds(call, CALL_IDS, st.just("custom_tool_call")),
    st.builds(output, CALL_IDS, PROMPTS, st.just("custom_tool_call_output")),
)
HISTORIES = st.lists(ITEMS, max_size=30).map(pasts)
LONG_ANSWER = message("assistant", "work " * 4_000)
"""More than any handoff: a history with it is worth compacting."""
