"""Take the bytes of a pack apart, and trust nothing that they say.

A pack is refused whole: by `limit_exceeded` for what is larger or more than any pack of ours, by
`policy_text` for a note that lays down how an agent is to behave, by `invalid_payload` for
everything else that a pack of ours is not.  Keys stand once, unknown ones do not fit, texts are
values, files are named below a folder, ids are plain.  What looks like a secret is taken out.

Whether a claimed hash is true is asked by `arriving`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import orjson

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.codec import Codec, Form, Misfit
from codex_checkpoints.core.portable.judging import LISTS, policies, too_long, too_many, wrong
from codex_checkpoints.core.portable.pack import (
    FORMAT,
    MAX_BYTES,
    VERSION,
    NoteEvent,
    Pack,
)
from codex_checkpoints.core.portable.places import HIDDEN
from codex_checkpoints.core.rollout.controls import CONTROLS
from codex_checkpoints.core.rollout.fields import is_list, is_object

Code = Literal["invalid_payload", "limit_exceeded", "policy_text"]

MAX_DEPTH = 12
"""Lists and objects inside one another; a pack of ours needs nine."""

MAX_VALUES = MAX_BYTES // 16
"""Values in a pack: one of ours takes more bytes than that, with its key.  What a million of them
takes in memory, and how long, is a hundred times what a pack of the same size does."""

_LARGEST = 1 << 48
"""No session has so many records."""
_LISTED = 8
_UNSEEN = re.compile(f"[{CONTROLS}{HIDDEN}\\ud800-\\udfff]")


class BadPack(ValueError):
    """Bytes that are no pack; `problems` name places in it and repeat nothing of its texts."""

    def __init__(self, code: Code, problems: Iterable[str]) -> None:
        """Say by which code it is refused, and what is wrong with it."""
        self.code: Code = code
        self.problems = tuple(problems)[:_LISTED]
        super().__init__("; ".join(self.problems))


def pack_in(data: bytes) -> Pack:
    """Read a pack; raises `BadPack`."""
    if len(data) > MAX_BYTES:
        raise BadPack("limit_exceeded", [f"size: more than {MAX_BYTES} bytes"])
    told = _json(data)
    if told.get("format") != FORMAT:
        raise BadPack("invalid_payload", ["format: not a pack of codex-checkpoints"])
    if type(told.get("version")) is not int or told["version"] != VERSION:
        raise BadPack("invalid_payload", [f"version: only {VERSION} is known here"])
    problems = [*too_long(told)]
    if problems:
        raise BadPack("limit_exceeded", problems)
    pack = _structured({key: told[key] for key in told if key not in {"format", "version"}})
    problems = [*too_many(pack)]
    if problems:
        raise BadPack("limit_exceeded", problems)
    problems = [*wrong(pack)]
    if problems:
        raise BadPack("invalid_payload", problems)
    orders = [*policies(pack)]
    if orders:
        raise BadPack("policy_text", orders)
    return pack


# --- form ------------------------------------------------------------------------------------


def _json(data: bytes) -> dict[str, Any]:
    """Read strict JSON: UTF-8, keys once, no deeper than `MAX_DEPTH`, texts without secrets."""
    try:
        # Stricter about numbers and characters; and it bounds the depth, and takes little memory.
        too_much = _values_in(orjson.loads(data)) > MAX_VALUES
        found: object = None if too_much else json.loads(data, object_pairs_hook=_once)
    except _TwiceError:
        raise BadPack("invalid_payload", ["a key stands twice in an object"]) from None
    except (ValueError, RecursionError):
        raise BadPack("invalid_payload", ["not JSON"]) from None
    if too_much:
        raise BadPack("limit_exceeded", [f"more than {MAX_VALUES} values"])
    if not is_object(found):
        raise BadPack("invalid_payload", ["not a JSON object"])
    clean = _clean(found, MAX_DEPTH)
    if not is_object(clean):
        raise BadPack("invalid_payload", ["not a JSON object"])
    return clean


def _values_in(found: object) -> int:
    """Return how many values something is made of; where it is too many, at least one too many."""
    inside, count = [found], 1
    while inside and count <= MAX_VALUES:
        part = inside.pop()
        more: Collection[object] = ()
        if is_object(part):
            more = part.values()
        elif is_list(part):
            more = part
        count += len(more)
        if count <= MAX_VALUES:
            inside.extend(more)
    return count


class _TwiceError(ValueError):
    pass


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _clean(part: object, depth: int) -> object:
    """Return a JSON value whose texts are plain and hold no secret."""
    if isinstance(part, str):
        if _UNSEEN.search(part):
            raise BadPack("invalid_payload", ["a text holds a character that nobody sees"])
        return redact(part)
    if type(part) is int and not -1 <= part < _LARGEST:
        raise BadPack("invalid_payload", ["a number is out of range"])
    if depth == 0 and (is_list(part) or is_object(part)):
        raise BadPack("limit_exceeded", [f"deeper than {MAX_DEPTH}"])
    if is_list(part):
        return [_clean(each, depth - 1) for each in part]
    if not is_object(part):
        return part
    clean = {str(_clean(key, 1)): _clean(each, depth - 1) for key, each in part.items()}
    if len(clean) < len(part):
        raise BadPack("invalid_payload", ["a key stands twice in an object"])
    return clean


def _structured(told: Mapping[str, Any]) -> Pack:
    if not all(is_list(told.get(name)) for name in LISTS):
        raise BadPack("invalid_payload", [f"{', '.join(LISTS)}: must be lists"])
    try:
        return _codec.read(told, Pack)
    except Misfit as misfit:
        problems = (value(each.text("pack"), MAX_VALUE_CHARS) for each in misfit.problems)
        raise BadPack("invalid_payload", problems) from None


def _note(told: object) -> NoteEvent:
    """Read a step of the history: it has one of two keys, and never both."""
    if not is_object(told) or ("payload" in told) == ("revoked" in told):
        raise TypeError("either payload or revoked")
    return _inner.read({"payload": None, "revoked": None} | told, NoteEvent)


_inner = Codec(closed=True)
_codec = Codec(
    closed=True,
    own={**kept.own, NoteEvent: Form(_inner.write, _note)},
)
