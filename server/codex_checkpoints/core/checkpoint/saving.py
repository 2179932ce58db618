"""Records as JSON values and back, for what is kept of a session between two readings.

How a record is written follows from the types of its fields.  A library would do the same by
writing and compiling code for each class, which pays where thousands are read; here one is, and
Codex waits for it.  It is strict: a value of another type, or one that is missing, is an error, and
then the session is read anew.  Fields that are no arguments of the class are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
import orjson

from codex_checkpoints.core.checkpoint import canonical
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.rollout.fields import is_list, is_object

T = TypeVar("T")


class Form(NamedTuple):
    """How values of a type are written, and read back; `read` raises `TypeError`, `ValueError`."""

    write: Callable[[Any], object]
    read: Callable[[object], Any]


def saved(record: object) -> object:
    """Return a record as JSON values."""
    return form_of(type(record)).write(record)


def loaded(kind: type[T], value: object) -> T:
    """Take up what `saved` gave; raises `TypeError` or `ValueError` for anything else."""
    return cast("T", form_of(kind).read(value))


@cache
def form_of(kind: Any) -> Form:  # noqa: ANN401 - a type in any spelling
    """Return the form of a type; raises `TypeError` for one that nobody keeps."""
    inner: tuple[Any, ...] = get_args(kind)
    origin: Any = get_origin(kind) or kind
    if origin in _FORMS:
        return _FORMS[origin]
    if origin is Literal:
        return Form(_same, partial(_one_of, inner))
    if origin in {Union, UnionType}:
        return _optional(form_of(next(each for each in inner if each is not NoneType)))
    if origin is tuple and Ellipsis not in inner:
        return _pair([form_of(each) for each in inner])
    if origin in {tuple, list}:
        return _sequence(origin, form_of(inner[0]))
    if origin in {dict, Mapping}:
        return _mapping(form_of(inner[1]))
    if attrs.has(origin):
        return _record(origin)
    raise TypeError(f"{kind} is not kept")


def _record(kind: type[attrs.AttrsInstance]) -> Form:
    types = get_type_hints(kind, include_extras=True)  # there are none, and to look takes time
    kept = [field for field in attrs.fields(kind) if field.init]
    forms = [(each.name, each.alias, form_of(types[each.name])) for each in kept]

    def write(record: object) -> object:
        return {name: form.write(getattr(record, name)) for name, _, form in forms}

    def read(value: object) -> object:
        told = _object(value)
        return kind(**{alias: form.read(_member(told, name)) for name, alias, form in forms})

    return Form(write, read)


def _optional(form: Form) -> Form:
    def write(value: object) -> object:
        return None if value is None else form.write(value)

    def read(value: object) -> object:
        return None if value is None else form.read(value)

    return Form(write, read)


def _sequence(kind: Callable[[Iterable[object]], object], form: Form) -> Form:
    def write(values: Iterable[object]) -> object:
        return [form.write(each) for each in values]

    def read(value: object) -> object:
        return kind(form.read(each) for each in _list(value))

    return Form(write, read)


def _pair(forms: Sequence[Form]) -> Form:
    def write(values: Iterable[object]) -> object:
        return [form.write(each) for form, each in zip(forms, values, strict=True)]

    def read(value: object) -> object:
        return tuple(form.read(each) for form, each in zip(forms, _list(value), strict=True))

    return Form(write, read)


def _mapping(form: Form) -> Form:
    def write(values: Mapping[str, object]) -> object:
        return {key: form.write(each) for key, each in values.items()}

    def read(value: object) -> object:
        return {key: form.read(each) for key, each in _object(value).items()}

    return Form(write, read)


def _same(value: object) -> object:
    return value


def _exactly(kind: type, value: object) -> object:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}")
    return value


def _one_of(known: tuple[object, ...], value: object) -> object:
    if value not in known:
        raise ValueError("not one of those that are known")
    return value


def _object(value: object) -> dict[str, object]:
    if not is_object(value):
        raise TypeError("expected an object")
    return value


def _list(value: object) -> list[object]:
    if not is_list(value):
        raise TypeError("expected a list")
    return value


def _member(told: dict[str, object], name: str) -> object:
    if name not in told:
        raise ValueError(f"{name} is missing")
    return told[name]


def _bytes(value: object) -> bytes:
    return str(_exactly(str, value)).encode("latin-1")


def _spelled(raw: bytes) -> object:
    """Spell a line of a rollout, which need not be UTF-8: mostly as it is."""
    return raw.decode("latin-1")


def _checkpoint(value: object) -> Checkpoint:
    return canonical.from_bytes(orjson.dumps(value))


_NOTHING = Form(_same, partial(_exactly, NoneType))
_FORMS: Mapping[object, Form] = {
    **{kind: Form(_same, partial(_exactly, kind)) for kind in (int, str, bool)},
    None: _NOTHING,
    NoneType: _NOTHING,
    Callable: _NOTHING,  # there is none between two readings
    bytes: Form(_spelled, _bytes),
    object: Form(_same, _same),
    Checkpoint: Form(canonical.to_json, _checkpoint),
}
