"""What a `response_item` says: one item of the model's history.

Older files hold nothing else about tools, so a call and its output are read here (ROL-7).  In
paginated files the items of `events` tell more, and only plans are taken from here.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.rollout.fields import (
    Json,
    is_object,
    load,
    object_of,
    text_of,
    texts_of,
)
from codex_checkpoints.core.rollout.items import (
    ASSISTANT,
    QUIET,
    WORKED,
    Item,
    Quiet,
    ToolCall,
    ToolOutput,
    Unknown,
    Unreadable,
    UserMessage,
)


def response_item(payload: Json) -> Item:
    """Return what an item of the model's history says."""
    kind = payload.get("type")
    make = RESPONSES.get(kind) if isinstance(kind, str) else None
    return Unknown(f"response_item/{kind}"[:64]) if make is None else make(payload)


def quiet(_payload: Json) -> Quiet:
    """Read what is known and says nothing a checkpoint keeps."""
    return QUIET


def worked(_payload: Json) -> Item:
    """Read what is known, says nothing a checkpoint keeps, and yet is the model's work."""
    return WORKED


def _message(payload: Json) -> Item:
    role = payload.get("role")
    if role == "user":
        texts = texts_of(payload.get("content"))
        return UserMessage(texts, in_history=True, turn_id=_turn_id(payload))
    return ASSISTANT if role == "assistant" else WORKED


def _turn_id(payload: Json) -> str | None:
    passed = object_of(payload.get("internal_chat_message_metadata_passthrough"))
    return text_of(passed.get("turn_id"))


def _function_call(payload: Json) -> Item:
    arguments = text_of(payload.get("arguments"))
    value = load(arguments.encode(errors="replace")) if arguments is not None else None
    return _call(payload, None if isinstance(value, Unreadable) else value)


def _custom_tool_call(payload: Json) -> Item:
    return _call(payload, text_of(payload.get("input")))


def _call(payload: Json, arguments: object) -> Item:
    call_id, name = text_of(payload.get("call_id")), text_of(payload.get("name"))
    if call_id is None or name is None:
        return Unknown("call without id")
    namespace = text_of(payload.get("namespace"))
    return ToolCall(call_id, name, namespace, arguments, _turn_id(payload))


def _local_shell_call(payload: Json) -> Item:
    call_id = text_of(payload.get("call_id")) or text_of(payload.get("id"))
    action = object_of(payload.get("action"))
    if call_id is None:
        return Unknown("call without id")
    arguments = {"command": action.get("command"), "workdir": action.get("working_directory")}
    return ToolCall(call_id, "local_shell", None, arguments, _turn_id(payload))


def _output(payload: Json) -> Item:
    call_id = text_of(payload.get("call_id"))
    if call_id is None:
        return Unknown("output without id")
    output = payload.get("output")
    if is_object(output):  # very old files: {"content": …, "success": …}
        output = output.get("content")
    return ToolOutput(call_id, texts_of(output))


RESPONSES: dict[str, Callable[[Json], Item]] = {
    "message": _message,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
    "local_shell_call": _local_shell_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    **dict.fromkeys(
        (
            "reasoning",
            "web_search_call",
            "image_generation_call",
            "tool_search_call",
            "tool_search_output",
        ),
        worked,
    ),
    **dict.fromkeys(
        (
            "agent_message",
            "compaction",
            "compaction_summary",
            "context_compaction",
            "compaction_trigger",
            "ghost_snapshot",
            "additional_tools",
        ),
        quiet,
    ),
}
"""What is made of each known kind of item."""
