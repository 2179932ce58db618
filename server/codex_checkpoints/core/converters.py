"""Makes the converters between records and JSON values.

`params` reads a client's params and writes the answers, `stored` and `states` are for our own
files.  No value is converted: `True` is not a number, and a text is not a list.  A field of type
`object` is a JSON value, and is passed unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs
from attrs import frozen
from cattrs import BaseValidationError, ClassValidationError, Converter, IterableValidationError
from cattrs.cols import homogenous_tuple_structure_factory, list_structure_factory
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import (
    make_dict_structure_fn,
    make_dict_unstructure_fn,
    make_hetero_tuple_structure_fn,
    override,
)
from cattrs.preconf.orjson import OrjsonConverter, make_converter
from cattrs.strategies import configure_union_passthrough
from cattrs.v import format_exception

from codex_checkpoints.core.fields import is_list, is_object

T = TypeVar("T")
Record = type[attrs.AttrsInstance]
Names = Callable[[str], str]

MISFITS = (
    BaseValidationError,
    ForbiddenExtraKeysError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)
"""The errors that `structure` raises for a value that does not fit."""


def camel(name: str) -> str:
    """Return the JSON name of a field: `maxValueChars` for `max_value_chars`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def json_converter(
    names: Names = camel, *, closed: bool = False, complete: bool = False, detailed: bool = False
) -> OrjsonConverter:
    """Make a converter; `names` returns the JSON name of a field.

    With `closed` an unknown key is an error, with `complete` a missing one whose field has a
    default.  A `detailed` one raises all errors at once, for `problems_of`.
    """
    converter = make_converter(
        forbid_extra_keys=closed,
        detailed_validation=detailed,
        unstruct_collection_overrides={tuple: list},
    )
    for kind in (str, int, bool, float):
        converter.register_structure_hook(kind, _exactly)
    configure_union_passthrough(str | int | None, converter)
    converter.register_structure_hook_func(lambda kind: kind in {None, NoneType}, _none)
    converter.register_structure_hook_func(_is_json, _as_it_is)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_structure_hook_func(lambda kind: get_origin(kind) is Literal, _one_of)
    converter.register_structure_hook_factory(_is_sequence, _sequence_hook)

    def structure_hook(kind: Record, its: Converter) -> Callable[[object, object], Any]:
        read = make_dict_structure_fn(kind, its, **renamed(kind, names))
        needed = frozenset(json_names(kind, names) if complete else ())

        def structure(value: object, _kind: object) -> Any:
            if not is_object(value):
                raise TypeError("not an object")
            if not value.keys() >= needed:
                raise KeyError("a key is missing")
            return read(value, kind)

        return structure

    def unstructure_hook(kind: Record, its: Converter) -> Callable[[Any], dict[str, Any]]:
        return make_dict_unstructure_fn(kind, its, **renamed(kind, names))

    converter.register_structure_hook_factory(attrs.has, structure_hook)
    converter.register_unstructure_hook_factory(attrs.has, unstructure_hook)
    return converter


def renamed(kind: Record, names: Names = camel) -> dict[str, Any]:
    """Return the overrides with which cattrs gives the fields of a record their JSON names."""
    return {field.name: override(rename=names(field.name)) for field in attrs.fields(kind)}


def json_names(kind: Record, names: Names = camel) -> list[str]:
    """Return the JSON names of the fields of a record that are read and written."""
    return [names(field.name) for field in attrs.fields(kind) if field.init]


def read_or_none(converter: OrjsonConverter, value: object, kind: type[T]) -> T | None:
    """Return the record of a JSON value, None if it does not fit."""
    try:
        return converter.structure(value, kind)
    except MISFITS:
        return None


# --- mismatches -----------------------------------------------------------------------------------


@frozen
class Problem:
    """One thing that does not fit, and where: `at` is `.items[0].uri`, or empty for the whole.

    `kind` is the type that was expected there.
    """

    at: str
    kind: Any
    error: BaseException

    def text(self, root: str) -> str:
        """Return the problem in words; `root` names the whole."""
        if get_origin(self.kind) is Literal:
            words = f"invalid value, expected one of {', '.join(get_args(self.kind))}"
        else:
            words = format_exception(self.error, self.kind)
        return f"{words} @ {root}{self.at}"


def problems_of(error: BaseException, at: str = "", kind: object = None) -> Iterator[Problem]:
    """Yield all problems in the error of a detailed converter, with their places in the JSON.

    For a record, unknown keys come first, then missing ones, then values that do not fit.
    """
    if isinstance(error, ClassValidationError):
        in_fields, others = error.group_exceptions()
        in_fields.sort(key=lambda found: not isinstance(found[0], KeyError))
        found = [(f"{at}.{camel(note.name)}", note.type, each) for each, note in in_fields]
    elif isinstance(error, IterableValidationError):
        in_parts, others = error.group_exceptions()
        found = [(f"{at}[{note.index!r}]", note.type, each) for each, note in in_parts]
    else:
        yield Problem(at, kind, error)
        return
    for each in others:
        yield from problems_of(each, at, kind)
    for place, its, each in found:
        yield from problems_of(each, place, its)


# --- hooks ---------------------------------------------------------------------------------------


def _exactly(value: object, kind: type) -> object:
    if type(value) is not kind:
        raise TypeError("a value of another type")
    return value


def _none(value: object, _kind: object) -> None:
    if value is not None:
        raise TypeError("not null")


def _is_json(kind: object) -> bool:
    return kind is object


def _as_it_is(value: object, _kind: object) -> object:
    return value


def _one_of(value: object, kind: object) -> object:
    if not isinstance(value, str) or value not in get_args(kind):
        raise ValueError("not one of the known values")
    return value


def _is_sequence(kind: object) -> bool:
    return get_origin(kind) in {list, tuple}


def _sequence_hook(kind: Any, converter: Converter) -> Callable[[object, object], Any]:
    """Return cattrs's hook, which takes anything that can be iterated, for lists only."""
    if get_origin(kind) is list:
        read = list_structure_factory(kind, converter)
    elif get_args(kind)[1:] == (...,):
        read = homogenous_tuple_structure_factory(kind, converter)
    else:
        read = make_hetero_tuple_structure_fn(kind, converter)

    def structure(value: object, _kind: object) -> Any:
        if not is_list(value):
            raise TypeError("not a list")
        return read(value, kind)

    return structure


params = json_converter(closed=True, detailed=True)
"""For params and results: all problems of params are reported, unknown keys as well."""

stored = json_converter()
"""For records in our files: unknown keys are ignored, and missing ones take their default."""

states = json_converter(str, complete=True)
"""For cached states, which are derived again if anything is missing; fields keep their names."""
