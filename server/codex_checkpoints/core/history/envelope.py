"""One line of a session file: what kind it is by its first bytes, and what it says.

Codex writes the keys of an envelope in a fixed order, so one regular expression tells most lines
apart; what it does not match is read wholly.  What Codex itself would refuse says nothing here
either: lone surrogates, a time stamp that is no text, an ordinal that is no number.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

import orjson

from codex_checkpoints.core.rollout.fields import Json, is_object
from codex_checkpoints.core.rollout.responses import RESPONSES

_OPTIONAL = rb'(?:,"id":"[^"\\]{0,256}")?(?:,"status":"[^"\\]{0,64}")?'
_ITEM = rb',"thread_id":"[^"\\]{0,64}","turn_id":"[^"\\]{0,64}","item":\{"type":"([A-Za-z]+)"'
PREFIX = re.compile(
    rb'\{"timestamp":"([^"\\]{0,64})",(?:"ordinal":(0|[1-9][0-9]{0,14}),)?'
    rb'"type":"([a-z_]+)","payload":\{'
    rb'(?:"type":"([a-z_]+)"' + _OPTIONAL + rb'(?:,"role":"([a-z]+)"|' + _ITEM + rb")?)?"
)


class Wish(IntEnum):
    """What a reader wants of a line."""

    SKIP = 0
    NOTE = 1
    READ = 2


class Place(NamedTuple):
    """Where a line begins: which file of the chain, and the offset in it."""

    file: int
    offset: int


class Line(NamedTuple):
    """One line: what it is by its tags, where it stands, and what it says if it was to be read.

    `tag` is the type inside the payload; `inner` the role of a message, or the type of an item that
    was completed.  Both may be None where the line was not read.  `first` says that no line of the
    file could be read before it.
    """

    kind: str
    tag: str | None
    inner: str | None
    place: Place
    seq: int
    stamp: str
    first: bool
    payload: Json
    beside: Json
    """Further keys of the envelope (`metadata`)."""


NOTHING: Json = {}
"""What a line says that was not read."""


def tags_of(
    kind: bytes, tag: bytes | None, inner: bytes | None
) -> tuple[str, str | None, str | None]:
    """Return tags as texts."""
    return (
        kind.decode(),
        None if tag is None else tag.decode(),
        None if inner is None else inner.decode(),
    )


def load_line(raw: bytes) -> object:
    """Return the value of a line as strictly as Codex reads it; None for what is no JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def said_by(value: object, *, first: bool) -> tuple[str | None, Json]:
    """Return the kind and the payload of a line, no kind where it says nothing.

    Codex before 0.32 wrote items without an envelope (ROL-16).
    """
    if not is_object(value):
        return None, NOTHING
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and is_object(payload):
        return (kind, payload) if _is_well_formed(value) else (None, NOTHING)
    if kind is None and first and isinstance(value.get("id"), str):
        return "session_meta", value
    bare = isinstance(kind, str) and kind in RESPONSES
    return ("response_item", value) if bare else (None, NOTHING)


def _is_well_formed(envelope: Json) -> bool:
    ordinal, beside = envelope.get("ordinal"), envelope.get("metadata")
    counts = ordinal is None or (type(ordinal) is int and ordinal >= 0)
    return (
        isinstance(envelope.get("timestamp"), str)
        and counts
        and (beside is None or is_object(beside))
    )
