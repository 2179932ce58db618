"""Records of compactions as lines of JSON, and back.

Keys are in camelCase, and `type` tells which of the records a line is.  Reading is tolerant, since
the file stays on disk for years: a key from the future is passed over, and a line that is no
record of ours gives none.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any

import attrs
import orjson
from cattrs import BaseValidationError, Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from codex_checkpoints.core.checkpoint.canonical import from_bytes, to_json
from codex_checkpoints.core.checkpoint.caps import camel
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.records import (
    Counts,
    Installed,
    Prepared,
    Range,
    Record,
    Remaining,
    Sizes,
    Undone,
    Windows,
)
from codex_checkpoints.core.compaction.report import Figure
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.fields import is_object

_TYPES: dict[str, type[Installed | Undone]] = {"installed": Installed, "undone": Undone}
_PREPARED = "prepared"


def to_value(record: Record) -> dict[str, Any]:
    """Return a record as JSON values, its type first."""
    if isinstance(record, Prepared):
        return {"type": _PREPARED, "record": to_value(record.record)}
    name = next(name for name, kind in _TYPES.items() if isinstance(record, kind))
    return {"type": name, **_converter.unstructure(record)}


def record_of(value: object) -> Record | None:
    """Read a record from the JSON value of a line; None for what is none."""
    if not is_object(value):
        return None
    if value.get("type") == _PREPARED:
        inner = record_of(value.get("record"))
        return None if inner is None or isinstance(inner, Prepared) else Prepared(inner)
    kind = _TYPES.get(str(value.get("type")))
    if kind is None:
        return None
    try:
        return _converter.structure(value, kind)
    except (BaseValidationError, TypeError, ValueError):
        return None


def _seed(value: object, _kind: object) -> Checkpoint:
    return from_bytes(orjson.dumps(value))


def _exact(kind: type) -> Callable[[object, object], object]:
    def check(value: object, _kind: object) -> object:
        if type(value) is not kind:
            message = f"expected {kind.__name__}"
            raise TypeError(message)
        return value

    return check


def _make_converter() -> Converter:
    converter = Converter()
    for kind in (int, str, NoneType):
        converter.register_structure_hook(kind, _exact(kind))
    converter.register_structure_hook(Checkpoint, _seed)
    converter.register_unstructure_hook(Checkpoint, to_json)
    for record in (
        Figure,
        Chain,
        Range,
        Remaining,
        Counts,
        Sizes,
        Windows,
        Installed,
        Undone,
    ):
        attrs.resolve_types(record)
        names: dict[str, Any] = {
            field.name: override(rename=camel(field.name)) for field in attrs.fields(record)
        }
        converter.register_structure_hook(
            record, make_dict_structure_fn(record, converter, **names)
        )
        converter.register_unstructure_hook(
            record, make_dict_unstructure_fn(record, converter, **names)
        )
    return converter


_converter = _make_converter()
