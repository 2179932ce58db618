"""Reads and writes wire records as JSON values: camelCase names, strict types, every field.

All doors use these functions, so an answer has the same keys on the command line and over JSON-RPC.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard, TypeVar

from attrs import AttrsInstance as Record
from attrs import has
from cattrs import Converter

from codex_checkpoints.core.converters import MISFITS, params, problems_of
from codex_checkpoints.core.fields import is_object

T = TypeVar("T")

_PACKAGE = f"{__name__.partition('.')[0]}."


class BadParams(ValueError):
    """Params that do not fit; `problems` lists all their problems."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def add_hooks(converter: Converter) -> Converter:
    """Let the converter of a library read and write our wire records too; return it."""
    converter.register_structure_hook_func(is_wire_record, structure)
    converter.register_unstructure_hook_func(is_wire_record, unstructure)
    return converter


def is_wire_record(cls: Any) -> TypeGuard[type[Record]]:
    """Return whether a class is a record of this package."""
    return has(cls) and cls.__module__.startswith(_PACKAGE)


def structure(value: object, cls: type[T]) -> T:
    """Read params; raise `BadParams` with all problems."""
    value = {} if value is None else value
    if not is_object(value):
        raise BadParams(["expected an object @ params"])
    try:
        return params.structure(value, cls)
    except MISFITS as misfit:
        raise BadParams([problem.text("params") for problem in problems_of(misfit)]) from None


def unstructure(record: object) -> Any:
    """Return a record as JSON values."""
    return params.unstructure(record)


def as_bytes(value: object) -> bytes:
    """Return a JSON value as the bytes that its sender may have written.

    If no such bytes exist (NaN, half a surrogate pair), the result is not JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return b""
    return text.encode(errors="surrogatepass")
