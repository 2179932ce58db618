"""Every kind of record that Codex is known to write, with a text in each of its free fields."""

from typing import Any

Json = dict[str, Any]


def response_items(text: str) -> list[Json]:
    """Return the payloads of `response_item`."""
    said = [{"type": "output_text", "text": text, "annotations": [text], "logprobs": [text]}]
    found: list[Json] = [
        {"type": "message", "role": "assistant", "content": said, "phase": "commentary"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
            "content": [{"type": "reasoning_text", "text": text}],
            "encrypted_content": None,
        },
        {"type": "function_call", "name": "exec_command", "namespace": text, "arguments": text},
        {"type": "function_call", "name": text, "arguments": '{"cmd":"echo ' + text + '"}'},
        {"type": "function_call_output", "output": text},
        {"type": "function_call_output", "output": [{"type": "input_text", "text": text}]},
        {"type": "custom_tool_call", "name": "apply_patch", "input": text, "status": "completed"},
        {"type": "custom_tool_call_output", "name": "exec", "output": text},
        {
            "type": "local_shell_call",
            "status": "completed",
            "action": {
                "type": "exec",
                "command": ["echo", text],
                "working_directory": text,
                "env": {"A": text, text: "B"},
                "user": text,
            },
        },
        {"type": "tool_search_call", "execution": text, "arguments": {"q": [text]}},
        {"type": "tool_search_output", "tools": [{"name": text, "description": text}]},
        {"type": "web_search_call", "action": {"type": "search", "queries": [text]}},
        {
            "type": "web_search_call",
            "action": {"type": "find_in_page", "url": text, "pattern": text},
        },
        {"type": "image_generation_call", "revised_prompt": text, "result": "aW1hZ2U="},
        {
            "type": "agent_message",
            "author": text,
            "recipient": text,
            "content": [{"type": "input_text", "text": text}],
        },
        {
            "type": "ghost_snapshot",
            "ghost_commit": {"id": text, "preexisting_untracked_files": [text]},
        },
    ]
    return found


def event_messages(text: str) -> list[Json]:
    """Return the payloads of `event_msg`."""
    change = {"type": "update", "unified_diff": text, "move_path": text}
    items: list[Json] = [
        {"type": "UserMessage", "content": [{"type": "text", "text": text}]},
        {"type": "UserMessage", "content": [{"type": "skill", "name": text, "path": text}]},
        {"type": "AgentMessage", "content": [{"type": "Text", "text": text}]},
        {"type": "Reasoning", "summary_text": [text], "raw_content": [text]},
        {"type": "Plan", "text": text},
        {
            "type": "CommandExecution",
            "command": ["echo", text],
            "cwd": f"file:///home/{text}",
            "parsed_cmd": [text],
            "interaction_input": text,
            "stdout": text,
            "stderr": text,
            "aggregated_output": text,
            "formatted_output": text,
        },
        {"type": "FileChange", "changes": {text: change}, "stdout": text, "stderr": text},
        {
            "type": "McpToolCall",
            "server": text,
            "arguments": {"a": text},
            "error": {"message": text},
        },
        {"type": "HookPrompt", "fragments": [{"text": text}]},
        {"type": "WebSearch", "query": text},
        {"type": "ImageView", "path": text},
    ]
    found: list[Json] = [
        {"type": "task_started", "turn_id": "t", "trace_id": text},
        {"type": "task_complete", "turn_id": "t", "last_agent_message": text, "error": text},
        {"type": "turn_aborted", "turn_id": "t", "reason": "interrupted"},
        {"type": "token_count", "info": None, "rate_limits": {"plan_type": text}},
        {"type": "thread_rolled_back", "num_turns": 0},
        {"type": "thread_settings_applied", "thread_settings": {"cwd": text, "model": text}},
        {"type": "thread_goal_updated", "threadId": "t", "goal": {"objective": text}},
        {
            "type": "user_message",
            "message": text,
            "images": [],
            "local_images": [text],
            "local_audio": [text],
            "text_elements": [{"placeholder": text}],
        },
        {"type": "agent_message", "message": text, "memory_citation": {"entries": [text]}},
        {"type": "agent_reasoning", "text": text},
        {"type": "agent_reasoning_raw_content", "text": text},
        {"type": "exec_command_end", "command": ["echo", text], "stdout": text, "cwd": text},
        {"type": "patch_apply_end", "stdout": text, "stderr": text, "changes": {text: change}},
        {
            "type": "mcp_tool_call_end",
            "invocation": {"server": text, "tool": text, "arguments": {text: [text]}},
            "result": {"Err": text},
        },
        {"type": "web_search_end", "query": text, "action": {"query": text}, "results": [text]},
        {"type": "image_generation_end", "revised_prompt": text, "result": "", "saved_path": text},
        {"type": "sub_agent_activity", "agent_path": text, "kind": "started"},
        {"type": "entered_review_mode", "target": {"type": "custom", "instructions": text}},
        {"type": "exited_review_mode", "review_output": {"findings": [{"body": text}]}},
        {"type": "context_compacted"},
        {"type": "error", "message": text},
        {"type": "item_completed", "item": {"type": "Plan", "text": text}},
    ]
    return found + [{"type": "item_completed", "item": item} for item in items]


def lines_of_other_types(text: str) -> list[tuple[str, Json]]:
    """Return the types and payloads of the other lines."""
    usage = {"account_id": text, "requested_model": text}
    answer = {"question": text, "answer": text}
    return [
        ("turn_context", {"cwd": text, "model": text, "user_instructions": text}),
        ("compacted", {"message": text, "replacement_history": response_items(text)}),
        ("world_state", {"full": True, "state": {text: [text]}}),
        ("inter_agent_communication_metadata", {"trigger_turn": True, "extra": text}),
        ("inter_agent_communication", {"author": text, "recipient": text, "content": text}),
        ("token_usage_record", {"thread_id": "t", "usage": {}, **usage}),
        ("retained_context", {"type": "verified_answer", "questions": [answer]}),
        ("security_risk_score", {"reasons": [text]}),
        ("realtime_item", {"transcript": text}),
    ]


def all_records(text: str) -> list[Json]:
    """Return a record of every kind, without time and ordinal."""
    return [
        *({"type": "response_item", "payload": each} for each in response_items(text)),
        *({"type": "event_msg", "payload": each} for each in event_messages(text)),
        *({"type": kind, "payload": each} for kind, each in lines_of_other_types(text)),
        {"type": "response_item", "payload": response_items(text)[0], "metadata": {"note": text}},
    ]
