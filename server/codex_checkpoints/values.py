"""attrs classes that are made faster: they share one `__repr__`.

attrs compiles one for each class, which takes nearly half of the time to make it.  Codex waits for
`hook`, which loads about ninety classes and prints none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING

import attrs

__all__ = ["define", "frozen"]


def _with_shared_repr(make: Callable[..., type]) -> Callable[..., object]:
    def decorate(kind: type | None = None, /, **options: bool) -> object:
        if kind is None:
            return partial(decorate, **options)
        if "repr" not in options and "__repr__" not in vars(kind):  # attrs leaves what a class has
            kind.__repr__ = _repr  # pyright: ignore[reportAttributeAccessIssue] - a method, then
        return make(kind, **options)

    return decorate


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
    define = _with_shared_repr(attrs.define)
    frozen = _with_shared_repr(attrs.frozen)
