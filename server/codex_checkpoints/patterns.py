"""Regular expressions that are compiled when they are first used.

To compile one takes as long as to load a small module, and a command uses few of those that it
loads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast


class _Pattern:
    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __getattr__(self, name: str) -> object:
        found = getattr(self._compiled(), name)
        setattr(self, name, found)  # so that this is asked once for each method
        return found


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, as far as its methods go."""
    return cast("re.Pattern[AnyStr]", _Pattern(lambda: re.compile(text, flags)))
