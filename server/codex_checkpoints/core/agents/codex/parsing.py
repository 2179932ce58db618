"""Parses the JSON of a line into a typed item, by tables of its kinds; parsing never fails.

Three forms of line occur (ROL-3, ROL-16): `{"timestamp","type","payload"}`, the same with an
`ordinal`, and the bare items of Codex before 0.32.  Older files record work in response items and
events, paginated files in completed items; `derive` decides which count (ROL-14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex import items
from codex_checkpoints.core.agents.codex.sources import source_in
from codex_checkpoints.core.fields import (
    Json,
    UnreadableLine,
    absent_or,
    content_hash,
    is_list,
    is_object,
    list_of,
    load,
    names,
    object_of,
    paths_in,
    text_of,
    texts_of,
    whole_of,
    words_of,
)
from codex_checkpoints.core.patches import PatchedFile

Makers = Mapping[str, items.Signal | Callable[[Json], items.Item]]
"""By type: a function from a payload to an item, or the signal that is all a line gives."""


def _signals(signal: items.Signal, kinds: str) -> dict[str, items.Signal]:
    return dict.fromkeys(kinds.split(), signal)


def _made(makers: Makers, kind: object, value: Json) -> items.Item:
    make = makers.get(kind, "unknown") if isinstance(kind, str) else "unknown"
    return make(value) if callable(make) else make


def _message(payload: Json) -> items.Item:
    role = payload.get("role")
    if role == "user":
        texts, pictured = texts_of(payload.get("content")), _has_picture(payload.get("content"))
        return events.UserMessage(
            texts, in_history=True, turn_id=turn_id_of(payload), pictured=pictured
        )
    return "answered" if role == "assistant" else "given"


def _has_picture(content: object) -> bool:
    """Return whether a message has an image among its parts."""
    kinds = (text_of(object_of(part).get("type")) or "" for part in list_of(content))
    return any("image" in kind.lower() for kind in kinds)


def turn_id_of(payload: Json) -> str | None:
    """Return the turn that a response item names, or None."""
    passed = payload.get("internal_chat_message_metadata_passthrough")
    return None if passed is None else text_of(object_of(passed).get("turn_id"))


def turn_named_by(payload: Json) -> str | None:
    """Return the turn that a response item or an event names, or None."""
    return turn_id_of(payload) or text_of(payload.get("turn_id"))


def _function_call(payload: Json) -> items.Item:
    arguments = text_of(payload.get("arguments"))
    value = load(arguments.encode(errors="replace")) if arguments is not None else None
    return _call(payload, None if isinstance(value, UnreadableLine) else value)


def _call(payload: Json, arguments: object) -> items.Item:
    call_id, name = text_of(payload.get("call_id")), text_of(payload.get("name"))
    if call_id is None or name is None:
        return "unknown"
    namespace = text_of(payload.get("namespace"))
    return events.ToolCall(call_id, name, namespace, arguments, turn_id_of(payload))


def _local_shell_call(payload: Json) -> items.Item:
    call_id = text_of(payload.get("call_id")) or text_of(payload.get("id"))
    action = object_of(payload.get("action"))
    if call_id is None:
        return "unknown"
    arguments = {"command": action.get("command"), "workdir": action.get("working_directory")}
    return events.ToolCall(call_id, "local_shell", None, arguments, turn_id_of(payload))


def _output(payload: Json) -> items.Item:
    call_id = text_of(payload.get("call_id"))
    if call_id is None:
        return _handed_over(payload)
    output = payload.get("output")
    if is_object(output):  # very old files: {"content": …, "success": …}
        output = output.get("content")
    return items.ToolOutput(call_id, texts_of(output))


def _handed_over(payload: Json) -> items.Item:
    """Return text that Codex gives the model as the output of a call that it never made."""
    name = text_of(payload.get("name"))
    if name == APPROVED_PLAN:
        return events.PlanMessage("\n".join(texts_of(payload.get("output"))), approved=True)
    return "unknown" if name is None else "given"


def _letter(payload: Json) -> items.Item:
    """Return a message between agents in the form of older versions."""
    content, sealed = payload.get("content"), payload.get("encrypted_content")
    if sealed is None:
        return _agent_wrote({**payload, "content": [{"text": content}]})
    return _agent_wrote({**payload, "content": [{"type": "encrypted_content"}]})


def _agent_wrote(payload: Json) -> items.Item:
    author, recipient = text_of(payload.get("author")), text_of(payload.get("recipient"))
    if author is None or recipient is None:
        return "quiet"
    parts = [object_of(part) for part in list_of(payload.get("content"))]
    text = "\n".join(texts_of(parts))
    found = _PAYLOAD.search(text)
    head, body = ("", text) if found is None else (text[: found.start()], text[found.end() :])
    form = _FORM.search(head)
    sealed = any(part.get("type") == "encrypted_content" for part in parts)
    words = None if sealed and not body.strip() else body.strip()
    ref, turn_id = text_of(payload.get("id")), turn_id_of(payload)
    return events.AgentWrote(author, recipient, form[1] if form else "", words, ref, turn_id)


APPROVED_PLAN = "proposed_plan"
"""The name under which Codex passes on a plan that a person approved."""

_PAYLOAD = re.compile(r"\nPayload:(?:\s|\Z)")
_FORM = re.compile(r"^Message Type: ([A-Z_]{1,40})$", re.MULTILINE)

RESPONSES: Makers = {
    "message": _message,
    "function_call": _function_call,
    "custom_tool_call": lambda payload: _call(payload, text_of(payload.get("input"))),
    "local_shell_call": _local_shell_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "agent_message": _agent_wrote,
    **_signals("thought", "reasoning"),
    **_signals("called", "web_search_call image_generation_call tool_search_call"),
    **_signals("given", "tool_search_output"),
    **_signals(
        "quiet",
        "compaction compaction_summary context_compaction compaction_trigger"
        " ghost_snapshot additional_tools",
    ),
}
"""By type of a response item."""


def _task_started(payload: Json) -> items.Item:
    window = whole_of(payload.get("model_context_window"))
    by = object_of(payload.get("turn_attribution"))
    parent = text_of(by.get("parent_turn_id")) or text_of(payload.get("parent_turn_id"))
    for_goal = by["turn_trigger"] == "goal" if "turn_trigger" in by else None
    return events.TaskStarted(text_of(payload.get("turn_id")), window, parent, for_goal)


def mode_in(payload: Json) -> str | None:
    """Return the collaboration mode that the start or the settings of a task name."""
    mode = payload.get("collaboration_mode")
    started_in = text_of(payload.get("collaboration_mode_kind"))
    return started_in or text_of(mode) or text_of(object_of(mode).get("mode")) or None


def _task_ended(payload: Json, *, aborted: bool = False) -> items.Item:
    answered = bool((text_of(payload.get("last_agent_message")) or "").strip())
    error = payload.get("error")
    trouble = None if aborted or error is None else _trouble(error)
    return events.TaskEnded(text_of(payload.get("turn_id")), aborted, answered, trouble)


def _trouble(error: object) -> events.Trouble:
    """Return an error of Codex, in its plainest words."""
    fields = object_of(error)
    info = fields.get("codex_error_info")
    name = text_of(info) or next(iter(object_of(info)), "")
    words = text_of(error) or text_of(fields.get("message")) or name
    text = _innermost(words)
    is_limit = name == "usage_limit_exceeded" or "usage limit" in text.lower()
    return events.Trouble(text, is_limit)


def _innermost(message: str) -> str:
    """Return the message inside an answer of a service, which may be JSON several times over."""
    for _ in range(_DEEPEST):
        start = message.find("{")
        inner = load(message[start:].encode(errors="replace")) if start >= 0 else None
        error = object_of(inner).get("error", inner)
        words = text_of(error) or text_of(object_of(error).get("message"))
        if words is None:
            break
        message = words
    return message


_DEEPEST = 8


def _goal_updated(payload: Json) -> items.Item:
    thread_id = text_of(payload.get("threadId")) or text_of(payload.get("thread_id"))
    return goal_in(payload, thread_id) or "quiet"


def goal_in(value: Json, thread_id: str | None = None) -> events.GoalSet | None:
    """Return the goal that an event or the output of a goal tool reports."""
    goal = object_of(value.get("goal"))
    objective = text_of(goal.get("objective"))
    if objective is None:
        return None
    status = text_of(goal.get("status")) or "active"
    return events.GoalSet(objective, status, text_of(goal.get("threadId")) or thread_id)


def _review_began(value: Json, turn_id: str | None = None) -> items.Item:
    asked = object_of(value.get("target"))
    hint = text_of(value.get("user_facing_hint")) or text_of(asked.get("instructions"))
    target = hint or text_of(asked.get("type")) or "changes"
    turn_id = turn_id or text_of(value.get("turn_id"))
    return events.ReviewMessage(f"Review: {target}", ended=False, turn_id=turn_id)


def _review_ended(value: Json, turn_id: str | None = None) -> items.Item:
    output = object_of(value.get("review_output"))
    lines = [text_of(output.get("overall_explanation"))]
    for each in list_of(output.get("findings")):
        finding = object_of(each)
        place = object_of(finding.get("code_location"))
        span = object_of(place.get("line_range"))
        where = text_of(place.get("absolute_file_path"))
        at = f" ({where}:{span.get('start')})" if where else ""
        lines.append(f"- {text_of(finding.get('title')) or ''}{at}")
        lines.append(text_of(finding.get("body")))
    return events.ReviewMessage(
        "\n".join(line for line in lines if line), ended=True, turn_id=turn_id
    )


def _user_message(payload: Json) -> items.Item:
    # Versions before 0.5x also wrote injected text as user messages, with another `kind`.
    if not absent_or(payload.get("kind"), "plain"):
        return "quiet"
    message = text_of(payload.get("message"))
    pictured = any(list_of(payload.get(key)) for key in ("images", "local_images"))
    return events.UserMessage(() if message is None else (message,), pictured=pictured)


def _token_count(payload: Json) -> items.Item:
    info = object_of(payload.get("info"))
    last = object_of(info.get("last_token_usage"))
    total = whole_of(last.get("total_tokens"))
    resets_at = _resets_at(object_of(payload.get("rate_limits")))
    if total is None:
        return "quiet" if resets_at is None else events.Limits(resets_at)
    window = whole_of(info.get("model_context_window"))
    read = whole_of(last.get("input_tokens"))
    return events.Tokens(total, read, window, resets_at=resets_at)


def _resets_at(limits: Json) -> int | None:
    """Return the reset time of the last used-up limit."""
    used_up: list[int] = []
    for name in ("primary", "secondary"):
        limit = object_of(limits.get(name))
        used, resets_at = limit.get("used_percent"), whole_of(limit.get("resets_at"))
        if isinstance(used, int | float) and used >= _USED_UP and resets_at is not None:
            used_up.append(resets_at)
    return max(used_up, default=None)


_USED_UP = 100


def _thread_settings(payload: Json) -> items.Item:
    settings = object_of(payload.get("thread_settings"))
    # Only `turn_context` sets the folder of a turn.
    model, folder = text_of(settings.get("model")), text_of(settings.get("cwd"))
    return events.TurnContext(None, None, model, folder or None)


def _patch_end(payload: Json) -> items.Item:
    done = payload.get("success") is True or payload.get("status") == "completed"
    return _files_changed(text_of(payload.get("call_id")), payload, done=done)


def _mcp_end(payload: Json) -> items.Item:
    call_id = text_of(payload.get("call_id"))
    invocation, result = object_of(payload.get("invocation")), object_of(payload.get("result"))
    tool = text_of(invocation.get("tool"))
    if call_id is None or tool is None:
        return "unknown"
    texts = texts_of(object_of(result.get("Ok")).get("content"))
    server, paths = text_of(invocation.get("server")), paths_in(invocation.get("arguments"))
    return events.ToolRan(call_id, server, tool, texts, ran=True, paths=paths)


def _item_completed(payload: Json) -> items.Item:
    item, turn_id = object_of(payload.get("item")), text_of(payload.get("turn_id"))
    kind = item.get("type")
    if kind == "UserMessage":
        return _typed_message(item, turn_id)
    if kind == "EnteredReviewMode":
        return _review_began(item, turn_id)
    if kind == "ExitedReviewMode":
        return _review_ended(item, turn_id)
    made = _made(ITEMS, kind, item)
    is_damaged = made == "unknown" and isinstance(kind, str) and kind in ITEMS
    return "quiet" if is_damaged else made


EVENTS: Makers = {
    "task_started": _task_started,
    "turn_started": _task_started,
    "task_complete": _task_ended,
    "turn_complete": _task_ended,
    "turn_aborted": partial(_task_ended, aborted=True),
    "thread_rolled_back": lambda payload: events.RolledBack(
        whole_of(payload.get("num_turns")) or 0
    ),
    "user_message": _user_message,
    "token_count": _token_count,
    "thread_settings_applied": _thread_settings,
    "thread_name_updated": lambda payload: events.ThreadNamed(
        text_of(payload.get("thread_name")) or text_of(payload.get("name"))
    ),
    "patch_apply_end": _patch_end,
    "exec_command_end": lambda payload: _command_run("call_id", payload),
    "mcp_tool_call_end": _mcp_end,
    "view_image_tool_call": lambda payload: _file_viewed("call_id", payload),
    "item_completed": _item_completed,
    "thread_goal_updated": _goal_updated,
    "thread_goal_cleared": lambda payload: events.GoalSet(
        None, "cleared", text_of(payload.get("threadId")) or text_of(payload.get("thread_id"))
    ),
    "error": _trouble,
    "entered_review_mode": _review_began,
    "exited_review_mode": _review_ended,
    **_signals(
        "quiet",
        "agent_message agent_reasoning agent_reasoning_raw_content web_search_begin"
        " web_search_end image_generation_end sub_agent_activity context_compacted"
        " undo_completed warning stream_error background_event plan_update turn_diff",
    ),
}
"""By type of an event."""


def _typed_message(item: Json, turn_id: str | None = None) -> events.UserMessage:
    parts = [part for part in list_of(item.get("content")) if object_of(part).get("type") == "text"]
    ref = text_of(item.get("id")) or None
    pictured = _has_picture(item.get("content"))
    return events.UserMessage(texts_of(parts), ref=ref, turn_id=turn_id, pictured=pictured)


def _command_run(id_key: str, value: Json) -> items.Item:
    call_id, command = text_of(value.get(id_key)), value.get("command")
    # A single text is the script of a shell.
    words = ["sh", "-c", command] if isinstance(command, str) else words_of(command)
    if call_id is None or words is None:
        return "unknown"
    exit_code = value.get("exit_code")
    return events.CommandRun(
        call_id,
        tuple(words),
        text_of(value.get("cwd")),
        _parsed_command(value.get("parsed_cmd")),
        text_of(value.get("status")),
        exit_code if type(exit_code) is int else None,
        text_of(value.get("aggregated_output")),
        by_user=value.get("source") == "user_shell",
        seconds=_seconds_in(object_of(value.get("duration"))),
    )


def _seconds_in(duration: Json) -> float | None:
    seconds = items.number_of_seconds(duration.get("secs"))
    nanos = items.number_of_seconds(duration.get("nanos")) or 0.0
    return None if seconds is None else seconds + nanos / 1e9


def _parsed_command(value: object) -> tuple[tuple[str, str | None], ...] | None:
    if not is_list(value) or not value:
        return None
    parts = [object_of(part) for part in value]
    return tuple(
        (text_of(part.get("type")) or "unknown", text_of(part.get("path"))) for part in parts
    )


def _file_change(item: Json) -> events.FilesChanged:
    done = absent_or(item.get("status"), "completed")
    return _files_changed(text_of(item.get("id")), item, done=done)


def _files_changed(call_id: str | None, value: Json, *, done: bool) -> events.FilesChanged:
    changes: list[PatchedFile] = []
    # By path: two spellings of one file must not depend on the order of the keys.
    for path, each in sorted(object_of(value.get("changes")).items()):
        change = object_of(each)
        kind, move_to = text_of(change.get("type")), text_of(change.get("move_path"))
        diff, content = text_of(change.get("unified_diff")), text_of(change.get("content"))
        added = content_hash(content) if kind == "add" else None
        changes.append(
            PatchedFile(path, kind or "update", move_to, added=added, diff=diff, content=content)
        )
    return events.FilesChanged(call_id or "", tuple(changes), done)


def _file_viewed(id_key: str, value: Json) -> items.Item:
    call_id, path = text_of(value.get(id_key)), text_of(value.get("path"))
    return "unknown" if path is None else events.FileViewed(call_id or "", path)


def _tool_ran(item: Json) -> items.Item:
    call_id, tool = text_of(item.get("id")), text_of(item.get("tool"))
    if call_id is None or tool is None:
        return "unknown"
    content = object_of(item.get("result")).get("content")
    # Dynamic tools keep their answer under another name.
    texts = texts_of(content) or texts_of(item.get("content_items")) or texts_of(item.get("output"))
    ran = text_of(item.get("status")) not in {"declined", "inProgress", "in_progress"}
    paths = paths_in(item.get("arguments"))
    return events.ToolRan(call_id, text_of(item.get("server")), tool, texts, ran, paths)


def _plan_proposed(item: Json) -> items.Item:
    text = text_of(item.get("text"))
    return "quiet" if text is None else events.PlanMessage(text)


ITEMS: Makers = {
    "UserMessage": _typed_message,
    "CommandExecution": lambda item: _command_run("id", item),
    "FileChange": _file_change,
    "McpToolCall": _tool_ran,
    "DynamicToolCall": _tool_ran,
    "CollabAgentToolCall": _tool_ran,
    "ImageView": lambda item: _file_viewed("id", item),
    "Plan": _plan_proposed,
    "EnteredReviewMode": _review_began,
    "ExitedReviewMode": _review_ended,
    **_signals(
        "quiet",
        "AgentMessage Reasoning SubAgentActivity WebSearch ImageGeneration Extension HookPrompt"
        " ContextCompaction Sleep",
    ),
}
"""By type of a completed item."""


BOM = b"\xef\xbb\xbf"
"""Some editors and exports write this at the beginning of a file."""


def record_of(value: Json, *, first: bool) -> tuple[str, Json, bool]:
    """Return kind and payload of a line, and whether it has no envelope (ROL-16).

    `first`: it is the first line, which may be the bare head of the oldest files.
    """
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and is_object(payload):
        return kind, payload, False
    if kind is None and first and isinstance(value.get("id"), str):
        return "session_meta", value, True
    known = isinstance(kind, str) and kind in RESPONSES
    return ("response_item" if known else ""), value, True


def item_of(kind: str, payload: Json, *, bare: bool) -> items.Item:
    """Return the item that a line holds; a `bare` one is as Codex before 0.32 wrote it."""
    if kind == "event_msg":
        return _made(EVENTS, payload.get("type"), payload)
    if kind == "response_item":
        return _made(RESPONSES, payload.get("type"), payload)
    if not bare:
        return _made(LINES, kind, payload)
    if kind == "session_meta":
        stamp = text_of(payload.get("timestamp"))
        return events.SessionMeta(text_of(payload.get("id")), bare=True, timestamp=stamp)
    is_empty = payload.get("type") is None and "record_type" in payload
    return "quiet" if is_empty else "unknown"


def head_of(raw: bytes) -> events.SessionMeta | None:
    """Return the head in the first line of a file, None if that line is not a head."""
    kind, payload, bare = record_of(object_of(load(raw.removeprefix(BOM))), first=True)
    item = item_of(kind, payload, bare=bare)
    return item if isinstance(item, events.SessionMeta) else None


def signal_of(kind: str | None, tag: str | None, inner: str | None) -> items.Signal:
    """Return everything that a line gives when only its beginning is read."""
    if kind == "compacted":
        return "compacted"
    if kind != "response_item":
        return "quiet"
    if tag == "message":
        return "answered" if inner == "assistant" else "given"
    if tag in CALLS:
        return "called"
    if tag in OUTPUTS:
        return "given"
    signal = RESPONSES.get(tag or "", "quiet")
    return "quiet" if callable(signal) else signal


CALLS = names("function_call custom_tool_call local_shell_call")
OUTPUTS = names("function_call_output custom_tool_call_output")
"""The items of calls and outputs: a checkpoint mostly needs more than their beginning."""


def _session_meta(payload: Json) -> items.Item:
    subagent = object_of(object_of(payload.get("source")).get("subagent"))
    spawn = object_of(subagent.get("thread_spawn"))
    parent = text_of(payload.get("parent_thread_id")) or text_of(spawn.get("parent_thread_id"))
    source = source_in(payload)
    return events.SessionMeta(
        session_id=text_of(payload.get("id")),
        cwd=text_of(payload.get("cwd")),
        cli_version=text_of(payload.get("cli_version")),
        originator=text_of(payload.get("originator")),
        thread_source=text_of(payload.get("thread_source")),
        source=source.word,
        background=source.background,
        agent=_agent(payload, spawn),
        paginated=payload.get("history_mode") == "paginated",
        forked_from=text_of(payload.get("forked_from_id")),
        parent_session=parent,
        base=_base(object_of(payload.get("history_base"))),
        inherited_below=whole_of(payload.get("subagent_history_start_ordinal")),
        timestamp=text_of(payload.get("timestamp")),
        git=_git(payload.get("git")),
    )


def _agent(payload: Json, spawn: Json) -> str | None:
    """Return the nickname and the path of a helper."""
    nickname, path = (
        text_of(payload.get(key)) or text_of(spawn.get(key))
        for key in ("agent_nickname", "agent_path")
    )
    return f"{nickname} ({path})" if nickname and path else nickname or path


def _git(git: object) -> tuple[str | None, str | None, str | None] | None:
    if not is_object(git):
        return None
    return (
        text_of(git.get("commit_hash")),
        text_of(git.get("branch")),
        text_of(git.get("repository_url")),
    )


def _base(base: Json) -> events.HistoryBase | None:
    rollout_id = text_of(base.get("thread_id"))
    if rollout_id is None:
        return None
    end_ordinal = whole_of(base.get("end_ordinal_exclusive"))
    return events.HistoryBase(rollout_id, end_ordinal, whole_of(base.get("end_byte_offset")))


LINES: Makers = {
    "session_meta": _session_meta,
    "turn_context": lambda payload: events.TurnContext(
        text_of(payload.get("turn_id")),
        text_of(payload.get("cwd")),
        text_of(payload.get("model")),
        text_of(payload.get("cwd")) or None,
    ),
    "compacted": "compacted",
    "inter_agent_communication": _letter,
    **_signals(
        "quiet",
        "world_state token_usage_record retained_context security_risk_score realtime_item"
        " dynamic_tools_updated inter_agent_communication_metadata guardian_history",
    ),
}
"""By kind of a line, except response items and events."""
