"""Prepares texts for a terminal: harmless characters, widths, colours."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from shlex import quote
from typing import TextIO

from attrs import frozen

from codex_checkpoints.service.reading.session_index import IndexProgress

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
DIM, AMBER, RED, GREEN, PLAIN = "\x1b[2m", "\x1b[33m", "\x1b[31m", "\x1b[32m", "\x1b[0m"

_LEAST_ROOM = 10
_OF_OURS = re.compile(r"`codex-checkpoints ([^`]*)`")


def plain(text: str) -> str:
    """Return text without anything that a terminal would obey."""
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


def moment_columns(screen: Screen) -> int:
    """Return the columns of a time: local on a terminal, else UTC with milliseconds."""
    return 24 if screen.width is None else 19


def moment(stamp: str | None, screen: Screen) -> str:
    """Return a time: by the local clock on a terminal, else in UTC as everywhere."""
    if stamp is None:
        return "-"
    here = None if screen.width is None else _here(stamp)
    return plain(stamp) if here is None else f"{here:%Y-%m-%d %H:%M:%S}"


def moment_here(stamp: str) -> str:
    """Return a time, and beside it the local time if that differs (AGN-68)."""
    here = _here(stamp)
    beside = f" (here {here:%Y-%m-%d %H:%M:%S})" if here is not None and here.utcoffset() else ""
    return plain(stamp) + beside


def _here(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp).astimezone()
    except (ValueError, OverflowError):
        return None


@frozen
class Screen:
    """The target of lines: its columns, None for a file or a pipe, and whether in colours.

    `codex_home` and `state_dir` are the folders that the command line named, absolute: suggested
    commands repeat them.  The environment's names count for the next command as well.
    """

    width: int | None = None
    colour: bool = False
    codex_home: str | None = None
    state_dir: str | None = None

    def tinted(self, tint: str, text: str) -> str:
        """Return a text in a colour."""
        return f"{tint}{text}{PLAIN}" if self.colour else text

    def room_after(self, head: str) -> int | None:
        """Return the columns left after the head of a line, at least `_LEAST_ROOM`."""
        return None if self.width is None else max(self.width - columns(head) - 1, _LEAST_ROOM)

    def cut_after(self, head: str, text: str, room: int | None = None) -> str:
        """Return a text cut to the columns after a head; to `room` without a terminal."""
        room = room if self.width is None else self.room_after(head)
        return text if room is None else fit(text, room).rstrip()

    def cut(self, line: str) -> str:
        """Return a line cut to the terminal."""
        return self.cut_after("", line)

    def folded(self, head: str, rest: str) -> list[str]:
        """Return head and rest as one line, or as two if they do not fit; no head is cut."""
        line = f"{head}  {rest}"
        if self.width is None or columns(line) < self.width:
            return [line]
        return [head, self.cut(f"    {rest}")]

    def ours(self, command: str) -> str:
        """Return a command of ours with the same folders."""
        options = (("--codex-home", self.codex_home), ("--state-dir", self.state_dir))
        named = "".join(f" {option} {_word(folder)}" for option, folder in options if folder)
        return f"codex-checkpoints {command}{named}"

    def codex(self, command: str) -> str:
        """Return a command of Codex's, which takes its home only from the environment."""
        return f"CODEX_HOME={_word(self.codex_home)} {command}" if self.codex_home else command

    def within(self, sentence: str) -> str:
        """Return a sentence whose commands of ours, in backticks, have the same folders."""

        def whole(found: re.Match[str]) -> str:
            return found[0] if "--codex-home" in found[1] else f"`{self.ours(found[1])}`"

        return _OF_OURS.sub(whole, sentence)


def _word(folder: str) -> str:
    return quote(folder)


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


class Bar:
    """A progress bar on one line of a terminal, drawn only if a person has to wait."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = False

    def show(self, progress: IndexProgress) -> None:
        """Draw the progress of indexing."""
        if progress.of_files <= 1 or (progress.files >= progress.of_files and not self._drawn):
            return
        share = 1.0 if progress.of_bytes == 0 else progress.bytes / progress.of_bytes
        full = round(share * 24)
        bar = "█" * full + "░" * (24 - full)
        self._stream.write(f"\rreading sessions {bar} {progress.files}/{progress.of_files}")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Remove the bar."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
