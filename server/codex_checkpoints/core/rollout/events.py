"""What an `event_msg` says: what happened, as people see it.

Paginated files tell it in items (`item_completed`), older ones in an event for each kind of thing;
which of the two counts is for the reducer to know (ROL-14).
"""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.rollout.fields import (
    Json,
    absent_or,
    is_list,
    list_of,
    object_of,
    text_of,
    texts_of,
    whole_of,
    words_of,
)
from codex_checkpoints.core.rollout.items import (
    QUIET,
    Change,
    CommandRun,
    FilesChanged,
    FileViewed,
    Item,
    ItemCompleted,
    Named,
    Quiet,
    RolledBack,
    TaskEnded,
    TaskStarted,
    Tokens,
    ToolRan,
    TurnContext,
    Unknown,
    UserMessage,
)
from codex_checkpoints.core.rollout.responses import quiet

Inner = UserMessage | CommandRun | FilesChanged | ToolRan | FileViewed | Unknown | Quiet
"""What an item of a paginated file can be."""


def event(payload: Json) -> Item:
    """Return what an event says."""
    kind = payload.get("type")
    make = EVENTS.get(kind) if isinstance(kind, str) else None
    return Unknown(f"event_msg/{kind}"[:64]) if make is None else make(payload)


def _task_started(payload: Json) -> Item:
    window = whole_of(payload.get("model_context_window"))
    return TaskStarted(text_of(payload.get("turn_id")), window)


def _task_complete(payload: Json) -> Item:
    return TaskEnded(text_of(payload.get("turn_id")), aborted=False)


def _turn_aborted(payload: Json) -> Item:
    return TaskEnded(text_of(payload.get("turn_id")), aborted=True)


def _rolled_back(payload: Json) -> Item:
    return RolledBack(whole_of(payload.get("num_turns")) or 0)


def _user_message(payload: Json) -> Item:
    # Versions before 0.5x wrote injected text as user messages too and said so in `kind`.
    if not absent_or(payload.get("kind"), "plain"):
        return QUIET
    message = text_of(payload.get("message"))
    return UserMessage(() if message is None else (message,))


def _token_count(payload: Json) -> Item:
    info = object_of(payload.get("info"))
    last = object_of(info.get("last_token_usage"))
    total = whole_of(last.get("total_tokens"))
    if total is None:
        return QUIET
    window = whole_of(info.get("model_context_window"))
    return Tokens(total, whole_of(last.get("input_tokens")), window)


def _thread_settings(payload: Json) -> Item:
    settings = object_of(payload.get("thread_settings"))
    # The folder of a turn comes from its `turn_context` alone.
    return TurnContext(None, None, text_of(settings.get("model")))


def _named(payload: Json) -> Item:
    return Named(text_of(payload.get("thread_name")) or text_of(payload.get("name")))


def _patch_end(payload: Json) -> Item:
    done = payload.get("success") is True or payload.get("status") == "completed"
    return _files_changed(text_of(payload.get("call_id")), payload, done=done)


def _command_end(payload: Json) -> Item:
    return _command_run(text_of(payload.get("call_id")), payload)


def _mcp_end(payload: Json) -> Item:
    call_id = text_of(payload.get("call_id"))
    invocation, result = object_of(payload.get("invocation")), object_of(payload.get("result"))
    tool = text_of(invocation.get("tool"))
    if call_id is None or tool is None:
        return Unknown("call without id")
    texts = texts_of(object_of(result.get("Ok")).get("content"))
    return ToolRan(call_id, text_of(invocation.get("server")), tool, texts, ran=True)


def _view_end(payload: Json) -> Item:
    return _file_viewed(text_of(payload.get("call_id")), payload)


def _item_completed(payload: Json) -> Item:
    item = object_of(payload.get("item"))
    kind = item.get("type")
    make = ITEMS.get(kind) if isinstance(kind, str) else None
    if make is None:
        return Unknown(f"item/{kind}"[:64])
    made = make(item)
    return made if made is QUIET else ItemCompleted(made, text_of(payload.get("turn_id")))


EVENTS: dict[str, Callable[[Json], Item]] = {
    "task_started": _task_started,
    "turn_started": _task_started,
    "task_complete": _task_complete,
    "turn_complete": _task_complete,
    "turn_aborted": _turn_aborted,
    "thread_rolled_back": _rolled_back,
    "user_message": _user_message,
    "token_count": _token_count,
    "thread_settings_applied": _thread_settings,
    "thread_name_updated": _named,
    "patch_apply_end": _patch_end,
    "exec_command_end": _command_end,
    "mcp_tool_call_end": _mcp_end,
    "view_image_tool_call": _view_end,
    "item_completed": _item_completed,
    **dict.fromkeys(
        (
            "agent_message",
            "agent_reasoning",
            "agent_reasoning_raw_content",
            "web_search_begin",
            "web_search_end",
            "image_generation_end",
            "sub_agent_activity",
            "context_compacted",
            "thread_goal_updated",
            "entered_review_mode",
            "exited_review_mode",
            "undo_completed",
            "error",
            "warning",
            "stream_error",
            "background_event",
            "plan_update",
            "turn_diff",
        ),
        quiet,
    ),
}
"""What is made of each known kind of event."""


# --- items of paginated files --------------------------------------------------------------------


def _typed_message(item: Json) -> Inner:
    """Read what a person typed; images and mentions have no text."""
    parts = [part for part in list_of(item.get("content")) if object_of(part).get("type") == "text"]
    return UserMessage(texts_of(parts), ref=text_of(item.get("id")) or None)


def _command(item: Json) -> Inner:
    return _command_run(text_of(item.get("id")), item)


def _command_run(call_id: str | None, value: Json) -> CommandRun | Unknown:
    command = value.get("command")
    # One text is what a shell was given.
    words = ["sh", "-c", command] if isinstance(command, str) else words_of(command)
    if call_id is None or words is None:
        return Unknown("command without words")
    exit_code = value.get("exit_code")
    return CommandRun(
        call_id,
        tuple(words),
        text_of(value.get("cwd")),
        _parsed_command(value.get("parsed_cmd")),
        text_of(value.get("status")),
        exit_code if type(exit_code) is int else None,
        text_of(value.get("aggregated_output")),
    )


def _parsed_command(value: object) -> tuple[tuple[str, str | None], ...] | None:
    if not is_list(value) or not value:
        return None
    parts = [object_of(part) for part in value]
    return tuple(
        (text_of(part.get("type")) or "unknown", text_of(part.get("path"))) for part in parts
    )


def _file_change(item: Json) -> Inner:
    done = absent_or(item.get("status"), "completed")
    return _files_changed(text_of(item.get("id")), item, done=done)


def _files_changed(call_id: str | None, value: Json, *, done: bool) -> FilesChanged:
    changes: list[Change] = []
    for path, told in object_of(value.get("changes")).items():
        change = object_of(told)
        kind, move_to = text_of(change.get("type")), text_of(change.get("move_path"))
        changes.append(Change(path, kind or "update", move_to))
    return FilesChanged(call_id or "", tuple(changes), done)


def _image_view(item: Json) -> Inner:
    return _file_viewed(text_of(item.get("id")), item)


def _file_viewed(call_id: str | None, value: Json) -> FileViewed | Unknown:
    path = text_of(value.get("path"))
    return Unknown("view without path") if path is None else FileViewed(call_id or "", path)


def _tool_ran(item: Json) -> Inner:
    call_id, tool = text_of(item.get("id")), text_of(item.get("tool"))
    if call_id is None or tool is None:
        return Unknown("call without id")
    content = object_of(item.get("result")).get("content")
    # Dynamic tools keep their answer under a name of their own.
    texts = texts_of(content) or texts_of(item.get("content_items")) or texts_of(item.get("output"))
    ran = text_of(item.get("status")) not in {"declined", "inProgress", "in_progress"}
    return ToolRan(call_id, text_of(item.get("server")), tool, texts, ran)


ITEMS: dict[str, Callable[[Json], Inner]] = {
    "UserMessage": _typed_message,
    "CommandExecution": _command,
    "FileChange": _file_change,
    "McpToolCall": _tool_ran,
    "DynamicToolCall": _tool_ran,
    "CollabAgentToolCall": _tool_ran,
    "ImageView": _image_view,
    **dict.fromkeys(
        (
            "AgentMessage",
            "Reasoning",
            "Plan",
            "SubAgentActivity",
            "WebSearch",
            "ImageGeneration",
            "Extension",
            "HookPrompt",
            "EnteredReviewMode",
            "ExitedReviewMode",
            "ContextCompaction",
            "Sleep",
        ),
        quiet,
    ),
}
"""What is made of each known kind of item."""
