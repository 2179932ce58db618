"""Finds out from the first bytes of a line which facts it may have (rules, "Lists").

The reader of both ends of a file parses only the lines that may have a fact it does not know yet.
"""

from __future__ import annotations

import re

TIME, PROMPT, TURN, TOKENS, WINDOW, MODEL, NAME, FOLDER = (1 << bit for bit in range(8))
ALL = (1 << 8) - 1
"""The facts of a session that a line may give."""

_ENVELOPE = rb'\{"timestamp":"[^"]{0,64}+",(?:"ordinal":[0-9]{1,15},)?"type":"'
_RESPONSE = (
    rb'response_item","payload":\{"type":"(?:(agent_message)'
    rb'|(function_call_output",(?:"id":"[^"]*+",)?"name)|[a-z_]+)'
)
"""Some items of the history are requests: messages of agents, or an approved plan."""
_ITEM = rb'item_completed","thread_id":"[^"]{0,64}+","turn_id":"[^"]{0,64}+","item":\{'
# If a backslash precedes one of these quotes, the line is not JSON and has no facts.
kind_of = re.compile(
    _ENVELOPE
    + rb"()(?:"
    + _RESPONSE
    + rb'|world_state|token_usage_record|(turn_context)|event_msg","payload":\{'
    rb'"type":"(?:agent_[a-z_]*|exec_command_end|mcp_tool_call_end|patch_apply_end|web_search_end'
    rb"|view_image_tool_call|" + _ITEM + rb'"type":"(?!UserMessage")[A-Za-z]+|([a-z_]+)))"'
).match
"""Matches a line as Codex writes it; the first group is the start of its kind.

A line without another group only has a time, as nearly all do.
"""
QUIET = (
    b'token_usage_record"',
    b'event_msg","payload":{"type":"agent_',
    b'response_item","payload":{"type":"message"',
    b'response_item","payload":{"type":"reasoning"',
    b'response_item","payload":{"type":"function_call"',
    b'response_item","payload":{"type":"custom_tool_call',
)
"""The continuation of most of these lines."""
HANDED_OVER = b'function_call_output"'
"""Such a line may be a plan, so it is always matched."""

bare_kind_of = re.compile(
    rb'\{"(?:record_type"|type":"(?:reasoning"|[a-z_]*call(?:_output)?"'
    rb'|message",(?:"id":(?:null|"[^"]*+"),)?"role":"assistant"))'
).match
"""Matches most lines without an envelope that are not messages of a user."""

_TELLS = {
    b"token_count": TIME | TOKENS | WINDOW,
    b"turn_context": TIME | MODEL | FOLDER,
    b"thread_settings_applied": TIME | MODEL | FOLDER,
    **dict.fromkeys((b"task_started", b"turn_started"), TIME | PROMPT | TURN | WINDOW),
    **dict.fromkeys((b"task_complete", b"turn_complete", b"turn_aborted"), TIME | PROMPT | TURN),
    b"agent_message": TIME | PROMPT,
    b"user_message": TIME | PROMPT | TURN,
    b"thread_name_updated": TIME | NAME,
}
"""The facts that some lines give, by the type of their event or their kind."""


def of_kind(kind: re.Match[bytes] | None) -> int:
    """Return the facts that a line of this kind may have."""
    if kind is None:
        return ALL
    group = kind.lastindex or 1
    return _TELLS.get(kind[group], ALL) if group > 1 else TIME
