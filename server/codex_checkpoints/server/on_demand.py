"""The classes of the Language Server Protocol, each made when it is first used.

lsprotocol has more than 500 attrs classes, of which this server uses some 50.  To make them all is
two thirds of the time that it takes to start, and several megabytes.  So this module is imported
before whatever imports `lsprotocol.types`; where that is there already, its classes stay as they
are.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import attrs

_PROTOCOL = "lsprotocol.types"
_MAKING = threading.RLock()


class _Unmade:
    """An attribute of a class which attrs is to set: to read it has attrs make the class."""

    def __init__(self, kind: type, name: str) -> None:
        self._kind, self._name = kind, name

    def __get__(self, instance: object, owner: type) -> Any:
        with _MAKING:
            if vars(self._kind).get(self._name) is self:
                # With slots, attrs would put a second class in place of this one.  It replaces what
                # stands in for it: another thread sees the one or the other.
                attrs.resolve_types(attrs.define(self._kind, slots=False, init=True))
        return getattr(owner if instance is None else instance, self._name)


_SET_BY_ATTRS = ("__attrs_attrs__", "__init__")
"""What is read of a class that is asked for its fields, or called."""


def _later(kind: type) -> type:
    """Stand in for `attrs.define`."""
    for name in _SET_BY_ATTRS:
        setattr(kind, name, _Unmade(kind, name))
    return kind


@contextmanager
def made_when_used() -> Generator[None]:
    """Have classes that are given to `attrs.define` in a block made when they are first used."""
    define = attrs.define
    attrs.define = _later
    try:
        yield
    finally:
        attrs.define = define


if _PROTOCOL not in sys.modules:
    with made_when_used():
        import_module(_PROTOCOL)
    # It would resolve the names in all classes at once; here each does when it is made.
    setattr(import_module("lsprotocol._hooks"), "_resolved_forward_references", True)  # noqa: B010
