"""What the language server does so that it takes little memory, besides keeping little."""

from __future__ import annotations

import contextlib
import linecache
from types import FunctionType

from lsprotocol import types

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `malloc.h`."""


def save() -> None:
    """Give back what was needed to load the protocol, and let threads share one heap.

    Done once, before there are threads.
    """
    for kind in vars(types).values():
        if isinstance(kind, type):
            _forget_names(kind)
    linecache.clearcache()  # attrs puts the source of each class there
    _call_glibc("mallopt", _ARENA_MAX, 1)
    give_back()


def give_back() -> None:
    """Return to the system what glibc holds and nobody uses."""
    _call_glibc("malloc_trim", 0)


def _call_glibc(name: str, *arguments: int) -> None:
    """Call a function of glibc; nothing happens where there is none."""
    with contextlib.suppress(ImportError, AttributeError, OSError, TypeError):
        import ctypes  # noqa: PLC0415 - a Python may lack it

        getattr(ctypes.CDLL(None), name)(*arguments)


def _forget_names(kind: type) -> None:
    """Keep of the names around the methods that attrs made for a class those that they use.

    They are all names of the module, copied for each class.
    """
    methods = [each for each in vars(kind).values() if isinstance(each, FunctionType)]
    made = [each for each in methods if each.__code__.co_filename.startswith("<attrs generated ")]
    used = {"__builtins__"}.union(*(each.__code__.co_names for each in made))
    for names in (each.__globals__ for each in made if each.__globals__ is not types.__dict__):
        kept = {name: names[name] for name in used if name in names}
        names.clear()
        names.update(kept)
