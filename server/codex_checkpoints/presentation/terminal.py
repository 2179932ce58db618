"""What any text at a terminal needs: harmless characters, widths, colours, lines of the log."""

from __future__ import annotations

import logging
import re
import traceback
import unicodedata
from types import TracebackType
from typing import TextIO

from codex_checkpoints.service.reading.catalogue import Progress

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_FRACTION = re.compile(r"\.[0-9]+(?=Z$)")
DIM, AMBER, RED, GREEN, PLAIN = "\x1b[2m", "\x1b[33m", "\x1b[31m", "\x1b[32m", "\x1b[0m"
NARROW = 60
"""Below so many columns a list leaves out what can be spared."""

_LEAST_ROOM = 10

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def plain(text: str) -> str:
    """Return text without anything a terminal would obey."""
    return _CONTROLS.sub(" ", text).encode(errors="replace").decode()


def fit(text: str, room: int) -> str:
    """Return text cut or filled to `room` columns; wide characters take two."""
    if columns(text) <= room:
        return text + " " * (room - columns(text))
    kept, used = "", 0
    for character in text:
        used += columns(character)
        if used > room - 1:
            break
        kept += character
    return f"{kept}…" + " " * (room - 1 - columns(kept))


def room_behind(head: str, width: int) -> int:
    """Return how many columns are left behind the head of a line, so many that it can be read."""
    return max(width - columns(head) - 1, _LEAST_ROOM)


def cut(line: str, width: int | None) -> str:
    """Return a line cut to the terminal; whole where there is none."""
    return line if width is None else fit(line, room_behind("", width)).rstrip()


def folded(head: str, rest: str, width: int | None) -> list[str]:
    """Return head and rest as one line, or as two where the terminal is too narrow for one.

    A head holds what is there to be copied, such as an id, and is never cut; the rest is.
    """
    line = f"{head}  {rest}"
    if width is None or columns(line) < width:
        return [line]
    return [head, cut(f"    {rest}", width)]


def moment(stamp: str | None, width: int | None) -> str:
    """Return a time of a record, in UTC; to the second on a terminal, whole where there is none."""
    if stamp is None:
        return "-"
    return plain(stamp if width is None else _FRACTION.sub("", stamp))


def columns(text: str) -> int:
    """Return how many columns a text takes."""
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def defect(error: BaseException) -> str:
    """Return of which type an exception is and where of ours it arose, never what it says.

    Its message may hold a prompt.
    """
    package = __name__.partition(".")[0]
    frames = traceback.walk_tb(error.__traceback__)
    places = [(str(frame.f_globals.get("__name__")), line) for frame, line in frames]
    ours = [place for place in places if place[0].partition(".")[0] == package]
    module, line = (ours or places or [("-", 0)])[-1]
    return f"{type(error).__name__} at {module}:{line}"


class LogLine(logging.Formatter):
    """A line of the log; what it quotes of a rollout or a folder is as untrusted as elsewhere.

    Of an exception it tells the type and the places, never the message, which may hold a prompt.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the line, without anything a terminal would obey."""
        return plain(super().formatMessage(record))

    def formatException(self, ei: _Raised) -> str:  # noqa: N802 - logging's own name
        """Return where an exception came from and of which type it is, what led to it first."""
        return "\n".join(map(plain, _lines_of(ei[1])))


def _lines_of(error: BaseException | None) -> list[str]:
    lines: list[str] = []
    met: set[int] = set()
    while error is not None and id(error) not in met:
        met.add(id(error))
        places = traceback.walk_tb(error.__traceback__)
        codes = [(frame.f_code, line) for frame, line in places]
        told = [f"  {code.co_filename}:{line} {code.co_name}" for code, line in codes]
        lines = [*told, f"  {type(error).__name__}", *lines]
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
    return lines


class Bar:
    """A progress bar on one line of a terminal, drawn only when there is something to wait for."""

    def __init__(self, stream: TextIO, width: int | None) -> None:
        """Draw on this terminal; a line that is wider than it could not be drawn over."""
        self._stream = stream
        self._is_narrow = width is not None and width < NARROW
        self._drawn = False

    def show(self, progress: Progress) -> None:
        """Draw how far an index is."""
        if progress.of_files <= 1 or (progress.files >= progress.of_files and not self._drawn):
            return
        share = 1.0 if progress.of_bytes == 0 else progress.bytes / progress.of_bytes
        full = round(share * 24)
        bar = "█" * full + "░" * (24 - full)
        count = f"{progress.files}/{progress.of_files}"
        text = f"reading sessions {count if self._is_narrow else f'{bar} {count}'}"
        self._stream.write(f"\r{text}")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
