"""Defines the chain of context windows, and the fragment that names them to a model.

A window is the context of a model between two compactions, and has a UUIDv7 (WIN-1 to WIN-3).
Checkpoints and views contain no window ids (WIN-16).
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Wrapper = Literal["context_window", "token_budget"]


@frozen
class Chain:
    """The place of a session among its windows; null if not recorded.

    `number` counts from 0; `previous` is null in the first window.
    """

    first: str | None = None
    previous: str | None = None
    current: str | None = None
    number: int | None = None

    def opened(self, window_id: str) -> Chain:
        """Return the chain after one more window (WIN-3)."""
        number = None if self.number is None else self.number + 1
        return Chain(self.first, self.current, window_id, number)


@frozen
class Fragment:
    """The content of a context-budget fragment (WIN-4)."""

    thread_id: str
    first: str
    current: str
    previous: str | None = None


def begun(window_id: str) -> Chain:
    """Return the chain of a session in its first window (WIN-2)."""
    return Chain(window_id, None, window_id, 0)


_NAMES = {
    "thread_id": "Thread id",
    "first": "First context window id",
    "current": "Current context window id",
    "previous": "Previous context window id",
}


def render(fragment: Fragment, wrapper: Wrapper = "context_window") -> str:
    """Return the fragment as text; the first window has no line for the previous one (WIN-5)."""
    values = ((name, getattr(fragment, key)) for key, name in _NAMES.items())
    lines = "\n".join(f"{name}: {value}" for name, value in values if value is not None)
    return f"<{wrapper}>\n{lines}\n</{wrapper}>"
