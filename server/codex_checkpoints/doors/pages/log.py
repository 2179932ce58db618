"""Formats lines of the log, and a defect in one line, without possible text of a session."""

from __future__ import annotations

import logging
import traceback
from types import TracebackType

from codex_checkpoints.sections.terminal import plain

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def defect(error: BaseException) -> str:
    """Return the type of an exception and its place in our code; its message may hold a prompt."""
    package = __name__.partition(".")[0]
    frames = traceback.walk_tb(error.__traceback__)
    places = [(str(frame.f_globals.get("__name__")), line) for frame, line in frames]
    ours = [place for place in places if place[0].partition(".")[0] == package]
    module, line = (ours or places or [("-", 0)])[-1]
    return f"{type(error).__name__} at {module}:{line}"


class LogLine(logging.Formatter):
    """A line of the log, without control characters.

    Of an exception it has the type and the places, never the message, which may hold a prompt.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the line."""
        return plain(super().formatMessage(record))

    def formatException(self, ei: _Raised) -> str:  # noqa: N802 - logging's own name
        """Return types and places, the cause of the exception first."""
        return "\n".join(map(plain, _lines_of(ei[1])))


def _lines_of(error: BaseException | None) -> list[str]:
    lines: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        codes = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        places = [f"  {code.co_filename}:{line} {code.co_name}" for code, line in codes]
        lines = [*places, f"  {type(error).__name__}", *lines]
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
    return lines
