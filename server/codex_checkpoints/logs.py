"""The log: ids, counts and reasons, never text of a session.

`logging` takes a while to load, and most commands log nothing: it is loaded with the first line,
and set up then as the door wants it.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from logging import Logger

_set_up: list[Callable[[], None]] = []


def set_up_with(set_up: Callable[[], None]) -> None:
    """Have the log set up by this before its first line."""
    _set_up[:] = [set_up]


def warn(module: str, message: str, *values: object) -> None:
    """Log a warning in the name of a module."""
    _log_of(module).warning(message, *values)


def error(module: str, message: str, *values: object) -> None:
    """Log a defect of ours in the name of a module."""
    _log_of(module).error(message, *values)


def _log_of(module: str) -> Logger:
    import logging  # noqa: PLC0415 - as above

    while _set_up:
        _set_up.pop()()
    return logging.getLogger(module)
