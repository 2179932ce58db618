"""What an item of the history is, and who wrote it (JUN-42, CKP-8).

Codex's items have no field for an author, and role user is shared by people and machines; so the
kind is told from role and text.  Which kinds are kept is left to `retained.py` and `foreign.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from codex_checkpoints.core.rollout.contextual import is_human, is_summary
from codex_checkpoints.core.rollout.fields import Json, text_of, texts_of
from codex_checkpoints.core.rollout.ours import is_ours
from codex_checkpoints.values import frozen

Kind = Literal[
    "user",
    "handoff",
    "summary",
    "context",
    "assistant",
    "instructions",
    "reasoning",
    "tool_call",
    "tool_output",
    "compaction",
    "unknown",
]
Author = Literal["user", "assistant", "tool", "codex", "codex-checkpoints", "unknown"]

AUTHORS: Mapping[Kind, Author] = {
    "user": "user",
    "handoff": "codex-checkpoints",
    "summary": "codex",
    "context": "codex",
    "assistant": "assistant",
    "instructions": "codex",
    "reasoning": "assistant",
    "tool_call": "assistant",
    "tool_output": "tool",
    "compaction": "codex",
    "unknown": "unknown",
}

_BY_TYPE: Mapping[str, Kind] = {
    "agent_message": "assistant",
    "reasoning": "reasoning",
    "function_call": "tool_call",
    "custom_tool_call": "tool_call",
    "local_shell_call": "tool_call",
    "tool_search_call": "tool_call",
    "web_search_call": "tool_call",
    "image_generation_call": "tool_call",
    "function_call_output": "tool_output",
    "custom_tool_call_output": "tool_output",
    "tool_search_output": "tool_output",
    "compaction": "compaction",
    "compaction_summary": "compaction",
    "context_compaction": "compaction",
}


@frozen
class Past:
    """One item of the history that Codex would send, and what only our own record can keep of it.

    `at` is when its line was written; `ref` names the line, `seq:12` or the id of the user's item.
    """

    item: Json
    at: str | None = None
    ref: str | None = None


def kind_of(item: Json) -> Kind:
    """Return what kind of item this is."""
    form = text_of(item.get("type")) or ""
    return _of_message(item) if form == "message" else _BY_TYPE.get(form, "unknown")


def _of_message(item: Json) -> Kind:
    match item.get("role"):
        case "user":
            return _of_the_role_user(texts_of(item.get("content")))
        case "assistant":
            return "assistant"
        case "developer" | "system":
            return "instructions"
        case _:
            return "unknown"


def _of_the_role_user(texts: tuple[str, ...]) -> Kind:
    if is_human(texts):
        return "user"
    first = texts[0]
    if is_ours(first):
        return "handoff"
    return "summary" if is_summary(first) else "context"
