"""What the language server does so that it takes little memory, besides keeping little."""

from __future__ import annotations

import contextlib

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `malloc.h`."""


def save() -> None:
    """Let threads share one heap, and give back what was needed to load the code.

    Done once, before there are threads.
    """
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
