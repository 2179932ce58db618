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
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Literal

import attrs
import orjson
from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn, override

from codex_checkpoints.core.checkpoint import canonical
from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS, camel
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.portable.judging import LISTS, policies, too_long, too_many, wrong
from codex_checkpoints.core.portable.pack import (
    FORMAT,
    MAX_BYTES,
    VERSION,
    NoteEvent,
    Origin,
    Pack,
    PackedLink,
    PackedMarker,
    PackedTurn,
    Revoked,
)
from codex_checkpoints.core.portable.places import HIDDEN
from codex_checkpoints.core.restore.markers import Pin
from codex_checkpoints.core.restore.trace import ModeChange
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
_RECORDS: tuple[type[Any], ...] = (
    Origin,
    PackedTurn,
    Revoked,
    NoteEvent,
    ModeChange,
    PackedMarker,
    Pin,
    PackedLink,
)


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
        return _reader().structure(told, Pack)
    except canonical.BadCheckpoint:
        raise BadPack("invalid_payload", ["checkpoint: not one of version 1"]) from None
    except Exception as error:  # noqa: BLE001 - cattrs raises groups of whatever a hook raised
        problems = (value(each, MAX_VALUE_CHARS) for each in transform_error(error, path="pack"))
        raise BadPack("invalid_payload", problems) from None


@cache
def _reader() -> Converter:
    reader = Converter(forbid_extra_keys=True)
    for kind in (int, str, bool):
        reader.register_structure_hook(kind, _strict(kind))
    reader.register_structure_hook(
        Checkpoint, lambda told, _: canonical.from_bytes(orjson.dumps(told))
    )
    reader.register_structure_hook_func(lambda kind: kind == Mapping[str, object], _object)
    for record in (*_RECORDS, Pack):
        attrs.resolve_types(record)
        structure: Callable[[Mapping[str, Any], object], object] = make_dict_structure_fn(
            record, reader, _cattrs_forbid_extra_keys=True, **_names_of(record)
        )
        reader.register_structure_hook(record, structure)
    # A step of the history has one of two keys, and never both.
    whole = reader.get_structure_hook(NoteEvent)

    def note(told: object, kind: type[NoteEvent]) -> NoteEvent:
        if not is_object(told) or ("payload" in told) == ("revoked" in told):
            raise TypeError("either payload or revoked")
        found: NoteEvent = whole({"payload": None, "revoked": None} | told, kind)
        return found

    reader.register_structure_hook(NoteEvent, note)
    return reader


def _names_of(record: type[Any]) -> dict[str, Any]:
    return {each.name: override(rename=camel(each.name)) for each in attrs.fields(record)}


def _strict(kind: type) -> Callable[[object, object], object]:
    def check(told: object, _kind: object) -> object:
        if type(told) is not kind:
            message = f"expected {kind.__name__}"
            raise TypeError(message)
        return told

    return check


def _object(told: object, _kind: object) -> Mapping[str, object]:
    if not is_object(told):
        raise TypeError("expected an object")
    return told
