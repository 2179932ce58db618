"""Classes of values: those of attrs, but made sooner.

attrs writes the methods of a class as text and compiles them whenever the class is made, and of
that time `__repr__` takes nearly half.  Codex waits for the door `hook`, which makes about ninety
classes for one answer and shows none of them: so one function shows them all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

__all__ = ["define", "frozen"]


def _sooner(make: Callable[..., type]) -> Callable[..., object]:
    def decorate(kind: type | None = None, /, **options: bool) -> object:
        if kind is None:
            return partial(decorate, **options)
        if "__repr__" not in vars(kind):  # attrs leaves alone what a class has
            kind.__repr__ = _shown  # pyright: ignore[reportAttributeAccessIssue] - a method, then
        return make(kind, **options)

    return decorate


def _shown(record: attrs.AttrsInstance) -> str:
    fields = attrs.fields(type(record))
    told = (f"{field.name}={getattr(record, field.name)!r}" for field in fields)
    return f"{type(record).__qualname__}({', '.join(told)})"


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define = _sooner(attrs.define)
    frozen = _sooner(attrs.frozen)
