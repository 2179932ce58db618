"""Makes records from others with fields of the same names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeVar

from attrs import AttrsInstance, fields

_T = TypeVar("_T")


def taking(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return what returns the values of these fields of a record."""
    return operator.attrgetter(*names) if len(names) > 1 else partial(_few, names)


def _few(names: Sequence[str], record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in names)


def filled(kind: type[_T], *sources: object, **others: object) -> _T:
    """Make a record of `others`, and the rest from records with fields of the same names.

    Of several sources that have a name the first one counts.
    """
    for source in sources:
        names, values_of = _shared(kind, type(source), frozenset(others))
        others |= zip(names, values_of(source), strict=True)
    return kind(**others)


@cache
def _shared(
    kind: type[AttrsInstance], source: type, known: frozenset[str]
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """Return the fields that a class lacks and a source has, and what reads them from one."""
    lacking = (field.name for field in fields(kind) if field.name not in known)
    names = tuple(name for name in lacking if hasattr(source, name))
    return names, taking(names)
