"""Decides the kind and the author of an item of the history (JUN-42, CKP-8).

Codex's items have no field for an author, and people and machines share the role user; so role and
text decide.  A note replaces each image and encoded blob in a user's message (JUN-9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import orjson
from attrs import frozen

from codex_checkpoints.core.agents.codex.injected_text import (
    DATA_URL,
    LeftOut,
    is_human,
    is_image_wrapper,
    is_summary,
    payload_of,
    request_of,
    without_payloads,
)
from codex_checkpoints.core.agents.codex.own_messages import is_ours
from codex_checkpoints.core.fields import Json, list_of, object_of, text_of, texts_of

ItemKind = Literal[
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

AUTHORS: Mapping[ItemKind, Author] = {
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

_BY_TYPE: Mapping[str, ItemKind] = {
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
    """One item of the history that Codex would send.

    `at` is the time when its line was written; `ref` names the line, `seq:12` or the id of the
    user's item.  The summary of an old Codex has no recognisable opening; `is_summary` marks it
    (JUN-15).
    """

    item: Json
    at: str | None = None
    ref: str | None = None
    is_summary: bool = False

    @property
    def kind(self) -> ItemKind:
        """Return the kind of this item."""
        return "summary" if self.is_summary else kind_of(self.item)


def kind_of(item: Json) -> ItemKind:
    """Return the kind of an item."""
    form, role = text_of(item.get("type")) or "", item.get("role")
    if form != "message":
        return _BY_TYPE.get(form, "unknown")
    match role:
        case "user":
            return _of_the_role_user(texts_of(item.get("content")))
        case "assistant":
            return "assistant"
        case "developer" | "system":
            return "instructions"
        case _:
            return "unknown"


def _of_the_role_user(texts: tuple[str, ...]) -> ItemKind:
    if is_human(texts):
        return "user"
    first = texts[0]
    if is_ours(first):
        return "handoff"
    return "summary" if is_summary(first) else "context"


_MEDIA = {"input_image": "image", "input_audio": "audio"}
_PLACES = ("image_url", "audio_url", "file_data")


@frozen
class PlainMessage:
    """The text parts of a message, with a note for each payload."""

    parts: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    says_something: bool

    @property
    def text(self) -> str:
        """Return the parts joined, as Codex joins them."""
        return "".join(self.parts)


def plain_message(item: Json) -> PlainMessage:
    """Return a message without its payloads, and without an editor's text before a request."""
    content = item.get("content")
    parts: list[str] = []
    left_out: list[LeftOut] = []
    says_something = False
    for part in [{"text": content}] if isinstance(content, str) else list_of(content):
        is_media = text_of(object_of(part).get("type")) in _MEDIA
        text = None if is_media else text_of(object_of(part).get("text"))
        if text is None:
            found = _left_out(object_of(part))
            parts.append(f"[left out here: {found.media}, {found.size} bytes]")
            left_out.append(found)
        elif not is_image_wrapper(text):
            request = request_of(text)
            if request != text:
                # The texts before the request are the editor's; a note replaces an image.
                parts = [each for each in parts if each.startswith("[left out here: ")]
                text, says_something = request.lstrip("\n"), False
            kept, words = without_payloads(text, left_out)
            parts.append(kept)
            says_something = says_something or bool(words.strip())
    return PlainMessage(tuple(parts), tuple(left_out), says_something)


def _left_out(part: Json) -> LeftOut:
    media = _MEDIA.get(str(part.get("type")), "attachment")
    place = next((text for key in _PLACES if (text := text_of(part.get(key)))), None)
    if place is None:
        return LeftOut(media, len(orjson.dumps(part)))
    found = DATA_URL.fullmatch(place)
    return (
        LeftOut(media, len(place.encode(errors="replace"))) if found is None else payload_of(found)
    )
