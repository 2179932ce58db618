"""Classes of values: those of attrs, but made sooner.

attrs writes the methods of a class as text and compiles them whenever the class is made, and of
that time `__repr__` takes nearly half.  Codex waits for the door `hook`, which makes about ninety
classes for one answer and shows none of them: so one function shows them all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING

import attrs

__all__ = ["define", "frozen"]


def _sooner(make: Callable[..., type]) -> Callable[..., object]:
    def decorate(kind: type | None = None, /, **options: bool) -> object:
        if kind is None:
            return partial(decorate, **options)
        if "repr" not in options and "__repr__" not in vars(kind):  # attrs leaves what a class has
            kind.__repr__ = _shown  # pyright: ignore[reportAttributeAccessIssue] - a method, then
        return make(kind, **options)

    return decorate


@recursive_repr()
def _shown(record: attrs.AttrsInstance) -> str:
    told = (_told(record, field) for field in attrs.fields(type(record)) if field.repr)
    name = type(record).__qualname__.rpartition(">.")[2]
    return f"{name}({', '.join(told)})"


def _told(record: attrs.AttrsInstance, field: attrs.Attribute[object]) -> str:
    show = field.repr if callable(field.repr) else repr
    return f"{field.name}={show(getattr(record, field.name, attrs.NOTHING))}"


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define = _sooner(attrs.define)
    frozen = _sooner(attrs.frozen)
