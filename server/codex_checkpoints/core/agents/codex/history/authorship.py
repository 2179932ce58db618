"""Decides who wrote a message of the history, as Codex sees it; a rollback depends on that.

`rollout.contextual` recognises more kinds of machine text in user messages.  Here only the
distinctions count that Codex makes itself.
"""

from __future__ import annotations

import re

from codex_checkpoints.core.agents.codex.history.items import Item, texts
from codex_checkpoints.core.agents.codex.injected_text import has_summary_prefix
from codex_checkpoints.core.fields import is_object, list_of, load, object_of, text_of

_ENDS = 1024
"""Number of characters of each end of a long text that are examined."""

_IGNORE_CASE = re.ASCII | re.IGNORECASE
_INJECTED = re.compile(
    r"""
      \# [ ]AGENTS\.md[ ]instructions .* </INSTRUCTIONS>
    | <(?P<tag> environment_context | skill | user_shell_command | turn_aborted
        | subagent_notification | goal_context | recommended_plugins | tools
        | skills_instructions )> .* </(?P=tag)>
    """,
    re.VERBOSE | re.DOTALL | _IGNORE_CASE,
)
_INJECTED_EXACTLY = re.compile(
    r"""
      <(?P<tag> external_[^<>]* )> .* </(?P=tag)>
    | <codex_internal_context[ ]source="[a-z][a-z0-9_]*"> .* </codex_internal_context>
    | <hook_prompt[ ](?:[^<>]*[ ])? hook_run_id=(?:"[^"<>]+"|'[^'<>]+') [^<>]*> .* </hook_prompt>
    """,
    re.VERBOSE | re.DOTALL,
)
_WARNING = re.compile(
    r"Warning: (?=[^\n]*\Z)(?:.*unified exec process|apply_patch was |.*account was flagged)"
)
_STANDING = (
    "<permissions instructions>",
    "<model_switch>",
    "<apps_instructions>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<environments_instructions>",
    "<git_attribution>",
    "<plugins_instructions>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<tools>",
    "<personality_spec>",
    "<token_budget>",
    "<context_window>",
    "<context_window_guidance>",
    "<rollout_budget>",
)
"""The beginnings of developer messages that state standing context."""


def begins_turn(item: Item) -> bool:
    """Return whether a rollback may cut at an item (a prompt, an agent's message)."""
    if item["type"] == "agent_message":
        return True
    if item["type"] != "message":
        return False
    return is_prompt(item) or (item["role"] == "assistant" and _is_letter(item))


def states_context(item: Item) -> bool:
    """Return whether an item is context written with the prompt that follows it."""
    if item["type"] != "message":
        return False
    if item["role"] == "user":
        return any(map(_is_injected, texts(item)))
    parts = texts(item) if item["role"] == "developer" else ()
    return any(part.lstrip()[:_ENDS].lower().startswith(_STANDING) for part in parts)


def is_prompt(item: Item) -> bool:
    """Return whether an item is a user message that a compaction keeps."""
    if item["type"] != "message" or item["role"] != "user":
        return False
    parts = texts(item)
    return not any(map(_is_injected, parts)) and not (parts and has_summary_prefix(parts[0]))


def _is_injected(part: str) -> bool:
    """Return whether Codex wrote a part of a user message as context."""
    if part[:1] not in " \t\r\n#<W":  # fast: few prompts begin like this
        return False
    text = part.strip()
    if len(text) > 2 * _ENDS:
        text = text[:_ENDS] + text[-_ENDS:]
    return bool(
        _INJECTED.fullmatch(text) or _INJECTED_EXACTLY.fullmatch(text) or _WARNING.match(text)
    )


def _is_letter(item: Item) -> bool:
    """Return whether an assistant's message is a JSON message to another agent."""
    parts = list_of(item.get("content"))
    text = text_of(object_of(parts[0]).get("text")) if len(parts) == 1 else None
    if text is None or not text.lstrip().startswith("{"):
        return False
    letter = load(text.encode(errors="replace"))
    return is_object(letter) and {"author", "recipient", "content", "trigger_turn"} <= letter.keys()
