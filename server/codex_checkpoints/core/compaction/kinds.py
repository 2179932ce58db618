"""What an item of the history is, and who wrote it (JUN-42, CKP-8).

Codex's items have no field for an author, and people and machines share the role user; so role and
text decide.  A note replaces each image and encoded blob in a user's message (JUN-9).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import orjson

from codex_checkpoints.core.rollout.contextual import is_human, is_image_wrapper, is_summary
from codex_checkpoints.core.rollout.fields import Json, list_of, object_of, text_of, texts_of
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
    """One item of the history that Codex would send.

    `at` is when its line was written; `ref` names the line, `seq:12` or the id of the user's item.
    """

    item: Json
    at: str | None = None
    ref: str | None = None


def kind_of(item: Json) -> Kind:
    """Return what kind of item this is."""
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


def _of_the_role_user(texts: tuple[str, ...]) -> Kind:
    if is_human(texts):
        return "user"
    first = texts[0]
    if is_ours(first):
        return "handoff"
    return "summary" if is_summary(first) else "context"


_IN_BASE64 = "A-Za-z0-9+/"
_DATA_URL = re.compile(
    r"data:(?P<media>[\w.+-]{1,40}/[\w.+-]{1,60})?(?:;[\w=.+-]{1,60}){0,4}?"
    rf"(?:;base64,(?P<base64>[{_IN_BASE64}_%=-]{{16,}}+)|,(?P<escaped>[\w%.!~*'()+/=-]{{256,}}+))",
    re.ASCII | re.IGNORECASE,
)
_RUN = re.compile(
    rf"(?<![{_IN_BASE64}])[{_IN_BASE64}]{{64,}}+(?:\r?\n[{_IN_BASE64}]{{20,}}+)*+"
    rf"(?:\r?\n[{_IN_BASE64}]{{1,76}}={{1,2}}|={{0,2}})"
)
_LONG_RUN = 1024
_LETTERS_OF_A_BLOB = 24
_BEGINNINGS = ("iVBORw0KGg", "/9j/", "R0lGOD", "UklGR", "JVBERi0")
"""PNG, JPEG, GIF, WebP and PDF in base64: such a run is a payload of any length."""

_MEDIA = {"input_image": "image", "input_audio": "audio"}
_PLACES = ("image_url", "audio_url", "file_data")


@frozen
class LeftOut:
    """A payload that a note replaces: its media type, its size in bytes."""

    media: str
    size: int

    @property
    def note(self) -> str:
        """Return the text that replaces it."""
        return f"[left out here: {self.media}, {self.size} bytes]"


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
    """Return a message without its payloads."""
    content = item.get("content")
    parts: list[str] = []
    left_out: list[LeftOut] = []
    says_something = False
    for part in [{"text": content}] if isinstance(content, str) else list_of(content):
        is_media = text_of(object_of(part).get("type")) in _MEDIA
        text = None if is_media else text_of(object_of(part).get("text"))
        if text is None:
            found = _left_out(object_of(part))
            parts.append(found.note)
            left_out.append(found)
        elif not is_image_wrapper(text):
            kept, words = _without_payloads(text, left_out)
            parts.append(kept)
            says_something = says_something or bool(words.strip())
    return PlainMessage(tuple(parts), tuple(left_out), says_something)


def _left_out(part: Json) -> LeftOut:
    media = _MEDIA.get(str(part.get("type")), "attachment")
    place = next((text for key in _PLACES if (text := text_of(part.get(key)))), None)
    if place is None:
        return LeftOut(media, len(orjson.dumps(part)))
    found = _DATA_URL.fullmatch(place)
    return LeftOut(media, len(place.encode(errors="replace"))) if found is None else _of(found)


def _of(found: re.Match[str]) -> LeftOut:
    encoded = found["base64"]
    size = len(found["escaped"]) if encoded is None else _decoded(encoded)
    return LeftOut((found["media"] or "text/plain").lower(), size)


def _decoded(encoded: str) -> int:
    return len(encoded.rstrip("=")) * 3 // 4


def _without_payloads(text: str, left_out: list[LeftOut]) -> tuple[str, str]:
    """Return the text with notes, and the words alone; extend `left_out`."""
    kept: list[str] = []
    words: list[str] = []
    end = 0
    for start, stop, found in _payloads(text):
        kept += [text[end:start], found.note]
        words.append(text[end:start])
        left_out.append(found)
        end = stop
    return "".join([*kept, text[end:]]), "".join([*words, text[end:]])


def _payloads(text: str) -> Iterator[tuple[int, int, LeftOut]]:
    """Yield where payloads begin and end, in order: URLs that hold data, and bare base64."""
    end = 0
    for url in _DATA_URL.finditer(text):
        yield from _blobs(text, end, url.start())
        yield (*url.span(), _of(url))
        end = url.end()
    yield from _blobs(text, end, len(text))


def _blobs(text: str, start: int, end: int) -> Iterator[tuple[int, int, LeftOut]]:
    for run in _RUN.finditer(text, start, end):
        if _is_blob(run[0]):
            yield (*run.span(), LeftOut("base64", _decoded("".join(run[0].split()))))


def _is_blob(run: str) -> bool:
    """Return whether a run is no long word: a blob has nearly all letters, digits, both cases."""
    if run.startswith(_BEGINNINGS):
        return True
    if len(run) < _LONG_RUN:
        return False
    letters = set(run)
    cases = (str.islower, str.isupper, str.isdigit)
    return len(letters) >= _LETTERS_OF_A_BLOB and all(any(map(is_, letters)) for is_ in cases)
