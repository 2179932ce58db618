"""What one line says, as a typed item.

This is the only module that touches the raw JSON of a rollout.  Rollout text is untrusted, and
every field may be missing or of another type than Codex writes; parsing never fails.  A line that
is no JSON becomes `Unreadable`, a kind of line from the future becomes `Unknown`, a known line
that no checkpoint needs becomes `Quiet`.

Three forms of line occur (ROL-3, ROL-16): `{"timestamp","type","payload"}`, the same with an
`ordinal`, and the bare items of Codex before 0.32.  What a tool call *did* is `tools`' business,
whether a message is the user's that of `contextual`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from attrs import frozen

Json = Mapping[str, Any]


@frozen
class Unreadable:
    """A line that is no JSON object; `reason` is counted, the line is passed over."""

    reason: str


@frozen
class Unknown:
    """A readable line of a kind this version does not know."""

    kind: str


@frozen
class Quiet:
    """A line of a known kind that says nothing a checkpoint keeps."""


@frozen
class HistoryBase:
    """The rollout whose records come before this file's own (ROL-5)."""

    rollout_id: str
    end_ordinal: int | None
    end_offset: int | None


@frozen
class SessionMeta:
    """The head of a file: who this session is and where it worked (ROL-4)."""

    session_id: str | None
    cwd: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    source: str | None = None
    model_provider: str | None = None
    paginated: bool = False
    bare: bool = False
    forked_from: str | None = None
    parent_session: str | None = None
    base: HistoryBase | None = None
    inherited_below: int | None = None
    timestamp: str | None = None


@frozen
class TurnContext:
    """The settings of a turn."""

    turn_id: str | None
    cwd: str | None
    model: str | None


@frozen
class TaskStarted:
    """Codex begins to work on a submission."""

    turn_id: str | None
    window: int | None


@frozen
class TaskEnded:
    """Codex stopped working on it, with or without success."""

    turn_id: str | None
    aborted: bool


@frozen
class RolledBack:
    """The newest `turns` user turns no longer count (ROL-10)."""

    turns: int


@frozen
class UserMessage:
    """A message of role user.

    What a person typed stands in an item or an event of its own; a message of the model's history
    (`in_history`) has role user too, and may be anybody's.
    """

    texts: tuple[str, ...]
    in_history: bool = False
    ref: str | None = None
    turn_id: str | None = None


@frozen
class AssistantMessage:
    """The model said something."""


@frozen
class Tokens:
    """What the last model call used, and the window it had (ROL-9)."""

    total: int | None
    input: int | None
    window: int | None


@frozen
class Compacted:
    """A context window was replaced."""


@frozen
class Named:
    """The thread was given a name (older files)."""

    name: str | None


@frozen
class ToolCall:
    """The model asks for a tool; what came of it stands in a later line.

    Arguments are JSON values, or a text for tools that take one.
    """

    call_id: str
    name: str
    namespace: str | None
    arguments: object
    turn_id: str | None = None


@frozen
class ToolOutput:
    """The answer to a call, as text parts."""

    call_id: str
    texts: tuple[str, ...]


@frozen
class CommandRun:
    """A command with its outcome; `parsed` is Codex's own reading of it, as (type, path)."""

    call_id: str
    argv: tuple[str, ...]
    folder: str | None
    parsed: tuple[tuple[str, str | None], ...] | None
    status: str | None
    exit_code: int | None


@frozen
class Change:
    """One file of a patch: `add`, `update` or `delete`, and where it moved to."""

    path: str
    kind: str
    move_to: str | None = None


@frozen
class FilesChanged:
    """A patch with its outcome."""

    call_id: str
    changes: tuple[Change, ...]
    done: bool


@frozen
class ToolRan:
    """Another tool with its outcome: of an MCP server when there is one."""

    call_id: str
    server: str | None
    tool: str
    texts: tuple[str, ...]
    ran: bool


@frozen
class FileViewed:
    """A file was shown to the model."""

    call_id: str
    path: str


@frozen
class ItemCompleted:
    """The form in which paginated files tell what happened; legacy files have events instead."""

    item: UserMessage | CommandRun | FilesChanged | ToolRan | FileViewed | Unknown | Quiet
    turn_id: str | None = None


Item = (
    Unreadable
    | Unknown
    | Quiet
    | SessionMeta
    | TurnContext
    | TaskStarted
    | TaskEnded
    | RolledBack
    | UserMessage
    | AssistantMessage
    | Tokens
    | Compacted
    | Named
    | ToolCall
    | ToolOutput
    | CommandRun
    | FilesChanged
    | ToolRan
    | FileViewed
    | ItemCompleted
)

QUIET = Quiet()


@frozen
class Parsed:
    """An item with what its envelope says."""

    item: Item
    ordinal: int | None = None
    timestamp: str | None = None


def parse(raw: bytes, *, first: bool = False) -> Parsed:
    """Return what one line says; `first` allows the bare head of the oldest files."""
    value = _load(raw)
    if isinstance(value, Unreadable):
        return Parsed(value)
    if not isinstance(value, dict):
        return Parsed(Unreadable("not_object"))
    kind, payload = value.get("type"), value.get("payload")
    if not isinstance(payload, dict) or not isinstance(kind, str):
        return Parsed(_bare(value, first=first), None, _text(value.get("timestamp")))
    make = LINES.get(kind)
    item = Unknown(kind) if make is None else make(payload)
    return Parsed(item, _whole(value.get("ordinal")), _text(value.get("timestamp")))


# --- lines that need not be parsed yet -----------------------------------------------------------
#
# A quote inside a JSON string is always escaped, so a pattern with bare quotes around a key can
# only match the key itself.  Each function gives None where a line has another shape than Codex
# writes, and the caller then parses it.

_CALL = re.compile(
    rb'"payload":\{"type":"function_call",(?:"status":"\w+",)?(?:"id":"[\w-]+",)?'
    rb'"name":"(?:shell|shell_command|exec_command|container\.exec)","arguments":"'
)
_CALL_ID = re.compile(rb'"call_id":"([\w.:-]{1,256})"')
_PATCHING = (b"apply_patch", b"applypatch", b"*** Begin")
_CWD = re.compile(rb'[{,]"cwd":"([^"\\]{1,4096})"')
_OUTPUT_KEY = b',"aggregated_output":"'
_EXIT_KEY = b'","exit_code":'


def command_call_id(raw: bytes) -> str | None:
    """Return the call id of a line that calls a shell, and surely not to apply a patch."""
    match = _CALL.search(raw, 40, 300)
    if match is None or any(mark in raw for mark in _PATCHING):
        return None
    found = _CALL_ID.search(raw, max(match.end(), raw.rfind(b'","call_id":"')))
    return None if found is None else found[1].decode()


def output_call_id(raw: bytes) -> str | None:
    """Return the call id of a line with the output of a call."""
    found = _CALL_ID.search(raw, 40, 480)
    return None if found is None else found[1].decode()


def context_folder(raw: bytes) -> str | None:
    """Return the folder of a line with the settings of a turn."""
    found = _CWD.search(raw, 40, 800)
    return None if found is None else found[1].decode(errors="replace")


def without_output(raw: bytes) -> bytes:
    """Return the line of a command without what the command printed, when that is long."""
    if len(raw) < 2048:  # noqa: PLR2004 - not worth a copy
        return raw
    start, end = raw.find(_OUTPUT_KEY), raw.rfind(_EXIT_KEY)
    return raw[:start] + raw[end + 1 :] if 0 < start < end else raw


# --- JSON ----------------------------------------------------------------------------------------

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _load(raw: bytes) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Unreadable("not_utf8")
    # orjson refuses a lone surrogate, which Codex may write; everything else it refuses is no
    # JSON for Codex either (ROL-15).
    if _SURROGATE_ESCAPE.search(raw):
        try:
            return _mended(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return Unreadable("not_json")


def _mended(value: object) -> object:
    """Return the value with each lone surrogate as U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mended(part) for part in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _mended(part) for key, part in value.items()}
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(parts: object) -> tuple[str, ...]:
    """Return the texts of content parts, whatever they are called; a string is one part."""
    if isinstance(parts, str):
        return (parts,)
    found = (_text(_object(part).get("text")) for part in _list(parts))
    return tuple(text for text in found if text is not None)


# --- lines ---------------------------------------------------------------------------------------


def _session_meta(payload: Json) -> Item:
    source = payload.get("source")
    spawn = _object(_object(_object(source).get("subagent")).get("thread_spawn"))
    base = payload.get("history_base")
    return SessionMeta(
        session_id=_text(payload.get("id")),
        cwd=_text(payload.get("cwd")),
        cli_version=_text(payload.get("cli_version")),
        originator=_text(payload.get("originator")),
        source=source if isinstance(source, str) else next(iter(_object(source)), None),
        model_provider=_text(payload.get("model_provider")),
        paginated=payload.get("history_mode") == "paginated",
        forked_from=_text(payload.get("forked_from_id")),
        parent_session=_text(payload.get("parent_thread_id"))
        or _text(spawn.get("parent_thread_id")),
        base=_base(base) if isinstance(base, dict) else None,
        inherited_below=_whole(payload.get("subagent_history_start_ordinal")),
        timestamp=_text(payload.get("timestamp")),
    )


def _base(base: Json) -> HistoryBase | None:
    rollout_id = _text(base.get("thread_id"))
    if rollout_id is None:
        return None
    return HistoryBase(
        rollout_id, _whole(base.get("end_ordinal_exclusive")), _whole(base.get("end_byte_offset"))
    )


def _bare(value: Json, *, first: bool) -> Item:
    """Read a line without envelope, as Codex before 0.32 wrote them (ROL-16)."""
    kind = value.get("type")
    if kind is None and first and isinstance(value.get("id"), str):
        meta_time = _text(value.get("timestamp"))
        return SessionMeta(session_id=value["id"], bare=True, timestamp=meta_time)
    if kind is None and "record_type" in value:
        return QUIET
    if isinstance(kind, str) and kind in RESPONSES:
        return _response_item(value)
    return Unknown(str(kind)[:64])


def _turn_context(payload: Json) -> Item:
    return TurnContext(
        _text(payload.get("turn_id")), _text(payload.get("cwd")), _text(payload.get("model"))
    )


def _response_item(payload: Json) -> Item:
    kind = payload.get("type")
    make = RESPONSES.get(kind) if isinstance(kind, str) else None
    return Unknown(f"response_item/{kind}"[:64]) if make is None else make(payload)


def _event(payload: Json) -> Item:
    kind = payload.get("type")
    make = EVENTS.get(kind) if isinstance(kind, str) else None
    return Unknown(f"event_msg/{kind}"[:64]) if make is None else make(payload)


def quiet(_payload: Json) -> Quiet:
    """Read a line of a known kind that says nothing a checkpoint keeps."""
    return QUIET


# --- response items ------------------------------------------------------------------------------


def _message(payload: Json) -> Item:
    role = payload.get("role")
    if role == "user":
        texts = _texts(payload.get("content"))
        return UserMessage(texts, in_history=True, turn_id=_turn_id(payload))
    return AssistantMessage() if role == "assistant" else QUIET


def _turn_id(payload: Json) -> str | None:
    return _text(_object(payload.get("internal_chat_message_metadata_passthrough")).get("turn_id"))


def _function_call(payload: Json) -> Item:
    arguments = _text(payload.get("arguments"))
    value = _load(arguments.encode(errors="replace")) if arguments is not None else None
    return _call(payload, None if isinstance(value, Unreadable) else value)


def _custom_tool_call(payload: Json) -> Item:
    return _call(payload, _text(payload.get("input")))


def _call(payload: Json, arguments: object) -> Item:
    call_id, name = _text(payload.get("call_id")), _text(payload.get("name"))
    if call_id is None or name is None:
        return Unknown("call without id")
    namespace = _text(payload.get("namespace"))
    return ToolCall(call_id, name, namespace, arguments, _turn_id(payload))


def _local_shell_call(payload: Json) -> Item:
    call_id = _text(payload.get("call_id")) or _text(payload.get("id"))
    action = _object(payload.get("action"))
    if call_id is None:
        return Unknown("call without id")
    arguments = {"command": action.get("command"), "workdir": action.get("working_directory")}
    return ToolCall(call_id, "local_shell", None, arguments, _turn_id(payload))


def _output(payload: Json) -> Item:
    call_id = _text(payload.get("call_id"))
    if call_id is None:
        return Unknown("output without id")
    output = payload.get("output")
    if isinstance(output, dict):  # very old files: {"content": …, "success": …}
        output = output.get("content")
    return ToolOutput(call_id, _texts(output))


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
            "agent_message",
            "compaction",
            "compaction_summary",
            "context_compaction",
            "compaction_trigger",
            "ghost_snapshot",
            "web_search_call",
            "image_generation_call",
            "tool_search_call",
            "tool_search_output",
            "additional_tools",
        ),
        quiet,
    ),
}


# --- events --------------------------------------------------------------------------------------


def _task_started(payload: Json) -> Item:
    return TaskStarted(_text(payload.get("turn_id")), _whole(payload.get("model_context_window")))


def _task_complete(payload: Json) -> Item:
    return TaskEnded(_text(payload.get("turn_id")), aborted=False)


def _turn_aborted(payload: Json) -> Item:
    return TaskEnded(_text(payload.get("turn_id")), aborted=True)


def _rolled_back(payload: Json) -> Item:
    return RolledBack(_whole(payload.get("num_turns")) or 0)


def _user_message(payload: Json) -> Item:
    # Versions before 0.5x wrote injected text as user messages too and said so in `kind`.
    if payload.get("kind") not in {None, "plain"}:
        return QUIET
    message = _text(payload.get("message"))
    return UserMessage(() if message is None else (message,))


def _token_count(payload: Json) -> Item:
    info = payload.get("info")
    if not isinstance(info, dict):
        return QUIET
    last = info.get("last_token_usage")
    window = _whole(info.get("model_context_window"))
    if not isinstance(last, dict):
        return QUIET
    return Tokens(_whole(last.get("total_tokens")), _whole(last.get("input_tokens")), window)


def _thread_settings(payload: Json) -> Item:
    settings = _object(payload.get("thread_settings"))
    # The folder of a turn comes from its `turn_context` alone.
    return TurnContext(None, None, _text(settings.get("model")))


def _named(payload: Json) -> Item:
    return Named(_text(payload.get("thread_name")) or _text(payload.get("name")))


def _patch_end(payload: Json) -> Item:
    done = payload.get("success") is True or payload.get("status") == "completed"
    return _files_changed(_text(payload.get("call_id")), payload, done=done)


def _command_end(payload: Json) -> Item:
    return _command_run(_text(payload.get("call_id")), payload)


def _mcp_end(payload: Json) -> Item:
    call_id = _text(payload.get("call_id"))
    invocation, result = _object(payload.get("invocation")), _object(payload.get("result"))
    tool = _text(invocation.get("tool"))
    if call_id is None or tool is None:
        return Unknown("call without id")
    texts = _texts(_object(result.get("Ok")).get("content"))
    return ToolRan(call_id, _text(invocation.get("server")), tool, texts, ran=True)


def _view_end(payload: Json) -> Item:
    return _file_viewed(_text(payload.get("call_id")), payload)


def _item_completed(payload: Json) -> Item:
    item = _object(payload.get("item"))
    kind = item.get("type")
    make = ITEMS.get(kind) if isinstance(kind, str) else None
    if make is None:
        return Unknown(f"item/{kind}"[:64])
    made = make(item)
    return made if made is QUIET else ItemCompleted(made, _text(payload.get("turn_id")))


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


# --- items of paginated files --------------------------------------------------------------------


def _typed_message(item: Json) -> UserMessage:
    """Read what a person typed; images and mentions have no text."""
    parts = [part for part in _list(item.get("content")) if _object(part).get("type") == "text"]
    return UserMessage(_texts(parts), ref=_text(item.get("id")))


def _command_run(call_id: str | None, value: Json) -> CommandRun | Unknown:
    command = value.get("command")
    words = [command] if isinstance(command, str) else _list(command)
    if call_id is None or not words or not all(isinstance(word, str) for word in words):
        return Unknown("command without words")
    parsed = value.get("parsed_cmd")
    return CommandRun(
        call_id,
        tuple(words),
        _text(value.get("cwd")),
        tuple(
            (_text(_object(part).get("type")) or "unknown", _text(_object(part).get("path")))
            for part in parsed
        )
        if isinstance(parsed, list) and parsed
        else None,
        _text(value.get("status")),
        value.get("exit_code") if type(value.get("exit_code")) is int else None,
    )


def _files_changed(call_id: str | None, value: Json, *, done: bool) -> FilesChanged:
    changes = tuple(
        Change(path, _text(_object(change).get("type")) or "update", _text(move))
        for path, change in _object(value.get("changes")).items()
        for move in (_object(change).get("move_path"),)
    )
    return FilesChanged(call_id or "", changes, done)


def _file_viewed(call_id: str | None, value: Json) -> FileViewed | Unknown:
    path = _text(value.get("path"))
    return Unknown("view without path") if path is None else FileViewed(call_id or "", path)


def _tool_ran(item: Json) -> ToolRan | Unknown:
    call_id, tool = _text(item.get("id")), _text(item.get("tool"))
    if call_id is None or tool is None:
        return Unknown("call without id")
    result = item.get("result")
    content = _object(result).get("content") if isinstance(result, dict) else None
    # Dynamic tools keep their answer under a name of their own.
    texts = _texts(content) or _texts(item.get("content_items")) or _texts(item.get("output"))
    ran = item.get("status") not in {"declined", "inProgress", "in_progress"}
    return ToolRan(call_id, _text(item.get("server")), tool, texts, ran)


ITEMS: dict[
    str, Callable[[Json], UserMessage | CommandRun | FilesChanged | ToolRan | FileViewed | Unknown | Quiet]
] = {
    "UserMessage": _typed_message,
    "CommandExecution": lambda item: _command_run(_text(item.get("id")), item),
    "FileChange": lambda item: _files_changed(
        _text(item.get("id")), item, done=item.get("status") in {None, "completed"}
    ),
    "McpToolCall": _tool_ran,
    "DynamicToolCall": _tool_ran,
    "CollabAgentToolCall": _tool_ran,
    "ImageView": lambda item: _file_viewed(_text(item.get("id")), item),
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


LINES: dict[str, Callable[[Json], Item]] = {
    "session_meta": _session_meta,
    "turn_context": _turn_context,
    "response_item": _response_item,
    "event_msg": _event,
    "compacted": lambda _payload: Compacted(),
    **dict.fromkeys(
        (
            "world_state",
            "token_usage_record",
            "retained_context",
            "security_risk_score",
            "realtime_item",
            "dynamic_tools_updated",
            "inter_agent_communication",
            "inter_agent_communication_metadata",
            "guardian_history",
        ),
        quiet,
    ),
}
