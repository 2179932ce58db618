"""Redacts the lines of a session for another machine, one by one.

A line stays one line of JSON, and no line is added or removed, so that positions and ordinals stay.
Secrets are redacted (DSC-81), in values and in keys.  Images, recordings, other binary data, text
that only the owner's account can decrypt, and unreadable lines are dropped: a quiet record replaces
each.

The same line gives the same bytes on every machine: the hashes of a pushed history depend on that.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import orjson
from attrs import Factory, define

from codex_checkpoints.core.checkpoint.redaction import (
    MARK,
    RULES_DIGEST,
    may_hold_secret,
    secrets_across,
    secrets_of_part,
)
from codex_checkpoints.core.fields import Json, is_list, is_object, load, object_of, text_of

LONGEST_TEXTS = 10
"""Number of the longest texts that a preview shows, each once."""

SHORTEST_SHOWN = 40
"""Code points of a text that a preview may show: shorter ones are ids and names."""

SHOWN = 160
"""Code points that a preview shows of a long text."""

REDACTION = f"6 {RULES_DIGEST}"
"""The inputs of redaction: this module's version, incremented with each change, and the rules."""

PRIVATE_KEY = "private_key"
"""The kind of a secret that is refused and never only redacted."""

IMAGE = "[image left out]"
AUDIO = "[audio left out]"
BINARY = "[binary data left out]"

_COMPARED = ("id", "Id", "type", "role")
"""The ends of keys whose values Codex compares: no neighbour makes a secret of these."""

_SUMMARIES = frozenset({"compaction", "compaction_summary", "context_compaction"})
_ENCRYPTED_ITEMS = _SUMMARIES | {"reasoning", "encrypted_content"}
"""Items, and parts of them, that have no content without their encrypted text."""

_QUIET: Json = {"type": "token_count", "info": None, "rate_limits": None}
"""A record without content, of a type that Codex writes often."""

_DROPPED = (b"encrypted_content", b"image", b"audio", b'"session_meta"', b'"compacted"')
"""A line without these has nothing to drop."""

_HIDING = (b"\\u", b"\\/")
"""Escapes that may hide a hint of a secret."""

_DATA_MEDIA = re.compile(
    r"data:(image|audio)/[\w.+-]{1,40}(?:;[\w=.-]{1,40})*,[^\s\"'()<>]*", re.IGNORECASE
)
_MEDIA = re.compile("(image|audio)/", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]*@")

_BINARY_FROM = 4096
"""Characters of base64 in a value that is binary data, of whatever type its part is."""

_BINARY_CHARS = 32
"""Binary data in base64 has more different characters; a number in hex has fewer."""

_BINARY = re.compile(
    r"(?:data:[\w.+/-]{1,80}(?:;[\w=.-]{1,40})*,)?"
    rf"[A-Za-z0-9+/_-]{{{_BINARY_FROM},}}={{0,2}}"
)
_BINARY_RUN = re.compile(rb'[",][A-Za-z0-9+/_-]{%d}' % _BINARY_FROM)
"""In every line with such a value; it is tried only where a value or a data URL begins."""

_MADE_IMAGES = frozenset({"image_generation_call", "image_generation_end"})
"""Items whose `result` is an image."""

_LONGEST_NAME = 64
_LONGEST_CACHED = 1 << 13
_LONGEST_CHECKED = 1 << 18
"""Bytes of a line, above which its texts are only searched one by one, to save memory."""

_BETWEEN = ", "
_CONTEXT_CHARS = 4096
"""Longer values are searched without the keys and values beside them."""


_Key = TypeVar("_Key", str, int)


_Found = tuple[Sequence[tuple[int, int, str]], bool]
_NOTHING: _Found = (), False


class LongText(NamedTuple):
    """A long text that leaves the machine: its length, its line, and its beginning."""

    chars: int
    line: int
    beginning: str


class FoundSecret(NamedTuple):
    """A secret that was redacted: its kind, and the number of its line, from 1."""

    kind: str
    line: int


@define
class LineRedactor:
    """Redacts lines in order, and counts the changes.

    `left_out` counts the dropped parts: `images`, `audio`, `binary`, `encrypted`, `unreadable`
    lines.
    `lost_summary`: the summary of the newest compaction that was read was dropped.
    """

    lines: int = 0
    secrets: list[FoundSecret] = Factory(list[FoundSecret])
    left_out: Counter[str] = Factory(Counter[str])
    lost_summary: bool = False
    _is_clean: bool = False
    _has_hint: bool = False
    """Whether a text of the value that is being read has a hint of a secret."""
    _longest: list[LongText] = Factory(list[LongText])

    @property
    def longest(self) -> tuple[LongText, ...]:
        """Return the longest texts, the longest first."""
        return tuple(sorted(self._longest, key=lambda each: (-each.chars, each.line)))

    @property
    def kinds(self) -> dict[str, int]:
        """Return how many secrets of each kind were redacted, by kind."""
        counts = Counter(each.kind for each in self.secrets)
        return {kind: counts[kind] for kind in sorted(counts)}

    def redacted(self, line: bytes) -> bytes:
        """Return a line, without LF, as it may leave."""
        self.lines += 1
        self._is_clean = _is_clean(line)
        record = load(line)
        is_plain = self._is_clean and not any(each in line for each in _DROPPED)
        if is_plain and len(line) <= self._least() and is_object(record) and not _has_run(line):
            return line
        if is_object(record):
            try:
                return _line(self._record(record))
            except RecursionError:
                pass
        self.left_out["unreadable"] += 1
        return _line(_quiet({}))

    def text(self, text: str | None) -> str | None:
        """Return a text about the session as it may leave; it counts as line 0."""
        if text is None:
            return None
        lines, self.lines, self._is_clean = self.lines, 0, False
        try:
            return self._text(text)
        finally:
            self.lines = lines

    def url(self, url: str | None) -> str | None:
        """Return the address of a repository without a user and a password."""
        return None if url is None else self.text(_USER_IN_URL.sub("", url))

    def _record(self, record: Json) -> Json:
        payload = object_of(record.get("payload"))
        kind = record.get("type")
        if kind == "response_item" and _is_encrypted(payload):
            self._drop_encrypted(payload)
            return _quiet(record)
        if kind == "compacted":
            self.lost_summary = False
        found = self._object(record)
        if kind == "session_meta":
            return self._without_user_in_url(found)
        return found

    def _without_user_in_url(self, record: Json) -> Json:
        payload = object_of(record.get("payload"))
        git = object_of(payload.get("git"))
        url = text_of(git.get("repository_url"))
        if url is None:
            return record
        git = {**git, "repository_url": _USER_IN_URL.sub("", url)}
        return {**record, "payload": {**payload, "git": git}}

    def _drop_encrypted(self, item: Json) -> None:
        self.left_out["encrypted"] += 1
        if item.get("type") in _SUMMARIES:
            self.lost_summary = True

    def _drop_media(self, media: re.Match[str]) -> str:
        """Count an image or a recording; return the text that replaces it."""
        is_image = media[1].lower() == "image"
        self.left_out["images" if is_image else "audio"] += 1
        return IMAGE if is_image else AUDIO

    # --- JSON values -----------------------------------------------------------------------------

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            if _is_binary(value):
                self.left_out["binary"] += 1
                return BINARY
            return self._text(value)
        if is_list(value):
            return self._list(value)
        return self._object(value) if is_object(value) else value

    def _list(self, values: list[object]) -> list[object]:
        found: list[object] = []
        before, self._has_hint = self._has_hint, False
        for value in values:
            if is_object(value) and _is_encrypted(value):
                self._drop_encrypted(value)
            elif isinstance(value, str) and (media := _DATA_MEDIA.fullmatch(value)):
                self._drop_media(media)
            else:
                found.append(self._value(value))
        if self._has_hint:
            found = list(self._in_context(dict(enumerate(found))).values())
        self._has_hint |= before
        return found

    def _object(self, fields: Json) -> Json:
        left_out = _media_of(fields)
        if left_out is not None:
            self.left_out["images" if left_out is IMAGE else "audio"] += 1
            is_input = fields.get("type") in {"input_image", "input_audio"}
            return {"type": "input_text" if is_input else "text", "text": left_out}
        found: dict[str, object] = {}
        before, self._has_hint = self._has_hint, False
        for key, value in fields.items():
            if key == "encrypted_content":
                if value is not None:
                    self.left_out["encrypted"] += 1
            elif key == "result" and fields.get("type") in _MADE_IMAGES and value:
                self.left_out["images"] += 1
                found[key] = ""
            elif key == "blob" and value and (media := _MEDIA.match(_media_type(fields))):
                self._drop_media(media)
                found[key] = ""
            else:
                found[self._text(key)] = self._value(value)
        if self._has_hint:
            found = self._in_context(found)
        self._has_hint |= before
        return found

    def _in_context(self, fields: Mapping[_Key, object]) -> dict[_Key, object]:
        """Redact texts that are a secret because of the key or the text beside them.

        `{"password": "x"}`, `["--token", "x"]`, `{"name": "API_KEY", "value": "x"}`: such a text is
        replaced whole.  Texts that are secrets by themselves have been redacted before.
        """
        parts: list[str] = []
        places: list[tuple[_Key, int, int]] = []
        at = 0
        for key, value in fields.items():
            if not isinstance(value, str) or not 0 < len(value) <= _CONTEXT_CHARS:
                continue
            name = f"{_quoted(key)}: " if isinstance(key, str) else ""
            part = name + _quoted(value)
            places.append((key, at + len(name), at + len(part)))
            parts.append(part)
            at += len(part) + len(_BETWEEN)
        known = dict(fields)
        text = _BETWEEN.join(parts)
        is_short = len(text) <= _LONGEST_CACHED
        secrets = _secrets_across_names(text) if is_short else secrets_across(text)
        for start, behind, kind in secrets:
            for key, begin, end in places:
                is_compared = isinstance(key, str) and key.endswith(_COMPARED)
                if begin < behind and start < end and not is_compared and known[key] != MARK:
                    known[key] = MARK
                    self.secrets.append(FoundSecret(kind, self.lines))
        return known

    def _text(self, text: str) -> str:
        lower = text.lower()
        if "data:image/" in lower or "data:audio/" in lower:
            text = _DATA_MEDIA.sub(self._drop_media, text)
        parts: list[str] = []
        end = 0
        found, has_hint = _NOTHING if self._is_clean else _secrets_in(text)
        self._has_hint |= has_hint
        for start, behind, kind in found:
            self.secrets.append(FoundSecret(kind, self.lines))
            parts += [text[end:start], MARK]
            end = behind
        leaving = "".join(parts) + text[end:] if parts else text
        self._see(leaving)
        return leaving

    def _least(self) -> int:
        """Return the code points that a text must exceed to be among the longest."""
        return self._longest[0].chars if len(self._longest) == LONGEST_TEXTS else SHORTEST_SHOWN

    def _see(self, text: str) -> None:
        """Keep a text if it is among the longest; a repeated one is kept once."""
        if len(text) <= self._least():
            return
        entry = LongText(len(text), self.lines, text[:SHOWN])
        if any((each.chars, each.beginning) == entry[::2] for each in self._longest):
            return
        if len(self._longest) < LONGEST_TEXTS:
            heapq.heappush(self._longest, entry)
        else:
            heapq.heapreplace(self._longest, entry)


def _is_clean(line: bytes) -> bool:
    """Return whether no text in a line can hold a secret: quick, and False for many clean lines."""
    if len(line) > _LONGEST_CHECKED or any(each in line for each in _HIDING):
        return False
    try:
        return not may_hold_secret(line.decode())
    except UnicodeDecodeError:
        return False


def _secrets_in(text: str) -> _Found:
    """Return the secrets of a text, and whether it has a hint that concerns the texts beside it.

    Many texts come again, so the results are cached.  Short ones are names; a longer one is
    repeated by the next turn or by another kind of record.
    """
    if len(text) <= _LONGEST_NAME:
        return _secrets_in_name(text)
    return _secrets_in_text(text) if len(text) <= _LONGEST_CACHED else secrets_of_part(text)


_secrets_in_name = lru_cache(maxsize=4096)(secrets_of_part)
_secrets_in_text = lru_cache(maxsize=128)(secrets_of_part)
_secrets_across_names = lru_cache(maxsize=128)(secrets_across)


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _is_encrypted(item: Json) -> bool:
    return item.get("type") in _ENCRYPTED_ITEMS and bool(text_of(item.get("encrypted_content")))


def _has_run(line: bytes) -> bool:
    """Return whether a line may have binary data in base64."""
    return len(line) >= _BINARY_FROM and _BINARY_RUN.search(line) is not None


def _is_binary(text: str) -> bool:
    """Return whether a value is binary data in base64, also as a data URL."""
    return (
        len(text) >= _BINARY_FROM
        and _BINARY.fullmatch(text) is not None
        and len(set(text)) > _BINARY_CHARS
    )


def _media_of(part: Json) -> str | None:
    """Return the replacement of an image or a recording with its bytes; None for another part."""
    match part.get("type"):
        case "input_image":
            return IMAGE
        case "image" if any(part.get(key) for key in ("data", "source", "image_url")):
            return IMAGE
        case "input_audio":
            return AUDIO
        case "audio" if any(part.get(key) for key in ("data", "source", "audio_url")):
            return AUDIO
        case _:
            return None


def _media_type(resource: Json) -> str:
    """Return the media type of a resource that a tool's result embeds; empty if it has none."""
    return text_of(resource.get("mimeType")) or text_of(resource.get("mime_type")) or ""


def _quiet(record: Json) -> Json:
    """Return the record that replaces a dropped one, with its time and ordinal."""
    kept = {key: record[key] for key in ("timestamp", "ordinal") if key in record}
    return {**kept, "type": "event_msg", "payload": _QUIET}


def quiet_line(line: bytes) -> bytes:
    """Return the line that replaces one which must not count twice."""
    return _line(_quiet(object_of(load(line))))


def _line(record: Json) -> bytes:
    return orjson.dumps(record)
