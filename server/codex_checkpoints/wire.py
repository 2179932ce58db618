"""Wire records as JSON values and back: camelCase names, strict types, every field sent.

Both doors use it, so an answer has the same keys on the command line and over JSON-RPC.  Which
records there are is said in `protocol`.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

import attrs
from attrs import AttrsInstance
from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from codex_checkpoints.core.checkpoint.caps import camel

T = TypeVar("T")

_PACKAGE = f"{__name__.partition('.')[0]}."
_SNAKE = re.compile(r"(?<=[a-z])_([a-z])")


class BadParams(ValueError):
    """Params that do not fit; `problems` lists all that is wrong with them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def add_hooks(converter: Converter) -> Converter:
    """Teach a converter our wire records; what it knew before stays."""

    def names(cls: type[AttrsInstance]) -> dict[str, Any]:
        return {field.name: override(rename=camel(field.name)) for field in attrs.fields(cls)}

    def structure(cls: type[AttrsInstance]) -> Callable[[Any, Any], Any]:
        attrs.resolve_types(cls)
        return make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **names(cls))

    def unstructure(cls: type[AttrsInstance]) -> Callable[[Any], dict[str, Any]]:
        attrs.resolve_types(cls)
        return make_dict_unstructure_fn(cls, converter, **names(cls))

    converter.register_structure_hook_factory(is_wire_record, structure)
    converter.register_unstructure_hook_factory(is_wire_record, unstructure)
    return converter


def is_wire_record(cls: Any) -> TypeGuard[type[AttrsInstance]]:
    """Return whether a class is one of our records: `protocol` says which of them go out."""
    return attrs.has(cls) and cls.__module__.startswith(_PACKAGE)


def structure(value: object, cls: type[T]) -> T:
    """Read params; raise `BadParams` with everything that is wrong."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise BadParams(["expected an object @ params"])
    try:
        return _strict.structure(value, cls)
    except Exception as error:  # noqa: BLE001 - cattrs raises groups of whatever a hook raised
        problems = transform_error(error, path="params")
        raise BadParams([_in_words_of_the_client(problem) for problem in problems]) from None


def _in_words_of_the_client(problem: str) -> str:
    """Name fields as on the wire; what the client itself wrote stays as it wrote it."""
    what, at, place = problem.rpartition(" @ ")
    return what + at + _SNAKE.sub(lambda match: match[1].upper(), place)


def unstructure(record: object) -> Any:
    """Return a record as JSON values."""
    return _strict.unstructure(record)


def as_bytes(value: object) -> bytes:
    """Return a JSON value as the bytes that its sender may have written.

    What has no such bytes, as a number without an end or a text with half a character, comes out
    as something that is no JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return b""
    return text.encode(errors="surrogatepass")


def filled(cls: type[T], source: object, **others: object) -> T:
    """Make a wire record of `others`, and the rest from a record with fields of the same names."""
    names, values_of = _rest(cls, frozenset(others))
    return cls(**dict(zip(names, values_of(source), strict=True)), **others)


@functools.cache
def _rest(
    cls: type[AttrsInstance], others: frozenset[str]
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """Return the other fields of a class, and what takes them from another record, in order."""
    names = tuple(field.name for field in attrs.fields(cls) if field.name not in others)
    # Of a single name `attrgetter` would give the value itself.
    single = len(names) == 1
    return names, (lambda it: (getattr(it, names[0]),)) if single else operator.attrgetter(*names)


def _typed(kind: type) -> Callable[[object, object], object]:
    def check(value: object, _kind: object) -> object:
        if type(value) is not kind:
            message = f"invalid type, expected {kind.__name__}"
            raise TypeError(message)
        return value

    return check


def _make_strict() -> Converter:
    converter = add_hooks(Converter())
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _typed(kind))

    def token(value: object, _kind: object) -> object:
        if value is None or type(value) in {int, str}:
            return value
        message = "invalid type, expected int or str"
        raise TypeError(message)

    converter.register_structure_hook(int | str | None, token)
    return converter


_strict = _make_strict()
