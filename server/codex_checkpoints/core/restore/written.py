"""Records as JSON objects with keys in camelCase, and back.

Writing is exact: every key, `null` where there is no value.  Reading is tolerant, for such files
lie on disk for years: an unknown key is passed over, a missing one has its default, and an object
that is no such record at all gives None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import attrs
import orjson
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from codex_checkpoints.core.checkpoint import canonical
from codex_checkpoints.core.checkpoint.caps import camel
from codex_checkpoints.core.checkpoint.records import Checkpoint

_Record = TypeVar("_Record")


def to_json(record: object) -> dict[str, Any]:
    """Return an attrs record as a JSON object, keys in the order of its fields."""
    written: dict[str, Any] = _converter().unstructure(record)
    return written


def from_json(value: object, kind: type[_Record]) -> _Record | None:
    """Read a record of this kind; None where the object is none."""
    if not isinstance(value, Mapping):
        return None
    try:
        return _converter().structure(value, kind)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no such record
        return None


@cache
def _converter() -> Converter:
    converter = Converter()
    for plain in (int, str, bool):
        converter.register_structure_hook(plain, _strict(plain))
    converter.register_unstructure_hook(Checkpoint, canonical.to_json)
    converter.register_structure_hook(
        Checkpoint, lambda value, _: canonical.from_bytes(orjson.dumps(value))
    )

    def writer(kind: type[Any]) -> Callable[[Any], dict[str, Any]]:
        return make_dict_unstructure_fn(kind, converter, **_names(kind))

    def reader(kind: type[Any]) -> Callable[[Mapping[str, Any], Any], Any]:
        return make_dict_structure_fn(kind, converter, **_names(kind))

    converter.register_unstructure_hook_factory(_is_record, writer)
    converter.register_structure_hook_factory(_is_record, reader)
    return converter


def _is_record(kind: type[Any]) -> bool:
    return kind is not Checkpoint and attrs.has(kind)


def _names(kind: type[Any]) -> dict[str, Any]:
    attrs.resolve_types(kind)
    return {field.name: override(rename=camel(field.name)) for field in attrs.fields(kind)}


def _strict(kind: type) -> Callable[[object, object], object]:
    def check(value: object, _kind: object) -> object:
        if type(value) is not kind:
            message = f"expected {kind.__name__}"
            raise TypeError(message)
        return value

    return check
