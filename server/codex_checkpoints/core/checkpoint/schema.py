"""Publish the shape of `memory.apply` payloads as JSON Schema, dialect 2020-12 (DSC-33).

Made of the records in `payloads.py`, so it says what they say.  What it cannot say: names are in
NFC, step ids and uris do not repeat, `done` names steps of the plan; and everything that depends on
the session.  What fits the schema may therefore still be refused; what does not fit always is.
"""

from collections.abc import Mapping
from types import UnionType
from typing import Literal, Union, get_args, get_origin

import attrs

from codex_checkpoints.core.checkpoint.payloads import (
    KINDS,
    MAX_DEPENDENCIES,
    MAX_NAME,
    DependencyClaim,
    Name,
    Text,
)
from codex_checkpoints.core.codec import camel
from codex_checkpoints.core.rollout.controls import CONTROLS

_FORMS: Mapping[object, Mapping[str, object]] = {
    str: {},
    Name: {"minLength": 1, "maxLength": MAX_NAME, "pattern": r"^[\p{L}\p{N}._/:-]+$"},
    Text: {"pattern": rf"[^\s{CONTROLS}]"},
}


def schema() -> dict[str, object]:
    """Return the schema of all three kinds as one object, as clients of MCP want it.

    Model services refuse `oneOf` at the top of a tool's input, and Codex passes on only what it
    knows.  So the properties of all kinds stand together, and what one kind must and may have is
    said by `if`, which may be dropped.
    """
    properties: dict[str, object] = {}
    rest: dict[str, object] = {}
    for kind in reversed(list(KINDS)):
        own = _properties(KINDS[kind])
        properties = own | properties
        branch: dict[str, object] = {
            "required": _required(KINDS[kind]),
            "propertyNames": {"enum": list(own)},
        }
        this: dict[str, object] = {"properties": {"kind": {"const": kind}}}
        rest = {"if": this, "then": branch, "else": rest} if rest else branch
    properties["kind"] = {"type": "string", "enum": list(KINDS)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memory.apply",
        "type": "object",
        "properties": properties,
        "required": ["kind", "evidence"],
        "additionalProperties": False,
        **rest,
    }


def _properties(record: type[attrs.AttrsInstance]) -> dict[str, object]:
    return {camel(each.name): _described(each.type, each.metadata) for each in attrs.fields(record)}


def _required(record: type[attrs.AttrsInstance]) -> list[str]:
    """Name the keys without a default, and `evidence`, which only `read` does not ask for."""
    return [
        camel(each.name)
        for each in attrs.fields(record)
        if each.default is attrs.NOTHING or each.name == "evidence"
    ]


def _described(kind: object, about: Mapping[str, str]) -> dict[str, object]:
    doc = about.get("doc")
    return _part(kind) | ({"description": doc} if doc else {})


def _part(kind: object) -> dict[str, object]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _FORMS:
        return {"type": "string", **_FORMS[kind]}
    if origin in {Union, UnionType}:
        return _part(inner[0])
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is tuple:
        most = {"maxItems": MAX_DEPENDENCIES} if inner[0] is DependencyClaim else {}
        return {"type": "array", "items": _part(inner[0]), **most}
    if isinstance(kind, type) and attrs.has(kind):
        return {
            "type": "object",
            "properties": _properties(kind),
            "required": _required(kind),
            "additionalProperties": False,
        }
    return {"type": "object", "additionalProperties": {"type": "boolean"}}
