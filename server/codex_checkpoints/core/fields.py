"""Reads JSON from the bytes of a line, and its fields.

Rollout text is untrusted: any field may be missing or have another type than Codex writes.  The
functions `…_of` take any value and return one of the type they name, or an empty one or None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import TypeGuard, TypeVar

import orjson
from attrs import frozen

Json = Mapping[str, object]

NOTHING: Json = {}

_LARGEST = 1 << 53
"""Clients that read numbers as doubles cannot distinguish whole numbers from here on."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@frozen
class UnreadableLine:
    """A line that is not a JSON object, and the reason that is counted for it."""

    reason: str


def load(raw: bytes) -> object:
    """Return the value of a JSON text, or `UnreadableLine`."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return UnreadableLine("not_utf8")
    # orjson refuses a lone surrogate, which Codex may write.  Codex itself refuses everything else
    # that orjson refuses (ROL-15).
    if b"\0" in raw:
        return UnreadableLine("zero_bytes")
    if _SURROGATE_ESCAPE.search(raw):
        try:
            return _mended(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return UnreadableLine("not_json")


def _mended(value: object) -> object:
    """Return the value with U+FFFD for each lone surrogate."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if is_list(value):
        return [_mended(part) for part in value]
    if is_object(value):
        return {_SURROGATE.sub("\ufffd", key): _mended(part) for key, part in value.items()}
    return value


def names(text: str) -> frozenset[str]:
    """Return the names that a text lists."""
    return frozenset(text.split())


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


def text_of(value: object) -> str | None:
    """Return a text or None."""
    return value if isinstance(value, str) else None


def content_hash(text: str | None) -> str | None:
    """Return the hash of a file with this text; None if some of its bytes were not text."""
    if text is None or "\ufffd" in text or _SURROGATE.search(text):
        return None
    return digest_of(text.encode())


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes in the form of all stored hashes, `sha256:<64 hex>`."""
    return f"sha256:{sha256(data).hexdigest()}"


def absent_or(value: object, text: str) -> bool:
    """Return whether a field is missing, null, or this text."""
    return value is None or value == text


def whole_of(value: object) -> int | None:
    """Return a whole number from 0 on, or None."""
    return value if type(value) is int and 0 <= value < _LARGEST else None


def time_of(seconds: int | None) -> str | None:
    """Return a time in seconds since 1970 as UTC; None if it is not a possible time."""
    if seconds is None or not 0 < seconds < _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


_LAST_SECOND = 1 << 35


def object_of(value: object) -> Json:
    """Return an object, empty if the value is not one."""
    return value if is_object(value) else NOTHING


def list_of(value: object) -> list[object]:
    """Return a list, empty if the value is not one."""
    return value if is_list(value) else []


def words_of(value: object) -> list[str] | None:
    """Return a non-empty list of texts, or None."""
    words = [word for word in list_of(value) if isinstance(word, str)]
    return words if words and len(words) == len(list_of(value)) else None


_PATH_KEYS = ("path", "file", "file_path", "filepath", "filename", "paths", "files")


def paths_in(arguments: object) -> tuple[str, ...]:
    """Return the texts under those keys of a tool's arguments that usually name files."""
    known = object_of(arguments)
    values = (known.get(key) for key in _PATH_KEYS)
    texts = (each for value in values for each in (value if is_list(value) else [value]))
    return tuple(text for text in texts if isinstance(text, str) and text)


def texts_of(parts: object) -> tuple[str, ...]:
    """Return the texts of content parts of any type; a string is one part."""
    if isinstance(parts, str):
        return (parts,)
    found = (text_of(object_of(part).get("text")) for part in list_of(parts))
    return tuple(text for text in found if text is not None)


CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""The control characters, for use inside `[…]` in a regular expression."""


_K = TypeVar("_K")
_V = TypeVar("_V")


def renew(known: dict[_K, _V], key: _K, value: _V, most: int) -> bool:
    """Make a key the newest one; return whether the oldest was dropped, beyond `most`."""
    known.pop(key, None)
    known[key] = value
    if len(known) <= most:
        return False
    del known[next(iter(known))]
    return True


_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)


def window_id_of(value: object) -> str | None:
    """Return a value that is a window id, a UUID of version 7 (WIN-1), else None."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def first_window(head: Json) -> str | None:
    """Return the window in which a session began, from its head (WIN-2)."""
    return window_id_of(object_of(head.get("context_window")).get("window_id"))


def is_storable(text: str) -> bool:
    """Return whether a text is valid UTF-8; a file name need not be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
