"""Reads the title of a session from its first prompt, in the words of the person who typed it."""

from __future__ import annotations

import re

from codex_checkpoints.core.requests import heading_of

PICTURE = "[Image]"
"""The name of a prompt that is only a picture, as in Codex's own list."""

_LOOKED_AT = 1 << 14
"""Number of characters that are searched for a title, which is much shorter."""

_USER_INPUT = re.compile(r"\s*## User Input[ \t]*\n\s*```[a-z]*\n(.*?\S.*?)\n```", re.DOTALL)
"""A template for prompts, with the person's words in a block."""

_PLAN_FOLLOWS = re.compile(
    r"\s*(?:(?:please )?implement this plan:|a previous agent produced the plan below[^\n]*)"
    r"[ \t]*\n",
    re.IGNORECASE,
)

_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\((?!https?:)[^()\s]{1,1024}\)")
"""A link to a file, a skill, a plugin or another conversation, which Codex makes of a mention."""


def title_in(request: str) -> str:
    """Return the words of a prompt that name its session."""
    text = request[:_LOOKED_AT]
    plan = _PLAN_FOLLOWS.match(text)
    if plan is not None and text[plan.end() :].strip():
        text = heading_of(text[plan.end() :])
    given = _USER_INPUT.match(text)
    return _LINK.sub(r"\1", text if given is None else given[1])
