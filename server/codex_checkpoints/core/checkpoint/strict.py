"""JSON values as the records of a checkpoint, and nothing but these: what is unknown is an error.

Reading a checkpoint back is rare, and making the reader takes longer than a hook of Codex's may;
so this stands beside `canonical`, which loads it when it is asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any, cast, get_args, get_origin

import attrs
from cattrs import BaseValidationError, Converter
from cattrs.gen import make_dict_structure_fn, override

from codex_checkpoints.core.checkpoint import records
from codex_checkpoints.core.checkpoint.caps import camel
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Plan,
)


def structured(value: dict[str, object]) -> Checkpoint:
    """Return the checkpoint that a value says; raise `TypeError` or `KeyError` for another one."""
    try:
        return _reader.structure(value, Checkpoint)
    except BaseValidationError as error:
        raise TypeError(str(error)) from error


def _strict(kind: type) -> Callable[[object, object], object]:
    def check(value: object, _kind: object) -> object:
        if type(value) is not kind:
            message = f"expected {kind.__name__}"
            raise TypeError(message)
        return value

    return check


def _is_tuple(kind: object) -> bool:
    return get_origin(kind) is tuple


def _listed(reader: Converter, kind: object) -> Callable[[object, object], object]:
    """Take a list for a tuple, and nothing else that has parts, such as a text."""
    inner = get_args(kind)[0]

    def check(value: object, _kind: object) -> object:
        if type(value) is not list:
            message = "expected a list"
            raise TypeError(message)
        return tuple(reader.structure(each, inner) for each in cast("list[object]", value))

    return check


def _make_reader() -> Converter:
    reader = Converter(forbid_extra_keys=True)
    for kind in (int, str, bool):
        reader.register_structure_hook(kind, _strict(kind))
    reader.register_structure_hook_factory(_is_tuple, partial(_listed, reader))
    for record in (Evidence, Plan, Decision, Artifact, Dependency, records.Step, records.Task):
        _register(reader, record)
    structure = make_dict_structure_fn(Fact, reader, _cattrs_forbid_extra_keys=True, **_names(Fact))

    def fact(value: dict[str, Any], kind: type[Fact]) -> Fact:
        known = dict(value)
        if known.pop("status") not in {"VALID", "SUSPECT"}:
            message = "unknown status"
            raise TypeError(message)
        return structure(known, kind)

    reader.register_structure_hook(Fact, fact)
    _register(reader, Checkpoint)
    return reader


def _names(record: type) -> dict[str, Any]:
    return {field.name: override(rename=camel(field.name)) for field in attrs.fields(record)}


def _register(reader: Converter, record: type[Any]) -> None:
    attrs.resolve_types(record)
    structure: Callable[[dict[str, Any], object], object] = make_dict_structure_fn(
        record, reader, _cattrs_forbid_extra_keys=True, **_names(record)
    )
    # An optional key without value is absent; the task alone is always there, null or not.
    absent = {
        camel(field.name): None
        for field in attrs.fields(record)
        if field.name != "task" and NoneType in get_args(field.type)
    }

    always = {camel(field.name) for field in attrs.fields(record)} - absent.keys()

    def structured(value: dict[str, Any], kind: object) -> object:
        if not always <= value.keys():
            message = "a key is missing"
            raise TypeError(message)
        return structure(absent | value, kind)

    reader.register_structure_hook(record, structured)


_reader = _make_reader()
