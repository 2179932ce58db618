"""attrs classes that are made sooner: attrs writes the methods of each when it is first used.

attrs writes and compiles code for a class, which takes most of the time to load its module.  A
command uses few of the classes that it loads, and prints none: they share one `__repr__`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from reprlib import recursive_repr
from types import FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING

import attrs

__all__ = ["define", "frozen"]

_OF_CLASS = frozenset({"__dict__", "__slots__", "__weakref__"})
"""What each class has of its own."""


class _Later:
    """A part of a class that attrs has yet to write."""

    def __init__(self, name: str, write: Callable[[], None]) -> None:
        self._name = name
        self._write = write

    def __get__(self, record: object, kind: type) -> object:
        self._write()
        return getattr(kind if record is None else record, self._name)


def _sooner(make: Callable[..., type]) -> Callable[..., object]:
    def decorate(kind: type | None = None, /, **options: bool) -> object:
        if kind is None:
            return partial(decorate, **options)
        if "repr" not in options and "__repr__" not in vars(kind):  # attrs leaves what a class has
            kind.__repr__ = _repr  # pyright: ignore[reportAttributeAccessIssue] - a method, then
        if any(map(_names_its_class, vars(kind).values())):
            return make(kind, **options)
        return _slotted(kind, partial(make, kind, **options))

    return decorate


def _names_its_class(each: object) -> bool:
    """Return whether a function needs the very class that it was written in, as `super()` does."""
    return isinstance(each, FunctionType) and "__class__" in each.__code__.co_freevars


def _slotted(kind: type, make: Callable[[], type]) -> type:
    """Return a class with the slots of `kind`, which takes over what attrs makes of that."""
    notes: dict[str, object] = vars(kind).get("__annotations__", {})
    fields = [name for name, note in notes.items() if "ClassVar[" not in str(note)]
    weak = [] if any(base.__weakrefoffset__ for base in kind.__bases__) else ["__weakref__"]

    def write() -> None:
        for name, each in vars(make()).items():
            if name not in _OF_CLASS and not isinstance(each, MemberDescriptorType):
                setattr(slotted, name, each)

    body = {name: each for name, each in vars(kind).items() if name not in {*fields, *_OF_CLASS}}
    body |= {name: _Later(name, write) for name in ("__init__", "__attrs_attrs__")}
    slotted = type(kind)(kind.__name__, kind.__bases__, {**body, "__slots__": (*fields, *weak)})
    return slotted


@recursive_repr()
def _repr(record: attrs.AttrsInstance) -> str:
    fields = (_repr_of(record, field) for field in attrs.fields(type(record)) if field.repr)
    name = type(record).__qualname__.rpartition(">.")[2]
    return f"{name}({', '.join(fields)})"


def _repr_of(record: attrs.AttrsInstance, field: attrs.Attribute[object]) -> str:
    show = field.repr if callable(field.repr) else repr
    return f"{field.name}={show(getattr(record, field.name, attrs.NOTHING))}"


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define = _sooner(attrs.define)
    frozen = _sooner(attrs.frozen)
