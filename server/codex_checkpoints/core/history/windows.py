"""Context windows: their chain, and the fragment that names them to a model.

A window is what a model sees between two compactions, and has a UUIDv7 (WIN-1 to WIN-3).  Ids stand
in no checkpoint and no view (WIN-16).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from codex_checkpoints.values import frozen

Wrapper = Literal["context_window", "token_budget"]


@frozen
class Chain:
    """The place of a session among its windows; null where no record tells it.

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


# --- the fragment --------------------------------------------------------------------------------

_NAMES = {
    "thread_id": "Thread id",
    "first": "First context window id",
    "current": "Current context window id",
    "previous": "Previous context window id",
}
_LINE = re.compile(r"\s*([A-Za-z ]+?)\s*:\s*(\S+)\s*")
_WRAPPED = re.compile(r"<(context_window|token_budget)>(.*)</\1>", re.DOTALL)
_LONGEST = 4096


def render(fragment: Fragment, wrapper: Wrapper = "context_window") -> str:
    """Return the fragment as text; the first window has no line for the previous one (WIN-5)."""
    values = ((name, getattr(fragment, key)) for key, name in _NAMES.items())
    lines = "\n".join(f"{name}: {value}" for name, value in values if value is not None)
    return f"<{wrapper}>\n{lines}\n</{wrapper}>"


def recognise(text: str) -> Fragment | None:
    """Read a fragment in one of its two wrappers, or as bare lines (WIN-5).

    Lines of another name are ignored: newer versions add some.
    """
    if len(text) > _LONGEST:
        return None
    text = text.strip()
    wrapped = _WRAPPED.fullmatch(text)
    values = dict(_lines(text if wrapped is None else wrapped[2]))
    names = [values.get(name.lower()) for name in _NAMES.values()]
    thread_id, first, current, previous = names
    if thread_id is None or first is None or current is None:
        return None
    if wrapped is None and not _is_bare(text):
        return None
    return Fragment(thread_id, first, current, previous)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return ((line[1].lower(), line[2]) for line in found if line is not None)


def _is_bare(text: str) -> bool:
    """Return whether there are only such lines: prose that quotes them is no fragment."""
    known = {name.lower() for name in _NAMES.values()}
    lines = [_LINE.fullmatch(line) for line in text.splitlines() if line.strip()]
    return all(line is not None and line[1].lower() in known for line in lines)
